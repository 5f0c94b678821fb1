// The GPUs that the emulator has, and the words of its errors.
#include <cuda_runtime_api.h>

#include <cstdio>

#include "tests/emulator/gpus.h"
#include "tests/emulator/settings.h"

using emulator::settings;

namespace {

thread_local int current = 0;
thread_local bool has_context = false;

struct Words {
  cudaError_t error;
  const char *name, *text;
};
constexpr Words kWords[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
};
const Words* words(cudaError_t error) {
  for (const Words& each : kWords)
    if (each.error == error) return &each;
  return nullptr;
}

}  // namespace

bool emulator::thread_has_context() { return has_context; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = settings().gpus;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= settings().gpus) return cudaErrorInvalidDevice;
  current = device;
  has_context = true;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "CUDA emulator");
  properties->totalGlobalMem = settings().memory;
  properties->multiProcessorCount = 8;
  properties->major = 9;
  properties->pciBusID = device + 1;
  properties->uuid.bytes[15] = static_cast<char>(device + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }

const char* cudaGetErrorName(cudaError_t error) {
  const Words* found = words(error);
  return found ? found->name : "unknown";
}
const char* cudaGetErrorString(cudaError_t error) {
  const Words* found = words(error);
  return found ? found->text : "unknown error";
}
