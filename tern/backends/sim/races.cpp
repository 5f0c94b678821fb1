// Vector clocks of streams.
#include "tern/backends/sim/races.h"

#include "tern/backends/sim/device.h"
#include "tern/base/check.h"

namespace tern::sim {
namespace {

void merge(VectorClock& into, const VectorClock& from) {
  for (size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}

std::string stream_name(size_t number) {
  return fmt::format("cuda:{} stream {}", number / kNumStreams, number % kNumStreams);
}

}  // namespace

RaceDetector::RaceDetector(int gpus) {
  const size_t count = static_cast<size_t>(gpus) * kNumStreams;
  host_.assign(count, 0);
  streams_.assign(count, host_);
}

size_t RaceDetector::number_of(Stream stream) const {
  return static_cast<size_t>(stream.device.index) * kNumStreams + stream.id;
}

void RaceDetector::access(Stream stream, const char* name, const SmallVector<Operand, 8>& operands) {
  const std::lock_guard lock(mutex_);
  const size_t number = number_of(stream);
  VectorClock& clock = streams_[number];
  merge(clock, host_);
  const MemoryAccess now{number, ++clock[number], name};
  for (const Operand& operand : operands)
    history_.visit_earlier(
        operand, [&](const MemoryAccess& before, bool wrote) { check(now, operand.written, before, wrote); });
  for (const Operand& operand : operands) history_.note(now, operand);
}

void RaceDetector::check(const MemoryAccess& now, bool writes, const MemoryAccess& before, bool wrote) const {
  if (before.lane == now.lane || streams_[now.lane][before.lane] >= before.time) return;
  TERN_THROW(
      DeviceError,
      "race: {} on {} {} memory that {} on {} {}, and nothing orders the two: let the stream wait with "
      "wait_stream() or wait_event(), or name the stream with record_stream() before the tensor is "
      "freed",
      now.name, stream_name(now.lane), writes ? "writes" : "reads", before.name, stream_name(before.lane),
      wrote ? "writes" : "reads");
}

std::shared_ptr<const VectorClock> RaceDetector::record(Stream stream) {
  const std::lock_guard lock(mutex_);
  return std::make_shared<VectorClock>(streams_[number_of(stream)]);
}

void RaceDetector::stream_waits(Stream stream, const VectorClock& event) {
  const std::lock_guard lock(mutex_);
  merge(streams_[number_of(stream)], event);
}

void RaceDetector::host_knows(const VectorClock& event) {
  const std::lock_guard lock(mutex_);
  merge(host_, event);
}

void RaceDetector::host_knows(Stream stream) {
  const std::lock_guard lock(mutex_);
  merge(host_, streams_[number_of(stream)]);
}

void RaceDetector::forget(const void* memory, size_t nbytes) {
  const std::lock_guard lock(mutex_);
  history_.forget(memory, nbytes);
}

}  // namespace tern::sim
