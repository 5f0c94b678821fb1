// Whether a GPU is the CUDA emulator of tests/emulator, where sizes for other devices take minutes, and which
// does some things in ways that a test knows.
#pragma once

#include "tern/core/device.h"
#include "tern/device/cuda.h"

namespace tern::testing {

inline bool is_emulated(Device device) {
  return device.is_cuda() && cuda::get_device_properties(device).name == "CUDA emulator";
}

}  // namespace tern::testing
