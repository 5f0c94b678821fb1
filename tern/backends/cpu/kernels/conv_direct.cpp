// Convolution without patches: a tile of the matrix product's microkernel is neighbouring outputs times
// output channels, and its outputs read their inputs one by one from a padded copy of the image, wherever
// strides and dilation put them. The gradient of the input is the same on the gradients: with strides, one
// pass for each residue of the input's rows and columns, with the taps that meet it. The gradient of the
// weights is in conv_direct_weight.cpp.
#include <cstdint>
#include <limits>
#include <vector>

#include "tern/backends/cpu/kernels/conv_phases.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/backends/cpu/kernels/transpose.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t L = kLanes<float>;
constexpr int64_t W = kTileColumns<float>;
/// Outputs that go through all products of a tile of channels together, and bytes of the images they read.
constexpr int64_t kStripPixels = 1024;
constexpr int64_t kStripBytes = 512 * 1024;

/// Outputs of one image that have the same taps.
struct Pass {
  std::vector<int64_t> reads{};    ///< places of the taps in a padded channel, for the first output
  std::vector<int64_t> weights{};  ///< their elements of a kernel
  bool weights_in_order = false;   ///< those of all input channels lie as they are read
  int64_t out_h = 0, out_w = 0;
  int64_t first = 0, row_stride = 0, column_stride = 1;  ///< of the outputs in their plane
  int64_t packed = 0;                                    ///< where its packed weights start
  std::vector<int32_t> offsets{};                        ///< of all input channels and taps
};

/// What is computed, out of which the passes are made.
struct Direct {
  int64_t batch, groups;
  int64_t in_c, in_h, in_w;
  int64_t top, left, h, w;  ///< the image's place in the padded one (may be outside), and the size of that
  int64_t step_h, step_w;   ///< from one output to the next, in the padded image
  int64_t out_c, out_size;
  int64_t taps;
  int64_t lane_stride, channel_stride;  ///< of the weights, for output and input channels of a group
  double work;
  std::vector<Pass> passes{};
};

Direct forward_plan(const Correlation& c) {
  Direct d{.batch = c.batch,
           .groups = c.groups,
           .in_c = c.in_c,
           .in_h = c.in_h,
           .in_w = c.in_w,
           .top = c.pad_h,
           .left = c.pad_w,
           .h = c.reach_h(),
           .w = c.reach_w(),
           .step_h = c.stride_h,
           .step_w = c.stride_w,
           .out_c = c.out_c,
           .out_size = c.out_size(),
           .taps = c.taps(),
           .lane_stride = c.depth(),
           .channel_stride = c.taps(),
           .work = c.work()};
  Pass pass{.weights_in_order = true, .out_h = c.out_h, .out_w = c.out_w, .row_stride = c.out_w};
  for (int64_t ky = 0; ky < c.kernel_h; ++ky) {
    for (int64_t kx = 0; kx < c.kernel_w; ++kx) {
      pass.reads.push_back(ky * c.dilation_h * d.w + kx * c.dilation_w);
      pass.weights.push_back(ky * c.kernel_w + kx);
    }
  }
  d.passes.push_back(std::move(pass));
  return d;
}

/// One dimension of the gradient of the input: input pixels i = stride * t + residue - pad for t in
/// [first, last] get tap k from the gradient at t - (k * dilation - residue) / stride.
struct Residue {
  int64_t first, last;
  Residue(int64_t residue, int64_t stride, int64_t pad, int64_t in_size)
      : first(std::max<int64_t>(pad - residue + stride - 1, 0) / stride),
        last(in_size - 1 + pad < residue ? -1 : (in_size - 1 + pad - residue) / stride) {}
};

