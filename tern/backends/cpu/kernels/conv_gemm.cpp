// Convolution as a matrix product: patches of the images are packed straight into the panels that the product
// reads. Which shapes come here is decided in conv.cpp.
#include "tern/backends/cpu/kernels/conv_paths.h"
#include "tern/backends/cpu/kernels/scratch.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// to[0, count) = from[0, count).
template <class T>
[[gnu::always_inline]] inline void copy_run(const T* from, int64_t count, T* to) {
  constexpr int64_t L = kLanes<T>;
  for (; count >= L; count -= L, from += L, to += L) store(to, load(from));
  if (count > 0) {
    const Tail<T> tail(count);
    tail.store(to, tail.load(from));
  }
}

/// Outputs side by side in one row of one image.
struct Run {
  int64_t image, y, x, count;
};

/// The matrix of patches of one group: rows (channel, kernel row, kernel column), columns (image, output row,
/// output column).
template <class T>
class Patches {
 public:
  Patches(const Correlation& c, const T* input, int64_t first_image, int64_t image_stride)
      : c_(c), input_(input + first_image * image_stride), image_stride_(image_stride) {}

  /// The run that starts at a column, at most `limit` long.
  Run run_at(int64_t column, int64_t limit) const {
    const int64_t size = c_.out_size(), image = column / size, pixel = column % size, y = pixel / c_.out_w,
                  x = pixel % c_.out_w;
    return {image, y, x, std::min(limit, c_.out_w - x)};
  }

  /// to[i] = patches[row, run + i].
  [[gnu::always_inline]] void copy(int64_t channel, int64_t ky, int64_t kx, const Run& run, T* to) const {
    const int64_t y = run.y * c_.stride_h - c_.pad_h + ky * c_.dilation_h;
    if (y < 0 || y >= c_.in_h) {
      std::fill_n(to, run.count, T(0));
      return;
    }
    const T* row = input_ + run.image * image_stride_ + (channel * c_.in_h + y) * c_.in_w;
    const int64_t x = run.x * c_.stride_w - c_.pad_w + kx * c_.dilation_w;
    if (c_.stride_w == 1) {
      const int64_t before = std::clamp<int64_t>(-x, 0, run.count);
      const int64_t inside = std::clamp<int64_t>(c_.in_w - x, before, run.count);
      for (int64_t i = 0; i < before; ++i) to[i] = T(0);
      copy_run(row + x + before, inside - before, to + before);
      for (int64_t i = inside; i < run.count; ++i) to[i] = T(0);
      return;
    }
    for (int64_t i = 0, from = x; i < run.count; ++i, from += c_.stride_w)
      to[i] = from >= 0 && from < c_.in_w ? row[from] : T(0);
  }

  /// Calls f(row number, channel, kernel row, kernel column) for rows [first, first + count).
  template <class F>
  [[gnu::always_inline]] void for_each_row(int64_t first, int64_t count, const F& f) const {
    int64_t kx = first % c_.kernel_w, ky = first / c_.kernel_w % c_.kernel_h, channel = first / c_.taps();
    for (int64_t r = 0; r < count; ++r) {
      f(r, channel, ky, kx);
      if (++kx < c_.kernel_w) continue;
      kx = 0;
      if (++ky < c_.kernel_h) continue;
      ky = 0;
      ++channel;
    }
  }

 private:
  const Correlation& c_;
  const T* input_;
  int64_t image_stride_;
};

/// Patches as the right operand of the forward product.
template <class T>
class PatchColumns final : public Packer<T> {
 public:
  explicit PatchColumns(const Patches<T>& patches) : patches_(patches) {}

  void pack(int64_t first, int64_t width, int64_t k_first, int64_t k_count, T* to) const override {
    Run runs[kTileColumns<T>];
    int64_t run_count = 0;
    for (int64_t i = 0; i < width;) {
      runs[run_count] = patches_.run_at(first + i, width - i);
      i += runs[run_count++].count;
    }
    patches_.for_each_row(k_first, k_count, [&](int64_t r, int64_t channel, int64_t ky, int64_t kx) {
      T* out = to + r * width;
      for (int64_t i = 0; i < run_count; ++i) {
        patches_.copy(channel, ky, kx, runs[i], out);
        out += runs[i].count;
      }
    });
  }

 private:
  const Patches<T>& patches_;
};

/// Patches turned round: the right operand of the product that gives the gradient of the weights.
template <class T>
class PatchRows final : public Packer<T> {
 public:
  explicit PatchRows(const Patches<T>& patches) : patches_(patches) {}

