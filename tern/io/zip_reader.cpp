// The checks of the central directory, and reading of entries. Numbers of the steps are those of
// APPNOTE.TXT 4.3 and 4.4.
#include "tern/io/zip_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "tern/base/check.h"
#include "tern/io/byte_order.h"
#include "tern/io/checksum.h"
#include "tern/io/tensor_bytes.h"
#include "tern/io/utf8.h"

namespace tern::io {

namespace {

constexpr uint64_t kEndRecordSize = 22;
constexpr uint64_t kZip64EndRecordSize = 56;
constexpr uint64_t kZip64LocatorSize = 20;
constexpr uint64_t kDirectoryEntrySize = 46;
constexpr uint64_t kLocalHeaderSize = 30;
constexpr uint64_t kMaxCommentSize = 65535;
constexpr uint32_t kAllOnes32 = 0xffffffff;
constexpr uint16_t kAllOnes16 = 0xffff;
/// Stored data is read and summed in pieces that stay in the processor's cache.
constexpr size_t kPieceSize = size_t{1} << 18;
/// Entries up to this size are read together with their local header.
constexpr size_t kSmallEntry = size_t{1} << 14;

constexpr uint16_t kEncrypted = 1 << 0, kPatched = 1 << 5, kStronglyEncrypted = 1 << 6,
                   kMaskedHeaders = 1 << 13;

}  // namespace

void ZipReader::fail(const std::string& what) const { throw CheckpointError(what); }

ZipReader::ZipReader(std::shared_ptr<const ByteSource> source, uint64_t max_entries)
    : source_(std::move(source)) {
  Directory directory = find_directory();
  if (directory.count > max_entries)
    fail(fmt::format("the zip archive has {} entries; at most {} are accepted (limits.entries)",
                     directory.count, max_entries));
  parse_directory(directory);
}

ZipReader::Directory ZipReader::find_directory() const {
  uint64_t size = source_->size();
  if (size < kEndRecordSize) fail("the zip archive is cut short: it has no end record");
  uint64_t tail_size = std::min<uint64_t>(size, kEndRecordSize + kMaxCommentSize);
  uint64_t tail_begin = size - tail_size;
  std::vector<std::byte> tail = source_->read(tail_begin, tail_size);
  // The end record whose comment ends with the file; failing that, the last one whose comment fits (bytes
  // after it are junk).
  uint64_t fitting = tail_size;
  for (uint64_t at = tail_size - kEndRecordSize + 1; at-- > 0;) {
    if (load_le<uint32_t>(tail.data() + at) != 0x06054b50) continue;
    uint64_t end = at + kEndRecordSize + load_le<uint16_t>(tail.data() + at + 20);
    if (end == tail_size && fitting != tail_size)
      fail("the zip archive has two end records: programs disagree about which is meant");
    if (end == tail_size) {
      fitting = at;
      break;
    }
    if (end < tail_size && fitting == tail_size) fitting = at;
  }
  if (fitting == tail_size)
    fail("the zip archive has no end record: the file is cut short (an incomplete download or copy?)");
  return parse_end_record(tail_begin + fitting, std::span(tail).subspan(fitting, kEndRecordSize));
}

ZipReader::Directory ZipReader::parse_end_record(uint64_t position, std::span<const std::byte> record) const {
  const std::byte* p = record.data();
  uint16_t disk = load_le<uint16_t>(p + 4), directory_disk = load_le<uint16_t>(p + 6);
  uint16_t disk_count = load_le<uint16_t>(p + 8), count = load_le<uint16_t>(p + 10);
  uint32_t directory_size = load_le<uint32_t>(p + 12), directory_offset = load_le<uint32_t>(p + 16);
  Directory result{directory_offset, directory_size, count};
  uint64_t directory_limit = position;
  bool has_locator = false;
  if (position >= kZip64LocatorSize) {
    std::vector<std::byte> locator = source_->read(position - kZip64LocatorSize, kZip64LocatorSize);
    has_locator = load_le<uint32_t>(locator.data()) == 0x07064b50;
    if (has_locator) {
      uint64_t locator_position = position - kZip64LocatorSize;
      uint64_t at = load_le<uint64_t>(locator.data() + 8);
      if (load_le<uint32_t>(locator.data() + 4) != 0 || load_le<uint32_t>(locator.data() + 16) > 1)
        fail("the zip archive is spread over several disks");
      if (locator_position < kZip64EndRecordSize || at > locator_position - kZip64EndRecordSize)
        fail("the zip64 end record is not inside the file");
      std::vector<std::byte> large = source_->read(at, kZip64EndRecordSize);
      const std::byte* q = large.data();
      if (load_le<uint32_t>(q) != 0x06064b50) fail("the zip64 end record is missing");
      if (load_le<uint32_t>(q + 16) != 0 || load_le<uint32_t>(q + 20) != 0)
        fail("the zip archive is spread over several disks");
      result = {load_le<uint64_t>(q + 48), load_le<uint64_t>(q + 40), load_le<uint64_t>(q + 32)};
      if (load_le<uint64_t>(q + 24) != result.count)
        fail("the zip64 end record gives two numbers of entries");
      bool agree = (count == kAllOnes16 || count == result.count) &&
                   (directory_size == kAllOnes32 || directory_size == result.size) &&
                   (directory_offset == kAllOnes32 || directory_offset == result.offset);
      if (!agree) fail("the zip64 end record and the plain end record disagree");
      directory_limit = at;
    }
  }
  bool one_disk = (disk == 0 || (has_locator && disk == kAllOnes16)) &&
                  (directory_disk == 0 || (has_locator && directory_disk == kAllOnes16)) &&
                  disk_count == count;
  if (!one_disk) fail("the zip archive is spread over several disks");
  if (result.offset > directory_limit || result.size > directory_limit - result.offset)
    fail(fmt::format("the zip directory (byte {}, {} bytes) is not inside the file", result.offset,
                     result.size));
  if (result.count > result.size / kDirectoryEntrySize)
    fail(fmt::format("the zip directory of {} bytes cannot hold {} entries", result.size, result.count));
  return result;
}

void ZipReader::parse_directory(const Directory& directory) {
  std::vector<std::byte> bytes = source_->read(directory.offset, directory.size);
  entries_.reserve(directory.count);
  // More than enough, so that what is there stays where it is.
  names_.reserve(bytes.size() - directory.count * kDirectoryEntrySize);
  size_t at = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (bytes.size() - at < kDirectoryEntrySize)
      fail("the zip directory holds fewer entries than the end record says");
    const std::byte* p = bytes.data() + at;
    if (load_le<uint32_t>(p) != 0x02014b50)
      fail(fmt::format("entry {} of the zip directory has a wrong signature", i));
    size_t name_length = load_le<uint16_t>(p + 28), extra_length = load_le<uint16_t>(p + 30),
           comment_length = load_le<uint16_t>(p + 32);
    size_t entry_length = kDirectoryEntrySize + name_length + extra_length + comment_length;
    if (bytes.size() - at < entry_length)
      fail(fmt::format("entry {} runs past the end of the zip directory", i));
    ZipEntry entry;
    const char* name = reinterpret_cast<const char*>(p + kDirectoryEntrySize);
    names_.insert(names_.end(), name, name + name_length);
    entry.name = std::string_view(names_.data() + names_.size() - name_length, name_length);
    const std::string_view shown = entry.name.substr(0, 200);
    if (name_length == 0 || !is_utf8(entry.name) || entry.name.find('\0') != std::string_view::npos)
      fail(fmt::format("entry {} of the zip archive has a name that is no text", i));
    uint16_t flags = load_le<uint16_t>(p + 8);
    entry.method = load_le<uint16_t>(p + 10);
    entry.crc = load_le<uint32_t>(p + 16);
    entry.compressed_size = load_le<uint32_t>(p + 20);
    entry.size = load_le<uint32_t>(p + 24);
    entry.header_offset = load_le<uint32_t>(p + 42);
    uint16_t entry_disk = load_le<uint16_t>(p + 34);
    if (flags & (kEncrypted | kStronglyEncrypted | kMaskedHeaders))
      fail(fmt::format("entry '{}' is encrypted, which is not supported", shown));
    if (flags & kPatched) fail(fmt::format("entry '{}' is patch data, which is not supported", shown));

    // Zip64: each number whose plain field is all ones stands in the extra field 1, in this order.
    const std::byte* extra = p + kDirectoryEntrySize + name_length;
    bool needs_zip64 =
        entry.size == kAllOnes32 || entry.compressed_size == kAllOnes32 || entry.header_offset == kAllOnes32;
    for (size_t e = 0; e + 4 <= extra_length;) {
      uint16_t id = load_le<uint16_t>(extra + e), length = load_le<uint16_t>(extra + e + 2);
      if (length > extra_length - e - 4)
        fail(fmt::format("entry '{}': an extra field runs past its end", shown));
      if (id == 1 && needs_zip64) {
        size_t used = 0;
        for (uint64_t* number : {&entry.size, &entry.compressed_size, &entry.header_offset}) {
          if (*number != kAllOnes32) continue;
          if (length - used < 8) fail(fmt::format("entry '{}': its zip64 field is too short", shown));
          *number = load_le<uint64_t>(extra + e + 4 + used);
          used += 8;
        }
        needs_zip64 = false;
      }
      e += 4 + size_t{length};
    }
    if (needs_zip64) fail(fmt::format("entry '{}' needs a zip64 field and has none", shown));
    if (entry_disk != 0 && entry_disk != kAllOnes16)
      fail(fmt::format("entry '{}' is on another disk", shown));
    if (entry.method != 0 && entry.method != 8)
      fail(fmt::format("entry '{}' is compressed by method {}; only stored (0) and deflate (8) are supported",
                       shown, entry.method));
    if (entry.stored() && entry.size != entry.compressed_size)
      fail(fmt::format("entry '{}' is stored, but its two sizes differ: {} and {}", shown, entry.size,
                       entry.compressed_size));
    if (entry.header_offset > directory.offset ||
        directory.offset - entry.header_offset < kLocalHeaderSize + name_length ||
        entry.compressed_size > directory.offset - entry.header_offset - kLocalHeaderSize - name_length)
      fail(fmt::format("entry '{}' (byte {}, {} bytes) is not inside the file", shown, entry.header_offset,
                       entry.compressed_size));
    entries_.push_back(std::move(entry));
    at += entry_length;
  }
  if (at != bytes.size()) fail("the zip directory holds more than the end record says");

