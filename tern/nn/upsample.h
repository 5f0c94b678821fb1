// Layers that give signals, images and volumes another size. The operator is in ops/interpolate.h.
#pragma once

#include "tern/nn/module.h"
#include "tern/ops/interpolate.h"
#include "tern/ops/size2.h"

namespace tern::nn {

/// As tern::InterpolateOptions, without antialiasing.
struct UpsampleOptions {
  std::vector<int64_t> size = {};
  std::vector<double> scale_factor = {};
  std::string mode = "nearest";
  std::optional<bool> align_corners = {};
  bool recompute_scale_factor = false;
};

/// Another size for [N, C, L], [N, C, H, W] or [N, C, D, H, W]; see tern::interpolate.
class Upsample : public Module {
 public:
  /// ValueError unless one of size and scale_factor is given, and for numbers that are not positive.
  explicit Upsample(const UpsampleOptions& options);
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return interpolate(x, options_); }
  std::string extra_repr() const override;
  const InterpolateOptions& options() const noexcept { return options_; }

 protected:
  Upsample(const char* layer, const UpsampleOptions& options);

 private:
  InterpolateOptions options_;
};

/// `size`, or `scale_factor` times the size, of the two layers for images.
struct Upsample2dOptions {
  std::vector<int64_t> size = {};
  std::vector<double> scale_factor = {};
};

/// The nearest pixels of [N, C, H, W].
struct UpsamplingNearest2d final : Upsample {
  explicit UpsamplingNearest2d(const Upsample2dOptions& options);
};

/// Between the pixels of [N, C, H, W], with corners that stay where they are.
struct UpsamplingBilinear2d final : Upsample {
  explicit UpsamplingBilinear2d(const Upsample2dOptions& options);
};

}  // namespace tern::nn
