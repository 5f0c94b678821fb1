// Convolution of bfloat16 as a product on AMX tiles, or by pairs in their place. Outputs of all images are
// its columns, one after the other; what every product of a tap reads lies at the tap's offset from the
// output's place in rows of the images' phases (conv_phases.h).
#include "tern/backends/cpu/kernels/conv_paths.h"

#if defined(__AVX512F__)
#include <vector>

#include "tern/backends/cpu/kernels/conv_phases.h"
#include "tern/backends/cpu/kernels/exponents.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/backends/cpu/kernels/tile_matrix.h"
#include "tern/backends/cpu/kernels/widen.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Pixels of the results of images, counted one after the other, and their places in planes whose rows are
/// longer.
struct Pixels {
  int64_t w, of_image;  ///< of a result
  int64_t row, image;   ///< elements of a row and of all planes of an image

  int64_t place(int64_t pixel) const {
    const int64_t rest = pixel % of_image;
    return pixel / of_image * image + rest / w * row + rest % w;
  }
};

/// Up to kMost neighbouring pixels, as runs of those whose places are side by side.
template <int64_t kMost, class Mask>
struct Runs {
  int64_t count = 0;
  Mask lanes[kMost];
  const BFloat16* from[kMost];  ///< the place that lane 0 would have

  Runs(const Pixels& pixels, const BFloat16* planes, int64_t first, int64_t width) {
    for (int64_t lane = 0; lane < width;) {
      const int64_t pixel = first + lane;
      const int64_t length = std::min(width - lane, pixels.w - pixel % pixels.of_image % pixels.w);
      lanes[count] = static_cast<Mask>(((uint64_t{1} << length) - 1) << lane);
      from[count++] = planes + pixels.place(pixel) - lane;
      lane += length;
    }
  }
};

/// element(index, k) = planes[place of pixel index + offsets[k]].
class OffsetColumns final : public TilePacker {
 public:
  OffsetColumns(const Pixels& pixels, const BFloat16* planes, const std::vector<int64_t>& offsets)
      : TilePacker(TileOrder::ByIndex), pixels_(pixels), planes_(planes), offsets_(offsets) {}

  void pack(int64_t first, int64_t width, int64_t k_first, int64_t k_count, BFloat16* to) const override {
    const Runs<kTileWidth, __mmask16> runs(pixels_, planes_, first, width);
    const int64_t* offsets = offsets_.data() + k_first;
    const auto one = [&](int64_t k) {
      return _mm256_maskz_loadu_epi16(runs.lanes[0], runs.from[0] + offsets[k]);
    };
    const auto two = [&](int64_t k) {
      return _mm256_mask_loadu_epi16(one(k), runs.lanes[1], runs.from[1] + offsets[k]);
    };
    if (runs.count == 1) return interleave_rows(k_count, one, to);
    if (runs.count == 2) return interleave_rows(k_count, two, to);
    interleave_rows(
        k_count,
        [&](int64_t k) {
          __m256i row = two(k);
          for (int64_t r = 2; r < runs.count; ++r)
            row = _mm256_mask_loadu_epi16(row, runs.lanes[r], runs.from[r] + offsets[k]);
          return row;
        },
        to);
  }

 private:
  template <class Row>
  [[gnu::always_inline]] static void interleave_rows(int64_t k_count, const Row& row, BFloat16* to) {
    int64_t k = 0;
    for (; k + 2 <= k_count; k += 2, to += 2 * kTileWidth)
      _mm512_storeu_si512(to, interleave(row(k), row(k + 1)));
    if (k < k_count) {
      _mm512_storeu_si512(to, interleave(row(k), _mm256_setzero_si256()));
      k += 2;
      to += 2 * kTileWidth;
    }
    std::fill_n(to, ((k_count + kTileDepth - 1) / kTileDepth * kTileDepth - k) * kTileWidth, BFloat16(0.0f));
  }

  const Pixels& pixels_;
  const BFloat16* planes_;
  const std::vector<int64_t>& offsets_;
};

