// The gradient scaler: its scale beside PyTorch's, the order of calls, several devices, saving.
#include "tern/optim/grad_scaler.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>

#include "tern/autograd/engine.h"
#include "tern/core/memory.h"
#include "tern/device/capture.h"
#include "tern/device/simulation.h"
#include "tern/kernels/profiler.h"
#include "tern/ops/autocast.h"
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
#include "tern/optim/adam.h"
#include "tern/optim/clip_grad.h"
#include "tern/optim/sgd.h"
#include "tests/optim/support.h"
#include "tests/support/expect_error.h"

namespace tern::optim {
namespace {

using testing::kInfinity;

struct Course {
  const char* steps;  ///< '.' a finite step, 'i' one with an infinity, 'n' one with a NaN
  GradScalerOptions options;
  std::vector<std::pair<double, int64_t>> scales;  ///< scale and growth tracker after each
  double param;                                    ///< at the end, from 1 by SGD with lr = 0.1 and gradient 1
};

// PyTorch 2.15: torch.amp.GradScaler("cpu", ...) on a parameter of two elements, loss = p.sum().
const std::vector<Course> kCourses = {
    {"..i..n....",
     {.growth_interval = 2},
     {{65536, 1},
      {131072, 0},
      {65536, 0},
      {65536, 1},
      {131072, 0},
      {65536, 0},
      {65536, 1},
      {131072, 0},
      {131072, 1},
      {262144, 0}},
     0.19999992847442627},
    {"......",
     {.init_scale = 3, .growth_factor = 1.1, .backoff_factor = 0.7, .growth_interval = 1},
     {{3.299999952316284, 0},
      {3.629999876022339, 0},
      {3.992999792098999, 0},
      {4.392299652099609, 0},
      {4.83152961730957, 0},
      {5.314682483673096, 0}},
     0.3999999165534973},
    {"inin.i",
     {.init_scale = 1, .backoff_factor = 0.3, .growth_interval = 3},
     {{0.30000001192092896, 0},
      {0.09000000357627869, 0},
      {0.027000000700354576, 0},
      {0.008100000210106373, 0},
      {0.008100000210106373, 1},
      {0.0024300001095980406, 0}},
     0.8999999761581421},
    {"....",
     {.init_scale = 0x1p126, .growth_factor = 4, .growth_interval = 1},
     {{0x1p126, 0}, {0x1p126, 0}, {0x1p126, 0}, {0x1p126, 0}},
     0.5999999046325684},
    {"...i....",
     {},
     {{65536, 1}, {65536, 2}, {65536, 3}, {32768, 0}, {32768, 1}, {32768, 2}, {32768, 3}, {32768, 4}},
     0.2999999225139618},
};

TEST(GradScaler, ScaleAndParametersArePyTorchs) {
  for (const Course& run : kCourses) {
    GradScaler scaler(run.options);
    const Tensor p = ones({2}).requires_grad_();
    SGD sgd({p}, {.lr = 0.1});
    for (size_t i = 0; run.steps[i] != 0; ++i) {
      const std::string at = std::string(run.steps) + " at " + std::to_string(i);
      sgd.zero_grad();
      scaler.scale(p.sum()).backward();
      if (run.steps[i] == 'i') p.set_grad(tensor({1.0, kInfinity}));
      if (run.steps[i] == 'n') p.set_grad(tensor({std::nan(""), 1.0}));
      EXPECT_EQ(scaler.step(sgd), run.steps[i] == '.') << at;
      scaler.update();
      EXPECT_EQ(scaler.get_scale(), run.scales[i].first) << at;
      EXPECT_EQ(scaler.state_dict().integer("_growth_tracker"), run.scales[i].second) << at;
    }
    EXPECT_FLOAT_EQ(p.detach().to_vector<float>()[0], static_cast<float>(run.param)) << run.steps;
  }
}

TEST(GradScaler, RecordedStepsAreTheSame) {
  for (const Course& run : kCourses) {
    GradScaler scaler(run.options);
    const Tensor p = ones({2}).requires_grad_();
    Tensor x = ones({2});
    SGD sgd({p}, {.lr = 0.1});
    std::optional<CapturedStep> step;
    for (size_t i = 0; run.steps[i] != 0; ++i) {
      const std::string at = std::string(run.steps) + " at " + std::to_string(i);
      x.copy_(run.steps[i] == 'i'   ? tensor({1.0, kInfinity})
              : run.steps[i] == 'n' ? tensor({std::nan(""), 1.0})
                                    : ones({2}));
      if (step) {
        step->replay();
      } else {
        const auto whole = [&] {
          sgd.zero_grad();
          scaler.scale((p * x).sum()).backward();
          scaler.step(sgd);
          scaler.update();
        };
        step = capture(whole, {.warmup = 0});
      }
      EXPECT_EQ(scaler.get_scale(), run.scales[i].first) << at;
      EXPECT_EQ(scaler.state_dict().integer("_growth_tracker"), run.scales[i].second) << at;
    }
    EXPECT_FLOAT_EQ(p.detach().to_vector<float>()[0], static_cast<float>(run.param)) << run.steps;
  }
}

TEST(GradScaler, ARecordedStepKeepsItsStream) {
  const Device device = get_default_device();
  if (device.is_cpu()) GTEST_SKIP() << "the CPU has one stream";
  GradScaler scaler({.init_scale = 1024});
  const Tensor p = ones({1 << 16}).requires_grad_(), x = ones({1 << 16});
  SGD sgd({p}, {.lr = 0.25});
  std::optional<CapturedStep> step;
  synchronize(device);
  {
    const StreamGuard guard(new_stream(device));
    const auto whole = [&] {
      sgd.zero_grad();
      scaler.scale((p * x).sum()).backward();
      EXPECT_TRUE(scaler.step(sgd));
      scaler.update();
    };
    step = capture(whole, {.warmup = 0});
  }
  for (int i = 0; i < 3; ++i) step->replay();
  synchronize(device);
  EXPECT_TRUE(equal(p.detach(), zeros({1 << 16})));
}

TEST(GradScaler, AStepThatCannotBeRecordedLeavesNothingBehind) {
  GradScaler scaler({.init_scale = 1024});
  const Tensor p = ones({2}).requires_grad_();
  Tensor x = tensor({1.0, kInfinity});
  Adam adam({p}, {.lr = 0.5});
  const auto step = [&] {
    adam.zero_grad();
    scaler.scale((p * x).sum()).backward();
    const bool taken = scaler.step(adam);
    scaler.update();
    return taken;
  };
  expect_error<CaptureError>([&] { capture([&] { step(); }); },
                             "one that a gradient scaler skipped does not count");
  x.copy_(ones({2}));
  EXPECT_TRUE(step());
  EXPECT_TRUE(equal(p.grad(), ones({2}))) << "unscaled";
  const CapturedStep recorded = capture([&] { step(); });
  (void)recorded;

  p.set_grad(ones({2}));
  Tensor wide = ones({2, 3}).requires_grad_();
  SGD sgd({wide}, {.lr = 1});
  expect_error<CaptureError>(
      [&] {
        capture([&] {
          scaler.scale(ones({}));
          wide.set_grad(transpose(ones({3, 2}), 0, 1));
          scaler.step(sgd);
          scaler.update();
        });
      },
      "more in it than the fused update of contiguous parameters and gradients");
}

TEST(GradScaler, RecordedScalesAreNotRoundedToSixteenBits) {
  for (const DType dtype : {float16, bfloat16}) {
    GradScaler scaler({.init_scale = 65537});
    const Tensor outputs = full({3}, 0.1, {.dtype = dtype});
    const Tensor wanted = scaler.scale(outputs);
    Tensor got;
    const CapturedStep step = capture([&] { got = scaler.scale(outputs); });
    EXPECT_EQ(got.dtype(), dtype);
    EXPECT_TRUE(equal(got, wanted));
  }
}

TEST(GradScaler, UnscalesOnceAndLeavesTheGradientOfTheLoss) {
  GradScaler scaler({.init_scale = 1024});
  const Tensor a = ones({3, 5}).requires_grad_(), b = ones({4}, {.dtype = float64}).requires_grad_();
  const Tensor strided = ones({5, 3}).requires_grad_();
  const Tensor unused = ones({4}).requires_grad_();
  Adam adam({a, b, strided, unused});
  scaler.scale((a * 3).sum() + (b * 5).sum()).backward();
  strided.set_grad(transpose(full({3, 5}, 1024.0 * 7), 0, 1));
  EXPECT_EQ(a.grad().sum().item<double>(), 15 * 3 * 1024.0);
  scaler.unscale_(adam);
  EXPECT_TRUE(equal(a.grad(), full({3, 5}, 3.0)));
  EXPECT_TRUE(equal(b.grad(), full({4}, 5.0, {.dtype = float64})));
  EXPECT_TRUE(equal(strided.grad(), full({5, 3}, 7.0)));
  EXPECT_FALSE(unused.grad().defined());
  clip_grad_norm_({a}, 1);
  EXPECT_TRUE(scaler.step(adam));
  scaler.update();
  EXPECT_NE(a.detach().sum().item<double>(), 15);
}

TEST(GradScaler, FindsWhatIsNotFiniteAnywhere) {
  for (const double wrong : {kInfinity, -kInfinity, std::nan("")})
    for (const int64_t size : {1, 63, 64, 5000, 40000})
      for (const DType dtype : {float32, float64, bfloat16})
        for (const int64_t at : {int64_t{0}, size / 2, size - 1}) {
          const Tensor p = zeros({size}, {.dtype = dtype}).requires_grad_();
          SGD sgd({ones({3}).requires_grad_(), p}, {.lr = 1});
          GradScaler scaler;
          scaler.scale(zeros({}));
          Tensor grad = ones({size}, {.dtype = dtype});
          narrow(grad, 0, at, 1).fill_(wrong);
          p.set_grad(grad);
          EXPECT_FALSE(scaler.step(sgd)) << wrong << " in " << size << " at " << at;
          scaler.update();
          EXPECT_EQ(scaler.get_scale(), 32768);
          p.set_grad(ones({size}, {.dtype = dtype}));
          EXPECT_TRUE(scaler.step(sgd));
        }
}

TEST(GradScaler, OneLaunchForEachDtype) {
  std::vector<Tensor> params;
  for (int i = 0; i < 50; ++i)
    params.push_back(ones({7}, {.dtype = i % 2 ? float32 : bfloat16}).requires_grad_());
  for (const Tensor& p : params) p.set_grad(ones({7}, {.dtype = p.dtype()}));
  SGD sgd(params, {.lr = 1});
  GradScaler scaler;
  scaler.scale(zeros({}));
  settle();
  Profiler profiler;
  profiler.start();
  scaler.unscale_(sgd);
  settle();
  profiler.stop();
  int64_t launches = 0;
  for (const ProfileRow& row : profiler.averages())
    if (row.name == "unscale_") launches += row.calls;
  EXPECT_EQ(launches, 2);
}

TEST(GradScaler, WrongOrdersAreErrors) {
  const Tensor p = ones({2}).requires_grad_();
  SGD sgd({p}, {.lr = 0.1});
  GradScaler scaler;
  expect_error<AutogradError>([&] { scaler.unscale_(sgd); }, "Attempted unscale_ but _scale is None.");
  expect_error<AutogradError>([&] { scaler.step(sgd); }, "Attempted step but _scale is None.");
  expect_error<AutogradError>([&] { scaler.update(); }, "Attempted update but _scale is None.");
  const Tensor loss = scaler.scale(p.sum());
  expect_error<AutogradError>([&] { scaler.update(); }, "No inf checks were recorded prior to update.");
  expect_error<AutogradError>([&] { scaler.step(sgd); }, "No inf checks were recorded for this optimizer");
  scaler.update(1024);
  EXPECT_EQ(scaler.get_scale(), 1024);
  loss.backward();
  scaler.unscale_(sgd);
  expect_error<AutogradError>(
      [&] { scaler.unscale_(sgd); },
      "unscale_() has already been called on this optimizer since the last update().");
  scaler.step(sgd);
  expect_error<AutogradError>([&] { scaler.unscale_(sgd); }, "unscale_() is being called after step().");
  expect_error<AutogradError>([&] { scaler.step(sgd); },
                              "step() has already been called since the last update().");
  scaler.update();
  EXPECT_EQ(scaler.state_dict().integer("_growth_tracker"), 1);
}

TEST(GradScaler, OptionsAndGradientsThatItRefuses) {
  expect_error<ValueError>([] { GradScaler({.growth_factor = 1}); }, "The growth factor must be > 1.0");
  expect_error<ValueError>([] { GradScaler({.backoff_factor = 1}); }, "The backoff factor must be < 1.0");
  expect_error<ValueError>([] { GradScaler({.growth_interval = 0}); }, "growth_interval must be at least 1");
  expect_error<ValueError>([] { GradScaler({.init_scale = -1}); }, "the scale must be a positive number");
  const Tensor p = ones({2}, {.dtype = float16}).requires_grad_();
  p.set_grad(ones({2}, {.dtype = float16}));
  SGD sgd({p}, {.lr = 0.1});
  GradScaler scaler;
  scaler.scale(zeros({}));
  expect_error<ValueError>([&] { scaler.unscale_(sgd); }, "Attempting to unscale FP16 gradients");
}

TEST(GradScaler, DisabledItDoesNothing) {
  const Tensor p = ones({2}).requires_grad_();
  SGD sgd({p}, {.lr = 0.5});
  GradScaler scaler({.enabled = false});
  EXPECT_FALSE(scaler.is_enabled());
  EXPECT_EQ(scaler.get_scale(), 1);
  scaler.scale(p.sum()).backward();
  scaler.unscale_(sgd);
  EXPECT_TRUE(scaler.step(sgd));
  scaler.update();
  EXPECT_TRUE(equal(p.detach(), full({2}, 0.5)));
  EXPECT_EQ(scaler.state_dict().size(), 0u);
  scaler.load_state_dict({});
}

TEST(GradScaler, IsSavedAndLoadedWithPyTorchsKeys) {
  GradScaler scaler({.init_scale = 8, .growth_factor = 3, .backoff_factor = 0.25, .growth_interval = 7});
  const Tensor p = ones({2}).requires_grad_();
  SGD sgd({p}, {.lr = 0.5});
  scaler.scale(p.sum()).backward();
  scaler.step(sgd);
  scaler.update();
  const StateMap state = scaler.state_dict();
  std::string names;
  for (const StateEntry& entry : state) names += entry.name + " ";
  EXPECT_EQ(names, "scale growth_factor backoff_factor growth_interval _growth_tracker ");
  GradScaler other;
  other.load_state_dict(state);
  EXPECT_EQ(other.get_scale(), 8);
  EXPECT_EQ(other.get_growth_factor(), 3);
  EXPECT_EQ(other.get_backoff_factor(), 0.25);
  EXPECT_EQ(other.get_growth_interval(), 7);
  EXPECT_EQ(other.state_dict().integer("_growth_tracker"), 1);
  expect_error<ValueError>([&] { other.load_state_dict({}); }, "The source state dict is empty");
  StateMap broken = state;
  broken.set("scale", kInfinity);
  expect_error<ValueError>([&] { other.load_state_dict(broken); }, "the scale must be a positive number");
  StateMap short_one;
  short_one.set("scale", 2.0);
  expect_error<ValueError>([&] { other.load_state_dict(short_one); }, "the state has no 'growth_factor'");
  EXPECT_EQ(other.get_scale(), 8);
}

TEST(GradScaler, ScalesListsAndSixteenBitLosses) {
  GradScaler scaler;
  const std::vector<Tensor> scaled =
      scaler.scale(std::vector<Tensor>{ones({2}), full({}, 2.0, {.dtype = float16})});
  EXPECT_TRUE(equal(scaled[0], full({2}, 65536.0)));
  EXPECT_EQ(scaled[1].dtype(), float32);
  EXPECT_EQ(scaled[1].item<double>(), 131072);
}

TEST(GradScaler, ParametersOnSeveralDevices) {
  if (get_default_device().is_cpu()) GTEST_SKIP() << "needs two simulated GPUs";
  const Tensor here = ones({3}, {.device = "cuda:0"}).requires_grad_();
  const Tensor there = ones({3}, {.device = "cuda:1"}).requires_grad_();
  SGD sgd({here, there}, {.lr = 0.5});
  GradScaler scaler({.init_scale = 4});
  const auto step = [&](double wrong) {
    sgd.zero_grad();
    scaler.scale(here.sum()).backward();
    scaler.scale(there.sum()).backward();
    if (wrong != 0) there.set_grad(full({3}, wrong, {.device = "cuda:1"}));
    const bool stepped = scaler.step(sgd);
    scaler.update();
    return stepped;
  };
  EXPECT_TRUE(step(0));
  EXPECT_FALSE(step(kInfinity));
  EXPECT_EQ(scaler.get_scale(), 2);
  EXPECT_TRUE(step(0));
  EXPECT_TRUE(equal(here.detach().cpu(), zeros({3}, {.device = "cpu"})));
  EXPECT_TRUE(equal(there.detach().cpu(), zeros({3}, {.device = "cpu"})));
}

TEST(GradScaler, KeepsSmallGradientsOfFloat16) {
  const Tensor x = full({4, 8}, 1e-4), target = zeros({4, 2});
  const auto gradient = [&](bool scaled) {
    const Tensor weight = full({2, 8}, 0.01).requires_grad_();
    SGD sgd({weight}, {.lr = 1});
    GradScaler scaler({.enabled = scaled});
    Tensor loss;
    {
      const AutocastGuard guard({.device_type = get_default_device().type, .dtype = float16});
      loss = mse_loss(linear(x, weight), target);
    }
    scaler.scale(loss).backward();
    scaler.unscale_(sgd);
    return abs(weight.grad()).sum().item<double>();
  };
  EXPECT_EQ(gradient(false), 0);
  EXPECT_NEAR(gradient(true), 16 * 8e-6 * 1e-4, 16 * 8e-6 * 1e-4 * 0.02);
}

}  // namespace
}  // namespace tern::optim
