// Pickles that lie behind each other in a file, each of unknown length.
#pragma once

#include <functional>

#include "tern/io/file.h"
#include "tern/io/pickle_reader.h"

namespace tern::io {

/// The most bytes of a pickle of a number or a few words, as versions and sizes are.
inline constexpr uint64_t kSmallPickle = uint64_t{64} << 10;

/// Reads the pickle at `position` of at most `most` bytes, and moves there behind it. Long ones take several
/// attempts: `begin` is called before each, to forget what the one before gave. Throws CheckpointError.
PickleResult read_pickle_at(const ByteSource& source, uint64_t& position, uint64_t most, PickleHost& host,
                            const PickleOptions& options, const std::function<void()>& begin);

}  // namespace tern::io
