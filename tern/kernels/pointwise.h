// Argument structs and operator lists of the pointwise kernels: fill, copy (with conversion), unary, binary,
// ternary. The element functions themselves are in kernels/functors.h.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"
#include "tern/kernels/strides.h"

namespace tern {

/// A number for a kernel, in both forms; the functor takes the one of its compute type.
struct Param {
  double floating = 0;
  int64_t integer = 0;
};

/// Which result a unary or binary operator has for an input dtype.
enum class ResultKind : uint8_t {
  Same,   ///< the dtype of the operands
  Float,  ///< as Same for floats; integers and bool become the default dtype
  Bool,
};

// X(enumerator, "PyTorch's name", result kind). To add a unary operator: a functor of the same name in
// kernels/functors.h, a line here, the operator with its gradient in ops/, a row in
// tests/ops/operator_table.py.
// Of kernels/special.h; Polygamma's params are n and n! with the sign of the result.
#define TERN_UNARY_SPECIAL(X)      \
  X(Lgamma, "lgamma", Float)       \
  X(Digamma, "digamma", Float)     \
  X(Polygamma, "polygamma", Float) \
  X(Erfinv, "erfinv", Float)

#define TERN_UNARY_OPS(X)              \
  X(Neg, "neg", Same)                  \
  X(Abs, "abs", Same)                  \
  X(Sign, "sign", Same)                \
  X(Square, "square", Same)            \
  X(Relu, "relu", Same)                \
  X(Floor, "floor", Same)              \
  X(Ceil, "ceil", Same)                \
  X(Round, "round", Same)              \
  X(Trunc, "trunc", Same)              \
  X(BitwiseNot, "bitwise_not", Same)   \
  X(Exp, "exp", Float)                 \
  X(Expm1, "expm1", Float)             \
  X(Log, "log", Float)                 \
  X(Log1p, "log1p", Float)             \
  X(Log2, "log2", Float)               \
  X(Log10, "log10", Float)             \
  X(Sqrt, "sqrt", Float)               \
  X(Rsqrt, "rsqrt", Float)             \
  X(Reciprocal, "reciprocal", Float)   \
  X(Sin, "sin", Float)                 \
  X(Cos, "cos", Float)                 \
  X(Tan, "tan", Float)                 \
  X(Tanh, "tanh", Float)               \
  X(Erf, "erf", Float)                 \
  X(Erfc, "erfc", Float)               \
  X(Exp2, "exp2", Float)               \
  X(Asin, "asin", Float)               \
  X(Acos, "acos", Float)               \
  X(Atan, "atan", Float)               \
  X(Sinh, "sinh", Float)               \
  X(Cosh, "cosh", Float)               \
  X(Asinh, "asinh", Float)             \
  X(Acosh, "acosh", Float)             \
  X(Atanh, "atanh", Float)             \
  X(Sinc, "sinc", Float)               \
  X(Logit, "logit", Float)             \
  X(Frac, "frac", Float)               \
  X(Sigmoid, "sigmoid", Float)         \
  X(Silu, "silu", Float)               \
  X(Gelu, "gelu", Float)               \
  X(GeluTanh, "gelu(tanh)", Float)     \
  X(Softplus, "softplus", Float)       \
  X(LogSigmoid, "logsigmoid", Float)   \
  X(Elu, "elu", Float)                 \
  X(Selu, "selu", Float)               \
  X(Mish, "mish", Float)               \
  X(Softsign, "softsign", Float)       \
  X(Hardsigmoid, "hardsigmoid", Float) \
  X(Hardswish, "hardswish", Float)     \
  X(LeakyRelu, "leaky_relu", Float)    \
  X(Clamp, "clamp", Same)              \
  X(IsNan, "isnan", Bool)              \
  X(IsInf, "isinf", Bool)              \
  X(IsFinite, "isfinite", Bool)        \
  X(Signbit, "signbit", Bool)          \
  X(LogicalNot, "logical_not", Bool)   \
  TERN_UNARY_SPECIAL(X)

#define TERN_BINARY_FUNCTIONS(X)   \
  X(Logaddexp, "logaddexp", Float) \
  X(Xlogy, "xlogy", Float)         \
  X(Hypot, "hypot", Float)         \
  X(Copysign, "copysign", Float)   \
  X(Fmax, "fmax", Same)            \
  X(Fmin, "fmin", Same)            \
  X(Heaviside, "heaviside", Same)  \
  X(NanToNum, "nan_to_num", Float) \
  X(Lerp, "lerp", Float)

// Special functions of two operands, and functions of two integers.
#define TERN_BINARY_SPECIAL(X)     \
  X(Gammainc, "gammainc", Float)   \
  X(Gammaincc, "gammaincc", Float) \
  X(Zeta, "zeta", Float)           \
  X(StandardGammaGrad, "standard_gamma_backward", Float)
#define TERN_BINARY_INTEGERS(X)                     \
  X(BitwiseLeftShift, "bitwise_left_shift", Same)   \
  X(BitwiseRightShift, "bitwise_right_shift", Same) \
  X(Gcd, "gcd", Same)                               \
  X(Lcm, "lcm", Same)

// Activations of two operands, and fused gradients of those of one.
#define TERN_BINARY_ACTIVATIONS(X)                      \
  X(ReluBackward, "relu_backward", Same)                \
  X(SigmoidBackward, "sigmoid_backward", Float)         \
  X(TanhBackward, "tanh_backward", Float)               \
  X(SiluBackward, "silu_backward", Float)               \
  X(GeluBackward, "gelu_backward", Float)               \
  X(GeluTanhBackward, "gelu_tanh_backward", Float)      \
  X(SoftplusBackward, "softplus_backward", Float)       \
  X(EluBackward, "elu_backward", Float)                 \
  X(SeluBackward, "selu_backward", Float)               \
  X(MishBackward, "mish_backward", Float)               \
  X(SoftsignBackward, "softsign_backward", Float)       \
  X(LogitBackward, "logit_backward", Float)             \
  X(HardswishBackward, "hardswish_backward", Float)     \
  X(HardsigmoidBackward, "hardsigmoid_backward", Float) \
  X(HardtanhBackward, "hardtanh_backward", Float)       \
  X(Glu, "glu", Float)                                  \
  X(GluGate, "glu_gate_backward", Float)                \
  X(Prelu, "prelu", Float)                              \
  X(LeakyReluBackward, "leaky_relu_backward", Float)

#define TERN_BINARY_OPS(X)           \
  X(Add, "add", Same)                \
  X(Sub, "sub", Same)                \
  X(Mul, "mul", Same)                \
  X(Div, "div", Float)               \
  X(DivFloor, "floor_divide", Same)  \
  X(DivTrunc, "div(trunc)", Same)    \
  X(Remainder, "remainder", Same)    \
  X(Fmod, "fmod", Same)              \
  X(Pow, "pow", Same)                \
  X(Atan2, "atan2", Float)           \
  X(Maximum, "maximum", Same)        \
  X(Minimum, "minimum", Same)        \
  X(Eq, "eq", Bool)                  \
  X(Ne, "ne", Bool)                  \
  X(Lt, "lt", Bool)                  \
  X(Le, "le", Bool)                  \
  X(Gt, "gt", Bool)                  \
  X(Ge, "ge", Bool)                  \
  X(LogicalAnd, "logical_and", Bool) \
  X(LogicalOr, "logical_or", Bool)   \
  X(LogicalXor, "logical_xor", Bool) \
  X(BitwiseAnd, "bitwise_and", Same) \
  X(BitwiseOr, "bitwise_or", Same)   \
  X(BitwiseXor, "bitwise_xor", Same) \
  TERN_BINARY_INTEGERS(X)            \
  TERN_BINARY_FUNCTIONS(X)           \
  TERN_BINARY_SPECIAL(X)             \
  TERN_BINARY_ACTIVATIONS(X)

#define TERN_TERNARY_OPS(X)    \
  X(Addcmul, "addcmul", Same)  \
  X(Addcdiv, "addcdiv", Float) \
  X(LerpEach, "lerp", Float)

#define TERN_DECLARE_ENUMERATOR(op, name, kind) op,
enum class UnaryOp : uint8_t { TERN_UNARY_OPS(TERN_DECLARE_ENUMERATOR) };
enum class BinaryOp : uint8_t { TERN_BINARY_OPS(TERN_DECLARE_ENUMERATOR) };
enum class TernaryOp : uint8_t { TERN_TERNARY_OPS(TERN_DECLARE_ENUMERATOR) };
#undef TERN_DECLARE_ENUMERATOR
#define TERN_COUNT(op, name, kind) +1
inline constexpr int kNumUnaryOps = 0 TERN_UNARY_OPS(TERN_COUNT);
inline constexpr int kNumBinaryOps = 0 TERN_BINARY_OPS(TERN_COUNT);
#undef TERN_COUNT

/// Operators that take integers and bool, and those that take integers alone.
constexpr bool is_bitwise(BinaryOp op) { return op >= BinaryOp::BitwiseAnd && op <= BinaryOp::BitwiseXor; }
constexpr bool takes_integers_only(BinaryOp op) {
  return op >= BinaryOp::BitwiseLeftShift && op <= BinaryOp::Lcm;
}

/// PyTorch's name of an operator, for errors.
const char* name(UnaryOp op) noexcept;
const char* name(BinaryOp op) noexcept;
const char* name(TernaryOp op) noexcept;
ResultKind result_kind(UnaryOp op) noexcept;
ResultKind result_kind(BinaryOp op) noexcept;
ResultKind result_kind(TernaryOp op) noexcept;

/// out[...] = value.
struct FillArgs {
  DType dtype;
  Param value;
  void* out;
  Geometry<1> geometry;
};

/// out[...] = in[...], converted. Geometry: out, in. Overlapping memory only when in and out are the same
/// elements.
struct CopyArgs {
  DType out_dtype;
  DType in_dtype;
  void* out;
  const void* in;
  Geometry<2> geometry;
};

/// out[...] = op(in[...]). `dtype` is the input's; the output has the same or, for ResultKind::Bool, is bool.
/// Float operators take floating dtypes only. Geometry: out, in. out may be in itself.
struct UnaryArgs {
  UnaryOp op;
  DType dtype;
  void* out;
  const void* in;
  Param params[2];
  Geometry<2> geometry;
};

/// out[...] = op(a[...], b[...]); with `params` for Add and Sub (alpha) and the backward forms. Both operands
/// have `dtype`. A null `b` or `a` stands for `scalar` (as the compute type). Geometry: out, a, b.
struct BinaryArgs {
  BinaryOp op;
  DType dtype;
  void* out;
  const void* a;
  const void* b;
  Param scalar;
  Param params[2];
  Geometry<3> geometry;
};

/// Whether a Pow is by 3 everywhere, which two products give.
inline bool is_cube(const BinaryArgs& args) {
  const bool three = is_floating_point(args.dtype) ? args.scalar.floating == 3 : args.scalar.integer == 3;
  return args.b == nullptr && three;
}

/// masked = the gradient of what went into relu: `grad`, of this shape and these strides, where relu gave
/// more than 0. The others are contiguous.
inline BinaryArgs relu_mask(DType dtype, void* masked, const void* grad, const void* relu_output,
                            IntArrayRef shape, const int64_t* grad_strides) {
  BinaryArgs mask{.op = BinaryOp::ReluBackward,
                  .dtype = dtype,
                  .out = masked,
                  .a = grad,
                  .b = relu_output,
                  .scalar = {},
                  .params = {},
                  .geometry = {}};
  int64_t dense[kMaxDims], step = 1;
  for (size_t d = shape.size(); d-- > 0; step *= shape[d]) dense[d] = step;
  const int64_t* const strides[3] = {dense, grad_strides, dense};
  collapse<3>(mask.geometry, shape, strides);
  return mask;
}

/// out[...] = op(a[...], b[...], c[...]), all of `dtype`; `value` is the factor of Addcmul and Addcdiv.
/// Geometry: out, a, b, c. out may be one of them itself.
struct TernaryArgs {
  TernaryOp op;
  DType dtype;
  void* out;
  const void* a;
  const void* b;
  const void* c;
  Param value;
  Geometry<4> geometry;
};

/// out[...] = condition[...] ? a[...] : b[...]; `condition` is bool. Null `a` or `b`: the scalar of that
/// name. Geometry: out, condition, a, b.
struct WhereArgs {
  DType dtype;
  void* out;
  const void* condition;
  const void* a;
  const void* b;
  Param a_scalar;
  Param b_scalar;
  Geometry<4> geometry;
};

#define TERN_POINTWISE_KERNELS(X) \
  X(fill, FillArgs)               \
  X(copy, CopyArgs)               \
  X(unary, UnaryArgs)             \
  X(binary, BinaryArgs)           \
  X(ternary, TernaryArgs)         \
  X(where, WhereArgs)

}  // namespace tern