/// element(index, k) = planes[place of pixel k + offsets[index]].
class OffsetRows final : public TilePacker {
 public:
  OffsetRows(const Pixels& pixels, const BFloat16* planes, const std::vector<int64_t>& offsets)
      : TilePacker(TileOrder::ByK), pixels_(pixels), planes_(planes), offsets_(offsets) {}

  void pack(int64_t first, int64_t width, int64_t k_first, int64_t k_count, BFloat16* to) const override {
    for (int64_t k = 0; k < k_count; k += kTileDepth) {
      const Runs<kTileDepth, __mmask32> runs(pixels_, planes_, k_first + k,
                                             std::min(kTileDepth, k_count - k));
      for (int64_t i = 0; i < width; ++i, to += kTileDepth) {
        const int64_t offset = offsets_[static_cast<size_t>(first + i)];
        __m512i row = _mm512_maskz_loadu_epi16(runs.lanes[0], runs.from[0] + offset);
        for (int64_t r = 1; r < runs.count; ++r)
          row = _mm512_mask_loadu_epi16(row, runs.lanes[r], runs.from[r] + offset);
        _mm512_storeu_si512(to, row);
      }
      to += (kTileWidth - width) * kTileDepth;
    }
  }

 private:
  const Pixels& pixels_;
  const BFloat16* planes_;
  const std::vector<int64_t>& offsets_;
};

/// Columns of sums that lie side by side in the result.
struct RowPart {
  int64_t from, count, to;
};

/// The parts of columns [first, first + count) that f(image, y, x, count, column) gives for those in one row
/// of w.
template <class F>
std::vector<RowPart> row_parts(int64_t first, int64_t count, int64_t columns, int64_t w, const F& f) {
  std::vector<RowPart> parts;
  for (int64_t column = first; column < first + count;) {
    const int64_t q = column % columns, x = q % w;
    const int64_t length = std::min({first + count - column, columns - q, w - x});
    const RowPart part = f(column / columns, q / w, x, length, column - first);
    if (part.count > 0) parts.push_back(part);
    column += length;
  }
  return parts;
}

/// to[i] = relu(from[i] + bias).
[[gnu::always_inline]] inline void narrow_part(const float* from, int64_t count, float bias, bool relu,
                                               BFloat16* to) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 inside = static_cast<__mmask16>((1u << std::min<int64_t>(count - i, 16)) - 1);
    Vec<float> v = (Vec<float>)_mm512_maskz_loadu_ps(inside, from + i) + splat(bias);
    if (relu) v = TERN_CPU_VARIANT::relu<float>(v);
    _mm256_mask_storeu_epi16(to + i, inside, narrow_bfloat16((__m512)v));
  }
}

/// to[2 * i] = from[i].
[[gnu::always_inline]] inline void narrow_to_every_second(const float* from, int64_t count, BFloat16* to) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 inside = static_cast<__mmask16>((1u << std::min<int64_t>(count - i, 16)) - 1);
    const __m256i narrow = narrow_bfloat16(_mm512_maskz_loadu_ps(inside, from + i));
    const __mmask32 second =
        static_cast<__mmask32>(0x55555555 & ((uint64_t{1} << 2 * std::min<int64_t>(count - i, 16)) - 1));
    _mm512_mask_storeu_epi16(to + 2 * i, second, _mm512_maskz_cvtepu16_epi32(0xffff, narrow));
  }
}

/// Rows are output channels, columns outputs.
class Outputs final : public TileResult {
 public:
  Outputs(const Correlation& c, const ForwardOperands<BFloat16>& x, int64_t group)
      : c_(c), x_(x), group_(group) {}

