// The 16-bit floats: all 65,536 values, and rounding at every boundary between two of them.
#include "tern/core/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace tern {
namespace {

/// The value of the bits by the definition of the format.
double decode(uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

template <class T>
struct Format;
template <>
struct Format<Half> {
  static constexpr int kExponent = 5, kMantissa = 10;
  static constexpr uint16_t kInfinity = 0x7c00;
};
template <>
struct Format<BFloat16> {
  static constexpr int kExponent = 8, kMantissa = 7;
  static constexpr uint16_t kInfinity = 0x7f80;
};

template <class T>
T from_bits(uint16_t bits) {
  T x;
  x.bits = bits;
  return x;
}

template <class T>
class Float16 : public ::testing::Test {};
using Formats = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(Float16, Formats);

TYPED_TEST(Float16, EveryValueDecodesAndComesBack) {
  using F = Format<TypeParam>;
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto word = static_cast<uint16_t>(bits);
    const float value = static_cast<float>(from_bits<TypeParam>(word));
    const double expected = decode(word, F::kExponent, F::kMantissa);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(TypeParam(value)))) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), expected) << bits;
    ASSERT_EQ(std::signbit(value), std::signbit(expected)) << bits;
    ASSERT_EQ(TypeParam(value).bits, word) << bits;
  }
}

/// Between each value and the next: just below the middle rounds down, the middle to even, just above it up.
/// The one after the largest is infinity.
TYPED_TEST(Float16, RoundsToNearestEven) {
  using F = Format<TypeParam>;
  for (uint16_t bits = 0; bits < F::kInfinity; ++bits) {
    const double low = decode(bits, F::kExponent, F::kMantissa);
    const auto next = static_cast<uint16_t>(bits + 1);
    const double high = next == F::kInfinity
                            ? 2 * low - decode(static_cast<uint16_t>(bits - 1), F::kExponent, F::kMantissa)
                            : decode(next, F::kExponent, F::kMantissa);
    const double exact_middle = low + (high - low) / 2;
    const auto middle = static_cast<float>(exact_middle);
    if (static_cast<double>(middle) != exact_middle) continue;  // below the smallest float
    const float below = std::nextafter(middle, 0.0f), above = std::nextafter(middle, INFINITY);
    ASSERT_EQ(TypeParam(middle).bits, bits % 2 == 0 ? bits : next) << bits;
    ASSERT_EQ(TypeParam(below).bits, bits) << bits;
    ASSERT_EQ(TypeParam(above).bits, next) << bits;
    ASSERT_EQ(TypeParam(-middle).bits, (bits % 2 == 0 ? bits : next) | 0x8000) << bits;
  }
}

TYPED_TEST(Float16, Extremes) {
  using F = Format<TypeParam>;
  EXPECT_EQ(TypeParam(INFINITY).bits, F::kInfinity);
  EXPECT_EQ(TypeParam(-INFINITY).bits, F::kInfinity | 0x8000);
  EXPECT_EQ(TypeParam(std::numeric_limits<float>::max()).bits, F::kInfinity);
  EXPECT_EQ(TypeParam(0.0f).bits, 0);
  EXPECT_EQ(TypeParam(-0.0f).bits, 0x8000);
  EXPECT_EQ(TypeParam(1.0f).bits, F::kExponent == 5 ? 0x3c00 : 0x3f80);
}

TEST(Half, KnownBits) {
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(0x1p-24f).bits, 0x0001);
  EXPECT_EQ(Half(0x1p-25f).bits, 0x0000) << "half of the smallest: to even, zero";
  EXPECT_EQ(Half(0x1.000002p-25f).bits, 0x0001);
  EXPECT_EQ(Half(std::numeric_limits<float>::denorm_min()).bits, 0x0000);
}

TEST(BFloat16, EveryNanIsOne) {
  for (uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffc00000u}) {
    float nan;
    std::memcpy(&nan, &bits, 4);
    EXPECT_EQ(BFloat16(nan).bits, 0x7fc0);
  }
}

}  // namespace
}  // namespace tern
