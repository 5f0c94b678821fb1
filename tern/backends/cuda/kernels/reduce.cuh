// The two-pass reduction: every block reduces a piece of an output's elements, and where an output has
// several pieces a second kernel puts them together. How elements are cut into pieces depends on the geometry
// alone; the order in which a row is added up, and with it the rounding, also on whether it can be read in
// packs.
//
// An operation has: Acc (a plain struct or number), identity(), map(x, i) of element i of the reduced ones,
// combine(a, b), and store(k, acc) of output k. One that has begin(x) is told the first element of the output
// that it is used for.
#pragma once

#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/offsets.cuh"
#include "tern/kernels/reduce.h"

namespace tern::cuda_backend {

/// Where element i of a geometry lies, of any number of elements.
struct Walk {
  Offsets<1> offsets;
  int64_t sizes[kMaxDims];
  int64_t numel;

  explicit Walk(const Geometry<1>& g) : offsets(g), numel(g.numel) {
    for (int d = 0; d < g.ndim; ++d) sizes[d] = g.sizes[d] > 0 ? g.sizes[d] : 1;
  }
  __device__ __forceinline__ int64_t at(int64_t i) const {
    if (offsets.ndim == 1) return i * offsets.strides[0][0];
    if (numel <= 0x7fffffff) {
      int64_t result[1];
      offsets.at(static_cast<uint32_t>(i), result);
      return result[0];
    }
    int64_t result = 0;
#pragma unroll 1
    for (int d = offsets.ndim - 1; d > 0; --d) {
      const int64_t rest = i / sizes[d];
      result += (i - rest * sizes[d]) * offsets.strides[0][d];
      i = rest;
    }
    return result + i * offsets.strides[0][0];
  }
  /// Where elements first, first + step, ... lie.
  template <int N>
  __device__ __forceinline__ void at(int64_t first, int64_t step, int64_t (&places)[N]) const {
    if (offsets.ndim == 1) {
#pragma unroll
      for (int k = 0; k < N; ++k) places[k] = (first + k * step) * offsets.strides[0][0];
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k) places[k] = at(first + k * step);
    }
  }
};

/// Calls f with `in` as a pointer to what it holds. T is float, a 16-bit float or double, or int64 for all
/// integers and bool.
template <class T, class F>
__device__ __forceinline__ auto visit_elements(DType dtype, const void* in, const F& f) {
  if constexpr (std::is_same_v<T, int64_t>)
    return visit_stored<int64_t>(dtype, in, f);
  else
    return f(static_cast<const T*>(in));
}

/// Chains of a thread's elements: several where an accumulator is small, so that roundings add up less.
template <class Acc>
inline constexpr int kChains = sizeof(Acc) <= 8 ? 4 : 1;

template <class Op>
struct Chains {
  using Acc = typename Op::Acc;
  static constexpr int kCount = kChains<Acc>;
  const Op& op;
  Acc accs[kCount];

  __device__ __forceinline__ explicit Chains(const Op& op_) : op(op_) {
#pragma unroll
    for (int c = 0; c < kCount; ++c) accs[c] = op.identity();
  }
  __device__ __forceinline__ void take(int chain, const Acc& x) {
    accs[chain % kCount] = op.combine(accs[chain % kCount], x);
  }
  /// Takes map(x, i) for i = first, first + step, ... below `end`, where `read(i, xs)` reads as many elements
  /// from i on as `xs` has: several at once, so that they do not wait for each other, of floats so many that
  /// a warp has a KiB on its way.
  template <class X, class Read, class Map>
  __device__ __forceinline__ void take_all(int64_t first, int64_t end, int64_t step, const Read& read,
                                           const Map& map) {
    constexpr int kAtOnce = std::is_integral_v<X> ? 4 : 8;
    int64_t i = first;
#pragma unroll 1
    for (; i + (kAtOnce - 1) * step < end; i += kAtOnce * step) {
      X xs[kAtOnce];
      read(i, xs);
#pragma unroll
      for (int c = 0; c < kAtOnce; ++c) take(c, map(xs[c], i + c * step));
    }
#pragma unroll 1
    for (; i < end; i += step) {
      X xs[1];
      read(i, xs);
      take(0, map(xs[0], i));
    }
  }
  /// The same for the elements of `in`, from `base` on.
  template <class T>
  __device__ __forceinline__ void take_elements(DType dtype, const void* in, int64_t base, const Walk& walk,
                                                int64_t first, int64_t end, int64_t step) {
    const auto read = [&]<int N>(int64_t i, Compute<T>(&xs)[N]) {
      int64_t places[N];
      walk.at(i, step, places);
      visit_elements<T>(dtype, in, [&](const auto* from) {
#pragma unroll
        for (int k = 0; k < N; ++k) xs[k] = widen(from[base + places[k]]);
      });
    };
    take_all<Compute<T>>(first, end, step, read, [&](Compute<T> x, int64_t i) { return op.map(x, i); });
  }
  __device__ __forceinline__ Acc result() const {
    Acc acc = accs[0];
#pragma unroll
    for (int c = 1; c < kCount; ++c) acc = op.combine(acc, accs[c]);
    return acc;
  }
};

