// The gradient of a convolution's input with one image in each SIMD lane, for strides 1. Every gradient of an
// output is added to the inputs that its taps read; unlike the turned forward pass this multiplies no
// padding. The layout is explained in conv_lanes.h.
#include <array>

#include "tern/backends/cpu/kernels/conv_lanes.h"
#include "tern/backends/cpu/kernels/scratch.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t L = kImageLanes;
constexpr int kMinColumns = 2;  // kernel columns
constexpr int kMaxColumns = 5;
constexpr int kMaxPixels = 7;    // neighbouring outputs of a tile
constexpr int kMaxChannels = 3;  // input channels of a tile

/// (Pixels + Columns - 1) * Channels sums, one register for each gradient and one for a weight.
constexpr bool fits(int columns, int pixels, int channels) {
  return (pixels + columns - 1) * channels + pixels + 1 <= kVectorRegisters;
}

/// Adds to a row of inputs: row[i][x0 + p + k] += sum over outputs o and kernel rows y of grad[o][y][p] *
/// weight[o][y][k][i], where only columns in [0, width) are kept.
struct InputTile {
  const float* grad;     ///< first pixel, of the first kernel row
  const float* weights;  ///< [output][ky][kx][channel of the tile]
  float* row;            ///< [channel][column][lane], channels `row_channel_stride` apart
  int64_t row_channel_stride;
  int64_t outputs, rows;
  int64_t grad_output_stride;
  int64_t grad_row_stride;  ///< from one kernel row to the next: backwards in the image
  int64_t weight_output_stride;
  int64_t x0, width;
};

template <int Columns, int Pixels, int Channels>
void input_tile(const InputTile& t) {
  constexpr int kReach = Pixels + Columns - 1;
  Vec<float> acc[Channels][kReach];
  TERN_UNROLL for (int i = 0; i < Channels; ++i) {
    TERN_UNROLL for (int x = 0; x < kReach; ++x) acc[i][x] = Vec<float>{};
  }
  for (int64_t o = 0; o < t.outputs; ++o) {
    const float* grad = t.grad + o * t.grad_output_stride;
    const float* w = t.weights + o * t.weight_output_stride;
    for (int64_t y = 0; y < t.rows; ++y, grad += t.grad_row_stride, w += Columns * Channels) {
      Vec<float> g[Pixels];
      TERN_UNROLL for (int p = 0; p < Pixels; ++p) g[p] = load(grad + p * L);
      TERN_UNROLL for (int k = 0; k < Columns; ++k) {
        TERN_UNROLL for (int i = 0; i < Channels; ++i) {
          const Vec<float> weight = splat(w[k * Channels + i]);
          TERN_UNROLL for (int p = 0; p < Pixels; ++p) acc[i][p + k] += weight * g[p];
        }
      }
    }
  }
  TERN_UNROLL for (int i = 0; i < Channels; ++i) {
    TERN_UNROLL for (int x = 0; x < kReach; ++x) {
      if (t.x0 + x >= 0 && t.x0 + x < t.width) {
        float* to = t.row + i * t.row_channel_stride + (t.x0 + x) * L;
        store(to, load(to) + acc[i][x]);
      }
    }
  }
}

using InputKernel = void (*)(const InputTile&);

template <int Columns, int Pixels, int Channels>
constexpr InputKernel input_kernel_or_null() {
  if constexpr (fits(Columns, Pixels, Channels))
    return &input_tile<Columns, Pixels, Channels>;
  else
    return nullptr;
}
template <int... I>
constexpr std::array<InputKernel, sizeof...(I)> input_kernels(std::integer_sequence<int, I...>) {
  return {input_kernel_or_null<I / (kMaxPixels * kMaxChannels) + kMinColumns,
                               I / kMaxChannels % kMaxPixels + 1, I % kMaxChannels + 1>()...};
}
InputKernel input_kernel(int64_t columns, int64_t pixels, int64_t channels) {
  constexpr int kCount = (kMaxColumns - kMinColumns + 1) * kMaxPixels * kMaxChannels;
  static constexpr auto kernels = input_kernels(std::make_integer_sequence<int, kCount>{});
  return kernels[static_cast<size_t>(((columns - kMinColumns) * kMaxPixels + pixels - 1) * kMaxChannels +
                                     channels - 1)];
}

/// Numbers of nearly equal parts into which pixels of a row and input channels are cut.
struct Cut {
  int64_t pixels, channels;
};

Cut choose_cut(int64_t columns, int64_t width, int64_t in_channels) {
  Cut best{width, in_channels};
  double least = 1e300;
  for (int pixels = 1; pixels <= kMaxPixels; ++pixels) {
    for (int channels = 1; channels <= kMaxChannels; ++channels) {
      if (!fits(static_cast<int>(columns), pixels, channels)) continue;
      const Cut cut{(width + pixels - 1) / pixels, (in_channels + channels - 1) / channels};
      const double p = static_cast<double>(width) / static_cast<double>(cut.pixels);
      const double i = static_cast<double>(in_channels) / static_cast<double>(cut.channels);
      const double k = static_cast<double>(columns);
      const double cycles = static_cast<double>(cut.pixels * cut.channels) *
                            (std::max(p * k * i, p + k * i) + 2.0 + 0.1 * (p + k * i));
      if (cycles < least) {
        least = cycles;
        best = cut;
      }
    }
  }
  return best;
}

/// Bytes of sums that are collected before they are turned back into images.
constexpr int64_t kSumBytes = 96 * 1024;

}  // namespace

