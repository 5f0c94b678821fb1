// Descriptions of launches proved on real ones: operators of every family run forward and backward under
// launch_proof.h. Numbers of single descriptions are in work_test.cpp.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tern/autograd/grad_mode.h"
#include "tern/kernels/list.h"
#include "tern/ops/activation.h"
#include "tern/ops/compare.h"
#include "tern/ops/complex.h"
#include "tern/ops/conv.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/diagonal.h"
#include "tern/ops/distance.h"
#include "tern/ops/embedding.h"
#include "tern/ops/fft.h"
#include "tern/ops/fold.h"
#include "tern/ops/grid.h"
#include "tern/ops/index.h"
#include "tern/ops/interpolate.h"
#include "tern/ops/linalg.h"
#include "tern/ops/linear.h"
#include "tern/ops/loss.h"
#include "tern/ops/loss_margin.h"
#include "tern/ops/matmul.h"
#include "tern/ops/norm.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/pool.h"
#include "tern/ops/random.h"
#include "tern/ops/recurrent.h"
#include "tern/ops/reduce.h"
#include "tern/ops/scan.h"
#include "tern/ops/shape.h"
#include "tern/ops/softmax.h"
#include "tern/ops/sort.h"
#include "tern/optim/adadelta.h"
#include "tern/optim/adagrad.h"
#include "tern/optim/adam.h"
#include "tern/optim/adamax.h"
#include "tern/optim/asgd.h"
#include "tern/optim/clip_grad.h"
#include "tern/optim/grad_scaler.h"
#include "tern/optim/nadam.h"
#include "tern/optim/radam.h"
#include "tern/optim/rmsprop.h"
#include "tern/optim/rprop.h"
#include "tern/optim/sgd.h"
#include "tests/kernels/launch_proof.h"

