// Grids of places, made of other operators, whose gradients are theirs; and the reading at them, with its
// gradients. Which elements a place is made of is in kernels/grid_sample_axis.h.
#include "tern/ops/grid.h"

#include <array>
#include <vector>

#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

constexpr const char* kSampleOp = "grid_sample";

/// Coordinates of `size` pixels.
Tensor pixel_places(int64_t size, bool align_corners, const TensorOptions& like) {
  if (size == 1) return zeros({1}, like);
  const Tensor corners = linspace(-1, 1, size, like);
  return align_corners ? corners : mul(corners, static_cast<double>(size - 1) / static_cast<double>(size));
}

GridMode grid_mode(const std::string& name) {
  if (name == "bilinear") return GridMode::Linear;
  if (name == "nearest") return GridMode::Nearest;
  TERN_CHECK(name == "bicubic", ValueError,
             "{}: expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{}'", kSampleOp, name);
  return GridMode::Cubic;
}

GridPadding grid_padding(const std::string& name) {
  if (name == "zeros") return GridPadding::Zeros;
  if (name == "border") return GridPadding::Border;
  TERN_CHECK(name == "reflection", ValueError,
             "{}: expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{}'", kSampleOp,
             name);
  return GridPadding::Reflection;
}

void check_grid_sample(const Tensor& x, const Tensor& grid) {
  check_same_device(kSampleOp, {{"input", x}, {"grid", grid}});
  TERN_CHECK(
      is_floating_point(x.dtype()) && x.dtype() == grid.dtype(), DTypeError,
      "{}: expected input and grid to have the same floating-point dtype, but input has {} and grid has "
      "{}: convert one with to(dtype)",
      kSampleOp, name(x.dtype()), name(grid.dtype()));
  TERN_CHECK(
      (x.dim() == 4 || x.dim() == 5) && grid.dim() == x.dim(), ShapeError,
      "{}: expected 4D or 5D input and grid with same number of dimensions, but got input with sizes {} "
      "and grid with sizes {}",
      kSampleOp, to_string(x.shape()), to_string(grid.shape()));
  TERN_CHECK(x.size(0) == grid.size(0), ShapeError,
             "{}: expected grid and input to have same batch size, but got input with sizes {} and grid with "
             "sizes {}",
             kSampleOp, to_string(x.shape()), to_string(grid.shape()));
  TERN_CHECK(grid.size(-1) == x.dim() - 2, ShapeError,
             "{}: expected grid to have size {} in last dimension, but got grid with sizes {}", kSampleOp,
             x.dim() - 2, to_string(grid.shape()));
  for (int64_t d = 2; d < x.dim(); ++d) {
    TERN_CHECK(
        x.size(d) > 0, ShapeError,
        "{}: expected input to have non-empty spatial dimensions, but input has sizes {} with dimension "
        "{} being empty",
        kSampleOp, to_string(x.shape()), d);
    TERN_CHECK(x.size(d) <= kMostGridAxis, NotImplementedError,
               "{}: spatial dimensions of more than 2^30 are not implemented, but input has sizes {}",
               kSampleOp, to_string(x.shape()));
  }
}

/// All but the grid. The options are checked here, the tensors were.
GridPlan grid_plan_of(const Tensor& x, const Tensor& grid, const GridSampleOptions& o) {
  GridPlan plan;
  plan.dtype = x.dtype();
  plan.mode = grid_mode(o.mode);
  plan.padding = grid_padding(o.padding_mode);
  plan.align_corners = o.align_corners;
  plan.volumes = x.dim() == 5;
  plan.batch = x.size(0);
  plan.channels = x.size(1);
  if (plan.volumes) plan.d = x.size(2);
  plan.h = x.size(-2);
  plan.w = x.size(-1);
  for (int64_t d = 1; d + 1 < grid.dim(); ++d) plan.points *= grid.size(d);
  return plan;
}

/// Those of the input and of the grid; undefined where they are not needed.
std::array<Tensor, 2> sample_gradients(GridPlan plan, const Tensor& g, const Tensor& x, const Tensor& grid,
                                       bool of_input, bool of_grid) {
  std::array<Tensor, 2> grads;
  // Places that jump from element to element have none.
  const bool moves = plan.outputs() != 0 && plan.mode != GridMode::Nearest;
  const NoGradGuard no_grad;
  if (of_input) grads[0] = plan.outputs() == 0 ? zeros_like(x) : empty_of(x.shape(), x);
  if (of_grid) grads[1] = moves ? empty_of(grid.shape(), grid) : zeros_like(grid);
  if (plan.outputs() == 0 || (!of_input && !moves)) return grads;
  const Tensor g_dense = contiguous(g), grid_dense = contiguous(grid);
  GridSampleBackwardArgs args;
  args.plan = plan;
  args.plan.grid = grid_dense.data_ptr();
  args.grad_output = g_dense.data_ptr();
  if (of_input) args.grad_input = grads[0].data_ptr();
  Tensor x_dense;
  if (of_grid && moves) {
    x_dense = contiguous(x);
    args.input = x_dense.data_ptr();
    args.grad_grid = grads[1].data_ptr();
  }
  launch(current_stream(g.device()), kernels::grid_sample_backward, args);
  return grads;
}

