// Modules: fields and their names, lists, modes, moving, copies, calls with hooks and errors.
#include "tern/nn/module.h"

#include <gmock/gmock.h>

#include <sstream>

#include "tern/core/memory.h"
#include "tern/nn/activation.h"
#include "tern/nn/containers.h"
#include "tern/nn/dropout.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tests/support/expect_error.h"

namespace tern::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Block : Module {
  explicit Block(int64_t n = 2) : first(n, 3), second(3, n, {.bias = false}) {}
  Linear first;
  Linear second;
  TERN_MODULE(first, second)
  Tensor forward(const Tensor& x) const { return second(relu(first(x))); }
};

struct Net : Module {
  Parameter scale{ones({2})};
  Parameter absent;
  Buffer seen{zeros({}, {.dtype = int64})};
  Buffer scratch{zeros({4}), {.persistent = false}};
  Block block;
  std::optional<Linear> extra;
  std::vector<Block> more;
  AnyModule act = ReLU();
  TERN_MODULE(scale, absent, seen, scratch, block, extra, more, act)

  Tensor forward(const Tensor& x) { return act(block(x * scale)); }
};

struct Deeper : Block {
  Linear last{2, 1};
  TERN_MODULE_OF(Block, last)
  Tensor forward(const Tensor& x) const { return last(Block::forward(x)); }
};

template <class T>
std::vector<std::string> names(const std::vector<std::pair<std::string, T>>& named) {
  std::vector<std::string> list;
  for (const auto& [name, value] : named) list.push_back(name);
  return list;
}

TEST(Module, FieldsOfTheBaseComeFirst) {
  const Deeper net;
  EXPECT_THAT(names(net.named_parameters()),
              ElementsAre("first.weight", "first.bias", "second.weight", "last.weight", "last.bias"));
  EXPECT_EQ(net(ones({5, 2})).shape(), (Shape{5, 1}));
}

TEST(Module, NamesItsFieldsInOrder) {
  Net net;
  EXPECT_THAT(names(net.named_parameters()),
              ElementsAre("scale", "block.first.weight", "block.first.bias", "block.second.weight"));
  EXPECT_THAT(names(net.named_parameters(/*recurse=*/false)), ElementsAre("scale"));
  EXPECT_THAT(names(net.named_buffers()), ElementsAre("seen", "scratch"));
  EXPECT_THAT(names(net.named_children()), ElementsAre("block", "act"));
  EXPECT_THAT(names(net.named_modules()), ElementsAre("", "block", "block.first", "block.second", "act"));
  net.extra.emplace(1, 1);
  net.more.resize(2);
  EXPECT_THAT(names(net.named_children()), ElementsAre("block", "extra", "more.0", "more.1", "act"));
  EXPECT_EQ(net.parameters().size(), 4U + 2 + 2 * 3);
  EXPECT_EQ(net.modules().size(), net.named_modules().size());
  EXPECT_EQ(net.children()[0], &net.block);
  EXPECT_NE(net.block.first.as<Linear>(), nullptr);
  EXPECT_EQ(net.block.as<Linear>(), nullptr);
}

TEST(Module, CountsTiedParametersOnce) {
  Block block(3);
  block.second.weight = block.first.weight;
  EXPECT_THAT(names(block.named_parameters()), ElementsAre("first.weight", "first.bias"));
  std::vector<std::string> saved;
  for (const auto& [name, tensor] : block.state_dict()) saved.push_back(name);
  EXPECT_THAT(saved, ElementsAre("first.weight", "first.bias", "second.weight"));
  Block copy = clone(block);
  EXPECT_TRUE(copy.second.weight.is_same(copy.first.weight));
  EXPECT_FALSE(copy.first.weight.is_same(block.first.weight));
}

TEST(Module, ParametersRequireGradients) {
  Net net;
  for (const Tensor& p : net.parameters()) EXPECT_TRUE(p.requires_grad() && p.is_leaf());
  EXPECT_FALSE(net.absent.defined());
  net.requires_grad_(false);
  for (const Tensor& p : net.parameters()) EXPECT_FALSE(p.requires_grad());
  EXPECT_THROW(Parameter(zeros({2}, {.dtype = int64})), DTypeError);
}

