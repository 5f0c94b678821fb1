// Generator: the state of counter-based random numbers (Philox 4x32-10; Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). Number i of a draw depends on the seed and the position alone, so
// every device and every number of threads gives the same ones.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

namespace tern {

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

/// A seed and a position in its sequence. Copies of a handle share the position. Safe to use from several
/// threads.
class Generator {
 public:
  struct State {
    uint64_t seed = 0;
    uint64_t position = 0;
    bool operator==(const State&) const = default;
  };

  explicit Generator(uint64_t seed = 0);
  void manual_seed(uint64_t seed);
  State state() const;
  void set_state(State state);
  /// Takes `counters` Philox counters and returns the seed and the first of them.
  State reserve(uint64_t counters);
  /// True for handles that share their position.
  bool same_as(const Generator& other) const noexcept { return shared_ == other.shared_; }

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

/// The generator that random functions use when none is given. Starts with a fixed seed: runs repeat unless
/// `manual_seed` or `seed` is called.
Generator& default_generator();

/// Seeds the default generator.
void manual_seed(uint64_t seed);

/// Seeds the default generator from the operating system's entropy and returns the seed.
uint64_t seed();

}  // namespace tern
