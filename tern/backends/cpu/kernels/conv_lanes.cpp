// Forward convolution with one image in each SIMD lane. The layout is explained in conv_lanes.h.
#include "tern/backends/cpu/kernels/conv_lanes.h"

#include <array>

#include "tern/backends/cpu/kernels/scratch.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t L = kImageLanes;
constexpr int kMaxOutputs = 6;  // output channels of a tile
constexpr int kMaxPixels = 6;   // neighbouring pixels of a tile

/// Outputs * Pixels sums, one register for each pixel's input and one for a weight.
constexpr bool fits(int outputs, int pixels) { return outputs * pixels + pixels + 1 <= kVectorRegisters; }

/// What a tile reads and where its sums go.
struct LaneTile {
  const float* input;    ///< first pixel's input for the first tap
  const float* weights;  ///< [channel][ky][kx][output of the tile]
  const float* bias;     ///< of the tile's outputs, or null
  float* sums;           ///< [output][pixel][lane], outputs `sum_stride` apart
  int64_t sum_stride;
  int64_t channels, rows, columns;                    ///< taps
  int64_t channel_stride, row_stride, column_stride;  ///< of the input between taps
  int64_t weight_channel_stride;  ///< of the weights, kernel rows that are left out included
  int64_t pixel_stride;
  bool relu;
};

template <int Outputs, int Pixels>
void lane_tile(const LaneTile& t) {
  Vec<float> acc[Outputs][Pixels];
  TERN_UNROLL for (int o = 0; o < Outputs; ++o) {
    const Vec<float> start = t.bias != nullptr ? splat(t.bias[o]) : Vec<float>{};
    TERN_UNROLL for (int p = 0; p < Pixels; ++p) acc[o][p] = start;
  }
  const int64_t pixel_stride = t.pixel_stride, column_stride = t.column_stride;
  for (int64_t c = 0; c < t.channels; ++c) {
    const float* w = t.weights + c * t.weight_channel_stride;
    for (int64_t y = 0; y < t.rows; ++y) {
      const float* in = t.input + c * t.channel_stride + y * t.row_stride;
      for (int64_t x = 0; x < t.columns; ++x, in += column_stride, w += Outputs) {
        Vec<float> v[Pixels];
        TERN_UNROLL for (int p = 0; p < Pixels; ++p) v[p] = load(in + p * pixel_stride);
        TERN_UNROLL for (int o = 0; o < Outputs; ++o) {
          const Vec<float> weight = splat(w[o]);
          TERN_UNROLL for (int p = 0; p < Pixels; ++p) acc[o][p] += weight * v[p];
        }
      }
    }
  }
  TERN_UNROLL for (int o = 0; o < Outputs; ++o) {
    TERN_UNROLL for (int p = 0; p < Pixels; ++p)
        store(t.sums + o * t.sum_stride + p * L, t.relu ? relu<float>(acc[o][p]) : acc[o][p]);
  }
}

using LaneKernel = void (*)(const LaneTile&);

template <int Outputs, int Pixels>
constexpr LaneKernel lane_kernel_or_null() {
  if constexpr (fits(Outputs, Pixels))
    return &lane_tile<Outputs, Pixels>;
  else
    return nullptr;
}
template <int... I>
constexpr std::array<LaneKernel, sizeof...(I)> lane_kernels(std::integer_sequence<int, I...>) {
  return {lane_kernel_or_null<I / kMaxPixels + 1, I % kMaxPixels + 1>()...};
}
LaneKernel lane_kernel(int64_t outputs, int64_t pixels) {
  static constexpr auto kernels = lane_kernels(std::make_integer_sequence<int, kMaxOutputs * kMaxPixels>{});
  return kernels[static_cast<size_t>((outputs - 1) * kMaxPixels + pixels - 1)];
}

/// Channels and pixels are cut into parts of nearly equal size; these are the numbers of parts.
struct Cut {
  int64_t outputs, pixels;
};