  void pack(int64_t first, int64_t width, int64_t k_first, int64_t k_count, T* to) const override {
    constexpr int64_t kChunk = 64;
    alignas(64) T rows[kTileColumns<T> * kChunk];
    Run runs[kChunk];
    for (int64_t p = 0; p < k_count; p += kChunk) {
      const int64_t count = std::min(kChunk, k_count - p);
      int64_t run_count = 0;
      for (int64_t i = 0; i < count;) {
        runs[run_count] = patches_.run_at(k_first + p + i, count - i);
        i += runs[run_count++].count;
      }
      patches_.for_each_row(first, width, [&](int64_t r, int64_t channel, int64_t ky, int64_t kx) {
        T* out = rows + r * kChunk;
        for (int64_t i = 0; i < run_count; ++i) {
          patches_.copy(channel, ky, kx, runs[i], out);
          out += runs[i].count;
        }
      });
      pack_panel(rows, kChunk, int64_t{1}, width, count, to + p * width);
    }
  }

 private:
  const Patches<T>& patches_;
};

/// A matrix whose columns (k) run over the pixels of one image after the other.
template <class T>
class PixelRows final : public Packer<T> {
 public:
  PixelRows(const T* from, int64_t pixels, int64_t image_stride)
      : from_(from), pixels_(pixels), image_stride_(image_stride) {}

  void pack(int64_t first, int64_t width, int64_t k_first, int64_t k_count, T* to) const override {
    for (int64_t p = 0; p < k_count;) {
      const int64_t image = (k_first + p) / pixels_, pixel = (k_first + p) % pixels_;
      const int64_t count = std::min(k_count - p, pixels_ - pixel);
      const T* from = from_ + image * image_stride_ + first * pixels_ + pixel;
      pack_panel(from, pixels_, int64_t{1}, width, count, to + p * width);
      p += count;
    }
  }

 private:
  const T* from_;
  int64_t pixels_;
  int64_t image_stride_;
};

/// Columns of several small images that are multiplied together.
constexpr int64_t kJointColumns = 3072;
/// Images with fewer outputs are joined, so that no panel is cut off at the end of each.
constexpr int64_t kSmallImage = 512;

}  // namespace

double conv_gemm_cost(const Correlation& c) {
  const double pixels =
      static_cast<double>(c.batch > 1 && c.out_size() < kSmallImage
                              ? c.out_size()
                              : (c.out_size() + kLanes<float> - 1) / kLanes<float> * kLanes<float>);
  const double runs =
      pixels / static_cast<double>(c.out_w) + pixels / static_cast<double>(kTileColumns<float>);
  return static_cast<double>(c.depth()) * (pixels * (tile_rows_cost(c.out_c) + 0.3) + 8.0 * runs);
}

template <class T>
void conv_gemm(const Correlation& c, const ForwardOperands<T>& x) {
  const int64_t pixels = c.out_size(), depth = c.depth();
  const int64_t in_stride = c.groups * c.in_c * c.in_size(), out_stride = c.groups * c.out_c * pixels;

  Gemm<T> product{.m = c.out_c, .k = depth, .a_row_stride = depth, .a_col_stride = 1};
  product.epilogue.relu = x.relu;
  const auto select_group = [&](Gemm<T>& g, int64_t group) {
    g.a = x.weight + group * c.out_c * depth;
    g.epilogue.row_bias = x.bias != nullptr ? x.bias + group * c.out_c : nullptr;
  };

  if (c.batch == 1 || pixels >= kSmallImage) {
    const bool plain = c.taps() == 1 && c.stride_h == 1 && c.stride_w == 1 && c.pad_h == 0 && c.pad_w == 0;
    const auto images = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / c.groups, group = i % c.groups;
        Gemm<T> g = product;
        select_group(g, group);
        g.n = pixels;
        g.c = x.output + image * out_stride + group * c.out_c * pixels;
        g.c_row_stride = pixels;
        const T* input = x.input + image * in_stride + group * c.in_c * c.in_size();
        const Patches<T> patches(c, input, 0, in_stride);
        const PatchColumns<T> columns(patches);
        if (plain) {
          g.b = input;
          g.b_row_stride = pixels;
          g.b_col_stride = 1;
        } else {
          g.pack_b = &columns;
        }
        gemm(g);
      }
    };
    if (c.batch * c.groups < threads_for(c.work()))
      images(0, c.batch * c.groups);
    else
      parallel_for(c.batch * c.groups,
                   static_cast<int64_t>(std::max(
                       1.0, kWorkPerThread / (c.work() / static_cast<double>(c.batch * c.groups) + 1.0))),
                   images);
    return;
  }

  const int64_t joint = std::clamp<int64_t>(kJointColumns / std::max<int64_t>(pixels, 1), 1, c.batch);
  const Scratch<T> sums(c.out_c * joint * pixels);
  for (int64_t first = 0; first < c.batch; first += joint) {
    const int64_t images = std::min(joint, c.batch - first);
    for (int64_t group = 0; group < c.groups; ++group) {
      Gemm<T> g = product;
      select_group(g, group);
      const Patches<T> patches(c, x.input + group * c.in_c * c.in_size(), first, in_stride);
      const PatchColumns<T> columns(patches);
      g.n = images * pixels;
      g.pack_b = &columns;
      g.c = sums.get();
      g.c_row_stride = g.n;
      gemm(g);
      T* out = x.output + first * out_stride + group * c.out_c * pixels;
      parallel_for(images * c.out_c, std::max<int64_t>(1, 32768 / std::max<int64_t>(pixels, 1)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t image = i / c.out_c, channel = i % c.out_c;
                       const T* from = sums.get() + channel * g.n + image * pixels;
                       T* to = out + image * out_stride + channel * pixels;
                       std::copy_n(from, pixels, to);
                     }
                   });
    }
  }
}

