// Batch normalisation, forward and backward. Images are worked on channel by channel; [batch, channels]
// matrices by blocks of neighbouring channels.
#include <cmath>

#include "tern/backends/cpu/kernels/norm.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Channels of a matrix that are worked on together.
constexpr int64_t kBlock = 32;

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

template <class T>
void forward_matrix(const BatchNormArgs& args) {
  using C = Compute<T>;
  const int64_t channels = args.channels;
  const int64_t grain = 1 + kPointwiseGrain / 4 / (1 + args.batch * kBlock);
  parallel_for((channels + kBlock - 1) / kBlock, grain, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kBlock, n = std::min(kBlock, channels - first);
      const T* x = static_cast<const T*>(args.input) + first;
      T* out = static_cast<T*>(args.output) + first;
      double mean[kBlock] = {}, squares[kBlock] = {};
      const double count = static_cast<double>(args.batch);
      if (args.training) {
        for (int64_t r = 0; r < args.batch; ++r)
          for (int64_t i = 0; i < n; ++i) mean[i] += static_cast<double>(static_cast<C>(x[r * channels + i]));
        for (int64_t i = 0; i < n; ++i) mean[i] /= count;
        for (int64_t r = 0; r < args.batch; ++r) {
          for (int64_t i = 0; i < n; ++i) {
            const double d = static_cast<double>(static_cast<C>(x[r * channels + i])) - mean[i];
            squares[i] += d * d;
          }
        }
      }
      C means[kBlock], scale[kBlock], bias[kBlock];
      for (int64_t i = 0; i < n; ++i) {
        const Channel<C> channel = finish_statistics<C>(args, first + i, mean[i], squares[i] / count, count);
        means[i] = channel.mean;
        scale[i] = channel.invstd * param(args.weight, first + i, C(1));
        bias[i] = param(args.bias, first + i, C(0));
      }
      for (int64_t r = 0; r < args.batch; ++r) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i)
          out[r * channels + i] =
              static_cast<T>((static_cast<C>(x[r * channels + i]) - means[i]) * scale[i] + bias[i]);
      }
    }
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
  const int64_t grain = 1 + kPointwiseGrain / 4 / (1 + args.batch * kBlock);
  parallel_for((channels + kBlock - 1) / kBlock, grain, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kBlock, n = std::min(kBlock, channels - first);
      const T* x = static_cast<const T*>(args.input) + first;
      const T* g = static_cast<const T*>(args.grad_output) + first;
      double grad[kBlock] = {}, grad_x[kBlock] = {};
      const C* mean = static_cast<const C*>(args.mean) + first;
      if (sums_wanted) {
        for (int64_t r = 0; r < args.batch; ++r) {
          for (int64_t i = 0; i < n; ++i) {
            const C a = static_cast<C>(g[r * channels + i]);
            grad[i] += static_cast<double>(a);
            grad_x[i] += static_cast<double>(a * (static_cast<C>(x[r * channels + i]) - mean[i]));
          }
        }
      }
      C scale[kBlock], shift[kBlock], along[kBlock];
      for (int64_t i = 0; i < n; ++i) {
        const Slopes<C> s = finish_gradients<C>(args, first + i, grad[i], grad_x[i]);
        scale[i] = s.scale;
        shift[i] = s.shift;
        along[i] = s.along;
      }
      if (!args.grad_input) continue;
      T* out = static_cast<T*>(args.grad_input) + first;
      for (int64_t r = 0; r < args.batch; ++r) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
          const int64_t at = r * channels + i;
          out[at] = static_cast<T>(static_cast<C>(g[at]) * scale[i] - shift[i] -
                                   (static_cast<C>(x[at]) - mean[i]) * along[i]);
        }
      }
    }
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
