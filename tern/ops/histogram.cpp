// bincount and histc, by sums into numbered places.
#include "tern/ops/histogram.h"

#include <cmath>
#include <limits>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/index_plan.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// How often each of 0, ..., count - 1 stands in the 1-D `numbers`.
Tensor count_numbers(const char* op, const Tensor& numbers, int64_t count) {
  Tensor counts = filled({count}, DType::Int64, numbers.device(), 0);
  if (numbers.numel() != 0)
    put_elements(plan_select(op, counts, 0, numbers), counts, IndexPutMode::Add, {}, param_of(1));
  return counts;
}

/// The smallest and the largest element. Blocks the host.
std::pair<Tensor, Tensor> host_extremes(const Tensor& x) {
  const auto [least, most] = aminmax(x);
  const Tensor both = to(stack({least, most}), kCPU);
  return {select(both, 0, 0), select(both, 0, 1)};
}

}  // namespace

Tensor bincount(const Tensor& x, const Tensor& weights, int64_t minlength) {
  const char* op = "bincount";
  TERN_CHECK(x.dim() == 1, ShapeError,
             "{}: only supports 1-d non-negative integral inputs, got shape {}: flatten it", op,
             to_string(x.shape()));
  TERN_CHECK(is_integral(x.dtype()) && x.dtype() != DType::Bool, DTypeError,
             "{}: only supports 1-d non-negative integral inputs, got {}: convert it with to(int64)", op,
             name(x.dtype()));
  TERN_CHECK(minlength >= 0, ValueError, "{}: minlength should be >= 0, got {}", op, minlength);
  if (weights.defined()) {
    check_same_device(op, {{"x", x}, {"weights", weights}});
    TERN_CHECK(weights.shape() == x.shape(), ShapeError,
               "{}: weights should be 1-d and have the same length as input, got {} for {}", op,
               to_string(weights.shape()), to_string(x.shape()));
  }
  if (x.numel() == 0) return filled({minlength}, DType::Int64, x.device(), 0);
  const Tensor numbers = cast(x, DType::Int64);
  const auto [least, most] = host_extremes(numbers);
  const int64_t smallest = item(least).to_int(), largest = item(most).to_int();
  TERN_CHECK(smallest >= 0, ValueError, "{}: only supports 1-d non-negative integral inputs, found {}", op,
             smallest);
  TERN_CHECK(largest < INT64_MAX, ValueError, "{}: {} is too large a number to count up to", op, largest);
  const int64_t count = std::max(largest + 1, minlength);
  if (!weights.defined()) return count_numbers(op, numbers, count);
  const DType dtype = weights.dtype() == DType::Float32 ? DType::Float32 : DType::Float64;
  return index_add(filled({count}, dtype, x.device(), 0), 0, numbers, cast(weights.detach(), dtype));
}

Tensor histc(const Tensor& given, int64_t bins, double min, double max) {
  const char* op = "histc";
  TERN_CHECK(is_floating_point(given.dtype()) && is_computable(given.dtype()), DTypeError,
             "{}: needs a floating-point dtype, got {}: convert it with to(float32)", op,
             name(given.dtype()));
  // Numbers of bins are exact in float64, whatever fits in memory.
  TERN_CHECK(bins > 0 && bins < int64_t{1} << 53, ValueError, "{}: bins must be > 0 and below 2^53, got {}",
             op, bins);
  TERN_CHECK(min <= max, ValueError, "{}: max must be larger than min, got {} and {}", op, max, min);
  const Tensor x = reshape(given.detach(), {-1});
  if (min == max && x.numel() > 0) {
    const auto [least, most] = host_extremes(x);
    min = item(least).to_double();
    max = item(most).to_double();
  }
  if (min == max) {
    min -= 1;
    max += 1;
  }
  TERN_CHECK(std::isfinite(min) && std::isfinite(max), ValueError, "{}: range of [{}, {}] is not finite", op,
             min, max);
  // They are in float32 up to 2^24; the width of a range need not fit there.
  const bool narrow_range = bins < (int64_t{1} << 24) - 2 && max - min <= std::numeric_limits<float>::max();
  const DType wide = x.dtype() != DType::Float64 && narrow_range ? DType::Float32 : DType::Float64;
  TERN_CHECK(std::isfinite(max - min), ValueError, "{}: range of [{}, {}] is too wide", op, min, max);
  const Tensor values = cast(x, wide);
  const Tensor inside = logical_and(ge(values, min), le(values, max));
  const Tensor steps = mul(div(sub(values, min), max - min), static_cast<double>(bins));
  // The largest number may come out one bin too far; what lies outside goes two too far.
  const Tensor bin = cast(where(inside, steps, static_cast<double>(bins + 1)), DType::Int64);
  const Tensor counts = count_numbers(op, bin, bins + 2);
  select(counts, 0, bins - 1).add_(select(counts, 0, bins));
  return cast(narrow(counts, 0, 0, bins), x.dtype());
}

}  // namespace tern
