// What is recorded and what is not: grad mode, detach, requires_grad_, leaves; and several threads.
#include <atomic>
#include <barrier>
#include <thread>

#include "autograd_testing.h"

namespace tern {
namespace {

TEST(GradMode, NothingIsRecordedInsideNoGrad) {
  const Tensor x = leaf({1, 2});
  {
    NoGradGuard no_grad;
    EXPECT_FALSE(is_grad_enabled());
    const Tensor y = x * 2;
    EXPECT_FALSE(y.requires_grad());
    EXPECT_TRUE(y.is_leaf());
    EXPECT_EQ(y.grad_fn_name(), "");
    EXPECT_TRUE(x.requires_grad()) << "a leaf keeps its flag";
    {
      EnableGradGuard enable;
      EXPECT_TRUE((x * 2).requires_grad());
    }
    EXPECT_FALSE((x * 2).requires_grad());
    EXPECT_TRUE(zeros({2}, {.requires_grad = true}).requires_grad());
  }
  EXPECT_TRUE(is_grad_enabled());
  EXPECT_EQ((x * 2).grad_fn_name(), "mul");
}

TEST(GradMode, EndsWithTheScopeOfAnException) {
  EXPECT_THROW(no_grad([] { return matmul(ones({2, 3}), ones({2, 3})); }), ShapeError);
  EXPECT_TRUE(is_grad_enabled());
}

TEST(GradMode, ConstantsCarryNoHistory) {
  const Tensor x = leaf({1, 2});
  const Tensor inside = no_grad([&] { return x * 2; });
  (x * inside).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{2, 4})) << "inside counts as a constant";
}

TEST(GradMode, IsOffInsideBackward) {
  const Tensor x = leaf({1});
  const Tensor y = x * x;
  bool plain = true, recorded = false;
  const int64_t hook = y.register_hook([&](const Tensor& g) {
    plain = is_grad_enabled();
    return g;
  });
  y.sum().backward({}, /*retain_graph=*/true);
  EXPECT_FALSE(plain);
  y.remove_hook(hook);
  y.register_hook([&](const Tensor& g) {
    recorded = is_grad_enabled();
    return g;
  });
  y.sum().backward({}, /*retain_graph=*/true, /*create_graph=*/true);
  EXPECT_TRUE(recorded);
  x.set_grad({});
}

TEST(GradMode, BackwardWorksInsideNoGrad) {
  const Tensor x = leaf({3});
  const Tensor y = (x * x).sum();
  no_grad([&] { y.backward(); });
  EXPECT_EQ(grad_of(x), (Floats{6}));
}

TEST(Detach, SharesNumbersAndVersionsAndHasNoHistory) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  Tensor d = y.detach();
  EXPECT_FALSE(d.requires_grad());
  EXPECT_TRUE(d.is_leaf());
  EXPECT_TRUE(y.requires_grad());
  d.mul_(100);
  EXPECT_EQ(values(y), (Floats{200, 400}));
  EXPECT_EQ(y.version(), 1u);
  (y * y).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{800, 1600})) << "PyTorch's too: y was not saved before the change";
}

TEST(Detach, AChangeOfTheCopyIsNoticed) {
  const Tensor x = leaf({1, 2});
  const Tensor y = exp(x);
  y.detach().mul_(100);
  EXPECT_THAT(autograd_error([&] { y.sum().backward(); }), ::testing::HasSubstr("exp: one of the variables"));
}

TEST(Detach, StopsGradients) {
  const Tensor x = leaf({3});
  (x * x.detach()).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{3}));
}

/// What was recorded before goes on without the leaf; its gradient and its hooks stay.
TEST(Detach, InPlaceOfALeafKeepsItsGradient) {
  const Tensor w = leaf({5, 6});
  Tensor x = leaf({3, 4});
  int calls = 0;
  const int64_t hook = x.register_hook([&](const Tensor&) {
    ++calls;
    return Tensor();
  });
  (x * 2).sum().backward();
  const Tensor recorded = (x * w).sum();
  x.detach_();
  EXPECT_FALSE(x.requires_grad());
  recorded.backward();
  EXPECT_EQ(grad_of(w), (Floats{3, 4}));
  EXPECT_EQ(grad_of(x), (Floats{2, 2}));
  EXPECT_EQ(calls, 2);
  x.remove_hook(hook);
  x.requires_grad_();
  (x * 3).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{5, 5}));
  EXPECT_EQ(calls, 2);
}

TEST(Detach, InPlaceOfARetainedTensor) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 2;
  y.retain_grad();
  const int64_t hook = y.register_hook([](const Tensor& g) { return g * 10; });
  const Tensor z = (y * y).sum();
  z.backward({}, /*retain_graph=*/true);
  y.detach_();
  EXPECT_EQ(grad_of(y), (Floats{40, 80}));
  y.remove_hook(hook);
  z.backward();
  EXPECT_EQ(grad_of(y), (Floats{44, 88})) << "what was computed before goes on keeping its gradient";
  EXPECT_EQ(grad_of(x), (Floats{88, 176}));
}

