// The 2-D convolution of few channels in float32: a block keeps the weights and its part of an image in
// shared memory, a thread computes several channels of two neighbouring places. Libraries compute products of
// tiles of 32 channels and more, most of which would be empty here. Which shapes are taken:
// is_small().
#include <algorithm>

#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/conv.h"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"

namespace tern::cuda_backend {
namespace {

constexpr int64_t kSharedFloats = 12 * 1024;  // 48 KiB, which every GPU gives without asking
constexpr int64_t kThreads = 256;             // of a block
constexpr int64_t kWeightThreads = 512;       // of a block for weights that are many, at most
constexpr int64_t kWeightBlocks = 264;        // whose sums are added at last; two for each of 132 processors
constexpr int kMostRows = 1 << 12;            // of an image, and columns

int whole(int64_t size) { return static_cast<int>(size); }

/// Floats of a group in shared memory.
constexpr int padded_size(int group_size) { return group_size == 4 ? 4 : 8; }

/// Channels in groups, one for each thread; a group takes `padded` floats, so that it is read 16 bytes at
/// once.
struct Groups {
  int size, count;

  explicit Groups(int64_t channels) : size(8) {
    for (int each : {6, 4})
      if (ceil_div(channels, each) * each < ceil_div(channels, size) * size) size = each;
    count = static_cast<int>(ceil_div(channels, size));
  }
  int64_t padded() const { return int64_t{count} * padded_size(size); }
};

/// Calls f.template operator()<group size, kernel width>().
template <class F>
void visit_sizes(const Groups& groups, int64_t kernel_w, F&& f) {
  const auto with_width = [&]<int kSize>() {
    if (kernel_w == 3) return f.template operator()<kSize, 3>();
    if (kernel_w == 5) return f.template operator()<kSize, 5>();
    f.template operator()<kSize, 7>();
  };
  if (groups.size == 4) return with_width.template operator()<4>();
  if (groups.size == 6) return with_width.template operator()<6>();
  with_width.template operator()<8>();
}

/// The channels of a group, from shared memory.
template <int kSize>
__device__ __forceinline__ void read_group(float (&to)[kSize], const float* from) {
  const float4 low = *reinterpret_cast<const float4*>(from);
  to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
  if constexpr (kSize == 6) {
    const float2 high = *reinterpret_cast<const float2*>(from + 4);
    to[4] = high.x, to[5] = high.y;
  } else if constexpr (kSize == 8) {
    const float4 high = *reinterpret_cast<const float4*>(from + 4);
    to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
  }
}

/// A group on its way to shared memory.
template <int kSize>
struct Group {
  float at[kSize];

  /// From where its channels lie `stride` apart; those from `count` on are zeros.
  __device__ __forceinline__ void gather(const float* from, int stride, int count) {
#pragma unroll
    for (int k = 0; k < kSize; ++k, from += stride) at[k] = k < count ? *from : 0.0f;
  }
  __device__ __forceinline__ void write(float* to) const {
    *reinterpret_cast<float4*>(to) = make_float4(at[0], at[1], at[2], at[3]);
    if constexpr (kSize == 6)
      *reinterpret_cast<float2*>(to + 4) = make_float2(at[4], at[5]);
    else if constexpr (kSize == 8)
      *reinterpret_cast<float4*>(to + 4) = make_float4(at[4], at[5], at[6], at[7]);
  }
};

/// The rows of a band, of `bands` equal ones or more, whose `floats(rows)` fit into shared memory; 0 when not
/// even those of one row do.
template <class F>
int64_t rows_that_fit(int64_t h, int64_t bands, const F& floats) {
  for (;; ++bands) {
    const int64_t rows = ceil_div(h, bands);
    if (floats(rows) <= kSharedFloats) return rows;
    if (rows == 1) return 0;
  }
}

/// What a gradient counts where relu gave `relu_output`.
__device__ __forceinline__ float masked(float grad, float relu_output) {
  return relu_output <= 0 ? 0.0f : grad;
}

/// Images [batch, channels, h, w], of which blocks take bands of rows.
struct Images {
  const float* data;
  const float* relu_output;  ///< or null, see Conv2dBackwardArgs
  int channels, h, w;

