// What the tests of many devices share: four GPUs for each test, comparisons across devices, and
// counting of copies.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>

#include "tern/autograd/engine.h"
#include "tern/autograd/grad_mode.h"
#include "tern/base/env.h"
#include "tern/core/generator.h"
#include "tern/device/cuda.h"
#include "tern/device/launch.h"
#include "tern/device/simulation.h"
#include "tern/nn/functional.h"
#include "tern/nn/models.h"
#include "tern/nn/norm.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tern/optim/adam.h"
#include "tern/optim/sgd.h"
#include "tests/support/expect_error.h"

namespace tern::parallel {

/// Four simulated GPUs for each test; with TERN_LOGICAL_GPUS=4 four parts of a real one.
class ParallelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (real())
      ASSERT_GE(cuda::device_count(), 4) << cuda::unavailable_reason();
    else
      simulate_gpus({.gpus = 4});
    manual_seed(1);
  }
  void TearDown() override {
    if (!real()) simulate_gpus({.gpus = 0});
  }

 private:
  static bool real() { return env_text("TERN_LOGICAL_GPUS").has_value(); }
};

inline std::vector<Device> first_gpus(int count) {
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) devices.emplace_back(DeviceType::CUDA, i);
  return devices;
}

/// Largest difference at most `relative` times the largest number.
inline void expect_close(const Tensor& a, const Tensor& b, double relative = 1e-6) {
  ASSERT_TRUE(a.defined() && b.defined());
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_EQ(a.dtype(), b.dtype());
  const auto x = a.detach().to_vector<double>(), y = b.detach().to_vector<double>();
  double difference = 0, largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(std::isfinite(x[i]) && std::isfinite(y[i]));
    difference = std::max(difference, std::abs(x[i] - y[i]));
    largest = std::max(largest, std::abs(y[i]));
  }
  EXPECT_LE(difference, relative * std::max(largest, 1e-3)) << "largest " << largest;
}

template <class A, class B>
void expect_close_gradients(const A& a, const B& b, double relative = 1e-6) {
  const auto left = a.parameters(), right = b.parameters();
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) {
    SCOPED_TRACE(i);
    expect_close(left[i].grad(), right[i].grad(), relative);
  }
}

inline void expect_equal_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const Tensor x = a[i].detach().cpu().contiguous(), y = b[i].detach().cpu().contiguous();
    ASSERT_EQ(x.nbytes(), y.nbytes());
    EXPECT_EQ(std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()), 0) << "tensor " << i;
  }
}

/// Copies between memories that `body` starts, on simulated GPUs.
template <class Body>
int count_copies(Body&& body) {
  struct Counter final : LaunchObserver {
    std::atomic<int> copies{0};
    uint64_t started(const Activity& activity) noexcept override {
      if (activity.kind == Activity::Kind::Copy) ++copies;
      return 0;
    }
    void ran(uint64_t, Clock::time_point, Clock::time_point) noexcept override {}
  } counter;
  LaunchObserver* before = set_launch_observer(&counter);
  body();
  for (int i = 0; i < cuda::device_count(); ++i) synchronize(Device(DeviceType::CUDA, i));
  set_launch_observer(before);
  return counter.copies;
}

}  // namespace tern::parallel
