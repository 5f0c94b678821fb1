// The convolution kernels: which way of computing is taken for a shape and dtype. The ways are listed in
// conv_paths.h. `tiles` says whether AMX, or pairs in its place, may be used.
#include "tern/kernels/conv.h"

#include "tern/backends/cpu/kernels/conv_paths.h"
#include "tern/backends/cpu/kernels/gemm_tiles.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/backends/cpu/kernels/widen.h"
#include "tern/device/launch.h"
#include "tern/kernels/pointwise.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

bool is_empty(const Correlation& c) {
  return c.batch == 0 || c.groups == 0 || c.out_c == 0 || c.out_size() == 0;
}

bool is_pointwise(const Correlation& c) { return c.taps() == 1 && c.stride_h == 1 && c.stride_w == 1; }

bool suits_direct(const Correlation& c) {
  return !is_pointwise(c) && conv_direct_cost(c) <= std::min(conv_indirect_cost(c), conv_gemm_cost(c));
}

/// With strides every input needs taps of its own, and channels to fill a register.
bool suits_direct_backward_input(const Conv2dShape& s) {
  if (s.stride_h == 1 && s.stride_w == 1) {
    const Correlation turned = backward_correlation(s);
    return !conv_suits_lanes(turned) && suits_direct(turned);
  }
  const Correlation c = correlation(s);
  return c.in_c >= 8 && c.kernel_h >= c.stride_h && c.kernel_w >= c.stride_w &&
         c.out_c * (c.in_h + c.reach_h()) * (c.in_w + c.reach_w()) <= INT32_MAX;
}

template <class T>
void forward(const Correlation& c, const ForwardOperands<T>& x) {
  if constexpr (std::is_same_v<T, float>) {
    if (conv_suits_depthwise(c)) return conv_depthwise(c, x);
    if (conv_suits_lanes(c)) return conv_lanes(c, x);
    if (suits_direct(c)) return conv_direct(c, x);
    if (!is_pointwise(c) && conv_indirect_cost(c) < conv_gemm_cost(c)) return conv_indirect(c, x);
  }
  conv_gemm(c, x);
}

template <class T>
void backward_input(const Conv2dShape& s, const T* grad_output, const T* weight, T* grad_input) {
  if constexpr (std::is_same_v<T, float>) {
    const Correlation c = correlation(s);
    if (!is_empty(c) && conv_suits_depthwise(c))
      return conv_depthwise_backward_input(c, grad_output, weight, grad_input);
    if (!is_empty(c) && conv_suits_lanes_backward_input(c))
      return conv_lanes_backward_input(c, grad_output, weight, grad_input);
    if (!is_empty(c) && suits_direct_backward_input(s))
      return conv_direct_backward_input(c, grad_output, weight, grad_input);
  }
  if (s.stride_h == 1 && s.stride_w == 1) {
    const Correlation c = backward_correlation(s);
    const Scratch<T> turned(s.out_channels * c.out_c * c.taps());
    turn_weights(c, weight, turned.get());
    forward(c, ForwardOperands<T>{grad_output, turned.get(), nullptr, grad_input, /*relu=*/false});
  } else {
    conv_gemm_backward_input(correlation(s), grad_output, weight, grad_input);
  }
}

template <class T>
void sum_bias_gradient(const Correlation& c, const T* grad_output, T* grad_bias) {
  using C = Compute<T>;
  const int64_t channels = c.groups * c.out_c, pixels = c.out_size();
  parallel_for(channels, std::max<int64_t>(1, 32768 / std::max<int64_t>(c.batch * pixels, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t channel = begin; channel < end; ++channel) {
                   C total = 0;
                   for (int64_t image = 0; image < c.batch; ++image) {
                     const T* from = grad_output + (image * channels + channel) * pixels;
                     C partial[8] = {};
                     int64_t p = 0;
                     for (; p + 8 <= pixels; p += 8)
                       for (int64_t i = 0; i < 8; ++i) partial[i] += static_cast<C>(from[p + i]);
                     for (; p < pixels; ++p) partial[0] += static_cast<C>(from[p]);
                     total += ((partial[0] + partial[1]) + (partial[2] + partial[3])) +
                              ((partial[4] + partial[5]) + (partial[6] + partial[7]));
                   }
                   grad_bias[channel] = static_cast<T>(total);
                 }
               });
}

