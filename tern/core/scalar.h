// Scalar: one number with its kind, for arguments that may be an integer, a float, a bool or a complex
// number.
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
  template <ComplexNumber T>
  Scalar(const T& value)
      : kind_(DType::Complex128),
        floating_(static_cast<double>(value.real())),
        imaginary_(static_cast<double>(value.imag())) {}

  /// Bool, Int64, Float64 or Complex128.
  DType kind() const noexcept { return kind_; }
  bool is_floating_point() const noexcept { return kind_ == DType::Float64; }
  bool is_complex() const noexcept { return kind_ == DType::Complex128; }
  /// The parts, of any kind of number.
  double real() const noexcept { return has_float() ? floating_ : static_cast<double>(integer_); }
  double imag() const noexcept { return imaginary_; }
  /// Throws ValueError for a number with an imaginary part, as to_int does.
  double to_double() const {
    if (imaginary_ != 0) [[unlikely]]
      throw_imaginary();
    return real();
  }
  /// Floats are cut toward zero; those that do not fit, and NaN, give the smallest number.
  int64_t to_int() const {
    if (!has_float()) return integer_;
    const double value = to_double();
    return value >= -0x1p63 && value < 0x1p63 ? static_cast<int64_t>(value) : INT64_MIN;
  }
  bool to_bool() const noexcept { return has_float() ? floating_ != 0 || imaginary_ != 0 : integer_ != 0; }
  /// As a bool, integer, float or complex number; floats are cut toward zero. Throws ValueError where the
  /// number, or NaN or infinity for an integer, does not fit, or has an imaginary part.
  template <class T>
  T to() const {
    if constexpr (ComplexNumber<T>) {
      using Part = typename T::value_type;
      return T(static_cast<Part>(real()), static_cast<Part>(imag()));
    } else if constexpr (std::is_same_v<T, bool>) {
      return to_bool();
    } else if constexpr (std::is_integral_v<T>) {
      // Cut, a float lies between limits that are exact: powers of two, or 0.
      constexpr double kLowest = static_cast<double>(std::numeric_limits<T>::min());
      constexpr double kEnd = 2.0 * static_cast<double>(T{1} << (std::numeric_limits<T>::digits - 1));
      const double whole = has_float() ? std::trunc(to_double()) : 0;
      const bool fits = has_float() ? whole >= kLowest && whole < kEnd : std::in_range<T>(integer_);
      if (!fits) throw_overflow();
      return has_float() ? static_cast<T>(whole) : static_cast<T>(integer_);
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
  bool has_float() const noexcept { return kind_ == DType::Float64 || kind_ == DType::Complex128; }
  [[noreturn]] void throw_overflow() const;
  [[noreturn]] void throw_imaginary() const;

  DType kind_;
  union {
    int64_t integer_;
    double floating_;  ///< the real part of a complex number
  };
  double imaginary_ = 0;
};

/// The dtype of `tensor op scalar`: the tensor's, unless the scalar's kind is of a higher category.
DType promote_with_scalar(DType tensor_dtype, const Scalar& scalar);

}  // namespace tern
