// Recorded steps: replays give what running the step gives, on every device; what cannot be recorded is
// refused with the place.
#include "tern/device/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tern/autograd/grad_mode.h"
#include "tern/core/memory.h"
#include "tern/device/cuda.h"
#include "tern/device/registry.h"
#include "tern/io/save.h"
#include "tern/nn/containers.h"
#include "tern/nn/dropout.h"
#include "tern/nn/functional.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/ops/activation.h"
#include "tern/ops/autocast.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/optim/adagrad.h"
#include "tern/optim/adam.h"
#include "tern/optim/clip_grad.h"
#include "tern/optim/rmsprop.h"
#include "tern/optim/sgd.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

struct Net : nn::Module {
  nn::Linear first{6, 16};
  nn::BatchNorm1d norm{16};
  nn::Dropout dropout{0.25};
  nn::Linear last{16, 3};
  TERN_MODULE(first, norm, dropout, last)
  Tensor forward(const Tensor& x) { return last(dropout(relu(norm(first(x))))); }
};

/// Trains for `steps` batches and gives every loss, then all that was learnt.
std::vector<float> train(std::unique_ptr<optim::Optimizer> (*make)(std::vector<Tensor>), bool captured,
                         int steps) {
  manual_seed(3);
  Net net;
  const auto optimizer = make(net.parameters());
  Tensor x = empty({8, 6}), y = empty({8}, {.dtype = DType::Int64}), loss;
  auto step = [&] {
    optimizer->zero_grad();
    loss = nn::cross_entropy(net(x), y);
    loss.backward();
    optim::clip_grad_norm_(net.parameters(), 1.0);
    optimizer->step();
  };
  std::optional<CapturedStep> recorded;
  Generator data(5);
  std::vector<float> results;
  for (int i = 0; i < steps; ++i) {
    x.copy_(randn({8, 6}, {}, data));
    y.copy_(randint(0, 3, {8}, {}, data));
    if (i == 5) optimizer->set_lr(0.003);
    if (!captured || i == 0)
      step();
    else if (i == 1)
      recorded = capture(step, {.warmup = 0});
    else
      recorded->replay();
    results.push_back(loss.item<float>());
  }
  for (const Tensor& tensor : net.parameters())
    for (float value : tensor.to_vector<float>()) results.push_back(value);
  for (const Tensor& tensor : net.buffers())
    for (float value : tensor.to_vector<float>()) results.push_back(value);
  for (const auto& [number, state] : optimizer->state_dict().state)
    for (const optim::StateEntry& entry : state)
      if (const auto* tensor = std::get_if<Tensor>(&entry.value))
        for (float value : tensor->to_vector<float>()) results.push_back(value);
  return results;
}

struct Peeking : nn::Module {
  nn::Linear linear{6, 6};
  TERN_MODULE(linear)
  Tensor forward(const Tensor& input) { return linear(input).sum().item<float>() > 0 ? input : input * 2; }
};

using Params = std::vector<Tensor>;

TEST(Capture, TrainsToTheBitAsWithout) {
  const std::pair<const char*, std::unique_ptr<optim::Optimizer> (*)(Params)> rows[] = {
      {"SGD",
       [](Params p) -> std::unique_ptr<optim::Optimizer> {
         return std::make_unique<optim::SGD>(p, optim::SGDOptions{.lr = 0.01, .momentum = 0.9});
       }},
      {"Adam",
       [](Params p) -> std::unique_ptr<optim::Optimizer> {
         return std::make_unique<optim::Adam>(p, optim::AdamOptions{.lr = 0.01, .amsgrad = true});
       }},
      {"RMSprop",
       [](Params p) -> std::unique_ptr<optim::Optimizer> {
         return std::make_unique<optim::RMSprop>(p, optim::RMSpropOptions{.lr = 0.01});
       }},
      {"Adagrad", [](Params p) -> std::unique_ptr<optim::Optimizer> {
         return std::make_unique<optim::Adagrad>(p, optim::AdagradOptions{.lr = 0.01, .lr_decay = 0.1});
       }}};
  for (const auto& [name, make] : rows) {
    SCOPED_TRACE(name);
    EXPECT_EQ(train(make, true, 12), train(make, false, 12));
  }
}

TEST(Capture, ReadsInputsAndWritesResultsInPlace) {
  Tensor x = full({3}, 1.0), doubled, table;
  int runs = 0;
  CapturedStep step = capture([&] {
    ++runs;
    table = tensor({10.0, 20.0, 30.0});  // numbers of the host: the same at every replay
    for (int i = 0; i < 20; ++i) doubled = (x * 2 + table) * 1;
  });
  EXPECT_EQ(runs, 2);
  EXPECT_GE(step.num_launches(), 60u);
  EXPECT_EQ(doubled.to_vector<float>(), (std::vector<float>{12, 22, 32}));
  x.fill_(4);
  step.replay();
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(doubled.to_vector<float>(), (std::vector<float>{18, 28, 38}));
  EXPECT_EQ(table.to_vector<float>(), (std::vector<float>{10, 20, 30}));
}

