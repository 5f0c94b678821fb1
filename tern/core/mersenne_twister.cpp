// MT19937 and the layout of PyTorch's saved state.
#include "tern/core/mersenne_twister.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "tern/base/check.h"

namespace tern {
namespace {

constexpr size_t kShift = 397;

// Offsets into PyTorch's struct, which is as a C compiler for 64 bits lays it out. The words lie in 8 bytes
// each.
constexpr size_t kSeed = 0, kLeft = 8, kSeeded = 12, kNext = 16, kState = 24, kNormalX = 5016,
                 kNormalY = 5024, kNormalRho = 5032, kNormalValid = 5040, kLegacySize = 5048,
                 kFloatNormal = 5048, kFloatNormalValid = 5052, kSize = 5056;

template <class T>
T read(std::span<const uint8_t> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
void write(std::vector<uint8_t>& bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

constexpr uint32_t mixed(uint32_t word, uint32_t following) {
  const uint32_t y = (word & 0x80000000u) | (following & 0x7fffffffu);
  return (y >> 1) ^ ((0u - (following & 1u)) & 0x9908b0dfu);
}

}  // namespace

MersenneTwister::MersenneTwister(uint64_t seed) : seed_(seed) {
  words_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kWords; ++i) words_[i] = 1812433253u * (words_[i - 1] ^ words_[i - 1] >> 30) + i;
}

void MersenneTwister::twist() {
  uint32_t* const w = words_.data();
  for (size_t i = 0; i < kWords - kShift; ++i) w[i] = w[i + kShift] ^ mixed(w[i], w[i + 1]);
  for (size_t i = kWords - kShift; i < kWords - 1; ++i) w[i] = w[i + kShift - kWords] ^ mixed(w[i], w[i + 1]);
  w[kWords - 1] = w[kShift - 1] ^ mixed(w[kWords - 1], w[0]);
}

void MersenneTwister::fill(std::span<uint32_t> words) {
  while (!words.empty()) {
    if (used_ == kWords) {
      twist();
      used_ = 0;
    }
    const size_t count = std::min(words.size(), kWords - used_);
    for (size_t i = 0; i < count; ++i) {
      uint32_t y = words_[used_ + i];
      y ^= y >> 11;
      y ^= y << 7 & 0x9d2c5680u;
      y ^= y << 15 & 0xefc60000u;
      words[i] = y ^ y >> 18;
    }
    used_ += count;
    fresh_ = false;
    words = words.subspan(count);
  }
}

std::vector<uint8_t> MersenneTwister::bytes() const {
  std::vector<uint8_t> bytes(kSize);
  write(bytes, kSeed, seed_);
  write(bytes, kLeft, static_cast<int32_t>(kWords - used_ + 1));
  write(bytes, kSeeded, int32_t{1});
  write(bytes, kNext, static_cast<uint64_t>(fresh_ ? 0 : used_));
  for (size_t i = 0; i < kWords; ++i) write(bytes, kState + 8 * i, uint64_t{words_[i]});
  write(bytes, kNormalY, next_normal.value_or(0));
  write(bytes, kNormalValid, int32_t{next_normal.has_value()});
  write(bytes, kFloatNormal, next_float_normal_.value_or(0));
  write(bytes, kFloatNormalValid, static_cast<uint8_t>(next_float_normal_.has_value()));
  return bytes;
}

bool MersenneTwister::has_size_of_bytes(size_t size) noexcept { return size == kSize || size == kLegacySize; }

MersenneTwister MersenneTwister::from_bytes(std::span<const uint8_t> bytes) {
  TERN_CHECK(has_size_of_bytes(bytes.size()), ValueError,
             "random state: a Mersenne Twister's has {} bytes, got {}", kSize, bytes.size());
  const int32_t left = read<int32_t>(bytes, kLeft);
  const uint64_t next = read<uint64_t>(bytes, kNext);
  const bool fresh = left == 1 && next == 0;
  TERN_CHECK(read<int32_t>(bytes, kSeeded) == 1 && left >= 1 && left <= static_cast<int32_t>(kWords) &&
                 (fresh || next == kWords + 1 - static_cast<uint64_t>(left)),
             ValueError,
             "random state: these bytes are no state of a Mersenne Twister: seeded {}, left {}, next {}",
             read<int32_t>(bytes, kSeeded), left, next);
  MersenneTwister twister(read<uint64_t>(bytes, kSeed));
  for (size_t i = 0; i < kWords; ++i)
    twister.words_[i] = static_cast<uint32_t>(read<uint64_t>(bytes, kState + 8 * i));
  twister.used_ = kWords + 1 - static_cast<size_t>(left);
  twister.fresh_ = fresh;
  const bool legacy = bytes.size() == kLegacySize;
  if (read<int32_t>(bytes, kNormalValid) != 0)
    // PyTorch before 1.3 kept the two uniform numbers.
    twister.next_normal = legacy ? read<double>(bytes, kNormalRho) *
                                       std::sin(2 * std::numbers::pi * read<double>(bytes, kNormalX))
                                 : read<double>(bytes, kNormalY);
  if (!legacy && bytes[kFloatNormalValid] != 0) twister.next_float_normal_ = read<float>(bytes, kFloatNormal);
  return twister;
}

}  // namespace tern
