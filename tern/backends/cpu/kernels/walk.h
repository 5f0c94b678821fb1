// Walking of the operands of a pointwise kernel, written once for all element types: rows are handed to a
// vectorised loop over contiguous elements, strided ones by way of small buffers.
#pragma once

#include "tern/backends/cpu/kernels/loops.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// A loop over n contiguous elements with its functor; Rows2 takes many such rows.
using Row1 = void (*)(void* out, const void* in, int64_t n, const void* functor);
using Rows2 = void (*)(void* out, const void* a, const void* b, int64_t n, const RowSteps& steps,
                       const void* functor);

/// The loops of one binary functor and element type. In the fixed forms that operand is one number of the
/// compute type for each row.
struct BinaryRows {
  Rows2 dense;
  Rows2 a_fixed;
  Rows2 b_fixed;
  /// n elements, `step` apart, as numbers of the compute type.
  void (*widen)(const void* elements, int64_t step, int64_t n, void* numbers);
};
/// Bytes that the largest number of a compute type takes.
inline constexpr size_t kLargestNumber = 8;

/// out = f(in); item sizes in bytes.
void walk1(const Geometry<2>& g, void* out, size_t out_item, const void* in, size_t in_item, Row1 row,
           const void* functor);

/// out = f(a, b). Null `a` or `b` stands for `scalar`, a number of the compute type.
void walk2(const Geometry<3>& g, void* out, size_t out_item, const void* a, const void* b, size_t in_item,
           const void* scalar, const BinaryRows& rows, const void* functor);

/// out = f(in) for typed operands.
template <class Out, class In, class F>
void map1(const Geometry<2>& g, Out* out, const In* in, const F& f) {
  walk1(
      g, out, sizeof(Out), in, sizeof(In),
      [](void* o, const void* x, int64_t n, const void* functor) {
        row1(static_cast<Out*>(o), static_cast<const In*>(x), n, *static_cast<const F*>(functor));
      },
      &f);
}

/// A binary functor one operand of which is a number.
template <class F, class C, bool second>
struct Fixed {
  static constexpr bool kManySteps = ManySteps<F>;
  C number;
  F f;
  [[gnu::always_inline]] auto operator()(C v) const { return second ? f(v, number) : f(number, v); }
  [[gnu::always_inline]] bool inside(C v) const requires requires { f.inside(v, v); }
  { return second ? f.inside(v, number) : f.inside(number, v); }
  [[gnu::always_inline]] C fast(C v) const requires requires { f.fast(v, v); }
  { return second ? f.fast(v, number) : f.fast(number, v); }
};

/// out[i] = f(in[i], number of the row), or with the operands exchanged.
template <bool second, class Out, class T, class F>
void rows_with_number(void* out, const void* in, const void* numbers, int64_t n, const RowSteps& steps,
                      int64_t step, int64_t number_step, const void* functor) {
  using C = Compute<T>;
  const RowSteps by = steps;
  for (int64_t k = 0; k < by.rows; ++k) {
    const Fixed<F, C, second> f{static_cast<const C*>(numbers)[k * number_step],
                                *static_cast<const F*>(functor)};
    row1_inline(static_cast<Out*>(out) + k * by.out, static_cast<const T*>(in) + k * step, n, f);
  }
}

/// out = f(a, b) for typed operands.
template <class Out, class T, class F>
void map2(const Geometry<3>& g, Out* out, const T* a, const T* b, Compute<T> scalar, const F& f) {
  using C = Compute<T>;
  static_assert(sizeof(C) <= kLargestNumber);
  static constexpr BinaryRows rows = {
      [](void* o, const void* x, const void* y, int64_t n, const RowSteps& steps, const void* functor) {
        rows2(static_cast<Out*>(o), static_cast<const T*>(x), static_cast<const T*>(y), n, steps,
              *static_cast<const F*>(functor));
      },
      [](void* o, const void* x, const void* y, int64_t n, const RowSteps& steps, const void* functor) {
        rows_with_number<false, Out, T, F>(o, y, x, n, steps, steps.b, steps.a, functor);
      },
      [](void* o, const void* x, const void* y, int64_t n, const RowSteps& steps, const void* functor) {
        rows_with_number<true, Out, T, F>(o, x, y, n, steps, steps.a, steps.b, functor);
      },
      [](const void* elements, int64_t step, int64_t n, void* numbers) {
        for (int64_t i = 0; i < n; ++i)
          static_cast<C*>(numbers)[i] = static_cast<C>(static_cast<const T*>(elements)[i * step]);
      }};
  walk2(g, out, sizeof(Out), a, b, sizeof(T), &scalar, rows, &f);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
