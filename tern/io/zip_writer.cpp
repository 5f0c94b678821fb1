// The bytes of PyTorch's zip container.
#include "tern/io/zip_writer.h"

#include <algorithm>
#include <future>
#include <system_error>

#include "tern/base/check.h"
#include "tern/io/byte_order.h"
#include "tern/io/checksum.h"

namespace tern::io {

namespace {

constexpr uint64_t kLarge = 0xffffffff;
constexpr uint16_t kNamesAreUtf8 = 0x0800, kSizesFollow = 0x0008;
/// Summed and written piece by piece, so that the second use finds the bytes in the processor's cache.
constexpr size_t kWritePieceSize = size_t{1} << 19;
/// From here on a thread for the sum costs less than it saves.
constexpr size_t kLargeBytes = size_t{4} << 20;

uint16_t flags_for(uint64_t size) { return size == 0 ? kNamesAreUtf8 : kNamesAreUtf8 | kSizesFollow; }

/// The zip64 field: the size twice when large, the offset when far. PyTorch leaves the second size 0 in local
/// headers.
std::string zip64_field(uint64_t size, uint64_t compressed_size, uint64_t offset) {
  std::string numbers;
  if (size >= kLarge) {
    append_le(numbers, size);
    append_le(numbers, compressed_size);
  }
  if (offset >= kLarge) append_le(numbers, offset);
  if (numbers.empty()) return numbers;
  std::string field;
  append_le<uint16_t>(field, 1);
  append_le(field, static_cast<uint16_t>(numbers.size()));
  return field + numbers;
}

/// What `sum` gives, in a thread of its own, or in this one where no more threads can be had.
template <class Sum>
std::future<uint32_t> started(const Sum& sum) {
  try {
    return std::async(std::launch::async, sum);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, sum);
  }
}

uint32_t clamped(uint64_t number) { return static_cast<uint32_t>(std::min(number, kLarge)); }

}  // namespace

void ZipWriter::put(const std::string& bytes) {
  sink_.write(std::string_view(bytes));
  position_ += bytes.size();
}

void ZipWriter::begin(std::string_view name, uint64_t size) {
  TERN_CHECK(name.size() <= 0xffff, ValueError,
             "zip: an entry's name has {} bytes; at most 65535 are possible", name.size());
  uint64_t offset = position_;
  std::string extra = zip64_field(size, 0, offset);
  uint64_t start = offset + 30 + name.size() + extra.size() + 4;
  auto padding = static_cast<uint16_t>((kAlignment - start % kAlignment) % kAlignment);
  extra += "FB";
  append_le(extra, padding);
  extra.append(padding, 'Z');

  std::string& header = scratch_;
  header.clear();
  append_le<uint32_t>(header, 0x04034b50);
  append_le<uint16_t>(header, 0);
  append_le<uint16_t>(header, flags_for(size));
  header.append(2 + 4 + 4 + 4 + 4, '\0');  // method, time and date, CRC, sizes
  append_le(header, static_cast<uint16_t>(name.size()));
  append_le(header, static_cast<uint16_t>(extra.size()));
  header += name;
  header += extra;
  put(header);
  entries_.push_back({std::string(name), offset, size, 0});
  remaining_ = size;
}

void ZipWriter::write(std::span<const std::byte> bytes) {
  TERN_CHECK(bytes.size() <= remaining_, ValueError, "zip: entry '{}' got more than its {} bytes",
             entries_.back().name, entries_.back().size);
  remaining_ -= bytes.size();
  position_ += bytes.size();
  uint32_t& crc = entries_.back().crc;
  if (bytes.size() >= kLargeBytes) {
    std::future<uint32_t> sum = started([&] { return crc32(crc, bytes); });
    sink_.write(bytes);
    crc = sum.get();
    return;
  }
  while (!bytes.empty()) {
    auto piece = bytes.first(std::min(bytes.size(), kWritePieceSize));
    crc = crc32(crc, piece);
    sink_.write(piece);
    bytes = bytes.subspan(piece.size());
  }
}

void ZipWriter::end() {
  const Entry& entry = entries_.back();
  TERN_CHECK(remaining_ == 0, ValueError, "zip: entry '{}' got {} bytes too few", entry.name, remaining_);
  if (entry.size == 0) return;
  std::string descriptor;
  append_le<uint32_t>(descriptor, 0x08074b50);
  append_le(descriptor, entry.crc);
  for (int i = 0; i < 2; ++i) {
    if (entry.size >= kLarge || entry.offset >= kLarge)
      append_le<uint64_t>(descriptor, entry.size);
    else
      append_le<uint32_t>(descriptor, static_cast<uint32_t>(entry.size));
  }
  put(descriptor);
}

void ZipWriter::add(std::string_view name, std::span<const std::byte> content) {
  begin(name, content.size());
  write(content);
  end();
}

void ZipWriter::finish() {
  uint64_t directory_offset = position_;
  std::string record;
  for (const Entry& entry : entries_) {
    std::string extra = zip64_field(entry.size, entry.size, entry.offset);
    record.clear();
    append_le<uint32_t>(record, 0x02014b50);
    append_le<uint16_t>(record, 0);
    append_le<uint16_t>(record, 0);
    append_le<uint16_t>(record, flags_for(entry.size));
    record.append(2 + 4, '\0');  // method, time and date
    append_le(record, entry.crc);
    append_le(record, clamped(entry.size));
    append_le(record, clamped(entry.size));
    append_le(record, static_cast<uint16_t>(entry.name.size()));
    append_le(record, static_cast<uint16_t>(extra.size()));
    record.append(2 + 2 + 2 + 4, '\0');  // comment, disk, attributes
    append_le(record, clamped(entry.offset));
    record += entry.name;
    record += extra;
    put(record);
  }
  uint64_t directory_size = position_ - directory_offset;
  uint64_t zip64_offset = position_;
  uint64_t count = entries_.size();
  std::string end;
  append_le<uint32_t>(end, 0x06064b50);
  append_le<uint64_t>(end, 44);
  append_le<uint16_t>(end, 0x031e);
  append_le<uint16_t>(end, 45);
  append_le<uint32_t>(end, 0);
  append_le<uint32_t>(end, 0);
  append_le(end, count);
  append_le(end, count);
  append_le(end, directory_size);
  append_le(end, directory_offset);
  append_le<uint32_t>(end, 0x07064b50);
  append_le<uint32_t>(end, 0);
  append_le(end, zip64_offset);
  append_le<uint32_t>(end, 1);
  append_le<uint32_t>(end, 0x06054b50);
  append_le<uint32_t>(end, 0);
  auto short_count = static_cast<uint16_t>(std::min<uint64_t>(count, 0xffff));
  append_le(end, short_count);
  append_le(end, short_count);
  append_le(end, clamped(directory_size));
  append_le(end, clamped(directory_offset));
  append_le<uint16_t>(end, 0);
  put(end);
}

}  // namespace tern::io