TEST(Detach, InPlaceMakesALeaf) {
  const Tensor x = leaf({3});
  Tensor y = x * 2;
  y.detach_();
  EXPECT_TRUE(y.is_leaf());
  EXPECT_FALSE(y.requires_grad());
  y.requires_grad_();
  (y * y).sum().backward();
  EXPECT_EQ(grad_of(y), (Floats{12}));
  EXPECT_EQ(grad_of(x), Floats());
}

TEST(RequiresGrad, Rules) {
  Tensor x = tensor({1.0f, 2.0f});
  EXPECT_FALSE(x.requires_grad());
  EXPECT_FALSE((x * 2).requires_grad());
  x.requires_grad_();
  const Tensor y = x * 2;
  EXPECT_TRUE(y.requires_grad());
  EXPECT_FALSE(y.is_leaf());
  EXPECT_NO_THROW(y.requires_grad_(true)) << "what it is already";
  EXPECT_THROW(y.requires_grad_(false), AutogradError);
  EXPECT_THROW(arange(3).requires_grad_(), DTypeError);
  EXPECT_NO_THROW(arange(3).requires_grad_(false));
  x.requires_grad_(false);
  EXPECT_FALSE((x * 2).requires_grad());
  y.sum().backward();
  EXPECT_EQ(grad_of(x), Floats()) << "it is asked when the gradient arrives";
}

TEST(RequiresGrad, FrozenBetweenForwardAndBackward) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor y = (x * w).sum();
  x.requires_grad_(false);
  y.backward();
  EXPECT_EQ(grad_of(x), Floats());
  EXPECT_EQ(grad_of(w), (Floats{1, 2}));
}

TEST(RequiresGrad, ALeafThatBecameAResultHasNoPlaceForIts) {
  Tensor x = leaf({1, 2});
  const Tensor w = leaf({3, 4}), y = (x + w).sum();
  x.requires_grad_(false);
  x.add_(w);
  EXPECT_THAT(autograd_error([&] { y.backward(); }), ::testing::HasSubstr("moved into the graph interior"));
}

TEST(RequiresGrad, DoesNotPassThroughWhatHasNoGradient) {
  const Tensor x = leaf({1, 2});
  EXPECT_FALSE((x > 0).requires_grad());
  EXPECT_FALSE(x.to(int64).requires_grad());
  EXPECT_FALSE(argmax(x).requires_grad());
  EXPECT_FALSE(max(x, 0).second.requires_grad());
  EXPECT_TRUE(x.to(float64).requires_grad());
}

TEST(RequiresGrad, ViewsOfALeafAreNoLeaves) {
  const Tensor x = leaf({1, 2});
  const Tensor v = x[0];
  EXPECT_FALSE(v.is_leaf());
  EXPECT_TRUE(v.requires_grad());
  EXPECT_EQ(v.grad_fn_name(), "select");
}

TEST(RequiresGrad, GradientsHaveTheDtypeOfTheirTensor) {
  const Tensor x = ones({2}, {.dtype = bfloat16, .requires_grad = true});
  (x * ones({2})).sum().backward();
  EXPECT_EQ(x.grad().dtype(), bfloat16);
  EXPECT_EQ(values(x.grad()), (Floats{1, 1}));
}

TEST(Threads, GradModeIsOfTheThread) {
  NoGradGuard no_grad;
  bool other = false;
  std::thread([&] { other = is_grad_enabled(); }).join();
  EXPECT_TRUE(other);
  EXPECT_FALSE(is_grad_enabled());
}

/// Two threads train copies that start from the same parameters; each must find what it finds alone.
TEST(Threads, ForwardAndBackwardAtOnce) {
  const Tensor shared = arange(12, {.dtype = float32}).view({3, 4}) * 0.1;
  const Tensor input = ones({2, 3});
  auto work = [&](double factor) {
    const Tensor w = shared.detach().clone().requires_grad_();
    for (int i = 0; i < 200; ++i) {
      w.set_grad({});
      (tanh(matmul(input, w)) * factor).sum().backward();
    }
    return values(w.grad());
  };
  const Floats one = work(1), two = work(2);
  std::barrier start(2);
  Floats found[2];
  std::thread threads[2];
  for (int t = 0; t < 2; ++t)
    threads[t] = std::thread([&, t] {
      start.arrive_and_wait();
      found[t] = work(t + 1);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found[0], one);
  EXPECT_EQ(found[1], two);
}

/// Gradients of a leaf that two graphs share add up, whichever thread comes first.
TEST(Threads, AccumulateIntoOneLeaf) {
  const Tensor x = leaf({1, 2});
  constexpr int kSteps = 500;
  std::thread threads[2];
  for (std::thread& thread : threads)
    thread = std::thread([&] {
      for (int i = 0; i < kSteps; ++i) (x * 2).sum().backward();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(grad_of(x), (Floats{4 * kSteps, 4 * kSteps}));
}

}  // namespace
}  // namespace tern
