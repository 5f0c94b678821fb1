// The magnitudes of an operand's elements, which say whether bfloat16 and what multiplies it can hold them.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// Of rows of bfloat16.
struct Exponents {
  int64_t least;  ///< biased, of the smallest magnitude that is not 0; 0 for numbers below the normal ones
};
Exponents exponents_of(const BFloat16* from, int64_t rows, int64_t columns, int64_t row_stride);
/// Of `count` elements side by side.
Exponents exponents_of(const BFloat16* from, int64_t count);

/// Whether every product of numbers with such exponents, and so every sum of them, is a multiple of a normal
/// number: then tiles and pairs, which take smaller ones for 0, miss none.
inline bool products_stay_normal(const Exponents& a, const Exponents& b) {
  constexpr int64_t kBias = 127, kFraction = 7, kLeastNormal = -126;
  return a.least > 0 && b.least > 0 && a.least + b.least - 2 * (kBias + kFraction) >= kLeastNormal;
}

/// Whether every element of such rows is the sum of two bfloat16, nearly: all are finite, and stay so when
/// they are rounded.
bool have_parts(const float* from, int64_t rows, int64_t columns, int64_t row_stride);

}  // namespace tern::cpu::TERN_CPU_VARIANT
