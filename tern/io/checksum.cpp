// CRC-32 and DEFLATE decompression, by ISA-L; zlib has the sum of two sums.
#include "tern/io/checksum.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <zlib.h>

#include <algorithm>
#include <memory>

namespace tern::io {

namespace {
/// ISA-L counts in 32 bits.
constexpr size_t kMaxPiece = size_t{1} << 30;
}  // namespace

uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    size_t count = std::min(bytes.size(), kMaxPiece);
    crc = crc32_gzip_refl(crc, reinterpret_cast<const unsigned char*>(bytes.data()), count);
    bytes = bytes.subspan(count);
  }
  return crc;
}

uint32_t crc32_of_two(uint32_t first, uint32_t second, uint64_t second_size) noexcept {
  return static_cast<uint32_t>(::crc32_combine(first, second, static_cast<z_off_t>(second_size)));
}

bool inflate(std::span<const std::byte> in, std::span<std::byte> out) noexcept {
  auto state = std::make_unique<inflate_state>();
  isal_inflate_init(state.get());
  state->crc_flag = ISAL_DEFLATE;
  std::byte beyond{};  // room for one byte too many, which shows that the stream is too long
  bool at_end = false;
  size_t given = 0, taken = 0;
  auto* in_data = const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(in.data()));
  while (state->block_state != ISAL_BLOCK_FINISH) {
    if (state->avail_in == 0) {
      size_t count = std::min(in.size() - given, kMaxPiece);
      state->next_in = in_data + given;
      state->avail_in = static_cast<uint32_t>(count);
      given += count;
    }
    if (state->avail_out == 0) {
      if (at_end) return false;
      size_t count = std::min(out.size() - taken, kMaxPiece);
      at_end = count == 0;
      state->next_out = reinterpret_cast<uint8_t*>(at_end ? &beyond : out.data() + taken);
      state->avail_out = at_end ? 1 : static_cast<uint32_t>(count);
      taken += count;
    }
    uint32_t in_before = state->avail_in, out_before = state->avail_out;
    if (isal_inflate(state.get()) != ISAL_DECOMP_OK) return false;
    bool stuck = state->avail_in == in_before && state->avail_out == out_before;
    if (stuck && given == in.size() && state->block_state != ISAL_BLOCK_FINISH) return false;
  }
  bool full = at_end ? state->avail_out == 1 : taken == out.size() && state->avail_out == 0;
  return full && given == in.size() && state->avail_in == 0;
}

}  // namespace tern::io