  /// From an element of an image on.
  __device__ __forceinline__ Images from(int64_t image, int element) const {
    const int64_t skipped = image * (channels * h * w) + element;
    return {data + skipped, relu_output ? relu_output + skipped : nullptr, channels, h, w};
  }
};

/// A band of rows of all channels in shared memory, as [channels, rows, row_stride], with zeros around what
/// it has of the image.
struct Tile {
  int channels, rows, row_stride;
  Divider lines, width;  ///< rows of the image that a band has at most, and their columns

  Tile(const Images& of, int64_t rows_, int64_t row_stride_)
      : channels(of.channels),
        rows(whole(rows_)),
        row_stride(whole(row_stride_)),
        lines(std::min<int64_t>(rows_, of.h)),
        width(of.w) {}
  /// Rounded up to what clear() writes at once.
  int64_t floats() const { return ceil_div(int64_t{channels} * rows * row_stride, 4) * 4; }

  /// Zeros everywhere. A barrier has to come between this and read().
  __device__ __forceinline__ void clear(float* tile) const {
    for (int i = 4 * threadIdx.x; i < channels * rows * row_stride; i += 4 * blockDim.x)
      *reinterpret_cast<float4*>(tile + i) = make_float4(0, 0, 0, 0);
  }

  /// What an image has of the rows from `top` on, which may begin above it; `left` zeros come before it. A
  /// thread has a column of every `at_once`-th line of all channels.
  __device__ __forceinline__ void read(float* tile, const Images& images, int64_t image, int top,
                                       int left) const {
    constexpr int kAhead = 4;  // loads that do not wait for each other; branches between them would cost more
    const int first = max(top, 0), count = min(top + rows, images.h) - first;
    const Images from = images.from(image, first * images.w);
    const int line = width.divide(threadIdx.x), at_once = max(width.divide(blockDim.x), 1u);
    if (line >= at_once || count <= 0) return;
    const int most = lines.divisor, all = channels * most;
    for (int x = threadIdx.x - line * images.w; x < images.w; x += blockDim.x) {
      const int begin = (first - top) * row_stride + left + x;
#pragma unroll 1
      for (int i = line; i < all; i += kAhead * at_once) {
        float value[kAhead], relu_output[kAhead];
        int place[kAhead];
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
          const int number = i + k * at_once, channel = lines.divide(number), y = number - channel * most;
          const bool inside = number < all && y < count;
          const uint32_t element = (channel * images.h + y) * images.w + x;
          value[k] = inside ? from.data[element] : 0;
          relu_output[k] = inside && from.relu_output ? from.relu_output[element] : 1;
          place[k] = inside ? (channel * rows + y) * row_stride + begin : -1;
        }
#pragma unroll
        for (int k = 0; k < kAhead; ++k)
          if (place[k] >= 0) tile[place[k]] = masked(value[k], relu_output[k]);
      }
    }
  }
};

// ---- images
// ------------------------------------------------------------------------------------------------------------

/// out = correlation of `in`, stride 1. The gradient of an input is one too, of weights that are turned.
struct Correlation {
  Images in;
  const float* weight;  ///< [channels of out, channels of in, kernel_h, KW]; turned: [of in, of out, ...]
  const float* bias;    ///< or null
  float* out;           ///< [batch, channels, h, w]
  bool turned, relu;
  int channels, h, w, kernel_h, padding_h, padding_w;
  int groups = 1, padded = 8;  ///< channels in shared memory
  Divider taps{}, plane{};     ///< weights of a channel of out; of a kernel
  int bands = 1, band_h = 1;   ///< blocks of an image, and their rows
  Divider pairs{}, places{};   ///< pairs of neighbours in a row, in a band
  Tile tile = Tile(in, 1, 1);
  Divider items{};  ///< for threads: groups of channels, times places
  int parts = 1;    ///< threads that share an item, each with some channels of in
};

/// Adds the sums of the threads that come `items` after each other to those of the first of them.
template <int kSize>
__device__ __forceinline__ void add_parts(float* shared, float (&sums)[2][kSize], int items, int parts) {
  float* mine = shared + threadIdx.x;
  __syncthreads();  // the weights and the tile may still be read
#pragma unroll
  for (int k = 0; k < 2 * kSize; ++k) mine[k * kThreads] = sums[k / kSize][k % kSize];
  __syncthreads();
  for (int part = 1; part < parts; ++part) {
    mine += items;
#pragma unroll
    for (int k = 0; k < 2 * kSize; ++k) sums[k / kSize][k % kSize] += mine[k * kThreads];
  }
}

template <int kSize, int KW>
__global__ __launch_bounds__(kThreads) void correlate(const Correlation c) {
  TERN_DYNAMIC_SHARED(float4, shared);
  float* weights = reinterpret_cast<float*>(shared);  // [channels of in, kernel_h, KW, padded]
  const uint32_t plane = c.plane.divisor, taps = c.taps.divisor;
  float* tile = weights + taps * c.padded;
  constexpr int kPadded = padded_size(kSize);
  c.tile.clear(tile);
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < c.groups * taps; i += blockDim.x) {
    const uint32_t group = c.taps.divide(i), tap = i - group * taps, channel = group * kSize;
    uint32_t from = channel * taps + tap, stride = taps;
    if (c.turned) {
      const uint32_t source = c.plane.divide(tap), in_plane = tap - source * plane;
      from = (source * c.channels + channel) * plane + plane - 1 - in_plane;
      stride = plane;
    }
    Group<kSize> read;
    read.gather(c.weight + from, stride, c.channels - channel);
    read.write(weights + tap * c.padded + group * kPadded);
  }
  const int64_t image = blockIdx.x / c.bands;
  const int first_row = static_cast<int>(blockIdx.x % c.bands) * c.band_h;
  c.tile.read(tile, c.in, image, first_row - c.padding_h, c.padding_w);
  __syncthreads();

