// Promotion of a tensor's dtype with a number's kind.
#include "tern/core/scalar.h"

#include "tern/base/check.h"

namespace tern {

void Scalar::throw_overflow() const {
  TERN_THROW(ValueError, "value {} cannot be converted to this type without overflow",
             has_float() ? fmt::format("{}", floating_) : fmt::format("{}", integer_));
}

void Scalar::throw_imaginary() const {
  TERN_THROW(ValueError,
             "value ({}{:+}j) cannot be converted to a real number without overflow: its imaginary part is "
             "not 0",
             floating_, imaginary_);
}

DType promote_with_scalar(DType tensor_dtype, const Scalar& scalar) {
  if (scalar.is_complex() && is_computable(tensor_dtype))
    return complex_dtype(is_floating_point(tensor_dtype) ? tensor_dtype : get_default_dtype());
  if (is_floating_point(tensor_dtype) || !is_computable(tensor_dtype)) return tensor_dtype;
  if (scalar.is_floating_point()) return get_default_dtype();
  if (is_bool(tensor_dtype) && scalar.kind() == DType::Int64) return DType::Int64;
  return tensor_dtype;
}

}  // namespace tern