template <class T>
void conv_gemm_backward_weight(const Correlation& c, const T* input, const T* grad_output, T* grad_weight) {
  const int64_t pixels = c.out_size(), depth = c.depth();
  const int64_t in_stride = c.groups * c.in_c * c.in_size(), out_stride = c.groups * c.out_c * pixels;
  // An empty batch has no data to point into.
  const int64_t in_group = c.batch == 0 ? 0 : c.in_c * c.in_size();
  const int64_t out_group = c.batch == 0 ? 0 : c.out_c * pixels;
  for (int64_t group = 0; group < c.groups; ++group) {
    const Patches<T> patches(c, input + group * in_group, 0, in_stride);
    const PatchRows<T> columns(patches);
    const PixelRows<T> rows(grad_output + group * out_group, pixels, out_stride);
    gemm(Gemm<T>{.m = c.out_c,
                 .n = depth,
                 .k = c.batch * pixels,
                 .c = grad_weight + group * c.out_c * depth,
                 .c_row_stride = depth,
                 .pack_a = &rows,
                 .pack_b = &columns});
  }
}

template <class T>
void conv_gemm_backward_input(const Correlation& c, const T* grad_output, const T* weight, T* grad_input) {
  const int64_t pixels = c.out_size(), depth = c.depth();
  const int64_t grads = c.out_c * pixels, ins = c.in_c * c.in_size();

  // Adds the patches of one channel into its plane.
  const auto add_patches = [&](const T* patches, int64_t channel, T* plane) {
    std::fill_n(plane, c.in_size(), T(0));
    const T* from = patches + channel * c.taps() * pixels;
    for (int64_t ky = 0; ky < c.kernel_h; ++ky) {
      for (int64_t kx = 0; kx < c.kernel_w; ++kx, from += pixels) {
        for (int64_t oy = 0; oy < c.out_h; ++oy) {
          const int64_t y = oy * c.stride_h - c.pad_h + ky * c.dilation_h;
          if (y < 0 || y >= c.in_h) continue;
          const T* row = from + oy * c.out_w;
          T* to = plane + y * c.in_w;
          for (int64_t ox = 0, px = kx * c.dilation_w - c.pad_w; ox < c.out_w; ++ox, px += c.stride_w)
            if (px >= 0 && px < c.in_w) to[px] += row[ox];
        }
      }
    }
  };
  const auto image_group = [&](int64_t i, T* patches, bool share_channels) {
    const int64_t group = i % c.groups;
    T* to = grad_input + i * ins;
    gemm(Gemm<T>{.m = depth,
                 .n = pixels,
                 .k = c.out_c,
                 .a = weight + group * c.out_c * depth,
                 .a_row_stride = 1,
                 .a_col_stride = depth,
                 .b = grad_output + i * grads,
                 .b_row_stride = pixels,
                 .b_col_stride = 1,
                 .c = patches,
                 .c_row_stride = pixels});
    const auto channels = [&](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel)
        add_patches(patches, channel, to + channel * c.in_size());
    };
    if (share_channels)
      parallel_for(c.in_c, std::max<int64_t>(1, 32768 / std::max<int64_t>(c.taps() * pixels, 1)), channels);
    else
      channels(0, c.in_c);
  };

  const int64_t total = c.batch * c.groups, threads = threads_for(c.work());
  const int64_t share = round_to_line<T>(depth * pixels), slots = std::min(threads, total);
  const Scratch<T> scratch(share * slots);
  if (total < threads) {
    for (int64_t i = 0; i < total; ++i) image_group(i, scratch.get(), /*share_channels=*/true);
    return;
  }
  parallel_for(slots, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot)
      for (int64_t i = total * slot / slots; i < total * (slot + 1) / slots; ++i)
        image_group(i, scratch.get() + slot * share, /*share_channels=*/false);
  });
}

#define TERN_INSTANTIATE(T)                                                            \
  template void conv_gemm(const Correlation&, const ForwardOperands<T>&);              \
  template void conv_gemm_backward_weight(const Correlation&, const T*, const T*, T*); \
  template void conv_gemm_backward_input(const Correlation&, const T*, const T*, T*);
TERN_INSTANTIATE(float)
TERN_INSTANTIATE(double)
#undef TERN_INSTANTIATE

}  // namespace tern::cpu::TERN_CPU_VARIANT