  // All threads go on together, for the barriers of add_parts().
  for (uint32_t i = threadIdx.x; i < c.items.divisor * c.parts + threadIdx.x; i += blockDim.x) {
    const int part = static_cast<int>(c.items.divide(i));
    const uint32_t item = i - part * c.items.divisor;
    const int group = static_cast<int>(c.places.divide(item));
    const uint32_t place = item - group * c.places.divisor;
    const int y = static_cast<int>(c.pairs.divide(place));
    const int x = 2 * static_cast<int>(place - y * c.pairs.divisor);
    const bool works = part < c.parts && first_row + y < c.h;
    float sums[2][kSize] = {};
    const float* weight = weights + part * plane * c.padded + group * kPadded;
    const float* row = tile + (part * c.tile.rows + y) * c.tile.row_stride + x;
    for (int channel = works ? part : c.in.channels; channel < c.in.channels; channel += c.parts) {
      for (int ky = 0; ky < c.kernel_h; ++ky) {
        float window[KW + 1];
#pragma unroll
        for (int kx = 0; kx <= KW; ++kx) window[kx] = row[ky * c.tile.row_stride + kx];
#pragma unroll
        for (int kx = 0; kx < KW; ++kx) {
          float w[kSize];
          read_group(w, weight);
          weight += c.padded;
#pragma unroll
          for (int k = 0; k < kSize; ++k) {
            sums[0][k] += window[kx] * w[k];
            sums[1][k] += window[kx + 1] * w[k];
          }
        }
      }
      weight += (c.parts - 1) * plane * c.padded;
      row += c.parts * c.tile.rows * c.tile.row_stride;
    }
    if (c.parts > 1)
      add_parts(reinterpret_cast<float*>(shared), sums, c.items.divisor, part == 0 ? c.parts : 0);
    if (!works || part != 0) continue;
#pragma unroll
    for (int k = 0; k < kSize; ++k) {
      const int channel = group * kSize + k;
      if (channel >= c.channels) break;
      float* out = c.out + ((image * c.channels + channel) * c.h + first_row + y) * c.w + x;
      const float bias = c.bias ? c.bias[channel] : 0.0f;
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const float value = sums[side][k] + bias;
        if (x + side < c.w) out[side] = c.relu && value < 0 ? 0.0f : value;
      }
    }
  }
}

