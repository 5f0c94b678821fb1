// Pooling layers.
#include "tern/nn/pool.h"

#include <fmt/format.h>

#include "tern/nn/layer_support.h"
#include "tern/nn/text.h"

namespace tern::nn {
namespace {

/// A number when both are equal, else a tuple; -1 is None.
std::string text(Size2 size) {
  auto one = [](int64_t value) { return value == -1 ? std::string("None") : std::to_string(value); };
  return size.h == size.w ? one(size.h) : "(" + one(size.h) + ", " + one(size.w) + ")";
}

/// A pooling's options; a window may have no more padding than its half.
void check_pool(const char* layer, Size2 kernel_size, Size2 stride, Size2 padding, Size2 dilation = 1) {
  check_window(layer, kernel_size, stride, padding, dilation);
  TERN_CHECK(padding.h <= (dilation.h * (kernel_size.h - 1) + 1) / 2 &&
                 padding.w <= (dilation.w * (kernel_size.w - 1) + 1) / 2,
             ValueError,
             "{}: pad should be at most half of effective kernel size, but got pad=({}, {}), "
             "kernel_size=({}, {}) and dilation=({}, {})",
             layer, padding.h, padding.w, kernel_size.h, kernel_size.w, dilation.h, dilation.w);
}

/// The size of an adaptive pooling's result: -1 keeps the image's.
Size2 checked_output_size(const char* layer, Size2 output_size) {
  at_least(layer, "output_size", output_size, -1);
  return output_size;
}

}  // namespace

MaxPool2d::MaxPool2d(Size2 kernel_size, const MaxPool2dOptions& o)
    : options_{.kernel_size = kernel_size,
               .stride = o.stride,
               .padding = o.padding,
               .dilation = o.dilation,
               .ceil_mode = o.ceil_mode} {
  check_pool("MaxPool2d", kernel_size, o.stride.value_or(kernel_size), o.padding, o.dilation);
}

std::string MaxPool2d::extra_repr() const {
  const auto& o = options_;
  return fmt::format("kernel_size={}, stride={}, padding={}, dilation={}, ceil_mode={}", text(o.kernel_size),
                     text(o.stride.value_or(o.kernel_size)), text(o.padding), text(o.dilation),
                     python_text(o.ceil_mode));
}

AvgPool2d::AvgPool2d(Size2 kernel_size, const AvgPool2dOptions& o)
    : options_{.kernel_size = kernel_size,
               .stride = o.stride,
               .padding = o.padding,
               .ceil_mode = o.ceil_mode,
               .count_include_pad = o.count_include_pad,
               .divisor_override = o.divisor_override} {
  check_pool("AvgPool2d", kernel_size, o.stride.value_or(kernel_size), o.padding);
  TERN_CHECK(o.divisor_override != 0, ValueError, "AvgPool2d: divisor_override must not be 0");
}

std::string AvgPool2d::extra_repr() const {
  const auto& o = options_;
  return fmt::format("kernel_size={}, stride={}, padding={}", text(o.kernel_size),
                     text(o.stride.value_or(o.kernel_size)), text(o.padding));
}

MaxPool1d::MaxPool1d(int64_t kernel_size, const MaxPool1dOptions& o)
    : options_{.kernel_size = kernel_size,
               .stride = o.stride,
               .padding = o.padding,
               .dilation = o.dilation,
               .ceil_mode = o.ceil_mode} {
  check_pool("MaxPool1d", kernel_size, o.stride.value_or(kernel_size), o.padding, o.dilation);
}

std::string MaxPool1d::extra_repr() const {
  const auto& o = options_;
  return fmt::format("kernel_size={}, stride={}, padding={}, dilation={}, ceil_mode={}", o.kernel_size,
                     o.stride.value_or(o.kernel_size), o.padding, o.dilation, python_text(o.ceil_mode));
}

AvgPool1d::AvgPool1d(int64_t kernel_size, const AvgPool1dOptions& o)
    : options_{.kernel_size = kernel_size,
               .stride = o.stride,
               .padding = o.padding,
               .ceil_mode = o.ceil_mode,
               .count_include_pad = o.count_include_pad} {
  check_pool("AvgPool1d", kernel_size, o.stride.value_or(kernel_size), o.padding);
}

std::string AvgPool1d::extra_repr() const {
  const auto& o = options_;
  return fmt::format("kernel_size={}, stride={}, padding={}", python_tuple({o.kernel_size}),
                     python_tuple({o.stride.value_or(o.kernel_size)}), python_tuple({o.padding}));
}

AdaptiveAvgPool2d::AdaptiveAvgPool2d(Size2 output_size)
    : output_size_(checked_output_size("AdaptiveAvgPool2d", output_size)) {}

AdaptiveMaxPool2d::AdaptiveMaxPool2d(Size2 output_size)
    : output_size_(checked_output_size("AdaptiveMaxPool2d", output_size)) {}

std::string AdaptiveAvgPool2d::extra_repr() const { return "output_size=" + text(output_size_); }
std::string AdaptiveMaxPool2d::extra_repr() const { return "output_size=" + text(output_size_); }

AdaptiveAvgPool1d::AdaptiveAvgPool1d(int64_t output_size)
    : output_size_(at_least("AdaptiveAvgPool1d", "output_size", output_size, -1)) {}

AdaptiveMaxPool1d::AdaptiveMaxPool1d(int64_t output_size)
    : output_size_(at_least("AdaptiveMaxPool1d", "output_size", output_size, -1)) {}

std::string AdaptiveAvgPool1d::extra_repr() const { return "output_size=" + text(output_size_); }
std::string AdaptiveMaxPool1d::extra_repr() const { return "output_size=" + text(output_size_); }

}  // namespace tern::nn
