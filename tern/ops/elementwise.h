// The layer between pointwise operators and their kernels: promotion, broadcasting, result, launch. No
// gradients here.
#pragma once

#include <optional>
#include <string_view>

#include "tern/core/tensor.h"
#include "tern/kernels/pointwise.h"

namespace tern {

/// Both forms of a number.
inline Param param_of(const Scalar& s) { return {s.to_double(), s.to_int()}; }
inline Param param_of(double value) { return {value, Scalar(value).to_int()}; }

/// op(x). Float operators turn integers into the default dtype. Throws DTypeError for a dtype that the
/// operator does not take.
Tensor unary(UnaryOp op, const Tensor& x, Param first = {}, Param second = {});
/// op(a, b) with broadcasting and promotion. A 0-d CPU tensor may meet a tensor of any device.
Tensor binary(BinaryOp op, const Tensor& a, const Tensor& b, Param first = {}, Param second = {});
/// op(a, b), which have one dtype, shape and device, into `out`, which has them too.
void binary_out(BinaryOp op, const Tensor& out, const Tensor& a, const Tensor& b, Param first = {});
/// op(a, number) and op(number, b).
Tensor binary(BinaryOp op, const Tensor& a, const Scalar& b, Param first = {}, Param second = {});
Tensor binary(BinaryOp op, const Scalar& a, const Tensor& b, Param param = {});
/// op(a, b, c) with broadcasting and promotion. 0-d CPU tensors may meet tensors of any device.
Tensor ternary(TernaryOp op, const Tensor& a, const Tensor& b, const Tensor& c, Param value = {});

/// self = op(self) and so on, in place; the result is converted to self's dtype when its category allows.
/// Throws DTypeError when it does not ("result type float32 can't be cast to int64").
void unary_in_place(UnaryOp op, const Tensor& self, Param first = {}, Param second = {});
void binary_in_place(BinaryOp op, const Tensor& self, const Tensor& other, Param param = {});
void binary_in_place(BinaryOp op, const Tensor& self, const Scalar& other, Param first = {},
                     Param second = {});
void ternary_in_place(TernaryOp op, const Tensor& self, const Tensor& b, const Tensor& c, Param value = {});

/// Throws DTypeError when a result can not be written into self, ShapeError when it has another shape; `op`
/// without its underscore.
void check_result_fits(std::string_view op, DType result, DType self);
void check_broadcasts_to(std::string_view op, const Tensor& self, const Shape& shape);
/// Throws DTypeError unless the dtype is a floating one.
void check_takes_floats(const char* op, DType dtype);
/// Throws DTypeError when a or b is bool: `a - b` has no meaning then.
void check_subtraction(const char* op, DType a, DType b);

/// Bounds of a clamp in both forms, and the dtype of its result.
struct ClampRange {
  DType dtype;
  Param low;
  Param high;
};
/// Throws ValueError when neither bound is given.
ClampRange clamp_range(const Tensor& x, const std::optional<Scalar>& min, const std::optional<Scalar>& max);
/// Where clamp has slope 1: strictly between the bounds, as in PyTorch 2.15 (1 at the bounds before).
Tensor clamp_inside(const Tensor& x, const std::optional<Scalar>& min, const std::optional<Scalar>& max);

namespace detail {
/// Throws ValueError for another mode than "floor" and "trunc".
BinaryOp rounded_division(std::string_view mode);
/// Throws ValueError for integers to a negative integer power.
void check_integer_exponent(DType dtype, const Scalar& exponent);
/// The operator that is pow(x, exponent) for tensors like x, if there is one of one operand.
std::optional<UnaryOp> unary_power(const Tensor& x, const Scalar& exponent);
/// The least and the largest number that logit takes, NaN where all are taken.
struct LogitBounds {
  double low, high;
  explicit LogitBounds(const std::optional<double>& eps);
  bool clamps() const { return low == low; }
};
/// Throws DTypeError for integers, and for an end or weight of another dtype; an undefined weight is a
/// number.
void check_lerp(const Tensor& start, const Tensor& end, const Tensor& weight);
/// Throws DTypeError for integers.
void check_addcdiv(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2);
/// Throws DTypeError when integers are to be multiplied by a float.
void check_value(const char* op, DType dtype, const Scalar& value);
}  // namespace detail

}  // namespace tern