  void finish(int64_t i, int64_t j, int64_t rows, int64_t columns, float* sums,
              int64_t stride) const override {
    const int64_t image_size = c_.groups * c_.out_c * c_.out_size();
    const auto parts = row_parts(j, columns, c_.out_size(), c_.out_size(),
                                 [&](int64_t image, int64_t, int64_t pixel, int64_t count, int64_t from) {
                                   return RowPart{from, count, image * image_size + pixel};
                                 });
    for (int64_t r = i; r < i + rows; ++r, sums += stride) {
      const int64_t channel = group_ * c_.out_c + r;
      const float bias = x_.bias != nullptr ? static_cast<float>(x_.bias[channel]) : 0.0f;
      BFloat16* out = x_.output + channel * c_.out_size();
      for (const auto& [from, count, to] : parts) narrow_part(sums + from, count, bias, x_.relu, out + to);
    }
  }

 private:
  const Correlation& c_;
  const ForwardOperands<BFloat16>& x_;
  int64_t group_;
};

/// Rows are input channels, columns the elements of one phase of the gradient of the input.
class PhaseGradients final : public TileResult {
 public:
  PhaseGradients(const Phases& phases, int64_t phase, int64_t group, BFloat16* grad_input)
      : phases_(phases), phase_(phase), group_(group), grad_input_(grad_input) {}

  void finish(int64_t i, int64_t j, int64_t rows, int64_t columns, float* sums,
              int64_t stride) const override {
    const Correlation& c = phases_.c;
    const auto in = phases_.inside(phase_ % c.stride_w);
    const int64_t image_size = c.groups * c.in_c * c.in_size();
    const auto parts =
        row_parts(j, columns, phases_.size(), phases_.w,
                  [&](int64_t image, int64_t y, int64_t x, int64_t count, int64_t from) {
                    const int64_t in_y = y * c.stride_h + phase_ / c.stride_w - c.pad_h;
                    const int64_t begin = std::max(x, in.begin), end = std::min(x + count, in.end);
                    const bool inside = in_y >= 0 && in_y < c.in_h;
                    return RowPart{from + begin - x, inside ? end - begin : 0,
                                   image * image_size + in_y * c.in_w + begin * c.stride_w + in.first};
                  });
    for (int64_t r = i; r < i + rows; ++r, sums += stride) {
      BFloat16* channel = grad_input_ + (group_ * c.in_c + r) * c.in_size();
      for (const auto& [from, count, to] : parts) {
        if (c.stride_w == 1)
          narrow_part(sums + from, count, 0.0f, false, channel + to);
        else if (c.stride_w == 2)
          narrow_to_every_second(sums + from, count, channel + to);
        else
          for (int64_t p = 0; p < count; ++p) channel[to + p * c.stride_w] = BFloat16(sums[from + p]);
      }
    }
  }

 private:
  const Phases& phases_;
  int64_t phase_, group_;
  BFloat16* grad_input_;
};

class DenseResult final : public TileResult {
 public:
  DenseResult(BFloat16* to, int64_t row_size) : to_(to), row_size_(row_size) {}
  void finish(int64_t i, int64_t j, int64_t rows, int64_t columns, float* sums,
              int64_t stride) const override {
    for (int64_t r = 0; r < rows; ++r)
      narrow_part(sums + r * stride, columns, 0.0f, false, to_ + (i + r) * row_size_ + j);
  }

 private:
  BFloat16* to_;
  int64_t row_size_;
};

/// The channels of one group of all images, as phases.
Scratch<BFloat16> image_planes(const Phases& phases, const BFloat16* input, int64_t group) {
  const Correlation& c = phases.c;
  const int64_t channel = phases.channel_size();
  Scratch<BFloat16> planes(c.batch * c.in_c * channel);
  parallel_for(c.batch * c.in_c, std::max<int64_t>(1, 32768 / channel), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      phases.copy_channel(
          input + (i / c.in_c * c.groups * c.in_c + group * c.in_c + i % c.in_c) * c.in_size(),
          planes.get() + i * channel);
  });
  return planes;
}
/// Of outputs in them.
Pixels pixels_of(const Phases& phases) {
  const Correlation& c = phases.c;
  return {.w = c.out_w, .of_image = c.out_size(), .row = phases.w, .image = c.in_c * phases.channel_size()};
}

