// Batch normalisation, forward and backward. Images are worked on channel by channel; [batch, channels]
// matrices row by row.
#include <cmath>

#include "tern/backends/cpu/kernels/norm.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

template <class C>
struct Channel {
  C mean, invstd;
};

/// Writes the statistics that were used, and moves the running ones.
template <class C>
Channel<C> finish_statistics(const BatchNormArgs& args, int64_t c, double mean, double variance,
                             double count) {
  C* running_mean = static_cast<C*>(args.running_mean);
  C* running_var = static_cast<C*>(args.running_var);
  if (!args.training) {
    mean = static_cast<double>(running_mean[c]);
    variance = static_cast<double>(running_var[c]);
  } else {
    const double keep = 1 - args.momentum;
    if (running_mean)
      running_mean[c] = static_cast<C>(keep * static_cast<double>(running_mean[c]) + args.momentum * mean);
    if (running_var)
      running_var[c] = static_cast<C>(keep * static_cast<double>(running_var[c]) +
                                      args.momentum * variance * (count / (count - 1)));
  }
  const Channel<C> channel{static_cast<C>(mean), static_cast<C>(1 / std::sqrt(variance + args.eps))};
  static_cast<C*>(args.mean)[c] = channel.mean;
  static_cast<C*>(args.invstd)[c] = channel.invstd;
  return channel;
}

template <class C>
C param(const void* params, int64_t c, C otherwise) {
  return params ? static_cast<const C*>(params)[c] : otherwise;
}

template <class T>
void forward_images(const BatchNormArgs& args) {
  using C = Compute<T>;
  const int64_t image = args.channels * args.inner;
  parallel_for(args.channels, 1 + kPointwiseGrain / 4 / (1 + args.batch * args.inner),
               [&](int64_t begin, int64_t end) {
                 for (int64_t c = begin; c < end; ++c) {
                   const T* x = static_cast<const T*>(args.input) + c * args.inner;
                   T* out = static_cast<T*>(args.output) + c * args.inner;
                   Moments m;
                   if (args.training)
                     for (int64_t n = 0; n < args.batch; ++n) m.merge(moments_of(x + n * image, args.inner));
                   const Channel<C> channel = finish_statistics<C>(args, c, m.mean, m.variance(), m.count);
                   const C scale = channel.invstd * param(args.weight, c, C(1)), mean = channel.mean;
                   const C bias = param(args.bias, c, C(0));
                   for (int64_t n = 0; n < args.batch; ++n)
                     row1(out + n * image, x + n * image, args.inner,
                          [=](C v) { return (v - mean) * scale + bias; });
                 }
               });
}

/// out[r] = what fill(C* to, r, C* buffers) leaves for the row r, in parallel; two rows fit the buffers.
template <class T, class Fill>
void for_each_row(T* out, int64_t rows, int64_t channels, const Fill& fill) {
  using C = Compute<T>;
  parallel_for(rows, std::max<int64_t>(1, kPointwiseGrain / std::max<int64_t>(1, channels)),
               [&](int64_t begin, int64_t end) {
                 Scratch<C> buffers(kWidened<T> ? 3 * channels : 0);
                 for (int64_t r = begin; r < end; ++r) {
                   if constexpr (kWidened<T>) {
                     C* result = buffers.get() + 2 * channels;
                     fill(result, r, buffers.get());
                     narrow_row(out + r * channels, result, channels);
                   } else {
                     fill(out + r * channels, r, buffers.get());
                   }
                 }
               });
}

/// How the rows of a matrix are cut, by its size alone: a task adds the sums of its pieces, which stay in the
/// cache, one after the other. Threads share tasks and tiles of columns.
struct RowTasks {
  static constexpr int64_t kPiece = 64, kMost = 64, kTile = 512;
  int64_t batch, count, rows;

  explicit RowTasks(int64_t batch_) : batch(batch_) {
    const int64_t pieces = std::max<int64_t>(1, (batch + kPiece - 1) / kPiece);
    rows = (pieces + kMost - 1) / kMost * kPiece;
    count = std::max<int64_t>(1, (batch + rows - 1) / rows);
  }
  int64_t begin(int64_t task) const { return task * rows; }
  int64_t end(int64_t task) const { return std::min(batch, (task + 1) * rows); }
  /// Calls body(task, first channel, number of them) for all, in parallel.
  template <class Body>
  void for_each(int64_t channels, const Body& body) const {
    const int64_t tiles = (channels + kTile - 1) / kTile;
    const int64_t work = std::max<int64_t>(1, rows * std::min(kTile, channels));
    parallel_for(count * tiles, std::max<int64_t>(1, kPointwiseGrain / work), [&](int64_t i, int64_t last) {
      for (; i < last; ++i) body(i / tiles, i % tiles * kTile, std::min(kTile, channels - i % tiles * kTile));
    });
  }
};

