// How functions that every backend compiles are declared, and the bits of floats that they work on.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__CUDACC__)
#define TERN_FN __host__ __device__ __forceinline__
#else
#define TERN_FN [[gnu::always_inline]] inline
#endif

namespace tern::math {

TERN_FN float as_float(uint32_t bits) { return std::bit_cast<float>(bits); }
TERN_FN uint32_t as_bits(float x) { return std::bit_cast<uint32_t>(x); }
/// |x|, and whether the sign is set: of zeros and NaN too.
TERN_FN float magnitude(float x) { return as_float(as_bits(x) & 0x7fffffffu); }
TERN_FN bool is_negative(float x) { return as_bits(x) >> 31 != 0; }

}  // namespace tern::math
