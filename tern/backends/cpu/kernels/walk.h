// Walking of the operands of a pointwise kernel, written once for all element types: rows are handed to a
// vectorised loop over contiguous elements, strided ones by way of small buffers.
#pragma once

#include "tern/backends/cpu/kernels/loops.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// A loop over n contiguous elements with its functor.
using Row1 = void (*)(void* out, const void* in, int64_t n, const void* functor);
using Row2 = void (*)(void* out, const void* a, const void* b, int64_t n, const void* functor);

/// The loops of one binary functor and element type. In the fixed forms that operand is one number of the
/// compute type.
struct BinaryRows {
  Row2 dense;
  Row2 a_fixed;
  Row2 b_fixed;
  void (*widen)(const void* element, void* compute);  ///< an element as a number of the compute type
};

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
  C number;
  F f;
  auto operator()(C v) const { return second ? f(v, number) : f(number, v); }
  bool inside(C v) const requires requires { f.inside(v, v); }
  { return second ? f.inside(v, number) : f.inside(number, v); }
  C fast(C v) const requires requires { f.fast(v, v); }
  { return second ? f.fast(v, number) : f.fast(number, v); }
};

/// out = f(a, b) for typed operands.
template <class Out, class T, class F>
void map2(const Geometry<3>& g, Out* out, const T* a, const T* b, Compute<T> scalar, const F& f) {
  using C = Compute<T>;
  static constexpr BinaryRows rows = {
      [](void* o, const void* x, const void* y, int64_t n, const void* functor) {
        row2(static_cast<Out*>(o), static_cast<const T*>(x), static_cast<const T*>(y), n,
             *static_cast<const F*>(functor));
      },
      [](void* o, const void* x, const void* y, int64_t n, const void* functor) {
        row1(static_cast<Out*>(o), static_cast<const T*>(y), n,
             Fixed<F, C, false>{*static_cast<const C*>(x), *static_cast<const F*>(functor)});
      },
      [](void* o, const void* x, const void* y, int64_t n, const void* functor) {
        row1(static_cast<Out*>(o), static_cast<const T*>(x), n,
             Fixed<F, C, true>{*static_cast<const C*>(y), *static_cast<const F*>(functor)});
      },
      [](const void* element, void* compute) {
        *static_cast<C*>(compute) = static_cast<C>(*static_cast<const T*>(element));
      }};
  walk2(g, out, sizeof(Out), a, b, sizeof(T), &scalar, rows, &f);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
