// Arithmetic of complex numbers: sums and comparisons by way of their parts, products, powers and functions
// by kernels of their own; the gradients of functions and powers.
#include "tern/ops/complex_elementwise.h"

#include <complex>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/complex.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation_checks.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

Tensor launch_complex(ComplexBinary op, const Tensor& a, const Tensor& b) {
  Shape shape = broadcast_shapes(a.shape(), b.shape(), name(op));
  const int64_t numel = checked_numel(shape);
  Tensor y = empty_contiguous(shape, numel, a.dtype(), a.device());
  if (numel == 0) return y;
  Strides strides[2] = {Strides(shape.size()), Strides(shape.size())};
  broadcast_strides(a.shape(), a.strides(), shape, strides[0].data());
  broadcast_strides(b.shape(), b.strides(), shape, strides[1].data());
  ComplexBinaryArgs args{.op = op,
                         .dtype = a.dtype(),
                         .out = y.data_ptr(),
                         .a = a.data_ptr(),
                         .b = b.data_ptr(),
                         .geometry = {}};
  collapse<3>(args.geometry, shape, {y.strides().data(), strides[0].data(), strides[1].data()});
  launch(current_stream(y.device()), kernels::complex_binary, args);
  return y;
}

Tensor launch_complex(ComplexUnary op, const Tensor& x) {
  const DType dtype = gives_real(op) ? real_dtype(x.dtype()) : x.dtype();
  Tensor y = empty_contiguous(x.shape(), x.numel(), dtype, x.device());
  if (x.numel() == 0) return y;
  ComplexUnaryArgs args{
      .op = op, .dtype = x.dtype(), .out = y.data_ptr(), .in = x.data_ptr(), .geometry = {}};
  collapse<2>(args.geometry, x.shape(), {y.strides().data(), x.strides().data()});
  launch(current_stream(y.device()), kernels::complex_unary, args);
  return y;
}

/// The derivative of `op` at x, where it gave y.
Tensor slope(ComplexUnary op, const Tensor& x, const Tensor& y) {
  const auto one_beside_square = [&](double sign) { return add(mul(mul(x, x), sign), 1.0); };
  switch (op) {
    case ComplexUnary::Reciprocal:
      return neg(mul(y, y));
    case ComplexUnary::Sqrt:
      return reciprocal(mul(y, 2));
    case ComplexUnary::Exp:
      return y;
    case ComplexUnary::Expm1:
      return add(y, 1);
    case ComplexUnary::Log:
      return reciprocal(x);
    case ComplexUnary::Log1p:
      return reciprocal(add(x, 1));
    case ComplexUnary::Sin:
      return cos(x);
    case ComplexUnary::Cos:
      return neg(sin(x));
    case ComplexUnary::Tan:
      return add(mul(y, y), 1);
    case ComplexUnary::Asin:
      return rsqrt(one_beside_square(-1));
    case ComplexUnary::Acos:
      return neg(rsqrt(one_beside_square(-1)));
    case ComplexUnary::Atan:
      return reciprocal(one_beside_square(1));
    case ComplexUnary::Sinh:
      return cosh(x);
    case ComplexUnary::Cosh:
      return sinh(x);
    case ComplexUnary::Tanh:
      return rsub(mul(y, y), 1);
    case ComplexUnary::Asinh:
      return rsqrt(one_beside_square(1));
    case ComplexUnary::Acosh:
      return reciprocal(mul(sqrt(sub(x, 1)), sqrt(add(x, 1))));  // beside the cut the other root is wrong
    case ComplexUnary::Atanh:
      return reciprocal(one_beside_square(-1));
    case ComplexUnary::Sigmoid:
      return mul(y, rsub(y, 1));
    default:
      TERN_THROW(NotImplementedError, "{}: no derivative", name(op));
  }
}

/// The gradients of functions that are no complex functions of a complex number alone.
Tensor gradient(ComplexUnary op, const Tensor& g, const Tensor& x, const Tensor& y) {
  switch (op) {
    case ComplexUnary::Conj:
      return conj(g);
    case ComplexUnary::Abs:
      return mul(sign(x), g);
    case ComplexUnary::Angle: {
      const Tensor size = abs(x);
      const Tensor turned = view_as_complex(stack({neg(imag(x)), real(x)}, -1));
      return where(eq(size.detach(), 0), 0, mul(div(turned, mul(size, size)), g));
    }
    case ComplexUnary::Sgn: {
      const Tensor size = abs(x), along = real(times_conj(g, y));
      return where(eq(size.detach(), 0), 0, div(sub(g, mul(y, along)), size));
    }
    default:
      return times_conj(g, slope(op, x, y));
  }
}

}  // namespace

void throw_no_complex(const char* op, DType dtype) {
  TERN_THROW(DTypeError,
             "{}: not implemented for {}: take real(), imag(), abs() or view_as_real() of the tensor", op,
             name(dtype));
}

Tensor aligned_parts(const Tensor& x, int64_t rank) {
  Tensor y = x.detach();
  while (y.dim() < rank) y = unsqueeze(y, 0);
  return real_view(y);
}

