// The loops of order-free reductions, generic over the operation: along rows (the reduced elements are
// neighbours) and along columns (the kept ones are). The operations are in reduce_*.cpp, the blocks in
// reduce_vector.h.
//
// An operation `Op` has
//   using Acc;                              what is accumulated
//   Acc identity() const;
//   void map(V& v, int64_t number) const;   an element, converted to Acc, becomes a term
//   void combine(V& a, const V& b) const;   a = a with b
// with V the scalar Acc or Register<Acc>; `number` counts the registers of a tile of columns, and is 0 along
// rows.
#pragma once

#include <algorithm>

#include "tern/backends/cpu/kernels/reduce_vector.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/backends/cpu/kernels/turned_rows.h"
#include "tern/kernels/strides.h"

namespace tern::cpu::TERN_CPU_VARIANT::wide {

/// Elements of a row that one task reduces.
inline constexpr int64_t kRowChunk = 16384;
/// Blocks after which the sums of a row are put away, so that none collects many roundings.
inline constexpr int64_t kFlushBlocks = 64;
/// Rows after which the sums of a column are put away.
inline constexpr int64_t kFlushRows = 64;
/// Rows that one task reduces in columns, at most.
inline constexpr int64_t kColumnChunk = 1024;
/// Columns that one task reduces, in blocks.
inline constexpr int kTileBlocks = 32;
/// Rows shorter than this are reduced by a plain loop.
inline constexpr int64_t kShortRow = 16;
/// So many of them at once.
inline constexpr int64_t kShortRows = 4;
/// So many of them are turned, if they are dense.
inline constexpr int64_t kTurnedFrom = 32;
/// Elements worth a thread.
inline constexpr int64_t kReduceGrain = 32768;

/// One past the last element that the two geometries reach from `in`; `in` itself when there is none.
template <class T>
const T* reach(const T* in, const Geometry<1>& kept, const Geometry<1>& reduced) {
  if (kept.numel == 0 || reduced.numel == 0) return in;
  const T* last = in;
  for (int d = 0; d < kept.ndim; ++d) last += (kept.sizes[d] - 1) * kept.strides[0][d];
  for (int d = 0; d < reduced.ndim; ++d) last += (reduced.sizes[d] - 1) * reduced.strides[0][d];
  return last + 1;
}

template <class Op>
[[gnu::always_inline]] inline void combine(const Op& op, Block<typename Op::Acc>& a,
                                           const Block<typename Op::Acc>& b) {
  for (int i = 0; i < kParts; ++i) op.combine(a.part[i], b.part[i]);
}

/// sum = sum with the terms of the elements in v; `number` is the block's in the tile.
template <class Op>
[[gnu::always_inline]] inline void accumulate(const Op& op, Block<typename Op::Acc>& sum,
                                              Block<typename Op::Acc>& v, int64_t number) {
  for (int i = 0; i < kParts; ++i) {
    op.map(v.part[i], number * kParts + i);
    op.combine(sum.part[i], v.part[i]);
  }
}

/// All lanes of v combined, in a tree.
template <class Op>
[[gnu::always_inline]] inline typename Op::Acc combine_lanes(const Op& op, const Block<typename Op::Acc>& v) {
  using A = typename Op::Acc;
  A lanes[kLanes<A>];
  std::memcpy(lanes, &v, sizeof v);
#pragma GCC unroll 1
  for (int width = kLanes<A> / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) op.combine(lanes[i], lanes[i + width]);
  return lanes[0];
}

/// values[j] = values[i * width + j] over i < count combined, pairwise, for j < width.
template <class V, class Combine>
void combine_tree(V* values, int64_t count, int64_t width, const Combine& combine_values) {
  for (int64_t step = 1; step < count; step *= 2)
    for (int64_t i = 0; i + step < count; i += 2 * step)
      for (int64_t j = 0; j < width; ++j)
        combine_values(values[i * width + j], values[(i + step) * width + j]);
}

/// Four blocks of sums, and one to put them away in.
template <class Op>
class RowSums {
 public:
  using A = typename Op::Acc;
  static constexpr int64_t L = kLanes<A>;