namespace tern {
namespace {

using testing::LaunchProof;
constexpr auto None = Reduction::None;
constexpr auto Sum = Reduction::Sum;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct ProofRow {
  std::string name;
  std::function<void(DType)> run;
};

/// A leaf with numbers in (low, high).
Tensor leaf(const Shape& shape, DType dtype, double low = -1, double high = 1) {
  Tensor x = empty(shape, {.dtype = dtype});
  uniform_(x, low, high, Generator(static_cast<uint64_t>(x.numel()) + 3));
  return x.requires_grad_();
}
Tensor longs(const Shape& shape, int64_t high) {
  return randint(0, high, shape, {.dtype = int64}, Generator(11));
}
Tensor flags(const Shape& shape) { return longs(shape, 2).to(bool_); }

/// Backward with a gradient that differs from element to element.
void back(const Tensor& y) {
  NoGradGuard guard;
  y.backward(leaf(y.shape(), y.dtype()).detach());
}

std::vector<ProofRow> pointwise_rows() {
  return {
      {"unary",
       [](DType d) {
         const Tensor x = leaf({7, 13}, d, 0.1, 0.9);
         for (auto f : {neg, abs, square, exp, log, sqrt, rsqrt, sin, tanh, sigmoid, silu, relu, erf, asin,
                        sinc, frac})
           back(f(x));
         back(gelu(x));
         back(gelu(x, "tanh"));
         back(softplus(x));
         back(elu(x));
         back(leaky_relu(x));
         back(clamp(x, 0.2, 0.7));
         isnan(x);
         logical_not(x);
         NoGradGuard guard;
         Tensor y = clone(x);
         exp(transpose(y, 0, 1));
         transpose(y, 0, 1).sqrt_();
         slice(y, 1, 1, 11, 3).neg_();
       }},
      {"binary",
       [](DType d) {
         const Tensor a = leaf({5, 1, 33}, d, 0.5, 2), b = leaf({6, 1}, d, 0.5, 2), c = leaf({33, 6, 5}, d);
         for (auto f : {static_cast<Tensor (*)(const Tensor&, const Tensor&)>(mul),
                        static_cast<Tensor (*)(const Tensor&, const Tensor&)>(div), maximum, minimum, atan2})
           back(f(a, b));
         back(add(a, permute(c, {2, 1, 0}), 0.5));
         back(a * 3 + 2);
         back(pow(a, b));
         lt(a, b);
         logical_and(flags({4, 5}), flags({5}));
         remainder(a, b);
         NoGradGuard guard;
         Tensor y = clone(a);
         y.add_(b.select(0, 0));
         slice(y, 2, 0, 33, 4).mul_(2);
         add(empty({0, 3}), empty({0, 3}));
       }},
      {"ternary",
       [](DType d) {
         const Tensor a = leaf({5, 9}, d), b = leaf({9}, d), c = leaf({5, 1}, d);
         back(addcmul(a, b, c, 2));
         back(addcdiv(a, b, c));
         back(lerp(a, b, c));
       }},
      {"where",
       [](DType d) {
         const Tensor a = leaf({5, 9}, d), b = leaf({9}, d), mask = flags({5, 1});
         back(where(mask, a, b));
         back(where(mask, a, 2));
         back(masked_fill(a, mask, 1));
         back(masked_select(a, flags({5, 9})));
       }},
      {"copy",
       [](DType d) {
         const Tensor x = leaf({3, 65, 70}, d);
         back(contiguous(transpose(x, 1, 2)));
         back(contiguous(permute(x, {2, 0, 1})));
         back(flip(x, {0, 2}));
         back(cat({x, x}, 2));
         back(expand(select(x, 0, 1), {4, 65, 70}));
         back(unfold(x, 2, 5, 2));
         back(repeat(narrow(x, 2, 3, 9), {2, 1, 3}));
         back(as_strided(x, {4, 4}, {1, 1}));
         back(to(transpose(x, 0, 1), d == float32 ? float64 : float32));
         to(slice(x, 1, 0, 65, 3), int64);
         back(roll(x, {3}, {1}));
         NoGradGuard guard;
         Tensor y = clone(x);
         transpose(y, 0, 2).copy_(leaf({65, 3}, d));
         slice(y, 2, 1, 70, 2).fill_(3);
       }},
      {"creation",
       [](DType d) {
         arange(0, 17, 2, {.dtype = d});
         linspace(0, 1, 9, {.dtype = d});
         eye(5, {.dtype = d});
         const Tensor x = leaf({2, 5, 7}, d);
         for (int64_t diagonal : {-9, -2, 0, 3, 9}) {
           back(tril(x, diagonal));
           back(triu(x, diagonal));
         }
       }},
      {"random",
       [](DType d) {
         NoGradGuard guard;
         Tensor x = empty({77}, {.dtype = d});
         uniform_(x, 0, 1, Generator(1));
         normal_(x, 0, 1, Generator(1));
         exponential_(x, 1, Generator(1));
         bernoulli_(x, 0.5, Generator(1));
         random_(x, 0, 10, Generator(1));
         for (int64_t n : {1, 77, 5000}) randperm(n, {}, Generator(1));
         multinomial(rand({3, 20}, {.dtype = d}, Generator(1)), 5, /*replacement=*/true, Generator(1));
         multinomial(rand({3, 20}, {.dtype = d}, Generator(1)), 5, /*replacement=*/false, Generator(1));
         poisson(full({77}, 3, {.dtype = d}), Generator(1));
         standard_gamma(full({77}, 0.5, {.dtype = d}), Generator(1));
         binomial(full({77}, 9, {.dtype = d}), full({7, 1}, 0.3, {.dtype = d}), Generator(1));
       }},
      {"dropout",
       [](DType d) {
         back(dropout(leaf({9, 11}, d), 0.4, /*training=*/true, Generator(5)));
       }},
  };
}

std::vector<ProofRow> reduce_rows() {
  return {
      {"reduce",
       [](DType d) {
         for (const Tensor& x : {leaf({6, 35, 4}, d, 0.5, 1), transpose(leaf({4, 35, 6}, d, 0.5, 1), 0, 2)}) {
           back(sum(x));
           back(sum(slice(x, 1, 1, 30, 2), {0, 2}));
           for (int64_t dim : {0, 1, 2}) {
             back(sum(x, dim));
             back(mean(x, dim, /*keepdim=*/true));
             back(prod(x, dim));
             back(amax(x, dim));
             back(amin(x, dim));
             back(max(x, dim).first);
             argmin(x, dim);
             back(var(x, dim));
             back(std_mean(x, {dim}).first);
             back(norm(x, 2, dim));
             back(norm(x, 1, dim));
             back(norm(x, kInfinity, dim));
             back(norm(x, 3, dim));
             all(gt(x, 0.75), dim);
             any(gt(x, 0.75), dim);
             count_nonzero(gt(x, 0.75), dim);
           }
           argmax(x);
         }
         sum(empty({0, 3}, {.dtype = d}), 0);
         sum(longs({4, 5}, 9));
         sum(expand(leaf({4, 1}, d), {4, 5}), 1);
       }},
      {"softmax",
       [](DType d) {
         for (const Shape& shape : {Shape{5, 40}, Shape{3, 300}, Shape{2, 7, 20}})
           for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim) {
             back(softmax(leaf(shape, d), dim));
             back(log_softmax(leaf(shape, d), dim));
             back(logsumexp(leaf(shape, d), dim));
           }
         logsumexp(empty({3, 0}, {.dtype = d}), 1);
       }},
      {"scan",
       [](DType d) {
         for (int64_t dim : {0, 1, 2}) {
           back(cumsum(leaf({3, 5, 70}, d), dim));
           back(cumprod(leaf({3, 5, 70}, d, 0.5, 1), dim));
           back(prod(leaf({3, 5, 70}, d, 0.5, 1), dim));
           cumsum(longs({3, 5, 7}, 9).to(int32), dim);
           back(cummax(leaf({3, 5, 70}, d), dim).first);
           cummin(longs({3, 5, 7}, 9), dim);
           back(logcumsumexp(leaf({3, 5, 70}, d), dim));
         }
         back(prod(leaf({4, 5}, d)));
       }},
      {"sort",
       [](DType d) {
         for (int64_t dim : {0, 1}) {
           back(sort(leaf({13, 17}, d), dim).first);
           back(topk(leaf({13, 170}, d), 2, dim).first);
           back(median(leaf({13, 17}, d), dim).first);
           back(kthvalue(leaf({13, 17}, d), 3, dim).first);
         }
         sort(leaf({2, 700}, d), 1, /*descending=*/true);
         median(leaf({33}, d));
         sort(longs({3, 5}, 9));
       }},
  };
}

std::vector<ProofRow> index_rows() {
  return {
      {"index_to_the_ends",
       [](DType d) {
         const Tensor x = leaf({5, 9, 4}, d);
         for (int64_t dim : {0, 1, 2}) {
           const int64_t size = x.size(dim);
           const Tensor both = tensor(std::vector<int64_t>{size - 1, 0});
           const Tensor order = contiguous(expand(
               view(flip(arange(size), {0}), {dim == 0 ? size : 1, dim == 1 ? size : 1, dim == 2 ? size : 1}),
               x.shape()));
           back(gather(x, dim, order));
           back(scatter(x, dim, order, x));
           back(scatter_add(x, dim, order, x));
           for (const char* reduce : {"prod", "amax", "amin"}) back(scatter_reduce(x, dim, order, x, reduce));
           back(index_select(transpose(x, 0, 2), 2 - dim, both));
           back(index_copy(x, dim, both, index_select(x, dim, both).detach()));
           back(index_add(x, dim, both, index_select(x, dim, both).detach()));
           back(index_fill(x, dim, both, 1));
         }
         back(take(x, tensor(std::vector<int64_t>{179, 0})));
         const std::vector<Tensor> corners{tensor(std::vector<int64_t>{0, 4}),
                                           tensor(std::vector<int64_t>{0, 8})};
         back(index(x, corners));
         back(index_put(x, corners, leaf({2, 4}, d)));
       }},
      {"gather",
       [](DType d) {
         const Tensor x = leaf({5, 9, 4}, d);
         for (int64_t dim : {0, 1, 2}) {
           back(gather(x, dim, longs({3, 4, 2}, 4)));
           back(scatter(x, dim, longs({3, 4, 2}, 4), leaf({3, 4, 2}, d)));
           back(scatter(x, dim, longs({3, 4, 2}, 4), 2));
           back(scatter_add(x, dim, longs({3, 4, 2}, 4), leaf({3, 4, 2}, d)));
           back(index_select(transpose(x, 0, 2), dim, longs({7}, 4)));
           back(index_fill(x, dim, longs({3}, 4), 1));
         }
         back(index_add(x, 1, longs({6}, 9), leaf({5, 6, 4}, d)));
         back(index_copy(x, 0, tensor(std::vector<int64_t>{3, 1}), leaf({2, 9, 4}, d)));
         back(take(x, longs({3, 5}, 180)));
       }},
      {"index",
       [](DType d) {
         const Tensor x = leaf({5, 9, 4}, d);
         back(index(x, {longs({6}, 5), longs({6}, 9)}));
         back(index(x, {longs({2, 3}, 5), Tensor(), longs({3}, 4)}));
         back(index(x, {flags({5, 9})}));
         back(index_put(x, {longs({6}, 5), longs({6}, 9)}, leaf({6, 4}, d)));
         back(index_put(x, {longs({6}, 5)}, leaf({4}, d), /*accumulate=*/true));
         NoGradGuard guard;
         Tensor y = clone(x);
         Tensor view = narrow(y, 1, 2, 5);
         index_add_(view, 1, longs({6}, 5), leaf({5, 6, 4}, d));
       }},
      {"nonzero",
       [](DType d) {
         nonzero(leaf({7, 8}, d).relu());
         nonzero(flags({70, 80}));
         nonzero(slice(flags({7, 80}), 1, 0, 80, 3));
         nonzero(zeros({3}));
         where(flags({4, 4}));
       }},
      {"searchsorted",
       [](DType d) {
         searchsorted(sort(leaf({3, 40}, d)).first, leaf({3, 7}, d));
         searchsorted(sort(leaf({40}, d)).first, leaf({3, 7}, d), /*right=*/true);
       }},
      {"embedding",
       [](DType d) {
         back(embedding(longs({4, 6}, 10), leaf({10, 33}, d), 3));
         back(embedding_bag(longs({24}, 10), leaf({10, 33}, d), mul(longs({1}, 1), 0)));
         back(embedding_bag(longs({4, 6}, 10), leaf({10, 33}, d), {}, {BagMode::Sum, leaf({4, 6}, d)}));
       }},
  };
}

void run_conv(DType d, const Shape& x, const Shape& weight, const Conv2dOptions& options) {
  back(conv2d(leaf(x, d), leaf(weight, d), leaf({weight[0]}, d), options));
  back(conv2d_relu(leaf(x, d), leaf(weight, d), leaf({weight[0]}, d), options));
  back(conv2d(leaf(x, d), leaf(weight, d).detach(), leaf({weight[0]}, d), options));
}

std::vector<ProofRow> network_rows() {
  return {
      {"matmul",
       [](DType d) {
         back(matmul(leaf({17, 40}, d), leaf({40, 35}, d)));
         back(matmul(leaf({3, 1, 7, 9}, d), leaf({4, 9, 5}, d)));
         back(matmul(leaf({2, 7, 9}, d), leaf({9, 5}, d)));
         back(mm(t(leaf({9, 7}, d)), t(leaf({5, 9}, d))));
         back(mm(slice(leaf({9, 8}, d), 1, 0, 8, 2), leaf({4, 5}, d)));
         back(mv(leaf({9, 7}, d), leaf({7}, d)));
         back(dot(leaf({70}, d), leaf({70}, d)));
         back(addmm(leaf({5}, d), leaf({9, 7}, d), leaf({7, 5}, d), 0.5, 2));
         back(addmm(t(leaf({5, 9}, d)), leaf({9, 7}, d), leaf({7, 5}, d)));
         back(baddbmm(leaf({3, 1, 5}, d), leaf({3, 9, 7}, d), leaf({3, 7, 5}, d)));
         back(linear(leaf({3, 9, 7}, d), leaf({5, 7}, d), leaf({5}, d)));
         back(linear_relu(leaf({3, 9, 7}, d), leaf({5, 7}, d), leaf({5}, d)));
         back(linear_gelu_linear(leaf({3, 9, 7}, d), leaf({8, 7}, d), leaf({8}, d), leaf({5, 8}, d),
                                 leaf({5}, d)));
         matmul(empty({3, 0}, {.dtype = d}), empty({0, 4}, {.dtype = d}));
         matmul(longs({4, 5}, 9), longs({5, 6}, 9));
       }},
      {"conv2d",
       [](DType d) {
         run_conv(d, {2, 3, 9, 8}, {6, 3, 3, 3}, {.padding = 1});
         run_conv(d, {2, 32, 8, 8}, {32, 32, 3, 3}, {.padding = 1});
         run_conv(d, {2, 4, 9, 8}, {6, 2, 3, 2}, {.stride = {2, 1}, .padding = {1, 0}, .groups = 2});
         run_conv(d, {1, 8, 9, 9}, {8, 1, 3, 3}, {.padding = 2, .dilation = 2, .groups = 8});
         run_conv(d, {2, 16, 7, 5}, {16, 16, 1, 1}, {});
         run_conv(d, {2, 16, 7, 5}, {16, 16, 1, 1}, {.stride = 2});
         run_conv(d, {1, 1, 28, 28}, {6, 1, 5, 5}, {.padding = 2});
         run_conv(d, {1, 16, 14, 14}, {48, 16, 4, 4}, {.stride = 4});
         back(conv_transpose2d(leaf({2, 4, 5, 6}, d), leaf({4, 3, 3, 2}, d), leaf({3}, d), {.stride = 2}));
       }},
      {"pool",
       [](DType d) {
         const Tensor x = leaf({2, 3, 9, 38}, d);
         back(max_pool2d(x, {.kernel_size = 2}));
         back(max_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1}));
         back(avg_pool2d(x, {.kernel_size = 2}));
         back(avg_pool2d(x, {.kernel_size = {3, 2}, .stride = 2, .padding = 1}));
         back(adaptive_avg_pool2d(x, 1));
         back(adaptive_avg_pool2d(x, {4, 5}));
         back(adaptive_max_pool2d(x, {4, 5}));
         NoGradGuard guard;
         max_pool2d(x, {.kernel_size = 2});
         adaptive_max_pool2d(x, 3);
       }},
      {"interpolate",
       [](DType d) {
         const Tensor x = leaf({2, 3, 9, 8}, d);
         back(interpolate(x, {.size = {18, 16}}));
         back(interpolate(x, {.size = {4, 3}, .mode = "bilinear"}));
         back(interpolate(x, {.scale_factor = {1.7}, .mode = "bicubic"}));
         back(interpolate(x, {.size = {5, 3}, .mode = "area"}));
         back(interpolate(permute(x, {0, 3, 1, 2}), {.size = {2, 3}, .mode = "bilinear", .antialias = true}));
         back(interpolate(leaf({1, 2, 3, 4, 5}, d), {.size = {6, 3, 4}, .mode = "trilinear"}));
         back(grid_sample(x, leaf({2, 4, 5, 2}, d)));
         back(grid_sample(leaf({1, 1, 3, 4, 5}, d), leaf({1, 2, 1, 4, 3}, d), {.mode = "bicubic"}));
         back(unfold(x, {2, 3}, {.padding = 1}));
         back(fold(leaf({2, 12, 30}, d), {6, 7}, 2));
       }},
      {"batch_norm",
       [](DType d) {
         const DType p = d == float64 ? float64 : float32;
         for (const Shape& shape : {Shape{8, 37}, Shape{3, 5, 4, 6}}) {
           const Shape channels{shape[1]};
           const Tensor mean = leaf(channels, p).detach(), var = leaf(channels, p, 0.5, 2).detach();
           back(batch_norm(leaf(shape, d), mean, var, leaf(channels, p), leaf(channels, p),
                           /*training=*/true));
           back(batch_norm(leaf(shape, d), mean, var, leaf(channels, p), leaf(channels, p)));
           back(batch_norm(leaf(shape, d), mean, var));
           back(batch_norm(leaf(shape, d), {}, {}, {}, {}, /*training=*/true));
           back(batch_norm(leaf(shape, d).detach(), mean, var, leaf(channels, p), leaf(channels, p), true));
         }
       }},
      {"row_norm",
       [](DType d) {
         const DType p = d == float64 ? float64 : float32;
         back(layer_norm(leaf({6, 4, 35}, d), {35}, leaf({35}, p), leaf({35}, p)));
         back(layer_norm(leaf({6, 4, 35}, d), {4, 35}));
         back(layer_norm(leaf({6, 35}, d).detach(), {35}, leaf({35}, p), leaf({35}, p)));
         back(group_norm(leaf({3, 6, 5, 7}, d), 2, leaf({6}, p), leaf({6}, p)));
         back(rms_norm(leaf({6, 35}, d), {35}, leaf({35}, p)));
         back(rms_norm(leaf({6, 35}, d), {35}));
       }},
      {"attention",  // which operators give to GPUs only
       [](DType) {
         for (const DType d : {bfloat16, float16})
           for (const bool is_causal : {false, true}) {
             const auto numbers = [&](const Shape& shape) { return leaf(shape, d).detach(); };
             const auto operand = [](const Tensor& x) {
               return AttentionOperand{x.data_ptr(), x.strides()[0], x.strides()[1], x.strides()[2]};
             };
             const Tensor query = numbers({2, 4, 70, 8}), key = numbers({2, 2, 90, 8}),
                          value = numbers({2, 2, 90, 16}), output = numbers({2, 4, 70, 16}),
                          log_sums = leaf({2, 4, 70}, float32).detach();
             auto* const sums = static_cast<float*>(log_sums.data_ptr());
             const Stream stream = current_stream(kCPU);
             launch(stream, kernels::attention,
                    {d,
                     {is_causal, 2, 4, 2, 70, 90, 8, 16},
                     0.5,
                     operand(query),
                     operand(key),
                     operand(value),
                     operand(output),
                     sums});
             const Tensor own_key = numbers({2, 4, 90, 8}), own_value = numbers({2, 4, 90, 16}),
                          grad_query = numbers({2, 4, 70, 8}), grad_key = numbers({2, 4, 90, 8}),
                          grad_value = numbers({2, 4, 90, 16}), grad = numbers({2, 4, 70, 16});
             launch(stream, kernels::attention_backward,
                    {d,
                     {is_causal, 2, 4, 4, 70, 90, 8, 16},
                     0.5,
                     operand(query),
                     operand(own_key),
                     operand(own_value),
                     operand(output),
                     operand(grad),
                     operand(grad_query),
                     operand(grad_key),
                     operand(grad_value),
                     sums});
           }
       }},
      {"recurrent",
       [](DType d) {
         const Tensor x = leaf({4, 3, 5}, d), h = leaf({3, 6}, d), c = leaf({3, 6}, d);
         const auto layer = [&](detail::RecurrentKind kind, const LSTMState& state, bool reverse) {
           const int64_t rows = detail::gates_of(kind) * 6;
           const auto result = recurrent_layer(
               kind, x, state, {leaf({rows, 5}, d), leaf({rows, 6}, d), leaf({rows}, d), leaf({rows}, d)},
               reverse);
           return result.state.c.defined() ? add(result.output, result.state.c) : result.output;
         };
         using detail::RecurrentKind;
         back(layer(RecurrentKind::Tanh, {h, {}}, false));
         back(layer(RecurrentKind::Relu, {}, true));
         back(layer(RecurrentKind::Lstm, {h, c}, true));
         back(layer(RecurrentKind::Gru, {h, {}}, false));
         NoGradGuard guard;
         layer(RecurrentKind::Lstm, {}, false);
         layer(RecurrentKind::Gru, {}, true);
       }},
      {"cross_entropy",
       [](DType d) {
         for (Reduction reduction : {Reduction::Mean, Sum, None}) {
           const Tensor weight = leaf({10}, d, 0.5, 1).detach();
           back(cross_entropy(leaf({33, 10}, d), longs({33}, 10), {.reduction = reduction}));
           back(cross_entropy(
               leaf({3, 10, 7}, d), longs({3, 7}, 10),
               {.weight = weight, .ignore_index = 2, .reduction = reduction, .label_smoothing = 0.1}));
           back(nll_loss(leaf({33, 10}, d), longs({33}, 10), {.weight = weight, .reduction = reduction}));
           back(cross_entropy(leaf({5, 300}, d), longs({5}, 300), {.reduction = reduction}));
         }
       }},
      {"pair_loss",
       [](DType d) {
         for (Reduction reduction : {Reduction::Mean, Sum, None}) {
           const Tensor x = leaf({9, 7}, d, 0.1, 0.9), y = leaf({9, 7}, d, 0.2, 0.8).detach();
           back(mse_loss(x, y, reduction));
           back(l1_loss(x, y, reduction));
           back(smooth_l1_loss(x, y, {.reduction = reduction}));
           back(huber_loss(x, y, {.reduction = reduction}));
           back(binary_cross_entropy(x, y, {.reduction = reduction}));
           back(binary_cross_entropy_with_logits(x, y, {.reduction = reduction}));
           back(kl_div(x, y, {.reduction = reduction}));
           back(kl_div(x, y, {.reduction = reduction, .log_target = true}));
         }
       }},
      {"ctc_loss",
       [](DType d) {
         const DType wide = d == float64 ? float64 : float32;
         for (const bool zero : {false, true})
           back(ctc_loss(leaf({6, 3, 5}, wide, -3, -1), longs({3, 2}, 5), {6, 6, 6}, {2, 2, 2},
                         {.reduction = None, .zero_infinity = zero}));
       }},
      {"cdist",
       [](DType d) {
         for (const double p : {0.0, 1.0, 2.0, 2.5, 3.0, HUGE_VAL})
           back(cdist(leaf({2, 4, 5}, d), leaf({2, 3, 5}, d), p, "donot_use_mm_for_euclid_dist"));
       }},
      {"multilabel_margin_loss",
       [](DType d) {
         back(multilabel_margin_loss(leaf({5, 7}, d), sub(longs({5, 7}, 8), 1), None));
       }},
  };
}

