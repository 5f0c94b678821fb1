// MersenneTwister: MT19937 (Matsumoto and Nishimura, 1998), seeded and saved as PyTorch's generator on the
// CPU is. What numbers are made of its words is in ops/random_torch.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tern {

class MersenneTwister {
 public:
  /// Of a seed only the low 32 bits decide, as in PyTorch.
  explicit MersenneTwister(uint64_t seed);

  uint64_t seed() const noexcept { return seed_; }
  uint32_t next() {
    uint32_t word;
    fill({&word, 1});
    return word;
  }
  /// Two words, the first of them the high one.
  uint64_t next64() {
    const uint64_t high = next();
    return high << 32 | next();
  }
  /// The next words, one for each place.
  void fill(std::span<uint32_t> words);

  /// `torch.Generator().get_state()`: 5056 bytes.
  std::vector<uint8_t> bytes() const;
  /// From such bytes, or the 5048 of PyTorch before 1.3. Throws ValueError for a wrong size and for fields
  /// out of their range.
  static MersenneTwister from_bytes(std::span<const uint8_t> bytes);
  static bool has_size_of_bytes(size_t size) noexcept;

  /// The second of two normal numbers, kept for the next call.
  std::optional<double> next_normal;

 private:
  static constexpr size_t kWords = 624;
  void twist();

  uint64_t seed_;
  std::array<uint32_t, kWords> words_;
  size_t used_ = kWords;  ///< words of this round that were given away
  bool fresh_ = true;     ///< nothing was drawn since seeding: PyTorch tells this apart in its bytes
  std::optional<float> next_float_normal_;  ///< no draw here uses it; kept for PyTorch
};

}  // namespace tern
