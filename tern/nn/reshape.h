// Layers that change the shape alone, and the order of elements.
#pragma once

#include <vector>

#include "tern/nn/module.h"
#include "tern/ops/fold.h"
#include "tern/ops/pixel.h"

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

/// Makes upscale_factor^2 channels larger images of one channel; see tern::pixel_shuffle.
struct PixelShuffle final : Module {
  explicit PixelShuffle(int64_t upscale_factor_) : upscale_factor(upscale_factor_) {}
  int64_t upscale_factor;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return pixel_shuffle(x, upscale_factor); }
  std::string extra_repr() const override;
};

/// The inverse.
struct PixelUnshuffle final : Module {
  explicit PixelUnshuffle(int64_t downscale_factor_) : downscale_factor(downscale_factor_) {}
  int64_t downscale_factor;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return pixel_unshuffle(x, downscale_factor); }
  std::string extra_repr() const override;
};

/// Spreads the channels of each group over all; see tern::channel_shuffle.
struct ChannelShuffle final : Module {
  explicit ChannelShuffle(int64_t groups_);
  int64_t groups;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return channel_shuffle(x, groups); }
  std::string extra_repr() const override;
};

/// Sliding blocks of images as columns; see tern::unfold.
struct Unfold final : Module {
  explicit Unfold(Size2 kernel_size_, const FoldOptions& options_ = {});
  Size2 kernel_size;
  FoldOptions options;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return unfold(x, kernel_size, options); }
  std::string extra_repr() const override;
};

/// The sum of sliding blocks as images of output_size; see tern::fold.
struct Fold final : Module {
  Fold(Size2 output_size_, Size2 kernel_size_, const FoldOptions& options_ = {});
  Size2 output_size;
  Size2 kernel_size;
  FoldOptions options;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return fold(x, output_size, kernel_size, options); }
  std::string extra_repr() const override;
};

}  // namespace tern::nn