Tensor both_parts(BinaryOp join, const Tensor& parts) {
  return binary(join, select(parts, -1, 0), select(parts, -1, 1));
}

Tensor complex_number(const Scalar& value, DType dtype, Device device) {
  Tensor y = empty_contiguous({}, 1, dtype, device);
  detail::fill_number(y, value);
  return y;
}

namespace {

/// op of both parts of x and a real tensor.
Tensor with_real(BinaryOp op, const Tensor& x, const Tensor& real, DType common) {
  const Tensor factor = cast(real.detach(), real_dtype(common));
  return complex_view(binary(op, real_view(cast(x, common).detach()), unsqueeze(factor, -1)));
}

}  // namespace

Tensor complex_binary(BinaryOp op, const Tensor& a_given, const Tensor& b_given, DType common, Param alpha) {
  const bool scales = op == BinaryOp::Mul || op == BinaryOp::Div;
  if (scales && !is_complex(b_given.dtype())) return with_real(op, a_given, b_given, common);
  if (op == BinaryOp::Mul && !is_complex(a_given.dtype())) return with_real(op, b_given, a_given, common);
  const Tensor a = cast(a_given, common), b = cast(b_given, common);
  switch (op) {
    case BinaryOp::Add:
    case BinaryOp::Sub: {
      const int64_t rank = std::max(a.dim(), b.dim());
      return complex_view(binary(op, aligned_parts(a, rank), aligned_parts(b, rank), alpha));
    }
    case BinaryOp::Eq:
    case BinaryOp::Ne: {
      const int64_t rank = std::max(a.dim(), b.dim());
      return both_parts(op == BinaryOp::Eq ? BinaryOp::LogicalAnd : BinaryOp::LogicalOr,
                        binary(op, aligned_parts(a, rank), aligned_parts(b, rank)));
    }
    case BinaryOp::Mul:
      return launch_complex(ComplexBinary::Mul, a, b);
    case BinaryOp::Div:
      return launch_complex(ComplexBinary::Div, a, b);
    case BinaryOp::Pow:
      return launch_complex(ComplexBinary::Pow, a, b);
    default:
      throw_no_complex(name(op), a.dtype());
  }
}

Tensor complex_binary(BinaryOp op, const Tensor& a, const Scalar& b, DType common, Param alpha) {
  const bool scales = (op == BinaryOp::Mul || op == BinaryOp::Div) && !b.is_complex();
  if (scales) return complex_view(compact(binary(op, real_view(cast(a, common).detach()), b)));
  return complex_binary(op, a, complex_number(b, common, a.device()), common, alpha);
}

Tensor complex_binary(BinaryOp op, const Scalar& a, const Tensor& b, DType common) {
  return complex_binary(op, complex_number(a, common, b.device()), b, common);
}

Tensor complex_function(ComplexUnary op, const Tensor& x) {
  TERN_CHECK(is_complex_computable(x.dtype()), DTypeError,
             "{}: dtype {} is not supported: of complex numbers complex64 and complex128 are", name(op),
             name(x.dtype()));
  Tensor y = launch_complex(op, x);
  if (tracks_grad(x))
    record(name(op), y, {x}, [op, x_ = save(x), y_ = save_output(y)](GradContext& c, const Tensor& g) {
      return gradient(op, g, c[x_], c[y_]);
    });
  return y;
}

Tensor times_conj(const Tensor& g, const Tensor& x) {
  if (!is_complex(x.dtype())) return mul(g, x);
  if (!is_complex(g.dtype()) || tracks_grad(g, x)) return mul(g, conj(x));
  check_same_device("mul", {{"the gradient", g}, {"the slope", x}});
  const DType common = promote_types(g.dtype(), x.dtype());
  return launch_complex(ComplexBinary::MulConj, cast(g, common), cast(x, common));
}

Tensor complex_power(const Tensor& a, const Tensor& b) {
  Tensor y = binary(BinaryOp::Pow, a, b);
  if (tracks_grad(a, b))
    record("pow", y, {a, b},
           [sa = Side(a), sb = Side(b), a_ = save(a), b_ = save(b), y_ = save_output(y)](GradContext& c,
                                                                                         const Tensor& g) {
             const Tensor base = c[a_], exponent = c[b_];
             Tensor ga, gb;
             if (c.needs(0))
               ga = sa.of(where(eq(exponent.detach(), 0), 0,
                                times_conj(g, mul(exponent, pow(base, sub(exponent, 1))))));
             if (c.needs(1))
               gb =
                   sb.of(where(eq(base.detach(), 0), 0, times_conj(g, mul(c[y_], log(to(base, g.dtype()))))));
             return std::array<Tensor, 2>{ga, gb};
           });
  return y;
}

Tensor& complex_in_place(Tensor& self, Tensor (*function)(const Tensor&)) {
  return copy_(self, function(tracks_grad(self) ? clone(self) : self));
}

Scalar conj(const Scalar& number) {
  return number.is_complex() ? Scalar(std::complex<double>(number.real(), -number.imag())) : number;
}

}  // namespace tern