/// The operation for the output whose elements begin at `base`.
template <class T, class Op>
__device__ __forceinline__ void begin_output(Op& op, const void* in, int64_t base) {
  if constexpr (requires { op.begin(Compute<T>()); }) op.begin(widen(static_cast<const T*>(in)[base]));
}

/// Output k is reduced by the threads of one row of the block, along x; pieces are numbered by blockIdx.y.
template <class T, class Op>
__global__ void __launch_bounds__(kBlock) reduce_rows(DType dtype, const void* in, Walk kept, Walk reduced,
                                                      bool dense, int64_t piece, void* partial, Op op) {
  using Acc = typename Op::Acc;
  alignas(16) __shared__ unsigned char shared[kBlock * sizeof(Acc)];
  const int64_t k = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const int64_t begin = blockIdx.y * piece, end = min(begin + piece, reduced.numel);
  const int64_t base = k < kept.numel ? kept.at(k) : 0;
  if (k < kept.numel && reduced.numel > 0) begin_output<T>(op, in, base);
  Chains<Op> chains(op);
  if (k < kept.numel && dense) {
    visit_elements<T>(dtype, in, [&]<class S>(const S* data) {
      constexpr int kN = kPack<S>;
      const S* x = data + base;
      const int64_t whole = begin + (end - begin) / kN * kN;
      const auto read = [x](int64_t i) { return *reinterpret_cast<const Pack<S, kN>*>(x + i); };
      const auto use = [&](int64_t i, const Pack<S, kN>& pack) {
#pragma unroll
        for (int j = 0; j < kN; ++j) chains.take(j, op.map(widen(pack.at[j]), i + j));
      };
      constexpr int kAhead = std::is_integral_v<S> ? 1 : 4;  // integers have kernels of many types
      read_ahead<kAhead>(begin + threadIdx.x * kN, whole, int64_t{blockDim.x} * kN, read, use);
      for (int64_t i = whole + threadIdx.x; i < end; i += blockDim.x) chains.take(0, op.map(widen(x[i]), i));
    });
  } else if (k < kept.numel) {
    chains.template take_elements<T>(dtype, in, base, reduced, begin + threadIdx.x, end, blockDim.x);
  }
  Acc acc = chains.result();
  const auto combine = [&](const Acc& a, const Acc& b) { return op.combine(a, b); };
  acc = warp_reduce(acc, combine, min(blockDim.x, 32u));
  if (blockDim.x > 32) {
    Acc* row = reinterpret_cast<Acc*>(shared) + threadIdx.y * (blockDim.x / 32);
    if (threadIdx.x % 32 == 0) row[threadIdx.x / 32] = acc;
    __syncthreads();
    acc = row[0];
    for (unsigned w = 1; w < blockDim.x / 32; ++w) acc = op.combine(acc, row[w]);
  }
  if (threadIdx.x != 0 || k >= kept.numel) return;
  if (partial)
    static_cast<Acc*>(partial)[k * gridDim.y + blockIdx.y] = acc;
  else
    op.store(k, acc);
}