/// The cut with the fewest estimated cycles for one row of outputs.
Cut choose_cut(int64_t channels, int64_t width) {
  Cut best{channels, width};
  double least = 1e300;
  for (int outputs = 1; outputs <= kMaxOutputs; ++outputs) {
    for (int pixels = 1; pixels <= kMaxPixels; ++pixels) {
      if (!fits(outputs, pixels)) continue;
      const Cut cut{(channels + outputs - 1) / outputs, (width + pixels - 1) / pixels};
      const double o = static_cast<double>(channels) / static_cast<double>(cut.outputs);
      const double p = static_cast<double>(width) / static_cast<double>(cut.pixels);
      // One multiplication per cycle, at least 4 to hide their latency; loads run beside them at about the
      // same rate.
      const double cycles = static_cast<double>(cut.outputs * cut.pixels) *
                            (std::max({o * p, 4.0, o + p}) + 1.0 + 0.1 * (o + p));
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
/// Bytes of a block of padded images up to which lanes pay: pixels should come from a near cache, the more so
/// the fewer times a tile of few registers uses one, unless direct convolution has too few channels to do
/// well.
constexpr int64_t kLaneBytes = 16 * 1024 * 1024, kNearBytes = (kVectorRegisters < 32 ? 1024 : 3072) * 1024;
constexpr int64_t kVeryFewChannels = 8;
/// Bytes of a block's sums of weight gradients up to which lanes pay.
constexpr int64_t kLaneSumBytes = 1536 * 1024;

/// The part of the lanes that hold images.
double filled_lanes(const Correlation& c) {
  return static_cast<double>(c.batch) / static_cast<double>((c.batch + L - 1) / L * L);
}

/// Whether lanes are full enough, and rows enough for all cores; `limit` is of bytes of a block of padded
/// images where channels are not very few.
bool suits_lanes(const Correlation& c, int64_t limit) {
  if (c.batch == 0 || c.depth() == 0 || c.taps() == 1) return false;
  const PaddedImage padded(c);
  const int64_t bytes = c.in_c * padded.channel_stride() * static_cast<int64_t>(sizeof(float));
  // Direct convolution reaches two thirds of a full block of lanes while channels are few, nine tenths with
  // many, and shares more than rows over the cores.
  const int64_t channels = std::min(c.in_c, c.out_c);
  const bool few_channels = channels <= 16;
  const int64_t rows = (c.batch + L - 1) / L * c.groups * c.out_h;
  return filled_lanes(c) >= (few_channels ? 0.6 : 0.85) && (few_channels || rows >= 8) &&
         bytes <= (channels > kVeryFewChannels ? limit : kLaneBytes);
}

}  // namespace

void gather_padded(const Correlation& c, const PaddedImage& padded, const float* input, int64_t image_stride,
                   int64_t images, float* to) {
  const int64_t first = std::clamp<int64_t>(c.pad_w, 0, padded.w);  // columns before the image
  const int64_t last = std::clamp<int64_t>(c.in_w + c.pad_w, first, padded.w);
  const bool whole_rows = first == 0 && last == padded.w && c.pad_w == 0 && padded.w == c.in_w;
  for (int64_t channel = 0; channel < c.in_c; ++channel) {
    const float* plane = input + channel * c.in_size();
    for (int64_t y = 0; y < padded.h; ++y, to += padded.row_stride()) {
      const int64_t in_y = y - c.pad_h;
      if (in_y < 0 || in_y >= c.in_h) {
        std::fill_n(to, padded.row_stride(), 0.0f);
        continue;
      }
      const float* row = plane + in_y * c.in_w;
      if (whole_rows) {
        const int64_t rows = std::min(c.in_h - in_y, padded.h - y);
        gather_lanes(row, image_stride, images, rows * c.in_w, to);
        to += (rows - 1) * padded.row_stride();
        y += rows - 1;
        continue;
      }
      std::fill_n(to, first * L, 0.0f);
      gather_lanes(row + first - c.pad_w, image_stride, images, last - first, to + first * L);
      std::fill_n(to + last * L, (padded.w - last) * L, 0.0f);
    }
  }
}

bool conv_suits_lanes(const Correlation& c) { return suits_lanes(c, kNearBytes); }

bool conv_suits_lanes_backward_weight(const Correlation& c) {
  const int64_t sums = c.groups * c.out_c * c.depth() * L * static_cast<int64_t>(sizeof(float));
  return suits_lanes(c, kVectorRegisters < 32 ? kNearBytes : kLaneBytes) && sums <= kLaneSumBytes;
}

void conv_lanes(const Correlation& c, const ForwardOperands<float>& x) {
  const PaddedImage padded(c);
  const int64_t pixels = c.out_size(), depth = c.depth(), taps = c.taps();
  const int64_t in_stride = c.groups * c.in_c * c.in_size(), out_stride = c.groups * c.out_c * pixels;
  const Cut cut = choose_cut(c.out_c, c.out_w);
  const auto first_output = [&](int64_t part) { return c.out_c * part / cut.outputs; };
  const auto first_pixel = [&](int64_t part) { return c.out_w * part / cut.pixels; };

  const int64_t row_bytes = c.out_c * c.out_w * L * static_cast<int64_t>(sizeof(float));
  const int64_t rows_at_once =
      whole_register_rows(std::clamp<int64_t>(kSumBytes / row_bytes, 1, c.out_h), c.out_w);

  const int64_t blocks = (c.batch + L - 1) / L, threads = threads_for(c.work());
  const int64_t units = blocks * c.groups, parts = row_parts(threads, units, c.out_h);
  const int64_t slots = std::min(threads, units * parts);
  const int64_t image_share = c.in_c * padded.channel_stride(),
                sum_share = c.out_c * rows_at_once * c.out_w * L;
  const Scratch<float> scratch(c.groups * c.out_c * depth + slots * (image_share + sum_share) + L);
  float* const packed = scratch.get() + slots * (image_share + sum_share);

  // Weights in the order in which tiles read them: [group][part of outputs][channel][ky][kx][output].
  for (int64_t group = 0; group < c.groups; ++group) {
    for (int64_t part = 0; part < cut.outputs; ++part) {
      const int64_t o = first_output(part), count = first_output(part + 1) - o;
      float* to = packed + (group * c.out_c + o) * depth;
      const float* from = x.weight + (group * c.out_c + o) * depth;
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t i = 0; i < count; ++i) to[k * count + i] = from[i * depth + k];
    }
  }

  const auto rows_of_images = [&](int64_t first_image, int64_t group, int64_t first_row, int64_t last_row,
                                  float* image, float* sums) {
    Correlation strip = c;
    strip.out_h = last_row - first_row;
    strip.pad_h -= first_row * c.stride_h;
    const PaddedImage strip_image(strip);
    const int64_t images = std::min(L, c.batch - first_image);
    const float* input = x.input + first_image * in_stride + group * c.in_c * c.in_size();
    float* output = x.output + first_image * out_stride + group * c.out_c * pixels + first_row * c.out_w;
    gather_padded(strip, strip_image, input, in_stride, images, image);
    LaneTile tile{};
    tile.channels = c.in_c;
    tile.columns = c.kernel_w;
    tile.channel_stride = strip_image.channel_stride();
    tile.row_stride = c.dilation_h * strip_image.row_stride();
    tile.column_stride = c.dilation_w * L;
    tile.pixel_stride = c.stride_w * L;
    tile.relu = x.relu;
    for (int64_t y0 = 0; y0 < strip.out_h; y0 += rows_at_once) {
      const int64_t rows = std::min(rows_at_once, strip.out_h - y0);
      tile.sum_stride = rows * c.out_w * L;
      for (int64_t y = y0; y < y0 + rows; ++y) {
        // Kernel rows that reach inside the image.
        const int64_t top = y * c.stride_h - strip.pad_h;
        const int64_t ky0 =
            std::clamp<int64_t>(top < 0 ? (-top + c.dilation_h - 1) / c.dilation_h : 0, 0, c.kernel_h);
        const int64_t ky1 =
            top >= c.in_h ? ky0 : std::clamp<int64_t>((c.in_h - 1 - top) / c.dilation_h + 1, ky0, c.kernel_h);
        tile.rows = ky1 - ky0;
        const float* row = image + (y * c.stride_h + ky0 * c.dilation_h) * strip_image.row_stride();
        for (int64_t part = 0; part < cut.outputs; ++part) {
          const int64_t o = first_output(part), outputs = first_output(part + 1) - o;
          tile.weights = packed + (group * c.out_c + o) * depth + ky0 * c.kernel_w * outputs;
          tile.weight_channel_stride = taps * outputs;
          tile.bias = x.bias != nullptr ? x.bias + group * c.out_c + o : nullptr;
          for (int64_t q = 0; q < cut.pixels; ++q) {
            const int64_t p = first_pixel(q), count = first_pixel(q + 1) - p;
            tile.input = row + p * c.stride_w * L;
            tile.sums = sums + o * tile.sum_stride + ((y - y0) * c.out_w + p) * L;
            lane_kernel(outputs, count)(tile);
          }
        }
      }
      for (int64_t o = 0; o < c.out_c; ++o)
        scatter_lanes(sums + o * tile.sum_stride, out_stride, images, rows * c.out_w,
                      output + o * pixels + y0 * c.out_w);
    }
  };
  parallel_for(slots, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      float* image = scratch.get() + slot * (image_share + sum_share);
      for (int64_t i = units * parts * slot / slots; i < units * parts * (slot + 1) / slots; ++i) {
        const int64_t unit = i / parts, part = i % parts;
        rows_of_images(unit / c.groups * L, unit % c.groups, c.out_h * part / parts,
                       c.out_h * (part + 1) / parts, image, image + image_share);
      }
    }
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