Correlation correlation_of(const Conv2dArgs& args) {
  const Conv2dShape& s = args.shape;
  return {.in = {static_cast<const float*>(args.input), nullptr, whole(s.in_channels), whole(s.in_h),
                 whole(s.in_w)},
          .weight = static_cast<const float*>(args.weight),
          .bias = static_cast<const float*>(args.bias),
          .out = static_cast<float*>(args.output),
          .turned = false,
          .relu = args.relu,
          .channels = whole(s.out_channels),
          .h = whole(s.out_h),
          .w = whole(s.out_w),
          .kernel_h = whole(s.kernel_h),
          .padding_h = whole(s.padding_h),
          .padding_w = whole(s.padding_w)};
}

Correlation correlation_of(const Conv2dBackwardArgs& args) {
  const Conv2dShape& s = args.shape;
  return {.in = {static_cast<const float*>(args.grad_output), static_cast<const float*>(args.relu_output),
                 whole(s.out_channels), whole(s.out_h), whole(s.out_w)},
          .weight = static_cast<const float*>(args.weight),
          .bias = nullptr,
          .out = static_cast<float*>(args.grad_input),
          .turned = true,
          .relu = false,
          .channels = whole(s.in_channels),
          .h = whole(s.in_h),
          .w = whole(s.in_w),
          .kernel_h = whole(s.kernel_h),
          .padding_h = whole(s.kernel_h - 1 - s.padding_h),
          .padding_w = whole(s.kernel_w - 1 - s.padding_w)};
}

/// Completes the sizes, with rows of a band that give each thread one item, and starts the kernel. False when
/// the shape does not fit into shared memory, or has more images than a grid has blocks.
bool correlate_all(const LaunchContext& context, Correlation c, int64_t batch, int64_t kernel_w) {
  const Groups groups(c.channels);
  // An odd stride from row to row leads neighbours, which read every second number, to banks of their own.
  const int64_t pairs = ceil_div(c.w, 2), row_stride = (2 * pairs + kernel_w - 1) | 1;
  const int64_t weights = int64_t{c.in.channels} * c.kernel_h * kernel_w * groups.padded();
  const auto tile = [&](int64_t rows) { return Tile(c.in, rows + c.kernel_h - 1, row_stride); };
  const auto floats = [&](int64_t rows) { return weights + tile(rows).floats(); };
  const int64_t bands = std::min<int64_t>(c.h, ceil_div(pairs * c.h * groups.count, kThreads));
  const int64_t band_h = rows_that_fit(c.h, bands, floats);
  if (band_h == 0) return false;
  c.band_h = whole(band_h);
  c.bands = whole(ceil_div(c.h, band_h));
  if (batch > kMostElements / c.bands) return false;
  c.groups = groups.count;
  c.padded = whole(groups.padded());
  c.taps = Divider(c.in.channels * c.kernel_h * kernel_w);
  c.plane = Divider(c.kernel_h * kernel_w);
  c.pairs = Divider(pairs);
  c.places = Divider(pairs * band_h);
  c.tile = tile(band_h);
  // Fewer items than threads would leave most of a processor idle. A part of less than three channels would
  // cost as much to add as it saves.
  const int64_t items = pairs * band_h * groups.count;
  c.items = Divider(items);
  c.parts = whole(std::max<int64_t>(1, std::min<int64_t>(kThreads / items, c.in.channels / 3)));
  const int64_t parts_floats = c.parts > 1 ? 2 * groups.size * kThreads : 0;
  const size_t nbytes = static_cast<size_t>(std::max(floats(band_h), parts_floats)) * sizeof(float);
  visit_sizes(groups, kernel_w, [&]<int kSize, int KW>() {
    start(context, blocks(batch * c.bands), static_cast<unsigned>(kThreads), nbytes, correlate<kSize, KW>, c);
  });
  return true;
}

