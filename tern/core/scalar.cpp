// Promotion of a tensor's dtype with a number's kind.
#include "tern/core/scalar.h"

#include "tern/base/check.h"

namespace tern {

void Scalar::throw_overflow() const {
  TERN_THROW(ValueError, "value {} cannot be converted to this type without overflow",
             is_floating_point() ? fmt::format("{}", floating_) : fmt::format("{}", integer_));
}

DType promote_with_scalar(DType tensor_dtype, const Scalar& scalar) {
  if (is_floating_point(tensor_dtype) || !is_computable(tensor_dtype)) return tensor_dtype;
  if (scalar.is_floating_point()) return get_default_dtype();
  if (is_bool(tensor_dtype) && scalar.kind() == DType::Int64) return DType::Int64;
  return tensor_dtype;
}

}  // namespace tern
