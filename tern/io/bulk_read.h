// Filling many storages from a file at once: with several threads, straight into the destination's memory,
// summing while the bytes are in the cache. What is where in the file is decided by the readers of formats.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "tern/core/dtype.h"
#include "tern/core/storage.h"
#include "tern/io/file.h"

namespace tern::io {

/// A run of bytes of a source that fills a storage.
struct ReadJob {
  uint64_t offset = 0;
  /// At least the storage's size; what is more is read for the checksum only.
  uint64_t nbytes = 0;
  StorageImpl* storage = nullptr;
  DType dtype = DType::UInt8;
  bool swap = false;                           ///< the numbers are big-endian
  std::optional<uint32_t> crc = std::nullopt;  ///< what the CRC-32 of the bytes must be
};

/// Brings bytes from a file into the form they have in memory: host byte order, bools 0 or 1.
void to_memory_form(std::span<std::byte> bytes, DType dtype, bool swap);

/// Does the jobs, which are in the order of the file. GPUs are filled through a few MiB of staging for each
/// thread. Throws IoError, or CheckpointError for a wrong checksum, which `describe(job)` names.
void fill_storages(const ByteSource& source, std::span<const ReadJob> jobs,
                   const std::function<std::string(size_t)>& describe);

}  // namespace tern::io
