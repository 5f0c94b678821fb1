// The loops of order-free reductions, generic over the operation: along rows (the reduced elements are neighbours) and
// along columns (the kept ones are). The operations are in reduce_*.cpp, the vectors in reduce_vector.h.
//
// An operation `Op` has
//   using Acc;                               what is accumulated
//   Acc identity() const;
//   void map(V& v, int64_t vector) const;    an element, converted to Acc, becomes a term
//   void combine(V& a, const V& b) const;    a = a with b
// with V the scalar Acc or Vec<Acc>; `vector` is the number of the vector within the tile of columns, 0 along rows.
#pragma once

#include <algorithm>

#include "tern/backends/cpu/kernels/reduce_vector.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/kernels/strides.h"

namespace tern::cpu::TERN_CPU_VARIANT::wide {

/// Elements of a row that one task reduces.
inline constexpr int64_t kRowChunk = 16384;
/// Vectors after which the sums of a row are put away, so that none collects many roundings.
inline constexpr int64_t kFlushVectors = 64;
/// Rows after which the sums of a column are put away.
inline constexpr int64_t kFlushRows = 32;
/// Columns that one task reduces, in vectors.
inline constexpr int kTileVectors = 32;
/// Rows shorter than this are reduced by a plain loop.
inline constexpr int64_t kShortRow = 16;
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

/// a = all lanes of v combined, in a tree.
template <class Op>
[[gnu::always_inline]] inline typename Op::Acc combine_lanes(const Op& op, const Vec<typename Op::Acc>& v) {
  using A = typename Op::Acc;
  A lanes[kLanes<A>];
  std::memcpy(lanes, &v, sizeof v);
  for (int width = kLanes<A> / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) op.combine(lanes[i], lanes[i + width]);
  return lanes[0];
}

/// values[0] = all values combined, pairwise.
template <class Op, class V>
void combine_tree(const Op& op, V* values, int64_t count, int64_t stride = 1, int64_t width = 1) {
  for (int64_t step = 1; step < count; step *= 2)
    for (int64_t i = 0; i + step < count; i += 2 * step)
      for (int64_t j = 0; j < width; ++j) op.combine(values[i * stride + j], values[(i + step) * stride + j]);
}

/// Four vectors of sums, and four to put them away in.
template <class Op>
class RowSums {
 public:
  using A = typename Op::Acc;
  static constexpr int kWays = 4;
  static constexpr int64_t L = kLanes<A>;

  [[gnu::always_inline]] explicit RowSums(const Op& op) : op_(op) {
    splat(filler_, op.identity());
    for (int i = 0; i < kWays; ++i) sums_[i] = totals_[i] = filler_;
  }

  template <class T>
  [[gnu::always_inline]] void add(const T* p, int64_t n, const T* limit) {
    while (n > 0) {
      const int64_t count = std::min(n, kFlushVectors * L - pending_);
      Vec<A> s0 = sums_[0], s1 = sums_[1], s2 = sums_[2], s3 = sums_[3];
      int64_t i = 0;
      for (; i + kWays * L <= count; i += kWays * L) {
        add_vector(s0, p + i);
        add_vector(s1, p + i + L);
        add_vector(s2, p + i + 2 * L);
        add_vector(s3, p + i + 3 * L);
      }
      if (i + L <= count) add_vector(s0, p + i), i += L;
      if (i + L <= count) add_vector(s1, p + i), i += L;
      if (i + L <= count) add_vector(s2, p + i), i += L;
      if (i < count) {
        Vec<A> v;
        load_some<A>(v, p + i, count - i, limit);
        op_.map(v, 0);
        keep_some<A>(v, count - i, filler_);
        op_.combine(s3, v);
      }
      sums_[0] = s0, sums_[1] = s1, sums_[2] = s2, sums_[3] = s3;
      pending_ += count;
      if (pending_ == kFlushVectors * L) flush();
      p += count;
      n -= count;
    }
  }

  [[gnu::always_inline]] A result() {
    if (pending_ != 0) flush();
    op_.combine(totals_[0], totals_[1]);
    op_.combine(totals_[2], totals_[3]);
    op_.combine(totals_[0], totals_[2]);
    return combine_lanes(op_, totals_[0]);
  }

 private:
  template <class T>
  [[gnu::always_inline]] void add_vector(Vec<A>& sum, const T* p) {
    Vec<A> v;
    load<A>(v, p);
    op_.map(v, 0);
    op_.combine(sum, v);
  }
  [[gnu::always_inline]] void flush() {
    for (int i = 0; i < kWays; ++i) {
      op_.combine(totals_[i], sums_[i]);
      sums_[i] = filler_;
    }
    pending_ = 0;
  }