  index_.reserve(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    const std::string_view name = entries_[i].name;
    const size_t hash = std::hash<std::string_view>()(name);
    if (index_.find(hash, [&](size_t other) { return entries_[other].name == name; }) != HashIndex::kNone)
      fail(fmt::format("entry '{}' is there twice", name.substr(0, 200)));
    index_.insert(hash, i);
  }

  std::vector<size_t> order(entries_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return entries_[a].header_offset < entries_[b].header_offset; });
  for (size_t i = 0; i < order.size(); ++i) {
    ZipEntry& entry = entries_[order[i]];
    entry.end_limit = i + 1 < order.size() ? entries_[order[i + 1]].header_offset : directory.offset;
    if (entry.header_offset + kLocalHeaderSize + entry.name.size() + entry.compressed_size > entry.end_limit)
      fail(fmt::format("entries '{}' and '{}' overlap", entry.name.substr(0, 200),
                       i + 1 < order.size() ? entries_[order[i + 1]].name.substr(0, 200) : "(directory)"));
  }
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  size_t found = index_.find(std::hash<std::string_view>()(name),
                             [&](size_t position) { return entries_[position].name == name; });
  return found == HashIndex::kNone ? nullptr : &entries_[found];
}

uint64_t ZipReader::data_offset(const ZipEntry& entry) const {
  std::string header(kLocalHeaderSize + entry.name.size(), '\0');
  source_->read_at(entry.header_offset, std::as_writable_bytes(std::span(header)));
  return check_local_header(entry, header.data());
}