/// Two steps with an optimizer; the second has states to start from.
template <class Optimizer, class Options>
void steps(DType dtype, const Options& options) {
  const std::vector<Tensor> params{leaf({3, 5}, dtype), leaf({70}, dtype)};
  Optimizer optimizer(params, options);
  for (int i = 0; i < 2; ++i) {
    for (const Tensor& p : params) p.set_grad(leaf(p.shape(), dtype).detach());
    optimizer.step();
  }
}

std::vector<ProofRow> optim_rows() {
  return {
      {"sgd",
       [](DType d) {
         steps<optim::SGD>(d, optim::SGDOptions{.lr = 0.1});
         steps<optim::SGD>(d, optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
         steps<optim::SGD>(d, optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true});
       }},
      {"adam",
       [](DType d) {
         steps<optim::Adam>(d, optim::AdamOptions{.lr = 0.1, .weight_decay = 0.1});
         steps<optim::Adam>(d, optim::AdamOptions{.lr = 0.1, .amsgrad = true});
         steps<optim::AdamW>(d, optim::AdamWOptions{.lr = 0.1});
       }},
      {"rmsprop",
       [](DType d) {
         steps<optim::RMSprop>(d, optim::RMSpropOptions{.lr = 0.1});
         steps<optim::RMSprop>(d, optim::RMSpropOptions{.lr = 0.1, .momentum = 0.5});
         steps<optim::RMSprop>(d, optim::RMSpropOptions{.lr = 0.1, .momentum = 0.5, .centered = true});
       }},
      {"adagrad",
       [](DType d) { steps<optim::Adagrad>(d, optim::AdagradOptions{.lr = 0.1, .weight_decay = 0.1}); }},
      {"shared_steps",
       [](DType d) {
         steps<optim::NAdam>(d, optim::NAdamOptions{.lr = 0.1, .weight_decay = 0.1});
         steps<optim::RAdam>(
             d, optim::RAdamOptions{.lr = 0.1, .weight_decay = 0.1, .decoupled_weight_decay = true});
         steps<optim::Adamax>(d, optim::AdamaxOptions{.lr = 0.1});
         steps<optim::Adadelta>(d, optim::AdadeltaOptions{.weight_decay = 0.1});
         steps<optim::ASGD>(d, optim::ASGDOptions{.lr = 0.1, .lambd = 0.1});
         steps<optim::Rprop>(d, optim::RpropOptions{.lr = 0.1});
       }},
      {"clip_grad",
       [](DType d) {
         const std::vector<Tensor> params{leaf({3, 5}, d), leaf({70}, d)};
         for (const Tensor& p : params) p.set_grad(leaf(p.shape(), d).detach());
         optim::clip_grad_norm_(params, 0.5);
         optim::clip_grad_norm_(params, 0.1, {.norm_type = kInfinity});
         optim::clip_grad_value_(params, 0.01);
         optim::SGD sgd(params, {.lr = 0.1});
         optim::GradScaler scaler;
         scaler.scale(params[0].sum());
         Tensor middle = select(params[1].grad(), 0, 35);
         middle.fill_(kInfinity);  // or the flag is not written
         scaler.unscale_(sgd);
       }},
  };
}

