// The loops of order-free reductions along rows, where the reduced elements are neighbours; see
// reduce_vector.h for the operation `Op`.
#pragma once

#include <algorithm>

#include "tern/backends/cpu/kernels/reduce_vector.h"
#include "tern/backends/cpu/kernels/turned_rows.h"
#include "tern/kernels/strides.h"

namespace tern::cpu::TERN_CPU_VARIANT::wide {

/// Blocks after which the sums of a row are put away, so that none collects many roundings.
inline constexpr int64_t kFlushBlocks = 64;
/// Rows shorter than this are reduced by a plain loop.
inline constexpr int64_t kShortRow = 16;
/// So many of them at once.
inline constexpr int64_t kShortRows = 4;

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

}  // namespace tern::cpu::TERN_CPU_VARIANT::wide
