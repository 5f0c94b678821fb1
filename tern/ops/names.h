// PyTorch's second names of operators, with the arguments, results and errors of the first ones. Those that
// are methods too, in both forms, are listed in core/second_names.h.
#pragma once

#include <concepts>
#include <optional>
#include <vector>

#include "tern/core/second_names.h"
#include "tern/ops/compare.h"
#include "tern/ops/complex.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/scan.h"
#include "tern/ops/shape.h"

namespace tern {

#define TERN_SECOND_NAME(second, first) \
  inline Tensor second(const Tensor& x) { return first(x); }
TERN_SECOND_NAMES_OF_ONE(TERN_SECOND_NAME)
#undef TERN_SECOND_NAME

#define TERN_SECOND_NAME(second, first) \
  Tensor second(const Tensor& a, const auto& b, const auto&... more) { return first(a, b, more...); }
TERN_SECOND_NAMES_OF_TWO(TERN_SECOND_NAME)
#undef TERN_SECOND_NAME

inline Tensor clip(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max = {}) {
  return clamp(x, min, max);
}
Tensor clip(const Tensor& x, const std::same_as<Tensor> auto& min, const std::same_as<Tensor> auto& max) {
  return clamp(x, min, max);
}
inline Tensor concat(const std::vector<Tensor>& tensors, int64_t dim = 0) { return cat(tensors, dim); }
inline Tensor concatenate(const std::vector<Tensor>& tensors, int64_t dim = 0) { return cat(tensors, dim); }
inline Tensor row_stack(const std::vector<Tensor>& tensors) { return vstack(tensors); }
inline Tensor swapdims(const Tensor& x, int64_t dim0, int64_t dim1) { return transpose(x, dim0, dim1); }
inline Tensor moveaxis(const Tensor& x, int64_t source, int64_t destination) {
  return movedim(x, source, destination);
}
inline Tensor moveaxis(const Tensor& x, IntArrayRef source, IntArrayRef destination) {
  return movedim(x, source, destination);
}
/// The dot product with the conjugate of a.
inline Tensor vdot(const Tensor& a, const Tensor& b) { return dot(conj(a), b); }
inline Tensor trapz(const Tensor& y, const Tensor& x, int64_t dim = -1) { return trapezoid(y, x, dim); }
inline Tensor trapz(const Tensor& y, double dx = 1, int64_t dim = -1) { return trapezoid(y, dx, dim); }

}  // namespace tern
