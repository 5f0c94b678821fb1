// Images and volumes read at the places of a grid, and the gradients. Channels lie side by side while they
// are worked on, so that a place and its weights are found once for a register of them: rows of inputs are
// turned before, results after. Argument structs are in tern/kernels/grid_sample.h.
#include "tern/kernels/grid_sample.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/backends/cpu/kernels/transpose.h"
#include "tern/backends/cpu/kernels/widen.h"
#include "tern/base/parallel.h"
#include "tern/device/launch.h"
#include "tern/kernels/grid_sample_axis.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t kGridPoints = 128;    // that are worked on at a time, at most
constexpr int64_t kGridEntries = 1024;  // taps of that many
/// Bytes of turned inputs and of sums that one thread works on: they stay in its cache.
constexpr int64_t kGridBytes = int64_t{1} << 20;
/// Multiply-adds that are not worth a second thread.
constexpr int64_t kGridWork = 65536;

// ---- channels side by side

/// So many channels, as one register. One is a plain number.
template <class C, int n>
struct GridLanes {
  using Row = typename TransposeRow<C, n>::type;
  using Unaligned = typename TransposeRow<C, n>::unaligned;
  [[gnu::always_inline]] static Row load(const C* from) { return *reinterpret_cast<const Unaligned*>(from); }
  [[gnu::always_inline]] static void store(C* to, Row row) { *reinterpret_cast<Unaligned*>(to) = row; }
  [[gnu::always_inline]] static C sum(const C* from) {
    C parts[n];
    for (int i = 0; i < n; ++i) parts[i] = from[i];
    for (int half = n / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) parts[i] += parts[i + half];
    return parts[0];
  }
};
template <class C>
struct GridLanes<C, 1> {
  using Row = C;
  template <class E>
  [[gnu::always_inline]] static C load(const E* from) {
    return static_cast<C>(*from);
  }
  [[gnu::always_inline]] static void store(C* to, C row) { *to = row; }
  [[gnu::always_inline]] static C sum(const C* from) { return *from; }
};

template <class C>
alignas(64) constexpr C kGridZeros[kGridPoints] = {};

/// to[p * n + i] = rows[i][p] for p < count.
template <class C, int n>
void turn_to_pixels(const C* const* rows, int64_t count, C* to) {
  using Lanes = GridLanes<C, n>;
  int64_t p = 0;
  for (; p + n <= count; p += n) {
    typename Lanes::Row r[n];
    TERN_UNROLL for (int i = 0; i < n; ++i) r[i] = Lanes::load(rows[i] + p);
    transpose_registers(r);
    TERN_UNROLL for (int i = 0; i < n; ++i) Lanes::store(to + (p + i) * n, r[i]);
  }
  for (; p < count; ++p)
    for (int i = 0; i < n; ++i) to[p * n + i] = rows[i][p];
}

/// The other way, for the first `used` rows.
template <class C, int n>
void turn_to_rows(const C* from, int64_t count, C* const* rows, int64_t used) {
  using Lanes = GridLanes<C, n>;
  int64_t p = 0;
  for (; p + n <= count; p += n) {
    typename Lanes::Row r[n];
    TERN_UNROLL for (int i = 0; i < n; ++i) r[i] = Lanes::load(from + (p + i) * n);
    transpose_registers(r);
    TERN_UNROLL for (int i = 0; i < n; ++i) {
      if (i < used) Lanes::store(rows[i] + p, r[i]);
    }
  }
  for (; p < count; ++p)
    for (int64_t i = 0; i < used; ++i) rows[i][p] = from[p * n + i];
}

// ---- taps

/// The taps of neighbouring points. Number p of tap t is at p + t * step.
template <class C>
struct GridTile {
  int64_t count = 0, taps = 0, step = 0;
  alignas(64) int64_t place[kGridEntries];  ///< in a plane; -1: outside
  alignas(64) C weight[kGridEntries];
  alignas(64) C slope[3][kGridEntries];  ///< of the weights, along x, y and z, where asked for

  static int64_t most_points(int64_t taps) { return std::min(kGridPoints, kGridEntries / taps); }
};

/// Those of points along one axis.
template <class C, int kAlong>
struct AxisTile {
  alignas(64) int32_t place[kAlong][kGridPoints];
  alignas(64) C weight[kAlong][kGridPoints];
  alignas(64) C slope[kAlong][kGridPoints];
};

