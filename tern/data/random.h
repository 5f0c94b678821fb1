// Random numbers of one sample: a counter-based stream that depends only on (seed, epoch or split, index).
// The Philox function is in core/philox.h; the generator with a state is in core/generator.h.
#pragma once

#include <array>
#include <cstdint>

namespace tern::data {

/// A stream of random numbers (Philox4x32-10) for one sample. Two streams with the same seed, stream number
/// and index give the same numbers on every machine and thread; streams that differ in any of the three are
/// independent. Not shared between threads; making one costs nothing.
class Random {
 public:
  Random(uint64_t seed, uint64_t stream, uint64_t index) : seed_(seed), stream_(stream), index_(index) {}

  /// 32 random bits.
  uint32_t bits();
  /// Uniform in [0, 1), a multiple of 2^-24.
  float uniform() { return static_cast<float>(bits() >> 8) * 0x1p-24f; }
  /// Uniform in [low, high).
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  /// The same in double, from as many bits.
  double between(double low, double high) { return low + (high - low) * static_cast<double>(uniform()); }
  /// Standard normal (Box-Muller).
  float normal();
  /// Normal with this mean and standard deviation.
  float normal(float mean, float stddev) { return mean + stddev * normal(); }
  /// Uniform integer in [0, n); n must be positive. The bias is below n / 2^32.
  int64_t below(int64_t n);
  /// True with probability p.
  bool chance(double p) { return static_cast<double>(uniform()) < p; }

 private:
  uint64_t seed_;
  uint64_t stream_;
  uint64_t index_;
  uint32_t block_number_ = 0;
  uint32_t used_ = 4;
  std::array<uint32_t, 4> block_{};
};

/// What the randomness of an epoch is keyed by. Datasets make the stream of a sample from it and from their
/// own index, so that augmentation does not depend on the number of workers or on the order.
struct RandomKey {
  uint64_t seed = 0;
  int64_t epoch = 0;

  /// The stream of the sample with this index.
  Random random(int64_t index) const {
    return Random(seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index));
  }
  /// The key of the n-th part of a composed dataset, so that equal indices of two parts differ.
  RandomKey child(uint64_t n) const { return {seed ^ (0x9E3779B97F4A7C15ull * (n + 1)), epoch}; }
};

}  // namespace tern::data
