// Checks of CUDA calls: what a failed one says. Faults that kernels find in their data are in fault.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "tern/device/backend.h"

namespace tern::cuda_backend {

/// What the calling thread is giving a device to do, for the text of errors.
struct Task {
  const char* name = nullptr;  ///< a kernel or a kind of copy
  uint16_t kernel = 0;
  const void* args = nullptr;  ///< of the kernel; null for anything else
  Stream stream = {};
};

/// Puts a task in place while it lives.
class TaskScope {
 public:
  explicit TaskScope(const Task& task) noexcept;
  ~TaskScope();
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;

 private:
  const Task* outer_;
};

/// True for errors after which nothing in the process can use the GPU any more.
bool is_sticky(cudaError_t error) noexcept;

/// Throws DeviceError (OutOfMemoryError for that) with the name of the call, of the operator and the kernel,
/// the device and the stream.
[[noreturn]] void throw_cuda_error(cudaError_t error, const char* call);

/// The same for a library on top of CUDA: `status` is its own text.
[[noreturn]] void throw_library_error(const char* library, const char* call, const char* status);

/// nvcc does not compile fmt's checked format strings: what kernels' hosts throw is written in check.cpp.
[[noreturn]] void throw_too_many_blocks(int64_t count);
[[noreturn]] void throw_not_on_gpus(const char* what);

/// True when TERN_CUDA_LAUNCH_BLOCKING is 1: every launch waits for its kernel.
bool launches_block();

}  // namespace tern::cuda_backend

/// Throws unless the call gives cudaSuccess.
#define TERN_CUDA_CALL(...)                                             \
  do {                                                                  \
    const cudaError_t tern_error = (__VA_ARGS__);                       \
    if (tern_error != cudaSuccess) [[unlikely]]                         \
      ::tern::cuda_backend::throw_cuda_error(tern_error, #__VA_ARGS__); \
  } while (false)
