// The 16-bit floating-point types: storage with conversions to and from float. Arithmetic is done in float.
#pragma once

#include <bit>
#include <cstdint>
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace tern {

namespace detail {

/// IEEE binary16 to binary32, exact.
[[gnu::always_inline]] inline float half_bits_to_float(uint16_t h) {
#if defined(__F16C__)
  return _cvtsh_ss(h);
#else
  uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  uint32_t rest = h & 0x7fffu;
  if (rest >= 0x7c00u)
    return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13 |
                                ((rest & 0x3ffu) ? 0x400000u : 0u));
  if (rest >= 0x400u) return std::bit_cast<float>(sign | ((rest << 13) + 0x38000000u));
  float subnormal = static_cast<float>(rest) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(subnormal));
#endif
}

/// binary32 to IEEE binary16, round to nearest even.
[[gnu::always_inline]] inline uint16_t float_to_half_bits(float f) {
#if defined(__F16C__)
  return static_cast<uint16_t>(_cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT));
#else
  uint32_t bits = std::bit_cast<uint32_t>(f);
  uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (bits >> 13 & 0x1ffu));
  if (bits >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (bits < 0x38800000u) {
    float scaled = std::bit_cast<float>(bits) + 0.5f;  // the addition rounds to a multiple of 2^-24
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(scaled) - 0x3f000000u));
  }
  bits += 0xfffu + (bits >> 13 & 1u);
  return static_cast<uint16_t>(sign | ((bits - 0x38000000u) >> 13));
#endif
}

[[gnu::always_inline]] inline float bfloat16_bits_to_float(uint16_t b) {
  return std::bit_cast<float>(static_cast<uint32_t>(b) << 16);
}

/// binary32 to bfloat16, round to nearest even; every NaN becomes 0x7fc0, as in PyTorch.
[[gnu::always_inline]] inline uint16_t float_to_bfloat16_bits(float f) {
  uint32_t bits = std::bit_cast<uint32_t>(f);
  uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return f != f ? uint16_t{0x7fc0} : static_cast<uint16_t>(rounded);
}

}  // namespace detail

/// IEEE binary16.
struct Half {
  uint16_t bits;
  Half() = default;
  [[gnu::always_inline]] explicit Half(float f) : bits(detail::float_to_half_bits(f)) {}
  [[gnu::always_inline]] explicit operator float() const { return detail::half_bits_to_float(bits); }
};

/// The upper 16 bits of a binary32.
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  [[gnu::always_inline]] explicit BFloat16(float f) : bits(detail::float_to_bfloat16_bits(f)) {}
  [[gnu::always_inline]] explicit operator float() const { return detail::bfloat16_bits_to_float(bits); }
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2);

}  // namespace tern
