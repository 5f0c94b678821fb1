// The ternary kernel. The element functions are in kernels/functors.h.
#include "tern/backends/cuda/kernels/pointwise.cuh"

namespace tern::cuda_backend {
namespace {

template <class T, class F>
__global__ void map3_flat(T* out, const T* a, const T* b, const T* c, int64_t n, F f) {
  constexpr int kN = kPack<T>;
  const int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * kN;
  if (i + kN <= n) {
    const auto x = *reinterpret_cast<const Pack<T, kN>*>(a + i),
               y = *reinterpret_cast<const Pack<T, kN>*>(b + i),
               z = *reinterpret_cast<const Pack<T, kN>*>(c + i);
    Pack<T, kN> result;
#pragma unroll
    for (int k = 0; k < kN; ++k)
      result.at[k] = as_element<T>(f(widen(x.at[k]), widen(y.at[k]), widen(z.at[k])));
    *reinterpret_cast<Pack<T, kN>*>(out + i) = result;
  } else {
    for (int64_t k = i; k < n; ++k) out[k] = as_element<T>(f(widen(a[k]), widen(b[k]), widen(c[k])));
  }
}

template <class C, class F>
__global__ void map3_any(DType dtype, void* out, const void* a, const void* b, const void* c, uint32_t n,
                         Offsets<4> offsets, F f) {
  struct Element {
    int64_t to;
    C x, y, z;
  };
  const auto read = [&](uint32_t i) {
    int64_t at[4];
    offsets.at(i, at);
    return Element{at[0], load<C>(dtype, a, at[1]), load<C>(dtype, b, at[2]), load<C>(dtype, c, at[3])};
  };
  each_of_thread<kAtOnce<C>>(
      n, read, [&](uint32_t, const Element& e) { store_result(dtype, out, e.to, f(e.x, e.y, e.z)); });
}

template <class C, class F>
void map3(const LaunchContext& context, const TernaryArgs& args, F f) {
  for_pieces(args.geometry, [&](const Geometry<4>& g, const int64_t(&by)[4]) {
    start(context, blocks(ceil_div(g.numel, kBlock * kPerThread)), kBlock, 0, map3_any<C, F>, args.dtype,
          moved(args.out, by[0], args.dtype), moved(args.a, by[1], args.dtype),
          moved(args.b, by[2], args.dtype), moved(args.c, by[3], args.dtype), static_cast<uint32_t>(g.numel),
          Offsets<4>(g), f);
  });
}

template <template <class> class Functor, ResultKind kind>
void dispatch(const LaunchContext& context, const TernaryArgs& args) {
  if (is_floating_point(args.dtype))
    return visit_floating(args.dtype, [&]<class T>() {
      const Functor<Compute<T>> f(args.value);
      if constexpr (kPacked<T>) {
        constexpr size_t kBytes = sizeof(Pack<T, kPack<T>>);
        if (is_flat<4>(args.geometry, {args.out, args.a, args.b, args.c}) && is_aligned(args.out, kBytes) &&
            is_aligned(args.a, kBytes) && is_aligned(args.b, kBytes) && is_aligned(args.c, kBytes))
          return start(context, blocks(ceil_div(args.geometry.numel, kBlock * kPack<T>)), kBlock, 0,
                       map3_flat<T, Functor<Compute<T>>>, static_cast<T*>(args.out),
                       static_cast<const T*>(args.a), static_cast<const T*>(args.b),
                       static_cast<const T*>(args.c), args.geometry.numel, f);
      }
      map3<Compute<T>>(context, args, f);
    });
  if constexpr (kind == ResultKind::Same) {
    if (is_integral(args.dtype)) return map3<int64_t>(context, args, Functor<int64_t>(args.value));
  }
  throw_not_computable(args.dtype);
}

}  // namespace

void ternary(const LaunchContext& context, const TernaryArgs& args) {
  switch (args.op) {
#define TERN_CASE(op, text, kind) \
  case TernaryOp::op:             \
    return dispatch<functors::op, ResultKind::kind>(context, args);
    TERN_TERNARY_OPS(TERN_CASE)
#undef TERN_CASE
  }
}

}  // namespace tern::cuda_backend
