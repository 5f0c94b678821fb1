// Height and width as one argument of convolutions and pooling.
#pragma once

#include <cstdint>

namespace tern {

/// A height and a width; made from one number for both, or from {h, w}.
struct Size2 {
  constexpr Size2(int both) : h(both), w(both) {}
  constexpr Size2(int64_t both) : h(both), w(both) {}
  constexpr Size2(int64_t h_, int64_t w_) : h(h_), w(w_) {}
  constexpr bool operator==(const Size2&) const = default;

  int64_t h;
  int64_t w;
};

}  // namespace tern
