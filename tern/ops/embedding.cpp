// Embedding with its gradient, which is a sum of rows.
#include "tern/ops/embedding.h"

#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/distance.h"
#include "tern/ops/index.h"
#include "tern/ops/index_plan.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

constexpr int64_t kNoPadding = -1;

IndexPlan plan_rows(const Tensor& table, const Tensor& input, const char* op = "embedding") {
  IndexPlan plan = plan_index(op, table, {input});
  plan.wrap = false;
  return plan;
}

/// How often the number of each place occurs in the input, as `dtype`.
Tensor occurrences(const Tensor& input, int64_t rows, DType dtype) {
  const Tensor numbers = flatten(input), one = filled({1}, DType::Int64, input.device(), 1);
  const Tensor counts =
      index_add(filled({rows}, DType::Int64, input.device(), 0), 0, numbers, expand(one, numbers.shape()));
  return reshape(cast(index_select(counts, 0, numbers), dtype), input.shape());
}

Tensor lookup(const Tensor& input, const Tensor& weight, int64_t padding, bool by_frequency = false);

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

Tensor lookup(const Tensor& input, const Tensor& weight, int64_t padding, bool by_frequency) {
  Tensor y = get_elements(plan_rows(weight, input), weight);
  if (tracks_grad(weight))
    record("embedding", y, {weight},
           [input_ = save(input), rows = weight.size(0), padding, by_frequency](GradContext& c,
                                                                                const Tensor& g) {
             return detail::embedding_gradient(g, c[input_], rows, padding, by_frequency);
           });
  return y;
}

void check_table(const char* op, const Tensor& weight) {
  TERN_CHECK(weight.dim() == 2, ShapeError, "{}: 'weight' must be 2-D, got {}", op,
             to_string(weight.shape()));
}

}  // namespace

int64_t detail::padding_row(const char* op, const Tensor& weight, std::optional<int64_t> padding_idx) {
  check_table(op, weight);
  if (!padding_idx) return kNoPadding;
  const int64_t rows = weight.size(0);
  TERN_CHECK(*padding_idx >= -rows && *padding_idx < rows, ValueError,
             "{}: Padding_idx must be within num_embeddings: got {} for {} rows", op, *padding_idx, rows);
  return *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
}

Tensor detail::embedding_gradient(const Tensor& g, const Tensor& input, int64_t rows, int64_t padding,
                                  bool scale_grad_by_freq) {
  if (!scale_grad_by_freq) return row_sums(g, input, rows, padding);
  return row_sums(div(g, unsqueeze(occurrences(input, rows, g.dtype()), -1)), input, rows, padding);
}

Tensor embedding(const Tensor& input, const Tensor& weight, std::optional<int64_t> padding_idx) {
  return embedding(input, weight, {.padding_idx = padding_idx});
}

Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingOptions& options) {
  const int64_t padding = detail::padding_row("embedding", weight, options.padding_idx);
  if (options.max_norm) {
    Tensor table = weight.detach();
    embedding_renorm_(table, input, *options.max_norm, options.norm_type);
  }
  return lookup(as_index("embedding", weight, input), weight, padding, options.scale_grad_by_freq);
}

Tensor& embedding_renorm_(Tensor& weight, const Tensor& input, double max_norm, double norm_type) {
  const char* op = "embedding_renorm_";
  check_table(op, weight);
  TERN_CHECK(is_floating_point(weight.dtype()), DTypeError, "{}: needs a floating-point dtype, got {}", op,
             name(weight.dtype()));
  TERN_CHECK(norm_type > 0, ValueError, "{}: norm_type must be above 0, got {}", op, norm_type);
  TERN_CHECK(max_norm >= 0, ValueError, "{}: max_norm must not be negative, got {}", op, max_norm);
  TERN_CHECK(!tracks_grad(weight), AutogradError,
             "{}: the weight requires a gradient, which this change does not have: give weight.detach()", op);
  check_in_place(op, weight);
  const NoGradGuard no_grad;
  const Tensor numbers = flatten(as_index(op, weight, input));
  const IndexPlan plan = plan_rows(weight, numbers, op);
  // Rows that occur several times are written as often, each time the same.
  put_elements(plan, weight, IndexPutMode::Set,
               cast(renorm(get_elements(plan, weight), norm_type, 0, max_norm), weight.dtype()));
  weight.storage()->bump_version();
  return weight;
}

}  // namespace tern
