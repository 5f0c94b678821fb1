// Images and volumes read at the places of a grid, a thread for each point and several channels. The gradient
// of the input is gathered: what the points add is sorted (stably) by where it goes, and one thread adds up
// what one element gets, so that nothing is added by several threads at once. Argument structs are in
// tern/kernels/grid_sample.h.
#include "tern/kernels/grid_sample.h"

#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/sort.cuh"
#include "tern/kernels/grid_sample_axis.h"

namespace tern::cuda_backend {
namespace {

constexpr int64_t kEnoughThreads = 1 << 18;  // fill a GPU
constexpr int kChannelsAtOnce = 4;           // of one thread, whose loads do not wait for each other

/// Planes and points of a piece of the batch: both less than 2^31 elements together.
struct Reading {
  int d, h, w;
  bool volumes;
  int64_t plane, channels;
  int64_t stride;   ///< of points, from one channel to the next
  uint32_t count;   ///< points of all images
  Divider points;   ///< of an image
  int64_t at_once;  ///< channels of a thread
};

/// The taps of a point. Images have one place of depth 0.
template <class C, GridMode mode>
struct PointTaps {
  static constexpr int kAlong = grid_taps(mode);
  GridTaps<C, kAlong> x, y, z;
  int depths = 1;

  template <class T>
  __device__ __forceinline__ PointTaps(const Reading& s, const GridAxes<C>& axes, const T* grid, int64_t i) {
    const T* at = grid + i * (s.volumes ? 3 : 2);
    axes.x.template find<mode>(widen(at[0]), x);
    axes.y.template find<mode>(widen(at[1]), y);
    z.place[0] = 0;
    z.weight[0] = C(1);
    z.slope[0] = C(0);
    if (s.volumes) {
      axes.z.template find<mode>(widen(at[2]), z);
      depths = kAlong;
    }
  }

  /// Calls `use(place, i, j, k)` for all taps; -1 is outside.
  template <class Use>
  __device__ __forceinline__ void for_each(const Reading& s, const Use& use) const {
#pragma unroll
    for (int k = 0; k < kAlong; ++k) {
      if (k >= depths) break;
#pragma unroll
      for (int j = 0; j < kAlong; ++j)
#pragma unroll
        for (int i = 0; i < kAlong; ++i) {
          const bool outside = (x.place[i] | y.place[j] | z.place[k]) < 0;
          use(outside ? -1 : (z.place[k] * s.h + y.place[j]) * s.w + x.place[i], i, j, k);
        }
    }
  }
};

template <class T, GridMode mode>
__global__ void sample_points(Reading s, GridAxes<Compute<T>> axes, const T* grid, const T* input,
                              T* output) {
  using C = Compute<T>;
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= s.count) return;
  const PointTaps<C, mode> taps(s, axes, grid, i);
  const uint32_t image = s.points.divide(i);
  const int64_t first = blockIdx.y * s.at_once, end = min(first + s.at_once, s.channels);
  const T* plane = input + (image * s.channels + first) * s.plane;
  T* to = output + (image * s.channels + first) * s.stride + (i - image * s.points.divisor);
  for (int64_t c = first; c < end; ++c, plane += s.plane, to += s.stride) {
    C sum = C(0);
    taps.for_each(s, [&](int place, int x, int y, int z) {
      const C value = place < 0 ? C(0) : static_cast<C>(widen(plane[place]));
      sum += value * (taps.x.weight[x] * (taps.y.weight[y] * taps.z.weight[z]));
    });
    *to = narrow<T>(sum);
  }
}

/// Threads along x have neighbouring points, those along y share one.
template <class T, GridMode mode>
__global__ void sum_slopes(Reading s, GridAxes<Compute<T>> axes, const T* grid, const T* grad, const T* input,
                           T* grad_grid) {
  using C = Compute<T>;
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  C sums[3] = {};
  if (i < s.count) {
    const PointTaps<C, mode> taps(s, axes, grid, i);
    const uint32_t image = s.points.divide(static_cast<uint32_t>(i));
    const T* from = grad + image * s.channels * s.stride + (i - int64_t{image} * s.points.divisor);
    for (int64_t c = threadIdx.y; c < s.channels; c += blockDim.y) {
      const T* plane = input + (image * s.channels + c) * s.plane;
      C parts[3] = {};
      taps.for_each(s, [&](int place, int x, int y, int z) {
        const C value = place < 0 ? C(0) : static_cast<C>(widen(plane[place]));
        parts[0] += value * (taps.x.slope[x] * taps.y.weight[y] * taps.z.weight[z]);
        parts[1] += value * (taps.x.weight[x] * taps.y.slope[y] * taps.z.weight[z]);
        parts[2] += value * (taps.x.weight[x] * taps.y.weight[y] * taps.z.slope[z]);
      });
      const C g = widen(from[c * s.stride]);
#pragma unroll
      for (int k = 0; k < 3; ++k) sums[k] += g * parts[k];
    }
  }
  const int rank = s.volumes ? 3 : 2;
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    const C sum = column_reduce(sums[k], Plus());
    if (threadIdx.y == 0 && i < s.count && k < rank) grad_grid[i * rank + k] = narrow<T>(sum);
  }
}