/// The gradient of the input of `c`.
Direct backward_plan(const Correlation& c) {
  const int64_t reach_h = (c.kernel_h - 1) * c.dilation_h / c.stride_h,
                reach_w = (c.kernel_w - 1) * c.dilation_w / c.stride_w;
  // The least first and greatest last output of all residues.
  const int64_t first_y = c.pad_h / c.stride_h, last_y = (c.in_h - 1 + c.pad_h) / c.stride_h,
                first_x = c.pad_w / c.stride_w, last_x = (c.in_w - 1 + c.pad_w) / c.stride_w;
  Direct d{.batch = c.batch,
           .groups = c.groups,
           .in_c = c.out_c,
           .in_h = c.out_h,
           .in_w = c.out_w,
           .top = reach_h - first_y,
           .left = reach_w - first_x,
           .h = last_y - first_y + reach_h + 1,
           .w = last_x - first_x + reach_w + 1,
           .step_h = 1,
           .step_w = 1,
           .out_c = c.in_c,
           .out_size = c.in_size(),
           .taps = c.taps(),
           .lane_stride = c.taps(),
           .channel_stride = c.depth(),
           .work = c.work()};
  for (int64_t ry = 0; ry < c.stride_h; ++ry) {
    for (int64_t rx = 0; rx < c.stride_w; ++rx) {
      const Residue y(ry, c.stride_h, c.pad_h, c.in_h), x(rx, c.stride_w, c.pad_w, c.in_w);
      if (y.last < y.first || x.last < x.first) continue;
      Pass pass{.out_h = y.last - y.first + 1,
                .out_w = x.last - x.first + 1,
                .first = (c.stride_h * y.first + ry - c.pad_h) * c.in_w + c.stride_w * x.first + rx - c.pad_w,
                .row_stride = c.stride_h * c.in_w,
                .column_stride = c.stride_w};
      for (int64_t ky = c.kernel_h; ky-- > 0;) {
        if (ky * c.dilation_h % c.stride_h != ry) continue;
        const int64_t row = y.first - first_y + reach_h - (ky * c.dilation_h - ry) / c.stride_h;
        for (int64_t kx = c.kernel_w; kx-- > 0;) {
          if (kx * c.dilation_w % c.stride_w != rx) continue;
          pass.reads.push_back(row * d.w + x.first - first_x + reach_w -
                               (kx * c.dilation_w - rx) / c.stride_w);
          pass.weights.push_back(ky * c.kernel_w + kx);
        }
      }
      d.passes.push_back(std::move(pass));
    }
  }
  return d;
}

class DirectConv {
 public:
  DirectConv(Direct plan, const ForwardOperands<float>& x)
      : d_(std::move(plan)),
        x_(x),
        blocks_((d_.out_c + W - 1) / W),
        padded_c_((blocks_ - 1) * W + block_width(blocks_ - 1)),
        plane_(plane_step<float>(d_.h * d_.w)),
        image_size_(round_to_line<float>(d_.in_c * plane_)) {
    for (Pass& pass : d_.passes) {
      pass.packed = packed_size_;
      packed_size_ += d_.groups * padded_c_ * depth(pass);
      for (int64_t channel = 0; channel < d_.in_c; ++channel)
        for (const int64_t read : pass.reads)
          pass.offsets.push_back(static_cast<int32_t>(channel * plane_ + read));
    }
  }

