// Reading zip archives from untrusted sources: entries are found through the central directory, which is
// checked in full before any entry is believed. What the entries mean is decided elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tern/io/file.h"
#include "tern/io/hash_index.h"

namespace tern::io {

struct ZipEntry {
  std::string_view name;  ///< held by the reader
  uint64_t size = 0;
  uint64_t compressed_size = 0;
  uint64_t header_offset = 0;
  uint64_t end_limit = 0;  ///< where the next entry or the directory begins
  uint32_t crc = 0;
  uint16_t method = 0;  ///< 0 stored, 8 deflate

  bool stored() const noexcept { return method == 0; }
};

class ZipReader {
 public:
  /// Reads the directory. Throws CheckpointError when the archive is broken, cut short, spread over several
  /// disks, has encrypted, overlapping or duplicate entries, names that are not UTF-8, or unknown
  /// compression, or more entries than `max_entries`.
  explicit ZipReader(std::shared_ptr<const ByteSource> source, uint64_t max_entries = UINT64_MAX);

  ZipReader(ZipReader&&) = default;
  ZipReader& operator=(ZipReader&&) = default;

  const std::vector<ZipEntry>& entries() const noexcept { return entries_; }
  /// The entry with exactly this name, or null.
  const ZipEntry* find(std::string_view name) const;
  /// Where the bytes of an entry begin. Reads and checks its local header. Throws CheckpointError.
  uint64_t data_offset(const ZipEntry& entry) const;
  /// The same for many, which are in the order of the file: headers that lie close together are read at once.
  std::vector<uint64_t> data_offsets(std::span<const ZipEntry* const> entries) const;
  /// Fills `out`, which has the entry's size, checking the CRC (0 in the directory means: not computed).
  /// Throws CheckpointError.
  void read(const ZipEntry& entry, std::span<std::byte> out, bool verify_crc = true) const;
  /// The content as a new vector. Throws CheckpointError when it is larger than `max_size`, before anything
  /// is allocated; `limit` names the option that this is.
  std::vector<std::byte> read(const ZipEntry& entry, uint64_t max_size, bool verify_crc = true,
                              std::string_view limit = "") const;
  /// Reads a stored entry piece by piece and checks its CRC. Throws CheckpointError.
  void check_crc(const ZipEntry& entry) const;
  const ByteSource& source() const noexcept { return *source_; }

 private:
  struct Directory {
    uint64_t offset = 0;
    uint64_t size = 0;
    uint64_t count = 0;
  };
  Directory find_directory() const;
  Directory parse_end_record(uint64_t position, std::span<const std::byte> record) const;
  void parse_directory(const Directory& directory);
  /// Where the data begins. Header and name lie at `header`.
  uint64_t check_local_header(const ZipEntry& entry, const void* header) const;
  bool read_small(const ZipEntry& entry, std::span<std::byte> out) const;
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_damaged(const ZipEntry& entry, uint32_t crc) const;

  std::shared_ptr<const ByteSource> source_;
  std::vector<char> names_;  ///< one after the other
  std::vector<ZipEntry> entries_;
  HashIndex index_;  ///< by name
};

}  // namespace tern::io