  const Op& op_;
  Vec<A> filler_, sums_[kWays], totals_[kWays];
  int64_t pending_ = 0;
};

/// The elements [begin, end) of the walk `g` from `x`, combined.
template <class Op, class T>
typename Op::Acc reduce_row(const Op& op, const T* x, const T* limit, const Geometry<1>& g, int64_t begin, int64_t end) {
  using A = typename Op::Acc;
  const int64_t step = g.strides[0][g.ndim - 1];
  if (g.ndim == 1 && end - begin < kShortRow) {
    A sum = op.identity();
    for (int64_t i = begin; i < end; ++i) {
      A term = static_cast<A>(static_cast<Compute<T>>(x[i * step]));
      op.map(term, 0);
      op.combine(sum, term);
    }
    return sum;
  }
  RowSums<Op> sums(op);
  if (g.ndim == 1 && step == 1) {
    sums.add(x + begin, end - begin, limit);
  } else if (step == 1) {
    walk_rows(g, begin, end, [&](const int64_t(&offset)[1], int64_t n) { sums.add(x + offset[0], n, limit); });
  } else {
    constexpr int64_t kGather = 256;
    T buffer[kGather];
    walk_rows(g, begin, end, [&](const int64_t(&offset)[1], int64_t n) {
      const T* p = x + offset[0];
      for (int64_t i = 0; i < n; i += kGather) {
        const int64_t count = std::min(kGather, n - i);
        for (int64_t j = 0; j < count; ++j) buffer[j] = p[(i + j) * step];
        sums.add(static_cast<const T*>(buffer), count, static_cast<const T*>(buffer) + count);
      }
    });
  }
  return sums.result();
}

/// sums[j] = `rows` vectors at p, p + stride, ... combined in four ways.
template <class Op, class T, class Load>
[[gnu::always_inline]] inline void add_one_column(const Op& op, Vec<typename Op::Acc>& total, int64_t vector, const T* p,
                                                  int64_t stride, int64_t rows, const Load& load_row) {
  using A = typename Op::Acc;
  Vec<A> sums[4];
  for (auto& sum : sums) splat(sum, op.identity());
  auto add = [&](Vec<A>& sum, const T* q) {
    Vec<A> v;
    load_row(v, q);
    op.map(v, vector);
    op.combine(sum, v);
  };
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    add(sums[0], p + r * stride);
    add(sums[1], p + (r + 1) * stride);
    add(sums[2], p + (r + 2) * stride);
    add(sums[3], p + (r + 3) * stride);
  }
  for (int way = 0; r < rows; ++r, ++way) add(sums[way], p + r * stride);
  op.combine(sums[0], sums[1]);
  op.combine(sums[2], sums[3]);
  op.combine(sums[0], sums[2]);
  op.combine(total, sums[0]);
}

/// totals[] = the tile of `width` neighbouring columns at x over the rows [begin, end) of the walk `g`.
template <class Op, class T>
void reduce_columns(const Op& op, const T* x, const T* limit, int64_t width, const Geometry<1>& g, int64_t begin,
                    int64_t end, Vec<typename Op::Acc>* totals) {
  using A = typename Op::Acc;
  constexpr int64_t L = kLanes<A>;
  const int64_t vectors = (width + L - 1) / L;
  for (int64_t j = 0; j < vectors; ++j) splat(totals[j], op.identity());
  const int64_t stride = g.strides[0][g.ndim - 1];
  walk_rows(g, begin, end, [&](const int64_t(&offset)[1], int64_t count) {
    for (int64_t first = 0; first < count; first += kFlushRows) {
      const int64_t rows = std::min(kFlushRows, count - first);
      const T* block = x + offset[0] + first * stride;
      const T* last_row = block + (rows - 1) * stride;
      int64_t j = 0;
      for (; j + 4 <= vectors && last_row + (j + 4) * L <= limit; j += 4) {
        Vec<A> s0, s1, s2, s3;
        splat(s0, op.identity());
        s1 = s2 = s3 = s0;
        const T* p = block + j * L;
        for (int64_t r = 0; r < rows; ++r, p += stride) {
          Vec<A> v0, v1, v2, v3;
          load<A>(v0, p);
          load<A>(v1, p + L);
          load<A>(v2, p + 2 * L);
          load<A>(v3, p + 3 * L);
          op.map(v0, j);
          op.map(v1, j + 1);
          op.map(v2, j + 2);
          op.map(v3, j + 3);
          op.combine(s0, v0);
          op.combine(s1, v1);
          op.combine(s2, v2);
          op.combine(s3, v3);
        }
        op.combine(totals[j], s0);
        op.combine(totals[j + 1], s1);
        op.combine(totals[j + 2], s2);
        op.combine(totals[j + 3], s3);
      }
      for (; j < vectors; ++j) {
        const int64_t lanes = std::min(L, width - j * L);
        if (lanes == L || last_row + j * L + L <= limit)
          add_one_column(op, totals[j], j, block + j * L, stride, rows, [](Vec<A>& v, const T* q) { load<A>(v, q); });
        else
          add_one_column(op, totals[j], j, block + j * L, stride, rows,
                         [lanes, limit](Vec<A>& v, const T* q) { load_some<A>(v, q, lanes, limit); });
      }
    }
  });
}

