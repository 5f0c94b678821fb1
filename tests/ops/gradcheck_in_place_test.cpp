// Gradients of changes in place against finite differences, as in gradcheck_test.cpp.
#include "tern/ops/activation.h"
#include "tern/ops/copy.h"
#include "tern/ops/index.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/scan.h"
#include "tests/ops/gradient_rows.h"

namespace tern::gradient_rows {
namespace {

std::vector<GradientRow> in_place_rows() {
  auto changed = [](auto change) {
    return [change](const Tensors& x) {
      Tensor y = mul(x[0], 1);
      change(y, x);
      return y;
    };
  };
  return {
      {"add_", {kMatrix, kVector}, changed([](Tensor& y, const Tensors& x) { y.add_(x[1], 2); })},
      {"sub_", {kMatrix, kVector}, changed([](Tensor& y, const Tensors& x) { y.sub_(x[1]); })},
      {"mul_", {kMatrix, kVector}, changed([](Tensor& y, const Tensors& x) { y.mul_(x[1]); })},
      {"div_", {kMatrix, {{4}, 0.5, 2}}, changed([](Tensor& y, const Tensors& x) { y.div_(x[1]); })},
      {"clamp_", {kMatrix}, changed([](Tensor& y, const Tensors&) { y.clamp_(-0.5, 0.5); })},
      {"relu_", {kMatrix}, changed([](Tensor& y, const Tensors&) { y.relu_(); })},
      {"exp_", {kMatrix}, changed([](Tensor& y, const Tensors&) { y.exp_(); })},
      {"sqrt_", {kPositive}, changed([](Tensor& y, const Tensors&) { y.sqrt_(); })},
      {"neg_", {kMatrix}, changed([](Tensor& y, const Tensors&) { y.neg_(); })},
      {"sigmoid_", {kMatrix}, changed([](Tensor& y, const Tensors&) { y.sigmoid_(); })},
      {"tanh_", {kMatrix}, changed([](Tensor& y, const Tensors&) { y.tanh_(); })},
      {"fill_", {kMatrix}, changed([](Tensor& y, const Tensors&) { y.fill_(2); })},
      {"copy_", {kMatrix, kVector}, changed([](Tensor& y, const Tensors& x) { y.copy_(x[1]); })},
      {"masked_fill_", {kMatrix}, changed([](Tensor& y, const Tensors&) {
         y.masked_fill_(mask({3, 4}), 1);
       })},
      {"index_add_", {kMatrix, kMatrix}, changed([](Tensor& y, const Tensors& x) {
         y.index_add_(0, long_tensor({2, 0, 2}), x[1]);
       })},
      {"index_copy_", {kMatrix, {{2, 4}}}, changed([](Tensor& y, const Tensors& x) {
         index_copy_(y, 0, long_tensor({2, 0}), x[1]);
       })},
      {"index_fill_", {kMatrix}, changed([](Tensor& y, const Tensors&) {
         index_fill_(y, 0, long_tensor({2, 0}), 1);
       })},
      {"index_put_", {kMatrix, {{2, 4}}}, changed([](Tensor& y, const Tensors& x) {
         index_put_(y, {long_tensor({2, 0})}, x[1]);
       })},
      {"scatter_", {kMatrix, {{3, 1}}}, changed([](Tensor& y, const Tensors& x) {
         scatter_(y, 1, reshape(long_tensor({1, 0, 3}), {3, 1}), x[1]);
       })},
      {"scatter_add_", {kMatrix, {{3, 1}}}, changed([](Tensor& y, const Tensors& x) {
         scatter_add_(y, 1, reshape(long_tensor({1, 0, 3}), {3, 1}), x[1]);
       })},
      {"uniform_", {kMatrix}, changed([](Tensor& y, const Tensors&) { uniform_(y, 0, 1, Generator(1)); })},
      {"normal_", {kMatrix}, changed([](Tensor& y, const Tensors&) { normal_(y, 0, 1, Generator(1)); })},
      {"bernoulli_", {kMatrix}, changed([](Tensor& y, const Tensors&) { bernoulli_(y, 0.5, Generator(1)); })},
      {"sin_", {kMatrix}, changed([](Tensor& y, const Tensors&) { y.sin_(); })},
      {"pow_", {kPositive, kVector}, changed([](Tensor& y, const Tensors& x) { y.pow_(x[1]); })},
      {"remainder_", {{{3}, 0.1, 0.9}}, changed([](Tensor& y, const Tensors&) { y %= 2; })},
      {"lerp_", {kMatrix, kVector, {{3, 1}}}, changed([](Tensor& y, const Tensors& x) {
         y.lerp_(x[1], x[2]);
       })},
      {"addcmul_", {kMatrix, kVector, {{3, 1}}}, changed([](Tensor& y, const Tensors& x) {
         y.addcmul_(x[1], x[2], 2);
       })},
      {"atan2_through_a_view", {kMatrix, kVector}, changed([](Tensor& y, const Tensors& x) {
         y[1].atan2_(x[1]);
       })},
      {"lt_", {kMatrix, kVector}, changed([](Tensor& y, const Tensors& x) { y.lt_(x[1]); })},
      {"cumprod_", {kMatrix}, changed([](Tensor& y, const Tensors&) { y.cumprod_(1); })},
      {"tril_through_a_view", {kImage}, changed([](Tensor& y, const Tensors&) { y[1].tril_(); })},
      {"addmm_", {{{3, 2}}, kMatrix, {{4, 2}}}, changed([](Tensor& y, const Tensors& x) {
         y.addmm_(x[1], x[2], 2, 3);
       })},
      {"addr_", {kMatrix, {{3}}, kVector}, changed([](Tensor& y, const Tensors& x) { y.addr_(x[1], x[2]); })},
      {"masked_scatter_", {kMatrix, kMatrix}, changed([](Tensor& y, const Tensors& x) {
         y.masked_scatter_(mask({3, 4}), x[1]);
       })},
      {"t_", {kMatrix}, changed([](Tensor& y, const Tensors&) { y.t_().square_(); })},
      {"through_a_view", {kMatrix, kVector}, changed([](Tensor& y, const Tensors& x) { y[1].mul_(x[1]); })},
  };
}

INSTANTIATE_TEST_SUITE_P(InPlace, Gradcheck, ::testing::ValuesIn(in_place_rows()), row_name);

}  // namespace
}  // namespace tern::gradient_rows
