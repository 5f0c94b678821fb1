// Opening of the real cuDNN, and its descriptors.
#include "tests/emulator/cudnn_real.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/emulator/settings.h"

namespace emulator {
namespace {

struct Functions {
  decltype(&cudnnBackendCreateDescriptor) create;
  decltype(&cudnnBackendDestroyDescriptor) destroy;
  decltype(&cudnnBackendSetAttribute) set;
  decltype(&cudnnBackendFinalize) finish;
  decltype(&cudnnBackendGetAttribute) ask;
};

const Functions& real() {
  static const Functions found = [] {
    // Engines that make their code when a plan is made want a driver, and get as far as loading it with the
    // stub.
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) == nullptr)
      dlopen(TERN_STUB_CUDA, RTLD_NOW | RTLD_GLOBAL);
    void* const library = dlopen(TERN_REAL_CUDNN, RTLD_NOW | RTLD_LOCAL);
    const auto symbol = [&](const char* name) {
      void* const address = library ? dlsym(library, name) : nullptr;
      if (address == nullptr) {
        std::fprintf(stderr, "CUDA emulator: the real cuDNN can not be opened: %s\n", dlerror());
        std::abort();
      }
      return address;
    };
    Functions made{};
    made.create = reinterpret_cast<decltype(made.create)>(symbol("cudnnBackendCreateDescriptor"));
    made.destroy = reinterpret_cast<decltype(made.destroy)>(symbol("cudnnBackendDestroyDescriptor"));
    made.set = reinterpret_cast<decltype(made.set)>(symbol("cudnnBackendSetAttribute"));
    made.finish = reinterpret_cast<decltype(made.finish)>(symbol("cudnnBackendFinalize"));
    made.ask = reinterpret_cast<decltype(made.ask)>(symbol("cudnnBackendGetAttribute"));
    return made;
  }();
  return found;
}

/// An H100, by the fields that cuDNN 9 asks for.
constexpr std::string_view kGpu = R"({
  "deviceName": "NVIDIA H100 80GB HBM3", "deviceVer": 900, "cudaDeviceId": 0, "pciDeviceId": 590352606,
  "driverVer": 13000, "cudaDriverVer": 13000, "cudartVer": 13000, "isTccDriver": 0, "supportCoopLaunch": 1,
  "multiProcessorCount": 132, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "warpSize": 32,
  "totalGlobalMem": 85000000000, "l2CacheSize": 52428800, "maxSharedMemoryPerBlock": 49152,
  "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
  "regsPerBlock": 65536, "maxCtasPerSM": 32, "maxThreadsPerSM": 2048, "maxThreadsPerBlock": 1024,
  "maxBlockSize": [1024, 1024, 64], "maxGridSize": [2147483647, 65535, 65535]
})";

const Twin& gpu() {
  static const std::shared_ptr<Twin> described = [] {
    std::shared_ptr<Twin> made = Twin::make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    if (made->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, kGpu.size(), kGpu.data()) !=
            CUDNN_STATUS_SUCCESS ||
        made->finish() != CUDNN_STATUS_SUCCESS) {
      std::fprintf(stderr, "CUDA emulator: the real cuDNN does not take the description of a GPU\n");
      std::abort();
    }
    return made;
  }();
  return *described;
}

}  // namespace

std::shared_ptr<Twin> Twin::make(cudnnBackendDescriptorType_t type) {
  if (!settings().real_cudnn) return nullptr;
  cudnnBackendDescriptor_t made = nullptr;
  return real().create(type, &made) == CUDNN_STATUS_SUCCESS ? std::make_shared<Twin>(made, type) : nullptr;
}

Twin::~Twin() { real().destroy(made_); }

cudnnStatus_t Twin::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                        const void* values) {
  return type == CUDNN_TYPE_HANDLE ? CUDNN_STATUS_SUCCESS : real().set(made_, name, type, count, values);
}

cudnnStatus_t Twin::set(cudnnBackendAttributeName_t name, const Twin& part) {
  return real().set(made_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part.made_);
}

cudnnStatus_t Twin::finish() {
  const bool plan = type_ == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
  if (plan || type_ == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
    set(plan ? CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP : CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, gpu());
  return real().finish(made_);
}

cudnnStatus_t Twin::ask(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t asked,
                        int64_t* count, void* values) const {
  return real().ask(made_, name, type, asked, count, values);
}

}  // namespace emulator
