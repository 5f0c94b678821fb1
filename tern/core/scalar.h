// Scalar: one number with its kind, for arguments that may be an integer, a float or a bool.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "tern/core/dtype.h"

namespace tern {

/// A number given from outside a tensor; ValueError for an integer beyond int64. It takes part in type
/// promotion by its kind alone, as Python numbers do.
class Scalar {
 public:
  template <class T>
  requires std::is_same_v<T, bool> Scalar(T value) : kind_(DType::Bool), integer_(value ? 1 : 0) {}
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) Scalar(T value)
      : kind_(DType::Int64), integer_(static_cast<int64_t>(value)) {
    if (!std::in_range<int64_t>(value)) throw_overflow();
  }
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
  /// As a bool, integer or float; floats are cut toward zero. Throws ValueError where the number, or NaN or
  /// infinity for an integer, does not fit.
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, bool>) {
      return to_bool();
    } else if constexpr (std::is_integral_v<T>) {
      // Cut, a float lies between limits that are exact: powers of two, or 0.
      constexpr double kLowest = static_cast<double>(std::numeric_limits<T>::min());
      constexpr double kEnd = 2.0 * static_cast<double>(T{1} << (std::numeric_limits<T>::digits - 1));
      const bool fits = kind_ == DType::Float64
                            ? std::trunc(floating_) >= kLowest && std::trunc(floating_) < kEnd
                            : std::in_range<T>(integer_);
      if (!fits) throw_overflow();
      return kind_ == DType::Float64 ? static_cast<T>(floating_) : static_cast<T>(integer_);
    } else {
      const double value = to_double();
      if constexpr (!std::is_floating_point_v<T>) return static_cast<T>(value);
      const bool finite = value - value == 0;
      if (finite && (value > static_cast<double>(std::numeric_limits<T>::max()) ||
                     value < static_cast<double>(std::numeric_limits<T>::lowest())))
        throw_overflow();
      return static_cast<T>(value);
    }
  }

 private:
  [[noreturn]] void throw_overflow() const;

  DType kind_;
  union {
    int64_t integer_;
    double floating_;
  };
};

/// The dtype of `tensor op scalar`: the tensor's, unless the scalar's kind is of a higher category.
DType promote_with_scalar(DType tensor_dtype, const Scalar& scalar);

}  // namespace tern