/// How the work of a reduction is cut; depends on the geometry alone.
struct Plan {
  bool columns;        ///< neighbouring elements are kept
  int64_t outer;       ///< rows: kept elements; columns: kept elements without the innermost dimension
  int64_t width;       ///< columns: the innermost kept size
  int64_t tile;        ///< columns: how many of them a task takes
  int64_t tiles;       ///< columns: tasks for one `outer`
  int64_t chunk;       ///< reduced elements that a task takes
  int64_t chunks;      ///< tasks along the reduced elements
  Geometry<1> kept;    ///< without the innermost dimension for columns

  int64_t tasks() const { return outer * tiles * chunks; }
  int64_t grain() const { return std::max<int64_t>(1, kReduceGrain / std::max<int64_t>(1, chunk * tile)); }
};

template <class Acc>
Plan make_plan(const Geometry<1>& kept, const Geometry<1>& reduced) {
  Plan plan;
  const int inner = kept.ndim - 1;
  plan.columns = kept.strides[0][inner] == 1 && kept.sizes[inner] > 1 && reduced.strides[0][reduced.ndim - 1] != 1;
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
    plan.tile = std::min<int64_t>(plan.width, kTileVectors * kLanes<Acc>);
    plan.tiles = (plan.width + plan.tile - 1) / plan.tile;
    const int64_t longest = kFlushRows * kFlushRows;
    int64_t rows = std::clamp<int64_t>(2 * kReduceGrain / plan.tile, kFlushRows, longest);
    if (plan.outer * plan.tiles >= 64) rows = longest;
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
      parallel_for(plan.outer, plan.grain(), [&](int64_t begin, int64_t end) {
        const int64_t step = kept.strides[0][kept.ndim - 1];
        Out* to = out + begin;
        walk_rows(kept, begin, end, [&](const int64_t(&offset)[1], int64_t count) {
          for (int64_t k = 0; k < count; ++k)
            *to++ = finish(reduce_row(op, in + offset[0] + k * step, limit, reduced, 0, n));
        });
      });
      return;
    }
    Scratch<A> partial(plan.tasks());
    parallel_for(plan.tasks(), plan.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = task % plan.chunks * plan.chunk;
        partial.get()[task] = reduce_row(op, in + offset_of(kept, task / plan.chunks), limit, reduced, first,
                                         std::min(n, first + plan.chunk));
      }
    });
    for (int64_t k = 0; k < plan.outer; ++k) {
      A* values = partial.get() + k * plan.chunks;
      combine_tree(op, values, plan.chunks);
      out[k] = finish(values[0]);
    }
    return;
  }

  auto write = [&](int64_t group, const Vec<A>* totals) {
    const int64_t first = group % plan.tiles * plan.tile;
    const int64_t width = std::min(plan.tile, plan.width - first);
    Out* to = out + group / plan.tiles * plan.width + first;
    A values[kTileVectors * kLanes<A>];
    std::memcpy(values, totals, static_cast<size_t>(width) * sizeof(A));
    for (int64_t j = 0; j < width; ++j) to[j] = finish(values[j]);
  };
  auto run = [&](int64_t group, int64_t chunk, Vec<A>* totals) {
    const int64_t first = group % plan.tiles * plan.tile;
    const T* x = in + offset_of(plan.kept, group / plan.tiles) + first;
    reduce_columns(op, x, limit, std::min(plan.tile, plan.width - first), reduced, chunk * plan.chunk,
                   std::min(n, (chunk + 1) * plan.chunk), totals);
  };
  if (plan.chunks == 1) {
    parallel_for(plan.tasks(), plan.grain(), [&](int64_t begin, int64_t end) {
      Vec<A> totals[kTileVectors];
      for (int64_t group = begin; group < end; ++group) {
        run(group, 0, totals);
        write(group, totals);
      }
    });
    return;
  }
  const int64_t vectors = (plan.tile + kLanes<A> - 1) / kLanes<A>;
  Scratch<Vec<A>> partial(plan.tasks() * vectors);
  parallel_for(plan.tasks(), plan.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task)
      run(task / plan.chunks, task % plan.chunks, partial.get() + task * vectors);
  });
  for (int64_t group = 0; group < plan.outer * plan.tiles; ++group) {
    Vec<A>* totals = partial.get() + group * plan.chunks * vectors;
    combine_tree(op, totals, plan.chunks, vectors, vectors);
    write(group, totals);
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT::wide