/// Takes the rows [begin, end) of up to kTile columns at x, which are `stride` apart, into the moments.
template <class T>
void add_rows(ColumnMoments& moments, const T* x, int64_t stride, int64_t channels, int64_t begin,
              int64_t end) {
  using C = Compute<T>;
  C row[RowTasks::kTile], sum[RowTasks::kTile], shift[RowTasks::kTile], square[RowTasks::kTile];
  C rest[RowTasks::kTile];
  double mean[RowTasks::kTile], about_mean[RowTasks::kTile];
  for (int64_t first = begin; first < end; first += RowTasks::kPiece) {
    const int64_t last = std::min(end, first + RowTasks::kPiece);
    std::fill_n(sum, channels, C(0));
    std::fill_n(square, channels, C(0));
    std::fill_n(rest, channels, C(0));
    for (int64_t r = first; r < last; ++r) {
      const C* values = to_compute(x + r * stride, channels, row);
#pragma GCC ivdep
      for (int64_t c = 0; c < channels; ++c) sum[c] += values[c];
    }
    const double count = static_cast<double>(last - first);
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) shift[c] = sum[c] / static_cast<C>(count);
    for (int64_t r = first; r < last; ++r) {
      const C* values = to_compute(x + r * stride, channels, row);
#pragma GCC ivdep
      for (int64_t c = 0; c < channels; ++c) {
        const C d = values[c] - shift[c];
        rest[c] += d;
        square[c] += d * d;
      }
    }
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) {
      const Moments moments_c = corrected(shift[c], rest[c], square[c], last - first);
      mean[c] = moments_c.mean;
      about_mean[c] = moments_c.squares;
    }
    moments.merge(channels, {count, mean, about_mean});
  }
}

template <class T>
void forward_matrix(const BatchNormArgs& args) {
  using C = Compute<T>;
  const int64_t channels = args.channels;
  const T* x = static_cast<const T*>(args.input);
  const RowTasks tasks(args.batch);
  Scratch<double> means(args.training ? tasks.count * channels : 0),
      squares(args.training ? tasks.count * channels : 0);
  if (args.training) {
    std::fill_n(means.get(), tasks.count * channels, 0.0);
    std::fill_n(squares.get(), tasks.count * channels, 0.0);
    const auto at = [&](int64_t task, int64_t first) {
      const int64_t place = task * channels + first;
      return ColumnMoments{0, means.get() + place, squares.get() + place};
    };
    tasks.for_each(channels, [&](int64_t task, int64_t first, int64_t n) {
      ColumnMoments moments = at(task, first);
      add_rows(moments, x + first, channels, n, tasks.begin(task), tasks.end(task));
    });
    ColumnMoments all = at(0, 0);
    all.count = static_cast<double>(tasks.end(0));
    for (int64_t task = 1; task < tasks.count; ++task) {
      ColumnMoments part = at(task, 0);
      part.count = static_cast<double>(tasks.end(task) - tasks.begin(task));
      all.merge(channels, part);
    }
  }
  const double count = static_cast<double>(args.batch);
  Scratch<C> used(3 * channels);
  C *mean = used.get(), *scale = mean + channels, *bias = scale + channels;
  for (int64_t c = 0; c < channels; ++c) {
    const Channel<C> channel =
        args.training ? finish_statistics<C>(args, c, means.get()[c], squares.get()[c] / count, count)
                      : finish_statistics<C>(args, c, 0, 0, count);
    mean[c] = channel.mean;
    scale[c] = channel.invstd * param(args.weight, c, C(1));
    bias[c] = param(args.bias, c, C(0));
  }
  for_each_row<T>(static_cast<T*>(args.output), args.batch, channels, [&](C* to, int64_t r, C* buffer) {
    const C* values = to_compute(x + r * channels, channels, buffer);
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) to[c] = (values[c] - mean[c]) * scale[c] + bias[c];
  });
}

/// grad_x = scale * g - shift - (x - mean) * along; the sums are of g and of g * (x - mean).
template <class C>
struct Slopes {
  C mean, scale, shift, along;
};

template <class C>
Slopes<C> finish_gradients(const BatchNormBackwardArgs& args, int64_t c, double grad, double grad_x) {
  const C invstd_c = static_cast<const C*>(args.invstd)[c];
  const double invstd = static_cast<double>(invstd_c);
  if (args.grad_weight) static_cast<C*>(args.grad_weight)[c] = static_cast<C>(grad_x * invstd);
  if (args.grad_bias) static_cast<C*>(args.grad_bias)[c] = static_cast<C>(grad);
  const double count = static_cast<double>(args.batch * args.inner);
  const C scale = invstd_c * param(args.weight, c, C(1));
  Slopes<C> slopes{static_cast<const C*>(args.mean)[c], scale, C(0), C(0)};
  if (args.training) {
    slopes.shift = static_cast<C>(static_cast<double>(scale) * grad / count);
    slopes.along = static_cast<C>(static_cast<double>(scale) * invstd * invstd * grad_x / count);
  }
  return slopes;
}

