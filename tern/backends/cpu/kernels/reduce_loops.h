// Order-free reductions, generic over the operation: how their work is cut, along rows (reduce_rows.h) and
// along columns, where the kept elements are neighbours. The operations are in reduce_*.cpp.
#pragma once

#include <algorithm>

#include "tern/backends/cpu/kernels/reduce_rows.h"
#include "tern/backends/cpu/kernels/scratch.h"

namespace tern::cpu::TERN_CPU_VARIANT::wide {

/// Elements of a row that one task reduces.
inline constexpr int64_t kRowChunk = 16384;
/// Rows after which the sums of a column are put away.
inline constexpr int64_t kFlushRows = 64;
/// Rows that one task reduces in columns, at most.
inline constexpr int64_t kColumnChunk = 1024;
/// Columns that one task reduces, in blocks.
inline constexpr int kTileBlocks = 32;
/// So many short rows are turned, if they are dense.
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
