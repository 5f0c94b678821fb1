// The kernels on complex numbers: a loop for each function and dtype. The element functions are in
// kernels/functors_complex.h.
#include <complex>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/kernels/functors_complex.h"
#include "tern/kernels/list.h"
#include "tern/kernels/real_types.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Functions of many steps are worth a thread earlier.
constexpr int64_t kFunctionGrain = 2048;

template <bool dense, class Out, class Z, class F>
[[gnu::noinline]] void row(Out* out, const Z* in, int64_t n, int64_t so, int64_t si, const F& f) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[dense ? i : i * so] = f(in[dense ? i : i * si]);
}

template <class Out, class Z, class F>
void map(const ComplexUnaryArgs& args, const F& f) {
  const Geometry<2>& g = args.geometry;
  auto* out = static_cast<Out*>(args.out);
  const auto* in = static_cast<const Z*>(args.in);
  const int64_t so = g.strides[0][g.ndim - 1], si = g.strides[1][g.ndim - 1];
  parallel_for(g.numel, kFunctionGrain, [&](int64_t begin, int64_t end) {
    walk_rows(g, begin, end, [&](const int64_t(&offset)[2], int64_t n) {
      Out* const to = out + offset[0];
      const Z* const from = in + offset[1];
      if (so == 1 && si == 1)
        row<true>(to, from, n, 1, 1, f);
      else
        row<false>(to, from, n, so, si, f);
    });
  });
}

template <bool dense, class Z, class F>
[[gnu::noinline]] void row(Z* out, const Z* a, const Z* b, int64_t n, int64_t so, int64_t sa, int64_t sb,
                           const F& f) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[dense ? i : i * so] = f(a[dense ? i : i * sa], b[dense ? i : i * sb]);
}

template <class Z, class F>
void map(const ComplexBinaryArgs& args, int64_t grain, const F& f) {
  const Geometry<3>& g = args.geometry;
  auto* out = static_cast<Z*>(args.out);
  const auto *a = static_cast<const Z*>(args.a), *b = static_cast<const Z*>(args.b);
  const int inner = g.ndim - 1;
  const int64_t so = g.strides[0][inner], sa = g.strides[1][inner], sb = g.strides[2][inner];
  parallel_for(g.numel, grain, [&](int64_t begin, int64_t end) {
    walk_rows(g, begin, end, [&](const int64_t(&offset)[3], int64_t n) {
      Z* const to = out + offset[0];
      const Z *const x = a + offset[1], *const y = b + offset[2];
      if (so == 1 && sa == 1 && sb == 1)
        row<true>(to, x, y, n, 1, 1, 1, f);
      else
        row<false>(to, x, y, n, so, sa, sb, f);
    });
  });
}

template <class T>
void run(const ComplexUnaryArgs& args) {
  using Z = std::complex<T>;
  switch (args.op) {
#define TERN_CASE(op, text) \
  case ComplexUnary::op:    \
    return map<T, Z>(args, complex_functors::op<Z>());
    TERN_COMPLEX_REAL_OPS(TERN_CASE)
#undef TERN_CASE
#define TERN_CASE(op, text) \
  case ComplexUnary::op:    \
    return map<Z, Z>(args, complex_functors::op<Z>());
    TERN_COMPLEX_UNARY_OPS(TERN_CASE)
#undef TERN_CASE
  }
}

template <class T>
void run(const ComplexBinaryArgs& args) {
  using Z = std::complex<T>;
  const int64_t grain = args.op == ComplexBinary::Pow ? kFunctionGrain : kPointwiseGrain / 2;
  switch (args.op) {
#define TERN_CASE(op, text) \
  case ComplexBinary::op:   \
    return map<Z>(args, grain, complex_functors::op<Z>());
    TERN_COMPLEX_BINARY_OPS(TERN_CASE)
#undef TERN_CASE
  }
}

}  // namespace

void complex_unary(const LaunchContext&, const ComplexUnaryArgs& args) {
  visit_real(real_dtype(args.dtype), [&]<class T>() { run<T>(args); });
}
void complex_binary(const LaunchContext&, const ComplexBinaryArgs& args) {
  visit_real(real_dtype(args.dtype), [&]<class T>() { run<T>(args); });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
