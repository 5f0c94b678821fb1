// The kernel tables of the CPU backend: one for each instruction set that this build has.
#pragma once

#include <vector>

#include "tern/device/backend.h"

namespace tern::cpu {

struct KernelTable {
  const char* variant;  ///< "v3": AVX2 and FMA; "v4": AVX-512; "amx": v4 and tiles of bfloat16; "bf16": v4
                        ///< and pairs of bfloat16, without tiles; "generic": the compiler's default
  const KernelFn* kernels;
  bool (*supported)();
};

/// From the plainest to the most demanding.
std::vector<const KernelTable*> kernel_tables();

}  // namespace tern::cpu