TEST(Module, CopiesShareAndClonesDoNot) {
  Net net;
  Net copy = net;
  EXPECT_TRUE(copy.block.first.weight.is_same(net.block.first.weight));
  net.block.first.weight.set_grad(ones({3, 2}));
  Net other = clone(net);
  EXPECT_FALSE(other.block.first.weight.is_same(net.block.first.weight));
  EXPECT_EQ(other.block.first.weight.detach().to_vector<float>(),
            net.block.first.weight.detach().to_vector<float>());
  EXPECT_TRUE(other.block.first.weight.requires_grad());
  EXPECT_EQ(other.block.first.weight.grad().to_vector<float>(), std::vector<float>(6, 1));
  EXPECT_FALSE(other.seen.is_same(net.seen));
  EXPECT_FALSE(other.scratch.persistent);
  other.seen.fill_(7);
  EXPECT_EQ(net.seen.item<int64_t>(), 0);
  copy.eval();
  EXPECT_TRUE(net.is_training());
  Net moved = std::move(copy);
  EXPECT_FALSE(moved.is_training());
  net = other;
  EXPECT_TRUE(net.scale.is_same(other.scale));
}

TEST(Module, TrainAndEvalReachEveryModule) {
  Net net;
  EXPECT_TRUE(net.is_training());
  net.eval();
  for (Module* module : net.modules()) EXPECT_FALSE(module->is_training());
  net.train();
  for (Module* module : net.modules()) EXPECT_TRUE(module->is_training());
}

TEST(Module, ConvertsFloatingTensorsInPlace) {
  Net net;
  Tensor weight = net.block.first.weight;
  weight.set_grad(ones({3, 2}));
  net.to(float64);
  EXPECT_EQ(weight.dtype(), float64);
  EXPECT_EQ(weight.grad().dtype(), float64);
  EXPECT_TRUE(weight.is_same(net.block.first.weight));
  EXPECT_EQ(net.seen.dtype(), int64);
  EXPECT_EQ(net.scratch.dtype(), float64);
  EXPECT_EQ(net.to("cpu").to(get_default_device(), float32).parameters()[0].dtype(), float32);
  EXPECT_THROW(net.to(int64), DTypeError);
  Tensor y = net(ones({1, 2}));
  y.sum().backward();
  EXPECT_EQ(weight.grad().dtype(), float32);
}

TEST(Module, ZeroGrad) {
  Block block;
  block.first.weight.set_grad(ones({3, 2}));
  block.zero_grad(/*set_to_none=*/false);
  EXPECT_EQ(block.first.weight.grad().to_vector<float>(), std::vector<float>(6, 0));
  block.zero_grad();
  EXPECT_FALSE(block.first.weight.grad().defined());
}

TEST(Module, AppliesToChildrenFirst) {
  Net net;
  std::vector<std::string> order;
  net.apply([&](Module& module) { order.push_back(module.class_name()); });
  EXPECT_THAT(order, ElementsAre("Linear", "Linear", "Block", "ReLU", "Net"));
}

TEST(Module, HooksSeeAndReplace) {
  Block block;
  Tensor x = ones({1, 2});
  Tensor plain = block(x);
  int calls = 0;
  HookHandle pre = block.first.register_forward_pre_hook([&](const Module& module, const Tensor& input) {
    EXPECT_EQ(module.class_name(), "Linear");
    ++calls;
    return input * 0;
  });
  HookHandle post =
      block.register_forward_hook([&](const Module&, const Tensor& input, const Tensor& output) {
        EXPECT_TRUE(input.is_same(x));
        ++calls;
        return output + 1;
      });
  Tensor hooked = block(x);
  EXPECT_EQ(calls, 2);
  Tensor expected = block.second.forward(relu(block.first.bias)) + 1;
  EXPECT_EQ(hooked.detach().to_vector<float>(), expected.detach().to_vector<float>());
  pre.remove();
  post.remove();
  post.remove();
  EXPECT_EQ(block(x).detach().to_vector<float>(), plain.detach().to_vector<float>());
  EXPECT_EQ(calls, 2);
}

TEST(Module, HooksThatOnlyLookReturnNothing) {
  Block block;
  const Tensor x = ones({1, 2}), plain = block(x);
  int calls = 0;
  HookHandle pre = block.register_forward_pre_hook([&](const Module&, const Tensor& input) {
    EXPECT_TRUE(input.is_same(x));
    ++calls;
  });
  HookHandle post = block.register_forward_hook(
      [&, own = 0](const Module&, const Tensor&, const Tensor&) mutable { calls += ++own; });
  EXPECT_TRUE(equal(block(x), plain));
  EXPECT_EQ(calls, 2);
  pre.remove();
  post.remove();
  block(x);
  EXPECT_EQ(calls, 2);
  expect_error<ValueError>(
      [&] { block.register_forward_pre_hook(std::function<void(const Module&, const Tensor&)>()); },
      "register_forward_pre_hook: the hook is an empty function");
}