  void run() {
    const int64_t threads = threads_for(d_.work);
    const int64_t image_bytes = image_size_ * static_cast<int64_t>(sizeof(float));
    const int64_t joint =
        std::clamp<int64_t>(std::min(kStripBytes / image_bytes, kStripPixels / d_.out_size), 1, d_.batch);
    const int64_t parts =
        std::min(d_.batch, ((d_.batch + joint - 1) / joint + threads - 1) / threads * threads);
    const int64_t images = (d_.batch + parts - 1) / parts, items = parts * d_.groups;
    const bool each_alone = items % threads == 0 || items >= 4 * threads;
    const int64_t slots = each_alone ? std::min(threads, items) : 1;

    const Scratch<float> scratch(packed_size_ + slots * images * image_size_);
    float* const packed = scratch.get() + slots * images * image_size_;
    parallel_for(d_.groups * blocks_, std::max<int64_t>(1, 16384 / (W * d_.in_c * d_.taps)),
                 [&](int64_t begin, int64_t end) {
                   for (const Pass& pass : d_.passes) pack_weights(pass, begin, end, packed + pass.packed);
                 });
    if (each_alone) {
      parallel_for(slots, 1, [&](int64_t begin, int64_t end) {
        const Scratch<float> sums(kStripPixels * W);
        for (int64_t slot = begin; slot < end; ++slot) {
          float* image = scratch.get() + slot * images * image_size_;
          for (int64_t i = items * slot / slots; i < items * (slot + 1) / slots; ++i) {
            const Item item = item_at(i, parts);
            copy_channels(item, 0, item.images * d_.in_c, image);
            for (const Pass& pass : d_.passes) {
              const Tiles tiles(pass, item.images);
              const int64_t step = strip_tiles();
              for (int64_t t = 0; t < tiles.count; t += step)
                for (int64_t block = 0; block < blocks_; ++block)
                  multiply(pass, item, tiles, t, std::min(tiles.count, t + step), block, image,
                           packed + pass.packed, sums.get());
            }
          }
        }
      });
      return;
    }
    for (int64_t i = 0; i < items; ++i) {
      const Item item = item_at(i, parts);
      parallel_for(item.images * d_.in_c, std::max<int64_t>(1, 16384 / (d_.h * d_.w)),
                   [&](int64_t begin, int64_t end) { copy_channels(item, begin, end, scratch.get()); });
      for (const Pass& pass : d_.passes) {
        const Tiles tiles(pass, item.images);
        const int64_t step = std::clamp<int64_t>(tiles.count * blocks_ / (4 * threads), 1, strip_tiles());
        parallel_for((tiles.count + step - 1) / step * blocks_, 1, [&](int64_t begin, int64_t end) {
          const Scratch<float> sums(kStripPixels * W);
          for (int64_t s = begin; s < end; ++s) {
            const int64_t t = s / blocks_ * step;
            multiply(pass, item, tiles, t, std::min(tiles.count, t + step), s % blocks_, scratch.get(),
                     packed + pass.packed, sums.get());
          }
        });
      }
    }
  }

 private:
  /// Images of one group that are computed together.
  struct Item {
    int64_t group, first_image, images;
  };
  Item item_at(int64_t i, int64_t parts) const {
    const int64_t part = i / d_.groups, first = d_.batch * part / parts;
    return {i % d_.groups, first, d_.batch * (part + 1) / parts - first};
  }

  /// The outputs of an item, numbered through its images and rows, in tiles: parts of a row, or two whole
  /// rows.
  struct Tiles {
    int64_t out_w, pixels, parts, count;
    Tiles(const Pass& pass, int64_t images)
        : out_w(pass.out_w),
          pixels(images * pass.out_h * pass.out_w),
          parts(2 * out_w <= kMaxRows ? 0 : (out_w + kMaxRows - 1) / kMaxRows),
          count(parts == 0 ? (images * pass.out_h + 1) / 2 : images * pass.out_h * parts) {}
    int64_t first_pixel(int64_t tile) const {
      if (parts == 0) return std::min(2 * tile * out_w, pixels);
      return tile / parts * out_w + out_w * (tile % parts) / parts;
    }
  };
  int64_t strip_tiles() const {
    const int64_t tile_bytes =
        kMaxRows * d_.step_h * d_.step_w * d_.in_c * static_cast<int64_t>(sizeof(float));
    return std::clamp<int64_t>(kStripBytes / tile_bytes, 8, kStripPixels / kMaxRows);
  }

  int64_t depth(const Pass& pass) const { return d_.in_c * static_cast<int64_t>(pass.reads.size()); }
  int64_t lanes_of(int64_t block) const { return std::min(W, d_.out_c - block * W); }
  int64_t block_width(int64_t block) const { return (lanes_of(block) + L - 1) / L * L; }

