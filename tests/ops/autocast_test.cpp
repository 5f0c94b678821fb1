// Autocast's guard: scopes, gradients, the cache of weights. Which operator computes in which dtype is
// compared with PyTorch in autocast.py.
#include "tern/ops/autocast.h"

#include <gtest/gtest.h>

#include <thread>

#include "tern/autograd/engine.h"
#include "tern/autograd/grad_mode.h"
#include "tern/core/memory.h"
#include "tern/device/registry.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/linear.h"
#include "tern/ops/loss.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

DeviceType here() { return get_default_device().type; }
DeviceType elsewhere() { return here() == DeviceType::CPU ? DeviceType::CUDA : DeviceType::CPU; }
AutocastOptions on(DType dtype = bfloat16) { return {.device_type = here(), .dtype = dtype}; }

TEST(Autocast, IsOffAtFirst) {
  EXPECT_FALSE(is_autocast_enabled(DeviceType::CPU));
  EXPECT_FALSE(is_autocast_enabled(DeviceType::CUDA));
  EXPECT_EQ(get_autocast_dtype(DeviceType::CPU), bfloat16);
  EXPECT_EQ(get_autocast_dtype(DeviceType::CUDA), float16);
  EXPECT_TRUE(is_autocast_cache_enabled());
  EXPECT_EQ(matmul(ones({2, 2}), ones({2, 2})).dtype(), float32);
}

TEST(Autocast, CastsInItsScope) {
  const Tensor a = randn({3, 4}), b = randn({4, 5});
  {
    const AutocastGuard guard(on());
    EXPECT_TRUE(is_autocast_enabled(here()));
    EXPECT_FALSE(is_autocast_enabled(elsewhere()));
    const Tensor y = matmul(a, b);
    EXPECT_EQ(y.dtype(), bfloat16);
    EXPECT_TRUE(equal(y, matmul(a.to(bfloat16), b.to(bfloat16))));
    EXPECT_EQ((y + 1).dtype(), bfloat16);
    EXPECT_EQ((y + a.sum()).dtype(), bfloat16);
  }
  EXPECT_FALSE(is_autocast_enabled(here()));
  EXPECT_EQ(matmul(a, b).dtype(), float32);
}

TEST(Autocast, LeavesOtherDevicesFloat64AndIntegersAlone) {
  {
    const AutocastGuard guard({.device_type = elsewhere(), .dtype = bfloat16});
    EXPECT_EQ(matmul(ones({2, 2}), ones({2, 2})).dtype(), float32);
  }
  const AutocastGuard guard(on());
  EXPECT_EQ(matmul(ones({2, 2}, {.dtype = float64}), ones({2, 2}, {.dtype = float64})).dtype(), float64);
  EXPECT_EQ(matmul(ones({2, 2}, {.dtype = int64}), ones({2, 2}, {.dtype = int64})).dtype(), int64);
  expect_error<DTypeError>([] { matmul(ones({2, 2}, {.dtype = float64}), ones({2, 2})); }, "same dtype");
}

TEST(Autocast, Nests) {
  const Tensor a = ones({2, 2});
  const AutocastGuard outer(on(bfloat16));
  {
    const AutocastGuard inner(on(float16));
    EXPECT_EQ(mm(a, a).dtype(), float16);
    {
      const AutocastGuard off({.device_type = here(), .enabled = false});
      EXPECT_FALSE(is_autocast_enabled(here()));
      EXPECT_EQ(mm(a, a).dtype(), float32);
      const AutocastGuard again({.device_type = here()});
      EXPECT_EQ(mm(a, a).dtype(), float16);
    }
    EXPECT_EQ(mm(a, a).dtype(), float16);
  }
  EXPECT_EQ(get_autocast_dtype(here()), bfloat16);
  EXPECT_EQ(mm(a, a).dtype(), bfloat16);
}

TEST(Autocast, IsPutBackWhenAnErrorLeavesItsScope) {
  const Tensor a = ones({2, 3});
  expect_error<ShapeError>(
      [&] {
        const AutocastGuard guard(on());
        mm(a, a);
      },
      "mm: inner sizes differ");
  EXPECT_FALSE(is_autocast_enabled(here()));
  const AutocastGuard guard(on());
  expect_error<ShapeError>([&] { mm(a, a); }, "mm: inner sizes differ");
  EXPECT_TRUE(is_autocast_enabled(here()));
  EXPECT_EQ(mm(a, mT(a)).dtype(), bfloat16);
}

TEST(Autocast, TakesSixteenBitFloatsOnly) {
  expect_error<ValueError>([] { const AutocastGuard guard(on(float32)); },
                           "autocast: dtype float32 is not supported: give bfloat16 or float16");
  EXPECT_FALSE(is_autocast_enabled(here()));
  const AutocastGuard off({.device_type = here(), .dtype = float32, .enabled = false});
}

TEST(Autocast, EachThreadHasItsOwn) {
  const AutocastGuard guard(on());
  bool enabled = true;
  std::thread([&] { enabled = is_autocast_enabled(here()); }).join();
  EXPECT_FALSE(enabled);
}

TEST(Autocast, GradientsHaveTheDtypeOfTheirLeaf) {
  const Tensor weight = randn({5, 4}).requires_grad_(), bias = randn({5}).requires_grad_();
  const Tensor x = randn({3, 4});
  Tensor loss;
  {
    const AutocastGuard guard(on());
    loss = mse_loss(linear(x, weight, bias), zeros({3, 5}));
    EXPECT_EQ(loss.dtype(), float32);
  }
  loss.backward();
  EXPECT_EQ(weight.grad().dtype(), float32);
  EXPECT_EQ(bias.grad().dtype(), float32);
  const Tensor exact_weight = weight.detach().clone().requires_grad_();
  mse_loss(linear(x, exact_weight, bias.detach()), zeros({3, 5})).backward();
  EXPECT_TRUE(allclose(weight.grad(), exact_weight.grad(), 0.05, 0.05));
  EXPECT_FALSE(equal(weight.grad(), exact_weight.grad()));
}