// ---- weights
// -----------------------------------------------------------------------------------------------------------

/// Sums of a block over its bands of images, for each weight and bias. A thread has a row of the kernel for a
/// group of channels, and every `slices`-th row of a band; the lanes that share a row of the kernel are
/// neighbours.
struct WeightSums {
  Images input, grad;  ///< grad: the gradient of the output
  int padding_h, padding_w;
  int padded;                           ///< channels of grad in shared memory
  Divider groups, slices, kernel_rows;  ///< kernel_rows: of a channel
  Divider bands;                        ///< of an image
  int band_h;
  int tasks, tasks_left;            ///< bands of each block, and how many blocks have one more
  int grad_stride;                  ///< from row to row of grad in shared memory, in four floats
  Divider grad_places, grad_width;  ///< of a band, of a row
  Tile tile;
  float* sums;  ///< [blocks, kernel rows * KW + 1, padded], the last line for the bias
};

template <int kSize, int KW>
__global__ __launch_bounds__(kWeightThreads) void sum_weights(const WeightSums w) {
  TERN_DYNAMIC_SHARED(float4, shared);
  constexpr int kPadded = padded_size(kSize);
  // `shared` begins with the gradient of the output: [band_h, grad_stride] of [width, padded].
  float* tile = reinterpret_cast<float*>(shared + w.band_h * w.grad_stride);
  const uint32_t kernel_rows = w.input.channels * w.kernel_rows.divisor;
  const uint32_t item = w.slices.divide(threadIdx.x), slice = threadIdx.x - item * w.slices.divisor;
  const uint32_t kernel_row = w.groups.divide(item), group = item - kernel_row * w.groups.divisor;
  const uint32_t channel = w.kernel_rows.divide(kernel_row),
                 ky = kernel_row - channel * w.kernel_rows.divisor;
  const bool works = kernel_row < kernel_rows;
  float sums[(KW + 1) * kSize] = {};  // the last ones for the bias

  const int block = static_cast<int>(blockIdx.x);
  int task = block * w.tasks + min(block, w.tasks_left);
  for (const int end = task + w.tasks + (block < w.tasks_left ? 1 : 0); task < end; ++task) {
    const uint32_t image = w.bands.divide(task);
    const int first_row = static_cast<int>(task - image * w.bands.divisor) * w.band_h;
    const int rows = min(w.band_h, w.grad.h - first_row);
    __syncthreads();  // the band before may still be read
    w.tile.clear(tile);
    __syncthreads();
    const Images band = w.grad.from(image, first_row * w.grad.w);
    const int plane = w.grad.h * w.grad.w;
    const uint32_t places = w.grad_places.divisor;
    for (uint32_t i = threadIdx.x; i < w.groups.divisor * places; i += blockDim.x) {
      const uint32_t of = w.grad_places.divide(i), place = i - of * places;
      const uint32_t y = w.grad_width.divide(place), x = place - y * w.grad_width.divisor;
      if (static_cast<int>(y) >= rows) continue;
      const int from = of * kSize * plane + place, count = w.grad.channels - of * kSize;
      Group<kSize> read;
      read.gather(band.data + from, plane, count);
      if (band.relu_output) {
        Group<kSize> relu_output;
        relu_output.gather(band.relu_output + from, plane, count);
#pragma unroll
        for (int k = 0; k < kSize; ++k) read.at[k] = masked(read.at[k], relu_output.at[k]);
      }
      read.write(reinterpret_cast<float*>(shared + y * w.grad_stride) + x * w.padded + of * kPadded);
    }
    w.tile.read(tile, w.input, image, first_row - w.padding_h, w.padding_w);
    __syncthreads();
    if (!works) continue;
    for (int y = static_cast<int>(slice); y < rows; y += static_cast<int>(w.slices.divisor)) {
      const float* in = tile + (channel * w.tile.rows + y + ky) * w.tile.row_stride;
      const float* grad = reinterpret_cast<const float*>(shared + y * w.grad_stride) + group * kPadded;
      float window[KW];
#pragma unroll
      for (int kx = 1; kx < KW; ++kx) window[kx] = in[kx - 1];
      for (int x = 0; x < w.grad.w; ++x) {
        float g[kSize];
        read_group(g, grad + x * w.padded);
#pragma unroll
        for (int kx = 1; kx < KW; ++kx) window[kx - 1] = window[kx];
        window[KW - 1] = in[x + KW - 1];
#pragma unroll
        for (int k = 0; k < kSize; ++k) {
#pragma unroll
          for (int kx = 0; kx < KW; ++kx) sums[kx * kSize + k] += window[kx] * g[k];
        }
        if (kernel_row == 0) {
#pragma unroll
          for (int k = 0; k < kSize; ++k) sums[KW * kSize + k] += g[k];
        }
      }
    }
  }

  warp_reduce(sums, Plus(), static_cast<int>(w.slices.divisor));
  if (!works || slice != 0) return;
  float* line = w.sums + (int64_t{blockIdx.x} * (kernel_rows * KW + 1) + kernel_row * KW) * w.padded;
#pragma unroll
  for (int kx = 0; kx <= KW; ++kx) {
    if (kx == KW && kernel_row != 0) return;
    float* to = line + (kx < KW ? kx : kernel_rows * KW) * w.padded + group * kPadded;
#pragma unroll
    for (int k = 0; k < kSize; ++k) to[k] = sums[kx * kSize + k];
  }
}