std::vector<uint64_t> ZipReader::data_offsets(std::span<const ZipEntry* const> entries) const {
  std::vector<uint64_t> offsets;
  offsets.reserve(entries.size());
  std::vector<std::byte> window;
  uint64_t begin = 0, end = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const ZipEntry& entry = *entries[i];
    const uint64_t header_end = entry.header_offset + kLocalHeaderSize + entry.name.size();
    if (entry.header_offset < begin || header_end > end) {
      begin = entry.header_offset;
      const bool close = i + 1 < entries.size() && entries[i + 1]->header_offset - begin <= kSmallEntry;
      end = close ? std::max(header_end, std::min(begin + kPieceSize, source_->size())) : header_end;
      window.resize(std::max<size_t>(window.size(), end - begin));
      source_->read_at(begin, std::span(window).first(end - begin));
    }
    offsets.push_back(check_local_header(entry, window.data() + (entry.header_offset - begin)));
  }
  return offsets;
}

uint64_t ZipReader::check_local_header(const ZipEntry& entry, const void* header) const {
  const auto* p = static_cast<const char*>(header);
  std::string_view shown = entry.name.substr(0, 200);
  if (load_le<uint32_t>(p) != 0x04034b50)
    fail(fmt::format("entry '{}' has no local header where the directory says", shown));
  if (load_le<uint16_t>(p + 6) & (kEncrypted | kStronglyEncrypted))
    fail(fmt::format("entry '{}' is encrypted, which is not supported", shown));
  if (load_le<uint16_t>(p + 8) != entry.method)
    fail(fmt::format("entry '{}': directory and local header name different compressions", shown));
  bool same_name = load_le<uint16_t>(p + 26) == entry.name.size() &&
                   std::memcmp(p + kLocalHeaderSize, entry.name.data(), entry.name.size()) == 0;
  if (!same_name) fail(fmt::format("entry '{}' has another name in its local header", shown));
  uint64_t offset = entry.header_offset + kLocalHeaderSize + entry.name.size() + load_le<uint16_t>(p + 28);
  if (offset > entry.end_limit || entry.compressed_size > entry.end_limit - offset)
    fail(fmt::format("entry '{}' runs into what follows it", shown));
  return offset;
}

