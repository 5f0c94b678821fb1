// Which attention the kernel takes: batches as two dimensions, and heads that share keys. What else there is
// goes through attention_blocks.cpp.
#include "tern/ops/attention_fused.h"

#include <array>
#include <optional>
#include <vector>

#include "tern/device/registry.h"
#include "tern/kernels/list.h"
#include "tern/ops/common.h"

namespace tern::detail {
namespace {

/// A dimension of the batch, with the strides of query, key, value and output.
struct BatchDim {
  int64_t size;
  std::array<int64_t, 4> strides;

  bool is_shared() const { return strides[1] == 0 && strides[2] == 0; }
  bool continues(const BatchDim& outer) const {
    for (size_t i = 0; i < strides.size(); ++i)
      if (outer.strides[i] != strides[i] * size) return false;
    return true;
  }
};

std::array<const Tensor*, 4> operands_of(const Heads& heads) {
  return {&heads.query, &heads.key, &heads.value, &heads.output};
}

std::vector<BatchDim> batch_dims_of(const Heads& heads) {
  std::vector<BatchDim> dims;
  const Shape& shape = heads.query.shape();
  for (size_t d = 0; d + 2 < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    BatchDim& dim = dims.emplace_back(BatchDim{shape[d], {}});
    const auto operands = operands_of(heads);
    for (size_t i = 0; i < operands.size(); ++i) dim.strides[i] = operands[i]->strides()[d];
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

std::optional<AttentionArgs> args_of(const Heads& heads, const AttentionSettings& settings) {
  std::vector<BatchDim> dims = batch_dims_of(heads);
  int64_t group = 1;
  if (!dims.empty() && dims.back().is_shared()) {
    // Heads of the query that share one of key and value: neighbours in the query and the output.
    const BatchDim shared = dims.back();
    dims.pop_back();
    group = shared.size;
    const auto follows = [&](size_t i) { return dims.back().strides[i] == shared.strides[i] * group; };
    if (dims.empty() || !follows(0) || !follows(3)) dims.push_back({1, {}});
    for (const size_t i : {size_t{0}, size_t{3}}) dims.back().strides[i] = shared.strides[i];
  }
  if (!join(dims, 2)) return std::nullopt;
  while (dims.size() < 2) dims.insert(dims.begin(), {1, {}});
  for (const BatchDim& dim : dims)
    if (dim.size > 1 && dim.is_shared()) return std::nullopt;

  AttentionArgs args{};
  args.dtype = heads.query.dtype();
  args.is_causal = settings.is_causal;
  args.scale = settings.scale;
  args.batch = dims[0].size;
  args.heads = dims[1].size * group;
  args.key_heads = dims[1].size;
  args.rows = heads.query.size(-2);
  args.columns = heads.key.size(-2);
  args.width = heads.query.size(-1);
  args.value_width = heads.value.size(-1);
  AttentionOperand* places[] = {&args.query, &args.key, &args.value, &args.output};
  const auto operands = operands_of(heads);
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor& x = *operands[i];
    if (x.numel() == 0 || x.strides().back() != 1) return std::nullopt;
    *places[i] = {x.data_ptr(), dims[0].strides[i], dims[1].strides[i], x.strides()[x.shape().size() - 2]};
  }
  return args;
}

}  // namespace

bool attend_fused(const Heads& heads, const AttentionSettings& settings) {
  const Device device = heads.query.device();
  if (device.is_cpu() || heads.bias.defined() || heads.weights.defined() || settings.dropout != nullptr)
    return false;
  const std::optional<AttentionArgs> args = args_of(heads, settings);
  const Stream stream = current_stream(device);
  if (!args || !backend_of(device.type).fuses(stream, *args)) return false;
  launch(stream, kernels::attention, *args);
  return true;
}

}  // namespace tern::detail
