// nn/utils.h: parameters as a vector, weight norm, spectral norm, folded state dicts, folded batch norm; and
// the backward hooks of modules. Numbers are PyTorch's.
#include "tern/nn/utils.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tern/autograd/grad_mode.h"
#include "tern/nn/containers.h"
#include "tern/nn/rnn.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/print.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/support/expect_error.h"

namespace tern::nn {
namespace {

using ::testing::ElementsAre;

Tensor waves(const Shape& shape, double first = 0) {
  return reshape(cos(add(arange(checked_numel(shape), {.dtype = float32}), first)), shape);
}
/// sin(i), sin(i + 1), ... in the i-th parameter.
template <class M>
M with_sines(M module) {
  const NoGradGuard guard;
  double first = 0;
  for (Tensor& p : module.parameters())
    p.copy_(reshape(sin(add(arange(p.numel(), {.dtype = float32}), first++)), p.shape()));
  return module;
}
void expect_numbers_near(const char* what, const Tensor& x, const Tensor& expected) {
  EXPECT_TRUE(allclose(flatten(x.detach()), expected, 5e-5, 2e-5)) << what << ": " << to_string(x);
}
std::vector<std::string> names_in(const StateDict& dict) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : dict) names.push_back(name);
  return names;
}

TEST(Utils, ParametersAsAVector) {
  Linear layer = with_sines(Linear(3, 2));
  const Tensor vector = utils::parameters_to_vector(layer.parameters());
  EXPECT_EQ(vector.shape(), Shape({8}));
  sum(mul(vector, 2)).backward();
  EXPECT_TRUE(equal(layer.bias.grad(), full({2}, 2.0)));
  utils::vector_to_parameters(arange(8, {.dtype = float32}), layer.parameters());
  EXPECT_TRUE(equal(layer.weight, reshape(arange(6, {.dtype = float32}), {2, 3})));
  EXPECT_TRUE(layer.weight.requires_grad() && layer.weight.is_leaf());
  expect_error<ShapeError>([&] { utils::vector_to_parameters(ones({7}), layer.parameters()); },
                           "a number for each of the 8 of the parameters, got [7]");
  expect_error<ValueError>([] { utils::parameters_to_vector({}); }, "there are no parameters");
}

/// Norms doubled, four outputs and the gradients of the sum of their squares.
template <class M>
void expect_weight_norm(M layer, const Tensor& x, const Tensor& g, const Tensor& y, const Tensor& grad_g,
                        const Tensor& grad_v) {
  utils::weight_norm(layer);
  EXPECT_THAT(names_in(layer.state_dict()), ElementsAre("bias", "weight_g", "weight_v"));
  const auto parameters = layer.named_parameters();
  expect_numbers_near("g", parameters[1].second, g);
  {
    const NoGradGuard guard;
    parameters[1].second.detach().mul_(2);
  }
  const Tensor out = layer(x);
  expect_numbers_near("output", narrow(flatten(out), 0, 0, 4), y);
  sum(square(out)).backward();
  expect_numbers_near("grad of g", parameters[1].second.grad(), grad_g);
  expect_numbers_near("grad of v", narrow(flatten(parameters[2].second.grad()), 0, 0, 4), grad_v);
  M plain = layer;  // what is computed goes along with a copy
  EXPECT_TRUE(equal(plain(x), out));
  utils::remove_weight_norm(plain);
  EXPECT_TRUE(allclose(plain(x), out, 1e-5, 1e-5));
  EXPECT_EQ(plain.parameters().size(), 2u);
  EXPECT_EQ(layer.parameters().size(), 3u);
  M folded = with_sines(M(plain));
  folded.load_state_dict(utils::fold_norms(layer.state_dict()));
  EXPECT_TRUE(allclose(folded(x), out, 1e-5, 1e-5));
}

