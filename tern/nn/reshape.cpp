// Layers that change the shape alone, and the order of elements.
#include "tern/nn/reshape.h"

#include <fmt/format.h>

#include "tern/nn/layer_support.h"
#include "tern/nn/text.h"
#include "tern/ops/shape.h"

namespace tern::nn {

std::string Flatten::extra_repr() const {
  return fmt::format("start_dim={}, end_dim={}", start_dim, end_dim);
}

Tensor Unflatten::forward(const Tensor& x) const { return unflatten(x, dim, unflattened_size); }

std::string Unflatten::extra_repr() const {
  return fmt::format("dim={}, unflattened_size={}", dim, python_tuple(unflattened_size));
}

std::string PixelShuffle::extra_repr() const { return fmt::format("upscale_factor={}", upscale_factor); }
std::string PixelUnshuffle::extra_repr() const {
  return fmt::format("downscale_factor={}", downscale_factor);
}

ChannelShuffle::ChannelShuffle(int64_t groups_) : groups(at_least("ChannelShuffle", "groups", groups_, 1)) {}
std::string ChannelShuffle::extra_repr() const { return fmt::format("groups={}", groups); }

namespace {

void check_blocks(const char* layer, Size2 kernel_size, const FoldOptions& o) {
  check_window(layer, sizes_of(kernel_size), sizes_of(o.stride), sizes_of(o.padding), sizes_of(o.dilation));
}
std::string blocks_repr(Size2 kernel_size, const FoldOptions& o) {
  return fmt::format("kernel_size={}, dilation={}, padding={}, stride={}", sizes_text(kernel_size),
                     sizes_text(o.dilation), sizes_text(o.padding), sizes_text(o.stride));
}

}  // namespace

Unfold::Unfold(Size2 kernel_size_, const FoldOptions& options_)
    : kernel_size(kernel_size_), options(options_) {
  check_blocks("Unfold", kernel_size, options);
}
std::string Unfold::extra_repr() const { return blocks_repr(kernel_size, options); }

Fold::Fold(Size2 output_size_, Size2 kernel_size_, const FoldOptions& options_)
    : output_size(output_size_), kernel_size(kernel_size_), options(options_) {
  at_least("Fold", "output_size", sizes_of(output_size), 1);
  check_blocks("Fold", kernel_size, options);
}
std::string Fold::extra_repr() const {
  return fmt::format("output_size={}, {}", sizes_text(output_size), blocks_repr(kernel_size, options));
}

}  // namespace tern::nn