  explicit RowSums(const Op& op) : op_(op) {
    splat(total_, op.identity());
    for (auto& sum : sums_) sum = total_;
  }

  template <class T>
  [[gnu::noinline]] void add(const T* p, int64_t n) {
    constexpr int64_t kWindow = kFlushBlocks * L;
    while (n > 0) {
      const int64_t count = n <= kWindow ? n : kWindow;
      Block<A> s0 = sums_[0], s1 = sums_[1], s2 = sums_[2], s3 = sums_[3];
      Block<A> v0, v1, v2, v3;
      int64_t i = 0;
#pragma GCC unroll 1
      for (; i + 4 * L <= count; i += 4 * L) {
        load(v0, p + i);
        load(v1, p + i + L);
        load(v2, p + i + 2 * L);
        load(v3, p + i + 3 * L);
        accumulate(op_, s0, v0, 0);
        accumulate(op_, s1, v1, 0);
        accumulate(op_, s2, v2, 0);
        accumulate(op_, s3, v3, 0);
      }
      auto add_block = [&](Block<A>& sum) {
        if (i + L > count) return;
        load(v0, p + i);
        accumulate(op_, sum, v0, 0);
        i += L;
      };
      add_block(s0);
      add_block(s1);
      add_block(s2);
      if (i < count && count >= L) {
        // The last whole block of the row once more, without the lanes that were counted.
        load(v0, p + count - L);
        for (auto& part : v0.part) op_.map(part, 0);
        drop_lanes(v0, L - (count - i), op_.identity());
        combine(op_, s3, v0);
        i = count;
      }
      sums_[0] = s0, sums_[1] = s1, sums_[2] = s2, sums_[3] = s3;
#pragma GCC unroll 1
      for (; i < count; ++i) {
        A term = static_cast<A>(static_cast<Compute<T>>(p[i]));
        op_.map(term, 0);
        op_.combine(rest_, term);
      }
      pending_ += count;
      if (pending_ >= kWindow) flush();
      p += count;
      n -= count;
    }
  }

  A result() {
    flush();
    A sum = combine_lanes(op_, total_);
    op_.combine(sum, rest_total_);
    return sum;
  }

 private:
  void flush() {
    combine(op_, sums_[0], sums_[1]);
    combine(op_, sums_[2], sums_[3]);
    combine(op_, sums_[0], sums_[2]);
    combine(op_, total_, sums_[0]);
    op_.combine(rest_total_, rest_);
    rest_ = op_.identity();
    for (auto& sum : sums_) splat(sum, op_.identity());
    pending_ = 0;
  }

  const Op& op_;
  Block<A> total_, sums_[4];
  A rest_ = op_.identity(), rest_total_ = op_.identity();
  int64_t pending_ = 0;
};

/// results[r] = `n` elements at x + r * row_step, `step` apart, combined, for kShortRows rows.
template <class Op, class T>
[[gnu::always_inline]] inline void reduce_short_rows(const Op& op, const T* x, int64_t row_step, int64_t n,
                                                     int64_t step, typename Op::Acc* results) {
  using A = typename Op::Acc;
  A sums[kShortRows];
  for (A& sum : sums) sum = op.identity();
#pragma GCC unroll 1
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < kShortRows; ++r) {
      A term = static_cast<A>(static_cast<Compute<T>>(x[r * row_step + i * step]));
      op.map(term, 0);
      op.combine(sums[r], term);
    }
  std::copy_n(sums, kShortRows, results);
}

