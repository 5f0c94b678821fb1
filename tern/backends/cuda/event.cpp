// Waiting for events, and their time.
#include "tern/backends/cuda/event.h"

#include "tern/backends/cuda/check.h"
#include "tern/backends/cuda/physical.h"
#include "tern/backends/cuda/stream.h"
#include "tern/base/check.h"

namespace tern::cuda_backend {

EventHandle::~EventHandle() {
  if (event_ != nullptr) gpu_->give_event(event_, timed_);
}

CudaEvent::CudaEvent(CudaStream& stream, Stream name, bool timed)
    : stream_(stream), name_(name), event_(stream.record(timed)) {}

bool CudaEvent::done() const noexcept { return cudaEventQuery(event_.get()) != cudaErrorNotReady; }

void CudaEvent::synchronize() {
  const Task task{.name = "wait for event", .stream = name_};
  const TaskScope scope(task);
  TERN_CUDA_CALL(cudaEventSynchronize(event_.get()));
  stream_.tell_observers();
  deliver(*stream_.fault());
}

double CudaEvent::seconds() const noexcept { return stream_.gpu().seconds(event_); }

}  // namespace tern::cuda_backend
