// Names of dtypes and type promotion.
#include "tern/core/dtype.h"

#include <array>
#include <atomic>

#include "tern/base/check.h"

namespace tern {
namespace {

constexpr std::array<std::string_view, kNumDTypes> kNames = {
    "bool",    "uint8",     "int8",       "int16",         "int32",      "int64",
    "float16", "bfloat16",  "float32",    "float64",       "uint16",     "uint32",
    "uint64",  "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"};

struct Alias {
  std::string_view text;
  DType dtype;
};
constexpr Alias kAliases[] = {
    {"float", DType::Float32},    {"double", DType::Float64},    {"half", DType::Float16},
    {"long", DType::Int64},       {"int", DType::Int32},         {"short", DType::Int16},
    {"fp32", DType::Float32},     {"fp16", DType::Float16},      {"bf16", DType::BFloat16},
    {"cfloat", DType::Complex64}, {"cdouble", DType::Complex128}};

std::atomic<DType> default_dtype{DType::Float32};

}  // namespace

std::string_view name(DType dtype) noexcept { return kNames[static_cast<size_t>(dtype)]; }

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
