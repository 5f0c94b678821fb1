// Little-endian numbers in byte strings, whatever the host.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace tern::io {

/// The little-endian integer at `bytes`; the caller has checked that sizeof(T) bytes are there.
template <class T>
T load_le(const void* bytes) noexcept {
  std::make_unsigned_t<T> value = 0;
  const auto* p = static_cast<const uint8_t*>(bytes);
  for (size_t i = sizeof(T); i-- > 0;)
    value = static_cast<std::make_unsigned_t<T>>(value << (sizeof(T) > 1 ? 8 : 0) | p[i]);
  return static_cast<T>(value);
}

template <class T>
void append_le(std::string& out, T value) {
  auto bits = static_cast<std::make_unsigned_t<T>>(value);
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(bits >> (8 * i) & 0xff));
}

/// Reverses the bytes of every group of `width` in `data`; `size` is a multiple of width.
inline void swap_bytes(std::byte* data, size_t size, size_t width) noexcept {
  if (width < 2) return;
  for (std::byte* group = data; group < data + size; group += width)
    for (size_t i = 0; i < width / 2; ++i) std::swap(group[i], group[width - 1 - i]);
}

}  // namespace tern::io