constexpr int kAddColumns = 32, kAddRows = 32;  // of threads of a block

/// The sums of all blocks, to where they belong. Threads along y share a number.
__global__ void add_blocks(const float* sums, int count, int taps, int channels, int group_size, int padded,
                           float* weight, float* bias) {
  __shared__ float parts[kAddRows][kAddColumns];
  const int i = blockIdx.x * kAddColumns + threadIdx.x, numbers = taps * channels + channels;
  const int tap = i / channels, channel = i - tap * channels;
  const int group_padded = padded_size(group_size);
  const int place = channel / group_size * group_padded + channel % group_size;
  const bool wanted = i < numbers && (tap < taps ? weight : bias) != nullptr;
  if (wanted)
    parts[threadIdx.y][threadIdx.x] = sum_of<float>(threadIdx.y, count, kAddRows, [&](int64_t block) {
      return sums[(block * (taps + 1) + tap) * padded + place];
    });
  __syncthreads();
  if (!wanted || threadIdx.y != 0) return;
  const float sum = sum_of<float>(0, kAddRows, 1, [&](int64_t row) { return parts[row][threadIdx.x]; });
  if (tap < taps)
    weight[channel * taps + tap] = sum;
  else
    bias[channel] = sum;
}

bool is_small(const Conv2dShape& s, DType dtype) {
  const int64_t taps = s.in_channels * s.kernel_h * s.kernel_w;
  return dtype == DType::Float32 && s.groups == 1 && s.stride_h == 1 && s.stride_w == 1 &&
         s.dilation_h == 1 && s.dilation_w == 1 && (s.kernel_w == 3 || s.kernel_w == 5 || s.kernel_w == 7) &&
         s.kernel_h <= 7 && s.in_channels <= 32 && s.out_channels <= 32 && taps * s.out_channels <= 6400 &&
         std::max({s.in_h, s.in_w, s.out_h, s.out_w}) <= kMostRows;
}

}  // namespace

bool conv_directly(const LaunchContext& context, const Conv2dArgs& args) {
  return is_small(args.shape, args.dtype) &&
         correlate_all(context, correlation_of(args), args.shape.batch, args.shape.kernel_w);
}

