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
  x.register_hook([&](const Tensor& g) { seen.push_back(values(g)); });  // it returns nothing
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

/// Hooks stay with the value that they were registered on; their numbers go on with the tensor.
TEST(Hooks, AreRemovedAfterAChangeInPlaceToo) {
  const Tensor x = leaf({1, 2});
  const auto times_10 = [](const Tensor& g) { return g * 10; };
  Tensor y = x * 2, kept = x * 3;
  const int64_t hook = y.register_hook(times_10);
  kept.register_hook(times_10);
  y.mul_(2);
  kept.mul_(2);
  y.remove_hook(hook);
  y.sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{4, 4}));
  x.set_grad({});
  kept.sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{60, 60}));

  const Tensor view = kept.slice(0, 0, 1), before = view.sum();
  const int64_t of_view = view.register_hook(times_10);
  kept.mul_(2);
  view.remove_hook(of_view);
  x.set_grad({});
  before.backward();
  EXPECT_EQ(grad_of(x), (Floats{60, 0})) << "only the hook of `kept`";
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

TEST(RetainGrad, KeepsACopy) {
  const Tensor x = leaf({1, 2});
  const Tensor a = x * 2, b = x * 3, given = ones({2});
  a.retain_grad();
  b.retain_grad();
  (a + b).backward(given);
  a.grad().mul_(10);
  EXPECT_EQ(grad_of(b), (Floats{1, 1}));
  EXPECT_EQ(values(given), (Floats{1, 1}));
  const Tensor c = x * 2;
  c.retain_grad();
  c.expand({3, 2}).sum().backward();
  EXPECT_TRUE(c.grad().is_contiguous());
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

TEST(RetainGrad, FollowsChangesOfViewsAndBases) {
  const Tensor x = leaf({1, 1});
  const Tensor base = x * 2;
  base.retain_grad();
  base.slice(0, 0, 1).mul_(3);
  (base * base).sum().backward();
  EXPECT_EQ(grad_of(base), (Floats{12, 4}));
  EXPECT_EQ(grad_of(x), (Floats{72, 8}));

  const Tensor y = x * 2;
  Tensor view = y.slice(0, 0, 1);
  view.retain_grad();
  view.mul_(3);
  (view * view).sum().backward();
  EXPECT_EQ(grad_of(view), (Floats{12}));

  const Tensor z = x * 2;
  const Tensor shown = z.slice(0, 0, 1);
  shown.retain_grad();
  const Tensor before = shown.sum();
  Tensor(z).add_(1);
  EXPECT_TRUE(shown.requires_grad());
  before.backward();
  EXPECT_EQ(grad_of(shown), Floats()) << "it shows another value now";
}

/// The graph outlives the tensors that keep gradients, whatever was changed in place.
TEST(RetainGrad, OfTensorsThatAreGone) {
  const Tensor x = leaf({1, 1});
  Tensor z;
  {
    const Tensor y = x * 2;
    y.retain_grad();
    y.slice(0, 0, 1).mul_(3);
    z = y.sum();
  }
  z.backward();
  EXPECT_EQ(grad_of(x), (Floats{6, 2}));
  {
    Tensor y = x * 2;
    const Tensor v = y.slice(0, 0, 1);
    v.retain_grad();
    z = v.sum();
    y.add_(1);
    EXPECT_TRUE(v.requires_grad());
  }
  z.backward();
  EXPECT_EQ(grad_of(x), (Floats{8, 2}));
  {
    Tensor y = x * 2;
    y.retain_grad();
    z = y.sum();
    y.detach_();
  }
  z.backward();
  EXPECT_EQ(grad_of(x), (Floats{10, 4}));
}

}  // namespace
}  // namespace tern