TEST(Autocast, BackwardRunsWithoutIt) {
  const Tensor weight = randn({4, 4}).requires_grad_(), x = randn({3, 4});
  const auto step = [&](bool backward_inside) {
    weight.set_grad({});
    Tensor loss;
    {
      const AutocastGuard guard(on());
      loss = matmul(exp(matmul(x, weight)), weight).sum();
      if (backward_inside) {
        loss.register_hook([](const Tensor& g) {
          EXPECT_FALSE(is_autocast_enabled(here()));
          return g;
        });
        loss.backward();
        EXPECT_TRUE(is_autocast_enabled(here()));
      }
    }
    if (!backward_inside) loss.backward();
    return weight.grad();
  };
  EXPECT_TRUE(equal(step(true), step(false)));
}

TEST(Autocast, SecondDerivatives) {
  const Tensor x = randn({3, 3}).requires_grad_();
  const AutocastGuard guard(on());
  const Tensor y = matmul(x, x).sum();
  const Tensor first = grad({y}, {x}, {}, {.create_graph = true})[0];
  EXPECT_EQ(first.dtype(), float32);
  const Tensor second = grad({mul(first, first).sum()}, {x})[0];
  EXPECT_EQ(second.dtype(), float32);
}

/// What tensors take now.
uint64_t allocated() {
  settle();
  const Device device = get_default_device();
  return backend_of(device.type).memory_stats(device.index).allocated;
}

/// AddressSanitizer sees every storage of the CPU as an allocation of its own, which nobody counts.
bool memory_is_counted() {
#if defined(__SANITIZE_ADDRESS__)
  return here() != DeviceType::CPU;
#else
  return true;
#endif
}

TEST(AutocastCache, KeepsCastsOfWeightsUntilTheOutermostGuardGoes) {
  if (!memory_is_counted()) GTEST_SKIP() << "memory of the CPU is not counted with AddressSanitizer";
  const Tensor weight = randn({512, 512}).requires_grad_(), x = randn({1, 512});
  const uint64_t before = allocated();
  {
    const AutocastGuard outer(on());
    mm(x, weight);
    const uint64_t once = allocated();
    EXPECT_GE(once, before + 512 * 512 * 2);
    {
      const AutocastGuard inner(on());
      mm(x, weight);
    }
    mm(x, weight);
    EXPECT_EQ(allocated(), once);
  }
  EXPECT_EQ(allocated(), before);
}

TEST(AutocastCache, KeepsNothingElse) {
  if (!memory_is_counted()) GTEST_SKIP() << "memory of the CPU is not counted with AddressSanitizer";
  const Tensor weight = randn({512, 512}), x = randn({1, 512});
  const Tensor leaf = weight.clone().requires_grad_();
  const uint64_t before = allocated();
  const AutocastGuard outer(on());
  mm(x, weight);
  EXPECT_EQ(allocated(), before);
  {
    const AutocastGuard inner({.device_type = here(), .cache_enabled = false});
    EXPECT_FALSE(is_autocast_cache_enabled());
    mm(x, leaf);
  }
  EXPECT_EQ(allocated(), before);
  mm(x, leaf);
  EXPECT_GT(allocated(), before);
  clear_autocast_cache();
  EXPECT_EQ(allocated(), before);
}

TEST(AutocastCache, SeesChangesInPlace) {
  const Tensor weight = ones({4, 4}).requires_grad_(), x = ones({1, 4});
  const AutocastGuard guard(on());
  EXPECT_EQ(mm(x, weight).sum().item<float>(), 16);
  {
    const NoGradGuard no_grad;
    Tensor changed = weight;
    changed.mul_(2);
  }
  EXPECT_EQ(mm(x, weight).sum().item<float>(), 32);
}

TEST(AutocastCache, ACastMadeWithoutGradientsIsNotUsedWithThem) {
  const Tensor weight = ones({4, 4}).requires_grad_(), x = ones({1, 4});
  const AutocastGuard guard(on());
  no_grad([&] { return mm(x, weight); });
  const Tensor y = mm(x, weight);
  ASSERT_TRUE(y.requires_grad());
  y.sum().backward();
  EXPECT_TRUE(equal(weight.grad(), ones({4, 4})));
  EXPECT_FALSE(no_grad([&] { return mm(x, weight); }).requires_grad());
}

TEST(AutocastCache, AWeightThatIsUsedTwiceGetsBothGradients) {
  const Tensor weight = ones({2, 2}).requires_grad_(), x = ones({1, 2});
  {
    const AutocastGuard guard(on());
    mm(mm(x, weight), weight).sum().backward();
  }
  EXPECT_EQ(weight.grad().dtype(), float32);
  EXPECT_TRUE(equal(weight.grad(), full({2, 2}, 4.0)));
}

TEST(Autocast, BinaryCrossEntropyOnGpusIsAnError) {
  const Tensor p = full({3}, 0.5), target = ones({3});
  const AutocastGuard guard(on());
  if (here() == DeviceType::CPU)
    EXPECT_EQ(binary_cross_entropy(p.to(bfloat16), target.to(bfloat16)).dtype(), float32);
  else
    expect_error<ValueError>([&] { binary_cross_entropy(p, target); }, "are unsafe to autocast");
}

}  // namespace
}  // namespace tern
