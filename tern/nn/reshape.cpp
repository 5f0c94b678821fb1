// Layers that change the shape alone, and the order of elements.
#include "tern/nn/reshape.h"

#include <fmt/format.h>

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

}  // namespace tern::nn
