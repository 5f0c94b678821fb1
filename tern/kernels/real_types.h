// The types of what is computed in float32 or float64 alone, as linear algebra is.
#pragma once

#include "tern/core/dtype.h"

namespace tern {

/// Calls `f.operator()<T>()` with float for Float32 and double for Float64, which `dtype` must be one of.
template <class F>
decltype(auto) visit_real(DType dtype, F&& f) {
  if (dtype == DType::Float64) return f.template operator()<double>();
  return f.template operator()<float>();
}

}  // namespace tern
