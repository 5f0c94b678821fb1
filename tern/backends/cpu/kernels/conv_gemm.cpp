// Convolution as a matrix product: patches of the images are packed straight into the panels that the product
// reads. Which shapes come here is decided in conv.cpp.
#include <type_traits>

#include "tern/backends/cpu/kernels/conv_paths.h"
#include "tern/backends/cpu/kernels/loops.h"
#include "tern/backends/cpu/kernels/scratch.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// to[0, count) = from[0, count) in the compute type.
template <class T>
[[gnu::always_inline]] inline void copy_run(const T* from, int64_t count, Compute<T>* to) {
  if constexpr (std::is_same_v<T, Compute<T>>) {
    constexpr int64_t L = kLanes<T>;
    for (; count >= L; count -= L, from += L, to += L) store(to, load(from));
    if (count > 0) {
      const Tail<T> tail(count);
      tail.store(to, tail.load(from));
    }
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Compute<T>>(from[i]);
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
  using C = Compute<T>;

  Patches(const Correlation& c, const T* input, int64_t first_image, int64_t image_stride)
      : c_(c), input_(input + first_image * image_stride), image_stride_(image_stride) {}

  /// The run that starts at a column, at most `limit` long.
  Run run_at(int64_t column, int64_t limit) const {
    const int64_t size = c_.out_size(), image = column / size, pixel = column % size, y = pixel / c_.out_w,
                  x = pixel % c_.out_w;
    return {image, y, x, std::min(limit, c_.out_w - x)};
  }

  /// to[i] = patches[row, run + i].
  [[gnu::always_inline]] void copy(int64_t channel, int64_t ky, int64_t kx, const Run& run, C* to) const {
    const int64_t y = run.y * c_.stride_h - c_.pad_h + ky * c_.dilation_h;
    if (y < 0 || y >= c_.in_h) {
      std::fill_n(to, run.count, C(0));
      return;
    }
    const T* row = input_ + run.image * image_stride_ + (channel * c_.in_h + y) * c_.in_w;
    const int64_t x = run.x * c_.stride_w - c_.pad_w + kx * c_.dilation_w;
    if (c_.stride_w == 1) {
      const int64_t before = std::clamp<int64_t>(-x, 0, run.count);
      const int64_t inside = std::clamp<int64_t>(c_.in_w - x, before, run.count);
      for (int64_t i = 0; i < before; ++i) to[i] = C(0);
      copy_run(row + x + before, inside - before, to + before);
      for (int64_t i = inside; i < run.count; ++i) to[i] = C(0);
      return;
    }
    for (int64_t i = 0, from = x; i < run.count; ++i, from += c_.stride_w)
      to[i] = from >= 0 && from < c_.in_w ? static_cast<C>(row[from]) : C(0);
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
class PatchColumns final : public Packer<Compute<T>> {
 public:
  explicit PatchColumns(const Patches<T>& patches) : patches_(patches) {}

  void pack(int64_t first, int64_t width, int64_t k_first, int64_t k_count, Compute<T>* to) const override {
    Run runs[kTileColumns<Compute<T>>];
    int64_t run_count = 0;
    for (int64_t i = 0; i < width;) {
      runs[run_count] = patches_.run_at(first + i, width - i);
      i += runs[run_count++].count;
    }
    patches_.for_each_row(k_first, k_count, [&](int64_t r, int64_t channel, int64_t ky, int64_t kx) {
      Compute<T>* out = to + r * width;
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
class PatchRows final : public Packer<Compute<T>> {
 public:
  explicit PatchRows(const Patches<T>& patches) : patches_(patches) {}

  void pack(int64_t first, int64_t width, int64_t k_first, int64_t k_count, Compute<T>* to) const override {
    using C = Compute<T>;
    constexpr int64_t kChunk = 64;
    alignas(64) C rows[kTileColumns<C> * kChunk];
    Run runs[kChunk];
    for (int64_t p = 0; p < k_count; p += kChunk) {
      const int64_t count = std::min(kChunk, k_count - p);
      int64_t run_count = 0;
      for (int64_t i = 0; i < count;) {
        runs[run_count] = patches_.run_at(k_first + p + i, count - i);
        i += runs[run_count++].count;
      }
      patches_.for_each_row(first, width, [&](int64_t r, int64_t channel, int64_t ky, int64_t kx) {
        C* out = rows + r * kChunk;
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
class PixelRows final : public Packer<Compute<T>> {
 public:
  PixelRows(const T* from, int64_t pixels, int64_t image_stride)
      : from_(from), pixels_(pixels), image_stride_(image_stride) {}

  void pack(int64_t first, int64_t width, int64_t k_first, int64_t k_count, Compute<T>* to) const override {
    for (int64_t p = 0; p < k_count;) {
      const int64_t image = (k_first + p) / pixels_, pixel = (k_first + p) % pixels_;
      const int64_t count = std::min(k_count - p, pixels_ - pixel);
      const T* from = from_ + image * image_stride_ + first * pixels_ + pixel;
      if constexpr (std::is_same_v<T, Compute<T>>) {
        pack_panel(from, pixels_, int64_t{1}, width, count, to + p * width);
      } else {
        for (int64_t i = 0; i < width; ++i)
          for (int64_t q = 0; q < count; ++q)
            to[(p + q) * width + i] = static_cast<Compute<T>>(from[i * pixels_ + q]);
      }
      p += count;
    }
  }

 private:
  const T* from_;
  int64_t pixels_;
  int64_t image_stride_;
};

/// `count` elements in the compute type: the array itself, or a copy in `wide`.
template <class T>
const Compute<T>* widened(const T* from, int64_t count, const Scratch<Compute<T>>& wide) {
  if constexpr (std::is_same_v<T, Compute<T>>) {
    return from;
  } else {
    if (from != nullptr) copy_run(from, count, wide.get());
    return from != nullptr ? wide.get() : nullptr;
  }
}
template <class T>
int64_t widened_size(int64_t count) {
  return std::is_same_v<T, Compute<T>> ? 0 : count;
}

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
  using C = Compute<T>;
  const int64_t pixels = c.out_size(), depth = c.depth(), weights = c.groups * c.out_c * depth;
  const int64_t in_stride = c.groups * c.in_c * c.in_size(), out_stride = c.groups * c.out_c * pixels;
  const Scratch<C> wide_weight(widened_size<T>(weights)), wide_bias(widened_size<T>(c.groups * c.out_c));
  const C* weight = widened(x.weight, weights, wide_weight);
  const C* bias = widened(x.bias, c.groups * c.out_c, wide_bias);

  Gemm<C> product{.m = c.out_c, .k = depth, .a_row_stride = depth, .a_col_stride = 1};
  product.epilogue.relu = x.relu;
  const auto select_group = [&](Gemm<C>& g, int64_t group) {
    g.a = weight + group * c.out_c * depth;
    g.epilogue.row_bias = bias != nullptr ? bias + group * c.out_c : nullptr;
  };

  if (std::is_same_v<T, C> && (c.batch == 1 || pixels >= kSmallImage)) {
    if constexpr (std::is_same_v<T, C>) {
      const bool plain = c.taps() == 1 && c.stride_h == 1 && c.stride_w == 1 && c.pad_h == 0 && c.pad_w == 0;
      const auto images = [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t image = i / c.groups, group = i % c.groups;
          Gemm<C> g = product;
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
    }
    return;
  }

  const int64_t joint = std::clamp<int64_t>(kJointColumns / std::max<int64_t>(pixels, 1), 1, c.batch);
  const Scratch<C> sums(c.out_c * joint * pixels);
  for (int64_t first = 0; first < c.batch; first += joint) {
    const int64_t images = std::min(joint, c.batch - first);
    for (int64_t group = 0; group < c.groups; ++group) {
      Gemm<C> g = product;
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
                       const C* from = sums.get() + channel * g.n + image * pixels;
                       T* to = out + image * out_stride + channel * pixels;
                       for (int64_t p = 0; p < pixels; ++p) to[p] = static_cast<T>(from[p]);
                     }
                   });
    }
  }
}

template <class T>
void conv_gemm_backward_weight(const Correlation& c, const WeightGradOperands<T>& x) {
  using C = Compute<T>;
  const int64_t pixels = c.out_size(), depth = c.depth();
  const int64_t in_stride = c.groups * c.in_c * c.in_size(), out_stride = c.groups * c.out_c * pixels;
  // An empty batch has no data to point into.
  const int64_t in_group = c.batch == 0 ? 0 : c.in_c * c.in_size();
  const int64_t out_group = c.batch == 0 ? 0 : c.out_c * pixels;
  const Scratch<C> sums(widened_size<T>(c.out_c * depth));
  for (int64_t group = 0; group < c.groups && x.grad_weight != nullptr; ++group) {
    const Patches<T> patches(c, x.input + group * in_group, 0, in_stride);
    const PatchRows<T> columns(patches);
    const PixelRows<T> rows(x.grad_output + group * out_group, pixels, out_stride);
    T* out = x.grad_weight + group * c.out_c * depth;
    Gemm<C> g{.m = c.out_c,
              .n = depth,
              .k = c.batch * pixels,
              .c_row_stride = depth,
              .pack_a = &rows,
              .pack_b = &columns};
    if constexpr (std::is_same_v<T, C>) {
      g.c = out;
      gemm(g);
    } else {
      g.c = sums.get();
      gemm(g);
      for (int64_t i = 0; i < c.out_c * depth; ++i) out[i] = static_cast<T>(sums.get()[i]);
    }
  }
  if (x.grad_bias == nullptr) return;
  const int64_t channels = c.groups * c.out_c;
  parallel_for(channels, std::max<int64_t>(1, 32768 / std::max<int64_t>(c.batch * pixels, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t channel = begin; channel < end; ++channel) {
                   C total = 0;
                   for (int64_t image = 0; image < c.batch; ++image) {
                     const T* from = x.grad_output + image * out_stride + channel * pixels;
                     C partial[8] = {};
                     int64_t p = 0;
                     for (; p + 8 <= pixels; p += 8)
                       for (int64_t i = 0; i < 8; ++i) partial[i] += static_cast<C>(from[p + i]);
                     for (; p < pixels; ++p) partial[0] += static_cast<C>(from[p]);
                     total += ((partial[0] + partial[1]) + (partial[2] + partial[3])) +
                              ((partial[4] + partial[5]) + (partial[6] + partial[7]));
                   }
                   x.grad_bias[channel] = static_cast<T>(total);
                 }
               });
}

template <class T>
void conv_gemm_backward_input(const Correlation& c, const T* grad_output, const T* weight, T* grad_input) {
  using C = Compute<T>;
  const int64_t pixels = c.out_size(), depth = c.depth(), weights = c.groups * c.out_c * depth;
  const int64_t grads = c.out_c * pixels, ins = c.in_c * c.in_size();
  const Scratch<C> wide_weight(widened_size<T>(weights));
  const C* w = widened(weight, weights, wide_weight);

  // Adds the patches of one channel into its plane.
  const auto add_patches = [&](const C* patches, int64_t channel, C* plane) {
    std::fill_n(plane, c.in_size(), C(0));
    const C* from = patches + channel * c.taps() * pixels;
    for (int64_t ky = 0; ky < c.kernel_h; ++ky) {
      for (int64_t kx = 0; kx < c.kernel_w; ++kx, from += pixels) {
        for (int64_t oy = 0; oy < c.out_h; ++oy) {
          const int64_t y = oy * c.stride_h - c.pad_h + ky * c.dilation_h;
          if (y < 0 || y >= c.in_h) continue;
          const C* row = from + oy * c.out_w;
          C* to = plane + y * c.in_w;
          for (int64_t ox = 0, px = kx * c.dilation_w - c.pad_w; ox < c.out_w; ++ox, px += c.stride_w)
            if (px >= 0 && px < c.in_w) to[px] += row[ox];
        }
      }
    }
  };
  const auto image_group = [&](int64_t i, C* patches, C* plane, bool share_channels) {
    const int64_t group = i % c.groups;
    const T* from = grad_output + i * grads;
    T* to = grad_input + i * ins;
    Gemm<C> g{.m = depth,
              .n = pixels,
              .k = c.out_c,
              .a = w + group * c.out_c * depth,
              .a_row_stride = 1,
              .a_col_stride = depth,
              .c = patches,
              .c_row_stride = pixels};
    C* wide = plane + c.in_size();
    if constexpr (std::is_same_v<T, C>) {
      g.b = from;
    } else {
      copy_run(from, grads, wide);
      g.b = wide;
    }
    g.b_row_stride = pixels;
    g.b_col_stride = 1;
    gemm(g);
    const auto channels = [&](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel) {
        if constexpr (std::is_same_v<T, C>) {
          add_patches(patches, channel, to + channel * c.in_size());
        } else {
          add_patches(patches, channel, plane);
          for (int64_t p = 0; p < c.in_size(); ++p) to[channel * c.in_size() + p] = static_cast<T>(plane[p]);
        }
      }
    };
    if (share_channels)
      parallel_for(c.in_c, std::max<int64_t>(1, 32768 / std::max<int64_t>(c.taps() * pixels, 1)), channels);
    else
      channels(0, c.in_c);
  };

  const int64_t total = c.batch * c.groups, threads = threads_for(c.work());
  const int64_t share = round_to_line<C>(depth * pixels + c.in_size() + widened_size<T>(grads));
  const int64_t slots = std::min(threads, total);
  const Scratch<C> scratch(share * slots);
  if (total < threads) {
    for (int64_t i = 0; i < total; ++i)
      image_group(i, scratch.get(), scratch.get() + depth * pixels, /*share_channels=*/std::is_same_v<T, C>);
    return;
  }
  parallel_for(slots, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      C* patches = scratch.get() + slot * share;
      for (int64_t i = total * slot / slots; i < total * (slot + 1) / slots; ++i)
        image_group(i, patches, patches + depth * pixels, /*share_channels=*/false);
    }
  });
}

#define TERN_INSTANTIATE(T)                                                                  \
  template void conv_gemm(const Correlation&, const ForwardOperands<T>&);                    \
  template void conv_gemm_backward_weight(const Correlation&, const WeightGradOperands<T>&); \
  template void conv_gemm_backward_input(const Correlation&, const T*, const T*, T*);
TERN_INSTANTIATE(float)
TERN_INSTANTIATE(double)
TERN_INSTANTIATE(Half)
TERN_INSTANTIATE(BFloat16)
#undef TERN_INSTANTIATE

}  // namespace tern::cpu::TERN_CPU_VARIANT
