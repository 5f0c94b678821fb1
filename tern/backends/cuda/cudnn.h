// cuDNN's graph API, opened when it is first needed: its functions and a thin owner of its descriptors.
#pragma once

#include <cudnn_graph.h>

#include <initializer_list>
#include <utility>
#include <vector>

#include "tern/backends/cuda/library.h"

namespace tern::cuda_backend {

#define TERN_CUDNN_FUNCTIONS(X)    \
  X(cudnnGetVersion)               \
  X(cudnnCreate)                   \
  X(cudnnSetStream)                \
  X(cudnnGetErrorString)           \
  X(cudnnGetLastErrorString)       \
  X(cudnnBackendCreateDescriptor)  \
  X(cudnnBackendDestroyDescriptor) \
  X(cudnnBackendFinalize)          \
  X(cudnnBackendSetAttribute)      \
  X(cudnnBackendGetAttribute)      \
  X(cudnnBackendExecute)

/// cuDNN's functions under their own names.
struct Cudnn {
  TERN_CUDNN_FUNCTIONS(TERN_LIBRARY_MEMBER)
};

/// Opened with the first call; null where it is missing or of another version.
const Cudnn* cudnn();

/// Throws unless cuDNN gave success: NotImplementedError for what it does not take, DeviceError for
/// everything else.
void check_cudnn(cudnnStatus_t status, const char* call);

/// A backend descriptor. Setters and finish() throw as check_cudnn(); try_finish() does not.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor&& other) noexcept : made_(std::exchange(other.made_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(made_, other.made_);
    return *this;
  }
  ~Descriptor();

  cudnnBackendDescriptor_t get() const noexcept { return made_; }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, int64_t value) { set(name, CUDNN_TYPE_INT64, 1, &value); }
  void set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, cudnnHandle_t value) { set(name, CUDNN_TYPE_HANDLE, 1, &value); }
  void set(cudnnBackendAttributeName_t name, bool value) { set(name, CUDNN_TYPE_BOOLEAN, 1, &value); }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.made_);
  }
  void finish();
  bool try_finish() noexcept;

 private:
  cudnnBackendDescriptor_t made_ = nullptr;
};

}  // namespace tern::cuda_backend
