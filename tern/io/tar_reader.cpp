// The headers of tar archives, in blocks of 512 bytes (POSIX.1-2017, pax: ustar Interchange Format).
#include "tern/io/tar_reader.h"

#include <unordered_set>

#include "tern/base/check.h"

namespace tern::io {

namespace {

constexpr uint64_t kTarBlock = 512;
constexpr uint64_t kMaxPaxBytes = 1 << 16;

/// A text field: up to a NUL or its end.
std::string_view text_field(const char* header, size_t begin, size_t length) {
  std::string_view field(header + begin, length);
  return field.substr(0, field.find('\0'));
}

/// Octal digits with blanks around them, or, for numbers that do not fit, big-endian bytes after 0x80.
uint64_t number_field(const char* header, size_t begin, size_t length, uint64_t position) {
  const char* field = header + begin;
  uint64_t value = 0;
  bool right = true;
  if (field[0] == '\x80') {
    for (size_t i = 1; i < length; ++i) {
      right = right && value >> 56 == 0;
      value = value << 8 | static_cast<uint8_t>(field[i]);
    }
  } else {
    size_t i = 0;
    while (i < length && field[i] == ' ') ++i;
    bool any = false;
    for (; i < length && field[i] >= '0' && field[i] <= '7'; ++i, any = true) {
      right = right && value >> 60 == 0;
      value = value << 3 | static_cast<uint64_t>(field[i] - '0');
    }
    right = right && any && (i == length || field[i] == ' ' || field[i] == '\0');
  }
  TERN_CHECK(right, CheckpointError, "the tar header at byte {} has a number that is none", position);
  return value;
}

void check_sum(const char* header, uint64_t position) {
  constexpr size_t kBegin = 148, kLength = 8;
  uint64_t sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i)
    sum += i >= kBegin && i < kBegin + kLength ? ' ' : static_cast<uint8_t>(header[i]);
  TERN_CHECK(number_field(header, kBegin, kLength, position) == sum, CheckpointError,
             "the tar header at byte {} is damaged: its sum is wrong", position);
}

/// Pax records ("27 mtime=1480000000.25\n") may say anything but another name or size for the next member.
void check_pax(const ByteSource& source, uint64_t offset, uint64_t size) {
  TERN_CHECK(size <= kMaxPaxBytes, CheckpointError, "the pax header at byte {} has {} bytes", offset, size);
  std::vector<std::byte> bytes = source.read(offset, size);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (std::string_view key : {" path=", " size=", " linkpath="})
    TERN_CHECK(text.find(key) == std::string_view::npos, CheckpointError,
               "the pax header at byte {} gives a member another{}, which no PyTorch does", offset,
               key.substr(0, key.size() - 1));
}

}  // namespace

std::vector<TarMember> read_tar_members(const ByteSource& source, uint64_t max_members) {
  std::vector<TarMember> members;
  std::unordered_set<std::string> names;
  uint64_t position = 0, size = source.size();
  bool long_name = false;  // the name of the next member stands in the one before it
  while (size - position >= kTarBlock) {
    char header[kTarBlock];
    source.read_at(position, std::as_writable_bytes(std::span(header)));
    if (std::string_view(header, kTarBlock).find_first_not_of('\0') == std::string_view::npos) break;
    check_sum(header, position);
    std::string name(text_field(header, 0, 100));
    if (text_field(header, 257, 5) == "ustar" && header[345] != '\0')
      name = std::string(text_field(header, 345, 155)) + "/" + name;
    uint64_t bytes = number_field(header, 124, 12, position);
    char type = header[156];
    uint64_t data = position + kTarBlock;
    TERN_CHECK(bytes <= size - data, CheckpointError,
               "member '{}' of the tar archive has {} bytes, but only {} follow (incomplete file?)",
               name.substr(0, 100), bytes, size - data);
    if (type == 'x' || type == 'g') {
      check_pax(source, data, bytes);
    } else if (type == 'L' || type == 'K') {
      long_name = true;
    } else if (type == '0' || type == '\0' || type == '7') {
      if (!long_name) {
        TERN_CHECK(names.insert(name).second, CheckpointError,
                   "member '{}' of the tar archive is there twice", name.substr(0, 100));
        members.push_back({std::move(name), data, bytes});
      }
      TERN_CHECK(names.size() <= max_members, CheckpointError,
                 "the tar archive has more than {} members (limits.entries)", max_members);
      long_name = false;
    } else {
      TERN_CHECK(type == '5', CheckpointError, "member '{}' of the tar archive is a link or device",
                 name.substr(0, 100));
    }
    uint64_t padded = (bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
    position = padded > size - data ? size : data + padded;
  }
  return members;
}

}  // namespace tern::io
