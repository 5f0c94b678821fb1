// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): random words as a
// function of a key and a counter, for the host and every device. The state is in generator.h.
#pragma once

#include <array>
#include <cstdint>

namespace tern {

/// A seed and a place in its sequence.
struct PhiloxState {
  uint64_t seed = 0;
  uint64_t position = 0;
  bool operator==(const PhiloxState&) const = default;
};

/// Four random 32-bit words for a key (the seed) and a 128-bit counter, of which the low 64 bits are
/// `counter` and the high ones `stream`.
[[gnu::always_inline]] constexpr std::array<uint32_t, 4> philox(uint64_t seed, uint64_t counter,
                                                                uint64_t stream = 0) {
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
  uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t{0xD2511F53u} * c0;
    uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
    uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

/// Uniform in [0, 1) with 24 random bits.
[[gnu::always_inline]] constexpr float uniform_float(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}
/// Uniform in [0, 1) with 53 random bits.
[[gnu::always_inline]] constexpr double uniform_double(uint32_t high, uint32_t low) {
  return static_cast<double>((static_cast<uint64_t>(high) << 32 | low) >> 11) * 0x1p-53;
}

}  // namespace tern
