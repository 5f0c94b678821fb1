// Arguments of the kernels that read images and volumes at places of a grid, shared by every backend. Which
// elements make which is in tern/kernels/grid_sample_axis.h; checks and gradients are in tern/ops/grid.cpp.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern {

enum class GridMode : std::uint8_t { Nearest, Linear, Cubic };

/// What lies outside.
enum class GridPadding : std::uint8_t {
  Zeros,
  Border,      ///< the nearest element
  Reflection,  ///< mirrored at the border
};

/// The elements along each axis that a place is made of.
constexpr int grid_taps(GridMode mode) {
  return mode == GridMode::Nearest ? 1 : mode == GridMode::Linear ? 2 : 4;
}

/// Inputs [batch, channels, d, h, w] at `points` places of each of the batch. Everything is contiguous and
/// has one floating dtype; images are volumes of depth 1. Axes have at most kMostGridAxis elements.
struct GridPlan {
  DType dtype{};
  GridMode mode = GridMode::Linear;
  GridPadding padding = GridPadding::Zeros;
  bool align_corners = false;  ///< -1 and 1 are the centres of the outermost elements, not their outer edges
  bool volumes = false;        ///< whether places have a depth
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t d = 1, h = 1, w = 1;
  std::int64_t points = 1;
  const void* grid = nullptr;  ///< [batch, points, 2 or 3]: x, y and the depth

  int rank() const { return volumes ? 3 : 2; }
  std::int64_t plane() const { return d * h * w; }
  std::int64_t inputs() const { return batch * channels * plane(); }
  std::int64_t outputs() const { return batch * channels * points; }
  /// The inputs that an output is made of.
  int taps() const {
    const int along = grid_taps(mode);
    return volumes ? along * along * along : along * along;
  }
};

/// Places are numbers of 32 bits.
inline constexpr std::int64_t kMostGridAxis = std::int64_t{1} << 30;

/// output[n, c, p] = sum over the taps t of point p of weight[n, p, t] * input[n, c, place[n, p, t]].
struct GridSampleArgs {
  GridPlan plan;
  const void* input = nullptr;
  void* output = nullptr;  ///< [batch, channels, points]
};

/// Either gradient may be null, and `input` where grad_grid is. That of the grid is for linear and cubic
/// modes only. Sums have an order that is always the same.
struct GridSampleBackwardArgs {
  GridPlan plan;
  const void* grad_output = nullptr;  ///< [batch, channels, points]
  const void* input = nullptr;
  void* grad_input = nullptr;
  void* grad_grid = nullptr;
};

}  // namespace tern

/// X(kernel, argument struct) for kernels/list.h.
#define TERN_GRID_KERNELS(X)     \
  X(grid_sample, GridSampleArgs) \
  X(grid_sample_backward, GridSampleBackwardArgs)