/// Where the products of a weight [in_c, KH, KW] find their elements.
std::vector<int64_t> tap_offsets(const Phases& phases) {
  const Correlation& c = phases.c;
  std::vector<int64_t> offsets;
  for (int64_t channel = 0; channel < c.in_c; ++channel)
    for (int64_t ky = 0; ky < c.kernel_h; ++ky)
      for (int64_t kx = 0; kx < c.kernel_w; ++kx)
        offsets.push_back(channel * phases.channel_size() + phases.offset(ky, kx));
  return offsets;
}

/// The gradients of one group's outputs in rows of w and up to `size` elements: plane (image, channel) at
/// `at(image, channel)`, with zeros between its rows.
template <class At>
void spread_gradients(const Correlation& c, const BFloat16* grad_output, int64_t group, int64_t w,
                      int64_t size, const At& at) {
  parallel_for(c.batch * c.out_c, std::max<int64_t>(1, 32768 / size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / c.out_c, channel = i % c.out_c;
      const BFloat16* from = grad_output + ((image * c.groups + group) * c.out_c + channel) * c.out_size();
      BFloat16* to = at(image, channel);
      for (int64_t y = 0; y < c.out_h; ++y) {
        std::copy_n(from + y * c.out_w, c.out_w, to + y * w);
        const int64_t next = y + 1 < c.out_h ? (y + 1) * w : size;
        std::fill(to + y * w + c.out_w, to + next, BFloat16(0.0f));
      }
    }
  });
}

int64_t inputs_of(const Correlation& c) { return c.batch * c.groups * c.in_c * c.in_size(); }
int64_t outputs_of(const Correlation& c) { return c.batch * c.groups * c.out_c * c.out_size(); }
int64_t weights_of(const Correlation& c) { return c.groups * c.out_c * c.depth(); }

}  // namespace

bool conv_suits_tiles(const Correlation& c, int64_t rows) {
  constexpr int64_t kLeastUses = 128;
  const int64_t least_rows = may_use_tiles() ? 6 : 32;  // below, lanes of images are faster than pairs
  const Phases phases(c);
  // Strides beyond the image would make phases of padding.
  const bool wastes = phases.channel_size() > 2 * c.reach_h() * c.reach_w();
  // With larger strides than 2 pixels are copied one by one.
  const bool copies = c.stride_w > 2 && c.out_c * c.taps() < kLeastUses * phases.count();
  return rows >= least_rows && !wastes && !copies && suits_tiles(c.out_c, c.batch * c.out_size(), c.depth());
}

bool conv_tiles(const Correlation& c, const ForwardOperands<BFloat16>& x) {
  if (!products_stay_normal(exponents_of(x.input, inputs_of(c)), exponents_of(x.weight, weights_of(c))))
    return false;
  const Phases phases(c);
  const std::vector<int64_t> offsets = tap_offsets(phases);
  const Pixels pixels = pixels_of(phases);
  for (int64_t group = 0; group < c.groups; ++group) {
    const Scratch<BFloat16> planes = image_planes(phases, x.input, group);
    const TileMatrix<BFloat16> weights(x.weight + group * c.out_c * c.depth(), c.depth(), 1);
    gemm_tiles(c.out_c, c.batch * c.out_size(), c.depth(), weights,
               OffsetColumns(pixels, planes.get(), offsets), Outputs(c, x, group));
  }
  return true;
}