template <class T>
void backward_weight(const Correlation& c, const WeightGradOperands<T>& x) {
  if constexpr (std::is_same_v<T, float>) {
    if (!is_empty(c) && x.grad_weight != nullptr && !conv_suits_depthwise(c) &&
        !conv_suits_direct_backward_weight(c) && conv_suits_lanes_backward_weight(c))
      return conv_lanes_backward_weight(c, x);
  }
  if (x.grad_bias != nullptr) sum_bias_gradient(c, x.grad_output, x.grad_bias);
  if (x.grad_weight == nullptr) return;
  if constexpr (std::is_same_v<T, float>) {
    if (!is_empty(c) && conv_suits_depthwise(c))
      return conv_depthwise_backward_weight(c, x.input, x.grad_output, x.grad_weight);
    if (!is_empty(c) && conv_suits_direct_backward_weight(c))
      return conv_direct_backward_weight(c, x.input, x.grad_output, x.grad_weight);
  }
  conv_gemm_backward_weight(c, x.input, x.grad_output, x.grad_weight);
}

// ---- float16 and bfloat16
// --------------------------------------------------------------------------------------------

/// An operand as float; null where there is none.
class Widened {
 public:
  template <class T>
  Widened(const T* from, int64_t count) : wide_(from != nullptr ? count : 0) {
    if (from == nullptr) return;
    parallel_for(count, 65536, [&](int64_t begin, int64_t end) {
      widen_row(wide_.get() + begin, from + begin, end - begin);
    });
  }
  const float* get() const { return wide_.get(); }

 private:
  Scratch<float> wide_;
};

template <class T>
void narrow(const Scratch<float>& from, int64_t count, T* to) {
  parallel_for(count, 65536,
               [&](int64_t begin, int64_t end) { narrow_row(to + begin, from.get() + begin, end - begin); });
}

/// Calls f(first, count) for parts of the batch whose images are widened together.
template <class F>
void for_each_part(const Correlation& c, const F& f) {
  constexpr int64_t kElements = int64_t{1} << 23, kLeast = 8, kLanesOfImages = 16;
  const int64_t image = c.groups * (c.in_c * c.in_size() + c.out_c * c.out_size());
  int64_t images = std::max(kLeast, kElements / std::max<int64_t>(image, 1));
  if (images > kLanesOfImages) images -= images % kLanesOfImages;
  for (int64_t first = 0; first < c.batch; first += images) f(first, std::min(images, c.batch - first));
}

template <class T>
requires kWidened<T>
void forward(const Correlation& c, const ForwardOperands<T>& x, bool tiles) {
  if constexpr (kHasTiles && std::is_same_v<T, BFloat16>)
    if (tiles && conv_suits_tiles(c, c.out_c) && conv_tiles(c, x)) return;
  const int64_t ins = c.groups * c.in_c * c.in_size(), outs = c.groups * c.out_c * c.out_size();
  const Widened weight(x.weight, c.groups * c.out_c * c.depth()), bias(x.bias, c.groups * c.out_c);
  for_each_part(c, [&](int64_t first, int64_t count) {
    Correlation part = c;
    part.batch = count;
    const Widened input(x.input + first * ins, count * ins);
    const Scratch<float> output(count * outs);
    forward(part, ForwardOperands<float>{input.get(), weight.get(), bias.get(), output.get(), x.relu});
    narrow(output, count * outs, x.output + first * outs);
  });
}

template <class T>
requires kWidened<T>
void backward_input(const Conv2dShape& s, const T* grad_output, const T* weight, T* grad_input, bool tiles) {
  const Correlation c = correlation(s);
  if constexpr (kHasTiles && std::is_same_v<T, BFloat16>)
    if (tiles && !is_empty(c) && conv_suits_tiles(c, c.in_c) &&
        conv_tiles_backward_input(c, grad_output, weight, grad_input))
      return;
  const int64_t ins = c.groups * c.in_c * c.in_size(), outs = c.groups * c.out_c * c.out_size();
  const Widened wide_weight(weight, c.groups * c.out_c * c.depth());
  for_each_part(c, [&](int64_t first, int64_t count) {
    Conv2dShape part = s;
    part.batch = count;
    const Widened gradient(grad_output + first * outs, count * outs);
    const Scratch<float> result(count * ins);
    backward_input(part, gradient.get(), wide_weight.get(), result.get());
    narrow(result, count * ins, grad_input + first * ins);
  });
}