// ---- the gradient of the input

/// What points add: entry e is tap e % taps of point e / taps.
template <class C>
struct TapEntries {
  uint32_t* target;  ///< image * plane + place; images * plane: none
  uint32_t* number;
  C* weight;
  uint32_t none;
  int shift;  ///< of numbers, to those of the points
};

template <class T, GridMode mode>
__global__ void make_entries(Reading s, GridAxes<Compute<T>> axes, const T* grid,
                             TapEntries<Compute<T>> entries) {
  using C = Compute<T>;
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= s.count) return;
  const PointTaps<C, mode> taps(s, axes, grid, i);
  const auto base = static_cast<uint32_t>(s.points.divide(i) * s.plane);
  uint32_t e = i << entries.shift;
  taps.for_each(s, [&](int place, int x, int y, int z) {
    entries.target[e] = place < 0 ? entries.none : base + static_cast<uint32_t>(place);
    entries.number[e] = e;
    entries.weight[e] = taps.x.weight[x] * (taps.y.weight[y] * taps.z.weight[z]);
    ++e;
  });
}

/// begins[t] becomes the first of the sorted entries whose target is not below t, for t <= none.
__global__ void find_begins(const uint32_t* target, uint32_t count, uint32_t none, uint32_t* begins) {
  const uint32_t t = blockIdx.x * kBlock + threadIdx.x;
  if (t > none) return;
  begins[t] = first_place(count, [&](uint32_t at) { return target[at] >= t; });
}

/// A thread for each element of a plane and several channels. `adds`: to what is there.
template <class T>
__global__ void sum_entries(Reading s, Divider plane, TapEntries<Compute<T>> entries, const uint32_t* begins,
                            bool adds, const T* grad, T* grad_input) {
  using C = Compute<T>;
  const uint32_t t = blockIdx.x * kBlock + threadIdx.x;
  if (t >= entries.none) return;
  const uint32_t begin = begins[t], end = begins[t + 1];
  const uint32_t image = plane.divide(t), skipped = image * s.points.divisor;
  const int64_t last = min((blockIdx.y + int64_t{1}) * s.at_once, s.channels);
  for (int64_t c = blockIdx.y * s.at_once; c < last; c += kChannelsAtOnce) {
    const T* from = grad + (image * s.channels + c) * s.stride;
    T* to = grad_input + (image * s.channels + c) * s.plane + (t - image * plane.divisor);
    C sums[kChannelsAtOnce] = {};
    for (uint32_t e = begin; e < end; ++e) {
      const uint32_t number = entries.number[e];
      const C weight = entries.weight[number];
      const uint32_t point = (number >> entries.shift) - skipped;
#pragma unroll
      for (int k = 0; k < kChannelsAtOnce; ++k)
        if (c + k < last) sums[k] += weight * static_cast<C>(widen(from[k * s.stride + point]));
    }
#pragma unroll
    for (int k = 0; k < kChannelsAtOnce; ++k)
      if (c + k < last) {
        T& element = to[k * s.plane];
        element = narrow<T>(adds ? static_cast<C>(widen(element)) + sums[k] : sums[k]);
      }
  }
}

// ---- launches

/// A piece of the batch, whose threads have `per_channel` other things to tell them apart.
Reading reading_of(const GridPlan& plan, int64_t images, int64_t points, int64_t per_channel) {
  // As many channels a thread as leave enough threads, in whole steps.
  const int64_t steps = ceil_div(plan.channels, kChannelsAtOnce);
  const int64_t groups = std::clamp<int64_t>(kEnoughThreads / std::max<int64_t>(per_channel, 1), 1,
                                             std::min<int64_t>(steps, 65535));
  return {static_cast<int>(plan.d),
          static_cast<int>(plan.h),
          static_cast<int>(plan.w),
          plan.volumes,
          plan.plane(),
          plan.channels,
          plan.points,
          static_cast<uint32_t>(images * points),
          Divider(points),
          ceil_div(steps, groups) * kChannelsAtOnce};
}
unsigned groups_of(const Reading& s) { return static_cast<unsigned>(ceil_div(s.channels, s.at_once)); }

/// Calls `f.template operator()<T, mode>()`.
template <class F>
void visit_reading(const GridPlan& plan, const F& f) {
  if (std::max(plan.plane(), plan.points) > kMostElements - kBlock)
    throw_not_on_gpus("readings of 2^31 elements");
  visit_floating(plan.dtype, [&]<class T>() {
    switch (plan.mode) {
      case GridMode::Nearest:
        return f.template operator()<T, GridMode::Nearest>();
      case GridMode::Linear:
        return f.template operator()<T, GridMode::Linear>();
      case GridMode::Cubic:
        return f.template operator()<T, GridMode::Cubic>();
    }
  });
}

