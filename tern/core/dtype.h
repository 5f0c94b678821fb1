// DType: what one element is. Names, sizes, categories, type promotion, and the one switch from a DType to a
// C++ type.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "tern/base/error.h"
#include "tern/core/half.h"

namespace tern {

/// The element types. Of those after Float64, which are held, loaded and saved, operators compute on
/// Complex64 and Complex128 alone.
enum class DType : uint8_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  UInt16,
  UInt32,
  UInt64,
  Complex64,
  Complex128,
  Float8_e4m3fn,
  Float8_e5m2,
  Float8_e4m3fnuz,
  Float8_e5m2fnuz,
  Float8_e8m0fnu,
  Complex32,
  BComplex32,  ///< of two bfloat16
  // Integers that stand for numbers by a scale and a zero point, which the tensor does not have.
  QUInt8,
  QInt8,
  QInt32,
  QUInt4x2,
  QUInt2x4,
  // Fewer bits than a byte, one number in each byte.
  UInt1,
  UInt2,
  UInt3,
  UInt4,
  UInt5,
  UInt6,
  UInt7,
  Int1,
  Int2,
  Int3,
  Int4,
  Int5,
  Int6,
  Int7,
  // Packed: one element holds several numbers.
  Float4_e2m1fn_x2,
  Float6_e2m3fn_x4,
  Float6_e3m2fn_x4,
  Bits8,
  Bits16,
  Bits1x8,
  Bits2x4,
  Bits4x2,
};
inline constexpr int kNumDTypes = static_cast<int>(DType::Bits4x2) + 1;

inline constexpr DType bool_ = DType::Bool;
inline constexpr DType uint8 = DType::UInt8;
inline constexpr DType int8 = DType::Int8;
inline constexpr DType int16 = DType::Int16;
inline constexpr DType int32 = DType::Int32;
inline constexpr DType int64 = DType::Int64;
inline constexpr DType float16 = DType::Float16;
inline constexpr DType bfloat16 = DType::BFloat16;
inline constexpr DType float32 = DType::Float32;
inline constexpr DType float64 = DType::Float64;
inline constexpr DType complex64 = DType::Complex64;
inline constexpr DType complex128 = DType::Complex128;

/// Bytes of one element.
constexpr size_t itemsize(DType dtype) noexcept {
  constexpr uint8_t sizes[kNumDTypes] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 2, 4, 8, 8, 16, 1, 1,
                                         1, 1, 1, 4, 4, 1, 1, 4, 1, 1, 1, 1, 1, 1, 1,  1, 1,
                                         1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 1, 2, 1, 1, 1};
  return sizes[static_cast<int>(dtype)];
}
/// PyTorch's name without "torch.": "float32".
std::string_view name(DType dtype) noexcept;
/// The number that a byte of a floating-point type of eight bits stands for (Micikevicius et al. 2022,
/// "FP8 formats for deep learning"; the "fnuz" types have no negative zero, whose pattern is NaN).
double float8_value(DType dtype, uint8_t bits) noexcept;
/// From "float32", "torch.float32", or PyTorch's short names ("float", "half", "long", ...). Throws
/// DTypeError.
DType parse_dtype(std::string_view text);

constexpr bool is_floating_point(DType d) noexcept { return d >= DType::Float16 && d <= DType::Float64; }
/// Integers, without bool.
constexpr bool is_integral(DType d) noexcept { return d >= DType::UInt8 && d <= DType::Int64; }
constexpr bool is_bool(DType d) noexcept { return d == DType::Bool; }
constexpr bool is_complex(DType d) noexcept {
  return d == DType::Complex32 || d == DType::BComplex32 || d == DType::Complex64 || d == DType::Complex128;
}
/// The complex numbers that operators compute on: two floats of real_dtype() beside each other.
constexpr bool is_complex_computable(DType d) noexcept {
  return d == DType::Complex64 || d == DType::Complex128;
}
/// Of the parts of a computable complex dtype; other dtypes themselves.
constexpr DType real_dtype(DType d) noexcept {
  return d == DType::Complex64 ? DType::Float32 : d == DType::Complex128 ? DType::Float64 : d;
}
/// The complex numbers that hold what `d` holds: Complex128 for Float64, else Complex64.
constexpr DType complex_dtype(DType d) noexcept {
  return d == DType::Float64 || d == DType::Complex128 ? DType::Complex128 : DType::Complex64;
}
/// One of the floating-point types of eight bits.
constexpr bool is_float8(DType d) noexcept { return d >= DType::Float8_e4m3fn && d <= DType::Float8_e8m0fnu; }
/// Its numbers are understood only with a scale and a zero point.
constexpr bool is_quantized(DType d) noexcept { return d >= DType::QUInt8 && d <= DType::QUInt2x4; }
/// True when all kernels take it; complex numbers have some of their own.
constexpr bool is_computable(DType d) noexcept { return d <= DType::Float64; }

/// The dtype of a result of two tensors of the same kind, as PyTorch's `promote_types`.
/// Throws DTypeError for dtypes that no operator computes on, unless both are equal.
DType promote_types(DType a, DType b);

/// The dtype that factories give floats by default; float32 at first.
DType get_default_dtype() noexcept;
/// Throws DTypeError unless floating point.
void set_default_dtype(DType dtype);

/// std::complex, and what looks like it.
template <class T>
concept ComplexNumber = requires(T x) {
  { T(x.real(), x.imag()) } -> std::same_as<T>;
  requires std::is_floating_point_v<typename T::value_type>;
};

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::Bool;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::UInt8;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::Int8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::Int16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::Int32;
  else if constexpr (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 8)
    return DType::Int64;
  else if constexpr (std::is_same_v<T, Half>)
    return DType::Float16;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return DType::BFloat16;
  else if constexpr (std::is_same_v<T, float>)
    return DType::Float32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::Float64;
  else if constexpr (ComplexNumber<T>)
    return sizeof(T) == 8 ? DType::Complex64 : DType::Complex128;
  else
    static_assert(sizeof(T) == 0, "no DType has this C++ type");
}

[[noreturn]] void throw_not_computable(DType dtype);

/// Calls `f.template operator()<T>()` with the C++ type of a computable dtype. Throws DTypeError for the
/// others.
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Bool:
      return f.template operator()<bool>();
    case DType::UInt8:
      return f.template operator()<uint8_t>();
    case DType::Int8:
      return f.template operator()<int8_t>();
    case DType::Int16:
      return f.template operator()<int16_t>();
    case DType::Int32:
      return f.template operator()<int32_t>();
    case DType::Int64:
      return f.template operator()<int64_t>();
    case DType::Float16:
      return f.template operator()<Half>();
    case DType::BFloat16:
      return f.template operator()<BFloat16>();
    case DType::Float32:
      return f.template operator()<float>();
    case DType::Float64:
      return f.template operator()<double>();
    default:
      throw_not_computable(dtype);
  }
}

/// The same for the four floating-point dtypes.
template <class F>
decltype(auto) visit_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float16:
      return f.template operator()<Half>();
    case DType::BFloat16:
      return f.template operator()<BFloat16>();
    case DType::Float32:
      return f.template operator()<float>();
    case DType::Float64:
      return f.template operator()<double>();
    default:
      throw_not_computable(dtype);
  }
}

}  // namespace tern
