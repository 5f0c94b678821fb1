// The ways in which the CPU computes a convolution. conv.cpp chooses among them; each has a file of its own:
//   conv_gemm.cpp      image patches packed for the blocked matrix product: float and double, every shape
//   conv_direct*.cpp   the product's microkernel, output channels in the lanes, no patches: float
//   conv_indirect.cpp  the product's microkernel, pixels in the lanes, no patches: float, few output channels
//   conv_lanes*.cpp    one image in each SIMD lane: float, few channels, batches
//   conv_depthwise.cpp neighbouring pixels in the lanes: float, one channel in each group
//   conv_tiles.cpp     the product on AMX tiles, or by pairs: bfloat16
// Otherwise 16-bit types are widened to float as a whole.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/backends/cpu/kernels/gemm.h"
#include "tern/kernels/conv.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// A cross-correlation: out[n, g, o, y, x] = sum over c, i, j of
///   in[n, g, c, y * stride_h - pad_h + i * dilation_h, x * stride_w - pad_w + j * dilation_w] * weight[g, o,
///   c, i, j],
/// zero outside the image. Unlike Conv2dShape, channels are those of one group, and padding may be negative.
struct Correlation {
  int64_t batch, groups;
  int64_t in_c, in_h, in_w;
  int64_t out_c, out_h, out_w;
  int64_t kernel_h, kernel_w;
  int64_t stride_h, stride_w;
  int64_t pad_h, pad_w;
  int64_t dilation_h, dilation_w;

  int64_t in_size() const { return in_h * in_w; }
  int64_t out_size() const { return out_h * out_w; }
  int64_t taps() const { return kernel_h * kernel_w; }
  /// Rows and columns that taps reach, from the first row and column of padding on.
  int64_t reach_h() const { return (out_h - 1) * stride_h + (kernel_h - 1) * dilation_h + 1; }
  int64_t reach_w() const { return (out_w - 1) * stride_w + (kernel_w - 1) * dilation_w + 1; }
  /// Products summed for one output.
  int64_t depth() const { return in_c * taps(); }
  double work() const {
    return static_cast<double>(batch * groups) * static_cast<double>(out_c * out_size()) *
           static_cast<double>(depth());
  }
};

inline Correlation correlation(const Conv2dShape& s) {
  return {.batch = s.batch,
          .groups = s.groups,
          .in_c = s.in_channels / s.groups,
          .in_h = s.in_h,
          .in_w = s.in_w,
          .out_c = s.out_channels / s.groups,
          .out_h = s.out_h,
          .out_w = s.out_w,
          .kernel_h = s.kernel_h,
          .kernel_w = s.kernel_w,
          .stride_h = s.stride_h,
          .stride_w = s.stride_w,
          .pad_h = s.padding_h,
          .pad_w = s.padding_w,
          .dilation_h = s.dilation_h,
          .dilation_w = s.dilation_w};
}

/// The correlation that gives the gradient of the input where strides are 1: of the output's gradient with
/// the weights turned by `turn_weights`.
inline Correlation turned(Correlation c) {
  std::swap(c.in_c, c.out_c);
  std::swap(c.in_h, c.out_h);
  std::swap(c.in_w, c.out_w);
  c.pad_h = c.dilation_h * (c.kernel_h - 1) - c.pad_h;
  c.pad_w = c.dilation_w * (c.kernel_w - 1) - c.pad_w;
  return c;
}
inline Correlation backward_correlation(const Conv2dShape& s) { return turned(correlation(s)); }

/// weight [groups, out_c, in_c, KH, KW] of the forward pass to [groups, in_c, out_c, KH, KW], kernels rotated
/// by half a turn. `c` is the backward correlation.
template <class T>
void turn_weights(const Correlation& c, const T* weight, T* turned) {
  const int64_t taps = c.taps();
  for (int64_t g = 0; g < c.groups; ++g) {
    for (int64_t o = 0; o < c.out_c; ++o) {
      for (int64_t i = 0; i < c.in_c; ++i) {
        const T* from = weight + ((g * c.in_c + i) * c.out_c + o) * taps;
        T* to = turned + ((g * c.out_c + o) * c.in_c + i) * taps;
        for (int64_t t = 0; t < taps; ++t) to[t] = from[taps - 1 - t];
      }
    }
  }
}

/// Operands of a forward pass. `bias` may be null.
template <class T>
struct ForwardOperands {
  const T* input;
  const T* weight;
  const T* bias;
  T* output;
  bool relu;
};

/// Operands of the gradient of weight and bias; either result may be null.
template <class T>
struct WeightGradOperands {
  const T* input;
  const T* grad_output;
  T* grad_weight;
  T* grad_bias;
};

template <class T>
void conv_gemm(const Correlation& c, const ForwardOperands<T>& x);
template <class T>
void conv_gemm_backward_weight(const Correlation& c, const T* input, const T* grad_output, T* grad_weight);
/// The gradient of the input for any strides: patches of gradients added into the image.
template <class T>
void conv_gemm_backward_input(const Correlation& c, const T* grad_output, const T* weight, T* grad_input);

void conv_indirect(const Correlation& c, const ForwardOperands<float>& x);

void conv_direct(const Correlation& c, const ForwardOperands<float>& x);
/// The gradient of the input for any strides.
void conv_direct_backward_input(const Correlation& c, const float* grad_output, const float* weight,
                                float* grad_input);
void conv_direct_backward_weight(const Correlation& c, const float* input, const float* grad_output,
                                 float* grad_weight);
bool conv_suits_direct_backward_weight(const Correlation& c);

/// Lanes of images: batch must not be 0. Good where conv_suits_lanes says so.
void conv_lanes(const Correlation& c, const ForwardOperands<float>& x);
void conv_lanes_backward_weight(const Correlation& c, const WeightGradOperands<float>& x);
void conv_lanes_backward_input(const Correlation& c, const float* grad_output, const float* weight,
                               float* grad_input);
bool conv_suits_lanes(const Correlation& c);
bool conv_suits_lanes_backward_weight(const Correlation& c);
bool conv_suits_lanes_backward_input(const Correlation& c);

/// One input channel in each group, and few outputs: good where conv_suits_depthwise says so.
void conv_depthwise(const Correlation& c, const ForwardOperands<float>& x);
void conv_depthwise_backward_weight(const Correlation& c, const float* input, const float* grad_output,
                                    float* grad_weight);
void conv_depthwise_backward_input(const Correlation& c, const float* grad_output, const float* weight,
                                   float* grad_input);
bool conv_suits_depthwise(const Correlation& c);

/// On AMX tiles, or by pairs: good where conv_suits_tiles says so. They answer whether it was done: both take
/// numbers below the normal ones for 0, so that operands from which such a product could come are for the
/// other ways, and so are gradients of images of which most would be left out.
bool conv_tiles(const Correlation& c, const ForwardOperands<BFloat16>& x);
bool conv_tiles_backward_weight(const Correlation& c, const BFloat16* input, const BFloat16* grad_output,
                                BFloat16* grad_weight);
bool conv_tiles_backward_input(const Correlation& c, const BFloat16* grad_output, const BFloat16* weight,
                               BFloat16* grad_input);
/// `rows`: output channels, those of the gradient of the input, or products of both for that of the weights.
bool conv_suits_tiles(const Correlation& c, int64_t rows);

/// Estimated cycles for one image and group.
double conv_direct_cost(const Correlation& c);
double conv_indirect_cost(const Correlation& c);
double conv_gemm_cost(const Correlation& c);

}  // namespace tern::cpu::TERN_CPU_VARIANT