/// Where the gradients are recorded themselves, gives them a history that says what is missing.
void refuse_second_derivative(const std::array<Tensor, 2>& grads, const std::vector<Tensor>& inputs) {
  if (!tracks_grad(inputs)) return;
  for (const Tensor& grad : grads)
    if (grad.defined())
      record("grid_sample_backward", grad, inputs, [](GradContext&, const Tensor&) -> std::vector<Tensor> {
        TERN_THROW(NotImplementedError, "{}: second derivatives are not implemented", kSampleOp);
      });
}

}  // namespace

Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners) {
  const char* op = "affine_grid";
  TERN_CHECK(is_floating_point(theta.dtype()), DTypeError,
             "{}: Expected theta to have floating point type, but got {}", op, name(theta.dtype()));
  TERN_CHECK(size.size() == 4 || size.size() == 5, ValueError,
             "{}: only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {}",
             op, to_string(size.to_shape()));
  for (const int64_t each : size)
    TERN_CHECK(each > 0, ValueError, "{}: Expected non-zero, positive output size. Got {}", op,
               to_string(size.to_shape()));
  const int64_t rank = static_cast<int64_t>(size.size()) - 2;
  TERN_CHECK(theta.shape() == Shape({size[0], rank, rank + 1}), ShapeError,
             "{}: Expected a batch of {}D affine matrices of shape {} for size {}. Got {}", op, rank,
             to_string(Shape{size[0], rank, rank + 1}), to_string(size.to_shape()), to_string(theta.shape()));
  const TensorOptions like{.dtype = theta.dtype(), .device = theta.device(), .requires_grad = false};
  Shape grid_shape(size.begin() + 2, size.end());
  std::vector<Tensor> columns;  // x, y, (z,) 1 of each pixel
  for (int64_t d = rank; d-- > 0;) {
    Shape along(static_cast<size_t>(rank), 1);
    along[static_cast<size_t>(d)] = size[static_cast<size_t>(d + 2)];
    columns.push_back(
        expand(reshape(pixel_places(along[static_cast<size_t>(d)], align_corners, like), along), grid_shape));
  }
  columns.push_back(ones(grid_shape, like));
  const Tensor base = flatten(stack(columns, -1), 0, -2);  // [pixels, rank + 1]
  const Tensor grid =
      bmm(expand(unsqueeze(base, 0), {size[0], base.size(0), rank + 1}), transpose(theta, 1, 2));
  Shape shape{size[0]};
  for (const int64_t each : grid_shape) shape.push_back(each);
  shape.push_back(rank);
  return reshape(grid, shape);
}

Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& o) {
  const auto again = [&](const Tensor& a, const Tensor& b) { return grid_sample(a, b, o); };
  if (autocasts_on_cpu(x)) [[unlikely]]
    return autocast_float32(again, x, grid);
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_widest(again, x, grid);
  check_grid_sample(x, grid);
  const GridPlan plan = grid_plan_of(x, grid, o);
  Shape shape{plan.batch, plan.channels};
  for (int64_t d = 1; d + 1 < grid.dim(); ++d) shape.push_back(grid.size(d));
  const Tensor y = empty_of(std::move(shape), x);
  if (plan.outputs() != 0) {
    const NoGradGuard no_grad;
    const Tensor x_dense = contiguous(x), grid_dense = contiguous(grid);
    GridSampleArgs args{plan, x_dense.data_ptr(), y.data_ptr()};
    args.plan.grid = grid_dense.data_ptr();
    launch(current_stream(x.device()), kernels::grid_sample, args);
  }
  if (tracks_grad(x, grid))
    record(kSampleOp, y, {x, grid},
           [plan, x_ = save(x), grid_ = save(grid)](GradContext& c, const Tensor& g) {
             const Tensor input = c[x_], places = c[grid_];
             std::array<Tensor, 2> grads = sample_gradients(plan, g, input, places, c.needs(0), c.needs(1));
             refuse_second_derivative(grads, {g, input, places});
             return grads;
           });
  return y;
}

}  // namespace tern
