// How wide the registers of a variant are.
#pragma once

namespace tern::cpu::TERN_CPU_VARIANT {

/// Bytes of one SIMD register. Compilers move wider vectors through memory, in small pieces.
#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

}  // namespace tern::cpu::TERN_CPU_VARIANT
