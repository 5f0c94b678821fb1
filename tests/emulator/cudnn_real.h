// The real cuDNN beside the emulator's. It makes plans for a GPU that is only described to it, so that where
// it is installed it says of every graph whether it takes it. What it plans is never run.
#pragma once

#include <cudnn_graph.h>

#include <memory>

namespace emulator {

/// A descriptor of the real cuDNN.
class Twin {
 public:
  /// Null unless TERN_EMULATOR has real_cudnn=1. Ends the process where there is no real cuDNN.
  static std::shared_ptr<Twin> make(cudnnBackendDescriptorType_t type);
  explicit Twin(cudnnBackendDescriptor_t made, cudnnBackendDescriptorType_t type)
      : made_(made), type_(type) {}
  ~Twin();
  Twin(const Twin&) = delete;
  Twin& operator=(const Twin&) = delete;

  cudnnBackendDescriptor_t get() const { return made_; }
  /// Handles of the emulator are left out: the GPU is described where plans are made.
  cudnnStatus_t set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                    const void* values);
  cudnnStatus_t set(cudnnBackendAttributeName_t name, const Twin& part);
  cudnnStatus_t finish();
  cudnnStatus_t ask(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t asked,
                    int64_t* count, void* values) const;

 private:
  cudnnBackendDescriptor_t made_;
  cudnnBackendDescriptorType_t type_;
};

}  // namespace emulator