std::vector<ProofRow> complex_rows() {
  return {{"complex", [](DType d) {
             const auto numbers = [d](const Shape& shape) {
               return randn(shape, {.dtype = complex_dtype(d)}, Generator(5)).requires_grad_();
             };
             const auto through = [](const Tensor& y) { back(is_complex(y.dtype()) ? view_as_real(y) : y); };
             const Tensor a = numbers({3, 1, 5}), b = numbers({4, 5});
             for (auto f : {exp, log, sqrt, abs, angle, tanh, conj}) through(f(transpose(a, 0, 2)));
             through(mul(a, b));
             through(div(a, b));
             through(pow(a, b));
             through(matmul(b, adjoint(b)));
             for (const int64_t n : {1, 8, 30, 67, 600}) {
               const Tensor x = numbers({3, n, 2});
               through(fft::fft(x, {}, 1));
               through(fft::rfft(real(x), {}, 1));
               through(fft::irfft(x, n, 1));
               through(fft::ifft(numbers({9, n})));
               through(fft::rfft(leaf({19, n}, d == float64 ? float64 : float32)));
             }
           }}};
}

std::vector<ProofRow> linalg_rows() {
  const auto real = [](DType d) { return d == bfloat16 ? float32 : d; };
  return {{"linalg", [real](DType d) {
             for (const int64_t n : {5, 40}) {
               const Tensor x = leaf({2, n, n}, real(d));
               const Tensor a = x + eye(n, {.dtype = real(d)}) * static_cast<double>(2 * n);
               const Tensor b = leaf({2, n, 3}, real(d));
               back(linalg::cholesky(matmul(a, mT(a))));
               back(linalg::solve(a, b));
               back(linalg::solve(a, mT(b), /*left=*/false));
               back(linalg::solve_triangular(transpose(a, 1, 2), b, /*upper=*/true));
               back(linalg::inv(a[0]));
               back(linalg::lu_factor(a).first);
               back(linalg::qr(cat({a, a}, 1)).first);
               back(linalg::qr(a, "complete").second);
               back(linalg::eigh(x + mT(x) + diag_embed(arange(n, {.dtype = real(d)}))).second);
               linalg::eigvalsh(a.detach());
               linalg::svd(cat({a, a}, 1).detach());
               back(std::get<0>(linalg::svd(cat({a, a}, 2), /*full_matrices=*/false)));
               linalg::svdvals(a.detach());
             }
           }}};
}