template <class C, GridMode mode, GridPadding padding>
[[gnu::noinline]] void find_along(const GridAxis<C>& given, const C* coordinates, int64_t count,
                                  AxisTile<C, grid_taps(mode)>& to) {
  const GridAxis<C> axis = given;
#pragma GCC ivdep
  for (int64_t p = 0; p < count; ++p) {
    GridTaps<C, grid_taps(mode)> taps;
    axis.template find<mode>(coordinates[p], padding, taps);
    // A loop would keep the outer one from being vectorised.
    [&]<int... i>(std::integer_sequence<int, i...>) {
      ((to.place[i][p] = taps.place[i]), ...);
      ((to.weight[i][p] = taps.weight[i]), ...);
      ((to.slope[i][p] = taps.slope[i]), ...);
    }
    (std::make_integer_sequence<int, grid_taps(mode)>());
  }
}
template <class C, GridMode mode>
void find_along(const GridAxis<C>& axis, const C* coordinates, int64_t count,
                AxisTile<C, grid_taps(mode)>& to) {
  switch (axis.padding()) {
    case GridPadding::Zeros:
      return find_along<C, mode, GridPadding::Zeros>(axis, coordinates, count, to);
    case GridPadding::Border:
      return find_along<C, mode, GridPadding::Border>(axis, coordinates, count, to);
    case GridPadding::Reflection:
      return find_along<C, mode, GridPadding::Reflection>(axis, coordinates, count, to);
  }
}

/// The taps of `tile.count` points from those along the axes. I numbers the elements of a plane.
template <class I, class C, int kAlong, bool slopes, bool volumes>
[[gnu::noinline]] void join_axes(const GridPlan& plan, const AxisTile<C, kAlong> (&along)[3],
                                 GridTile<C>& tile) {
  const AxisTile<C, kAlong>&x = along[0], &y = along[1], &z = along[2];
  const I h = static_cast<I>(plan.h), w = static_cast<I>(plan.w);
  const int64_t count = tile.count;
  int64_t e = 0;
  for (int k = 0; k < (volumes ? kAlong : 1); ++k)
    for (int j = 0; j < kAlong; ++j)
      for (int i = 0; i < kAlong; ++i, e += tile.step)
#pragma GCC ivdep
        for (int64_t p = 0; p < count; ++p) {
          const int32_t column = x.place[i][p], row = y.place[j][p], depth = volumes ? z.place[k][p] : 0;
          const I place = (static_cast<I>(depth) * h + static_cast<I>(row)) * w + static_cast<I>(column);
          tile.place[e + p] = (column | row | depth) < 0 ? -1 : static_cast<int64_t>(place);
          const C far = volumes ? z.weight[k][p] : C(1);
          const C of_x = x.weight[i][p], of_y = y.weight[j][p];
          tile.weight[e + p] = of_x * (of_y * far);
          if constexpr (slopes) {
            tile.slope[0][e + p] = x.slope[i][p] * (of_y * far);
            tile.slope[1][e + p] = of_x * (y.slope[j][p] * far);
            if constexpr (volumes) tile.slope[2][e + p] = of_x * (of_y * z.slope[k][p]);
          }
        }
}

template <class C, GridMode mode, bool slopes>
void find_taps(const GridPlan& plan, const GridAxes<C>& axes, const C* coordinates, GridTile<C>& tile) {
  constexpr int kAlong = grid_taps(mode);
  AxisTile<C, kAlong> along[3];
  alignas(64) C apart[3][kGridPoints];
  const auto join = [&]<bool volumes>() {
    constexpr int rank = volumes ? 3 : 2;
    for (int64_t p = 0; p < tile.count; ++p)
      TERN_UNROLL for (int k = 0; k < rank; ++k) apart[k][p] = coordinates[p * rank + k];
    find_along<C, mode>(axes.x, apart[0], tile.count, along[0]);
    find_along<C, mode>(axes.y, apart[1], tile.count, along[1]);
    if (volumes) find_along<C, mode>(axes.z, apart[2], tile.count, along[2]);
    // Products of 32 bits are faster.
    if (plan.plane() <= INT32_MAX)
      join_axes<int32_t, C, kAlong, slopes, volumes>(plan, along, tile);
    else
      join_axes<int64_t, C, kAlong, slopes, volumes>(plan, along, tile);
  };
  plan.volumes ? join.template operator()<true>() : join.template operator()<false>();
}

// ---- what is done with a tile and n channels