bool conv_suits_lanes_backward_input(const Correlation& c) {
  // A tile's sums reach over more pixels than those of the turned forward pass: too many for few registers.
  if (kVectorRegisters < 32 && c.in_c >= 4) return false;
  return c.stride_h == 1 && c.stride_w == 1 && c.dilation_w == 1 && c.kernel_w >= kMinColumns &&
         c.kernel_w <= kMaxColumns && conv_suits_lanes(c);
}

void conv_lanes_backward_input(const Correlation& c, const float* grad_output, const float* weight,
                               float* grad_input) {
  const int64_t pixels = c.out_size(), depth = c.depth(), taps = c.taps();
  const int64_t in_stride = c.groups * c.in_c * c.in_size(), out_stride = c.groups * c.out_c * pixels;
  const Cut cut = choose_cut(c.kernel_w, c.out_w, c.in_c);
  const auto first_pixel = [&](int64_t part) { return c.out_w * part / cut.pixels; };
  const auto first_channel = [&](int64_t part) { return c.in_c * part / cut.channels; };

  const int64_t row_bytes = c.in_c * c.in_w * L * static_cast<int64_t>(sizeof(float));
  const int64_t rows_at_once =
      whole_register_rows(std::clamp<int64_t>(kSumBytes / row_bytes, 1, c.in_h), c.in_w);
  const int64_t blocks = (c.batch + L - 1) / L, units = blocks * c.groups, threads = threads_for(c.work());
  const int64_t parts = row_parts(threads, units, c.in_h), slots = std::min(threads, units * parts);
  const int64_t grad_share = c.out_c * pixels * L, sum_share = c.in_c * rows_at_once * c.in_w * L;
  const Scratch<float> scratch(slots * (grad_share + sum_share) + c.groups * c.out_c * depth);
  float* const packed = scratch.get() + slots * (grad_share + sum_share);

  // Weights in the order in which tiles read them: [group][part of channels][output][ky][kx][channel].
  for (int64_t group = 0; group < c.groups; ++group) {
    for (int64_t part = 0; part < cut.channels; ++part) {
      const int64_t i0 = first_channel(part), channels = first_channel(part + 1) - i0;
      float* to = packed + group * c.out_c * depth + i0 * taps * c.out_c;
      for (int64_t o = 0; o < c.out_c; ++o)
        for (int64_t t = 0; t < taps; ++t)
          for (int64_t i = 0; i < channels; ++i)
            *to++ = weight[((group * c.out_c + o) * c.in_c + i0 + i) * taps + t];
    }
  }

  const auto rows_of_images = [&](int64_t first_image, int64_t group, int64_t first_row, int64_t last_row,
                                  float* grads, float* sums) {
    const int64_t images = std::min(L, c.batch - first_image);
    gather_lanes(grad_output + first_image * out_stride + group * c.out_c * pixels, out_stride, images,
                 c.out_c * pixels, grads);
    float* output = grad_input + first_image * in_stride + group * c.in_c * c.in_size();
    InputTile tile{};
    tile.outputs = c.out_c;
    tile.grad_output_stride = pixels * L;
    tile.grad_row_stride = -c.dilation_h * c.out_w * L;
    tile.width = c.in_w;
    for (int64_t y0 = first_row; y0 < last_row; y0 += rows_at_once) {
      const int64_t rows = std::min(rows_at_once, last_row - y0);
      tile.row_channel_stride = rows * c.in_w * L;
      std::fill_n(sums, c.in_c * tile.row_channel_stride, 0.0f);
      for (int64_t y = y0; y < y0 + rows; ++y) {
        // Kernel rows ky whose output y + pad - ky * dilation exists.
        const int64_t reach = y + c.pad_h - (c.out_h - 1);
        const int64_t ky0 = reach <= 0 ? 0 : (reach + c.dilation_h - 1) / c.dilation_h;
        const int64_t ky1 = std::min(c.kernel_h, (y + c.pad_h) / c.dilation_h + 1);
        tile.rows = ky1 - ky0;
        if (tile.rows <= 0) continue;
        for (int64_t part = 0; part < cut.channels; ++part) {
          const int64_t i = first_channel(part), channels = first_channel(part + 1) - i;
          tile.weights = packed + group * c.out_c * depth + i * taps * c.out_c + ky0 * c.kernel_w * channels;
          tile.weight_output_stride = taps * channels;
          tile.row = sums + i * tile.row_channel_stride + (y - y0) * c.in_w * L;
          for (int64_t q = 0; q < cut.pixels; ++q) {
            const int64_t p = first_pixel(q), count = first_pixel(q + 1) - p;
            tile.grad = grads + ((y + c.pad_h - ky0 * c.dilation_h) * c.out_w + p) * L;
            tile.x0 = p - c.pad_w;
            input_kernel(c.kernel_w, count, channels)(tile);
          }
        }
      }
      for (int64_t i = 0; i < c.in_c; ++i)
        scatter_lanes(sums + i * tile.row_channel_stride, in_stride, images, rows * c.in_w,
                      output + i * c.in_size() + y0 * c.in_w);
    }
  };
  parallel_for(slots, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      float* grads = scratch.get() + slot * (grad_share + sum_share);
      for (int64_t i = units * parts * slot / slots; i < units * parts * (slot + 1) / slots; ++i) {
        const int64_t unit = i / parts, part = i % parts;
        rows_of_images(unit / c.groups * L, unit % c.groups, c.in_h * part / parts,
                       c.in_h * (part + 1) / parts, grads, grads + grad_share);
      }
    }
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