/// All elements of v[r] combined as combine_lanes does, in lane r, for as many blocks as a register has
/// lanes: the steps of the tree that exchange halves of two blocks take both at once.
template <int d, class Op>
[[gnu::always_inline]] inline void combine_registers(const Op& op, Register<typename Op::Acc>* r) {
  constexpr int n = kRegisterLanes<typename Op::Acc>;
  if constexpr (d > 0) {
    TERN_UNROLL for (int i = 0; i < d; ++i) {
      exchange_squares<d>(r[i], r[i + d], std::make_integer_sequence<int, n>());
      op.combine(r[i], r[i + d]);
    }
    combine_registers<d / 2>(op, r);
  }
}

/// results[r] = the lanes of row[r] combined, for kRegisterLanes blocks of sums.
template <class Op>
[[gnu::always_inline]] inline void store_combined(const Op& op, Register<typename Op::Acc>* row,
                                                  typename Op::Acc* results) {
  combine_registers<kRegisterLanes<typename Op::Acc> / 2>(op, row);
  std::memcpy(results, row, sizeof row[0]);
}
/// The first step of combine_lanes, to one register.
template <class Op>
[[gnu::always_inline]] inline Register<typename Op::Acc> combine_parts(const Op& op,
                                                                       Block<typename Op::Acc>& sum) {
  for (int width = kParts / 2; width > 0; width /= 2)
    for (int k = 0; k < width; ++k) op.combine(sum.part[k], sum.part[k + width]);
  return sum.part[0];
}

/// results[r] = what reduce_row gives for the `n` elements at x + r * row_step, for kRegisterLanes rows of
/// more than 4 * kLanes elements and at most kFlushBlocks blocks.
template <class Op, class T>
[[gnu::noinline]] void reduce_longer_rows_together(const Op& op, const T* x, int64_t row_step, int64_t n,
                                                   typename Op::Acc* results) {
  using A = typename Op::Acc;
  constexpr int64_t L = kLanes<A>;
  Register<A> r[kRegisterLanes<A>];
#pragma GCC unroll 1
  for (auto& row : r) {
    Block<A> s0, s1, s2, s3;
    splat(s0, op.identity());
    s1 = s2 = s3 = s0;
    auto take = [&](Block<A> & sum, int64_t i) __attribute__((always_inline)) {
      Block<A> v;
      load(v, x + i);
      accumulate(op, sum, v, 0);
    };
    int64_t i = 0;
#pragma GCC unroll 1
    for (; i + 4 * L <= n; i += 4 * L) {
      take(s0, i);
      take(s1, i + L);
      take(s2, i + 2 * L);
      take(s3, i + 3 * L);
    }
    if (i + L <= n) take(s0, i), i += L;
    if (i + L <= n) take(s1, i), i += L;
    if (i + L <= n) take(s2, i), i += L;
    if (i < n) {
      Block<A> v;
      load(v, x + n - L);
      for (auto& part : v.part) op.map(part, 0);
      drop_lanes(v, L - (n - i), op.identity());
      combine(op, s3, v);
    }
    combine(op, s0, s1);
    combine(op, s2, s3);
    combine(op, s0, s2);
    row = combine_parts(op, s0);
    x += row_step;
  }
  store_combined(op, r, results);
}

/// The same for rows of kLanes to 4 * kLanes elements.
template <class Op, class T>
[[gnu::noinline]] void reduce_rows_together(const Op& op, const T* x, int64_t row_step, int64_t n,
                                            typename Op::Acc* results) {
  using A = typename Op::Acc;
  constexpr int64_t L = kLanes<A>;
  auto block = [&](Block<A> & sum, const T* p) __attribute__((always_inline)) {
    Block<A> v;
    load(v, p);
    splat(sum, op.identity());
    accumulate(op, sum, v, 0);
  };
  const int64_t whole = n / L, rest = n % L;
  Register<A> r[kRegisterLanes<A>];
#pragma GCC unroll 1
  for (auto& row : r) {
    Block<A> s0, s1, s2, s3;
    block(s0, x);
    if (whole > 1) {
      block(s1, x + L);
      combine(op, s0, s1);
    }
    splat(s2, op.identity());
    if (whole > 2) block(s2, x + 2 * L);
    if (whole > 3) {
      block(s3, x + 3 * L);
      combine(op, s2, s3);
    } else if (rest > 0) {
      load(s3, x + n - L);
      for (auto& part : s3.part) op.map(part, 0);
      drop_lanes(s3, L - rest, op.identity());
      combine(op, s2, s3);
    }
    if (whole > 2 || rest > 0) combine(op, s0, s2);
    row = combine_parts(op, s0);
    x += row_step;
  }
  store_combined(op, r, results);
}