std::vector<ProofRow> all_rows() {
  std::vector<ProofRow> rows;
  for (const auto& group : {pointwise_rows(), reduce_rows(), index_rows(), network_rows(), optim_rows(),
                            linalg_rows(), complex_rows()})
    rows.insert(rows.end(), group.begin(), group.end());
  return rows;
}

TEST(WorkProof, OperandsAreAllThatKernelsTouch) {
  LaunchProof proof;
  for (const ProofRow& row : all_rows()) {
    for (DType dtype : {float32, float64, bfloat16}) {
      proof.set_title(row.name + " of " + std::string(name(dtype)));
      ASSERT_NO_THROW(row.run(dtype)) << row.name;
    }
  }
  for (const std::string& complaint : proof.complaints()) ADD_FAILURE() << complaint;
#define TERN_NAME(kernel, Args) #kernel,
  for (const char* kernel : {TERN_KERNELS(TERN_NAME)})
    EXPECT_TRUE(proof.kernels().contains(kernel))
        << kernel << " was never launched: add an operator that does";
#undef TERN_NAME
}

/// What the proof says when descriptions are changed before it sees them.
std::vector<std::string> complaints_about(const std::function<void(Work&)>& change,
                                          const std::function<void()>& run) {
  LaunchProof proof([&](uint16_t id, const void* args) {
    Work work = work_of(id, args);
    if (id == kernels::matmul.id) change(work);
    return work;
  });
  run();
  return proof.complaints();
}

TEST(WorkProof, FindsDescriptionsThatAreWrong) {
  const auto product = [] {
    NoGradGuard guard;
    const Tensor a = randn({5, 7}), b = randn({7, 4}), c = randn({4});
    addmm(c, a, b);
  };
  ASSERT_TRUE(complaints_about([](Work&) {}, product).empty());
  // Operands: out, a, b, addend.
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_FALSE(complaints_about([i](Work& w) { w.operands.erase(i); }, product).empty()) << "without " << i;
    EXPECT_FALSE(complaints_about([i](Work& w) { w.operands[i].nbytes -= 4; }, product).empty())
        << "short " << i;
    EXPECT_FALSE(complaints_about(
                     [i](Work& w) {
                       w.operands[i].data = static_cast<const char*>(w.operands[i].data) + 4;
                       w.operands[i].nbytes -= 4;
                     },
                     product)
                     .empty())
        << "late " << i;
  }
  EXPECT_FALSE(complaints_about([](Work& w) { w.operands[0].nbytes += 4; }, product).empty())
      << "beyond the end";
}

}  // namespace
}  // namespace tern
