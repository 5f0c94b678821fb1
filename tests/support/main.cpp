// The main of every test program. TERN_TEST_DEVICE=cuda:0 puts every tensor that a test makes without naming
// a device on that one; with TERN_SIM_GPUS the same tests run on simulated GPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tern/base/env.h"
#include "tern/core/memory.h"

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (const auto device = tern::env_text("TERN_TEST_DEVICE")) tern::set_default_device(*device);
  return RUN_ALL_TESTS();
}
