// Times of the ways, by events of the stream.
#include "tern/backends/cuda/kernels/measure.h"

#include <limits>

#include "tern/backends/cuda/check.h"
#include "tern/backends/cuda/event.h"
#include "tern/backends/cuda/stream.h"
#include "tern/base/error.h"

namespace tern::cuda_backend {
namespace {

float milliseconds(CudaStream& stream, size_t way, const std::function<void(size_t)>& run) {
  constexpr int kRuns = 4;
  try {
    run(way);
    const EventHandle begin = stream.record(/*timed=*/true);
    for (int i = 0; i < kRuns; ++i) run(way);
    const EventHandle end = stream.record(/*timed=*/true);
    TERN_CUDA_CALL(cudaEventSynchronize(end.get()));
    float time = 0;
    TERN_CUDA_CALL(cudaEventElapsedTime(&time, begin.get(), end.get()));
    return time;
  } catch (const OutOfMemoryError&) {
  } catch (const NotImplementedError&) {
  }
  return std::numeric_limits<float>::infinity();
}

}  // namespace

bool is_recorded(const CudaStream& stream) {
  cudaStreamCaptureStatus status{};
  TERN_CUDA_CALL(cudaStreamIsCapturing(stream.handle(), &status));
  return status != cudaStreamCaptureStatusNone;
}

size_t fastest_of(size_t count, CudaStream& stream, const std::function<void(size_t)>& run) {
  size_t fastest = 0;
  float least = std::numeric_limits<float>::infinity();
  for (size_t way = 0; way < count; ++way) {
    const float time = milliseconds(stream, way, run);
    if (time >= least) continue;
    least = time;
    fastest = way;
  }
  return fastest;
}

}  // namespace tern::cuda_backend
