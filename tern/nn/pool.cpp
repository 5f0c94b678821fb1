// Pooling layers.
#include "tern/nn/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tern/nn/layer_support.h"
#include "tern/nn/text.h"

namespace tern::nn {
namespace {

/// A pooling's options; a window may have no more padding than its half.
template <class Size>
void check_pool(const char* layer, Size kernel_size, Size stride, Size padding, Size dilation) {
  const auto kernel = sizes_of(kernel_size), pads = sizes_of(padding), steps = sizes_of(dilation);
  check_window(layer, kernel, sizes_of(stride), pads, steps);
  for (size_t d = 0; d < kernel.size(); ++d)
    TERN_CHECK(pads[d] <= (steps[d] * (kernel[d] - 1) + 1) / 2, ValueError,
               "{}: pad should be at most half of effective kernel size, but got pad={}, "
               "kernel_size={} and dilation={}",
               layer, tuple_text(padding), tuple_text(kernel_size), tuple_text(dilation));
}

// By N - 1.
constexpr const char* kMaxNames[] = {"MaxPool1d", "MaxPool2d", "MaxPool3d"};
constexpr const char* kUnpoolNames[] = {"MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"};
constexpr const char* kLpNames[] = {"LPPool1d", "LPPool2d", "LPPool3d"};
constexpr const char* kAvgNames[] = {"AvgPool1d", "AvgPool2d", "AvgPool3d"};
constexpr const char* kAdaptiveNames[2][3] = {
    {"AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d"},
    {"AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d"}};

}  // namespace

// ---- maxima

template <int N>
MaxPool<N>::MaxPool(SizeOf<N> kernel_size, const MaxPoolOptions<N>& o)
    : options_{.kernel_size = kernel_size,
               .stride = o.stride,
               .padding = o.padding,
               .dilation = o.dilation,
               .ceil_mode = o.ceil_mode},
      return_indices_(o.return_indices) {
  check_pool(kMaxNames[N - 1], kernel_size, o.stride.value_or(kernel_size), o.padding, o.dilation);
}

template <int N>
Tensor MaxPool<N>::forward(const Tensor& x) const {
  TERN_CHECK(!return_indices_, ValueError,
             "{}: return_indices is set: call forward_with_indices, which gives the places too",
             kMaxNames[N - 1]);
  if constexpr (N == 1) return max_pool1d(x, options_);
  if constexpr (N == 2) return max_pool2d(x, options_);
  if constexpr (N == 3) return max_pool3d(x, options_);
}

template <int N>
std::pair<Tensor, Tensor> MaxPool<N>::forward_with_indices(const Tensor& x) const {
  if constexpr (N == 1) return max_pool1d_with_indices(x, options_);
  if constexpr (N == 2) return max_pool2d_with_indices(x, options_);
  if constexpr (N == 3) return max_pool3d_with_indices(x, options_);
}

template <int N>
std::string MaxPool<N>::class_name() const {
  return kMaxNames[N - 1];
}

template <int N>
std::string MaxPool<N>::extra_repr() const {
  const auto& o = options_;
  return fmt::format("kernel_size={}, stride={}, padding={}, dilation={}, ceil_mode={}",
                     sizes_text(o.kernel_size), sizes_text(o.stride.value_or(o.kernel_size)),
                     sizes_text(o.padding), sizes_text(o.dilation), python_text(o.ceil_mode));
}

// ---- maxima back in their places

template <int N>
MaxUnpool<N>::MaxUnpool(SizeOf<N> kernel_size, const MaxUnpoolOptions<N>& o)
    : kernel_size_(kernel_size), stride_(o.stride.value_or(kernel_size)), padding_(o.padding) {
  check_window(kUnpoolNames[N - 1], sizes_of(kernel_size_), sizes_of(stride_), sizes_of(padding_),
               sizes_of(SizeOf<N>(1)));
}

template <int N>
Tensor MaxUnpool<N>::forward(const Tensor& x, const Tensor& indices, const Shape& output_size) const {
  const tern::MaxUnpoolOptions<N> options{
      .kernel_size = kernel_size_, .stride = stride_, .padding = padding_, .output_size = output_size};
  if constexpr (N == 1) return max_unpool1d(x, indices, options);
  if constexpr (N == 2) return max_unpool2d(x, indices, options);
  if constexpr (N == 3) return max_unpool3d(x, indices, options);
}

template <int N>
std::string MaxUnpool<N>::class_name() const {
  return kUnpoolNames[N - 1];
}

template <int N>
std::string MaxUnpool<N>::extra_repr() const {
  return fmt::format("kernel_size={}, stride={}, padding={}", tuple_text(kernel_size_), tuple_text(stride_),
                     tuple_text(padding_));
}

// ---- means

template <int N>
AvgPool<N>::AvgPool(SizeOf<N> kernel_size, const AvgPoolOptions<N>& o)
    : options_{.kernel_size = kernel_size,
               .stride = o.stride,
               .padding = o.padding,
               .ceil_mode = o.ceil_mode,
               .count_include_pad = o.count_include_pad} {
  check_pool(kAvgNames[N - 1], kernel_size, o.stride.value_or(kernel_size), o.padding, SizeOf<N>(1));
  if constexpr (N > 1) {
    TERN_CHECK(o.divisor_override != 0, ValueError, "{}: divisor_override must not be 0", kAvgNames[N - 1]);
    options_.divisor_override = o.divisor_override;
  }
}

template <int N>
Tensor AvgPool<N>::forward(const Tensor& x) const {
  if constexpr (N == 1) return avg_pool1d(x, options_);
  if constexpr (N == 2) return avg_pool2d(x, options_);
  if constexpr (N == 3) return avg_pool3d(x, options_);
}

template <int N>
std::string AvgPool<N>::class_name() const {
  return kAvgNames[N - 1];
}

template <int N>
std::string AvgPool<N>::extra_repr() const {
  const auto& o = options_;
  const auto write = [](SizeOf<N> size) { return N == 1 ? tuple_text(size) : sizes_text(size); };
  return fmt::format("kernel_size={}, stride={}, padding={}", write(o.kernel_size),
                     write(o.stride.value_or(o.kernel_size)), write(o.padding));
}

// ---- roots of sums of powers

template <int N>
LPPool<N>::LPPool(double norm_type, SizeOf<N> kernel_size, const LPPoolOptions<N>& o)
    : norm_type_(norm_type), kernel_size_(kernel_size), options_(o) {
  check_window(kLpNames[N - 1], sizes_of(kernel_size), sizes_of(o.stride.value_or(kernel_size)),
               sizes_of(SizeOf<N>(0)), sizes_of(SizeOf<N>(1)));
  TERN_CHECK(norm_type != 0, ValueError, "{}: norm_type must not be 0", kLpNames[N - 1]);
}

template <int N>
Tensor LPPool<N>::forward(const Tensor& x) const {
  if constexpr (N == 1) return lp_pool1d(x, norm_type_, kernel_size_, options_.stride, options_.ceil_mode);
  if constexpr (N == 2) return lp_pool2d(x, norm_type_, kernel_size_, options_.stride, options_.ceil_mode);
  if constexpr (N == 3) return lp_pool3d(x, norm_type_, kernel_size_, options_.stride, options_.ceil_mode);
}

template <int N>
std::string LPPool<N>::class_name() const {
  return kLpNames[N - 1];
}

template <int N>
std::string LPPool<N>::extra_repr() const {
  return fmt::format(
      "norm_type={}, kernel_size={}, stride={}, ceil_mode={}",
      norm_type_ == std::floor(norm_type_) ? fmt::format("{:.0f}", norm_type_) : python_text(norm_type_),
      sizes_text(kernel_size_), options_.stride ? sizes_text(*options_.stride) : "None",
      python_text(options_.ceil_mode));
}

// ---- windows that divide the input

template <int N, bool kMaximum>
AdaptivePool<N, kMaximum>::AdaptivePool(SizeOf<N> output_size) : output_size_(output_size) {
  at_least(kAdaptiveNames[kMaximum][N - 1], "output_size", sizes_of(output_size), -1);
}

template <int N, bool kMaximum>
Tensor AdaptivePool<N, kMaximum>::forward(const Tensor& x) const {
  if constexpr (N == 1)
    return kMaximum ? adaptive_max_pool1d(x, output_size_) : adaptive_avg_pool1d(x, output_size_);
  if constexpr (N == 2)
    return kMaximum ? adaptive_max_pool2d(x, output_size_) : adaptive_avg_pool2d(x, output_size_);
  if constexpr (N == 3)
    return kMaximum ? adaptive_max_pool3d(x, output_size_) : adaptive_avg_pool3d(x, output_size_);
}

template <int N, bool kMaximum>
std::pair<Tensor, Tensor> AdaptivePool<N, kMaximum>::forward_with_indices(
    const Tensor& x) const requires kMaximum {
  if constexpr (N == 1) return adaptive_max_pool1d_with_indices(x, output_size_);
  if constexpr (N == 2) return adaptive_max_pool2d_with_indices(x, output_size_);
  if constexpr (N == 3) return adaptive_max_pool3d_with_indices(x, output_size_);
}

template <int N, bool kMaximum>
std::string AdaptivePool<N, kMaximum>::class_name() const {
  return kAdaptiveNames[kMaximum][N - 1];
}

template <int N, bool kMaximum>
std::string AdaptivePool<N, kMaximum>::extra_repr() const {
  return "output_size=" + sizes_text(output_size_);
}

template class MaxPool<1>;
template class MaxPool<2>;
template class MaxPool<3>;
template class MaxUnpool<1>;
template class MaxUnpool<2>;
template class MaxUnpool<3>;
template class AvgPool<1>;
template class AvgPool<2>;
template class AvgPool<3>;
template class LPPool<1>;
template class LPPool<2>;
template class LPPool<3>;
template class AdaptivePool<1, false>;
template class AdaptivePool<2, false>;
template class AdaptivePool<3, false>;
template class AdaptivePool<1, true>;
template class AdaptivePool<2, true>;
template class AdaptivePool<3, true>;

}  // namespace tern::nn