/// The elements [begin, end) of the walk `g` from `x`, combined.
template <class Op, class T>
typename Op::Acc reduce_row(const Op& op, const T* x, const Geometry<1>& g, int64_t begin, int64_t end) {
  using A = typename Op::Acc;
  const int64_t step = g.strides[0][g.ndim - 1];
  if (g.ndim == 1 && end - begin < kShortRow) {
    A sum = op.identity();
#pragma GCC unroll 1
    for (int64_t i = begin; i < end; ++i) {
      A term = static_cast<A>(static_cast<Compute<T>>(x[i * step]));
      op.map(term, 0);
      op.combine(sum, term);
    }
    return sum;
  }
  RowSums<Op> sums(op);
  if (g.ndim == 1 && step == 1) {
    sums.add(x + begin, end - begin);
    return sums.result();
  }
  constexpr int64_t kGather = 256;
  T buffer[kGather];
  walk_rows(g, begin, end, [&](const int64_t(&offset)[1], int64_t n) {
    const T* p = x + offset[0];
    if (step == 1) return sums.add(p, n);
    for (int64_t i = 0; i < n; i += kGather) {
      const int64_t count = std::min(kGather, n - i);
#pragma GCC unroll 4
      for (int64_t j = 0; j < count; ++j) buffer[j] = p[(i + j) * step];
      sums.add(static_cast<const T*>(buffer), count);
    }
  });
  return sums.result();
}

/// Whether reduce_rows takes rows of n neighbouring elements.
template <class A>
constexpr bool are_short_rows(int64_t n) {
  return n >= std::max<int64_t>(kShortRow, kLanes<A>) && n <= kFlushBlocks * kLanes<A>;
}

/// results[r] = finish(what reduce_row gives for the `n` neighbouring elements at x + r * row_step), for r <
/// rows.
template <class Op, class T, class Out, class Finish>
void reduce_rows(const Op& op, const T* x, int64_t row_step, int64_t rows, int64_t n, Out* results,
                 const Finish& finish) {
  using A = typename Op::Acc;
  int64_t r = 0;
  for (A some[kRegisterLanes<A>]; r + kRegisterLanes<A> <= rows; r += kRegisterLanes<A>) {
    if (n <= 4 * kLanes<A>)
      reduce_rows_together(op, x + r * row_step, row_step, n, some);
    else
      reduce_longer_rows_together(op, x + r * row_step, row_step, n, some);
    for (int i = 0; i < kRegisterLanes<A>; ++i) results[r + i] = finish(some[i]);
  }
  for (; r < rows; ++r) {
    RowSums<Op> sums(op);
    sums.add(x + r * row_step, n);
    results[r] = finish(sums.result());
  }
}