  /// packed: [group][block][input channel][tap][output channel of the block], zero for channels that do not
  /// exist.
  void pack_weights(const Pass& pass, int64_t begin, int64_t end, float* packed) const {
    std::vector<float> turned(static_cast<size_t>(d_.taps * W));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / blocks_, block = i % blocks_, lanes = lanes_of(block),
                    width = block_width(block);
      const float* from = x_.weight + group * d_.out_c * d_.in_c * d_.taps + block * W * d_.lane_stride;
      float* to = packed + (group * padded_c_ + block * W) * depth(pass);
      const auto turn = [&](int64_t count, float* out) {
        if (lanes < width) std::fill_n(out, count * width, 0.0f);
        for (int64_t lane = 0; lane < lanes; lane += L)
          for (int64_t t = 0; t < count; t += L)
            transpose_block(from + lane * d_.lane_stride + t, d_.lane_stride, std::min(L, lanes - lane),
                            std::min(L, count - t), out + t * width + lane, width);
      };
      if (pass.weights_in_order) {
        turn(depth(pass), to);
        continue;
      }
      for (int64_t channel = 0; channel < d_.in_c; ++channel, from += d_.channel_stride) {
        turn(d_.taps, turned.data());
        for (const int64_t t : pass.weights) to = std::copy_n(turned.data() + t * width, width, to);
      }
    }
  }

  /// Channels [begin, end), numbered through the images of an item, with their padding.
  void copy_channels(const Item& item, int64_t begin, int64_t end, float* images) const {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / d_.in_c, channel = i % d_.in_c;
      const int64_t plane = ((item.first_image + image) * d_.groups + item.group) * d_.in_c + channel;
      copy_padded(x_.input + plane * d_.in_h * d_.in_w, d_.in_h, d_.in_w, d_.top, d_.left, d_.h, d_.w,
                  images + image * image_size_ + channel * plane_);
    }
  }

  /// Tiles [first, last) of an item times one block of output channels.
  void multiply(const Pass& pass, const Item& item, const Tiles& tiles, int64_t first, int64_t last,
                int64_t block, const float* image, const float* packed, float* sums) const {
    const int64_t lanes = lanes_of(block), width = block_width(block), total = depth(pass);
    const int64_t first_channel = item.group * d_.out_c + block * W, first_pixel = tiles.first_pixel(first);
    packed += (item.group * padded_c_ + block * W) * total;
    alignas(64) float bias[W] = {};
    if (x_.bias != nullptr) std::copy_n(x_.bias + first_channel, lanes, bias);

    Tile<float> tile;
    tile.a_row_stride = d_.step_w;
    tile.b_row_stride = width;
    tile.c_row_stride = width;
    const int64_t step = pass_depth<float>(total);
    int64_t k = 0;
    do {  // once where an output has no taps too
      tile.k = std::min(step, total - k);
      tile.b = packed + k * width;
      tile.offsets = pass.offsets.data() + k;
      for (int64_t t = first; t < last; ++t) {
        const int64_t pixel = tiles.first_pixel(t), rows = tiles.first_pixel(t + 1) - pixel;
        tile.a = image + place(pass, pixel);
        tile.a_second_half = rows > tiles.out_w ? place(pass, pixel + tiles.out_w) - place(pass, pixel)
                                                : (rows + 1) / 2 * d_.step_w;
        tile.c = sums + (pixel - first_pixel) * width;
        Epilogue<float> epilogue;
        epilogue.addend = k > 0 ? tile.c : x_.bias != nullptr ? bias : nullptr;
        epilogue.addend_row_stride = k > 0 ? width : 0;
        epilogue.relu = x_.relu && k + tile.k == total;
        run_whole_tile<Indirect::A>(rows, width, tile, epilogue);
      }
      k += step;
    } while (k < total);
    store_outputs(pass, first_pixel, tiles.first_pixel(last), sums, width, lanes,
                  x_.output + (item.first_image * d_.groups * d_.out_c + first_channel) * d_.out_size);
  }

  /// Where the output `pixel` of an item reads.
  int64_t place(const Pass& pass, int64_t pixel) const {
    const int64_t row = pixel / pass.out_w, x = pixel % pass.out_w;
    return row / pass.out_h * image_size_ + row % pass.out_h * d_.step_h * d_.w + x * d_.step_w;
  }

  /// Outputs [pixel, end) of an item, sums [output][channel], to their places.
  void store_outputs(const Pass& pass, int64_t pixel, int64_t end, const float* sums, int64_t width,
                     int64_t lanes, float* output) const {
    const bool whole = pass.column_stride == 1 && pass.row_stride == pass.out_w;
    const int64_t run = whole ? pass.out_h * pass.out_w : pass.out_w;
    alignas(64) float turned[L * L];
    while (pixel < end) {
      const int64_t row = pixel / pass.out_w, count = std::min(end - pixel, run - pixel % run);
      float* out = output + row / pass.out_h * d_.groups * d_.out_c * d_.out_size + pass.first +
                   row % pass.out_h * pass.row_stride + pixel % pass.out_w * pass.column_stride;
      for (int64_t lane = 0; lane < lanes; lane += L) {
        const int64_t channels = std::min(L, lanes - lane);
        float* to = out + lane * d_.out_size;
        for (int64_t p = 0; p < count; p += L) {
          const int64_t columns = std::min(L, count - p);
          if (pass.column_stride == 1) {
            transpose_block(sums + p * width + lane, width, columns, channels, to + p, d_.out_size);
            continue;
          }
          transpose_block(sums + p * width + lane, width, columns, channels, turned, L);
          for (int64_t c = 0; c < channels; ++c)
            for (int64_t i = 0; i < columns; ++i)
              to[c * d_.out_size + (p + i) * pass.column_stride] = turned[c * L + i];
        }
      }
      sums += count * width;
      pixel += count;
    }
  }

  Direct d_;
  const ForwardOperands<float>& x_;
  int64_t blocks_;  ///< tiles of output channels
  int64_t padded_c_;
  int64_t plane_;  ///< from one padded channel to the next
  int64_t image_size_;
  int64_t packed_size_ = 0;
};

}  // namespace

