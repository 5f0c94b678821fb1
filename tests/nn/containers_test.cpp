// Sequential, ModuleList, ModuleDict and AnyModule.
#include "tern/nn/containers.h"

#include <gmock/gmock.h>

#include "tern/kernels/profiler.h"
#include "tern/nn/activation.h"
#include "tern/nn/conv.h"
#include "tern/nn/linear.h"
#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tests/support/expect_error.h"

namespace tern::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const Module& module) {
  std::vector<std::string> list;
  for (const auto& [name, tensor] : module.state_dict()) list.push_back(name);
  return list;
}

TEST(Sequential, CallsOneAfterTheOther) {
  Sequential net{Linear(2, 3), ReLU(), Linear(3, 1, {.bias = false})};
  EXPECT_EQ(net.size(), 3U);
  EXPECT_THAT(names(net), ElementsAre("0.weight", "0.bias", "2.weight"));
  Tensor x = ones({4, 2});
  Tensor expected = net[2](relu(net[0].as<Linear>()(x)));
  EXPECT_EQ(net(x).detach().to_vector<float>(), expected.detach().to_vector<float>());
  EXPECT_EQ(net[-1].as<Linear>().in_features(), 3);
  net.push_back(Tanh());
  EXPECT_EQ(net["3"]->class_name(), "Tanh");
  std::vector<std::string> keys;
  for (auto& [name, module] : net) keys.push_back(name);
  EXPECT_THAT(keys, ElementsAre("0", "1", "2", "3"));
  EXPECT_TRUE(Sequential()(x).is_same(x));
}

std::vector<std::string> kernels_of(Sequential& net, const Tensor& x) {
  Profiler profiler;
  profiler.start();
  net(x);
  profiler.stop();
  std::vector<std::string> names;
  for (const ProfileEvent& event : profiler.events())
    if (event.kind == Activity::Kind::Kernel) names.push_back(event.name);
  return names;
}

TEST(Sequential, ReluAfterAConvolutionIsOneKernelUnlessAHookLooks) {
  Sequential net{Conv2d(1, 2, 3), ReLU()};
  const Tensor x = randn({2, 1, 5, 5});
  const Tensor wanted = relu(net[0](x));
  EXPECT_EQ(kernels_of(net, x), std::vector<std::string>{"conv2d_relu"});
  EXPECT_TRUE(allclose(net(x), wanted));

  Tensor seen;
  net[0]->register_forward_hook([&](const Module&, const Tensor&, const Tensor& y) {
    seen = y;
    return Tensor();
  });
  EXPECT_EQ(kernels_of(net, x), (std::vector<std::string>{"conv2d", "relu"}));
  EXPECT_LT(seen.min().item<float>(), 0);
  EXPECT_TRUE(allclose(net(x), wanted));
}

TEST(Sequential, GeluBetweenLayersIsPartOfTheFirstUnlessAHookLooks) {
  const std::vector<std::string> one_by_one = {"addmm", "gelu(tanh)", "addmm"};
  const Tensor x = randn({3, 4});
  Sequential net{Linear(4, 8), GELU("tanh"), Linear(8, 2)};
  const Tensor wanted = net[2](net[1](net[0](x)));
  EXPECT_EQ(kernels_of(net, x), (std::vector<std::string>{"linear_gelu", "addmm"}));
  EXPECT_TRUE(allclose(net(x), wanted));
  for (size_t i = 0; i < net.size(); ++i) {
    HookHandle hook =
        net[i]->register_forward_hook([](const Module&, const Tensor&, const Tensor&) { return Tensor(); });
    EXPECT_EQ(kernels_of(net, x), one_by_one) << i;
    hook.remove();
  }
  Sequential exact{Linear(4, 8), GELU(), Linear(8, 2)};
  EXPECT_EQ(kernels_of(exact, x), (std::vector<std::string>{"addmm", "gelu", "addmm"}));
  Sequential misfit{Linear(4, 8), GELU("tanh"), Linear(7, 2)};
  expect_error<ShapeError>(
      [&] { misfit(x); },
      "Sequential.2 (Linear): linear: inner sizes differ: input is [3, 8], weight is [2, 7] (8 vs 7)");
}

