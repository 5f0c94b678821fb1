// Operators of three operands with their gradients.
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"

namespace tern {

Tensor lerp(const Tensor& start, const Tensor& end, const Tensor& weight) {
  detail::check_lerp(start, end, weight);
  Tensor y = ternary(TernaryOp::LerpEach, start, end, weight);
  if (tracks_grad(start, end, weight))
    record("lerp", y, {start, end, weight},
           [s0 = Side(start), s1 = Side(end), sw = Side(weight), start_ = save(start), end_ = save(end),
            weight_ = save(weight)](GradContext& c, const Tensor& g) {
             const Tensor w = c[weight_];
             return std::array<Tensor, 3>{c.needs(0) ? s0.of(mul(g, rsub(w, 1))) : Tensor(),
                                          c.needs(1) ? s1.of(mul(g, w)) : Tensor(),
                                          c.needs(2) ? sw.of(mul(g, sub(c[end_], c[start_]))) : Tensor()};
           });
  return y;
}

Tensor lerp(const Tensor& start, const Tensor& end, const Scalar& weight) {
  detail::check_lerp(start, end, {});
  const double w = weight.to_double();
  Tensor y = binary(BinaryOp::Lerp, start, end, param_of(w));
  if (tracks_grad(start, end))
    record("lerp", y, {start, end}, [s0 = Side(start), s1 = Side(end), w](GradContext& c, const Tensor& g) {
      return std::array<Tensor, 2>{c.needs(0) ? s0.of(mul(g, 1 - w)) : Tensor(),
                                   c.needs(1) ? s1.of(mul(g, w)) : Tensor()};
    });
  return y;
}

Tensor addcmul(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_widest(addcmul, x, tensor1, tensor2, value);
  detail::check_value("addcmul", result_type(x, tensor1, tensor2), value);
  Tensor y = ternary(TernaryOp::Addcmul, x, tensor1, tensor2, param_of(value));
  if (tracks_grad(x, tensor1, tensor2))
    record("addcmul", y, {x, tensor1, tensor2},
           [sx = Side(x), s1 = Side(tensor1), s2 = Side(tensor2),
            a_ = save(tensor2.requires_grad() ? tensor1 : Tensor()),
            b_ = save(tensor1.requires_grad() ? tensor2 : Tensor()), value](GradContext& c, const Tensor& g) {
             return std::array<Tensor, 3>{c.needs(0) ? sx.of(g) : Tensor(),
                                          c.needs(1) ? s1.of(mul(g, mul(c[b_], value))) : Tensor(),
                                          c.needs(2) ? s2.of(mul(g, mul(c[a_], value))) : Tensor()};
           });
  return y;
}

Tensor addcdiv(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_widest(addcdiv, x, tensor1, tensor2, value);
  detail::check_addcdiv(x, tensor1, tensor2);
  Tensor y = ternary(TernaryOp::Addcdiv, x, tensor1, tensor2, param_of(value));
  if (tracks_grad(x, tensor1, tensor2))
    record("addcdiv", y, {x, tensor1, tensor2},
           [sx = Side(x), s1 = Side(tensor1), s2 = Side(tensor2),
            a_ = save(tensor2.requires_grad() ? tensor1 : Tensor()), b_ = save(tensor2),
            value](GradContext& c, const Tensor& g) {
             const Tensor b = c[b_];
             Tensor ga, gb;
             if (c.needs(1)) ga = s1.of(mul(g, value / b));
             if (c.needs(2)) gb = s2.of(neg(mul(g, div(mul(c[a_], value), square(b)))));
             return std::array<Tensor, 3>{c.needs(0) ? sx.of(g) : Tensor(), ga, gb};
           });
  return y;
}

Tensor clamp_min(const Tensor& x, const Scalar& min) { return clamp(x, min, {}); }
Tensor clamp_max(const Tensor& x, const Scalar& max) { return clamp(x, {}, max); }
Tensor clamp_min(const Tensor& x, const Tensor& min) { return maximum(x, min); }
Tensor clamp_max(const Tensor& x, const Tensor& max) { return minimum(x, max); }

namespace detail {

void check_lerp(const Tensor& start, const Tensor& end, const Tensor& weight) {
  check_takes_floats("lerp", start.dtype());
  const auto check = [&](const char* what, const Tensor& x) {
    TERN_CHECK(x.dtype() == start.dtype(), DTypeError,
               "lerp: expected dtype {} for `{}` but got dtype {}: convert it with to(dtype)",
               name(start.dtype()), what, name(x.dtype()));
  };
  check("end", end);
  if (weight.defined() && weight.dim() != 0) check("weight", weight);
}

void check_addcdiv(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2) {
  TERN_CHECK(
      is_floating_point(tensor1.dtype()) || is_floating_point(tensor2.dtype()), DTypeError,
      "addcdiv: Integer division with addcdiv is not supported (tensor1 is {}, tensor2 is {}): convert "
      "one with to(dtype), or use div() with a rounding mode",
      name(tensor1.dtype()), name(tensor2.dtype()));
  check_takes_floats("addcdiv", result_type(x, tensor1, tensor2));
}

void check_value(const char* op, DType dtype, const Scalar& value) {
  TERN_CHECK(is_floating_point(dtype) || !value.is_floating_point(), DTypeError,
             "{}: For integral input tensors, argument value must not be a floating point number (value is "
             "{}, the tensors are {})",
             op, value.to_double(), name(dtype));
}

/// One of the bounds where they exclude each other: the upper one. Ties are shared as by maximum and minimum,
/// but of three equal numbers x has the gradient.
Tensor clamp_between(const Tensor& x, const Tensor& min, const Tensor& max) {
  TERN_CHECK(min.defined() || max.defined(), ValueError,
             "clamp: At least one of 'min' or 'max' must not be None");
  if (!max.defined()) return maximum(x, min);
  if (!min.defined()) return minimum(x, max);
  // Two passes: rare beside the bounds that are numbers.
  Tensor y = minimum(maximum(x.detach(), min.detach()), max.detach());
  if (tracks_grad(x, min, max))
    record(
        "clamp", y, {x, min, max},
        [sx = Side(x), s0 = Side(min), s1 = Side(max), x_ = save(x), min_ = save(min), max_ = save(max)](
            GradContext& c, const Tensor& g) {
          const Tensor v = c[x_].detach(), low = c[min_].detach(), high = c[max_].detach();
          const Tensor half = mul(g, 0.5);
          const Tensor at_low = eq(v, low), at_high = eq(v, high);
          const Tensor below = lt(v, low), above = gt(v, high);
          const Tensor ordered = lt(low, high), possible = le(low, high);
          Tensor gx, g0, g1;
          if (c.needs(0)) {
            const Tensor shared = logical_and(logical_or(at_low, at_high), ordered);
            gx = sx.of(where(logical_or(below, above), 0, where(shared, half, g)));
          }
          if (c.needs(1))
            g0 = s0.of(where(logical_and(below, possible), g, where(logical_and(at_low, ordered), half, 0)));
          if (c.needs(2))
            g1 = s1.of(where(logical_or(lt(high, low), logical_and(above, possible)), g,
                             where(logical_and(at_high, ordered), half, 0)));
          return std::array<Tensor, 3>{gx, g0, g1};
        });
  return y;
}

}  // namespace detail
}  // namespace tern