TEST(Utils, WeightNormAsPyTorch) {
  expect_weight_norm(with_sines(Linear(3, 2)), waves({2, 3}), tensor({1.23891, 1.22972}),
                     tensor({0.993966, 1.17184, 0.257293, 1.07522}), tensor({0.00102495, 0.395262}),
                     tensor({2.95699, 1.47406, -1.36411, 0.338805}));
  expect_weight_norm(with_sines(Conv2d(2, 2, 2)), waves({1, 2, 3, 3}), tensor({1.88595, 2.07683}),
                     tensor({3.47498, -0.0334374, -2.15104, 1.18669}), tensor({8.49829, 77.6868}),
                     tensor({19.243, 6.95283, -26.5511, -17.5727}));
  expect_weight_norm(with_sines(ConvTranspose2d(2, 3, 2)), waves({1, 2, 3, 3}), tensor({2.44978, 2.38995}),
                     tensor({1.81925, 2.65921, 1.04092, 0.144839}), tensor({23.5488, 23.3705}),
                     tensor({33.7579, 38.2794, -31.1042, -48.3575}));
  Linear one = with_sines(Linear(3, 2));
  utils::weight_norm(one, "weight", {.dim = std::nullopt, .names = utils::NormNames::Parametrization});
  EXPECT_THAT(names_in(one.state_dict()),
              ElementsAre("bias", "parametrizations.weight.original0", "parametrizations.weight.original1"));
  expect_numbers_near("g", one.parameters()[1], tensor({1.74559}));
}

TEST(Utils, WeightNormInAModelAndOfALoadedDict) {
  Sequential net{{{"hidden", Linear(3, 4)}, {"output", Linear(4, 2)}}};
  utils::weight_norm(net["hidden"].get());
  const Tensor y = net(waves({2, 3}));
  const Sequential copy = clone(net);
  EXPECT_FALSE(copy.named_parameters()[1].second.is_same(net.named_parameters()[1].second));
  Sequential other{{{"hidden", Linear(3, 4)}, {"output", Linear(4, 2)}}};
  expect_error<CheckpointError>([&] { other.load_state_dict(net.state_dict()); },
                                "nn::utils::fold_norms(dict)");
  other.load_state_dict(utils::fold_norms(net.state_dict()));
  EXPECT_TRUE(allclose(other(waves({2, 3})), y, 1e-5, 1e-6));
  utils::weight_norm(other["hidden"].get());
  other.load_state_dict(net.state_dict());
  EXPECT_TRUE(allclose(other(waves({2, 3})), y, 1e-5, 1e-6));
  LSTM lstm(2, 3);
  const Tensor before = lstm(waves({4, 2, 2})).first;
  utils::weight_norm(lstm, "weight_hh_l0");
  EXPECT_TRUE(allclose(lstm(waves({4, 2, 2})).first, before, 1e-5, 1e-6));
}

TEST(Utils, SpectralNormAsPyTorch) {
  const Tensor x = waves({2, 3});
  Linear hooked = with_sines(Linear(3, 2));
  utils::spectral_norm(hooked);
  EXPECT_THAT(names_in(hooked.state_dict()), ElementsAre("bias", "weight_orig", "weight_u", "weight_v"));
  const auto set_vectors = [](Linear& layer) {
    layer.buffers()[0].copy_(tensor({0.6, 0.8}));
    layer.buffers()[1].copy_(tensor({0.6, 0.8, 0.0}));
  };
  set_vectors(hooked);
  const Tensor y = hooked(x);
  expect_numbers_near("output", y, tensor({0.890422, 0.993573, 0.653951, 0.962558}));
  sum(square(y)).backward();
  expect_numbers_near("grad", hooked.parameters()[1].grad(),
                      tensor({0.332737, 0.0504369, -0.278234, 0.0301519, -0.0989326, -0.137059}));
  expect_numbers_near("u", hooked.buffers()[0], tensor({-0.684728, 0.728799}));
  expect_numbers_near("v", hooked.buffers()[1], tensor({0.420894, -0.374901, -0.826013}));
  hooked.eval();
  expect_numbers_near("in evaluation", hooked(x), tensor({0.890422, 0.993573, 0.653951, 0.962558}));
  Linear plain(3, 2);
  plain.load_state_dict(utils::fold_norms(hooked.state_dict()));
  EXPECT_TRUE(allclose(plain(x), y, 1e-5, 1e-6));
  utils::remove_spectral_norm(hooked);
  EXPECT_TRUE(allclose(hooked(x), y, 1e-5, 1e-6));

  Linear parametrized = with_sines(Linear(3, 2));
  utils::spectral_norm(parametrized, "weight", {.names = utils::NormNames::Parametrization});
  EXPECT_THAT(names_in(parametrized.state_dict()),
              ElementsAre("bias", "parametrizations.weight.original", "parametrizations.weight.0._u",
                          "parametrizations.weight.0._v"));
  set_vectors(parametrized);
  expect_numbers_near("output", parametrized(x), tensor({0.88559, 0.985254, 0.672461, 0.957301}));
  ConvTranspose2d square_one(3, 3, 2);  // as many rows by either dimension
  utils::spectral_norm(square_one, "weight", {.n_power_iterations = 20});
  const Tensor z = square_one(waves({1, 3, 2, 2}));
  ConvTranspose2d folded(3, 3, 2);
  folded.load_state_dict(utils::fold_norms(square_one.state_dict()));
  EXPECT_TRUE(allclose(folded(waves({1, 3, 2, 2})), z, 1e-4, 1e-5));
}

