// The per-sample random stream; the Philox function itself is in core/philox.h.
#include "tern/data/random.h"

#include <cmath>
#include <numbers>

#include "tern/core/philox.h"

namespace tern::data {

uint32_t Random::bits() {
  if (used_ == 4) {
    const uint64_t epoch_bits = (stream_ ^ (stream_ >> 32)) << 32;
    block_ = philox(seed_, epoch_bits | block_number_++, index_);
    used_ = 0;
  }
  return block_[used_++];
}

float Random::normal() {
  const float u = 1.0f - uniform();
  const float v = uniform();
  return std::sqrt(-2.0f * std::log(u)) * std::cos(2.0f * std::numbers::pi_v<float> * v);
}

int64_t Random::below(int64_t n) {
  if (n <= 0xFFFFFFFFll) {
    return static_cast<int64_t>((uint64_t{bits()} * static_cast<uint64_t>(n)) >> 32);
  }
  const uint64_t high = bits();
  return static_cast<int64_t>(((high << 32) | bits()) % static_cast<uint64_t>(n));
}

}  // namespace tern::data
