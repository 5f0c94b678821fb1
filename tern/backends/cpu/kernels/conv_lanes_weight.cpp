// The gradient of a convolution's weights and bias with one image in each SIMD lane. The layout is explained
// in conv_lanes.h.
#include <array>

#include "tern/backends/cpu/kernels/conv_lanes.h"
#include "tern/backends/cpu/kernels/scratch.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t L = kImageLanes;
constexpr int kMaxOutputs = 6;  // output channels of a tile
constexpr int kMaxColumns = 7;  // kernel columns of a tile

/// Outputs * Columns sums, one register for each output's gradient and one for an input.
constexpr bool fits(int outputs, int columns) { return outputs * columns + outputs + 1 <= kVectorRegisters; }

/// Sums over a rectangle of output pixels: sums[o][k] += grad[o][y][x] * input[y][x * stride + k].
struct WeightTile {
  const float* grad;   ///< [output][row][pixel][lane]
  const float* input;  ///< of the first kernel column
  float* sums;         ///< [output][kernel column][lane], outputs `sum_stride` apart
  int64_t sum_stride;
  int64_t rows, pixels;
  int64_t grad_output_stride, grad_row_stride;
  int64_t input_row_stride, input_pixel_stride, input_column_stride;
};

template <int Outputs, int Columns>
void weight_tile(const WeightTile& t) {
  Vec<float> acc[Outputs][Columns];
  TERN_UNROLL for (int o = 0; o < Outputs; ++o) {
    TERN_UNROLL for (int k = 0; k < Columns; ++k) acc[o][k] = load(t.sums + o * t.sum_stride + k * L);
  }
  const int64_t grad_stride = t.grad_output_stride, pixel_stride = t.input_pixel_stride,
                column_stride = t.input_column_stride;
  for (int64_t y = 0; y < t.rows; ++y) {
    const float* grad = t.grad + y * t.grad_row_stride;
    const float* input = t.input + y * t.input_row_stride;
    for (int64_t x = 0; x < t.pixels; ++x, grad += L, input += pixel_stride) {
      Vec<float> g[Outputs];
      TERN_UNROLL for (int o = 0; o < Outputs; ++o) g[o] = load(grad + o * grad_stride);
      TERN_UNROLL for (int k = 0; k < Columns; ++k) {
        const Vec<float> v = load(input + k * column_stride);
        TERN_UNROLL for (int o = 0; o < Outputs; ++o) acc[o][k] += g[o] * v;
      }
    }
  }
  TERN_UNROLL for (int o = 0; o < Outputs; ++o) {
    TERN_UNROLL for (int k = 0; k < Columns; ++k) store(t.sums + o * t.sum_stride + k * L, acc[o][k]);
  }
}

using WeightKernel = void (*)(const WeightTile&);

template <int Outputs, int Columns>
constexpr WeightKernel weight_kernel_or_null() {
  if constexpr (fits(Outputs, Columns))
    return &weight_tile<Outputs, Columns>;
  else
    return nullptr;
}
template <int... I>
constexpr std::array<WeightKernel, sizeof...(I)> weight_kernels(std::integer_sequence<int, I...>) {
  return {weight_kernel_or_null<I / kMaxColumns + 1, I % kMaxColumns + 1>()...};
}
WeightKernel weight_kernel(int64_t outputs, int64_t columns) {
  static constexpr auto kernels =
      weight_kernels(std::make_integer_sequence<int, kMaxOutputs * kMaxColumns>{});
  return kernels[static_cast<size_t>((outputs - 1) * kMaxColumns + columns - 1)];
}

/// Numbers of nearly equal parts into which output channels and kernel columns are cut.
struct Cut {
  int64_t outputs, columns;
};

