// Pooling layers.
#include "tern/nn/pool.h"

#include <fmt/format.h>

#include "tern/nn/text.h"

namespace tern::nn {
namespace {

/// A number when both are equal, else a tuple; -1 is None.
std::string text(Size2 size) {
  auto one = [](int64_t value) { return value == -1 ? std::string("None") : std::to_string(value); };
  return size.h == size.w ? one(size.h) : "(" + one(size.h) + ", " + one(size.w) + ")";
}

}  // namespace

MaxPool2d::MaxPool2d(Size2 kernel_size, const MaxPool2dOptions& o)
    : options_{.kernel_size = kernel_size,
               .stride = o.stride,
               .padding = o.padding,
               .dilation = o.dilation,
               .ceil_mode = o.ceil_mode} {}

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
               .divisor_override = o.divisor_override} {}

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
               .ceil_mode = o.ceil_mode} {}

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
               .count_include_pad = o.count_include_pad} {}

std::string AvgPool1d::extra_repr() const {
  const auto& o = options_;
  return fmt::format("kernel_size={}, stride={}, padding={}", python_tuple({o.kernel_size}),
                     python_tuple({o.stride.value_or(o.kernel_size)}), python_tuple({o.padding}));
}

std::string AdaptiveAvgPool2d::extra_repr() const { return "output_size=" + text(output_size_); }
std::string AdaptiveMaxPool2d::extra_repr() const { return "output_size=" + text(output_size_); }

}  // namespace tern::nn