/// Images with `size` of something each that have less than 2^31 together.
int64_t most_images(int64_t size) { return std::max<int64_t>(1, (kMostElements - kBlock) / size); }
/// Calls `f(first, images)` for pieces of the batch of at most so many images.
template <class F>
void for_images(const GridPlan& plan, int64_t at_once, const F& f) {
  for (int64_t first = 0; first < plan.batch; first += at_once)
    f(first, std::min(at_once, plan.batch - first));
}

template <class T, GridMode mode>
void run_input_gradient(const LaunchContext& context, const GridPlan& plan, const T* grid, const T* grad,
                        T* grad_input) {
  using C = Compute<T>;
  const GridAxes<C> axes(plan, /*backward=*/true);
  const int taps = plan.taps();
  // Of an image with very many points a part after the other.
  const int64_t points = std::min(plan.points, kMostSorted / taps);
  const int64_t at_once = std::min(most_images(plan.plane()), kMostSorted / (points * taps));
  for_images(plan, at_once, [&](int64_t first, int64_t images) {
    for (int64_t p = 0; p < plan.points; p += points) {
      const int64_t here = std::min(points, plan.points - p), count = images * here * taps,
                    targets = images * plan.plane();
      const auto n = static_cast<size_t>(count);
      const Storage a = workspace(context, n * 4), b = workspace(context, n * 4),
                    c = workspace(context, n * 4), d = workspace(context, n * 4),
                    e = workspace(context, n * sizeof(C)),
                    f = workspace(context, static_cast<size_t>(targets + 1) * 4);
      auto *target = static_cast<uint32_t*>(b->data()), *number = static_cast<uint32_t*>(d->data()),
           *begins = static_cast<uint32_t*>(f->data());
      TapEntries<C> entries{static_cast<uint32_t*>(a->data()), static_cast<uint32_t*>(c->data()),
                            static_cast<C*>(e->data()), static_cast<uint32_t>(targets), bits_below(taps)};
      const Reading s = reading_of(plan, images, here, targets);
      start(context, blocks(ceil_div(s.count, kBlock)), kBlock, 0, make_entries<T, mode>, s, axes,
            grid + (first * plan.points + p) * plan.rank(), entries);
      sort_pairs<uint32_t, uint32_t>(context, entries.target, target, entries.number, number, count,
                                     bits_below(targets + 1));
      entries.target = target;
      entries.number = number;
      start(context, blocks(ceil_div(targets + 1, kBlock)), kBlock, 0, find_begins,
            static_cast<const uint32_t*>(target), static_cast<uint32_t>(count), entries.none, begins);
      start(context, dim3(blocks(ceil_div(targets, kBlock)), groups_of(s)), kBlock, 0, sum_entries<T>, s,
            Divider(plan.plane()), entries, static_cast<const uint32_t*>(begins), p > 0,
            grad + first * plan.channels * plan.points + p,
            grad_input + first * plan.channels * plan.plane());
    }
  });
}

template <class T, GridMode mode>
void run_grid_gradient(const LaunchContext& context, const GridPlan& plan, const T* grid, const T* grad,
                       const T* input, T* grad_grid) {
  const GridAxes<Compute<T>> axes(plan, /*backward=*/true);
  for_images(plan, most_images(plan.points), [&](int64_t first, int64_t images) {
    const Reading s = reading_of(plan, images, plan.points, 1);
    const dim3 block = column_block(s.count, plan.channels);
    start(context, blocks(ceil_div(s.count, block.x)), block, 0, sum_slopes<T, mode>, s, axes,
          grid + first * plan.points * plan.rank(), grad + first * plan.channels * plan.points,
          input + first * plan.channels * plan.plane(), grad_grid + first * plan.points * plan.rank());
  });
}

}  // namespace

void grid_sample(const LaunchContext& context, const GridSampleArgs& args) {
  const GridPlan& plan = args.plan;
  visit_reading(plan, [&]<class T, GridMode mode>() {
    const GridAxes<Compute<T>> axes(plan, /*backward=*/false);
    for_images(plan, most_images(plan.points), [&](int64_t first, int64_t images) {
      const Reading s = reading_of(plan, images, plan.points, images * plan.points);
      start(context, dim3(blocks(ceil_div(s.count, kBlock)), groups_of(s)), kBlock, 0, sample_points<T, mode>,
            s, axes, static_cast<const T*>(plan.grid) + first * plan.points * plan.rank(),
            static_cast<const T*>(args.input) + first * plan.channels * plan.plane(),
            static_cast<T*>(args.output) + first * plan.channels * plan.points);
    });
  });
}

void grid_sample_backward(const LaunchContext& context, const GridSampleBackwardArgs& args) {
  visit_reading(args.plan, [&]<class T, GridMode mode>() {
    const T *grid = static_cast<const T*>(args.plan.grid), *grad = static_cast<const T*>(args.grad_output);
    if (args.grad_input)
      run_input_gradient<T, mode>(context, args.plan, grid, grad, static_cast<T*>(args.grad_input));
    if constexpr (mode != GridMode::Nearest)
      if (args.grad_grid)
        run_grid_gradient<T, mode>(context, args.plan, grid, grad, static_cast<const T*>(args.input),
                                   static_cast<T*>(args.grad_grid));
  });
}

}  // namespace tern::cuda_backend
