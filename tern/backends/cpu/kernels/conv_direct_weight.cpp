// The gradient of a convolution's weights without patches: a tile of the matrix product's microkernel is
// input channels times output channels for one tap, and its sum over pixels reads the inputs one by one from
// padded copies of the images. Forward and the gradient of the input are in conv_direct.cpp.
#include <cstdint>
#include <vector>

#include "tern/backends/cpu/kernels/conv_phases.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/backends/cpu/kernels/transpose.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t L = kLanes<float>;
constexpr int64_t W = kTileColumns<float>;
/// Bytes of images and gradients that are laid out at a time.
constexpr int64_t kPartBytes = 4 * 1024 * 1024;

class DirectWeightGrad {
 public:
  DirectWeightGrad(const Correlation& c, const float* input, const float* grad_output)
      : c_(c),
        input_(input),
        grad_output_(grad_output),
        h_(c.reach_h()),
        w_(c.reach_w()),
        plane_(plane_step<float>(h_ * w_)),
        blocks_((c.out_c + W - 1) / W),
        tiles_((c.in_c + kMaxRows - 1) / kMaxRows) {}

  void run(float* grad_weight) const {
    const int64_t pixels = c_.out_size(), image_size = c_.groups * c_.in_c * plane_,
                  grad_size = c_.groups * blocks_ * W * pixels;
    // Not by the sizes above, which differ between instruction sets: the sums' order follows from it.
    const int64_t image_bytes =
        c_.groups * (c_.in_c * h_ * w_ + c_.out_c * pixels) * static_cast<int64_t>(sizeof(float));
    const int64_t images = std::clamp<int64_t>(kPartBytes / image_bytes, 1, c_.batch);
    const int64_t units = c_.groups * blocks_ * tiles_;
    const Scratch<float> scratch(images * (image_size + grad_size) + units * kMaxRows * c_.taps() * W);
    float* const grads = scratch.get() + images * image_size;
    float* const sums = grads + images * grad_size;
    std::vector<int32_t> offsets(static_cast<size_t>(images * pixels));
    for (size_t i = 0; i < offsets.size(); ++i) {
      const int64_t image = static_cast<int64_t>(i) / pixels, pixel = static_cast<int64_t>(i) % pixels;
      offsets[i] = static_cast<int32_t>(image * image_size + pixel / c_.out_w * c_.stride_h * w_ +
                                        pixel % c_.out_w * c_.stride_w);
    }
    const int64_t grain = threads_for(c_.work()) == 1 ? units * c_.taps() : 1;
    for (int64_t first = 0; first < c_.batch; first += images) {
      const int64_t count = std::min(images, c_.batch - first);
      parallel_for(count * c_.groups * c_.in_c, std::max<int64_t>(1, 16384 / plane_),
                   [&](int64_t begin, int64_t end) { copy_channels(first, begin, end, scratch.get()); });
      parallel_for(c_.groups * blocks_ * count, std::max<int64_t>(1, 16384 / (W * pixels)),
                   [&](int64_t begin, int64_t end) { turn_gradients(first, count, begin, end, grads); });
      parallel_for(units * c_.taps(), grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end;) {
          const int64_t unit = i / c_.taps(), tap = i % c_.taps(), taps = std::min(end - i, c_.taps() - tap);
          add_products(unit, tap, tap + taps, count * pixels, first == 0, offsets.data(), scratch.get(),
                       grads, sums + unit * kMaxRows * c_.taps() * W);
          i += taps;
        }
      });
    }
    parallel_for(units, std::max<int64_t>(1, 32768 / (kMaxRows * c_.taps() * W)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t unit = begin; unit < end; ++unit)
                     store_sums(unit, sums + unit * kMaxRows * c_.taps() * W, grad_weight);
                 });
  }

 private:
  int64_t lanes_of(int64_t block) const { return std::min(W, c_.out_c - block * W); }
  int64_t block_width(int64_t block) const { return (lanes_of(block) + L - 1) / L * L; }

  /// Input channels [first, first + rows) of a group, times a block of its output channels.
  struct Unit {
    int64_t group, block, first, rows;
  };
  Unit unit_at(int64_t i) const {
    const int64_t tile = i % tiles_, first = c_.in_c * tile / tiles_;
    return {i / tiles_ / blocks_, i / tiles_ % blocks_, first, c_.in_c * (tile + 1) / tiles_ - first};
  }

  /// Channels [begin, end), numbered through the images from `first` on, with their padding.
  void copy_channels(int64_t first, int64_t begin, int64_t end, float* to) const {
    to += begin * plane_;
    for (int64_t i = begin; i < end; ++i, to += plane_)
      copy_padded(input_ + (first * c_.groups * c_.in_c + i) * c_.in_size(), c_.in_h, c_.in_w, c_.pad_h,
                  c_.pad_w, h_, w_, to);
  }

  /// to: [group][block][image][pixel][output channel of the block], zero for channels that do not exist.
  void turn_gradients(int64_t first, int64_t images, int64_t begin, int64_t end, float* to) const {
    const int64_t pixels = c_.out_size();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i % images, group = i / images / blocks_, block = i / images % blocks_;
      const int64_t lanes = lanes_of(block), width = block_width(block);
      const float* from =
          grad_output_ + (((first + image) * c_.groups + group) * c_.out_c + block * W) * pixels;
      float* out = to + (i / images * images * W + image * width) * pixels;
      if (lanes < width) std::fill_n(out, width * pixels, 0.0f);
      for (int64_t p = 0; p < pixels; p += L)
        for (int64_t lane = 0; lane < lanes; lane += L)
          transpose_block(from + lane * pixels + p, pixels, std::min(L, lanes - lane),
                          std::min(L, pixels - p), out + p * width + lane, width);
    }
  }

  /// Adds the products over `pixels` to the unit's sums [input channel][tap][output channel], for some taps.
  void add_products(int64_t i, int64_t first_tap, int64_t last_tap, int64_t pixels, bool start,
                    const int32_t* offsets, const float* images, const float* grads, float* sums) const {
    const Unit unit = unit_at(i);
    const int64_t width = block_width(unit.block), depth = pass_depth<float>(pixels);
    images += (unit.group * c_.in_c + unit.first) * plane_;
    grads += i / tiles_ * W * pixels;
    Tile<float> tile;
    tile.a_row_stride = plane_;
    tile.a_second_half = (unit.rows + 1) / 2 * plane_;
    tile.b_row_stride = width;
    tile.c_row_stride = c_.taps() * width;
    for (int64_t p = 0; p < pixels; p += depth) {
      tile.k = std::min(depth, pixels - p);
      tile.offsets = offsets + p;
      tile.b = grads + p * width;
      for (int64_t tap = first_tap; tap < last_tap; ++tap) {
        tile.a = images + tap / c_.kernel_w * c_.dilation_h * w_ + tap % c_.kernel_w * c_.dilation_w;
        tile.c = sums + tap * width;
        Epilogue<float> epilogue;
        epilogue.addend = start && p == 0 ? nullptr : tile.c;
        epilogue.addend_row_stride = tile.c_row_stride;
        run_whole_tile<Indirect::A>(unit.rows, width, tile, epilogue);
      }
    }
  }

  void store_sums(int64_t i, const float* sums, float* grad_weight) const {
    const Unit unit = unit_at(i);
    const int64_t lanes = lanes_of(unit.block), width = block_width(unit.block),
                  count = unit.rows * c_.taps();
    grad_weight += (unit.group * c_.out_c + unit.block * W) * c_.depth() + unit.first * c_.taps();
    for (int64_t lane = 0; lane < lanes; lane += L)
      for (int64_t q = 0; q < count; q += L)
        transpose_block(sums + q * width + lane, width, std::min(L, count - q), std::min(L, lanes - lane),
                        grad_weight + lane * c_.depth() + q, c_.depth());
  }

  const Correlation& c_;
  const float* input_;
  const float* grad_output_;
  int64_t h_, w_;  ///< of a padded image
  int64_t plane_;  ///< from one padded channel to the next
  int64_t blocks_, tiles_;
};

}  // namespace

bool conv_suits_direct_backward_weight(const Correlation& c) {
  const int64_t image = c.groups * (c.in_c + 1) * (c.reach_h() * c.reach_w() + 32);
  // Tiles need channels, the sums' way to the weights needs pixels that pay for it, and 1 x 1 kernels use
  // turned gradients only once for each tile of channels.
  return c.in_c >= 8 && c.out_c >= 8 && c.batch * c.out_size() >= 256 &&
         (c.taps() > 1 || c.out_c <= c.in_c) && image <= INT32_MAX;
}

void conv_direct_backward_weight(const Correlation& c, const float* input, const float* grad_output,
                                 float* grad_weight) {
  DirectWeightGrad(c, input, grad_output).run(grad_weight);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
