// The convolution kernels: which way of computing is taken for a shape and dtype. The ways are listed in
// conv_paths.h.
#include "tern/kernels/conv.h"

#include "tern/backends/cpu/kernels/conv_paths.h"
#include "tern/backends/cpu/kernels/scratch.h"
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
  if (s.batch * s.in_channels * s.in_h * s.in_w == 0) return;
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
void backward_weight(const Conv2dShape& s, const WeightGradOperands<T>& x) {
  const Correlation c = correlation(s);
  if constexpr (std::is_same_v<T, float>) {
    if (!is_empty(c) && x.grad_weight != nullptr) {
      const bool depthwise = conv_suits_depthwise(c);
      if (depthwise || conv_suits_direct_backward_weight(c)) {
        (depthwise ? conv_depthwise_backward_weight : conv_direct_backward_weight)(c, x.input, x.grad_output,
                                                                                   x.grad_weight);
        return conv_gemm_backward_weight(c,
                                         WeightGradOperands<T>{x.input, x.grad_output, nullptr, x.grad_bias});
      }
      if (conv_suits_lanes_backward_weight(c)) return conv_lanes_backward_weight(c, x);
    }
  }
  conv_gemm_backward_weight(c, x);
}

}  // namespace

void conv2d(const LaunchContext&, const Conv2dArgs& args) {
  if (args.shape.groups == 0) return;
  const Correlation c = correlation(args.shape);
  if (is_empty(c)) return;
  visit_floating(args.dtype, [&]<class T>() {
    forward(c, ForwardOperands<T>{static_cast<const T*>(args.input), static_cast<const T*>(args.weight),
                                  static_cast<const T*>(args.bias), static_cast<T*>(args.output), args.relu});
  });
}

void binary(const LaunchContext& context, const BinaryArgs& args);

void conv2d_backward(const LaunchContext& context, const Conv2dBackwardArgs& args) {
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
    if (args.grad_input != nullptr)
      backward_input(s, grad, static_cast<const T*>(args.weight), static_cast<T*>(args.grad_input));
    if (args.grad_weight != nullptr || args.grad_bias != nullptr)
      backward_weight(
          s, WeightGradOperands<T>{static_cast<const T*>(args.input), grad, static_cast<T*>(args.grad_weight),
                                   static_cast<T*>(args.grad_bias)});
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
