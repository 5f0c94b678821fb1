// The way back from maxima to the places where they were.
#include "tern/ops/pool.h"
#include "tern/autograd/arithmetic.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/index.h"
#include "tern/ops/index_plan.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// The sizes that x is spread to, and the checks of everything but the indices.
template <int N>
Shape unpooled_size(const char* op, const Tensor& x, const MaxUnpoolOptions<N>& o) {
  TERN_CHECK(x.dim() == N + 1 || x.dim() == N + 2, ShapeError,
             "{}: Expected {}D or {}D (batch mode) tensor, but got {}", op, N + 1, N + 2,
             to_string(x.shape()));
  for (int64_t d = x.dim() - N - 1; d < x.dim(); ++d)
    TERN_CHECK(
        x.size(d) != 0, ShapeError,
        "{}: Expected input to have non-zero size for non-batch dimensions, but input has sizes {} with "
        "dimension {} being empty",
        op, to_string(x.shape()), d);
  const auto kernel = sizes_of(o.kernel_size), stride = sizes_of(o.stride.value_or(o.kernel_size)),
             padding = sizes_of(o.padding);
  Shape wanted = o.output_size;
  TERN_CHECK(wanted.empty() || wanted.size() == N || wanted.size() == N + 2, ValueError,
             "{}: output_size should be a sequence containing {} or {} elements, but it has a length of '{}'",
             op, N, N + 2, wanted.size());
  Shape size;
  for (size_t d = 0; d < N; ++d) {
    constexpr int64_t kLimit = int64_t{1} << 31;
    TERN_CHECK(kernel[d] > 0 && kernel[d] < kLimit && stride[d] > 0 && stride[d] < kLimit, ValueError,
               "{}: kernel size and stride should be greater than zero and below 2^31, but got {} and {}", op,
               kernel[d], stride[d]);
    TERN_CHECK(padding[d] >= 0 && padding[d] < kLimit, ValueError, "{}: pad must be non-negative, but got {}",
               op, padding[d]);
    const int64_t smallest =
        (x.size(x.dim() - N + static_cast<int64_t>(d)) - 1) * stride[d] + kernel[d] - 2 * padding[d];
    const int64_t chosen = wanted.empty() ? smallest : wanted[wanted.size() - N + d];
    TERN_CHECK(chosen > smallest - stride[d] && chosen < smallest + stride[d], ValueError,
               "{}: invalid output_size {} (dim {} must be between {} and {})", op, to_string(wanted), d,
               smallest - stride[d], smallest + stride[d]);
    TERN_CHECK(chosen > 0, ValueError, "{}: the output has the size {} in dim {}: use less padding", op,
               chosen, d);
    size.push_back(chosen);
  }
  return size;
}

template <int N>
Tensor max_unpool(const char* op, const Tensor& x, const Tensor& indices, const MaxUnpoolOptions<N>& o) {
  if (autocasts_on_cpu(x)) [[unlikely]]
    return autocast_float32([&](const Tensor& wide, const Tensor& at) { return max_unpool(op, wide, at, o); },
                            x, indices);
  check_same_device(op, {{"input", x}, {"indices", indices}});
  TERN_CHECK(is_floating_point(x.dtype()), DTypeError, "{}: not implemented for {}: convert with to(float32)",
             op, name(x.dtype()));
  TERN_CHECK(indices.dtype() == DType::Int64, DTypeError,
             "{}: elements in indices should be type int64 but got: {}", op, name(indices.dtype()));
  TERN_CHECK(
      indices.shape() == x.shape(), ShapeError,
      "{}: Expected shape of indices to be same as that of the input tensor ({}) but got indices tensor with "
      "shape: {}",
      op, to_string(x.shape()), to_string(indices.shape()));
  const Shape size = unpooled_size<N>(op, x, o);
  const int64_t last = x.dim() - N;
  Shape shape(x.shape().begin(), x.shape().begin() + last);
  Shape rows = shape;
  for (const int64_t each : size) shape.push_back(each);
  rows.push_back(checked_numel(size));
  const Tensor places = flatten(indices, last, -1), source = flatten(x.detach(), last, -1);
  Tensor y = filled(rows, x.dtype(), x.device(), 0);
  put_elements(plan_gather(op, y, last, places), y, IndexPutMode::Set, source);
  y = reshape(y, shape);
  if (tracks_grad(x))
    record(op, y, {x}, [places_ = save(places), last, x_shape = x.shape()](GradContext& c, const Tensor& g) {
      return reshape(gather(flatten(g, last, -1), last, c[places_]), x_shape);
    });
  return y;
}

}  // namespace

Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const MaxUnpool1dOptions& options) {
  return max_unpool("max_unpool1d", x, indices, options);
}
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const MaxUnpool2dOptions& options) {
  return max_unpool("max_unpool2d", x, indices, options);
}
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const MaxUnpool3dOptions& options) {
  return max_unpool("max_unpool3d", x, indices, options);
}

}  // namespace tern
