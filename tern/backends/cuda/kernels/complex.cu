// The kernels on complex numbers: one element at a time by the offset calculator. The element functions are
// in kernels/functors_complex.h.
#include <cuda/std/complex>

#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/offsets.cuh"
#include "tern/kernels/functors_complex.h"
#include "tern/kernels/list.h"
#include "tern/kernels/real_types.h"

namespace tern::cuda_backend {
namespace {

/// Two parts beside each other, loaded and stored at once.
template <class T>
struct alignas(2 * sizeof(T)) Parts {
  T re, im;
};
template <class T>
__device__ __forceinline__ cuda::std::complex<T> number(const Parts<T>& x) {
  return {x.re, x.im};
}
template <class T>
__device__ __forceinline__ void write(Parts<T>& to, const cuda::std::complex<T>& x) {
  to = {x.real(), x.imag()};
}
template <class T>
__device__ __forceinline__ void write(T& to, T x) {
  to = x;
}

template <class T, class Out, class F>
__global__ void complex_map1(Out* out, const Parts<T>* in, uint32_t n, Offsets<2> offsets, F f) {
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= n) return;
  int64_t at[2];
  offsets.at(i, at);
  write(out[at[0]], f(number(in[at[1]])));
}

template <class T, class F>
__global__ void complex_map2(Parts<T>* out, const Parts<T>* a, const Parts<T>* b, uint32_t n,
                             Offsets<3> offsets, F f) {
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= n) return;
  int64_t at[3];
  offsets.at(i, at);
  write(out[at[0]], f(number(a[at[1]]), number(b[at[2]])));
}

template <class T, class Out, class F>
void map(const LaunchContext& context, const ComplexUnaryArgs& args, F f) {
  auto* out = static_cast<Out*>(args.out);
  const auto* in = static_cast<const Parts<T>*>(args.in);
  for_pieces(args.geometry, [&](const Geometry<2>& g, const int64_t(&by)[2]) {
    start(context, blocks(ceil_div(g.numel, kBlock)), kBlock, 0, complex_map1<T, Out, F>, out + by[0],
          in + by[1], static_cast<uint32_t>(g.numel), Offsets<2>(g), f);
  });
}

template <class T, class F>
void map(const LaunchContext& context, const ComplexBinaryArgs& args, F f) {
  auto* out = static_cast<Parts<T>*>(args.out);
  const auto *a = static_cast<const Parts<T>*>(args.a), *b = static_cast<const Parts<T>*>(args.b);
  for_pieces(args.geometry, [&](const Geometry<3>& g, const int64_t(&by)[3]) {
    start(context, blocks(ceil_div(g.numel, kBlock)), kBlock, 0, complex_map2<T, F>, out + by[0], a + by[1],
          b + by[2], static_cast<uint32_t>(g.numel), Offsets<3>(g), f);
  });
}

}  // namespace

void complex_unary(const LaunchContext& context, const ComplexUnaryArgs& args) {
  visit_real(real_dtype(args.dtype), [&]<class T>() {
    using Z = cuda::std::complex<T>;
    switch (args.op) {
#define TERN_CASE(op, text) \
  case ComplexUnary::op:    \
    return map<T, T>(context, args, complex_functors::op<Z>());
      TERN_COMPLEX_REAL_OPS(TERN_CASE)
#undef TERN_CASE
#define TERN_CASE(op, text) \
  case ComplexUnary::op:    \
    return map<T, Parts<T>>(context, args, complex_functors::op<Z>());
      TERN_COMPLEX_UNARY_OPS(TERN_CASE)
#undef TERN_CASE
    }
  });
}

void complex_binary(const LaunchContext& context, const ComplexBinaryArgs& args) {
  visit_real(real_dtype(args.dtype), [&]<class T>() {
    using Z = cuda::std::complex<T>;
    switch (args.op) {
#define TERN_CASE(op, text) \
  case ComplexBinary::op:   \
    return map<T>(context, args, complex_functors::op<Z>());
      TERN_COMPLEX_BINARY_OPS(TERN_CASE)
#undef TERN_CASE
    }
  });
}

}  // namespace tern::cuda_backend
