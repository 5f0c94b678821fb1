// Gradients of quantiles, running extremes, joins by index, diagonals, products along dimensions and
// distances against finite differences, as in gradcheck_test.cpp.
#include "tern/ops/diagonal.h"
#include "tern/ops/distance.h"
#include "tern/ops/index.h"
#include "tern/ops/matmul.h"
#include "tern/ops/products.h"
#include "tern/ops/quantile.h"
#include "tern/ops/reduce.h"
#include "tern/ops/scan.h"
#include "tern/ops/sort.h"
#include "tests/ops/gradient_rows.h"

namespace tern::gradient_rows {
namespace {

std::vector<GradientRow> order_rows() {
  std::vector<GradientRow> rows{
      {"quantile",
       {kMatrix},
       [](const Tensors& x) {
         return quantile(x[0], tensor({0.1, 0.7}, {.dtype = float64}), 1);
       }},
      {"nanquantile",
       {kMatrix},
       [](const Tensors& x) { return nanquantile(x[0], 0.3, 0, true, "midpoint"); }},
      {"kthvalue", {kMatrix}, [](const Tensors& x) { return square(kthvalue(x[0], 2, 0).first); }},
      {"nanmedian", {kMatrix}, [](const Tensors& x) { return square(nanmedian(x[0], 1).first); }},
      {"nanmedian_of_all", {kMatrix}, [](const Tensors& x) { return square(nanmedian(x[0])); }},
      {"mode", {kMatrix}, [](const Tensors& x) { return square(mode(x[0], 1).first); }},
      {"nansum", {kMatrix}, [](const Tensors& x) { return square(nansum(x[0], 1)); }},
      {"nanmean", {kMatrix}, [](const Tensors& x) { return square(nanmean(log(x[0]), 0)); }},
      {"cummax", {kMatrix}, [](const Tensors& x) { return square(cummax(x[0], 1).first); }},
      {"cummin", {kMatrix}, [](const Tensors& x) { return square(cummin(x[0], 0).first); }},
      {"logcumsumexp", {kMatrix}, [](const Tensors& x) { return logcumsumexp(x[0], 1); }},
      {"diff", {kMatrix, {{3, 1}}}, [](const Tensors& x) { return square(diff(x[0], 2, 1, x[1])); }},
      {"put",
       {kMatrix, {{2}}},
       [](const Tensors& x) {
         return square(put(x[0], tensor({5, -1}), x[1]));
       }},
      {"diag", {kVector}, [](const Tensors& x) { return square(diag(x[0], 1)); }},
      {"diag_of_matrix", {kMatrix}, [](const Tensors& x) { return square(diag(x[0], -1)); }},
      {"diag_embed", {kMatrix}, [](const Tensors& x) { return square(diag_embed(x[0], 1, 0, 2)); }},
      {"trace", {kMatrix}, [](const Tensors& x) { return square(trace(x[0])); }},
      {"block_diag", {kMatrix, kVector}, [](const Tensors& x) { return square(block_diag(x)); }},
      {"tensordot",
       {kMatrix, {{4, 3, 2}}},
       [](const Tensors& x) {
         return tensordot(x[0], x[1], {0, 1}, {1, 0});
       }},
      {"trapezoid", {kMatrix, kVector}, [](const Tensors& x) { return square(trapezoid(x[0], x[1], 1)); }},
      {"cov",
       {kMatrix, {{4}, 0.5, 2}},
       [](const Tensors& x) {
         return cov(x[0], 1, long_tensor({1, 2, 0, 3}), x[1]);
       }},
      {"corrcoef", {{{2, 5}}}, [](const Tensors& x) { return square(corrcoef(x[0])); }},
      {"inner", {kMatrix, {{2, 4}}}, [](const Tensors& x) { return inner(x[0], x[1]); }},
      {"addmv", {{{3}}, kMatrix, kVector}, [](const Tensors& x) { return addmv(x[0], x[1], x[2], 2, 0.5); }},
      {"select_scatter",
       {kMatrix, {{3}}},
       [](const Tensors& x) { return square(select_scatter(x[0], x[1], 1, 2)); }},
      {"kron", {{{2, 2}}, {{2, 3}}}, [](const Tensors& x) { return kron(x[0], x[1]); }},
      {"cross", {{{2, 3}}, {{1, 3}}}, [](const Tensors& x) { return cross(x[0], x[1], 1); }},
      {"renorm", {kPositive}, [](const Tensors& x) { return renorm(x[0], 2, 0, 1.5); }},
      {"rot90", {kMatrix}, [](const Tensors& x) { return square(rot90(x[0])); }},
      {"combinations", {kVector}, [](const Tensors& x) { return square(combinations(x[0])); }},
  };
  for (const char* reduce : {"sum", "prod", "mean", "amax", "amin"})
    for (const bool include_self : {true, false})
      rows.push_back({std::string("scatter_reduce_") + reduce + (include_self ? "" : "_without_self"),
                      {kMatrix, {{2, 4}, 1.1, 1.9}},
                      [=](const Tensors& x) {
                        const Tensor index = tensor({{0, 2, 1, 1}, {0, 1, 1, 2}});
                        return square(scatter_reduce(x[0], 0, index, x[1], reduce, include_self));
                      }});
  for (const double p : {0.5, 1.0, 1.5, 2.0, 3.0, HUGE_VAL})
    rows.push_back({"cdist_" + std::to_string(rows.size()),
                    {{{2, 3}}, {{4, 3}, 1.2, 2}},
                    [=](const Tensors& x) { return cdist(x[0], x[1], p); }});
  rows.push_back({"cdist_by_product", {{{2, 3}}, {{4, 3}, 1.2, 2}}, [](const Tensors& x) {
                    return cdist(x[0], x[1], 2, "use_mm_for_euclid_dist");
                  }});
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Order, Gradcheck, ::testing::ValuesIn(order_rows()), row_name);

}  // namespace
}  // namespace tern::gradient_rows
