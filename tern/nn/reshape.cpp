// Layers that change the shape alone.
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

}  // namespace tern::nn
