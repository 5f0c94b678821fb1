// Packing of matrices for tiles.
#include "tern/backends/cpu/kernels/tile_matrix.h"

#include <algorithm>

#include "tern/backends/cpu/kernels/widen.h"

namespace tern::cpu::TERN_CPU_VARIANT {

#if defined(__AVX512F__)
namespace {

constexpr int64_t kBlock = kTileWidth * kTileDepth;

/// To the nearest bfloat16, numbers below the normal ones to 0. Processors with tiles have the instruction,
/// others that these files are compiled for need not.
[[gnu::always_inline]] inline __m256i round_floats(__m512 x) {
  __m256i rounded;
  asm("vcvtneps2bf16 %1, %0" : "=v"(rounded) : "v"(x));
  return rounded;
}

/// The parts of sixteen elements; those outside the mask are 0 and not read.
struct Sixteen {
  __m256i high, low;
  [[gnu::always_inline]] Sixteen(const BFloat16* from, __mmask16 inside)
      : high(_mm256_maskz_loadu_epi16(inside, from)), low(_mm256_setzero_si256()) {}
  [[gnu::always_inline]] Sixteen(const float* from, __mmask16 inside) {
    const __m512 x = _mm512_maskz_loadu_ps(inside, from);
    high = round_floats(x);
    low = round_floats(x - widen_bfloat16(high));
  }
};

__mmask16 first_of_sixteen(int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(count, 0, 16)) - 1);
}

void store_row(BFloat16* to, __m256i left, __m256i right) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), left);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 16), right);
}

}  // namespace

template <class T>
TilePacker::Rows TileMatrix<T>::rows() const {
  if constexpr (std::is_same_v<T, BFloat16>)
    if (order() == TileOrder::ByK) return {from_, index_stride_};
  return {nullptr, 0};
}

template <class T>
void TileMatrix<T>::pack(int64_t first, int64_t width, int64_t k_first, int64_t k_count, BFloat16* to) const {
  const T* from = from_ + first * index_stride_ + k_first * k_stride_;
  const bool by_k = order() == TileOrder::ByK;
  if (parts() == 2)
    by_k ? pack_rows<2>(from, width, k_count, to) : pack_pairs<2>(from, width, k_count, to);
  else
    by_k ? pack_rows<1>(from, width, k_count, to) : pack_pairs<1>(from, width, k_count, to);
}

template <class T>
template <int Parts>
void TileMatrix<T>::pack_rows(const T* from, int64_t width, int64_t k_count, BFloat16* to) const {
  for (int64_t i = 0; i < width; ++i, from += index_stride_, to += kTileDepth) {
    BFloat16* block = to;
    for (int64_t p = 0; p < k_count; p += kTileDepth, block += Parts * kBlock) {
      const Sixteen left(from + p, first_of_sixteen(k_count - p)),
          right(from + p + 16, first_of_sixteen(k_count - p - 16));
      store_row(block, left.high, right.high);
      if constexpr (Parts == 2) store_row(block + kBlock, left.low, right.low);
    }
  }
}

template <class T>
template <int Parts>
void TileMatrix<T>::pack_pairs(const T* from, int64_t width, int64_t k_count, BFloat16* to) const {
  const __mmask16 inside = first_of_sixteen(width);
  const auto row = [&](const T* elements, bool is_inside) {
    const __mmask16 mask = is_inside ? inside : __mmask16{0};
    if (index_stride_ == 1) return Sixteen(elements, mask);
    T gathered[kTileWidth] = {};
    for (int64_t i = 0; i < (is_inside ? width : 0); ++i) gathered[i] = elements[i * index_stride_];
    return Sixteen(gathered, mask);
  };
  for (int64_t begin = 0; begin < k_count; begin += kTileDepth, to += (Parts - 1) * kBlock) {
    for (int64_t p = begin; p < begin + kTileDepth; p += 2, from += 2 * k_stride_, to += 2 * kTileWidth) {
      const Sixteen low = row(from, p < k_count), high = row(from + k_stride_, p + 1 < k_count);
      _mm512_storeu_si512(to, interleave(low.high, high.high));
      if constexpr (Parts == 2) _mm512_storeu_si512(to + kBlock, interleave(low.low, high.low));
    }
  }
}

template class TileMatrix<BFloat16>;
template class TileMatrix<float>;
#endif

}  // namespace tern::cpu::TERN_CPU_VARIANT