/// The same for dense rows of fewer than kShortRow elements, each combined in its order: they are turned, so
/// that a register holds an element of many rows.
template <class Op, class T, class Out, class Finish>
void reduce_turned_rows(const Op& op, const T* x, int64_t rows, int64_t n, Out* results,
                        const Finish& finish) {
  using A = typename Op::Acc;
  constexpr int64_t R = kRegisterLanes<A>;
  alignas(kVectorBytes) A turned[kTurned];
  alignas(kVectorBytes) A sums[kTurnedRows];
  for (int64_t first = 0; first < rows; first += kTurnedRows, x += kTurnedRows * n) {
    const int64_t count = std::min(kTurnedRows, rows - first);
    turn_rows(x, count, n, turned);
    if (const int64_t rest = -count & (R - 1); rest > 0)
      for (int64_t i = 0; i < n; ++i) std::fill_n(turned + i * kTurnedRows + count, rest, A{});
    for (int64_t r = 0; r < count; r += R) {
      Register<A> sum = Register<A>{} + op.identity();
      for (int64_t i = 0; i < n; ++i) {
        Register<A> term;
        load_register<A>(term, turned + i * kTurnedRows + r);
        op.map(term, 0);
        op.combine(sum, term);
      }
      std::memcpy(sums + r, &sum, sizeof sum);
    }
    for (int64_t r = 0; r < count; ++r) results[first + r] = finish(sums[r]);
  }
}

/// sums[j] = sums[j] with `rows` rows of the tile, which start at p, p + stride, ...; `width` columns. Lanes
/// past the tile may hold anything; memory before `limit` may be read.
template <class Op, class T>
[[gnu::noinline]] void add_rows(const Op& op, Block<typename Op::Acc>* sums, const T* p, const T* limit,
                                int64_t stride, int64_t rows, int64_t width) {
  using A = typename Op::Acc;
  constexpr int64_t L = kLanes<A>;
  constexpr int64_t kGroup = 8;
  const int64_t blocks = (width + L - 1) / L;
  int64_t r = 0;
  for (; r + kGroup <= rows && p + (r + kGroup - 1) * stride + blocks * L <= limit; r += kGroup) {
    const T* q = p + r * stride;
#pragma GCC unroll 1
    for (int64_t j = 0; j < blocks; ++j, q += L) {
      Block<A> v[kGroup];
#pragma GCC unroll 8
      for (int64_t i = 0; i < kGroup; ++i) {
        load(v[i], q + i * stride);
        for (int k = 0; k < kParts; ++k) op.map(v[i].part[k], j * kParts + k);
      }
#pragma GCC unroll 8
      for (int64_t i = 0; i < kGroup; i += 2) combine(op, v[i], v[i + 1]);
#pragma GCC unroll 8
      for (int64_t i = 0; i < kGroup; i += 4) combine(op, v[i], v[i + 2]);
      combine(op, v[0], v[4]);
      combine(op, sums[j], v[0]);
    }
  }
  for (; r < rows; ++r) {
    const T* q = p + r * stride;
#pragma GCC unroll 1
    for (int64_t j = 0; j < blocks; ++j, q += L) {
      Block<A> v;
      if (q + L <= limit)
        load(v, q);
      else
        load_some(v, q, std::min(L, width - j * L), A{});
      accumulate(op, sums[j], v, j);
    }
  }
}

/// totals[] = the tile of `width` neighbouring columns at x over the rows [begin, end) of the walk `g`.
/// Memory before `limit` may be read.
template <class Op, class T>
void reduce_columns(const Op& op, const T* x, const T* limit, int64_t width, const Geometry<1>& g,
                    int64_t begin, int64_t end, Block<typename Op::Acc>* totals) {
  using A = typename Op::Acc;
  const int64_t blocks = (width + kLanes<A> - 1) / kLanes<A>;
  Block<A> sums[kTileBlocks];
  for (int64_t j = 0; j < blocks; ++j) {
    splat(sums[j], op.identity());
    totals[j] = sums[j];
  }
  int64_t pending = 0;
  auto flush = [&] {
    for (int64_t j = 0; j < blocks; ++j) {
      combine(op, totals[j], sums[j]);
      splat(sums[j], op.identity());
    }
    pending = 0;
  };
  const int64_t stride = g.strides[0][g.ndim - 1];
  walk_rows(g, begin, end, [&](const int64_t(&offset)[1], int64_t count) {
    for (int64_t first = 0; first < count;) {
      const int64_t rows = std::min(kFlushRows - pending, count - first);
      add_rows(op, sums, x + offset[0] + first * stride, limit, stride, rows, width);
      first += rows;
      pending += rows;
      if (pending == kFlushRows) flush();
    }
  });
  if (pending != 0) flush();
}

