// A pickle as a list of opcodes, as Python's pickletools.dis shows it. Nothing is built from them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "tern/io/file.h"

namespace tern::io {

struct PickleLine {
  size_t byte = 0;
  std::string opcode;    ///< "GLOBAL"
  std::string argument;  ///< shortened; of STACK_GLOBAL the name, where the two texts before it give it
  int depth = 0;         ///< of open marks
  bool names_global = false;
  std::string module, name;  ///< where names_global
};

/// Calls `show` with each opcode up to and with STOP; false from `show` ends it. Returns the bytes used.
/// Throws CheckpointError where the opcodes end or make no sense.
size_t list_pickle(std::span<const std::byte> bytes, const std::function<bool(const PickleLine&)>& show);

/// The pickles of a file, one after the other: `begin` gets a title ("archive/data.pkl", or the name of the
/// source that is a pickle), then `show` its lines. Throws CheckpointError for a file that has none.
void list_pickles_of(const std::shared_ptr<const ByteSource>& source,
                     const std::function<void(const std::string&)>& begin,
                     const std::function<bool(const PickleLine&)>& show);

}  // namespace tern::io