/// For outputs whose elements lie side by side: threads along x have neighbouring outputs, those along y
/// share one.
inline constexpr int kColumns = 32, kColumnRows = 8;
template <class T, class Op>
__global__ void __launch_bounds__(kColumns* kColumnRows)
    reduce_columns(DType dtype, const void* in, Walk kept, Walk reduced, int64_t piece, void* partial,
                   Op op) {
  using Acc = typename Op::Acc;
  alignas(16) __shared__ unsigned char shared[kColumns * kColumnRows * sizeof(Acc)];
  const int64_t k = int64_t{blockIdx.x} * kColumns + threadIdx.x;
  const int64_t begin = blockIdx.y * piece, end = min(begin + piece, reduced.numel);
  const int64_t base = k < kept.numel ? kept.at(k) : 0;
  if (k < kept.numel && reduced.numel > 0) begin_output<T>(op, in, base);
  Chains<Op> chains(op);
  if (k < kept.numel)
    chains.template take_elements<T>(dtype, in, base, reduced, begin + threadIdx.y, end, kColumnRows);
  Acc acc = chains.result();
  Acc* column = reinterpret_cast<Acc*>(shared) + threadIdx.x;
  column[threadIdx.y * kColumns] = acc;
  __syncthreads();
  if (threadIdx.y != 0 || k >= kept.numel) return;
  for (int y = 1; y < kColumnRows; ++y) acc = op.combine(acc, column[y * kColumns]);
  if (partial)
    static_cast<Acc*>(partial)[k * gridDim.y + blockIdx.y] = acc;
  else
    op.store(k, acc);
}

/// For outputs of few elements: the threads of one row of the block, a power of two up to 32, for each.
template <class T, class Op>
__global__ void __launch_bounds__(kBlock)
    reduce_few(DType dtype, const void* in, Walk kept, int size, int64_t stride, Op op) {
  const int64_t k = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const int64_t base = k < kept.numel ? kept.at(k) : 0;
  if (size > 0) begin_output<T>(op, in, base);
  auto acc = op.identity();
  visit_elements<T>(dtype, in, [&]<class S>(const S* data) {
    const S* x = data + base;
    read_ahead<4>(
        static_cast<int>(threadIdx.x), size, static_cast<int>(blockDim.x),
        [&](int i) { return widen(x[i * stride]); },
        [&](int i, Compute<S> value) { acc = op.combine(acc, op.map(value, i)); });
  });
  acc = warp_reduce(
      acc, [&](const auto& a, const auto& b) { return op.combine(a, b); }, blockDim.x);
  if (threadIdx.x == 0 && k < kept.numel) op.store(k, acc);
}

/// The second pass: a warp for each output.
template <class Op>
__global__ void combine_pieces(const void* partial, int64_t outputs, int pieces, Op op) {
  using Acc = typename Op::Acc;
  const int64_t k = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  const Acc* mine = static_cast<const Acc*>(partial) + k * pieces;
  Chains<Op> chains(op);
  const auto read = [&]<int N>(int64_t i, Acc(&xs)[N]) {
#pragma unroll
    for (int c = 0; c < N; ++c) xs[c] = mine[i + c * 32];
  };
  if (k < outputs)
    chains.template take_all<Acc>(threadIdx.x % 32, pieces, 32, read,
                                  [](const Acc& x, int64_t) { return x; });
  const Acc acc = warp_reduce(chains.result(), [&](const Acc& a, const Acc& b) { return op.combine(a, b); });
  if (k < outputs && threadIdx.x % 32 == 0) op.store(k, acc);
}

