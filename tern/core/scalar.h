// Scalar: one number with its kind, for arguments that may be an integer, a float or a bool.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "tern/core/dtype.h"

namespace tern {

/// A number given from outside a tensor. It takes part in type promotion by its kind alone, as Python numbers
/// do.
class Scalar {
 public:
  template <class T>
  requires std::is_same_v<T, bool> Scalar(T value) : kind_(DType::Bool), integer_(value ? 1 : 0) {}
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) Scalar(T value)
      : kind_(DType::Int64), integer_(static_cast<int64_t>(value)) {}
  template <class T>
  requires std::is_floating_point_v<T> Scalar(T value)
      : kind_(DType::Float64), floating_(static_cast<double>(value)) {}

  /// Bool, Int64 or Float64.
  DType kind() const noexcept { return kind_; }
  bool is_floating_point() const noexcept { return kind_ == DType::Float64; }
  double to_double() const noexcept {
    return kind_ == DType::Float64 ? floating_ : static_cast<double>(integer_);
  }
  /// Floats are cut toward zero; those that do not fit, and NaN, give the smallest number.
  int64_t to_int() const noexcept {
    if (kind_ != DType::Float64) return integer_;
    return floating_ >= -0x1p63 && floating_ < 0x1p63 ? static_cast<int64_t>(floating_) : INT64_MIN;
  }
  bool to_bool() const noexcept { return kind_ == DType::Float64 ? floating_ != 0 : integer_ != 0; }

 private:
  DType kind_;
  union {
    int64_t integer_;
    double floating_;
  };
};

/// The dtype of `tensor op scalar`: the tensor's, unless the scalar's kind is of a higher category.
DType promote_with_scalar(DType tensor_dtype, const Scalar& scalar);

}  // namespace tern
