// Functions that are called again in backward: the same gradients to the bit, with less memory; and what
// waits in host memory.
#include "tern/nn/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tern/autograd/engine.h"
#include "tern/autograd/gradcheck.h"
#include "tern/base/error.h"
#include "tern/core/generator.h"
#include "tern/device/capture.h"
#include "tern/device/cuda.h"
#include "tern/nn/activation.h"
#include "tern/nn/dropout.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/nn/transformer.h"
#include "tern/ops/activation.h"
#include "tern/ops/autocast.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/print.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/support/expect_error.h"

namespace tern::nn {
namespace {

using testing::HasSubstr;
using utils::checkpoint;

/// Two layers with dropout between.
Sequential block() { return Sequential{Linear(8, 16), Tanh(), Dropout(0.5), Linear(16, 8), ReLU()}; }

/// The gradients of x and of the parameters of `net`, of what `run` makes of x. Always the same random
/// numbers.
template <class Net, class Run>
std::vector<Tensor> gradients(const Net& net, Run&& run) {
  manual_seed(7);
  const Tensor x = rand({4, 8}).requires_grad_();
  std::vector<Tensor> inputs = net.parameters();
  inputs.insert(inputs.begin(), x);
  const Tensor y = run(x);
  const Tensor later = rand({1});  // must not depend on what backward draws
  std::vector<Tensor> grads = grad({(y * y).sum()}, inputs);
  grads.push_back(later);
  grads.push_back(rand({1}));
  return grads;
}

void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(equal(a[i], b[i])) << what << ", tensor " << i;
}

TEST(Checkpoint, GivesTheSameGradientsToTheBit) {
  Sequential net = block();
  const auto plain = [&](const Tensor& x) { return net(x); };
  const auto expected = gradients(net, plain);
  expect_same(gradients(net, [&](const Tensor& x) { return checkpoint(net, x); }), expected, "a module");
  expect_same(gradients(net,
                        [&](const Tensor& x) {
                          return checkpoint([&](const Tensor& a) { return checkpoint(net, a * 1); }, x);
                        }),
              expected, "one in another");
  for (const int64_t segments : {1, 2, 3, 5})
    expect_same(
        gradients(net, [&](const Tensor& x) { return utils::checkpoint_sequential(net, segments, x); }),
        expected, "segments");
  {
    const AutocastGuard autocast({.device_type = get_default_device().type, .dtype = DType::BFloat16});
    const auto in_16_bits = gradients(net, plain);
    EXPECT_FALSE(equal(in_16_bits[1], expected[1]));
    expect_same(gradients(net, [&](const Tensor& x) { return checkpoint(net, x); }), in_16_bits, "autocast");
  }
  if (!get_default_device().is_cpu()) return;
  manual_seed(7, RandomEngine::MersenneTwister);
  expect_same(gradients(net, [&](const Tensor& x) { return checkpoint(net, x); }), gradients(net, plain),
              "a Mersenne Twister");
  manual_seed(7, RandomEngine::Philox);
}

TEST(Checkpoint, CallsTheFunctionOnceMore) {
  int calls = 0;
  const auto counted = [&calls](const Tensor& a, const Tensor& b) {
    ++calls;
    return std::pair{exp(a) * b, tanh(a)};
  };
  const Tensor a = rand({3}).requires_grad_(), b = rand({3});
  const auto [first, second] = checkpoint(counted, a, b);
  const Tensor loss = (first + second).sum();
  EXPECT_EQ(calls, 1);
  loss.backward({}, /*retain_graph=*/true);
  EXPECT_EQ(calls, 2);
  loss.backward();
  EXPECT_EQ(calls, 2) << "what was computed again stays as long as the graph";
  EXPECT_TRUE(allclose(a.grad(), 2 * (exp(a) * b + 1 - square(tanh(a)))));
  EXPECT_FALSE(no_grad([&] { return checkpoint(counted, a, b); }).first.requires_grad());
  EXPECT_FALSE(checkpoint(counted, b, b).first.requires_grad());
}

TEST(Checkpoint, SecondDerivatives) {
  const std::vector<Tensor> x = {tensor({0.5, -1.0}, {.dtype = DType::Float64, .requires_grad = true})};
  const auto function = [](const Tensor& a) { return exp(a * a) * tanh(a); };
  gradgradcheck([&](const std::vector<Tensor>& in) { return checkpoint(function, in[0]); }, x);
}

TEST(Checkpoint, GradientsInsideTheFunction) {
  const auto penalty = [](const Tensor& a) {
    const Tensor inside = grad({exp(a * a).sum()}, {a}, {}, {.create_graph = true})[0];
    return square(inside);
  };
  const Tensor x = rand({3}, {.requires_grad = true}), y = x * 1;
  EXPECT_TRUE(equal(grad({checkpoint(penalty, y).sum()}, {x})[0], grad({penalty(y).sum()}, {x})[0]));
}

TEST(Checkpoint, WithAResultOfTheFunctionThatStays) {
  const Tensor x = rand({3}).requires_grad_(), y = x * 1;
  Tensor beside;
  const auto run = [&](const Tensor& a) {
    beside = sigmoid(a * 3).sum();
    return exp(a * 2);
  };
  const Tensor expected = grad({run(y).sum()}, {x})[0];
  EXPECT_TRUE(equal(grad({checkpoint(run, y).sum()}, {x})[0], expected));
  // What keeps nothing itself is no saved tensor of what comes next.
  const Tensor sum = checkpoint([](const Tensor& a) { return a + 1; }, x).sum();
  sum.backward();
  sum.backward();
  EXPECT_TRUE(equal(x.grad(), full({3}, 2.0)));
}

TEST(Checkpoint, OfATransformersLayers) {
  manual_seed(3);
  TransformerEncoderLayer layer(8, 2, {.dim_feedforward = 16, .dropout = 0.1});
  const auto run = [&](const Tensor& x) { return layer(reshape(x, {2, 2, 8})); };
  expect_same(gradients(layer, [&](const Tensor& x) { return checkpoint(run, x); }), gradients(layer, run),
              "a transformer's layer");
}

TEST(Checkpoint, InARecordedStep) {
  Sequential net = block();
  const Tensor x = rand({4, 8});
  const auto trained = [&](bool again) {
    manual_seed(5);
    std::vector<Tensor> sums;
    for (Tensor& p : net.parameters()) sums.push_back(zeros_like(p));
    CapturedStep step = capture(
        [&] {
          const Tensor y = again ? checkpoint(net, x) : net(x);
          const std::vector<Tensor> grads = grad({(y * y).sum()}, net.parameters());
          for (size_t i = 0; i < sums.size(); ++i) sums[i].add_(grads[i]);
        },
        {.warmup = 1});
    for (int i = 0; i < 3; ++i) step.replay();
    return sums;
  };
  expect_same(trained(true), trained(false), "gradients with other random numbers at each replay");
}

TEST(Checkpoint, TakesLessMemory) {
  if (get_default_device().is_cpu()) GTEST_SKIP() << "the memory of the CPU is not counted";
  Sequential net;
  for (int i = 0; i < 8; ++i) net.push_back(Sequential{Linear(64, 64), Tanh(), Tanh(), Tanh()});
  const Tensor x = rand({256, 64}).requires_grad_();
  const auto used_by = [&](auto&& run) {
    const uint64_t before = cuda::memory_allocated();
    const Tensor y = run();
    return cuda::memory_allocated() - before;
  };
  const uint64_t all = used_by([&] { return net(x); });
  const uint64_t eighths = used_by([&] {
    Tensor y = x;
    for (auto& [name, module] : net) y = checkpoint(module, y);
    return y;
  });
  const uint64_t on_host = used_by([&] {
    const utils::SaveOnCpuGuard guard;
    return net(x);
  });
  EXPECT_EQ(all, 24 * x.nbytes());
  EXPECT_EQ(eighths, 8 * x.nbytes());
  EXPECT_EQ(on_host, x.nbytes());
}

TEST(SaveOnCpu, GivesTheSameGradientsToTheBit) {
  Sequential net = block();
  const auto expected = gradients(net, [&](const Tensor& x) { return net(x); });
  for (const bool pins : {false, true})
    expect_same(gradients(net,
                          [&](const Tensor& x) {
                            const utils::SaveOnCpuGuard guard(pins);
                            return net(x);
                          }),
                expected, pins ? "pinned" : "not pinned");
}

TEST(Checkpoint, Errors) {
  const Tensor x = rand({3}).requires_grad_();
  int calls = 0;
  EXPECT_THAT(
      message_of<AutogradError>([&] {
        checkpoint([&](const Tensor& a) { return calls++ == 0 ? exp(exp(a)) : exp(a); }, x).sum().backward();
      }),
      HasSubstr("checkpoint: the function kept 1 tensors for backward when it was called again, and 2 the "
                "first time: it must do the same each time"));
  calls = 0;
  EXPECT_THAT(
      message_of<AutogradError>([&] {
        checkpoint([&](const Tensor& a) { return calls++ == 0 ? exp(a) : exp(a.sum()); }, x).sum().backward();
      }),
      HasSubstr("gave back another one: expected float32 of shape [3]"));
  EXPECT_THAT(message_of<AutogradError>([&] {
                Tensor changed = x * 2;
                const Tensor y = checkpoint([](const Tensor& a) { return exp(a); }, changed);
                changed.mul_(2);
                y.sum().backward();
              }),
              HasSubstr("modified by an inplace operation"));
  EXPECT_THROW(utils::checkpoint_sequential(block(), 6, x), ValueError);
  EXPECT_THROW(utils::checkpoint_sequential(block(), 0, x), ValueError);
}

}  // namespace
}  // namespace tern::nn
