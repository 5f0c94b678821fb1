// AccessHistory: who touched which bytes last, for those who ask which work must come after which: the check
// for races of simulated GPUs, and the order of kernels in recorded steps.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tern/kernels/work.h"

namespace tern {

/// Something that a lane did to memory. A lane, such as a stream, does its work in order.
struct MemoryAccess {
  size_t lane = 0;
  uint64_t time = 0;      ///< which of the lane's works, from 1; 0: none
  const char* name = "";  ///< of the work; a literal
};

class AccessHistory {
 public:
  /// Calls visit(access, wrote) for the accesses that one to `operand` must come after: the last writes of
  /// its bytes and, where it writes them, the reads since: the last one of each lane.
  template <class Visit>
  void visit_earlier(const Operand& operand, Visit&& visit) const {
    const auto begin = reinterpret_cast<uintptr_t>(operand.data), end = begin + operand.nbytes;
    for (auto at = first_behind(begin); at != memory_.end() && at->first < end; ++at) {
      const Bytes& bytes = at->second;
      if (bytes.write.time != 0) visit(bytes.write, /*wrote=*/true);
      if (operand.written)
        for (const MemoryAccess& read : bytes.reads) visit(read, /*wrote=*/false);
    }
  }
  void note(const MemoryAccess& now, const Operand& operand);
  /// The bytes have no past any more.
  void forget(const void* data, size_t nbytes);

 private:
  /// Bytes with the same past.
  struct Bytes {
    uintptr_t end;
    MemoryAccess write;
    std::vector<MemoryAccess> reads;  ///< since that write
  };
  using Memory = std::map<uintptr_t, Bytes>;  ///< by their beginning

  /// The first bytes that end behind an address.
  Memory::const_iterator first_behind(uintptr_t address) const;
  void split_at(uintptr_t address);

  Memory memory_;
};

}  // namespace tern
