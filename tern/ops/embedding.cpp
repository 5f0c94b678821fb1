// Embedding with its gradient, which is a sum of rows.
#include "tern/ops/embedding.h"

#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/index.h"
#include "tern/ops/index_plan.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

constexpr int64_t kNoPadding = -1;

IndexPlan plan_rows(const Tensor& table, const Tensor& input) {
  IndexPlan plan = plan_index("embedding", table, {input});
  plan.wrap = false;
  return plan;
}

Tensor lookup(const Tensor& input, const Tensor& weight, int64_t padding);

/// The rows of g added up by index; row `padding` stays zero.
Tensor row_sums(const Tensor& g, const Tensor& input, int64_t rows, int64_t padding) {
  Tensor y = filled({rows, g.size(-1)}, g.dtype(), g.device(), 0);
  put_elements(plan_rows(y, input), y, IndexPutMode::Add, g);
  if (padding != kNoPadding) fill_elements(select(y.detach(), /*dim=*/0, padding), 0);
  if (tracks_grad(g))
    record("embedding_backward", y, {g}, [input_ = save(input), padding](GradContext& c, const Tensor& gg) {
      if (padding == kNoPadding) return lookup(c[input_], gg, padding);
      const Tensor row = filled({1}, DType::Int64, gg.device(), static_cast<double>(padding));
      return lookup(c[input_], index_fill(gg, /*dim=*/0, row, 0), padding);
    });
  return y;
}

Tensor lookup(const Tensor& input, const Tensor& weight, int64_t padding) {
  Tensor y = get_elements(plan_rows(weight, input), weight);
  if (tracks_grad(weight))
    record("embedding", y, {weight},
           [input_ = save(input), rows = weight.size(0), padding](GradContext& c, const Tensor& g) {
             return row_sums(g, c[input_], rows, padding);
           });
  return y;
}

}  // namespace

Tensor embedding(const Tensor& input, const Tensor& weight, std::optional<int64_t> padding_idx) {
  TERN_CHECK(weight.dim() == 2, ShapeError, "embedding: 'weight' must be 2-D, got {}",
             to_string(weight.shape()));
  int64_t padding = kNoPadding;
  if (padding_idx) {
    const int64_t rows = weight.size(0);
    TERN_CHECK(*padding_idx >= -rows && *padding_idx < rows, ValueError,
               "embedding: Padding_idx must be within num_embeddings: got {} "
               "for {} rows",
               *padding_idx, rows);
    padding = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
  }
  return lookup(as_index("embedding", weight, input), weight, padding);
}

}  // namespace tern
