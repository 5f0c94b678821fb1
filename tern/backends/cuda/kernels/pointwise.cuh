// Loops over elements: packs of 16 bytes where everything is dense, else one element at a time by the offset
// calculator. Functors are those of kernels/functors.h.
#pragma once

#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/offsets.cuh"
#include "tern/kernels/functors.h"

namespace tern::cuda_backend {

/// Elements of a thread where they are not packed, and how many of them at once: integers, whose loads choose
/// among many types, are taken one by one to keep kernels small.
inline constexpr int kPerThread = 4;
template <class C>
inline constexpr int kAtOnce = std::is_integral_v<C> ? 1 : kPerThread;

/// A functor's result as an element of the output: bool where it says bool.
template <class Out, class R>
__device__ __forceinline__ Out as_element(R x) {
  if constexpr (std::is_same_v<Out, bool>)
    return static_cast<bool>(x);
  else
    return narrow<Out>(x);
}
template <class R>
__device__ __forceinline__ void store_result(DType dtype, void* out, int64_t i, R x) {
  if constexpr (std::is_same_v<R, bool>)
    static_cast<bool*>(out)[i] = x;
  else
    store(dtype, out, i, x);
}

/// Calls use(i, read(i)) for the elements of this thread.
template <int kAhead, class Read, class Use>
__device__ __forceinline__ void each_of_thread(uint32_t n, const Read& read, const Use& use) {
  const uint32_t begin = blockIdx.x * (kBlock * kPerThread);
  read_ahead<kAhead>(begin + threadIdx.x, min(begin + kBlock * kPerThread, n), kBlock, read, use);
}

template <class Out, class T, class F>
__global__ void map1_flat(Out* out, const T* in, int64_t n, F f) {
  constexpr int kN = kPack<T>;
  const int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * kN;
  if (i + kN <= n) {
    const auto x = *reinterpret_cast<const Pack<T, kN>*>(in + i);
    Pack<Out, kN> y;
#pragma unroll
    for (int k = 0; k < kN; ++k) y.at[k] = as_element<Out>(f(widen(x.at[k])));
    *reinterpret_cast<Pack<Out, kN>*>(out + i) = y;
  } else {
    for (int64_t k = i; k < n; ++k) out[k] = as_element<Out>(f(widen(in[k])));
  }
}

template <class C, class F>
__global__ void map1_any(DType dtype, void* out, const void* in, uint32_t n, Offsets<2> offsets, F f) {
  struct Element {
    int64_t to;
    C x;
  };
  const auto read = [&](uint32_t i) {
    int64_t at[2];
    offsets.at(i, at);
    return Element{at[0], load<C>(dtype, in, at[1])};
  };
  each_of_thread<kAtOnce<C>>(n, read,
                             [&](uint32_t, const Element& e) { store_result(dtype, out, e.to, f(e.x)); });
}

/// Null `a` or `b`: the scalar.
template <class Out, class T, class F>
__global__ void map2_flat(Out* out, const T* a, const T* b, Compute<T> scalar, int64_t n, F f) {
  constexpr int kN = kPack<T>;
  const int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * kN;
  if (i + kN <= n) {
    Pack<T, kN> x{}, y{};
    if (a) x = *reinterpret_cast<const Pack<T, kN>*>(a + i);
    if (b) y = *reinterpret_cast<const Pack<T, kN>*>(b + i);
    Pack<Out, kN> z;
#pragma unroll
    for (int k = 0; k < kN; ++k)
      z.at[k] = as_element<Out>(f(a ? widen(x.at[k]) : scalar, b ? widen(y.at[k]) : scalar));
    *reinterpret_cast<Pack<Out, kN>*>(out + i) = z;
  } else {
    for (int64_t k = i; k < n; ++k)
      out[k] = as_element<Out>(f(a ? widen(a[k]) : scalar, b ? widen(b[k]) : scalar));
  }
}

/// The pack at `from`; of an operand that is not dense its one element again and again.
template <class T, int kN>
__device__ __forceinline__ Pack<T, kN> pack_at(const T* from, bool dense) {
  if (dense) return *reinterpret_cast<const Pack<T, kN>*>(from);
  Pack<T, kN> same;
#pragma unroll
  for (int k = 0; k < kN; ++k) same.at[k] = *from;
  return same;
}

/// A thread for each pack; an operand that is not dense has one element for all of a row.
template <class Out, class T, class F>
__global__ void map2_rows(Out* out, const T* a, const T* b, bool a_dense, bool b_dense, uint32_t packs,
                          Offsets<3> offsets, F f) {
  constexpr int kN = kPack<T>;
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= packs) return;
  int64_t at[3];
  offsets.at(i, at);
  const auto x = pack_at<T, kN>(a + at[1], a_dense), y = pack_at<T, kN>(b + at[2], b_dense);
  Pack<Out, kN> z;
#pragma unroll
  for (int k = 0; k < kN; ++k) z.at[k] = as_element<Out>(f(widen(x.at[k]), widen(y.at[k])));
  *reinterpret_cast<Pack<Out, kN>*>(out + at[0]) = z;
}