bool ZipReader::read_small(const ZipEntry& entry, std::span<std::byte> out) const {
  // The local header's extra field is up to 68 bytes in files of PyTorch; with a longer one this is left to
  // the general way.
  std::array<std::byte, kSmallEntry + 1024> buffer;
  uint64_t wanted = kLocalHeaderSize + entry.name.size() + 128 + entry.size;
  uint64_t count = std::min({wanted, entry.end_limit - entry.header_offset, uint64_t{buffer.size()}});
  source_->read_at(entry.header_offset, std::span(buffer).first(count));
  uint64_t begin = check_local_header(entry, buffer.data()) - entry.header_offset;
  if (begin + entry.size > count) return false;
  if (!out.empty()) std::memcpy(out.data(), buffer.data() + begin, out.size());
  return true;
}

void ZipReader::read(const ZipEntry& entry, std::span<std::byte> out, bool verify_crc) const {
  verify_crc = verify_crc && entry.crc != 0;
  uint32_t crc = 0;
  bool small = entry.stored() && entry.size <= kSmallEntry && entry.name.size() <= 512;
  if (small && read_small(entry, out)) {
    if (verify_crc) crc = crc32(0, out);
  } else if (entry.stored()) {
    uint64_t offset = data_offset(entry);
    for (auto rest = out; !rest.empty();) {
      auto piece = rest.first(std::min(rest.size(), kPieceSize));
      source_->read_at(offset, piece);
      if (verify_crc) crc = crc32(crc, piece);
      offset += piece.size();
      rest = rest.subspan(piece.size());
    }
  } else {
    std::vector<std::byte> compressed = source_->read(data_offset(entry), entry.compressed_size);
    if (!inflate(compressed, out))
      fail(fmt::format("entry '{}': the compressed data is broken", entry.name.substr(0, 200)));
    if (verify_crc) crc = crc32(0, out);
  }
  if (verify_crc && crc != entry.crc) fail_damaged(entry, crc);
}

void ZipReader::check_crc(const ZipEntry& entry) const {
  if (entry.crc == 0) return;
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  uint32_t crc = 0;
  uint64_t offset = data_offset(entry);
  std::vector<std::byte> piece(std::min(entry.size, kPiece));
  for (uint64_t left = entry.size; left > 0; left -= piece.size()) {
    piece.resize(std::min(left, kPiece));
    source_->read_at(offset, piece);
    crc = crc32(crc, piece);
    offset += piece.size();
  }
  if (crc != entry.crc) fail_damaged(entry, crc);
}

void ZipReader::fail_damaged(const ZipEntry& entry, uint32_t crc) const {
  fail(fmt::format("entry '{}' is damaged: its CRC is {:08x}, it should be {:08x}", entry.name.substr(0, 200),
                   crc, entry.crc));
}

std::vector<std::byte> ZipReader::read(const ZipEntry& entry, uint64_t max_size, bool verify_crc,
                                       std::string_view limit) const {
  if (entry.size > max_size)
    fail(fmt::format("entry '{}' has {} bytes; at most {} are accepted{}", entry.name.substr(0, 200),
                     entry.size, max_size, limit.empty() ? "" : fmt::format(" ({})", limit)));
  std::vector<std::byte> bytes = host_bytes(entry.size);
  read(entry, bytes, verify_crc);
  return bytes;
}

}  // namespace tern::io