/// How the work of a reduction is cut; depends on the geometry alone.
struct Plan {
  bool columns;      ///< neighbouring elements are kept
  int64_t outer;     ///< rows: kept elements; columns: kept elements without the innermost dimension
  int64_t width;     ///< columns: the innermost kept size
  int64_t tile;      ///< columns: how many of them a task takes
  int64_t tiles;     ///< columns: tasks for one `outer`
  int64_t chunk;     ///< reduced elements that a task takes
  int64_t chunks;    ///< tasks along the reduced elements
  Geometry<1> kept;  ///< without the innermost dimension for columns

  int64_t tasks() const { return outer * tiles * chunks; }
  int64_t grain() const { return std::max<int64_t>(1, kReduceGrain / std::max<int64_t>(1, chunk * tile)); }
};

template <class Acc>
Plan make_plan(const Geometry<1>& kept, const Geometry<1>& reduced) {
  Plan plan;
  const int inner = kept.ndim - 1;
  plan.columns =
      kept.strides[0][inner] == 1 && kept.sizes[inner] > 1 && reduced.strides[0][reduced.ndim - 1] != 1;
  plan.kept.numel = kept.numel;
  const int64_t n = reduced.numel;
  if (!plan.columns) {
    plan.kept = kept;
    plan.outer = kept.numel;
    plan.width = plan.tile = plan.tiles = 1;
    plan.chunk = std::min(std::max<int64_t>(n, 1), kRowChunk);
  } else {
    plan.width = kept.sizes[inner];
    plan.outer = plan.kept.numel = kept.numel / plan.width;
    plan.kept.ndim = std::max(inner, 1);
    plan.kept.sizes[0] = 1;
    plan.kept.strides[0][0] = 0;
    for (int d = 0; d < inner; ++d) {
      plan.kept.sizes[d] = kept.sizes[d];
      plan.kept.strides[0][d] = kept.strides[0][d];
    }
    plan.tile = std::min<int64_t>(plan.width, kTileBlocks * kLanes<Acc>);
    plan.tiles = (plan.width + plan.tile - 1) / plan.tile;
    int64_t rows = std::clamp<int64_t>(2 * kReduceGrain / plan.tile, kFlushRows, kColumnChunk);
    if (plan.outer * plan.tiles >= 64) rows = kColumnChunk;
    plan.chunk = std::min(std::max<int64_t>(n, 1), rows);
  }
  plan.chunks = std::max<int64_t>(1, (n + plan.chunk - 1) / plan.chunk);
  return plan;
}

/// Where the kept element number `index` of a walk starts.
inline int64_t offset_of(const Geometry<1>& g, int64_t index) {
  int64_t offset = 0;
  for (int d = g.ndim - 1; d > 0; --d) {
    offset += index % g.sizes[d] * g.strides[0][d];
    index /= g.sizes[d];
  }
  return offset + index * g.strides[0][0];
}