TEST(Capture, ReplaysCountAsChangesInPlace) {
  nn::BatchNorm1d norm(3);
  Tensor x = randn({4, 3}), weight = ones({3}, {.requires_grad = true});
  CapturedStep step = capture([&] { norm(x); });
  const uint32_t before = norm.running_mean.version();
  step.replay();
  EXPECT_GT(norm.running_mean.version(), before);
  // A tensor that a graph has saved.
  Tensor scaled = weight * x;
  CapturedStep change = capture([&] { x.mul_(2); }, {.warmup = 0});
  scaled = weight * x;
  change.replay();
  EXPECT_THROW(scaled.sum().backward(), AutogradError);
}

TEST(Capture, CastsWeightsAnew) {
  const AutocastGuard autocast({.device_type = get_default_device().type, .dtype = bfloat16});
  nn::Linear linear(2, 1);
  Tensor x = ones({1, 2}), y;
  NoGradGuard no_grad;
  CapturedStep step = capture([&] { y = linear(x); });
  linear.weight.fill_(2);
  linear.bias.fill_(1);
  step.replay();
  EXPECT_EQ(y.to(float32).to_vector<float>(), (std::vector<float>{5}));
}

TEST(Capture, RandomNumbersGoOn) {
  Tensor drawn;
  auto values = [&] { return drawn.to_vector<float>(); };
  manual_seed(1);
  std::vector<std::vector<float>> expected;
  for (int i = 0; i < 4; ++i) {
    drawn = rand({5});
    expected.push_back(values());
  }
  manual_seed(1);
  CapturedStep step = capture([&] { drawn = rand({5}); }, {.warmup = 0});
  EXPECT_EQ(values(), expected[0]);
  step.replay();
  EXPECT_EQ(values(), expected[1]);
  step.replay();
  EXPECT_EQ(values(), expected[2]);
  manual_seed(1);
  step.replay();
  EXPECT_EQ(values(), expected[0]);
  EXPECT_EQ(rand({5}).to_vector<float>(), expected[1]);
}

TEST(Capture, MemoryIsItsOwnAndComesBack) {
  const Device device = get_default_device();
  Tensor x = ones({1 << 16}), y;
  Backend& backend = backend_of(device.type);
  const uint64_t before = backend.memory_stats(device.index).allocated;
  {
    CapturedStep step = capture([&] { y = (x + 1) * 2 - 3; });
    EXPECT_GE(step.num_bytes(), 2 * x.nbytes());
    // What others allocate between replays is left alone.
    std::vector<Tensor> others;
    for (int i = 0; i < 50; ++i) others.push_back(full({1 << 16}, 7.0));
    x.fill_(5);
    step.replay();
    for (const Tensor& other : others) EXPECT_EQ(other.min().item<float>(), 7);
    EXPECT_EQ(y.sum().item<float>(), 9 * (1 << 16));
    backend.empty_cache(device.index);
    step.replay();
    EXPECT_EQ(y.sum().item<float>(), 9 * (1 << 16));
  }
  EXPECT_EQ(y.sum().item<float>(), 9 * (1 << 16));
  y = Tensor();
  EXPECT_EQ(backend.memory_stats(device.index).allocated, before);
}

TEST(Capture, RefusesWhatAReplayCannotDo) {
  Net net;
  optim::Adam adam(net.parameters(), {});
  Tensor x = randn({4, 6}), y = full({4}, 1, {.dtype = DType::Int64});
  const Device device = get_default_device();
  const Tensor state = get_rng_state();
  const std::vector<std::pair<const char*, std::function<void()>>> rows = {
      {"capture: item reads a tensor on the host", [&] { (x * 2).sum().item(); }},
      {"capture: to_vector reads a tensor on the host, or waits for a device after the kernel 'binary'",
       [&] { (x * 2).to_vector<float>(); }},
      {"capture: nonzero reads", [&] { nonzero(relu(x)); }},
      {"capture: synchronize", [&] { synchronize(device); }},
      {"capture: query", [&] { current_stream(device).query(); }},
      {"capture: printing reads", [&] { to_string(x * 2); }},
      {"capture: saving reads", [&] { save_to_buffer(x * 2); }},
      {"capture: saving reads",
       [&] {
         save_safetensors_to_buffer({{"x", (x * 2).t()}});
       }},
      {"sets the state of a generator", [&] { manual_seed(1); }},
      {"sets the state of a generator", [&] { set_rng_state(state); }},
      {"makes its state",
       [&] {
         nn::cross_entropy(net(x), y).backward();
         adam.step();
       }},
      {"another step is being recorded", [&] { capture([] {}); }},
  };
  for (const auto& [text, step] : rows) {
    SCOPED_TRACE(text);
    expect_error<CaptureError>([&, &run = step] { capture(run, {.warmup = 0}); }, text);
  }
  // The place in the model, and that all is well afterwards.
  nn::Sequential model{nn::Linear(6, 6), Peeking()};
  expect_error<CaptureError>([&] { capture([&] { model(x); }, {.warmup = 0}); },
                             "in the module Sequential.1");
  Tensor z;
  CapturedStep step = capture([&] { z = y + 1; });
  expect_error<CaptureError>([&] { capture([&] { step.replay(); }); }, "a replay cannot be part of it");
  y.fill_(4);
  step.replay();
  EXPECT_EQ(z.sum().item<int64_t>(), 20);
  EXPECT_THROW(capture([] {}, {.warmup = -1}), ValueError);
}

}  // namespace
}  // namespace tern
