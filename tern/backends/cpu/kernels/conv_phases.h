// A padded image cut so that every tap of a convolution reads it at a constant distance: phase (i, j) holds
// the rows y and columns x of the padded image with y % stride_h == i and x % stride_w == j. Neighbouring
// outputs then read neighbouring elements, whatever the strides. Outputs are computed along whole rows of a
// phase; those that belong to its right border are left out in the end.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/backends/cpu/kernels/conv_paths.h"

namespace tern::cpu::TERN_CPU_VARIANT {

struct Phases {
  const Correlation& c;
  int64_t h, w;  ///< of one phase

  explicit Phases(const Correlation& correlation)
      : c(correlation),
        h(((c.out_h - 1) * c.stride_h + (c.kernel_h - 1) * c.dilation_h) / c.stride_h + 1),
        w(((c.out_w - 1) * c.stride_w + (c.kernel_w - 1) * c.dilation_w) / c.stride_w + 1) {}

  int64_t size() const { return h * w; }
  int64_t count() const { return c.stride_h * c.stride_w; }
  /// Elements of all phases of one channel.
  int64_t channel_size() const { return count() * size(); }
  /// Outputs in rows of w, up to the last one.
  int64_t columns() const { return (c.out_h - 1) * w + c.out_w; }

  /// The phase that a tap reads.
  int64_t phase_of(int64_t ky, int64_t kx) const {
    return ky * c.dilation_h % c.stride_h * c.stride_w + kx * c.dilation_w % c.stride_w;
  }
  /// The tap's distance from the output's place in that phase.
  int64_t distance(int64_t ky, int64_t kx) const {
    return ky * c.dilation_h / c.stride_h * w + kx * c.dilation_w / c.stride_w;
  }
  /// The same from the first phase of the channel.
  int64_t offset(int64_t ky, int64_t kx) const { return phase_of(ky, kx) * size() + distance(ky, kx); }

  /// One channel of an image to its phases.
  void copy_channel(const float* plane, float* to) const {
    for (int64_t i = 0; i < c.stride_h; ++i) {
      for (int64_t j = 0; j < c.stride_w; ++j) {
        for (int64_t y = 0; y < h; ++y, to += w) {
          const int64_t in_y = y * c.stride_h + i - c.pad_h;
          if (in_y < 0 || in_y >= c.in_h)
            std::fill_n(to, w, 0.0f);
          else
            copy_row(plane + in_y * c.in_w, inside(j), to);
        }
      }
    }
  }

  /// The elements [begin, end) of a row of a phase are pixels of the image: x is pixel x * stride_w + first.
  struct Inside {
    int64_t begin, end, first;
  };
  /// Of a phase with columns x % stride_w == j.
  Inside inside(int64_t j) const {
    const int64_t first = j - c.pad_w, s = c.stride_w;
    const int64_t begin = std::clamp<int64_t>(first < 0 ? (-first + s - 1) / s : 0, 0, w);
    const int64_t end = first >= c.in_w ? begin : std::clamp<int64_t>((c.in_w - 1 - first) / s + 1, begin, w);
    return {begin, end, first};
  }

 private:
  /// to[x] = row[x * stride_w + first], zero outside.
  void copy_row(const float* row, const Inside& in, float* to) const {
    std::fill_n(to, in.begin, 0.0f);
    row += in.first;
    if (c.stride_w == 1)
      std::copy(row + in.begin, row + in.end, to + in.begin);
    else if (c.stride_w == 2)
      for (int64_t x = in.begin; x < in.end; ++x) to[x] = row[x * 2];
    else
      for (int64_t x = in.begin; x < in.end; ++x) to[x] = row[x * c.stride_w];
    std::fill_n(to + in.end, w - in.end, 0.0f);
  }
};

}  // namespace tern::cpu::TERN_CPU_VARIANT
