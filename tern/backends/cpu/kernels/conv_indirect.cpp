// Convolution by the matrix product's microkernel on a padded copy of the image: each tap reads the same
// pixels from another offset, so no patches are written (M. Dukhan, "The indirect convolution algorithm",
// 2019, with offsets in place of pointers). With strides the copy is cut into phases, see conv_phases.h.
#include <cstdint>
#include <limits>
#include <vector>

#include "tern/backends/cpu/kernels/conv_phases.h"
#include "tern/backends/cpu/kernels/scratch.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t L = kLanes<float>;
constexpr int64_t W = kTileColumns<float>;
/// Bytes of packed weights that one core keeps in its second-level cache.
constexpr int64_t kWeightBytes = 384 * 1024;

class IndirectConv {
 public:
  IndirectConv(const Correlation& c, const ForwardOperands<float>& x)
      : c_(c),
        x_(x),
        phases_(c),
        row_tiles_((c.out_c + kMaxRows - 1) / kMaxRows),
        columns_(phases_.columns()),
        panels_((columns_ + W - 1) / W) {
    depth_ = pass_depth<float>(c.depth());
    block_tiles_ =
        std::max<int64_t>(1, kWeightBytes / (kMaxRows * depth_ * static_cast<int64_t>(sizeof(float))));
    image_size_ = round_to_line<float>(c.in_c * phases_.channel_size());
    offsets_.reserve(static_cast<size_t>(c.depth()));
    for (int64_t channel = 0; channel < c.in_c; ++channel)
      for (int64_t ky = 0; ky < c.kernel_h; ++ky)
        for (int64_t kx = 0; kx < c.kernel_w; ++kx)
          offsets_.push_back(static_cast<int32_t>(channel * phases_.channel_size() + phases_.offset(ky, kx)));
  }

  void run() {
    const int64_t items = c_.batch * c_.groups, threads = threads_for(c_.work());
    const int64_t slots = std::min(threads, items), weights = c_.groups * c_.out_c * c_.depth();
    const Scratch<float> scratch(weights + slots * image_size_);
    float* const packed = scratch.get() + slots * image_size_;
    parallel_for(c_.groups * row_tiles_, std::max<int64_t>(1, 16384 / (kMaxRows * c_.depth())),
                 [&](int64_t begin, int64_t end) { pack_weights(begin, end, packed); });
    if (items >= threads) {
      parallel_for(slots, 1, [&](int64_t begin, int64_t end) {
        for (int64_t slot = begin; slot < end; ++slot) {
          float* image = scratch.get() + slot * image_size_;
          for (int64_t item = items * slot / slots; item < items * (slot + 1) / slots; ++item) {
            copy_channels(item, 0, c_.in_c, image);
            multiply(item, image, packed, 0, row_tiles_, 0, panels_);
          }
        }
      });
      return;
    }
    const Grid grid = share_tiles(threads, row_tiles_, panels_);
    for (int64_t item = 0; item < items; ++item) {
      parallel_for(c_.in_c, std::max<int64_t>(1, 16384 / phases_.size()),
                   [&](int64_t begin, int64_t end) { copy_channels(item, begin, end, scratch.get()); });
      parallel_for(grid.rows * grid.columns, 1, [&](int64_t begin, int64_t end) {
        for (int64_t s = begin; s < end; ++s) {
          const int64_t r = s / grid.columns, q = s % grid.columns;
          multiply(item, scratch.get(), packed, row_tiles_ * r / grid.rows, row_tiles_ * (r + 1) / grid.rows,
                   panels_ * q / grid.columns, panels_ * (q + 1) / grid.columns);
        }
      });
    }
  }

 private:
  int64_t first_row(int64_t tile) const { return c_.out_c * tile / row_tiles_; }

