// Opening of cuDNN, and its descriptors.
#include "tern/backends/cuda/cudnn.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "tern/backends/cuda/check.h"
#include "tern/backends/cuda/library.h"
#include "tern/base/check.h"

namespace tern::cuda_backend {

const Cudnn* cudnn() {
  static const Cudnn* const functions = []() -> const Cudnn* {
    static Cudnn found{};
    try {
      static const Library library("cuDNN", "convolutions and attention",
                                   {TERN_SONAME("libcudnn", CUDNN_MAJOR)});
      TERN_CUDNN_FUNCTIONS(TERN_LIBRARY_FIND)
    } catch (const DeviceError&) {
      return nullptr;
    }
    return &found;
  }();
  return functions;
}

namespace {

/// The status, and which condition it was, where cuDNN tells.
std::string why(cudnnStatus_t status) {
  std::array<char, 512> details{};
  cudnn()->cudnnGetLastErrorString(details.data(), details.size());
  const char* text = cudnn()->cudnnGetErrorString(status);
  return details[0] ? fmt::format("{}: {}", text, details.data()) : text;
}

}  // namespace

void check_cudnn(cudnnStatus_t status, const char* call) {
  const int kind = CUDNN_STATUS_CATEGORY(status);
  if (kind == CUDNN_STATUS_NOT_SUPPORTED || kind == CUDNN_STATUS_BAD_PARAM) [[unlikely]]
    TERN_THROW(NotImplementedError, "{} of cuDNN: {}", call, why(status));
  if (status != CUDNN_STATUS_SUCCESS) [[unlikely]]
    throw_library_error("cuDNN", call, why(status).c_str());
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  check_cudnn(cudnn()->cudnnBackendCreateDescriptor(type, &made_), "cudnnBackendCreateDescriptor");
}

Descriptor::~Descriptor() {
  if (made_ != nullptr) cudnn()->cudnnBackendDestroyDescriptor(made_);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                     const void* values) {
  check_cudnn(cudnn()->cudnnBackendSetAttribute(made_, name, type, count, values),
              "cudnnBackendSetAttribute");
}

void Descriptor::finish() { check_cudnn(cudnn()->cudnnBackendFinalize(made_), "cudnnBackendFinalize"); }

bool Descriptor::try_finish() noexcept {
  return cudnn()->cudnnBackendFinalize(made_) == CUDNN_STATUS_SUCCESS;
}

}  // namespace tern::cuda_backend
