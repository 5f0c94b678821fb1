// Names of dtypes and type promotion.
#include "tern/core/dtype.h"

#include <array>
#include <atomic>
#include <cmath>
#include <limits>

#include "tern/base/check.h"

namespace tern {
namespace {

constexpr std::array<std::string_view, kNumDTypes> kNames = {"bool",
                                                             "uint8",
                                                             "int8",
                                                             "int16",
                                                             "int32",
                                                             "int64",
                                                             "float16",
                                                             "bfloat16",
                                                             "float32",
                                                             "float64",
                                                             "uint16",
                                                             "uint32",
                                                             "uint64",
                                                             "complex64",
                                                             "complex128",
                                                             "float8_e4m3fn",
                                                             "float8_e5m2",
                                                             "float8_e4m3fnuz",
                                                             "float8_e5m2fnuz",
                                                             "float8_e8m0fnu",
                                                             "complex32",
                                                             "bcomplex32",
                                                             "quint8",
                                                             "qint8",
                                                             "qint32",
                                                             "quint4x2",
                                                             "quint2x4",
                                                             "uint1",
                                                             "uint2",
                                                             "uint3",
                                                             "uint4",
                                                             "uint5",
                                                             "uint6",
                                                             "uint7",
                                                             "int1",
                                                             "int2",
                                                             "int3",
                                                             "int4",
                                                             "int5",
                                                             "int6",
                                                             "int7",
                                                             "float4_e2m1fn_x2",
                                                             "float6_e2m3fn_x4",
                                                             "float6_e3m2fn_x4",
                                                             "bits8",
                                                             "bits16",
                                                             "bits1x8",
                                                             "bits2x4",
                                                             "bits4x2"};

struct Alias {
  std::string_view text;
  DType dtype;
};
constexpr Alias kAliases[] = {
    {"float", DType::Float32},   {"double", DType::Float64},   {"half", DType::Float16},
    {"long", DType::Int64},      {"int", DType::Int32},        {"short", DType::Int16},
    {"fp32", DType::Float32},    {"fp16", DType::Float16},     {"bf16", DType::BFloat16},
    {"chalf", DType::Complex32}, {"cfloat", DType::Complex64}, {"cdouble", DType::Complex128}};

std::atomic<DType> default_dtype{DType::Float32};

}  // namespace

std::string_view name(DType dtype) noexcept { return kNames[static_cast<size_t>(dtype)]; }

double float8_value(DType dtype, uint8_t bits) noexcept {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (dtype == DType::Float8_e8m0fnu) return bits == 0xff ? kNan : std::ldexp(1.0, bits - 127);
  const bool no_negative_zero = dtype == DType::Float8_e4m3fnuz || dtype == DType::Float8_e5m2fnuz;
  const bool wide = dtype == DType::Float8_e5m2 || dtype == DType::Float8_e5m2fnuz;
  const int mantissa_bits = wide ? 2 : 3, bias = (wide ? 15 : 7) + (no_negative_zero ? 1 : 0);
  const int mantissa = bits & ((1 << mantissa_bits) - 1), exponent = (bits & 0x7f) >> mantissa_bits;
  const double sign = bits & 0x80 ? -1 : 1;
  if (no_negative_zero && bits == 0x80) return kNan;
  if (dtype == DType::Float8_e4m3fn && (bits & 0x7f) == 0x7f) return kNan;
  if (dtype == DType::Float8_e5m2 && exponent == 31)
    return mantissa ? kNan : sign * std::numeric_limits<double>::infinity();
  const int whole = exponent == 0 ? mantissa : (1 << mantissa_bits) + mantissa;
  return sign * std::ldexp(whole, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
}

DType parse_dtype(std::string_view text) {
  std::string_view bare = text.starts_with("torch.") ? text.substr(6) : text;
  for (int i = 0; i < kNumDTypes; ++i)
    if (kNames[static_cast<size_t>(i)] == bare) return static_cast<DType>(i);
  for (const Alias& alias : kAliases)
    if (alias.text == bare) return alias.dtype;
  TERN_THROW(
      DTypeError,
      "unknown dtype '{}': expected one of PyTorch's names, such as float32, float16, bfloat16, int64, bool",
      text);
}

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (is_complex_computable(a) || is_complex_computable(b)) {
    if (!is_complex_computable(a)) std::swap(a, b);
    if (is_complex_computable(b)) return DType::Complex128;
    if (is_computable(b)) return b == DType::Float64 ? DType::Complex128 : a;
  }
  TERN_CHECK(is_computable(a) && is_computable(b), DTypeError,
             "no type promotion between {} and {}: convert one with to(dtype)", name(a), name(b));
  if (a > b) std::swap(a, b);  // the enum is ordered by category, then by width
  if (is_floating_point(b)) {
    if (a == DType::Float16 && b == DType::BFloat16) return DType::Float32;
    return b;
  }
  if (a == DType::UInt8 && b == DType::Int8) return DType::Int16;
  return b;
}

DType get_default_dtype() noexcept { return default_dtype.load(std::memory_order_relaxed); }

void set_default_dtype(DType dtype) {
  TERN_CHECK(is_floating_point(dtype), DTypeError,
             "set_default_dtype: only floating-point types are supported, got {}", name(dtype));
  default_dtype.store(dtype, std::memory_order_relaxed);
}

void throw_not_computable(DType dtype) {
  TERN_THROW(DTypeError, "no operator computes on dtype {}: convert the tensor with to(dtype) first",
             name(dtype));
}

}  // namespace tern
