// Which attention the kernels take: batches as two dimensions, and heads that share keys. What else there is
// goes through attention_blocks.cpp.
#include "tern/ops/attention_fused.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "tern/device/registry.h"
#include "tern/kernels/list.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"

namespace tern::detail {
namespace {

constexpr size_t kKey = 1, kValue = 2;  // among the tensors of a launch, of which the query is the first

using Tensors = std::vector<const Tensor*>;

/// A dimension of the batch, with the strides of all tensors.
struct BatchDim {
  int64_t size;
  std::vector<int64_t> strides;

  /// Whether all places of it have the same keys and values.
  bool is_shared() const { return strides[kKey] == 0 && strides[kValue] == 0; }
  bool repeats() const { return size > 1 && std::find(strides.begin(), strides.end(), 0) != strides.end(); }
  bool continues(const BatchDim& outer) const {
    for (size_t i = 0; i < strides.size(); ++i)
      if (outer.strides[i] != strides[i] * size) return false;
    return true;
  }
};

std::vector<BatchDim> batch_dims_of(const Tensors& tensors) {
  std::vector<BatchDim> dims;
  const Shape& shape = tensors[0]->shape();
  for (size_t d = 0; d + 2 < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    BatchDim& dim = dims.emplace_back(BatchDim{shape[d], {}});
    for (const Tensor* x : tensors) dim.strides.push_back(x->strides()[d]);
  }
  return dims;
}

/// Joins the outermost two as long as there are more than `most`; false where the strides do not let it.
bool join(std::vector<BatchDim>& dims, size_t most) {
  while (dims.size() > most) {
    if (!dims[1].continues(dims[0])) return false;
    dims[1].size *= dims[0].size;
    dims.erase(dims.begin());
  }
  return true;
}

/// What both kernels are told of query, key, value and output, and of tensors of their shapes.
struct Layout {
  AttentionShape shape{};
  std::vector<AttentionOperand> operands{};
};

std::optional<Layout> layout_of(const Tensors& tensors, bool is_causal) {
  for (const Tensor* x : tensors)
    if (x->numel() == 0 || x->strides().back() != 1) return std::nullopt;
  std::vector<BatchDim> dims = batch_dims_of(tensors);
  const BatchDim one{1, std::vector<int64_t>(tensors.size())};
  int64_t group = 1;
  if (!dims.empty() && dims.back().is_shared()) {
    // Heads of the query that share one of key and value: neighbours in the query and the output.
    const BatchDim shared = dims.back();
    dims.pop_back();
    group = shared.size;
    bool follows = !dims.empty();
    for (size_t i = 0; follows && i < tensors.size(); ++i)
      follows = i == kKey || i == kValue || dims.back().strides[i] == shared.strides[i] * group;
    if (!follows) dims.push_back(one);
    for (size_t i = 0; i < tensors.size(); ++i)
      if (i != kKey && i != kValue) dims.back().strides[i] = shared.strides[i];
  }
  if (!join(dims, 2)) return std::nullopt;
  while (dims.size() < 2) dims.insert(dims.begin(), one);
  if (dims[0].repeats() || dims[1].repeats()) return std::nullopt;

  const Tensor &query = *tensors[0], &value = *tensors[kValue];
  Layout layout;
  layout.shape = {is_causal,      dims[0].size,   dims[1].size * group, dims[1].size,
                  query.size(-2), value.size(-2), query.size(-1),       value.size(-1)};
  for (size_t i = 0; i < tensors.size(); ++i)
    layout.operands.push_back({tensors[i]->data_ptr(), dims[0].strides[i], dims[1].strides[i],
                               tensors[i]->strides()[query.shape().size() - 2]});
  return layout;
}

bool is_plain(const Heads& heads, const AttentionSettings& settings) {
  return !heads.query.device().is_cpu() && !heads.bias.defined() && !heads.weights.defined() &&
         settings.dropout == nullptr;
}

template <class Args>
bool fuses(Stream stream, const Args& args) {
  return backend_of(stream.device.type).fuses(stream, args);
}

std::optional<AttentionArgs> args_of(const Heads& heads, const AttentionSettings& settings) {
  if (!is_plain(heads, settings)) return std::nullopt;
  const auto layout = layout_of({&heads.query, &heads.key, &heads.value, &heads.output}, settings.is_causal);
  if (!layout) return std::nullopt;
  const auto& x = layout->operands;
  return AttentionArgs{heads.query.dtype(), layout->shape, settings.scale, x[0], x[1], x[2], x[3], nullptr};
}

}  // namespace

bool attend_fused(const Heads& heads, const AttentionSettings& settings) {
  const auto args = args_of(heads, settings);
  const Stream stream = current_stream(heads.query.device());
  if (!args || !fuses(stream, *args)) return false;
  launch(stream, kernels::attention, *args);
  return true;
}

Tensor attend_fused_for_gradients(const Heads& heads, const AttentionSettings& settings) {
  auto args = args_of(heads, settings);
  const Stream stream = current_stream(heads.query.device());
  if (!args || args->shape.key_heads != args->shape.heads || !fuses(stream, *args)) return {};
  const AttentionShape& s = args->shape;
  const Tensor log_sums =
      empty({s.batch, s.heads, s.rows}, {.dtype = DType::Float32, .device = stream.device});
  args->log_sums = static_cast<float*>(log_sums.data_ptr());
  launch(stream, kernels::attention, *args);
  return log_sums;
}

bool attend_backward_fused(const Heads& heads, const Heads& grads, const AttentionSettings& settings,
                           const Tensor& log_sums) {
  if (!is_plain(heads, settings)) return false;
  Tensor grad = grads.output;
  const auto layout_with = [&] {
    return layout_of({&heads.query, &heads.key, &heads.value, &heads.output, &grad, &grads.query, &grads.key,
                      &grads.value},
                     settings.is_causal);
  };
  auto layout = layout_with();
  if (!layout) {  // sums give one number in all places
    grad = contiguous(grad);
    layout = layout_with();
  }
  if (!layout) return false;
  const auto& x = layout->operands;
  const AttentionBackwardArgs args{heads.query.dtype(),
                                   layout->shape,
                                   settings.scale,
                                   x[0],
                                   x[1],
                                   x[2],
                                   x[3],
                                   x[4],
                                   x[5],
                                   x[6],
                                   x[7],
                                   static_cast<const float*>(log_sums.data_ptr())};
  const Stream stream = current_stream(heads.query.device());
  if (!fuses(stream, args)) return false;
  launch(stream, kernels::attention_backward, args);
  return true;
}

}  // namespace tern::detail
