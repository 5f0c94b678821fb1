// Pickles that lie behind each other in a file.
#include "tern/io/pickle_stream.h"

#include <algorithm>

#include "tern/base/check.h"

namespace tern::io {

namespace {
/// So much is read at first, then eight times more each time it was too little.
constexpr uint64_t kFirstWindow = uint64_t{4} << 20;
}  // namespace

PickleResult read_pickle_at(const ByteSource& source, uint64_t& position, uint64_t most, PickleHost& host,
                            const PickleOptions& options, const std::function<void()>& begin) {
  uint64_t left = source.size() - position;
  std::span<const std::byte> memory = source.in_memory();
  for (uint64_t window = std::min(kFirstWindow, most);; window = std::min(window * 8, most)) {
    uint64_t count = std::min(window, left);
    std::vector<std::byte> copy;
    std::span<const std::byte> bytes;
    if (memory.empty())
      bytes = copy = source.read(position, count);
    else
      bytes = memory.subspan(position, count);
    begin();
    try {
      PickleResult result = read_pickle(bytes, host, options);
      position += result.consumed;
      return result;
    } catch (const PickleCutShort& error) {
      if (count == left) throw;
      TERN_CHECK(window < most, CheckpointError,
                 "{} (of a pickle at most {} bytes are read: limits.pickle_bytes)", error.message(), most);
    }
  }
}

}  // namespace tern::io