/// out[p, :] = sum over taps of weight * pixels[place, :]. kTaps: how many; 0: what the tile says.
template <class C, int n, int kTaps, class E>
[[gnu::noinline]] void gather_taps(const GridTile<C>& tile, const E* pixels, C* out) {
  using Lanes = GridLanes<C, n>;
  const E zeros[n] = {};
  const int64_t step = tile.step;
  const auto pixel = [&](int64_t e) {
    const int64_t place = tile.place[e];
    return Lanes::load(place < 0 ? zeros : pixels + place * n);
  };
  for (int64_t p = 0; p < tile.count; ++p) {
    typename Lanes::Row sum{};
    if constexpr (kTaps == 1) {
      sum = pixel(p);
    } else if constexpr (kTaps > 1) {
      TERN_UNROLL for (int t = 0; t < kTaps; ++t) sum += pixel(p + t * step) * tile.weight[p + t * step];
    } else {
      for (int64_t e = p; e < tile.taps * step; e += step) sum += pixel(e) * tile.weight[e];
    }
    Lanes::store(out + p * n, sum);
  }
}
template <class C, int n, class E>
void gather_pixels(const GridTile<C>& tile, const E* pixels, C* out) {
  if (tile.taps == 1) return gather_taps<C, n, 1>(tile, pixels, out);
  if (tile.taps == 4) return gather_taps<C, n, 4>(tile, pixels, out);
  gather_taps<C, n, 0>(tile, pixels, out);
}

/// sums[place, :] += weight * grad[p, :], point after point.
template <class C, int n>
[[gnu::noinline]] void scatter_pixels(const GridTile<C>& tile, const C* grad, C* sums) {
  using Lanes = GridLanes<C, n>;
  const int64_t all = tile.taps * tile.step, step = tile.step;
  for (int64_t p = 0; p < tile.count; ++p) {
    const typename Lanes::Row g = Lanes::load(grad + p * n);
    for (int64_t e = p; e < all; e += step)
      if (const int64_t place = tile.place[e]; place >= 0)
        Lanes::store(sums + place * n, Lanes::load(sums + place * n) + g * tile.weight[e]);
  }
}

/// sums[k, p, :] += grad[p, :] * (sum over taps of slope[k] * pixels[place, :]) for the axes k.
template <class C, int n, int rank, class E>
[[gnu::noinline]] void sum_slopes(const GridTile<C>& tile, const E* pixels, const C* grad, C* sums) {
  using Lanes = GridLanes<C, n>;
  const E zeros[n] = {};
  const int64_t all = tile.taps * tile.step, step = tile.step;
  for (int64_t p = 0; p < tile.count; ++p) {
    typename Lanes::Row sum[rank] = {};
    for (int64_t e = p; e < all; e += step) {
      const int64_t place = tile.place[e];
      const auto pixel = Lanes::load(place < 0 ? zeros : pixels + place * n);
      TERN_UNROLL for (int k = 0; k < rank; ++k) sum[k] += pixel * tile.slope[k][e];
    }
    const typename Lanes::Row g = Lanes::load(grad + p * n);
    TERN_UNROLL for (int k = 0; k < rank; ++k) {
      C* to = sums + (k * kGridPoints + p) * n;
      Lanes::store(to, Lanes::load(to) + g * sum[k]);
    }
  }
}

// ---- the kernels

/// Planes are worked on in blocks of n channels. With n = 1 they are read where they are.
template <class T, int n>
class GridPasses {
 public:
  using C = Compute<T>;
  using E = std::conditional_t<n == 1, T, C>;  ///< of pixels

  GridPasses(const GridPlan& plan, bool backward)
      : plan_(plan),
        axes_(plan, backward),
        blocks_((plan.channels + n - 1) / n),
        tile_(GridTile<C>::most_points(plan.taps())),
        tiles_((plan.points + tile_ - 1) / tile_) {}

  void sample(const T* input, T* output) const {
    for_images(input, [&](int64_t image, int64_t t, const E* pixels, GridTile<C>& tile, Rows& rows) {
      find<false>(image, t, tile);
      alignas(64) C results[kGridPoints * n];
      for (int64_t b = 0; b < blocks_; ++b) {
        gather_pixels<C, n>(tile, pixels + b * n * plan_.plane(), results);
        write(results, tile.count, output + (image * plan_.channels + b * n) * plan_.points + t * tile_,
              plan_.points, used(b), rows);
      }
    });
  }

  void gradient_of_grid(const T* grad, const T* input, T* grad_grid) const {
    const int rank = plan_.rank();
    for_images(input, [&](int64_t image, int64_t t, const E* pixels, GridTile<C>& tile, Rows& rows) {
      find<true>(image, t, tile);
      alignas(64) C turned[kGridPoints * n];
      alignas(64) C sums[3 * kGridPoints * n] = {};
      for (int64_t b = 0; b < blocks_; ++b) {
        const C* g = read(grad + (image * plan_.channels + b * n) * plan_.points + t * tile_, tile.count,
                          plan_.points, used(b), turned, rows);
        const E* from = pixels + b * n * plan_.plane();
        plan_.volumes ? sum_slopes<C, n, 3>(tile, from, g, sums) : sum_slopes<C, n, 2>(tile, from, g, sums);
      }
      T* to = grad_grid + (image * plan_.points + t * tile_) * rank;
      for (int64_t p = 0; p < tile.count; ++p)
        for (int k = 0; k < rank; ++k)
          to[p * rank + k] = static_cast<T>(GridLanes<C, n>::sum(sums + (k * kGridPoints + p) * n));
    });
  }

