// StreamHandle: a handle of cuDNN, cuSOLVER and the like for each stream.
#pragma once

#include <mutex>
#include <unordered_map>

#include "tern/backends/cuda/device.h"
#include "tern/device/launch.h"

namespace tern::cuda_backend {

/// The handle of a launch's stream, which `make` has made; while it lives no other thread has one of this
/// kind. Handles are of one stream alone: their memory is used in its order, and their inner streams take
/// part in a recording of it.
template <class Handle, Handle (*make)(cudaStream_t)>
class StreamHandle {
 public:
  explicit StreamHandle(const LaunchContext& context)
      : lock_(mutex()), handle_(of(stream_of(context.stream).handle())) {}
  Handle get() const noexcept { return handle_; }

 private:
  // CUDA may be gone before static objects are: neither ends.
  static std::mutex& mutex() {
    static auto* mutex = new std::mutex;
    return *mutex;
  }
  static Handle of(cudaStream_t stream) {
    static auto* handles = new std::unordered_map<cudaStream_t, Handle>;
    if (const auto made = handles->find(stream); made != handles->end()) return made->second;
    const Handle handle = make(stream);
    return (*handles)[stream] = handle;
  }

  std::unique_lock<std::mutex> lock_;
  Handle handle_;
};

}  // namespace tern::cuda_backend