// Between parentheses the compiler chooses the order: GCC begins at the last.
TEST(Sequential, LayersBetweenBracesDrawTheirNumbersInOrder) {
  const DefaultGeneratorGuard guard(Generator(0, RandomEngine::MersenneTwister));
  const Linear first(2, 3), last(3, 1);
  // PyTorch's: torch.manual_seed(0); torch.nn.Linear(2, 3).weight
  const Tensor torch = tensor({{-0.0053, 0.3793}, {-0.5820, -0.5204}, {-0.2723, 0.1896}});
  if (get_default_device().is_cpu()) {
    EXPECT_TRUE(allclose(first.weight.to(float64), torch.to(float64), 0, 5e-5));
  }
  const auto expect_both = [&](const Module& net) {
    const std::vector<Tensor> parameters = net.parameters();
    ASSERT_EQ(parameters.size(), 4U);
    EXPECT_TRUE(equal(parameters[0], first.weight));
    EXPECT_TRUE(equal(parameters[1], first.bias));
    EXPECT_TRUE(equal(parameters[2], last.weight));
    EXPECT_TRUE(equal(parameters[3], last.bias));
  };
  const auto seed = [] { manual_seed(0); };
  seed();
  expect_both(Sequential{Linear(2, 3), ReLU(), Linear(3, 1)});
  seed();
  expect_both(Sequential{{"hidden", Linear(2, 3)}, {"act", ReLU()}, {"output", Linear(3, 1)}});
  seed();
  expect_both(ModuleList<>{Linear(2, 3), ReLU(), Linear(3, 1)});
  seed();
  expect_both(ModuleDict<>{{"b", Linear(2, 3)}, {"a", Linear(3, 1)}});
}

TEST(Sequential, NamedForm) {
  Sequential net{{"hidden", Linear(2, 3)}, {"act", ReLU()}};
  EXPECT_THAT(names(net), ElementsAre("hidden.weight", "hidden.bias"));
  EXPECT_EQ(net["act"]->class_name(), "ReLU");
  EXPECT_THROW((Sequential{{"a", ReLU()}, {"a", ReLU()}}), ValueError);
}

TEST(Sequential, CopiesShareTensorsOnly) {
  Sequential net{Linear(2, 2)};
  Sequential copy = net;
  copy.eval();
  EXPECT_TRUE(net[0]->is_training());
  EXPECT_TRUE(copy[0].as<Linear>().weight.is_same(net[0].as<Linear>().weight));
  Sequential other = clone(net);
  EXPECT_FALSE(other[0].as<Linear>().weight.is_same(net[0].as<Linear>().weight));
}

TEST(Sequential, WrongUse) {
  Sequential net{Linear(2, 2)};
  EXPECT_THROW(net[1], IndexError);
  EXPECT_THROW(net[-2], IndexError);
  EXPECT_THROW(net["fc"], IndexError);
  EXPECT_THROW(net[0].as<ReLU>(), TypeError);
  EXPECT_THROW(AnyModule()(ones({1})), ValueError);
  EXPECT_THROW(AnyModule().get(), ValueError);
}

struct TwoInputs : Module {
  TERN_MODULE()
  Tensor forward(const Tensor& a, const Tensor&) const { return a; }
};

struct MoveOnly : Module {
  std::unique_ptr<int> number;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return x; }
};

TEST(AnyModule, HoldsModulesThatItCanNotCallOrCopy) {
  AnyModule two = TwoInputs();
  EXPECT_THROW(two(ones({1})), TypeError);
  EXPECT_NO_THROW(two.as<TwoInputs>()(ones({1}), ones({1})));
  AnyModule single = MoveOnly();
  EXPECT_NO_THROW(single(ones({1})));
  EXPECT_THROW(AnyModule{std::as_const(single)}, TypeError);
  AnyModule moved = std::move(single);
  EXPECT_TRUE(moved.has_value());
}

TEST(ModuleList, TypedAndOfAnyType) {
  ModuleList<Linear> layers{Linear(2, 3), Linear(3, 4)};
  layers.emplace_back(4, 5);
  EXPECT_THAT(names(layers), ElementsAre("0.weight", "0.bias", "1.weight", "1.bias", "2.weight", "2.bias"));
  Tensor x = ones({1, 2});
  for (const Linear& layer : layers) x = layer(x);
  EXPECT_EQ(x.size(1), 5);
  EXPECT_EQ(layers[-1].out_features(), 5);
  EXPECT_THROW(layers[3], IndexError);
  ModuleList<> mixed{Linear(1, 1), ReLU()};
  mixed.push_back(Tanh());
  EXPECT_EQ(mixed[2]->class_name(), "Tanh");
  EXPECT_EQ(mixed.children().size(), 3U);
}

TEST(ModuleDict, KeepsItsOrder) {
  ModuleDict<> heads{{"b", Linear(1, 1, {.bias = false})}, {"a", ReLU()}};
  heads.insert("c", Tanh());
  EXPECT_THAT(heads.keys(), ElementsAre("b", "a", "c"));
  EXPECT_THAT(names(heads), ElementsAre("b.weight"));
  EXPECT_TRUE(heads.contains("a"));
  EXPECT_THROW(heads["d"], IndexError);
  EXPECT_THROW(heads.insert("a", ReLU()), ValueError);
}

