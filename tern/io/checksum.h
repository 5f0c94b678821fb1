// CRC-32 and DEFLATE decompression, by ISA-L and zlib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern::io {

/// The CRC-32 of zip and gzip over `bytes`, going on from `crc` (0 at the start).
uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes) noexcept;

/// The CRC-32 of two runs of bytes behind each other, from those of each; the second has `second_size` bytes.
uint32_t crc32_of_two(uint32_t first, uint32_t second, uint64_t second_size) noexcept;

/// Decompresses a raw DEFLATE stream that must give exactly `out.size()` bytes and use all of `in`.
/// False when it is broken, too short or too long.
bool inflate(std::span<const std::byte> in, std::span<std::byte> out) noexcept;

}  // namespace tern::io
