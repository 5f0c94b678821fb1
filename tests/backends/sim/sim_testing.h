// What the tests of simulated GPUs share: a process with the GPUs that a test asks for.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tern/tern.h"
#include "tests/support/expect_error.h"

namespace tern {

/// Simulated GPUs for one test, with races checked unless the test says otherwise.
class SimulatedGpus {
 public:
  explicit SimulatedGpus(SimulationOptions options = {.gpus = 2, .check_races = true}) {
    simulate_gpus(options);
  }
  ~SimulatedGpus() { simulate_gpus({.gpus = 0}); }
  SimulatedGpus(const SimulatedGpus&) = delete;
  SimulatedGpus& operator=(const SimulatedGpus&) = delete;
};

inline const Device kGpu0{DeviceType::CUDA, 0};
inline const Device kGpu1{DeviceType::CUDA, 1};

}  // namespace tern
