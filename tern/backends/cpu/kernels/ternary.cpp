// The ternary kernel: tiles of each operand that is not dense, or of a 16-bit float, are gathered as numbers
// of the compute type, and a vectorised loop goes over them. The element functions are in kernels/functors.h.
#include "tern/backends/cpu/kernels/loops.h"
#include "tern/kernels/functors.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

template <class T>
const Compute<T>* numbers_of(const T* from, int64_t step, int64_t n, Compute<T>* buffer) {
  if (step == 1) return to_compute(from, n, buffer);
  for (int64_t i = 0; i < n; ++i) buffer[i] = static_cast<Compute<T>>(from[i * step]);
  return buffer;
}

template <class C, class F>
[[gnu::noinline]] void row3(C* out, const C* a, const C* b, const C* c, int64_t n, const F& functor) {
  const F f = functor;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i], c[i]);
}

template <class T, class F>
void map3(const TernaryArgs& args, const F& f) {
  using C = Compute<T>;
  const Geometry<4>& g = args.geometry;
  T* out = static_cast<T*>(args.out);
  const T *a = static_cast<const T*>(args.a), *b = static_cast<const T*>(args.b),
          *c = static_cast<const T*>(args.c);
  const int inner = g.ndim - 1;
  const int64_t so = g.strides[0][inner], sa = g.strides[1][inner];
  const int64_t sb = g.strides[2][inner], sc = g.strides[3][inner];
  auto row = [&](T* o, int64_t step, const T* x, const T* y, const T* z, int64_t n) {
    C result[kWideTile], first[kWideTile], second[kWideTile], third[kWideTile];
    for (int64_t i = 0; i < n; i += kWideTile) {
      const int64_t count = std::min(kWideTile, n - i);
      const C *u = numbers_of(x + i * sa, sa, count, first), *v = numbers_of(y + i * sb, sb, count, second),
              *w = numbers_of(z + i * sc, sc, count, third);
      if constexpr (!kWidened<T>) {
        if (step == 1) {
          row3(o + i, u, v, w, count, f);
          continue;
        }
      }
      row3(result, u, v, w, count, f);
      if (step == 1)
        from_compute(o + i, result, count);
      else
        for (int64_t k = 0; k < count; ++k) o[(i + k) * step] = static_cast<T>(result[k]);
    }
  };
  if (g.ndim == 1 && so == 1)
    return for_each_block(out, g.numel, [&](T* to, int64_t first, int64_t n) {
      row(to, 1, a + first * sa, b + first * sb, c + first * sc, n);
    });
  parallel_for(g.numel, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    walk_rows(g, begin, end, [&](const int64_t(&offset)[4], int64_t n) {
      row(out + offset[0], so, a + offset[1], b + offset[2], c + offset[3], n);
    });
  });
}

template <template <class> class Functor, ResultKind kind>
void dispatch(const TernaryArgs& args) {
  visit_dtype(args.dtype, [&]<class T>() {
    using C = Compute<T>;
    if constexpr (std::is_floating_point_v<C> || (kind == ResultKind::Same && std::is_integral_v<C>))
      map3<T>(args, Functor<C>(args.value));
    else
      throw_not_computable(args.dtype);
  });
}

}  // namespace

void ternary(const LaunchContext&, const TernaryArgs& args) {
  switch (args.op) {
#define TERN_CASE(op, text, kind) \
  case TernaryOp::op:             \
    return dispatch<functors::op, ResultKind::kind>(args);
    TERN_TERNARY_OPS(TERN_CASE)
#undef TERN_CASE
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