template <class C, class F>
__global__ void map2_any(DType dtype, void* out, const void* a, const void* b, C scalar, uint32_t n,
                         Offsets<3> offsets, F f) {
  struct Element {
    int64_t to;
    C x, y;
  };
  const auto read = [&](uint32_t i) {
    int64_t at[3];
    offsets.at(i, at);
    return Element{at[0], a ? load<C>(dtype, a, at[1]) : scalar, b ? load<C>(dtype, b, at[2]) : scalar};
  };
  each_of_thread<kAtOnce<C>>(
      n, read, [&](uint32_t, const Element& e) { store_result(dtype, out, e.to, f(e.x, e.y)); });
}

/// Null operands are dense whatever their strides say.
template <int N>
bool is_flat(const Geometry<N>& g, const void* const (&operands)[N]) {
  if (g.ndim != 1) return false;
  for (int i = 0; i < N; ++i)
    if (operands[i] != nullptr && g.strides[i][0] != 1 && g.numel != 1) return false;
  return true;
}

/// Rows as packs of `n` elements: the innermost dimension is dense in the result (operand 0), and dense or
/// one element in the others. False where they are not.
template <int N>
bool pack_rows(const Geometry<N>& g, int64_t n, Geometry<N>& packs, bool (&dense)[N]) {
  const int inner = g.ndim - 1;
  if (g.sizes[inner] % n != 0) return false;
  packs = g;
  packs.sizes[inner] /= n;
  packs.numel /= n;
  for (int i = 0; i < N; ++i) {
    dense[i] = g.strides[i][inner] == 1;
    if (!dense[i] && (i == 0 || g.strides[i][inner] != 0)) return false;
    packs.strides[i][inner] = dense[i] ? n : 0;
    for (int d = 0; d < inner; ++d)
      if (dense[i] && g.strides[i][d] % n != 0) return false;
  }
  return true;
}

/// Elements of eight bytes need no packing to be moved in whole lines.
template <class T>
inline constexpr bool kPacked = sizeof(T) <= 4;

template <class Out, class T, class F>
void map1(const LaunchContext& context, const UnaryArgs& args, F f) {
  auto* out = static_cast<Out*>(args.out);
  const auto* in = static_cast<const T*>(args.in);
  if constexpr (kPacked<T>) {
    constexpr int kN = kPack<T>;
    if (is_flat<2>(args.geometry, {out, in}) && is_aligned(out, sizeof(Pack<Out, kN>)) &&
        is_aligned(in, sizeof(Pack<T, kN>)))
      return start(context, blocks(ceil_div(args.geometry.numel, kBlock * kN)), kBlock, 0,
                   map1_flat<Out, T, F>, out, in, args.geometry.numel, f);
  }
  for_pieces(args.geometry, [&](const Geometry<2>& g, const int64_t(&by)[2]) {
    start(context, blocks(ceil_div(g.numel, kBlock * kPerThread)), kBlock, 0, map1_any<Compute<T>, F>,
          args.dtype, moved(out, by[0]), moved(in, by[1]), static_cast<uint32_t>(g.numel), Offsets<2>(g), f);
  });
}