template <class T>
void backward_images(const BatchNormBackwardArgs& args, bool sums_wanted) {
  using C = Compute<T>;
  const int64_t image = args.channels * args.inner;
  parallel_for(args.channels, 1 + kPointwiseGrain / 4 / (1 + args.batch * args.inner),
               [&](int64_t begin, int64_t end) {
                 for (int64_t c = begin; c < end; ++c) {
                   const T* x = static_cast<const T*>(args.input) + c * args.inner;
                   const T* g = static_cast<const T*>(args.grad_output) + c * args.inner;
                   GradSums sums;
                   if (sums_wanted) {
                     for (int64_t n = 0; n < args.batch; ++n) {
                       const GradSums part = grad_sums(g + n * image, x + n * image, args.inner,
                                                       static_cast<const C*>(args.mean)[c]);
                       sums.grad += part.grad;
                       sums.grad_x += part.grad_x;
                     }
                   }
                   const Slopes<C> s = finish_gradients<C>(args, c, sums.grad, sums.grad_x);
                   if (!args.grad_input) continue;
                   T* out = static_cast<T*>(args.grad_input) + c * args.inner;
                   for (int64_t n = 0; n < args.batch; ++n)
                     row2(out + n * image, g + n * image, x + n * image, args.inner,
                          [s](C a, C b) { return a * s.scale - s.shift - (b - s.mean) * s.along; });
                 }
               });
}

template <class T>
void backward_matrix(const BatchNormBackwardArgs& args, bool sums_wanted) {
  using C = Compute<T>;
  const int64_t channels = args.channels;
  const T* x = static_cast<const T*>(args.input);
  const T* g = static_cast<const T*>(args.grad_output);
  const C* mean = static_cast<const C*>(args.mean);
  const RowTasks tasks(args.batch);
  // Of each task, and then in the first row of all: the sums of g and of g * (x - mean).
  Scratch<double> sums(2 * tasks.count * channels);
  std::fill_n(sums.get(), 2 * tasks.count * channels, 0.0);
  const auto add = [](double* to, const auto* from, int64_t n) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] += static_cast<double>(from[i]);
  };
  if (sums_wanted)
    tasks.for_each(channels, [&](int64_t task, int64_t first_channel, int64_t n) {
      C buffers[2 * RowTasks::kTile], grad[RowTasks::kTile], grad_x[RowTasks::kTile];
      double* to = sums.get() + 2 * task * channels + first_channel;
      const C* shift = mean + first_channel;
      for (int64_t first = tasks.begin(task); first < tasks.end(task); first += RowTasks::kPiece) {
        std::fill_n(grad, n, C(0));
        std::fill_n(grad_x, n, C(0));
        for (int64_t r = first; r < std::min(tasks.end(task), first + RowTasks::kPiece); ++r) {
          const int64_t at = r * channels + first_channel;
          const C* a = to_compute(g + at, n, buffers);
          const C* b = to_compute(x + at, n, buffers + RowTasks::kTile);
#pragma GCC ivdep
          for (int64_t c = 0; c < n; ++c) {
            grad[c] += a[c];
            grad_x[c] += a[c] * (b[c] - shift[c]);
          }
        }
        add(to, grad, n);
        add(to + channels, grad_x, n);
      }
    });
  for (int64_t task = 1; task < tasks.count; ++task)
    add(sums.get(), static_cast<const double*>(sums.get() + 2 * task * channels), 2 * channels);
  Scratch<C> used(3 * channels);
  C *scale = used.get(), *shift = scale + channels, *along = shift + channels;
  for (int64_t c = 0; c < channels; ++c) {
    const Slopes<C> s = finish_gradients<C>(args, c, sums.get()[c], sums.get()[channels + c]);
    scale[c] = s.scale;
    shift[c] = s.shift;
    along[c] = s.along;
  }
  if (!args.grad_input) return;
  for_each_row<T>(static_cast<T*>(args.grad_input), args.batch, channels, [&](C* to, int64_t r, C* buffers) {
    const C* a = to_compute(g + r * channels, channels, buffers);
    const C* b = to_compute(x + r * channels, channels, buffers + (kWidened<T> ? channels : 0));
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) to[c] = a[c] * scale[c] - shift[c] - (b[c] - mean[c]) * along[c];
  });
}

}  // namespace

void batch_norm(const LaunchContext&, const BatchNormArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    if (args.inner == 1)
      forward_matrix<T>(args);
    else
      forward_images<T>(args);
  });
}

void batch_norm_backward(const LaunchContext&, const BatchNormBackwardArgs& args) {
  const bool sums_wanted = args.training || args.grad_weight || args.grad_bias;
  visit_floating(args.dtype, [&]<class T>() {
    if (args.inner == 1)
      backward_matrix<T>(args, sums_wanted);
    else
      backward_images<T>(args, sums_wanted);
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
