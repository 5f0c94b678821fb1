// Which attention the kernels take: batches as two dimensions, and heads that share keys. What else there is
// goes through attention_blocks.cpp.
#include "tern/ops/attention_fused.h"

#include <algorithm>
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

/// Joins neighbours as long as there are more than `most`; false where no strides let it.
bool join(std::vector<BatchDim>& dims, size_t most) {
  while (dims.size() > most) {
    size_t outer = 0;
    while (outer + 1 < dims.size() && !dims[outer + 1].continues(dims[outer])) ++outer;
    if (outer + 1 == dims.size()) return false;
    dims[outer + 1].size *= dims[outer].size;
    dims.erase(dims.begin() + static_cast<int64_t>(outer));
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

/// What no layout makes good.
bool is_plain(const Heads& heads, const AttentionSettings& settings) {
  return !heads.bias.defined() && !heads.weights.defined() && settings.dropout == nullptr;
}

/// Arguments with the layout's operands, and nothing else yet of what is not common to both kernels.
template <class Args>
Args args_of(const Layout& layout, const Heads& heads, const AttentionSettings& settings) {
  Args args{};
  args.dtype = heads.query.dtype();
  args.shape = layout.shape;
  args.scale = settings.scale;
  const auto operands = operands_of(args);
  for (size_t i = 0; i < operands.size(); ++i) *operands[i] = layout.operands.at(i);
  return args;
}

template <class Args>
bool fuses(Stream stream, const Args& args) {
  return backend_of(stream.device.type).fuses(stream, args);
}

/// Some of the batch, and some of its heads.
AttentionBackwardArgs part_of(AttentionBackwardArgs args, int64_t batch, int64_t batches, int64_t head,
                              int64_t heads) {
  const auto nbytes = static_cast<int64_t>(itemsize(args.dtype));
  for (AttentionOperand* x : operands_of(args))
    x->data = static_cast<char*>(x->data) + (batch * x->batch_stride + head * x->head_stride) * nbytes;
  args.log_sums += (batch * args.shape.heads + head) * args.shape.rows;
  args.shape.batch = batches;
  args.shape.heads = args.shape.key_heads = heads;
  return args;
}

/// How many of `size` things to take at a time, so that parts of at most `most` are about as large as each
/// other.
int64_t even_step(int64_t size, int64_t most) {
  const int64_t at_most = std::clamp<int64_t>(most, 1, size), parts = (size + at_most - 1) / at_most;
  return (size + parts - 1) / parts;
}

}  // namespace

bool attend_fused(const Heads& heads, const AttentionSettings& settings, Tensor* log_sums) {
  if (!is_plain(heads, settings)) return false;
  const auto layout = layout_of({&heads.query, &heads.key, &heads.value, &heads.output}, settings.is_causal);
  if (!layout) return false;
  auto args = args_of<AttentionArgs>(*layout, heads, settings);
  const Stream stream = current_stream(heads.query.device());
  if (!fuses(stream, args)) return false;
  if (log_sums != nullptr) {
    const AttentionShape& s = args.shape;
    *log_sums = empty({s.batch, s.heads, s.rows}, {.dtype = DType::Float32, .device = stream.device});
    args.log_sums = static_cast<float*>(log_sums->data_ptr());
  }
  launch(stream, kernels::attention, args);
  return true;
}

bool attend_backward_fused(const Heads& heads, const Heads& grads, const AttentionSettings& settings,
                           const Tensor& log_sums, int64_t most_scores) {
  if (!is_plain(heads, settings)) return false;
  Tensor key = heads.key, value = heads.value, grad = grads.output;
  const auto layout_of_all = [&] {
    return layout_of(
        {&heads.query, &key, &value, &heads.output, &grad, &grads.query, &grads.key, &grads.value},
        settings.is_causal);
  };
  auto layout = layout_of_all();
  if (!layout || layout->shape.heads != layout->shape.key_heads) {
    // Sums give one number in all places, and heads may share keys.
    for (Tensor* x : {&key, &value, &grad}) *x = contiguous(*x);
    layout = layout_of_all();
  }
  if (!layout) return false;
  auto args = args_of<AttentionBackwardArgs>(*layout, heads, settings);
  args.log_sums = static_cast<const float*>(log_sums.data_ptr());
  const AttentionShape& s = args.shape;
  const int64_t matrices = most_scores / (s.rows * s.columns),
                batches = even_step(s.batch, matrices / s.heads), some = even_step(s.heads, matrices);
  std::vector<AttentionBackwardArgs> parts;
  for (int64_t b = 0; b < s.batch; b += batches)
    for (int64_t h = 0; h < s.heads; h += some)
      parts.push_back(part_of(args, b, std::min(batches, s.batch - b), h, std::min(some, s.heads - h)));
  const Stream stream = current_stream(heads.query.device());
  for (const AttentionBackwardArgs& part : parts)
    if (!fuses(stream, part)) return false;
  for (const AttentionBackwardArgs& part : parts) launch(stream, kernels::attention_backward, part);
  return true;
}

}  // namespace tern::detail