TEST(Utils, NormErrors) {
  Linear layer(3, 2);
  expect_error<ValueError>([&] { utils::weight_norm(layer, "wait"); },
                           "weight_norm: 'wait' of Linear is no parameter");
  expect_error<IndexError>([&] { utils::weight_norm(layer, "weight", {.dim = 2}); }, "weight_norm");
  expect_error<ValueError>([&] { utils::remove_weight_norm(layer); },
                           "'weight' of Linear has no weight_norm");
  expect_error<ValueError>([&] { utils::spectral_norm(layer, "weight", {.n_power_iterations = 0}); },
                           "Expected n_power_iterations to be positive");
  utils::weight_norm(layer);
  expect_error<ValueError>([&] { utils::spectral_norm(layer); }, "is computed by weight_norm already");
  LazyLinear lazy(2);
  expect_error<ValueError>([&] { utils::weight_norm(lazy); }, "waits for its size");
  expect_error<CheckpointError>(
      [] {
        utils::fold_norms({{"a.weight_g", ones({3, 1})}, {"a.weight_v", ones({2, 4})}});
      },
      "'a.weight': the norms [3, 1]");
  expect_error<CheckpointError>(
      [] {
        utils::fold_norms({{"w_orig", ones({2, 3})}, {"w_u", ones({4})}, {"w_v", ones({3})}});
      },
      "'w': the singular vectors [4] and [3] fit no dimension");
  const StateDict plain =
      utils::fold_norms({{"weight_g", ones({2})}, {"parametrizations.w.original", ones({2})}});
  EXPECT_THAT(names_in(plain), ElementsAre("weight_g", "parametrizations.w.original"));
}

template <class Layer, class Fused>
void expect_fused(Layer layer, int64_t channels, const Tensor& x, const Fused& fuse) {
  BatchNorm2d norm(channels);
  norm.running_mean.copy_(waves({channels}, 1));
  norm.running_var.copy_(add(waves({channels}, 2), 1.5));
  const NoGradGuard guard;
  norm.weight.detach().copy_(waves({channels}, 3));
  layer.eval();
  expect_error<ValueError>([&] { fuse(layer, norm); }, "Fusion only for eval!");
  norm.eval();
  const Tensor y = layer(x);
  const Tensor expected = y.dim() == 2 ? squeeze(norm(unsqueeze(unsqueeze(y, -1), -1)), {-2, -1}) : norm(y);
  const auto fused = fuse(layer, norm);
  EXPECT_TRUE(allclose(fused(x), expected, 1e-4, 1e-5)) << layer.str();
  EXPECT_TRUE(fused.weight.requires_grad());
}

