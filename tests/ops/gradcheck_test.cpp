// Gradients of every differentiable operator against finite differences, and second derivatives where the
// formula is differentiable: one row each. Values and gradients against PyTorch are in operator_table.py.
#include "tern/autograd/gradcheck.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tern/ops/activation.h"
#include "tern/ops/compare.h"
#include "tern/ops/conv.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/embedding.h"
#include "tern/ops/index.h"
#include "tern/ops/linear.h"
#include "tern/ops/loss.h"
#include "tern/ops/loss_margin.h"
#include "tern/ops/matmul.h"
#include "tern/ops/norm.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/pool.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/scan.h"
#include "tern/ops/shape.h"
#include "tern/ops/softmax.h"
#include "tern/ops/sort.h"
#include "tests/ops/gradient_rows.h"

namespace tern::gradient_rows {
namespace {

std::vector<GradientRow> pointwise_rows() {
  return {
      {"add", {kMatrix, kVector}, [](const Tensors& x) { return add(x[0], x[1], 0.5); }},
      {"add_number", {kMatrix}, [](const Tensors& x) { return add(x[0], 2.5, 3); }},
      {"sub", {kMatrix, kVector}, [](const Tensors& x) { return sub(x[0], x[1], 2); }},
      {"rsub", {kMatrix}, [](const Tensors& x) { return rsub(x[0], 2); }},
      {"mul", {kMatrix, kVector}, [](const Tensors& x) { return mul(x[0], x[1]); }},
      {"mul_number", {kMatrix}, [](const Tensors& x) { return mul(x[0], -2.5); }},
      {"square_of_one", {kMatrix}, [](const Tensors& x) { return mul(x[0], x[0]); }},
      {"div", {kMatrix, {{4}, 0.5, 2.0}}, [](const Tensors& x) { return div(x[0], x[1]); }},
      {"div_number", {kMatrix}, [](const Tensors& x) { return div(x[0], 3); }},
      {"number_div", {kPositive}, [](const Tensors& x) { return Scalar(2) / x[0]; }},
      {"remainder", {{{3}, 0.1, 0.9}}, [](const Tensors& x) { return remainder(x[0], 2); }},
      {"fmod", {{{3}, 0.1, 0.9}}, [](const Tensors& x) { return fmod(x[0], 2); }},
      {"pow", {kPositive, kVector}, [](const Tensors& x) { return pow(x[0], x[1]); }},
      {"pow_number", {kPositive}, [](const Tensors& x) { return pow(x[0], 2.5); }},
      {"pow_integer", {kMatrix}, [](const Tensors& x) { return pow(x[0], 3); }},
      {"number_pow", {kMatrix}, [](const Tensors& x) { return pow(Scalar(1.7), x[0]); }},
      {"atan2", {kPositive, kVector}, [](const Tensors& x) { return atan2(x[0], x[1]); }},
      {"maximum", {kMatrix, kVector}, [](const Tensors& x) { return maximum(x[0], x[1]); }},
      {"minimum", {kMatrix, kVector}, [](const Tensors& x) { return minimum(x[0], x[1]); }},
      {"sign", {kPositive}, [](const Tensors& x) { return sign(x[0]); }},
      {"floor", {kFractions}, [](const Tensors& x) { return floor(x[0]); }},
      {"ceil", {kFractions}, [](const Tensors& x) { return ceil(x[0]); }},
      {"round", {{{3, 4}, 0.6, 1.4}}, [](const Tensors& x) { return round(x[0]); }},
      {"trunc", {kFractions}, [](const Tensors& x) { return trunc(x[0]); }},
      {"to", {kMatrix}, [](const Tensors& x) { return square(to(x[0], float64, {.copy = true})); }},
      {"log", {kPositive}, [](const Tensors& x) { return log(x[0]); }},
      {"log1p", {kPositive}, [](const Tensors& x) { return log1p(x[0]); }},
      {"log2", {kPositive}, [](const Tensors& x) { return log2(x[0]); }},
      {"log10", {kPositive}, [](const Tensors& x) { return log10(x[0]); }},
      {"sqrt", {kPositive}, [](const Tensors& x) { return sqrt(x[0]); }},
      {"rsqrt", {kPositive}, [](const Tensors& x) { return rsqrt(x[0]); }},
      {"reciprocal", {kPositive}, [](const Tensors& x) { return reciprocal(x[0]); }},
      {"clamp", {kMatrix}, [](const Tensors& x) { return clamp(x[0], -0.503, 0.507); }},
      {"gelu_tanh", {kMatrix}, [](const Tensors& x) { return gelu(x[0], "tanh"); }},
      {"softplus", {kMatrix}, [](const Tensors& x) { return softplus(x[0], 1.5); }},
      {"elu", {kMatrix}, [](const Tensors& x) { return elu(x[0], 0.7); }},
      {"leaky_relu", {kMatrix}, [](const Tensors& x) { return leaky_relu(x[0], 0.2); }},
      {"celu", {kMatrix}, [](const Tensors& x) { return celu(x[0], 0.7); }},
      {"prelu", {kMatrix, {{4}}}, [](const Tensors& x) { return prelu(x[0], x[1]); }},
      {"hardtanh", {kMatrix}, [](const Tensors& x) { return hardtanh(x[0], -0.503, 0.507); }},
      {"relu6", {kMatrix}, [](const Tensors& x) { return relu6(mul(x[0], 5)); }},
      {"hardshrink", {kMatrix}, [](const Tensors& x) { return hardshrink(x[0], 0.2); }},
      {"softshrink", {kMatrix}, [](const Tensors& x) { return softshrink(x[0], 0.2); }},
      {"threshold", {kMatrix}, [](const Tensors& x) { return threshold(x[0], 0.2, 0.7); }},
      {"dropout",
       {kMatrix},
       [](const Tensors& x) { return dropout(x[0], 0.3, /*training=*/true, Generator(7)); }},
      {"neg", {kMatrix}, [](const Tensors& x) { return neg(x[0]); }},
      {"abs", {kMatrix}, [](const Tensors& x) { return abs(x[0]); }},
      {"square", {kMatrix}, [](const Tensors& x) { return square(x[0]); }},
      {"exp", {kMatrix}, [](const Tensors& x) { return exp(x[0]); }},
      {"expm1", {kMatrix}, [](const Tensors& x) { return expm1(x[0]); }},
      {"sin", {kMatrix}, [](const Tensors& x) { return sin(x[0]); }},
      {"cos", {kMatrix}, [](const Tensors& x) { return cos(x[0]); }},
      {"tan", {kMatrix}, [](const Tensors& x) { return tan(x[0]); }},
      {"erf", {kMatrix}, [](const Tensors& x) { return erf(x[0]); }},
      {"gelu", {kMatrix}, [](const Tensors& x) { return gelu(x[0]); }},
      {"glu", {kMatrix}, [](const Tensors& x) { return glu(x[0]); }},
      {"relu", {kMatrix}, [](const Tensors& x) { return relu(x[0]); }},
      {"sigmoid", {kMatrix}, [](const Tensors& x) { return sigmoid(x[0]); }},
      {"tanh", {kMatrix}, [](const Tensors& x) { return tanh(x[0]); }},
      {"silu", {kMatrix}, [](const Tensors& x) { return silu(x[0]); }},
      {"logsigmoid", {kMatrix}, [](const Tensors& x) { return logsigmoid(x[0]); }},
      {"selu", {kMatrix}, [](const Tensors& x) { return selu(x[0]); }},
      {"mish", {kMatrix}, [](const Tensors& x) { return mish(x[0]); }},
      {"softsign", {kMatrix}, [](const Tensors& x) { return softsign(x[0]); }},
      {"hardsigmoid", {kMatrix}, [](const Tensors& x) { return hardsigmoid(x[0]); }},
      {"hardswish", {kMatrix}, [](const Tensors& x) { return hardswish(x[0]); }},
      {"tanhshrink", {kMatrix}, [](const Tensors& x) { return tanhshrink(x[0]); }},
  };
}

std::vector<GradientRow> reduce_rows() {
  return {
      {"sum", {kMatrix}, [](const Tensors& x) { return sum(x[0]); }},
      {"sum_dim", {kMatrix}, [](const Tensors& x) { return sum(x[0], /*dim=*/0, /*keepdim=*/true); }},
      {"mean", {kMatrix}, [](const Tensors& x) { return mean(x[0]); }},
      {"mean_dim", {kMatrix}, [](const Tensors& x) { return mean(x[0], /*dim=*/1); }},
      {"prod", {kPositive}, [](const Tensors& x) { return prod(x[0]); }},
      {"prod_dim", {kMatrix}, [](const Tensors& x) { return prod(x[0], /*dim=*/1); }},
      {"max", {kMatrix}, [](const Tensors& x) { return max(x[0]); }},
      {"max_dim", {kMatrix}, [](const Tensors& x) { return max(x[0], /*dim=*/1).first; }},
      {"min", {kMatrix}, [](const Tensors& x) { return min(x[0]); }},
      {"min_dim", {kMatrix}, [](const Tensors& x) { return min(x[0], /*dim=*/0).first; }},
      {"amax", {kMatrix}, [](const Tensors& x) { return amax(x[0], /*dim=*/1); }},
      {"amin", {kMatrix}, [](const Tensors& x) { return amin(x[0], /*dim=*/0); }},
      {"aminmax",
       {kMatrix},
       [](const Tensors& x) {
         auto [low, high] = aminmax(x[0], /*dim=*/1);
         return mul(low, high);
       }},
      {"var", {kMatrix}, [](const Tensors& x) { return var(x[0], /*dim=*/1); }},
      {"std", {kMatrix}, [](const Tensors& x) { return std(x[0], /*dim=*/0, /*correction=*/0); }},
      {"var_mean",
       {kMatrix},
       [](const Tensors& x) {
         auto [v, m] = var_mean(x[0]);
         return mul(v, m);
       }},
      {"std_mean",
       {kMatrix},
       [](const Tensors& x) {
         auto [s, m] = std_mean(x[0], {1});
         return mul(s, m);
       }},
      {"norm", {kMatrix}, [](const Tensors& x) { return norm(x[0]); }},
      {"norm_1", {kMatrix}, [](const Tensors& x) { return norm(x[0], 1, /*dim=*/1); }},
      {"norm_3", {kMatrix}, [](const Tensors& x) { return norm(x[0], 3, /*dim=*/0); }},
      {"norm_inf",
       {kMatrix},
       [](const Tensors& x) { return norm(x[0], std::numeric_limits<double>::infinity(), /*dim=*/1); }},
      {"cumsum", {kMatrix}, [](const Tensors& x) { return cumsum(x[0], 1); }},
      {"cumprod", {kMatrix}, [](const Tensors& x) { return cumprod(x[0], 0); }},
      {"softmax", {kMatrix}, [](const Tensors& x) { return softmax(x[0], 1); }},
      {"log_softmax", {kMatrix}, [](const Tensors& x) { return log_softmax(x[0], 0); }},
      {"logsumexp", {kMatrix}, [](const Tensors& x) { return logsumexp(x[0], /*dim=*/1); }},
      {"sort", {kMatrix}, [](const Tensors& x) { return sort(x[0]).first; }},
      {"topk", {kMatrix}, [](const Tensors& x) { return topk(x[0], 2).first; }},
      {"median", {kMatrix}, [](const Tensors& x) { return median(x[0]); }},
      {"median_dim", {kMatrix}, [](const Tensors& x) { return median(x[0], /*dim=*/1).first; }},
  };
}

std::vector<GradientRow> shape_rows() {
  return {
      {"view",
       {kMatrix},
       [](const Tensors& x) {
         return square(view(x[0], {2, 6}));
       }},
      {"reshape",
       {kMatrix},
       [](const Tensors& x) {
         return square(reshape(t(x[0]), {2, 6}));
       }},
      {"flatten", {kImage}, [](const Tensors& x) { return square(flatten(x[0], 1, 2)); }},
      {"unflatten",
       {kMatrix},
       [](const Tensors& x) {
         return square(unflatten(x[0], 1, {2, 2}));
       }},
      {"squeeze", {{{3, 1, 2}}}, [](const Tensors& x) { return square(squeeze(x[0])); }},
      {"unsqueeze", {kMatrix}, [](const Tensors& x) { return square(unsqueeze(x[0], 1)); }},
      {"permute",
       {kImage},
       [](const Tensors& x) {
         return square(permute(x[0], {2, 0, 3, 1}));
       }},
      {"transpose", {kMatrix}, [](const Tensors& x) { return square(transpose(x[0], 0, 1)); }},
      {"movedim", {kImage}, [](const Tensors& x) { return square(movedim(x[0], 0, 2)); }},
      {"expand",
       {kVector},
       [](const Tensors& x) {
         return square(expand(x[0], {3, 4}));
       }},
      {"narrow", {kMatrix}, [](const Tensors& x) { return square(narrow(x[0], 1, 1, 2)); }},
      {"slice", {kMatrix}, [](const Tensors& x) { return square(slice(x[0], 1, 0, 4, 2)); }},
      {"select", {kMatrix}, [](const Tensors& x) { return square(select(x[0], 0, -1)); }},
      {"chunk",
       {kMatrix},
       [](const Tensors& x) {
         Tensors p = chunk(x[0], 2, 1);
         return mul(p[0], p[1]);
       }},
      {"unbind",
       {kMatrix},
       [](const Tensors& x) {
         Tensors p = unbind(x[0]);
         return mul(p[0], mul(p[1], p[2]));
       }},
      {"diagonal", {kMatrix}, [](const Tensors& x) { return square(diagonal(x[0], 1)); }},
      {"unfold", {kVector}, [](const Tensors& x) { return square(unfold(x[0], 0, 2, 1)); }},
      {"as_strided",
       {kVector},
       [](const Tensors& x) {
         return square(as_strided(x[0], {3, 2}, {1, 1}));
       }},
      {"cat",
       {kMatrix, {{1, 4}}},
       [](const Tensors& x) {
         return square(cat({x[0], x[1]}));
       }},
      {"stack",
       {kVector, kVector},
       [](const Tensors& x) {
         return square(stack({x[0], x[1]}, 1));
       }},
      {"repeat",
       {kVector},
       [](const Tensors& x) {
         return square(repeat(x[0], {2, 2}));
       }},
      {"repeat_interleave", {kVector}, [](const Tensors& x) { return square(repeat_interleave(x[0], 2)); }},
      {"roll",
       {kMatrix},
       [](const Tensors& x) {
         return square(roll(x[0], {1, 2}, {0, 1}));
       }},
      {"flip",
       {kMatrix},
       [](const Tensors& x) {
         return square(flip(x[0], {0, 1}));
       }},
      {"meshgrid",
       {kVector, {{2}}},
       [](const Tensors& x) {
         Tensors g = meshgrid({x[0], x[1]});
         return mul(g[0], g[1]);
       }},
      {"swapaxes", {kMatrix}, [](const Tensors& x) { return square(swapaxes(x[0], 0, 1)); }},
      {"mT", {{{2, 3, 2}}}, [](const Tensors& x) { return square(mT(x[0])); }},
      {"view_as",
       {kMatrix},
       [](const Tensors& x) {
         return square(view_as(x[0], zeros({2, 6})));
       }},
      {"reshape_as", {kMatrix}, [](const Tensors& x) { return square(reshape_as(t(x[0]), zeros({12}))); }},
      {"expand_as",
       {kVector},
       [](const Tensors& x) {
         return square(expand_as(x[0], zeros({3, 4})));
       }},
      {"broadcast_to",
       {kVector},
       [](const Tensors& x) {
         return square(broadcast_to(x[0], {2, 4}));
       }},
      {"broadcast_tensors",
       {kVector, {{3, 1}}},
       [](const Tensors& x) {
         const Tensors both = broadcast_tensors(x);
         return both[0] * both[1];
       }},
      {"split",
       {{{5}}},
       [](const Tensors& x) {
         return split(x[0], 2)[1] * split(x[0], {2, 3})[0];
       }},
      {"hstack", {kMatrix, {{3, 2}}}, [](const Tensors& x) { return square(hstack(x)); }},
      {"vstack", {kMatrix, kVector}, [](const Tensors& x) { return square(vstack(x)); }},
      {"tile", {kMatrix}, [](const Tensors& x) { return square(tile(x[0], {2})); }},
      {"contiguous", {kMatrix}, [](const Tensors& x) { return square(contiguous(t(x[0]))); }},
      {"clone", {kMatrix}, [](const Tensors& x) { return square(clone(x[0])); }},
      {"tril", {kMatrix}, [](const Tensors& x) { return square(tril(x[0])); }},
      {"triu", {kMatrix}, [](const Tensors& x) { return square(triu(x[0], 1)); }},
  };
}

std::vector<GradientRow> index_rows() {
  // Made when a row is tested, on the device that tests run on.
  const auto columns = [] { return reshape(long_tensor({2, 0, 1, 1, 3, 0}), {3, 2}); };
  const auto rows = [] { return long_tensor({2, 0, 2}); };
  return {
      {"gather", {kMatrix}, [columns](const Tensors& x) { return square(gather(x[0], 1, columns())); }},
      {"scatter",
       {kMatrix, {{3, 1}}},
       [columns](const Tensors& x) { return square(scatter(x[0], 1, narrow(columns(), 1, 0, 1), x[1])); }},
      {"scatter_number",
       {kMatrix},
       [columns](const Tensors& x) { return square(scatter(x[0], 1, columns(), 2)); }},
      {"scatter_add",
       {kMatrix, {{3, 2}}},
       [columns](const Tensors& x) { return square(scatter_add(x[0], 1, columns(), x[1])); }},
      {"take",
       {kMatrix},
       [](const Tensors& x) {
         return square(take(x[0], long_tensor({3, -1, 3})));
       }},
      {"take_along_dim",
       {kMatrix},
       [columns](const Tensors& x) { return square(take_along_dim(x[0], columns(), 1)); }},
      {"index_select", {kMatrix}, [rows](const Tensors& x) { return square(index_select(x[0], 0, rows())); }},
      {"index_add",
       {kMatrix, kMatrix},
       [rows](const Tensors& x) { return square(index_add(x[0], 0, rows(), x[1], 0.5)); }},
      {"index_copy",
       {kMatrix, {{2, 4}}},
       [](const Tensors& x) {
         return square(index_copy(x[0], 0, long_tensor({2, 0}), x[1]));
       }},
      {"index_fill", {kMatrix}, [rows](const Tensors& x) { return square(index_fill(x[0], 0, rows(), 3)); }},
      {"index",
       {kMatrix},
       [rows](const Tensors& x) {
         return square(index(x[0], {rows(), long_tensor({1, 1, 3})}));
       }},
      {"index_mask",
       {kMatrix},
       [](const Tensors& x) {
         return square(index(x[0], {mask({3, 4})}));
       }},
      {"index_put",
       {kMatrix, {{2, 4}}},
       [](const Tensors& x) {
         return square(index_put(x[0], {long_tensor({2, 0})}, x[1]));
       }},
      {"index_put_add",
       {kMatrix, {{3, 4}}},
       [rows](const Tensors& x) { return square(index_put(x[0], {rows()}, x[1], /*accumulate=*/true)); }},
      {"where",
       {kMatrix, kVector},
       [](const Tensors& x) {
         return square(where(mask({3, 4}), x[0], x[1]));
       }},
      {"masked_fill", {kMatrix}, [](const Tensors& x) { return square(masked_fill(x[0], mask({4}), 2)); }},
      {"masked_select",
       {kMatrix},
       [](const Tensors& x) {
         return square(masked_select(x[0], mask({3, 4})));
       }},
      {"masked_scatter",
       {kMatrix, {{12}}},
       [](const Tensors& x) {
         return square(masked_scatter(x[0], mask({3, 4}), x[1]));
       }},
      {"embedding",
       {{{5, 3}}},
       [](const Tensors& x) {
         return square(embedding(long_tensor({1, 4, 1, 0}), x[0], 3));
       }},
  };
}

std::vector<GradientRow> network_rows() {
  return {
      {"matmul", {kMatrix, {{4, 2}}}, [](const Tensors& x) { return matmul(x[0], x[1]); }},
      {"matmul_batch", {{{2, 1, 3, 4}}, {{2, 4, 2}}}, [](const Tensors& x) { return matmul(x[0], x[1]); }},
      {"matmul_vector", {kMatrix, kVector}, [](const Tensors& x) { return matmul(x[0], x[1]); }},
      {"mm_transposed", {{{4, 3}}, {{2, 4}}}, [](const Tensors& x) { return mm(t(x[0]), t(x[1])); }},
      {"bmm", {{{2, 3, 4}}, {{2, 4, 2}}}, [](const Tensors& x) { return bmm(x[0], x[1]); }},
      {"mv", {kMatrix, kVector}, [](const Tensors& x) { return mv(x[0], x[1]); }},
      {"dot", {kVector, kVector}, [](const Tensors& x) { return dot(x[0], x[1]); }},
      {"outer", {kVector, {{3}}}, [](const Tensors& x) { return outer(x[0], x[1]); }},
      {"addmm", {{{2}}, kMatrix, {{4, 2}}}, [](const Tensors& x) { return addmm(x[0], x[1], x[2], 0.5, 2); }},
      {"baddbmm",
       {{{3, 2}}, {{2, 3, 4}}, {{2, 4, 2}}},
       [](const Tensors& x) { return baddbmm(x[0], x[1], x[2], 2, 0.5); }},
      {"linear", {kMatrix, {{5, 4}}, {{5}}}, [](const Tensors& x) { return linear(x[0], x[1], x[2]); }},
      {"linear_relu",
       {kMatrix, {{5, 4}}, {{5}}},
       [](const Tensors& x) { return linear_relu(x[0], x[1], x[2]); }},
      {"linear_gelu_linear",
       {kMatrix, {{5, 4}}, {{5}}, {{2, 5}}, {{2}}},
       [](const Tensors& x) { return linear_gelu_linear(x[0], x[1], x[2], x[3], x[4]); }},
      {"einsum",
       {{{2, 3, 4}}, {{2, 4, 2}}},
       [](const Tensors& x) {
         return einsum("bij,bjk->ik", {x[0], x[1]});
       }},
      {"conv2d_relu",
       {kImage, {{4, 2, 3, 2}}, {{4}}},
       [](const Tensors& x) { return conv2d_relu(x[0], x[1], x[2]); }},
      {"conv2d",
       {kImage, {{4, 2, 3, 2}}, {{4}}},
       [](const Tensors& x) {
         return conv2d(x[0], x[1], x[2], {.stride = {2, 1}, .padding = 1});
       }},
      {"conv2d_groups",
       {kImage, {{4, 1, 2, 2}}},
       [](const Tensors& x) {
         return conv2d(x[0], x[1], {}, {.padding = {1, 0}, .dilation = 2, .groups = 2});
       }},
      {"conv1d",
       {{{2, 2, 7}}, {{3, 2, 3}}, {{3}}},
       [](const Tensors& x) { return conv1d(x[0], x[1], x[2], {.stride = 2, .padding = 1}); }},
      {"conv_transpose2d",
       {{{2, 2, 3, 4}}, {{2, 3, 3, 2}}, {{3}}},
       [](const Tensors& x) {
         return conv_transpose2d(x[0], x[1], x[2], {.stride = 2, .padding = 1, .output_padding = 1});
       }},
      {"max_pool2d",
       {kImage},
       [](const Tensors& x) { return max_pool2d(x[0], {.kernel_size = 2, .stride = {}, .padding = 1}); }},
      {"max_pool1d",
       {{{2, 2, 7}}},
       [](const Tensors& x) { return max_pool1d(x[0], {.kernel_size = 3, .stride = 2}); }},
      {"avg_pool2d",
       {kImage},
       [](const Tensors& x) {
         return avg_pool2d(x[0],
                           {.kernel_size = {2, 3}, .stride = 2, .padding = 1, .count_include_pad = false});
       }},
      {"avg_pool1d", {{{2, 2, 7}}}, [](const Tensors& x) { return avg_pool1d(x[0], {.kernel_size = 3}); }},
      {"adaptive_avg_pool2d",
       {kImage},
       [](const Tensors& x) {
         return adaptive_avg_pool2d(x[0], {2, 4});
       }},
      {"adaptive_max_pool2d",
       {kImage},
       [](const Tensors& x) {
         return adaptive_max_pool2d(x[0], {2, 4});
       }},
      {"adaptive_avg_pool1d", {{{2, 7}}}, [](const Tensors& x) { return adaptive_avg_pool1d(x[0], 3); }},
      {"adaptive_max_pool1d", {{{2, 7}}}, [](const Tensors& x) { return adaptive_max_pool1d(x[0], 3); }},
      {"batch_norm",
       {kImage, {{2}}, {{2}}},
       [](const Tensors& x) { return batch_norm(x[0], {}, {}, x[1], x[2], /*training=*/true); }},
      {"batch_norm_eval",
       {kImage, {{2}}, {{2}}},
       [](const Tensors& x) {
         return batch_norm(x[0], tensor({0.1, 0.2}, {.dtype = float64}),
                           tensor({1.5, 0.5}, {.dtype = float64}), x[1], x[2]);
       }},
      {"layer_norm",
       {kMatrix, kVector, kVector},
       [](const Tensors& x) { return layer_norm(x[0], {4}, x[1], x[2]); }},
      {"group_norm",
       {{{2, 4, 3}}, kVector, kVector},
       [](const Tensors& x) { return group_norm(x[0], 2, x[1], x[2]); }},
      {"rms_norm", {kMatrix, kVector}, [](const Tensors& x) { return rms_norm(x[0], {4}, x[1]); }},
      {"cross_entropy",
       {kMatrix},
       [](const Tensors& x) {
         return cross_entropy(
             x[0], long_tensor({3, 0, 1}),
             {.weight = tensor({0.5, 1.0, 2.0, 1.5}, {.dtype = float64}), .label_smoothing = 0.1});
       }},
      {"cross_entropy_soft",
       {kMatrix},
       [](const Tensors& x) {
         return cross_entropy(x[0], full({3, 4}, 0.25, {.dtype = float64}), {.reduction = Reduction::None});
       }},
      {"nll_loss",
       {kMatrix},
       [](const Tensors& x) {
         return nll_loss(x[0], long_tensor({3, 0, 1}));
       }},
      {"mse_loss", {kMatrix, kMatrix}, [](const Tensors& x) { return mse_loss(x[0], x[1]); }},
      {"l1_loss", {kMatrix, kPositive}, [](const Tensors& x) { return l1_loss(x[0], x[1]); }},
      {"smooth_l1_loss",
       {kMatrix, kPositive},
       [](const Tensors& x) {
         return smooth_l1_loss(x[0], x[1], {Reduction::None, 0.5});
       }},
      {"huber_loss",
       {kMatrix, kPositive},
       [](const Tensors& x) {
         return huber_loss(x[0], x[1], {Reduction::Sum, 0.7});
       }},
      {"binary_cross_entropy",
       {{{3, 4}, 0.1, 0.9}},
       [](const Tensors& x) {
         return binary_cross_entropy(x[0], full({3, 4}, 0.3, {.dtype = float64}));
       }},
      {"binary_cross_entropy_with_logits",
       {kMatrix},
       [](const Tensors& x) {
         return binary_cross_entropy_with_logits(x[0], full({3, 4}, 0.3, {.dtype = float64}),
                                                 {.pos_weight = full({4}, 2.0, {.dtype = float64})});
       }},
      {"kl_div",
       {kMatrix, kPositive},
       [](const Tensors& x) { return kl_div(x[0], x[1], {.reduction = Reduction::BatchMean}); }},
      {"poisson_nll_loss",
       {kMatrix, {{3, 4}, 1.5, 3}},
       [](const Tensors& x) { return poisson_nll_loss(x[0], x[1], {.full = true}); }},
      {"gaussian_nll_loss",
       {kMatrix, kMatrix, kPositive},
       [](const Tensors& x) { return gaussian_nll_loss(x[0], x[1], x[2]); }},
      {"ctc_loss",
       {{{5, 2, 4}}},
       [](const Tensors& x) {
         return ctc_loss(log_softmax(x[0], 2), long_tensor({1, 2, 2, 3}), {5, 4}, {3, 1},
                         {.reduction = Reduction::None});
       },
       kFirst},
      {"margin_ranking_loss",
       {kMatrix, kPositive},
       [](const Tensors& x) {
         return margin_ranking_loss(x[0], x[1], full({3, 4}, -1.0), {.margin = 3});
       }},
      {"hinge_embedding_loss",
       {kFractions},
       [](const Tensors& x) {
         return hinge_embedding_loss(x[0], where(mask({3, 4}), 1.0, -1.0), {.margin = 2});
       }},
      {"cosine_embedding_loss",
       {kMatrix, kPositive},
       [](const Tensors& x) {
         return cosine_embedding_loss(x[0], x[1], long_tensor({1, 1, -1}), {.margin = -1});
       }},
      {"triplet_margin_loss",
       {kMatrix, kPositive, {{3, 4}, -2, -1}},
       [](const Tensors& x) { return triplet_margin_loss(x[0], x[1], x[2], {.margin = 5, .swap = true}); }},
      {"multi_margin_loss",
       {kMatrix},
       [](const Tensors& x) {
         return multi_margin_loss(x[0], long_tensor({3, 0, 1}), {.p = 2, .margin = 2.5});
       }},
      {"multilabel_margin_loss",
       {kMatrix},
       [](const Tensors& x) {
         return multilabel_margin_loss(mul(x[0], 0.3),
                                       reshape(long_tensor({3, 0, -1, 1, 1, -1, 0, 0, 2, 2, 0, -1}), {3, 4}),
                                       Reduction::None);
       },
       kFirst},
      {"multilabel_soft_margin_loss",
       {kMatrix, kPositive},
       [](const Tensors& x) { return multilabel_soft_margin_loss(x[0], x[1]); }},
      {"soft_margin_loss",
       {kMatrix, kPositive},
       [](const Tensors& x) { return soft_margin_loss(x[0], x[1], Reduction::None); }},
  };
}

/// Changes in place of a value that was computed, so that the old one is still needed by nobody.
TEST_P(Gradcheck, FiniteDifferencesAgree) {
  const GradientRow& row = GetParam();
  Tensors inputs;
  for (const Input& input : row.inputs) inputs.push_back(make_input(input, inputs.size()));
  EXPECT_NO_THROW(gradcheck(row.function, inputs));
  if (row.derivatives == kSecond) {
    EXPECT_NO_THROW(gradgradcheck(row.function, inputs));
  }
}

INSTANTIATE_TEST_SUITE_P(Pointwise, Gradcheck, ::testing::ValuesIn(pointwise_rows()), row_name);
INSTANTIATE_TEST_SUITE_P(Reduce, Gradcheck, ::testing::ValuesIn(reduce_rows()), row_name);
INSTANTIATE_TEST_SUITE_P(Shape, Gradcheck, ::testing::ValuesIn(shape_rows()), row_name);
INSTANTIATE_TEST_SUITE_P(Index, Gradcheck, ::testing::ValuesIn(index_rows()), row_name);
INSTANTIATE_TEST_SUITE_P(Network, Gradcheck, ::testing::ValuesIn(network_rows()), row_name);

}  // namespace
}  // namespace tern::gradient_rows