  /// Threads share out images and blocks, each of which is summed in the order of the points.
  void gradient_of_input(const T* grad, T* grad_input) const {
    const int64_t plane = plan_.plane(), units = plan_.batch * blocks_;
    const int64_t at_once = std::clamp<int64_t>(
        std::min(kGridBytes / (plane * n * static_cast<int64_t>(sizeof(C))), units / (2 * num_threads())), 1,
        blocks_);
    const int64_t groups = (blocks_ + at_once - 1) / at_once,
                  work = at_once * n * plan_.points * plan_.taps();
    parallel_for(
        plan_.batch * groups, std::max<int64_t>(1, kGridWork / work), [&](int64_t begin, int64_t end) {
          constexpr bool in_place = n == 1 && !kWidened<T>;
          const Scratch<C> memory(in_place ? 0 : at_once * plane * n);
          GridTile<C> tile;
          Rows rows;
          alignas(64) C turned[kGridPoints * n];
          for (int64_t unit = begin; unit < end; ++unit) {
            const int64_t image = unit / groups, first = unit % groups * at_once,
                          last = std::min(blocks_, first + at_once);
            C* sums = memory.get();
            if constexpr (in_place) sums = grad_input + (image * blocks_ + first) * plane;
            std::fill_n(sums, (last - first) * plane * n, C(0));
            for (int64_t t = 0; t < tiles_; ++t) {
              find<false>(image, t, tile);
              for (int64_t b = first; b < last; ++b) {
                const C* g = read(grad + (image * plan_.channels + b * n) * plan_.points + t * tile_,
                                  tile.count, plan_.points, used(b), turned, rows);
                scatter_pixels<C, n>(tile, g, sums + (b - first) * plane * n);
              }
            }
            if constexpr (!in_place)
              for (int64_t b = first; b < last; ++b)
                for (int64_t p = 0; p < plane; p += kGridPoints)
                  write(sums + ((b - first) * plane + p) * n, std::min(kGridPoints, plane - p),
                        grad_input + (image * plan_.channels + b * n) * plane + p, plane, used(b), rows);
          }
        });
  }

 private:
  /// Rows of n channels of a tile in the compute type.
  struct Rows {
    alignas(64) C wide[kWidened<T> ? n * kGridPoints : 1];
    std::array<C*, n> at(T* to, int64_t step) {
      std::array<C*, n> rows{};
      for (int64_t i = 0; i < n; ++i)
        if constexpr (kWidened<T>)
          rows[i] = wide + i * kGridPoints;
        else
          rows[i] = to + i * step;
      return rows;
    }
  };

  /// Channels of block b.
  int64_t used(int64_t b) const { return std::min<int64_t>(n, plan_.channels - b * n); }

  template <bool slopes>
  void find(int64_t image, int64_t t, GridTile<C>& tile) const {
    const int rank = plan_.rank();
    tile.count = std::min(tile_, plan_.points - t * tile_);
    tile.taps = plan_.taps();
    tile.step = tile_;
    C wide[kWidened<T> ? 3 * kGridPoints : 1];
    const T* grid = static_cast<const T*>(plan_.grid) + (image * plan_.points + t * tile_) * rank;
    const C* coordinates = to_compute(grid, tile.count * rank, wide);
    switch (plan_.mode) {
      case GridMode::Nearest:
        return find_taps<C, GridMode::Nearest, false>(plan_, axes_, coordinates, tile);
      case GridMode::Linear:
        return find_taps<C, GridMode::Linear, slopes>(plan_, axes_, coordinates, tile);
      case GridMode::Cubic:
        return find_taps<C, GridMode::Cubic, slopes>(plan_, axes_, coordinates, tile);
    }
  }

  /// `count` <= kGridPoints elements of `channels` rows as pixels of n channels, those missing 0: in `to`, or
  /// where they are.
  static const C* read(const T* from, int64_t count, int64_t step, int64_t channels, C* to, Rows& rows) {
    if constexpr (n == 1) {
      return to_compute(from, count, to);
    } else {
      std::array<const C*, n> at;
      for (int64_t i = 0; i < n; ++i)
        if (i >= channels)
          at[i] = kGridZeros<C>;
        else if constexpr (kWidened<T>)
          at[i] = to_compute(from + i * step, count, rows.wide + i * kGridPoints);
        else
          at[i] = from + i * step;
      turn_to_pixels<C, n>(at.data(), count, to);
      return to;
    }
  }