struct Mixed : Module {
  ParameterList weights{Parameter(ones({2, 3})), Parameter(zeros({2}), /*requires_grad=*/false)};
  ParameterDict scales{{"left", Parameter(ones({1}))}};
  TERN_MODULE(weights, scales)
  Tensor forward(const Tensor& x) const { return scales["left"] * matmul(weights[0], x) + weights[1]; }
};

TEST(ParameterContainers, HoldWhatTheModuleLearns) {
  Mixed net;
  net.scales.insert("right", ones({2, 2}));
  EXPECT_THAT(names(net), ElementsAre("weights.0", "weights.1", "scales.left", "scales.right"));
  sum(net(ones({3}))).backward();
  EXPECT_EQ(net.weights[0].grad().to_vector<float>(), std::vector<float>(6, 1));
  net.to(float64);
  for (const Parameter& parameter : net.weights) EXPECT_EQ(parameter.dtype(), float64);
  Mixed other;
  other.scales.insert("right", zeros({2, 2}));
  other.load_state_dict(net.state_dict());
  EXPECT_TRUE(equal(other.scales["right"], ones({2, 2})));
}

TEST(ParameterContainers, ListsGrowAtAnyPlace) {
  const Parameter first(ones({1}));
  ParameterList list;
  list.append(first);
  list.append(full({1}, 2.0));
  list.extend(std::vector<Tensor>{full({1}, 3.0), full({1}, 4.0)});
  list.insert(-1, full({1}, 3.5));
  list.insert(99, full({1}, 5.0));
  std::vector<float> values;
  for (const Parameter& parameter : list) values.push_back(parameter.item<float>());
  EXPECT_THAT(values, ElementsAre(1, 2, 3, 3.5, 4, 5));
  EXPECT_TRUE(list[0].is_same(first));
  EXPECT_TRUE(list[1].requires_grad());
  EXPECT_EQ(list[-1].item<float>(), 5);
  expect_error<IndexError>([&] { list[6]; }, "index 6 is out of range: it holds 6 parameters");
  expect_error<ValueError>([&] { list.append(Parameter()); }, "the parameter is absent");
}

TEST(ParameterContainers, DictsKeepTheirOrder) {
  ParameterDict dict{{"b", Parameter(ones({1}))}};
  dict.insert("a", zeros({2}));
  EXPECT_THAT(dict.keys(), ElementsAre("b", "a"));
  EXPECT_TRUE(dict.contains("a"));
  EXPECT_EQ(dict.size(), 2U);
  expect_error<IndexError>([&] { dict["c"]; }, "there is no parameter 'c': the names are 'b', 'a'");
  expect_error<ValueError>([&] { dict.insert("a", ones({1})); }, "there is a parameter 'a' already");
  for (const char* name : {"", "a.b"})
    expect_error<ValueError>([&] { dict.insert(name, ones({1})); }, "a name must not be empty");
}

TEST(ParameterContainers, PrintAsPyTorchDoes) {
  Mixed net;
  net.cpu();
  net.scales.insert("right", ones({2, 2}, {.dtype = float64, .device = kCPU}));
  EXPECT_EQ(net.weights.str(),
            "ParameterList(\n"
            "    (0): Parameter containing: [torch.float32 of size 2x3]\n"
            "    (1): Parameter containing: [torch.float32 of size 2]\n"
            ")");
  EXPECT_EQ(net.scales.str(),
            "ParameterDict(\n"
            "    (left): Parameter containing: [torch.FloatTensor of size 1]\n"
            "    (right): Parameter containing: [torch.DoubleTensor of size 2x2]\n"
            ")");
  EXPECT_EQ(ParameterList().str(), "ParameterList()");
}

TEST(Containers, PrintAsPyTorchDoes) {
  Sequential net{Sequential{Linear(2, 3), ReLU()},
                 ModuleList<>{Linear(1, 1), Linear(1, 1), ReLU()},
                 ModuleDict<>{{"a", ReLU()}},
                 ModuleList<>(),
                 ModuleDict<>(),
                 Sequential()};
  EXPECT_EQ(net.str(),
            "Sequential(\n"
            "  (0): Sequential(\n"
            "    (0): Linear(in_features=2, out_features=3, bias=True)\n"
            "    (1): ReLU()\n"
            "  )\n"
            "  (1): ModuleList(\n"
            "    (0-1): 2 x Linear(in_features=1, out_features=1, bias=True)\n"
            "    (2): ReLU()\n"
            "  )\n"
            "  (2): ModuleDict(\n"
            "    (a): ReLU()\n"
            "  )\n"
            "  (3): ModuleList()\n"
            "  (4): ModuleDict()\n"
            "  (5): Sequential()\n"
            ")");
}

}  // namespace
}  // namespace tern::nn
