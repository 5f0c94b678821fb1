// The history of each byte.
#include "tern/kernels/access_history.h"

#include <algorithm>

namespace tern {

void AccessHistory::note(const MemoryAccess& now, const Operand& operand) {
  auto begin = reinterpret_cast<uintptr_t>(operand.data);
  const uintptr_t end = begin + operand.nbytes;
  if (begin == end) return;
  split_at(begin);
  split_at(end);
  auto at = memory_.lower_bound(begin);
  if (operand.written) {
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
    std::vector<MemoryAccess>& reads = at->second.reads;
    std::erase_if(reads, [&](const MemoryAccess& read) { return read.lane == now.lane; });
    reads.push_back(now);
    begin = at->second.end;
    ++at;
  }
}

void AccessHistory::forget(const void* data, size_t nbytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  split_at(begin);
  split_at(begin + nbytes);
  memory_.erase(memory_.lower_bound(begin), memory_.lower_bound(begin + nbytes));
}

AccessHistory::Memory::const_iterator AccessHistory::first_behind(uintptr_t address) const {
  const auto after = memory_.upper_bound(address);
  if (after == memory_.begin()) return after;
  const auto before = std::prev(after);
  return before->second.end > address ? before : after;
}

void AccessHistory::split_at(uintptr_t address) {
  const auto found = first_behind(address);
  if (found == memory_.end() || found->first >= address) return;
  const auto before = memory_.find(found->first);
  Bytes rest = before->second;
  before->second.end = address;
  memory_.emplace_hint(std::next(before), address, std::move(rest));
}

}  // namespace tern
