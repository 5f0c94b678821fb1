// What CUDA does without any library: the other side of Tern's launches and copies, and the bandwidth of the
// card's memory. bench/gpu_compare.py drives it. Usage: gpu_bare [--small]
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "peer.h"

namespace {

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

bool small = false;
size_t large_nbytes() { return small ? size_t{1} << 18 : size_t{1} << 30; }     // as the bandwidths' cases
size_t copied_nbytes() { return small ? size_t{1} << 18 : size_t{256} << 20; }  // from the host

cudaStream_t stream() {
  static const cudaStream_t made = [] {
    cudaStream_t s{};
    check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
  }();
  return made;
}
void wait() { check(cudaStreamSynchronize(stream())); }

std::shared_ptr<char> device_memory(size_t nbytes) {
  void* data = nullptr;
  check(cudaMalloc(&data, nbytes));
  check(cudaMemset(data, 1, nbytes));
  return {static_cast<char*>(data), [](char* p) { cudaFree(p); }};
}

std::shared_ptr<char> pinned_memory(size_t nbytes) {
  void* data = nullptr;
  check(cudaMallocHost(&data, nbytes));
  std::memset(data, 1, nbytes);
  return {static_cast<char*>(data), [](char* p) { cudaFreeHost(p); }};
}

__global__ void write_one(float* out, float value) { *out = value; }

constexpr int kLaunches = 256;

peer::Step launches(bool host_alone) {
  auto memory = device_memory(sizeof(float));
  return [=] {
    auto* out = reinterpret_cast<float*>(memory.get());
    for (int i = 0; i < kLaunches; ++i) write_one<<<1, 256, 0, stream()>>>(out, 0.0f);
    check(cudaGetLastError());
    if (host_alone) peer::untimed(wait);
  };
}

peer::Step copy(std::shared_ptr<char> from, size_t nbytes, cudaMemcpyKind kind) {
  auto to = device_memory(nbytes);
  return [=] { check(cudaMemcpyAsync(to.get(), from.get(), nbytes, kind, stream())); };
}

}  // namespace

int main(int argc, char** argv) try {
  small = argc > 1 && std::strcmp(argv[1], "--small") == 0;
  int version = 0;
  check(cudaRuntimeGetVersion(&version));
  wait();
  return peer::serve(
      "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10), [](int) {},
      {
          {"launch_host", [] { return launches(/*host_alone=*/true); }},
          {"launch_rate", [] { return launches(/*host_alone=*/false); }},
          {"copy",
           [] { return copy(device_memory(large_nbytes()), large_nbytes(), cudaMemcpyDeviceToDevice); }},
          {"h2d_pinned",
           [] { return copy(pinned_memory(copied_nbytes()), copied_nbytes(), cudaMemcpyHostToDevice); }},
      },
      wait);
} catch (const std::exception& error) {
  std::fprintf(stderr, "gpu_bare: %s\n", error.what());
  return 1;
}