  /// The other way.
  static void write(const C* from, int64_t count, T* to, int64_t step, int64_t channels, Rows& rows) {
    if constexpr (n == 1) {
      from_compute(to, from, count);
    } else {
      const std::array<C*, n> at = rows.at(to, step);
      turn_to_rows<C, n>(from, count, at.data(), channels);
      if constexpr (kWidened<T>)
        for (int64_t i = 0; i < channels; ++i) narrow_row(to + i * step, at[i], count);
    }
  }

  /// Calls `body(image, tile's number, pixels of the image, tile, rows)` for all tiles, in parallel. Pixels
  /// are [blocks, plane, n].
  template <class Body>
  void for_images(const T* input, const Body& body) const {
    const int64_t plane = plan_.plane(), image_size = blocks_ * n * plane;
    // As many images are turned at once as the threads' caches hold.
    const int64_t image_bytes = image_size * static_cast<int64_t>(sizeof(C));
    const int64_t at_once =
        n == 1 ? plan_.batch : std::clamp<int64_t>(kGridBytes * num_threads() / image_bytes, 1, plan_.batch);
    const Scratch<C> memory(n == 1 ? 0 : at_once * image_size);
    const int64_t grain = std::max<int64_t>(1, kGridWork / (tile_ * plan_.taps() * plan_.channels));
    for (int64_t first = 0; first < plan_.batch; first += at_once) {
      const int64_t images = std::min(at_once, plan_.batch - first);
      const E* pixels;
      if constexpr (n == 1) {
        pixels = input + first * image_size;
      } else {
        pixels = memory.get();
        turn_images(input + first * plan_.channels * plane, images, memory.get());
      }
      parallel_for(images * tiles_, grain, [&](int64_t begin, int64_t end) {
        GridTile<C> tile;
        Rows rows;
        for (int64_t i = begin; i < end; ++i)
          body(first + i / tiles_, i % tiles_, pixels + i / tiles_ * image_size, tile, rows);
      });
    }
  }

  void turn_images(const T* input, int64_t images, C* pixels) const {
    const int64_t plane = plan_.plane(), pieces = (plane + kGridPoints - 1) / kGridPoints;
    parallel_for(images * blocks_ * pieces, kGridWork / (kGridPoints * n), [&](int64_t begin, int64_t end) {
      Rows rows;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t piece = i % pieces, block = i / pieces, image = block / blocks_, b = block % blocks_;
        const int64_t p = piece * kGridPoints;
        read(input + (image * plan_.channels + b * n) * plane + p, std::min(kGridPoints, plane - p), plane,
             used(b), pixels + (block * plane + p) * n, rows);
      }
    });
  }

  const GridPlan& plan_;
  const GridAxes<C> axes_;
  int64_t blocks_, tile_, tiles_;
};

/// Calls `f.template operator()<T, n>()` with as many channels side by side as are worth it.
template <class F>
void visit_grid(const GridPlan& plan, const F& f) {
  if (plan.inputs() == 0) return;
  visit_floating(plan.dtype, [&]<class T>() {
    // Of large planes with few points little is read.
    const bool few = plan.plane() > 2 * plan.points * plan.taps();
    if (plan.channels == 1 || few) return f.template operator()<T, 1>();
    constexpr int kMany = kTransposeTile<Compute<T>>, kFew = std::min(4, kMany);
    if (plan.channels <= kFew) return f.template operator()<T, kFew>();
    f.template operator()<T, kMany>();
  });
}

}  // namespace

void grid_sample(const LaunchContext&, const GridSampleArgs& args) {
  visit_grid(args.plan, [&]<class T, int n>() {
    GridPasses<T, n>(args.plan, /*backward=*/false)
        .sample(static_cast<const T*>(args.input), static_cast<T*>(args.output));
  });
}

void grid_sample_backward(const LaunchContext&, const GridSampleBackwardArgs& args) {
  visit_grid(args.plan, [&]<class T, int n>() {
    const GridPasses<T, n> passes(args.plan, /*backward=*/true);
    const T* grad = static_cast<const T*>(args.grad_output);
    if (args.grad_input) passes.gradient_of_input(grad, static_cast<T*>(args.grad_input));
    if (args.grad_grid)
      passes.gradient_of_grid(grad, static_cast<const T*>(args.input), static_cast<T*>(args.grad_grid));
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