bool conv_tiles_backward_weight(const Correlation& c, const BFloat16* input, const BFloat16* grad_output,
                                BFloat16* grad_weight) {
  if (!products_stay_normal(exponents_of(input, inputs_of(c)), exponents_of(grad_output, outputs_of(c))))
    return false;
  const Phases phases(c);
  const std::vector<int64_t> offsets = tap_offsets(phases);
  const Pixels pixels = pixels_of(phases);
  const int64_t depth = c.batch * c.out_size();
  for (int64_t group = 0; group < c.groups; ++group) {
    const Scratch<BFloat16> planes = image_planes(phases, input, group), gradients(c.out_c * depth);
    spread_gradients(c, grad_output, group, c.out_w, c.out_size(), [&](int64_t image, int64_t channel) {
      return gradients.get() + channel * depth + image * c.out_size();
    });
    gemm_tiles(c.out_c, c.depth(), depth, TileMatrix<BFloat16>(gradients.get(), depth, 1),
               OffsetRows(pixels, planes.get(), offsets),
               DenseResult(grad_weight + group * c.out_c * c.depth(), c.depth()));
  }
  return true;
}

bool conv_tiles_backward_input(const Correlation& c, const BFloat16* grad_output, const BFloat16* weight,
                               BFloat16* grad_input) {
  if (c.stride_h == 1 && c.stride_w == 1) {
    const Correlation back = turned(c);
    const Scratch<BFloat16> weights(c.groups * back.out_c * back.depth());
    turn_weights(back, weight, weights.get());
    return conv_tiles(back, {grad_output, weights.get(), nullptr, grad_input, /*relu=*/false});
  }
  const Phases phases(c);
  if (3 * c.out_size() < phases.size() ||  // too much of phases would be left out in the end
      !products_stay_normal(exponents_of(grad_output, outputs_of(c)), exponents_of(weight, weights_of(c))))
    return false;
  // Phases read the gradients backwards, from as far before their beginning as the last tap reaches.
  const int64_t front = phases.distance(c.kernel_h - 1, c.kernel_w - 1), plane = front + phases.size();
  parallel_for(inputs_of(c), 65536, [&](int64_t begin, int64_t end) {
    std::fill(grad_input + begin, grad_input + end, BFloat16(0.0f));
  });
  for (int64_t group = 0; group < c.groups; ++group) {
    const Scratch<BFloat16> planes(c.batch * c.out_c * plane);
    const Pixels pixels{.w = phases.w, .of_image = phases.size(), .row = phases.w, .image = c.out_c * plane};
    spread_gradients(c, grad_output, group, phases.w, phases.size(), [&](int64_t image, int64_t channel) {
      BFloat16* to = planes.get() + (image * c.out_c + channel) * plane;
      std::fill_n(to, front, BFloat16(0.0f));
      return to + front;
    });
    for (int64_t phase = 0; phase < phases.count(); ++phase) {
      std::vector<int64_t> taps, distances;
      for (int64_t t = 0; t < c.taps(); ++t) {
        if (phases.phase_of(t / c.kernel_w, t % c.kernel_w) != phase) continue;
        taps.push_back(t);
        distances.push_back(phases.distance(t / c.kernel_w, t % c.kernel_w));
      }
      if (taps.empty()) continue;
      const int64_t tap_count = static_cast<int64_t>(taps.size()), depth = c.out_c * tap_count;
      std::vector<int64_t> offsets;
      for (int64_t o = 0; o < c.out_c; ++o)
        for (int64_t distance : distances) offsets.push_back(o * plane + front - distance);
      const Scratch<BFloat16> weights(depth * c.in_c);  // [out_c, taps of this phase, in_c]
      parallel_for(c.out_c, std::max<int64_t>(1, 16384 / (tap_count * c.in_c)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t o = begin; o < end; ++o) {
                       const BFloat16* from = weight + (group * c.out_c + o) * c.depth();
                       BFloat16* to = weights.get() + o * tap_count * c.in_c;
                       for (int64_t t : taps)
                         for (int64_t i = 0; i < c.in_c; ++i) *to++ = from[i * c.taps() + t];
                     }
                   });
      gemm_tiles(c.in_c, c.batch * phases.size(), depth, TileMatrix<BFloat16>(weights.get(), 1, c.in_c),
                 OffsetColumns(pixels, planes.get(), offsets),
                 PhaseGradients(phases, phase, group, grad_input));
    }
  }
  return true;
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
#endif