TEST(Utils, BatchNormInTheLayerBefore) {
  const auto of_conv = [](const auto& conv, const BatchNorm& norm) {
    return utils::fuse_conv_bn_eval(conv, norm);
  };
  expect_fused(Conv2d(4, 6, 3, {.groups = 2, .bias = false}), 6, waves({2, 4, 5, 5}), of_conv);
  expect_fused(ConvTranspose2d(4, 6, 3, {.groups = 2}), 6, waves({2, 4, 5, 5}), of_conv);
  expect_fused(Linear(3, 4), 4, waves({2, 3}),
               [](const Linear& l, const BatchNorm& norm) { return utils::fuse_linear_bn_eval(l, norm); });
  const Conv2d conv(1, 2, 3);
  BatchNorm2d without(2, {.track_running_stats = false}), other(3);
  const_cast<Conv2d&>(conv).eval();
  without.eval();
  other.eval();
  expect_error<ValueError>([&] { utils::fuse_conv_bn_eval(conv, without); }, "has no running statistics");
  expect_error<ShapeError>([&] { utils::fuse_conv_bn_eval(conv, other); }, "has 3 features, but the layer");
}

// ---- backward hooks

TEST(BackwardHooks, SeeAndReplaceGradients) {
  Linear layer = with_sines(Linear(3, 2));
  std::vector<std::string> order;
  Tensor seen_input, seen_output;
  HookHandle look = layer.register_full_backward_hook(
      [&](const Module& module, const Tensor& grad_input, const Tensor& grad_output) {
        order.push_back(module.class_name());
        seen_input = grad_input;
        seen_output = grad_output;
      });
  const Tensor x = waves({2, 3}).requires_grad_();
  sum(mul(layer(x), 3)).backward();
  EXPECT_THAT(order, ElementsAre("Linear"));
  EXPECT_TRUE(equal(seen_output, full({2, 2}, 3.0)));
  EXPECT_TRUE(equal(seen_input, x.grad()));
  look.remove();
  HookHandle replace = layer.register_full_backward_hook(
      [](const Module&, const Tensor& grad_input, const Tensor& grad_output) {
        return grad_input.defined() ? mul(grad_input, 2) : grad_output;
      });
  HookHandle before = layer.register_full_backward_pre_hook(
      [](const Module&, const Tensor& grad_output) { return mul(grad_output, 5); });
  const Tensor once = x.grad().detach().clone();
  x.set_grad({});
  layer.zero_grad();
  sum(mul(layer(x), 3)).backward();
  EXPECT_TRUE(allclose(x.grad(), mul(once, 10)));
  EXPECT_TRUE(equal(layer.bias.grad(), full({2}, 30.0)));
  EXPECT_EQ(order.size(), 1u);
  expect_error<AutogradError>([&] { sum(layer(x.detach())).backward(); }, "requires no gradient");
  replace.remove();
  sum(layer(x.detach())).backward();
  before.remove();
  const NoGradGuard guard;
  EXPECT_FALSE(layer(x).requires_grad());
}

TEST(BackwardHooks, OfModulesWithSeveralResultsAndInsideNets) {
  LSTM lstm(3, 2);
  int calls = 0;
  lstm.register_full_backward_hook([&](const Module&, const Tensor& grad_input, const Tensor& grad_output) {
    ++calls;
    EXPECT_EQ(grad_output.shape(), Shape({4, 2, 2}));
    EXPECT_FALSE(grad_input.defined());
  });
  sum(lstm(waves({4, 2, 3})).first).backward();
  Sequential net{Linear(3, 3), Linear(3, 2)};
  std::vector<std::string> order;
  for (size_t i = 0; i < 2; ++i)
    net[i]->register_full_backward_hook(
        [&order, i](const Module&, const Tensor&, const Tensor&) { order.push_back(std::to_string(i)); });
  sum(net(waves({2, 3}))).backward();
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(order, ElementsAre("1", "0"));
  expect_error<ValueError>([&] { net[0]->register_full_backward_hook(BackwardHook()); }, "empty function");
  expect_error<ValueError>([&] { net[0]->register_full_backward_pre_hook(BackwardPreHook()); },
                           "empty function");
}

}  // namespace
}  // namespace tern::nn
