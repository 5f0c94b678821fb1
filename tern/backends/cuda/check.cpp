// The text of CUDA errors.
#include "tern/backends/cuda/check.h"

#include <string>
#include <string_view>

#include "tern/backends/cuda/device.h"
#include "tern/base/check.h"
#include "tern/base/env.h"
#include "tern/kernels/work.h"

namespace tern::cuda_backend {
namespace {

constinit thread_local const Task* current_task = nullptr;

/// "cudaMalloc" from "cudaMalloc(&data, nbytes)".
std::string_view call_name(std::string_view text) { return text.substr(0, text.find('(')); }

/// "add (kernel binary) on cuda:0, stream 1: ", or less where less is known.
std::string place() {
  if (current_task == nullptr) return "";
  const Task& task = *current_task;
  std::string text;
  if (task.args != nullptr) {
    const std::string_view op = work_of(task.kernel, task.args).op;
    text = op == task.name ? std::string(op) : fmt::format("{} (kernel {})", op, task.name);
  } else if (task.name != nullptr) {
    text = task.name;
  }
  return fmt::format("{} on {}, stream {}: ", text, task.stream.device.str(), task.stream.id);
}

}  // namespace

TaskScope::TaskScope(const Task& task) noexcept : outer_(current_task) { current_task = &task; }
TaskScope::~TaskScope() { current_task = outer_; }

bool is_sticky(cudaError_t error) noexcept {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorExternalDevice:
    case cudaErrorMpsRpcFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorContained:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

void throw_cuda_error(cudaError_t error, const char* call) {
  cudaGetLastError();  // errors that are not sticky must not be met again by the next call
  const std::string what = fmt::format("{}{} failed: {} ({})", place(), call_name(call),
                                       cudaGetErrorString(error), cudaGetErrorName(error));
  if (error == cudaErrorMemoryAllocation)
    TERN_THROW(OutOfMemoryError, "{}: free tensors, or call cuda::empty_cache()", what);
  if (error == cudaErrorNoKernelImageForDevice)
    TERN_THROW(DeviceError,
               "{}: the plugin was compiled for other GPUs: build it with TERN_CUDA_ARCHITECTURES", what);
  if (!is_sticky(error)) TERN_THROW(DeviceError, "{}", what);
  std::string recent;
  if (current_task != nullptr) recent = recent_kernels(current_task->stream);
  if (!recent.empty()) recent = fmt::format(" The last kernels on this stream: {}.", recent);
  const char* finding = launches_block()
                            ? " Launches block (TERN_CUDA_LAUNCH_BLOCKING=1): this is the guilty one."
                            : " An earlier kernel may be the cause: run with TERN_CUDA_LAUNCH_BLOCKING=1 to "
                              "find the guilty one.";
  TERN_THROW(DeviceError,
             "{}. The error is sticky: nothing in this process can use the GPU any more; save what is on the "
             "CPU and "
             "start anew.{}{}",
             what, recent, finding);
}

void throw_library_error(const char* library, const char* call, const char* status) {
  TERN_THROW(DeviceError, "{}{} of {} failed: {}", place(), call_name(call), library, status);
}

void throw_too_many_blocks(int64_t count) {
  TERN_THROW(ShapeError, "{}{} blocks are more than a GPU starts at once", place(), count);
}

void throw_not_on_gpus(const char* what) {
  TERN_THROW(NotImplementedError, "{}{}: no CUDA kernel does this yet: compute it on the CPU", place(), what);
}

bool launches_block() {
  static const bool blocking = env_int("TERN_CUDA_LAUNCH_BLOCKING", 0, 1).value_or(0) == 1;
  return blocking;
}

}  // namespace tern::cuda_backend