/// out[k] = finish(all elements at k combined).
template <class Op, class T, class Out, class Finish>
void reduce_with(const Op& op, const T* in, Out* out, const Geometry<1>& kept, const Geometry<1>& reduced,
                 const Finish& finish) {
  using A = typename Op::Acc;
  if (kept.numel == 0) return;
  const T* limit = reach(in, kept, reduced);
  const int64_t n = reduced.numel;
  if (n == 0) {
    std::fill_n(out, kept.numel, finish(op.identity()));
    return;
  }
  const Plan plan = make_plan<A>(kept, reduced);
  if (!plan.columns) {
    if (plan.chunks == 1) {
      const int64_t step = kept.strides[0][kept.ndim - 1];
      const bool few = reduced.ndim == 1 && n < std::max<int64_t>(kShortRow, kLanes<A>),
                 dense = few && n < kShortRow && step == n && reduced.strides[0][0] == 1,
                 together = reduced.ndim == 1 && reduced.strides[0][0] == 1 && are_short_rows<A>(n);
      parallel_for(plan.outer, plan.grain(), [&](int64_t begin, int64_t end) {
        Out* to = out + begin;
        walk_rows(kept, begin, end, [&](const int64_t(&offset)[1], int64_t count) {
          int64_t k = 0;
          if (dense && count >= kTurnedFrom) {
            reduce_turned_rows(op, in + offset[0], count, n, to, finish);
            to += count;
            return;
          }
          if (few) {
            for (A sums[kShortRows]; k + kShortRows <= count; k += kShortRows) {
              reduce_short_rows(op, in + offset[0] + k * step, step, n, reduced.strides[0][0], sums);
              for (A sum : sums) *to++ = finish(sum);
            }
          }
          if (together) {
            reduce_rows(op, in + offset[0], step, count, n, to, finish);
            to += count;
            return;
          }
          for (; k < count; ++k) *to++ = finish(reduce_row(op, in + offset[0] + k * step, reduced, 0, n));
        });
      });
      return;
    }
    Scratch<A> partial(plan.tasks());
    parallel_for(plan.tasks(), plan.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = task % plan.chunks * plan.chunk;
        partial.get()[task] = reduce_row(op, in + offset_of(kept, task / plan.chunks), reduced, first,
                                         std::min(n, first + plan.chunk));
      }
    });
    for (int64_t k = 0; k < plan.outer; ++k) {
      A* values = partial.get() + k * plan.chunks;
      combine_tree(values, plan.chunks, 1, [&](A& a, const A& b) { op.combine(a, b); });
      out[k] = finish(values[0]);
    }
    return;
  }

  auto write = [&](int64_t group, const Block<A>* totals) {
    const int64_t first = group % plan.tiles * plan.tile;
    const int64_t width = std::min(plan.tile, plan.width - first);
    Out* to = out + group / plan.tiles * plan.width + first;
    A values[kTileBlocks * kLanes<A>];
    std::memcpy(values, totals, static_cast<size_t>(width) * sizeof(A));
    for (int64_t j = 0; j < width; ++j) to[j] = finish(values[j]);
  };
  auto run = [&](int64_t group, int64_t chunk, Block<A>* totals) {
    const int64_t first = group % plan.tiles * plan.tile;
    const T* x = in + offset_of(plan.kept, group / plan.tiles) + first;
    reduce_columns(op, x, limit, std::min(plan.tile, plan.width - first), reduced, chunk * plan.chunk,
                   std::min(n, (chunk + 1) * plan.chunk), totals);
  };
  if (plan.chunks == 1) {
    parallel_for(plan.tasks(), plan.grain(), [&](int64_t begin, int64_t end) {
      Block<A> totals[kTileBlocks];
      for (int64_t group = begin; group < end; ++group) {
        run(group, 0, totals);
        write(group, totals);
      }
    });
    return;
  }
  const int64_t blocks = (plan.tile + kLanes<A> - 1) / kLanes<A>;
  Scratch<Block<A>> partial(plan.tasks() * blocks);
  parallel_for(plan.tasks(), plan.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task)
      run(task / plan.chunks, task % plan.chunks, partial.get() + task * blocks);
  });
  for (int64_t group = 0; group < plan.outer * plan.tiles; ++group) {
    Block<A>* totals = partial.get() + group * plan.chunks * blocks;
    combine_tree(totals, plan.chunks, blocks, [&](Block<A>& a, const Block<A>& b) { combine(op, a, b); });
    write(group, totals);
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT::wide
