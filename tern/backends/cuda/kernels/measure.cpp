// Times of the ways, by events of the stream.
#include "tern/backends/cuda/kernels/measure.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "tern/backends/cuda/check.h"
#include "tern/backends/cuda/event.h"
#include "tern/backends/cuda/stream.h"
#include "tern/base/error.h"

namespace tern::cuda_backend {
namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();

/// Of one run, among `runs`.
float milliseconds(CudaStream& stream, int runs, const std::function<void()>& run) {
  try {
    const EventHandle begin = stream.record(/*timed=*/true);
    for (int i = 0; i < runs; ++i) run();
    const EventHandle end = stream.record(/*timed=*/true);
    TERN_CUDA_CALL(cudaEventSynchronize(end.get()));
    float time = 0;
    TERN_CUDA_CALL(cudaEventElapsedTime(&time, begin.get(), end.get()));
    return time / static_cast<float>(runs);
  } catch (const OutOfMemoryError&) {
  } catch (const NotImplementedError&) {
  } catch (const DeviceError&) {  // of a library; a lost GPU says so again
  }
  cudaGetLastError();
  return kNever;
}

}  // namespace

bool is_recorded(const CudaStream& stream) {
  cudaStreamCaptureStatus status{};
  TERN_CUDA_CALL(cudaStreamIsCapturing(stream.handle(), &status));
  return status != cudaStreamCaptureStatusNone;
}

size_t fastest_of(size_t count, CudaStream& stream, const std::function<void(size_t)>& run) {
  constexpr int kRounds = 3, kMostRuns = 16;
  constexpr float kLong = 1, kClear = 0.97f;  // milliseconds of a round; noise is less than the rest
  std::vector<float> least(count, 0);
  for (int round = 0; round <= kRounds; ++round)  // the first one wakes the GPU and loads kernels
    for (size_t way = 0; way < count; ++way) {
      if (least[way] == kNever) continue;
      const int runs = round == 0 ? 1 : std::clamp(static_cast<int>(kLong / least[way]), 1, kMostRuns);
      const float time = milliseconds(stream, runs, [&] { run(way); });
      least[way] = round <= 1 || time == kNever ? time : std::min(least[way], time);
    }
  const auto fastest = static_cast<size_t>(std::min_element(least.begin(), least.end()) - least.begin());
  return least[fastest] < kClear * least[0] ? fastest : 0;
}

}  // namespace tern::cuda_backend