Cut choose_cut(int64_t channels, int64_t width) {
  Cut best{channels, width};
  double least = 1e300;
  for (int outputs = 1; outputs <= kMaxOutputs; ++outputs) {
    for (int columns = 1; columns <= kMaxColumns; ++columns) {
      if (!fits(outputs, columns)) continue;
      const Cut cut{(channels + outputs - 1) / outputs, (width + columns - 1) / columns};
      const double o = static_cast<double>(channels) / static_cast<double>(cut.outputs);
      const double k = static_cast<double>(width) / static_cast<double>(cut.columns);
      const double cycles =
          static_cast<double>(cut.outputs * cut.columns) * (std::max({o * k, 4.0, o + k}) + 0.2 * (o + k));
      if (cycles < least) {
        least = cycles;
        best = cut;
      }
    }
  }
  return best;
}

/// Bytes of gradients that a tile goes through for every channel and kernel row before it takes the next.
constexpr int64_t kTileBytes = 24 * 1024;
/// Sums are kept apart for at most so many runs of images, whatever the number of threads, and added in their
/// order.
constexpr int64_t kMaxChunks = 64;

/// to[i] = sum of lanes[i][...] for i < count; `lanes` may be read up to a multiple of L registers.
void sum_lanes(const float* lanes, int64_t count, float* to) {
  for (int64_t i = 0; i < count; i += L, lanes += L * L) {
    Vec<float> r[L];
    TERN_UNROLL for (int64_t j = 0; j < L; ++j) r[j] = load(lanes + j * L);
    transpose_registers(r);
    TERN_UNROLL for (int64_t width = L / 2; width > 0; width /= 2) {
      TERN_UNROLL for (int64_t j = 0; j < width; ++j) r[j] += r[j + width];
    }
    if (count - i >= L)
      store(to + i, r[0]);
    else
      Tail<float>(count - i).store(to + i, r[0]);
  }
}

}  // namespace

