// Marks of lazy tensors, and their end.
#include "tern/nn/lazy.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tern/base/check.h"
#include "tern/core/recording.h"

namespace tern::nn::detail {

void defer(std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* tensor : tensors)
    if (tensor->defined()) tensor->storage()->set_uninitialized(true);
}

bool can_have_shape(const Tensor& tensor, const Shape& shape) {
  if (!is_lazy(tensor)) return tensor.shape() == shape;
  return std::equal(shape.begin(), shape.end(), tensor.shape().begin(), tensor.shape().end(),
                    [](int64_t given, int64_t known) { return known == 0 || known == given; });
}

int64_t size_of_first_input(std::string_view layer, const Tensor& x, int64_t dim, DimRange range) {
  TERN_CHECK(!tern::detail::step_recorder, CaptureError,
             "capture: {} takes its sizes from its first input, which replays must not do again: call the "
             "module with one batch before, or let capture() do so ({{.warmup = 1}})",
             layer);
  TERN_CHECK(x.dim() >= range.min_dim && x.dim() <= range.max_dim, ShapeError,
             "{}: the first input, of shape {}, must have {}", layer, to_string(x.shape()),
             range.max_dim == range.min_dim ? fmt::format("{} dimensions", range.min_dim)
             : range.max_dim - range.min_dim == 1
                 ? fmt::format("{} or {} dimensions", range.min_dim, range.max_dim)
                 : fmt::format("at least {} dimension{}", range.min_dim, range.min_dim == 1 ? "" : "s"));
  return x.size(dim);
}

void materialize(std::initializer_list<Sized> tensors) {
  std::vector<std::pair<const Tensor*, Tensor>> made;
  for (const auto& [tensor, shape] : tensors)
    if (is_lazy(tensor))
      made.emplace_back(&tensor,
                        empty_contiguous(shape, checked_numel(shape), tensor.dtype(), tensor.device()));
  for (const auto& [tensor, data] : made) set_data(*tensor, data);
}

void set_data(const Tensor& tensor, const Tensor& data) {
  TensorImpl& impl = tensor.impl();
  impl.storage = data.storage();
  impl.offset = data.storage_offset();
  impl.dtype = data.dtype();
  impl.shape = data.shape();
  impl.strides = data.strides();
  impl.refresh();
}

}  // namespace tern::nn::detail