bool conv_input_directly(const LaunchContext& context, const Conv2dBackwardArgs& args) {
  const Conv2dShape& s = args.shape;
  return is_small(s, args.dtype) && s.padding_h < s.kernel_h && s.padding_w < s.kernel_w &&
         correlate_all(context, correlation_of(args), s.batch, s.kernel_w);
}

bool conv_weight_directly(const LaunchContext& context, const Conv2dBackwardArgs& args) {
  const Conv2dShape& s = args.shape;
  if (!is_small(s, args.dtype)) return false;
  const Groups groups(s.out_channels);
  const int64_t padded = groups.padded(), items = s.in_channels * s.kernel_h * groups.count;
  // An odd stride from row to row, and one that differs by 16 bytes, lead lanes to banks of their own.
  const int64_t row_stride = (s.out_w + s.kernel_w - 1) | 1;
  const int64_t grad_stride = s.out_w * (padded / 4) + 1;
  const Images input{static_cast<const float*>(args.input), nullptr, whole(s.in_channels), whole(s.in_h),
                     whole(s.in_w)};
  const auto tile = [&](int64_t rows) { return Tile(input, rows + s.kernel_h - 1, row_stride); };
  const auto floats = [&](int64_t rows) { return tile(rows).floats() + 4 * rows * grad_stride; };
  const int64_t wanted = std::clamp<int64_t>(kWeightBlocks / s.batch, 1, s.out_h);
  const int64_t band_h = rows_that_fit(s.out_h, wanted, floats);
  if (band_h == 0) return false;
  const int64_t bands = ceil_div(s.out_h, band_h);
  int64_t slices = 1;
  while (slices < 32 && slices < band_h && items * slices * 2 <= kThreads) slices *= 2;
  // Threads without a row of the kernel help to fill the shared memory.
  const int64_t threads = std::max(kThreads, ceil_div(items * slices, 32) * 32);
  if (threads > kWeightThreads) return false;
  const int64_t taps = s.in_channels * s.kernel_h * s.kernel_w, tasks = s.batch * bands;
  if (tasks > kMostElements) return false;
  const int64_t count = std::min(tasks, kWeightBlocks);
  const Storage sums = workspace(context, static_cast<size_t>(count * (taps + 1) * padded) * sizeof(float));
  const WeightSums w{
      .input = input,
      .grad = {static_cast<const float*>(args.grad_output), static_cast<const float*>(args.relu_output),
               whole(s.out_channels), whole(s.out_h), whole(s.out_w)},
      .padding_h = whole(s.padding_h),
      .padding_w = whole(s.padding_w),
      .padded = whole(padded),
      .groups = Divider(groups.count),
      .slices = Divider(slices),
      .kernel_rows = Divider(s.kernel_h),
      .bands = Divider(bands),
      .band_h = whole(band_h),
      .tasks = whole(tasks / count),
      .tasks_left = whole(tasks % count),
      .grad_stride = whole(grad_stride),
      .grad_places = Divider(band_h * s.out_w),
      .grad_width = Divider(s.out_w),
      .tile = tile(band_h),
      .sums = static_cast<float*>(sums->data())};
  const size_t nbytes = static_cast<size_t>(floats(band_h)) * sizeof(float);
  visit_sizes(groups, s.kernel_w, [&]<int kSize, int KW>() {
    start(context, blocks(count), static_cast<unsigned>(threads), nbytes, sum_weights<kSize, KW>, w);
  });
  const dim3 block(kAddColumns, kAddRows);
  start(context, blocks(ceil_div((taps + 1) * s.out_channels, block.x)), block, 0, add_blocks, w.sums,
        whole(count), whole(taps), whole(s.out_channels), groups.size, whole(padded),
        static_cast<float*>(args.grad_weight), static_cast<float*>(args.grad_bias));
  return true;
}

}  // namespace tern::cuda_backend