/// With `rows`, broadcast rows and columns are taken in packs too.
template <class Out, class T, bool rows, class F>
void map2(const LaunchContext& context, const BinaryArgs& args, F f) {
  auto* out = static_cast<Out*>(args.out);
  const auto* a = static_cast<const T*>(args.a);
  const auto* b = static_cast<const T*>(args.b);
  const auto scalar = functors::from_param<Compute<T>>(args.scalar);
  if constexpr (kPacked<T>) {
    constexpr int kN = kPack<T>;
    if (is_flat<3>(args.geometry, {out, a, b}) && is_aligned(out, sizeof(Pack<Out, kN>)) &&
        is_aligned(a, sizeof(Pack<T, kN>)) && is_aligned(b, sizeof(Pack<T, kN>)))
      return start(context, blocks(ceil_div(args.geometry.numel, kBlock * kN)), kBlock, 0,
                   map2_flat<Out, T, F>, out, a, b, scalar, args.geometry.numel, f);
    Geometry<3> packs;
    bool dense[3];
    if constexpr (rows)
      if (a && b && args.geometry.numel > 0 && pack_rows(args.geometry, kN, packs, dense) &&
          is_aligned(out, sizeof(Pack<Out, kN>)) && (!dense[1] || is_aligned(a, sizeof(Pack<T, kN>))) &&
          (!dense[2] || is_aligned(b, sizeof(Pack<T, kN>))))
        return for_pieces(packs, [&](const Geometry<3>& g, const int64_t(&by)[3]) {
          start(context, blocks(ceil_div(g.numel, kBlock)), kBlock, 0, map2_rows<Out, T, F>, out + by[0],
                a + by[1], b + by[2], dense[1], dense[2], static_cast<uint32_t>(g.numel), Offsets<3>(g), f);
        });
  }
  for_pieces(args.geometry, [&](const Geometry<3>& g, const int64_t(&by)[3]) {
    start(context, blocks(ceil_div(g.numel, kBlock * kPerThread)), kBlock, 0, map2_any<Compute<T>, F>,
          args.dtype, moved(out, by[0]), moved(a, by[1]), moved(b, by[2]), scalar,
          static_cast<uint32_t>(g.numel), Offsets<3>(g), f);
  });
}

/// A number as an integer dtype holds it.
inline int64_t wrapped(DType dtype, int64_t x) {
  switch (dtype) {
    case DType::UInt8:
      return static_cast<uint8_t>(x);
    case DType::Int8:
      return static_cast<int8_t>(x);
    case DType::Int16:
      return static_cast<int16_t>(x);
    case DType::Int32:
      return static_cast<int32_t>(x);
    case DType::Bool:
      return x != 0;
    default:
      return x;
  }
}

/// Integers and bool, computed in int64: wrapping when they are stored gives what narrower arithmetic gives.
template <bool to_bool, class F>
void map1_integers(const LaunchContext& context, const UnaryArgs& args, F f) {
  for_pieces(args.geometry, [&](const Geometry<2>& g, const int64_t(&by)[2]) {
    start(context, blocks(ceil_div(g.numel, kBlock * kPerThread)), kBlock, 0, map1_any<int64_t, F>,
          args.dtype, moved(args.out, by[0], to_bool ? DType::Bool : args.dtype),
          moved(args.in, by[1], args.dtype), static_cast<uint32_t>(g.numel), Offsets<2>(g), f);
  });
}
template <bool to_bool, class F>
void map2_integers(const LaunchContext& context, const BinaryArgs& args, F f) {
  for_pieces(args.geometry, [&](const Geometry<3>& g, const int64_t(&by)[3]) {
    start(context, blocks(ceil_div(g.numel, kBlock * kPerThread)), kBlock, 0, map2_any<int64_t, F>,
          args.dtype, moved(args.out, by[0], to_bool ? DType::Bool : args.dtype),
          moved(args.a, by[1], args.dtype), moved(args.b, by[2], args.dtype),
          wrapped(args.dtype, args.scalar.integer), static_cast<uint32_t>(g.numel), Offsets<3>(g), f);
  });
}

}  // namespace tern::cuda_backend