TEST(Module, CopiesHaveHooksOfTheirOwn) {
  Block block;
  std::string log;
  const auto writes = [&log](char letter) {
    return [&log, letter](const Module&, const Tensor&, const Tensor&) {
      log += letter;
      return Tensor();
    };
  };
  HookHandle first = block.first.register_forward_hook(writes('a'));
  Block copy(block), cloned = clone(block);
  copy.first.register_forward_hook(writes('b'));
  cloned.first.register_forward_hook(writes('c'));
  first.remove();
  const Tensor x = ones({1, 2});
  for (Block* each : {&block, &copy, &cloned}) {
    (*each)(x);
    log += '|';
  }
  EXPECT_EQ(log, "|ab|ac|");
}

struct Pair : Module {
  TERN_MODULE()
  std::pair<Tensor, Tensor> forward(int factor, const Tensor& a, const Tensor& b) { return {a * factor, b}; }
};

TEST(Module, HooksOfForwardsWithSeveralTensors) {
  Pair pair;
  Tensor a = ones({1}), b = zeros({1}), seen;
  HookHandle handle =
      pair.register_forward_hook([&](const Module&, const Tensor& input, const Tensor& output) {
        EXPECT_TRUE(input.is_same(a));
        seen = output;
        return Tensor();
      });
  auto [x, y] = pair(3, a, b);
  EXPECT_EQ(x.item<float>(), 3);
  EXPECT_TRUE(y.is_same(b));
  EXPECT_TRUE(seen.is_same(x));
  handle.remove();
  pair.register_forward_hook([&](const Module&, const Tensor& input, const Tensor&) { return input; });
  EXPECT_THROW(pair(3, a, b), ValueError);
}

TEST(Module, ErrorsSayWhereTheyArose) {
  Net net;
  Tensor wrong = ones({1, 5});
  std::string alone = message_of([&] { net.block.first(wrong); });
  EXPECT_THAT(alone, ::testing::StartsWith("linear: "));
  EXPECT_EQ(message_of([&] { net.block(wrong); }), "Block.first (Linear): " + alone);
  Sequential outer{ReLU(), Sequential{ReLU(), net.block}};
  EXPECT_EQ(message_of([&] { outer(wrong); }), "Sequential.1.1.first (Linear): " + alone);
  EXPECT_THAT(message_of([&] { net(wrong); }), ::testing::StartsWith("Net: "));
  EXPECT_THROW(outer(wrong), ShapeError);
}

struct Forgiving : Module {
  Linear a{2, 2};
  Linear b{2, 2};
  TERN_MODULE(a, b)
  Tensor forward(const Tensor& x) {
    try {
      return a(x);
    } catch (const Error&) {
      return b(x);
    }
  }
};

TEST(Module, ErrorsThatWereCaughtDoNotMixWithLaterOnes) {
  Forgiving net;
  EXPECT_THAT(message_of([&] {
                net(ones({1, 5}));
              }),
              ::testing::StartsWith("Forgiving.b (Linear): linear: "));
}

TEST(Module, PrintsAsPyTorchDoes) {
  Net net;
  std::ostringstream text;
  text << net;
  EXPECT_EQ(text.str(),
            "Net(\n"
            "  (block): Block(\n"
            "    (first): Linear(in_features=2, out_features=3, bias=True)\n"
            "    (second): Linear(in_features=3, out_features=2, bias=False)\n"
            "  )\n"
            "  (act): ReLU()\n"
            ")");
  EXPECT_EQ(Pair().str(), "Pair()");
}

TEST(Module, TrainsWithItsHandles) {
  manual_seed(0);
  Block block;
  Tensor x = randn({8, 2});
  float before = (block(x) - x).square().mean().item<float>();
  for (int i = 0; i < 50; ++i) {
    block.zero_grad();
    (block(x) - x).square().mean().backward();
    for (Tensor& p : std::vector<Tensor>(block.parameters())) {
      Tensor data = p.detach();
      data.sub_(p.grad(), 0.1);
    }
  }
  EXPECT_LT((block(x) - x).square().mean().item<float>(), 0.8F * before);
}

}  // namespace
}  // namespace tern::nn