/// Reduces `in` of T (see visit_elements) over `reduced` for every element of `kept`.
template <class T, class Op>
void run_reduction(const LaunchContext& context, DType dtype, const void* in, const Geometry<1>& kept,
                   const Geometry<1>& reduced, const Op& op) {
  if (kept.numel == 0) return;
  const auto innermost = [](const Geometry<1>& g) {
    return g.numel > 1 ? std::abs(g.strides[0][g.ndim - 1]) : INT64_MAX;
  };
  const bool columns = kept.numel >= 8 && innermost(kept) < innermost(reduced);
  // Longer rows side by side would lie in more lines than the cache keeps; fewer columns would not fill the
  // GPU.
  const int64_t few = columns && kept.numel >= (1 << 17) ? 64 : columns ? 8 : 32;
  if (reduced.ndim == 1 && reduced.numel <= few) {
    const unsigned lanes = columns || reduced.numel <= 8 ? 1 : 4;
    return start(context, blocks(ceil_div(kept.numel * lanes, kBlock)), dim3(lanes, kBlock / lanes), 0,
                 reduce_few<T, Op>, dtype, in, Walk(kept), static_cast<int>(reduced.numel),
                 reduced.strides[0][0], op);
  }
  const int64_t pack = pack_of(itemsize(dtype));
  bool dense = !columns && reduced.ndim == 1 && reduced.strides[0][0] == 1 &&
               is_aligned(in, static_cast<size_t>(pack) * itemsize(dtype));
  for (int d = 0; d < kept.ndim; ++d) dense = dense && (kept.sizes[d] == 1 || kept.strides[0][d] % pack == 0);
  int64_t lanes = 4;  // that have a row; short rows share a warp
  if (!columns) {
    while (lanes < 32 && lanes * (dense ? 8 : 1) < reduced.numel) lanes *= 2;
    if (reduced.numel > 1024 || kept.numel < 64)
      while (lanes < kBlock && lanes * 4 < reduced.numel) lanes *= 2;
  }
  const int64_t rows = columns ? kColumns : kBlock / lanes;
  const int64_t grid = ceil_div(kept.numel, rows);
  const int64_t threads = columns ? kColumnRows : lanes;
  int64_t pieces = 1;
  constexpr int64_t kLeastPiece = 16;
  // Blocks of columns wait for each batch of rows: many short ones leave little idle when the last ones end.
  const int64_t wanted_blocks = columns ? 8192 : 1024;
  // A second kernel takes as long as these elements of a thread.
  const int64_t alone = columns ? 32 : 64;
  if (grid < wanted_blocks && reduced.numel > threads * alone)
    pieces =
        std::clamp<int64_t>(std::min(wanted_blocks / grid, reduced.numel / (threads * kLeastPiece)), 1, 1024);
  // Pieces begin at whole packs.
  const int64_t piece = std::max<int64_t>(16, ceil_div(ceil_div(reduced.numel, pieces), 16) * 16);
  pieces = std::max<int64_t>(1, ceil_div(reduced.numel, piece));
  Storage scratch;
  void* partial = nullptr;
  if (pieces > 1) {
    scratch = workspace(context, static_cast<size_t>(kept.numel * pieces) * sizeof(typename Op::Acc));
    partial = scratch->data();
  }
  const dim3 size(blocks(grid), blocks(pieces));
  if (columns) {
    start(context, size, dim3(kColumns, kColumnRows), 0, reduce_columns<T, Op>, dtype, in, Walk(kept),
          Walk(reduced), piece, partial, op);
  } else {
    start(context, size, dim3(static_cast<unsigned>(lanes), static_cast<unsigned>(rows)), 0,
          reduce_rows<T, Op>, dtype, in, Walk(kept), Walk(reduced), dense, piece, partial, op);
  }
  if (pieces > 1)
    start(context, blocks(ceil_div(kept.numel * 32, kBlock)), kBlock, 0, combine_pieces<Op>,
          static_cast<const void*>(partial), kept.numel, static_cast<int>(pieces), op);
}

/// Calls `f.template operator()<T>()` with the type that visit_elements() takes for a dtype.
template <class F>
void visit_reduced(DType dtype, F&& f) {
  if (is_floating_point(dtype)) return visit_floating(dtype, f);
  if (!is_computable(dtype)) throw_not_computable(dtype);
  f.template operator()<int64_t>();
}

void reduce_sum(const LaunchContext& context, const ReduceArgs& args);
void reduce_extreme(const LaunchContext& context, const ReduceArgs& args);
void reduce_logic(const LaunchContext& context, const ReduceArgs& args);
void reduce_norm(const LaunchContext& context, const ReduceArgs& args);

}  // namespace tern::cuda_backend
