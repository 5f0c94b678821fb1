// Making of streams, and what observers are told of their work.
#include "tern/backends/cuda/stream.h"

#include <algorithm>

#include "tern/backends/cuda/check.h"
#include "tern/backends/cuda/graph.h"
#include "tern/backends/cuda/physical.h"
#include "tern/base/check.h"

namespace tern::cuda_backend {

CudaStream::CudaStream(PhysicalGpu& gpu, Fault* fault) : gpu_(gpu), fault_(fault) {
  // All streams, the default one too, are free of CUDA's legacy stream: nothing is ordered that nobody asked
  // for.
  TERN_CUDA_CALL(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking));
}

CudaStream::~CudaStream() = default;

void CudaStream::set_before_recording(std::shared_ptr<EventRecord> mark) {
  const std::lock_guard lock(mutex_);
  before_recording_.swap(mark);
}

void CudaStream::begin_recording(Stream name) {
  set_before_recording(std::make_shared<CudaEvent>(*this, name, /*timed=*/false));
  try {
    recording_ = std::make_unique<GraphRecording>(*this, name);
  } catch (...) {
    set_before_recording(nullptr);
    throw;
  }
}

std::unique_ptr<RecordedWork> CudaStream::end_recording() {
  const std::unique_ptr<GraphRecording> ended = std::move(recording_);
  try {
    auto work = ended->end();
    set_before_recording(nullptr);
    return work;
  } catch (...) {
    set_before_recording(nullptr);
    throw;
  }
}

std::shared_ptr<EventRecord> CudaStream::before_recording() const {
  const std::lock_guard lock(mutex_);
  return before_recording_;
}

std::string CudaStream::recent() const {
  std::string text;
  const uint32_t count = count_.load(std::memory_order_relaxed);
  const uint32_t size = static_cast<uint32_t>(recent_.size());
  for (uint32_t i = count > size ? count - size : 0; i < count; ++i) {
    const char* name = recent_[i % size].load(std::memory_order_relaxed);
    if (name) text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

EventHandle CudaStream::record(bool timed) {
  EventHandle event = gpu_.take_event(timed);
  TERN_CUDA_CALL(cudaEventRecord(event.get(), handle_));
  return event;
}

void CudaStream::add_observation(Observation observation) {
  const std::lock_guard lock(mutex_);
  observations_.push_back(std::move(observation));
}

void CudaStream::tell_observers() noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(observations_, [this](const Observation& observation) {
    if (cudaEventQuery(observation.end.get()) == cudaErrorNotReady) return false;
    observation.observer->ran(observation.number, gpu_.host_time(observation.begin),
                              gpu_.host_time(observation.end));
    return true;
  });
}

}  // namespace tern::cuda_backend
