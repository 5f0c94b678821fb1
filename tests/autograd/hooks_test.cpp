// Hooks on gradients and retain_grad: order, replacement, removal, on leaves and on computed tensors. The
// semantics are those of PyTorch 2: hooks run when the whole gradient of a tensor is there, and before it is
// kept or captured.
#include "autograd_testing.h"

namespace tern {
namespace {

TEST(Hooks, OnAComputedTensor) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 3;
  Floats seen;
  y.register_hook([&](const Tensor& g) {
    seen = values(g);
    return Tensor();
  });
  (y * y).sum().backward();
  EXPECT_EQ(seen, (Floats{6, 12}));
  EXPECT_EQ(grad_of(x), (Floats{18, 36}));
}

TEST(Hooks, OnALeafSeeTheWholeGradientOnce) {
  const Tensor x = leaf({1, 2});
  std::vector<Floats> seen;
  x.register_hook([&](const Tensor& g) {
    seen.push_back(values(g));
    return Tensor();
  });
  (x * 2 + x * 3).sum().backward();
  EXPECT_EQ(seen, (std::vector<Floats>{{5, 5}}));
}

TEST(Hooks, RunInOrderAndPassOnWhatTheyReturn) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 3;
  std::vector<std::pair<std::string, Floats>> log;
  auto hook = [&](std::string name, auto change) {
    return [&log, name, change](const Tensor& g) -> Tensor {
      log.emplace_back(name, values(g));
      return change(g);
    };
  };
  const auto nothing = [](const Tensor&) { return Tensor(); };
  x.register_hook(hook("x1", [](const Tensor& g) { return g * 2; }));
  x.register_hook(hook("x2", nothing));
  y.register_hook(hook("y1", [](const Tensor& g) { return g + 1; }));
  y.register_hook(hook("y2", nothing));
  y.sum().backward();
  const std::vector<std::pair<std::string, Floats>> expected = {
      {"y1", {1, 1}}, {"y2", {2, 2}}, {"x1", {6, 6}}, {"x2", {12, 12}}};
  EXPECT_EQ(log, expected);
  EXPECT_EQ(grad_of(x), (Floats{12, 12}));
}

TEST(Hooks, RemovedOnesStaySilent) {
  const Tensor x = leaf({1});
  const Tensor y = x * 2;
  int calls = 0;
  auto count = [&calls](const Tensor&) {
    ++calls;
    return Tensor();
  };
  const int64_t first = x.register_hook(count), second = x.register_hook(count),
                of_y = y.register_hook(count);
  EXPECT_NE(first, second);
  x.remove_hook(first);
  y.remove_hook(of_y);
  x.remove_hook(12345);  // no such hook
  y.sum().backward();
  EXPECT_EQ(calls, 1);
}

TEST(Hooks, MayRemoveThemselves) {
  const Tensor x = leaf({1});
  int calls = 0;
  int64_t number = 0;
  number = x.register_hook([&](const Tensor&) {
    ++calls;
    x.remove_hook(number);
    return Tensor();
  });
  for (int i = 0; i < 3; ++i) (x * 1).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(grad_of(x), (Floats{3}));
}

TEST(Hooks, ExceptionsComeThrough) {
  const Tensor x = leaf({1});
  x.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("from the hook"); });
  Tensor y = (x * 2).sum();
  EXPECT_THROW(y.backward(), std::runtime_error);
  EXPECT_EQ(grad_of(x), Floats());
  EXPECT_TRUE(is_grad_enabled());
}

/// The graph must live to the end of the walk even when a hook lets go of everything.
TEST(Hooks, MayLetGoOfTheOutput) {
  const Tensor x = leaf({2});
  Tensor y = x * x;
  Tensor z = exp(y * 0).sum();
  z.register_hook([&](const Tensor&) {
    z.detach_();
    y = Tensor();
    return Tensor();
  });
  z.backward();
  EXPECT_EQ(grad_of(x), (Floats{0}));
}

TEST(Hooks, AreRecordedWithCreateGraph) {
  const Tensor x = leaf({3});
  x.register_hook([](const Tensor& g) { return g * g; });
  (x * x).sum().backward({}, /*retain_graph=*/true, /*create_graph=*/true);
  EXPECT_EQ(grad_of(x), (Floats{36}));
  // d((2x)^2)/dx = 8x, and the hook squares it.
  EXPECT_EQ(values(grad({x.grad().sum()}, {x})[0]), (Floats{24 * 24}));
  x.set_grad({});  // it holds the graph, which holds x
}

TEST(Hooks, RunForGradToo) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 3;
  y.register_hook([](const Tensor& g) { return g * 10; });
  const std::vector<Tensor> g = grad({(y * y).sum()}, {y, x});
  EXPECT_EQ(values(g[0]), (Floats{60, 120}));
  EXPECT_EQ(values(g[1]), (Floats{180, 360}));
  EXPECT_EQ(grad_of(x), Floats());
}

TEST(RetainGrad, KeepsWhatTheHooksLeft) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 3;
  y.retain_grad();
  y.register_hook([](const Tensor& g) { return g + 1; });
  y.sum().backward();
  EXPECT_EQ(grad_of(y), (Floats{2, 2}));
  EXPECT_EQ(grad_of(x), (Floats{6, 6}));
}

TEST(RetainGrad, AddsUpAndIsAbsentWithoutIt) {
  const Tensor x = leaf({1, 2});
  const Tensor kept = x * 3, other = x * 4;
  kept.retain_grad();
  const Tensor y = (kept * kept + other).sum();
  y.backward({}, /*retain_graph=*/true);
  y.backward();
  EXPECT_EQ(grad_of(kept), (Floats{12, 24}));
  EXPECT_EQ(grad_of(other), Floats());
}

TEST(RetainGrad, OnALeafChangesNothing) {
  const Tensor x = leaf({1});
  x.retain_grad();
  (x * 2).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{2}));
}

/// As in PyTorch: the gradient of the tensor as it is after the change.
TEST(RetainGrad, FollowsAChangeInPlace) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 2;
  y.retain_grad();
  y.mul_(5);
  y.sum().backward();
  EXPECT_EQ(grad_of(y), (Floats{1, 1}));
  EXPECT_EQ(grad_of(x), (Floats{10, 10}));
}

}  // namespace
}  // namespace tern