  /// packed: [group][pass][tile][k][row of the tile], tiles numbered through all groups.
  void pack_weights(int64_t begin, int64_t end, float* packed) const {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t group = t / row_tiles_, o = first_row(t % row_tiles_),
                    rows = first_row(t % row_tiles_ + 1) - o;
      const float* from = x_.weight + (group * c_.out_c + o) * c_.depth();
      for (int64_t k = 0; k < c_.depth(); k += depth_) {
        const int64_t depth = std::min(depth_, c_.depth() - k);
        pack_panel(from + k, c_.depth(), int64_t{1}, rows, depth,
                   packed + group * c_.out_c * c_.depth() + k * c_.out_c + o * depth);
      }
    }
  }

  /// Channels [begin, end) of image and group `item` to their phases.
  void copy_channels(int64_t item, int64_t begin, int64_t end, float* image) const {
    for (int64_t channel = begin; channel < end; ++channel)
      phases_.copy_channel(x_.input + (item * c_.in_c + channel) * c_.in_size(),
                           image + channel * phases_.channel_size());
  }

  void multiply(int64_t item, const float* image, const float* packed, int64_t first_tile, int64_t last_tile,
                int64_t first_panel, int64_t last_panel) const {
    const int64_t group = item % c_.groups, pixels = c_.out_size();
    float* output = x_.output + item * c_.out_c * pixels;
    packed += group * c_.out_c * c_.depth();
    alignas(64) float sums[kMaxRows * W];
    for (int64_t k = 0; k < c_.depth(); k += depth_) {
      const int64_t depth = std::min(depth_, c_.depth() - k);
      for (int64_t t0 = first_tile; t0 < last_tile; t0 += block_tiles_) {
        for (int64_t q = first_panel; q < last_panel; ++q) {
          const int64_t width = std::min(W, columns_ - q * W);
          for (int64_t t = t0; t < std::min(last_tile, t0 + block_tiles_); ++t) {
            const int64_t o = first_row(t), rows = first_row(t + 1) - o;
            Tile<float> tile;
            tile.k = depth;
            tile.a = packed + k * c_.out_c + o * depth;
            tile.a_row_stride = 1;
            tile.a_col_stride = rows;
            tile.b = image + q * W;
            tile.offsets = offsets_.data() + k;
            tile.c = sums;
            tile.c_row_stride = W;
            Epilogue<float> epilogue;
            if (k == 0 && x_.bias != nullptr) epilogue.row_bias = x_.bias + group * c_.out_c + o;
            run_tile<float, Indirect::B>(rows, width, tile, epilogue);
            store_tile(sums, rows, q * W, width, /*add=*/k > 0, x_.relu && k + depth == c_.depth(),
                       output + o * pixels);
          }
        }
      }
    }
  }

  /// Columns [column, column + width) of a tile to their places in the output, without those in the border.
  void store_tile(const float* sums, int64_t rows, int64_t column, int64_t width, bool add, bool last,
                  float* output) const {
    int64_t y = column / phases_.w, x = column % phases_.w;
    for (int64_t from = 0; from < width; ++y, x = 0) {
      const int64_t run = std::min(width - from, phases_.w - x), count = std::min(run, c_.out_w - x);
      for (int64_t i = 0; i < count; i += L) {
        const Tail<float> tail(std::min(L, count - i));
        const float* source = sums + from + i;
        float* to = output + y * c_.out_w + x + i;
        for (int64_t r = 0; r < rows; ++r, source += W, to += c_.out_size()) {
          Vec<float> v = tail.load(source);
          if (add) v += tail.load(to);
          tail.store(to, last ? relu<float>(v) : v);
        }
      }
      from += run;
    }
  }

  const Correlation& c_;
  const ForwardOperands<float>& x_;
  Phases phases_;
  int64_t row_tiles_;
  int64_t columns_;
  int64_t panels_;
  int64_t depth_ = 0;
  int64_t block_tiles_ = 0;
  int64_t image_size_ = 0;
  std::vector<int32_t> offsets_;
};

}  // namespace

double conv_indirect_cost(const Correlation& c) {
  const Phases phases(c);
  const int64_t image = c.in_c * phases.channel_size();
  if (c.depth() == 0 || image > INT32_MAX) return std::numeric_limits<double>::infinity();
  const double columns = static_cast<double>((phases.columns() + L - 1) / L * L);
  // As in conv_direct_cost, the way of a register of sums to the output takes about as long as six products.
  return columns * (static_cast<double>(c.depth()) + 6.0) * tile_rows_cost(c.out_c) +
         0.5 * static_cast<double>(image);
}

void conv_indirect(const Correlation& c, const ForwardOperands<float>& x) { IndirectConv(c, x).run(); }

}  // namespace tern::cpu::TERN_CPU_VARIANT
