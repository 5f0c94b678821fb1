// Sizes of one, two or three dimensions as one argument of convolutions and pooling.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include "tern/ops/size2.h"

namespace tern {

/// A depth, a height and a width; made from one number for all, or from {d, h, w}.
struct Size3 {
  constexpr Size3(int all) : Size3(int64_t{all}) {}
  constexpr Size3(int64_t all) : d(all), h(all), w(all), is_tuple(false) {}
  constexpr Size3(int64_t d_, int64_t h_, int64_t w_) : d(d_), h(h_), w(w_), is_tuple(true) {}
  constexpr bool operator==(const Size3& other) const { return d == other.d && h == other.h && w == other.w; }

  int64_t d;
  int64_t h;
  int64_t w;
  bool is_tuple;  ///< how it was made, and is written
};

/// int64_t, Size2 or Size3.
template <int N>
using SizeOf = std::conditional_t<N == 1, int64_t, std::conditional_t<N == 2, Size2, Size3>>;

constexpr std::array<int64_t, 1> sizes_of(int64_t size) { return {size}; }
constexpr std::array<int64_t, 2> sizes_of(Size2 size) { return {size.h, size.w}; }
constexpr std::array<int64_t, 3> sizes_of(Size3 size) { return {size.d, size.h, size.w}; }

constexpr bool is_tuple(int64_t) { return false; }
constexpr bool is_tuple(const Size2& size) { return size.is_tuple; }
constexpr bool is_tuple(const Size3& size) { return size.is_tuple; }

/// The reverse of sizes_of.
template <size_t N>
constexpr SizeOf<static_cast<int>(N)> size_from(const std::array<int64_t, N>& sizes) {
  if constexpr (N == 1)
    return sizes[0];
  else if constexpr (N == 2)
    return {sizes[0], sizes[1]};
  else
    return {sizes[0], sizes[1], sizes[2]};
}

}  // namespace tern
