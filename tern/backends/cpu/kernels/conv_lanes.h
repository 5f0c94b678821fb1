// Convolution with one image in each SIMD lane: images are turned into [channel][row][column][lane], so that
// every shape of kernel fills the registers, however few the channels. Forward (and through it the gradient
// of the input) is in conv_lanes.cpp, the gradient of the weights in conv_lanes_weight.cpp.
#pragma once

#include "tern/backends/cpu/kernels/conv_paths.h"
#include "tern/backends/cpu/kernels/transpose.h"

namespace tern::cpu::TERN_CPU_VARIANT {

inline constexpr int64_t kImageLanes = kLanes<float>;
#if defined(__AVX512F__)
inline constexpr int kVectorRegisters = 32;
#else
inline constexpr int kVectorRegisters = 16;
#endif

/// One group of channels of an image with its padding, as lanes hold it.
struct PaddedImage {
  int64_t h, w;  ///< the rows and columns that taps reach
  explicit PaddedImage(const Correlation& c) : h(c.reach_h()), w(c.reach_w()) {}
  int64_t row_stride() const { return w * kImageLanes; }
  int64_t channel_stride() const { return h * w * kImageLanes; }
};

/// to[p][lane] = from[lane * image_stride + p] for p < pixels; zero for lanes from `images` on.
inline void gather_lanes(const float* from, int64_t image_stride, int64_t images, int64_t pixels, float* to) {
  constexpr int64_t L = kImageLanes;
  for (int64_t p = 0; p < pixels; p += L) {
    const int64_t columns = std::min(L, pixels - p);
    if (images == L) {
      transpose_block(from + p, image_stride, L, columns, to + p * L, L);
    } else {
      if (p == 0) std::fill_n(to, pixels * L, 0.0f);
      transpose_block(from + p, image_stride, images, columns, to + p * L, L);
    }
  }
}

/// to[lane * image_stride + p] = from[p][lane] for lanes below `images`.
inline void scatter_lanes(const float* from, int64_t image_stride, int64_t images, int64_t pixels,
                          float* to) {
  constexpr int64_t L = kImageLanes;
  for (int64_t p = 0; p < pixels; p += L)
    transpose_block(from + p * L, L, std::min(L, pixels - p), images, to + p, image_stride);
}

/// At most `rows` rows of `width` pixels; so many that they fill whole registers if that takes no less than
/// half.
inline int64_t whole_register_rows(int64_t rows, int64_t width) {
  for (int64_t r = rows; 2 * r > rows; --r)
    if (r * width % kImageLanes == 0) return r;
  return rows;
}

/// Parts into which the rows of a block of images are cut, so that every core has work.
inline int64_t row_parts(int64_t threads, int64_t units, int64_t rows) {
  return std::clamp<int64_t>((threads + units - 1) / units, 1, rows);
}

/// Input channels of a group of up to kImageLanes images, padded, as lanes.
void gather_padded(const Correlation& c, const PaddedImage& padded, const float* input, int64_t image_stride,
                   int64_t images, float* to);

/// Outputs y in [first, last) for which the tap `k` reaches a row inside the image.
struct ValidRange {
  int64_t first, last;
  ValidRange(int64_t k, int64_t dilation, int64_t stride, int64_t pad, int64_t in_size, int64_t out_size) {
    const int64_t offset = k * dilation - pad;  // input = y * stride + offset
    first = std::clamp<int64_t>(offset < 0 ? (-offset + stride - 1) / stride : 0, 0, out_size);
    last = in_size - 1 - offset < 0
               ? first
               : std::clamp<int64_t>((in_size - 1 - offset) / stride + 1, first, out_size);
  }
};

}  // namespace tern::cpu::TERN_CPU_VARIANT
