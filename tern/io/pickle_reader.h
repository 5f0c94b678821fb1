// The pickle machine: reads protocols 0 to 5 into values. It knows the opcodes; what the named classes mean
// stands in pickle_globals.h, and no code is ever run.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tern/base/env.h"
#include "tern/base/error.h"
#include "tern/io/pickle_globals.h"
#include "tern/io/value.h"

namespace tern::io {

/// The bytes end before the pickle does.
struct PickleCutShort : CheckpointError {
  using CheckpointError::CheckpointError;
};

/// Whether an error is the machine's (its disk, its memory, a device) and not the file's.
inline bool is_of_machine(const Error& error) noexcept {
  return dynamic_cast<const IoError*>(&error) != nullptr ||
         dynamic_cast<const EnvironmentError*>(&error) != nullptr ||
         dynamic_cast<const OutOfMemoryError*>(&error) != nullptr ||
         dynamic_cast<const DeviceError*>(&error) != nullptr;
}

struct PickleOptions {
  /// Refuse names that are not on the allow-list; otherwise they become inert objects.
  bool weights_only = true;
  /// Names that become inert objects even so.
  bool (*is_inert)(std::string_view module, std::string_view name) = nullptr;
  /// Accept classes and functions at all.
  bool names_allowed = true;
  size_t max_depth = 1000;
  /// Of an int in decimal digits, for which the time grows with the square of their number.
  size_t max_decimal_digits = 10000;
  /// Memory for values: a fixed part and so much for each byte of the pickle.
  size_t memory_base = size_t{128} << 20;
  size_t memory_per_byte = 48;
};

struct PickleResult {
  Value root;
  size_t consumed = 0;               ///< bytes up to and with STOP
  int protocol = 0;                  ///< the highest that a PROTO opcode named
  std::vector<GlobalName> globals;   ///< every class and function that was named, once each
  std::vector<size_t> global_bytes;  ///< where each of them is first named
  bool calls_results = false;        ///< what a call gave, or a method of a class, is called
};

/// Reads one pickle from the start of `bytes`; what follows it is not looked at. Cycles are made non-owning
/// at their end. Throws CheckpointError naming the byte, the opcode and the place in the tree.
PickleResult read_pickle(std::span<const std::byte> bytes, PickleHost& host,
                         const PickleOptions& options = {});

}  // namespace tern::io
