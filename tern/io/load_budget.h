// What a file may still ask for while it is read: the limits of LoadOptions, counted down.
#pragma once

#include <cstdint>
#include <string_view>

#include "tern/io/serialize.h"

namespace tern::io {

class LoadBudget {
 public:
  /// For a file (or a part of one) of `file_size` bytes.
  LoadBudget(const LoadLimits& limits, uint64_t file_size);

  /// Counts the bytes of a tensor's storage, before they are allocated. Throws CheckpointError when all
  /// tensors together have more than the limit.
  void take_tensor(uint64_t nbytes);
  /// Counts what a compressed entry unpacks to, before it is. Throws CheckpointError when all of them
  /// together exceed what a file of this size may grow to.
  void take_unpacked(std::string_view entry, uint64_t nbytes);

 private:
  uint64_t tensor_limit_;
  uint64_t tensor_bytes_ = 0;
  uint64_t file_size_;
  uint64_t unpacked_limit_;
  uint64_t unpacked_ = 0;
};

}  // namespace tern::io