template <class T>
requires kWidened<T>
void backward_weight(const Correlation& c, const WeightGradOperands<T>& x, bool tiles) {
  if (x.grad_bias != nullptr) sum_bias_gradient(c, x.grad_output, x.grad_bias);
  if (x.grad_weight == nullptr) return;
  if constexpr (kHasTiles && std::is_same_v<T, BFloat16>)
    if (tiles && !is_empty(c) && conv_suits_tiles(c, c.in_c * c.out_c) &&
        conv_tiles_backward_weight(c, x.input, x.grad_output, x.grad_weight))
      return;
  const int64_t weights = c.groups * c.out_c * c.depth();
  const int64_t ins = c.groups * c.in_c * c.in_size(), outs = c.groups * c.out_c * c.out_size();
  const Scratch<float> result(weights);
  std::fill_n(result.get(), c.batch == 0 ? weights : 0, 0.0f);
  for_each_part(c, [&](int64_t first, int64_t count) {
    Correlation part = c;
    part.batch = count;
    const Widened input(x.input + first * ins, count * ins),
        gradient(x.grad_output + first * outs, count * outs);
    const Scratch<float> more(first == 0 ? 0 : weights);
    float* to = first == 0 ? result.get() : more.get();
    backward_weight(part, WeightGradOperands<float>{input.get(), gradient.get(), to, nullptr});
    if (first == 0) return;
    parallel_for(weights, 65536, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) result.get()[i] += to[i];
    });
  });
  narrow(result, weights, x.grad_weight);
}

// ---- float and double, as the dtypes above
// -----------------------------------------------------------------------------------------------------

template <class T>
requires(!kWidened<T>) void forward(const Correlation& c, const ForwardOperands<T>& x, bool /*tiles*/) {
  forward(c, x);
}
template <class T>
requires(!kWidened<T>) void backward_input(const Conv2dShape& s, const T* grad_output, const T* weight,
                                           T* grad_input, bool /*tiles*/) {
  backward_input(s, grad_output, weight, grad_input);
}
template <class T>
requires(!kWidened<T>) void backward_weight(const Correlation& c, const WeightGradOperands<T>& x,
                                            bool /*tiles*/) {
  backward_weight(c, x);
}

}  // namespace

void conv2d(const LaunchContext&, const Conv2dArgs& args, bool tiles) {
  if (args.shape.groups == 0) return;
  const Correlation c = correlation(args.shape);
  if (is_empty(c)) return;
  visit_floating(args.dtype, [&]<class T>() {
    forward(c,
            ForwardOperands<T>{static_cast<const T*>(args.input), static_cast<const T*>(args.weight),
                               static_cast<const T*>(args.bias), static_cast<T*>(args.output), args.relu},
            tiles);
  });
}

void binary(const LaunchContext& context, const BinaryArgs& args);

void conv2d_backward(const LaunchContext& context, const Conv2dBackwardArgs& args, bool tiles) {
  const Conv2dShape& s = args.shape;
  if (s.groups == 0) return;
  visit_floating(args.dtype, [&]<class T>() {
    const T* grad = static_cast<const T*>(args.grad_output);
    const int64_t outputs = s.batch * s.out_channels * s.out_h * s.out_w;
    const Scratch<T> masked(args.relu_output != nullptr ? outputs : 0);
    if (args.relu_output != nullptr) {
      const int64_t dense = 1;
      binary(context,
             relu_mask(args.dtype, masked.get(), grad, args.relu_output, IntArrayRef(&outputs, 1), &dense));
      grad = masked.get();
    }
    if (args.grad_input != nullptr && s.batch * s.in_channels * s.in_h * s.in_w > 0)
      backward_input(s, grad, static_cast<const T*>(args.weight), static_cast<T*>(args.grad_input), tiles);
    if (args.grad_weight != nullptr || args.grad_bias != nullptr)
      backward_weight(
          correlation(s),
          WeightGradOperands<T>{static_cast<const T*>(args.input), grad, static_cast<T*>(args.grad_weight),
                                static_cast<T*>(args.grad_bias)},
          tiles);
  });
}

void conv2d(const LaunchContext& context, const Conv2dArgs& args) { conv2d(context, args, false); }
void conv2d_tiles(const LaunchContext& context, const Conv2dArgs& args) { conv2d(context, args, true); }
void conv2d_backward(const LaunchContext& context, const Conv2dBackwardArgs& args) {
  conv2d_backward(context, args, false);
}
void conv2d_backward_tiles(const LaunchContext& context, const Conv2dBackwardArgs& args) {
  conv2d_backward(context, args, true);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