double conv_direct_cost(const Correlation& c) {
  const int64_t image = c.in_c * plane_step<float>(c.reach_h() * c.reach_w());
  if (c.depth() == 0 || image > INT32_MAX) return std::numeric_limits<double>::infinity();
  const int64_t vectors = (c.out_c + L - 1) / L, tile_vectors = std::min<int64_t>(vectors, kTileVectors);
  const int64_t rows = 2 * c.out_w <= kMaxRows ? 2 : 1, parts = (rows * c.out_w + kMaxRows - 1) / kMaxRows;
  // A tile takes at least as long as its sums wait for each other.
  const double tile = static_cast<double>(std::max(rows * c.out_w * tile_vectors, 8 * parts)) /
                      static_cast<double>(rows * tile_vectors);
  return static_cast<double>(c.depth() * c.out_h * vectors) * tile +
         6.0 * static_cast<double>(c.out_size() * vectors) + 0.25 * static_cast<double>(image) +
         4.0 * static_cast<double>(c.depth() * vectors) / static_cast<double>(c.batch);
}

void conv_direct(const Correlation& c, const ForwardOperands<float>& x) {
  DirectConv(forward_plan(c), x).run();
}

void conv_direct_backward_input(const Correlation& c, const float* grad_output, const float* weight,
                                float* grad_input) {
  DirectConv(backward_plan(c), {grad_output, weight, nullptr, grad_input, /*relu=*/false}).run();
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
