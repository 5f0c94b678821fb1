// The header of idx files; every number in it is checked before use.
#include "tern/data/idx.h"

#include "tern/base/check.h"

namespace tern::data {
namespace {

uint32_t big_endian(ByteView bytes, size_t at) {
  return uint32_t{bytes[at]} << 24 | uint32_t{bytes[at + 1]} << 16 | uint32_t{bytes[at + 2]} << 8 |
         uint32_t{bytes[at + 3]};
}

}  // namespace

IdxView parse_idx(ByteView bytes, int64_t rank, const std::string& name) {
  TERN_CHECK(rank >= 1 && rank <= 255, ValueError, "parse_idx: rank must be 1 to 255, not {}", rank);
  TERN_CHECK(bytes.size() >= 4, DataError,
             "'{}': byte 0: an idx file begins with a 4-byte magic, the file has {} bytes", name,
             bytes.size());
  const uint32_t expected = 0x0800u | static_cast<uint32_t>(rank);
  const uint32_t magic = big_endian(bytes, 0);
  TERN_CHECK(magic == expected, DataError,
             "'{}': byte 0: wrong magic 0x{:08x}, expected 0x{:08x} (idx, unsigned bytes, {} dimension{})",
             name, magic, expected, rank, rank == 1 ? "" : "s");
  const size_t header = 4 + 4 * static_cast<size_t>(rank);
  TERN_CHECK(bytes.size() >= header, DataError, "'{}': byte {}: the file ends inside its header of {} bytes",
             name, bytes.size(), header);

  IdxView view;
  const uint64_t available = bytes.size() - header;
  uint64_t count = 1;
  for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
    const uint32_t size = big_endian(bytes, 4 + 4 * i);
    view.shape.push_back(size);
    TERN_CHECK(!__builtin_mul_overflow(count, uint64_t{size}, &count), DataError,
               "'{}': byte {}: the sizes in the header multiply to more than 2^64", name, 4 + 4 * i);
  }
  TERN_CHECK(count <= available, DataError,
             "'{}': byte {}: the file is short: its header promises {} values, {} bytes follow the header",
             name, bytes.size(), count, available);
  TERN_CHECK(count == available, DataError,
             "'{}': byte {}: {} bytes follow the {} values that the header promises", name, header + count,
             available - count, count);
  view.values = bytes.subspan(header);
  return view;
}

}  // namespace tern::data
