// Windows, made of the functions of their places.
#include "tern/ops/window.h"

#include <numbers>

#include "tern/base/check.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/creation_checks.h"
#include "tern/ops/pointwise.h"

namespace tern {
namespace {

/// function(places), which go from 0 towards 1, where a symmetric window ends.
template <class Function>
Tensor window_of(const char* op, int64_t length, bool periodic, const TensorOptions& options,
                 Function function) {
  const DType dtype = options.dtype.value_or(get_default_dtype());
  TERN_CHECK(is_floating_point(dtype), DTypeError, "{}: expects a floating point dtype, got {}", op,
             name(dtype));
  TERN_CHECK(length >= 0, ValueError, "{}: requires non-negative window_length, got window_length={}", op,
             length);
  if (length <= 1) return ones({length}, options);
  const double last = static_cast<double>(periodic ? length : length - 1);
  const Tensor places = div(arange(length, {.dtype = DType::Float64, .device = options.device}), last);
  return detail::finish(to(function(places), dtype), options);
}

/// constant - slope * cos(turns * 2 pi * place).
Tensor cosine(const Tensor& place, double constant, double slope, double turns = 1) {
  return rsub(mul(cos(mul(place, turns * 2 * std::numbers::pi)), slope), constant);
}

}  // namespace

Tensor hann_window(int64_t window_length, bool periodic, const TensorOptions& options) {
  return window_of("hann_window", window_length, periodic, options,
                   [](const Tensor& place) { return cosine(place, 0.5, 0.5); });
}

Tensor hamming_window(int64_t window_length, bool periodic, double alpha, double beta,
                      const TensorOptions& options) {
  return window_of("hamming_window", window_length, periodic, options,
                   [&](const Tensor& place) { return cosine(place, alpha, beta); });
}

Tensor blackman_window(int64_t window_length, bool periodic, const TensorOptions& options) {
  return window_of("blackman_window", window_length, periodic, options, [](const Tensor& place) {
    return add(cosine(place, 0.42, 0.5), cosine(place, 0, -0.08, /*turns=*/2));
  });
}

Tensor bartlett_window(int64_t window_length, bool periodic, const TensorOptions& options) {
  return window_of("bartlett_window", window_length, periodic, options,
                   [](const Tensor& place) { return rsub(abs(sub(mul(place, 2), 1)), 1); });
}

}  // namespace tern
