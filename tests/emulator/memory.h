// Memory of the GPUs, which the host may not touch but while work on it is done, and pinned memory.
#pragma once

#include <cstddef>

namespace emulator {

/// Of every allocation.
constexpr size_t kAlignment = 512;

/// While one lives the memory of all GPUs is open.
class OpenMemory {
 public:
  OpenMemory();
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};

/// True for host memory that a GPU copies from and to while the host goes on.
bool is_pinned(const void* address);

}  // namespace emulator