void conv_lanes_backward_weight(const Correlation& c, const WeightGradOperands<float>& x) {
  const PaddedImage padded(c);
  const int64_t pixels = c.out_size(), depth = c.depth();
  const int64_t in_stride = c.groups * c.in_c * c.in_size(), out_stride = c.groups * c.out_c * pixels;
  const Cut cut = choose_cut(c.out_c, c.kernel_w);
  const auto first_output = [&](int64_t part) { return c.out_c * part / cut.outputs; };
  const auto first_column = [&](int64_t part) { return c.kernel_w * part / cut.columns; };
  const int64_t tile_outputs = (c.out_c + cut.outputs - 1) / cut.outputs;
  const int64_t row_bytes = tile_outputs * c.out_w * L * static_cast<int64_t>(sizeof(float));
  const int64_t row_tiles = (c.out_h + std::max<int64_t>(kTileBytes / row_bytes, 1) - 1) /
                            std::max<int64_t>(kTileBytes / row_bytes, 1);

  // A unit is a run of images, a group, and a range of output channels; what it sums does not depend on the
  // number of threads.
  const int64_t blocks = (c.batch + L - 1) / L, chunks = std::min(blocks, kMaxChunks),
                threads = threads_for(c.work());
  const int64_t parts = row_parts(threads, chunks * c.groups, cut.outputs), units = chunks * c.groups * parts;
  const int64_t slots = std::min(threads, units);
  const int64_t weights = c.groups * c.out_c * depth, biases = c.groups * c.out_c, results = weights + biases;
  const int64_t image_share = c.in_c * padded.channel_stride(), grad_share = c.out_c * pixels * L;
  const int64_t weight_share = (c.out_c * depth + L - 1) / L * L * L,
                bias_share = (c.out_c + L - 1) / L * L * L;
  const int64_t share = image_share + grad_share + weight_share + bias_share;
  const Scratch<float> scratch(slots * share + chunks * results);
  float* const partial = scratch.get() + slots * share;

  struct Place {
    float *image, *grads, *weight_sums, *bias_sums;
  };
  const auto add_block = [&](int64_t first_image, int64_t group, int64_t first_part, int64_t last_part,
                             const Place& to) {
    const int64_t images = std::min(L, c.batch - first_image);
    const int64_t o0 = first_output(first_part), o1 = first_output(last_part);
    gather_padded(c, padded, x.input + first_image * in_stride + group * c.in_c * c.in_size(), in_stride,
                  images, to.image);
    gather_lanes(x.grad_output + first_image * out_stride + (group * c.out_c + o0) * pixels, out_stride,
                 images, (o1 - o0) * pixels, to.grads);
    for (int64_t o = 0; o < o1 - o0; ++o) {
      Vec<float> even = load(to.bias_sums + o * L), odd{};
      const float* from = to.grads + o * pixels * L;
      int64_t p = 0;
      for (; p + 2 <= pixels; p += 2) {
        even += load(from + p * L);
        odd += load(from + (p + 1) * L);
      }
      if (p < pixels) even += load(from + p * L);
      store(to.bias_sums + o * L, even + odd);
    }
    WeightTile tile{};
    tile.sum_stride = depth * L;
    tile.pixels = c.out_w;
    tile.grad_output_stride = pixels * L;
    tile.grad_row_stride = c.out_w * L;
    tile.input_row_stride = c.stride_h * padded.row_stride();
    tile.input_pixel_stride = c.stride_w * L;
    tile.input_column_stride = c.dilation_w * L;
    for (int64_t part = first_part; part < last_part; ++part) {
      const int64_t o = first_output(part) - o0, outputs = first_output(part + 1) - first_output(part);
      for (int64_t row_tile = 0; row_tile < row_tiles; ++row_tile) {
        const int64_t y0 = c.out_h * row_tile / row_tiles, y1 = c.out_h * (row_tile + 1) / row_tiles;
        for (int64_t ky = 0; ky < c.kernel_h; ++ky) {
          const ValidRange valid(ky, c.dilation_h, c.stride_h, c.pad_h, c.in_h, c.out_h);
          const int64_t first = std::max(y0, valid.first);
          tile.rows = std::min(y1, valid.last) - first;
          if (tile.rows <= 0) continue;
          tile.grad = to.grads + (o * c.out_h + first) * c.out_w * L;
          const float* rows = to.image + (first * c.stride_h + ky * c.dilation_h) * padded.row_stride();
          for (int64_t channel = 0; channel < c.in_c; ++channel) {
            float* sums = to.weight_sums + (o * depth + (channel * c.kernel_h + ky) * c.kernel_w) * L;
            for (int64_t q = 0; q < cut.columns; ++q) {
              const int64_t kx = first_column(q), columns = first_column(q + 1) - kx;
              tile.input = rows + channel * padded.channel_stride() + kx * c.dilation_w * L;
              tile.sums = sums + kx * L;
              weight_kernel(outputs, columns)(tile);
            }
          }
        }
      }
    }
  };
  parallel_for(slots, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      float* image = scratch.get() + slot * share;
      float* grads = image + image_share;
      const Place to{image, grads, grads + grad_share, grads + grad_share + weight_share};
      for (int64_t unit = units * slot / slots; unit < units * (slot + 1) / slots; ++unit) {
        const int64_t chunk = unit / (c.groups * parts), group = unit / parts % c.groups, part = unit % parts;
        const int64_t first_part = cut.outputs * part / parts, last_part = cut.outputs * (part + 1) / parts;
        const int64_t o0 = first_output(first_part), outputs = first_output(last_part) - o0;
        std::fill_n(to.weight_sums, outputs * depth * L, 0.0f);
        std::fill_n(to.bias_sums, outputs * L, 0.0f);
        for (int64_t block = blocks * chunk / chunks; block < blocks * (chunk + 1) / chunks; ++block)
          add_block(block * L, group, first_part, last_part, to);
        float* chunk_sums = partial + chunk * results;
        sum_lanes(to.weight_sums, outputs * depth, chunk_sums + (group * c.out_c + o0) * depth);
        sum_lanes(to.bias_sums, outputs, chunk_sums + weights + group * c.out_c + o0);
      }
    }
  });
  const auto add_chunks = [&](int64_t first, int64_t count, float* to) {
    if (to == nullptr) return;
    std::copy_n(partial + first, count, to);
    for (int64_t chunk = 1; chunk < chunks; ++chunk)
      for (int64_t i = 0; i < count; ++i) to[i] += partial[chunk * results + first + i];
  };
  add_chunks(0, weights, x.grad_weight);
  add_chunks(weights, biases, x.grad_bias);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
