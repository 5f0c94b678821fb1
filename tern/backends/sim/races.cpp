// Vector clocks of streams, and the history of each byte.
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
  const Access now{number, ++clock[number], name};
  for (const Operand& operand : operands) {
    const auto begin = reinterpret_cast<uintptr_t>(operand.data);
    touch(now, begin, begin + operand.nbytes, operand.written);
  }
}

void RaceDetector::touch(const Access& now, uintptr_t begin, uintptr_t end, bool writes) {
  if (begin == end) return;
  split_at(begin);
  split_at(end);
  auto at = memory_.lower_bound(begin);
  for (auto bytes = at; bytes != memory_.end() && bytes->first < end; ++bytes) {
    check(now, writes, bytes->second.write, /*wrote=*/true);
    if (writes)
      for (const Access& read : bytes->second.reads) check(now, writes, read, /*wrote=*/false);
  }
  if (writes) {
    while (at != memory_.end() && at->first < end) at = memory_.erase(at);
    memory_.emplace_hint(at, begin, Bytes{end, now, {}});
    return;
  }
  while (begin < end) {
    if (at == memory_.end() || at->first > begin) {
      const uintptr_t gap_end = at == memory_.end() ? end : std::min(end, at->first);
      memory_.emplace_hint(at, begin, Bytes{gap_end, {}, {now}});
      begin = gap_end;
      continue;
    }
    std::vector<Access>& reads = at->second.reads;
    std::erase_if(reads, [&](const Access& read) { return read.stream == now.stream; });
    reads.push_back(now);
    begin = at->second.end;
    ++at;
  }
}

void RaceDetector::split_at(uintptr_t address) {
  auto after = memory_.lower_bound(address);
  if (after == memory_.begin()) return;
  auto before = std::prev(after);
  if (before->first >= address || before->second.end <= address) return;
  Bytes rest = before->second;
  before->second.end = address;
  memory_.emplace_hint(after, address, std::move(rest));
}

void RaceDetector::check(const Access& now, bool writes, const Access& before, bool wrote) const {
  if (before.time == 0 || before.stream == now.stream) return;
  if (streams_[now.stream][before.stream] >= before.time) return;
  TERN_THROW(
      DeviceError,
      "race: {} on {} {} memory that {} on {} {}, and nothing orders the two: let the stream wait with "
      "wait_stream() or wait_event(), or name the stream with record_stream() before the tensor is "
      "freed",
      now.name, stream_name(now.stream), writes ? "writes" : "reads", before.name, stream_name(before.stream),
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
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  split_at(begin);
  split_at(begin + nbytes);
  memory_.erase(memory_.lower_bound(begin), memory_.lower_bound(begin + nbytes));
}

}  // namespace tern::sim
