// Layers that change the shape alone.
#pragma once

#include <vector>

#include "tern/nn/module.h"

namespace tern::nn {

/// Gives back what it gets.
struct Identity final : Module {
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return x; }
};

/// Makes one dimension of those from start_dim to end_dim.
struct Flatten final : Module {
  explicit Flatten(int64_t start_dim_ = 1, int64_t end_dim_ = -1)
      : start_dim(start_dim_), end_dim(end_dim_) {}
  int64_t start_dim;
  int64_t end_dim;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return x.flatten(start_dim, end_dim); }
  std::string extra_repr() const override;
};

/// Makes several dimensions of one; one size may be -1.
struct Unflatten final : Module {
  Unflatten(int64_t dim_, std::vector<int64_t> unflattened_size_)
      : dim(dim_), unflattened_size(std::move(unflattened_size_)) {}
  int64_t dim;
  std::vector<int64_t> unflattened_size;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

}  // namespace tern::nn
