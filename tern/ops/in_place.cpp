// The methods of Tensor that change it in place, with their gradients. A method's gradient never saves the
// tensor's old values by reference: they are gone; where a formula needs them a copy is kept.
#include "tern/autograd/arithmetic.h"
#include "tern/ops/activation.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/complex.h"
#include "tern/ops/complex_elementwise.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation_checks.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"

namespace tern {
namespace {

Tensor pass(GradContext&, const Tensor& g) { return g; }

/// self += sign * alpha * other.
Tensor& add_scaled(const char* op_name, BinaryOp op, Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_in_place(op_name, self);
  TERN_CHECK(is_bool(self.dtype()) || !is_bool(alpha.kind()), DTypeError,
             "{}: Boolean alpha only supported for Boolean results, not for {}: give 1 or 0", op_name,
             name(self.dtype()));
  TERN_CHECK(is_floating_point(self.dtype()) || is_complex(self.dtype()) || !alpha.is_floating_point(),
             DTypeError,
             "{}: For integral input tensors, argument alpha must not be a floating point number, got {} for "
             "{}: use "
             "an integer, or the form that is not in place with floats",
             op_name, alpha.to_double(), name(self.dtype()));
  binary_in_place(op, self, other, param_of(alpha));
  double factor = op == BinaryOp::Add ? alpha.to_double() : -alpha.to_double();
  record_in_place(op_name, self, {self, other},
                  [side = Side(other), factor](GradContext& c, const Tensor& g) {
                    Tensor other_grad;
                    if (c.needs(1)) other_grad = side.of(factor == 1 ? g : mul(g, factor));
                    return std::array<Tensor, 2>{g, other_grad};
                  });
  return self;
}

/// self = f(self) whose gradient is g * slope(result); `function` is f of complex numbers.
template <class Slope>
Tensor& apply_in_place(const char* op_name, UnaryOp op, Tensor (*function)(const Tensor&), Tensor& self,
                       Slope slope) {
  if (self.is_complex()) return complex_in_place(self, function);
  check_in_place(op_name, self);
  unary_in_place(op, self);
  self.storage()->bump_version();
  if (tracks_grad(self))
    detail::attach_in_place(
        self, detail::make_node(op_name, &self, 1,
                                [y_ = save_output(self), slope](GradContext& c, const Tensor& g) {
                                  return slope(g, c[y_]);
                                }));
  return self;
}

}  // namespace

Tensor& Tensor::copy_(const Tensor& source) { return tern::copy_(*this, source); }

Tensor& Tensor::fill_(const Scalar& value) {
  check_in_place("fill_", *this);
  if (is_complex_computable(dtype())) {
    detail::fill_number(*this, value);
  } else if (const Param number = detail::written_number("fill_", value, dtype()); numel() != 0) {
    FillArgs args;
    args.dtype = dtype();
    args.value = number;
    args.out = data_ptr();
    collapse<1>(args.geometry, shape(), {strides().data()});
    launch(current_stream(device()), kernels::fill, args);
  }
  record_in_place("fill_", *this, {*this},
                  [](GradContext&, const Tensor& g) { return filled(g.shape(), g.dtype(), g.device(), 0); });
  return *this;
}

Tensor& Tensor::zero_() { return fill_(0); }

Tensor& Tensor::add_(const Tensor& other, const Scalar& alpha) {
  return add_scaled("add_", BinaryOp::Add, *this, other, alpha);
}
Tensor& Tensor::sub_(const Tensor& other, const Scalar& alpha) {
  check_subtraction("sub_", dtype(), other.dtype());
  return add_scaled("sub_", BinaryOp::Sub, *this, other, alpha);
}

Tensor& Tensor::add_(const Scalar& other) {
  check_in_place("add_", *this);
  binary_in_place(BinaryOp::Add, *this, other, param_of(1.0));
  record_in_place("add_", *this, {*this}, pass);
  return *this;
}

Tensor& Tensor::sub_(const Scalar& other) {
  check_in_place("sub_", *this);
  check_subtraction("sub_", dtype(), other.kind());
  binary_in_place(BinaryOp::Sub, *this, other, param_of(1.0));
  record_in_place("sub_", *this, {*this}, pass);
  return *this;
}

Tensor& Tensor::mul_(const Tensor& other) {
  check_in_place("mul_", *this);
  Tensor before = tracks_grad(other) ? tern::clone(*this) : Tensor();
  binary_in_place(BinaryOp::Mul, *this, other);
  record_in_place("mul_", *this, {*this, other},
                  [before_ = save(before), other_ = save(tracks_grad(*this) ? other : Tensor()),
                   side = Side(other)](GradContext& c, const Tensor& g) {
                    return std::array<Tensor, 2>{
                        c.needs(0) ? tern::to(times_conj(g, c[other_]), g.dtype()) : Tensor(),
                        c.needs(1) ? side.of(times_conj(g, c[before_])) : Tensor()};
                  });
  return *this;
}

Tensor& Tensor::mul_(const Scalar& other) {
  check_in_place("mul_", *this);
  binary_in_place(BinaryOp::Mul, *this, other);
  record_in_place("mul_", *this, {*this},
                  [other](GradContext&, const Tensor& g) { return tern::mul(g, tern::conj(other)); });
  return *this;
}

Tensor& Tensor::div_(const Tensor& other) {
  check_in_place("div_", *this);
  Tensor before = tracks_grad(other) ? tern::clone(*this) : Tensor();
  binary_in_place(BinaryOp::Div, *this, other);
  record_in_place(
      "div_", *this, {*this, other},
      [before_ = save(before), other_ = save(other), side = Side(other)](GradContext& c, const Tensor& g) {
        Tensor divisor = c[other_];
        Tensor quotient = tern::div(g, tern::conj(divisor));
        return std::array<Tensor, 2>{
            tern::to(quotient, g.dtype()),
            c.needs(1) ? side.of(tern::neg(times_conj(quotient, tern::div(c[before_], divisor)))) : Tensor()};
      });
  return *this;
}

Tensor& Tensor::div_(const Scalar& other) {
  check_in_place("div_", *this);
  binary_in_place(BinaryOp::Div, *this, other);
  record_in_place("div_", *this, {*this},
                  [other](GradContext&, const Tensor& g) { return tern::div(g, tern::conj(other)); });
  return *this;
}

Tensor& Tensor::clamp_(std::optional<Scalar> min, std::optional<Scalar> max) {
  check_in_place("clamp_", *this);
  ClampRange range = clamp_range(*this, min, max);
  TERN_CHECK(range.dtype == dtype(), DTypeError,
             "clamp_: result type {} can't be cast to the desired output type {}: use clamp()",
             name(range.dtype), name(dtype()));
  Tensor inside;
  if (tracks_grad(*this)) inside = clamp_inside(detach(), min, max);
  unary_in_place(UnaryOp::Clamp, *this, range.low, range.high);
  record_in_place("clamp_", *this, {*this}, [inside_ = save(inside)](GradContext& c, const Tensor& g) {
    return tern::where(c[inside_], g, 0);
  });
  return *this;
}

Tensor& Tensor::relu_() {
  return apply_in_place("relu_", UnaryOp::Relu, tern::relu, *this,
                        [](const Tensor& g, const Tensor& y) { return tern::where(y <= 0, 0, g); });
}
Tensor& Tensor::exp_() {
  return apply_in_place("exp_", UnaryOp::Exp, tern::exp, *this,
                        [](const Tensor& g, const Tensor& y) { return tern::mul(g, y); });
}
Tensor& Tensor::sqrt_() {
  return apply_in_place("sqrt_", UnaryOp::Sqrt, tern::sqrt, *this,
                        [](const Tensor& g, const Tensor& y) { return tern::div(g, tern::mul(y, 2)); });
}
Tensor& Tensor::neg_() {
  return apply_in_place("neg_", UnaryOp::Neg, tern::neg, *this,
                        [](const Tensor& g, const Tensor&) { return tern::neg(g); });
}
Tensor& Tensor::sigmoid_() {
  return apply_in_place(
      "sigmoid_", UnaryOp::Sigmoid, tern::sigmoid, *this,
      [](const Tensor& g, const Tensor& y) { return tern::mul(g, tern::mul(y, rsub(y, 1))); });
}
Tensor& Tensor::tanh_() {
  return apply_in_place("tanh_", UnaryOp::Tanh, tern::tanh, *this, [](const Tensor& g, const Tensor& y) {
    return tern::mul(g, rsub(tern::square(y), 1));
  });
}

Tensor& Tensor::masked_fill_(const Tensor& mask, const Scalar& value) {
  check_in_place("masked_fill_", *this);
  Tensor filled_values = detach().masked_fill(mask, value);
  TERN_CHECK(filled_values.shape() == shape(), ShapeError,
             "masked_fill_: a mask of shape {} does not broadcast to the tensor's shape {}",
             to_string(mask.shape()), to_string(shape()));
  copy_elements(*this, cast(filled_values, dtype()));
  record_in_place("masked_fill_", *this, {*this}, [mask_ = save(mask)](GradContext& c, const Tensor& g) {
    return g.masked_fill(c[mask_], 0);
  });
  return *this;
}

}  // namespace tern
