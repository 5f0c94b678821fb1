// The header of idx files; every number in it is checked before use.
#include "tern/data/idx.h"

#include "tern/base/check.h"

namespace tern::data {
namespace {

std::uint32_t big_endian(ByteView bytes, std::size_t at) {
  return std::uint32_t{bytes[at]} << 24 | std::uint32_t{bytes[at + 1]} << 16 |
         std::uint32_t{bytes[at + 2]} << 8 | std::uint32_t{bytes[at + 3]};
}

}  // namespace

IdxView parse_idx(ByteView bytes, std::int64_t rank, const std::string& name) {
  TERN_CHECK(rank >= 1 && rank <= 255, ValueError, "parse_idx: rank must be 1 to 255, not {}", rank);
  TERN_CHECK(bytes.size() >= 4, DataError,
             "'{}': byte 0: an idx file begins with a 4-byte magic, the file has {} bytes", name,
             bytes.size());
  const std::uint32_t expected = 0x0800u | static_cast<std::uint32_t>(rank);
  const std::uint32_t magic = big_endian(bytes, 0);
  TERN_CHECK(magic == expected, DataError,
             "'{}': byte 0: wrong magic 0x{:08x}, expected 0x{:08x} (idx, unsigned bytes, {} dimension{})",
             name, magic, expected, rank, rank == 1 ? "" : "s");
  const std::size_t header = 4 + 4 * static_cast<std::size_t>(rank);
  TERN_CHECK(bytes.size() >= header, DataError, "'{}': byte {}: the file ends inside its header of {} bytes",
             name, bytes.size(), header);

  IdxView view;
  const std::uint64_t available = bytes.size() - header;
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i) {
    const std::uint32_t size = big_endian(bytes, 4 + 4 * i);
    view.shape.push_back(size);
    TERN_CHECK(!__builtin_mul_overflow(count, std::uint64_t{size}, &count), DataError,
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
