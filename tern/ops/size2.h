// Height and width as one argument of convolutions and pooling.
#pragma once

#include <cstdint>

namespace tern {

/// A height and a width; made from one number for both, or from {h, w}.
struct Size2 {
  constexpr Size2(int both) : Size2(int64_t{both}) {}
  constexpr Size2(int64_t both) : h(both), w(both), is_tuple(false) {}
  constexpr Size2(int64_t h_, int64_t w_) : h(h_), w(w_), is_tuple(true) {}
  constexpr bool operator==(const Size2& other) const { return h == other.h && w == other.w; }

  int64_t h;
  int64_t w;
  bool is_tuple;  ///< how it was made, and is written
};

}  // namespace tern
