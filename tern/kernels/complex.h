// Argument structs and operator lists of the kernels on complex numbers. The element functions are in
// kernels/functors_complex.h. Sums, moves and products of matrices have none of their own: they are made with
// the parts as real numbers (tern/ops/complex_elementwise.cpp).
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"
#include "tern/kernels/strides.h"

namespace tern {

// X(enumerator, "PyTorch's name"). To add one: a functor of the same name in kernels/functors_complex.h, a
// line here, its gradient in ops/complex_elementwise.cpp, a row in the operator table.
#define TERN_COMPLEX_REAL_OPS(X) \
  X(Abs, "abs")                  \
  X(Angle, "angle")
#define TERN_COMPLEX_UNARY_OPS(X) \
  X(Conj, "conj")                 \
  X(Sgn, "sgn")                   \
  X(Reciprocal, "reciprocal")     \
  X(Sqrt, "sqrt")                 \
  X(Exp, "exp")                   \
  X(Expm1, "expm1")               \
  X(Log, "log")                   \
  X(Log1p, "log1p")               \
  X(Sin, "sin")                   \
  X(Cos, "cos")                   \
  X(Tan, "tan")                   \
  X(Asin, "asin")                 \
  X(Acos, "acos")                 \
  X(Atan, "atan")                 \
  X(Sinh, "sinh")                 \
  X(Cosh, "cosh")                 \
  X(Tanh, "tanh")                 \
  X(Asinh, "asinh")               \
  X(Acosh, "acosh")               \
  X(Atanh, "atanh")               \
  X(Sigmoid, "sigmoid")
#define TERN_COMPLEX_BINARY_OPS(X) \
  X(Mul, "mul")                    \
  X(MulConj, "mul")                \
  X(Div, "div")                    \
  X(Pow, "pow")

#define TERN_DECLARE_ENUMERATOR(op, name) op,
enum class ComplexUnary : uint8_t {
  TERN_COMPLEX_REAL_OPS(TERN_DECLARE_ENUMERATOR) TERN_COMPLEX_UNARY_OPS(TERN_DECLARE_ENUMERATOR)
};
enum class ComplexBinary : uint8_t { TERN_COMPLEX_BINARY_OPS(TERN_DECLARE_ENUMERATOR) };
#undef TERN_DECLARE_ENUMERATOR

/// True for functions whose results are real.
constexpr bool gives_real(ComplexUnary op) { return op <= ComplexUnary::Angle; }

/// PyTorch's name of an operator, for errors and profiles.
const char* name(ComplexUnary op) noexcept;
const char* name(ComplexBinary op) noexcept;

/// out[...] = op(in[...]); `dtype` is the input's, complex64 or complex128. Geometry: out, in. out may be in
/// itself unless the results are real.
struct ComplexUnaryArgs {
  ComplexUnary op{};
  DType dtype{};
  void* out = nullptr;
  const void* in = nullptr;
  Geometry<2> geometry{};
};

/// out[...] = op(a[...], b[...]), all of `dtype`; MulConj is a times the conjugate of b. Geometry: out, a, b.
struct ComplexBinaryArgs {
  ComplexBinary op{};
  DType dtype{};
  void* out = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  Geometry<3> geometry{};
};

#define TERN_COMPLEX_KERNELS(X)      \
  X(complex_unary, ComplexUnaryArgs) \
  X(complex_binary, ComplexBinaryArgs)

}  // namespace tern
