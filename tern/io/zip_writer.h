// Writing zip archives the way PyTorch does: stored entries whose data begins at a multiple of 64 bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tern/io/file.h"

namespace tern::io {

/// Writes entries one after the other to a sink. Every byte is as torch.save writes it: CRC and sizes follow
/// the data, and a zip64 end record is always there.
class ZipWriter {
 public:
  /// The data of each entry begins at a multiple of this.
  static constexpr uint64_t kAlignment = 64;

  explicit ZipWriter(ByteSink& sink) : sink_(sink) {}

  /// Begins an entry of exactly `size` bytes, which `write` then gives in any number of pieces.
  void begin(std::string_view name, uint64_t size);
  /// Large pieces are summed by a second thread while they are written; it is done when this returns.
  void write(std::span<const std::byte> bytes);
  void end();

  void add(std::string_view name, std::span<const std::byte> content);
  void add(std::string_view name, std::string_view text) {
    add(name, std::as_bytes(std::span(text.data(), text.size())));
  }

  /// Writes the directory. Nothing may follow.
  void finish();

 private:
  struct Entry {
    std::string name;
    uint64_t offset;
    uint64_t size;
    uint32_t crc;
  };
  void put(const std::string& bytes);

  ByteSink& sink_;
  uint64_t position_ = 0;
  uint64_t remaining_ = 0;
  std::vector<Entry> entries_;
  std::string scratch_;
};

}  // namespace tern::io
