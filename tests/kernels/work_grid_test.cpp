// Descriptions of the launches of readings by grids; work_test.cpp has the others.
#include "tern/kernels/grid_sample.h"
#include "tests/kernels/work_testing.h"

namespace tern::work_testing {
namespace {

TEST(Work, GridSample) {
  GridPlan plan{.dtype = float32, .batch = 2, .channels = 3, .h = 4, .w = 5, .points = 7, .grid = kB};
  const double out = 2 * 3 * 7 * 4, in = 2 * 3 * 20 * 4, grid = 2 * 7 * 2 * 4;
  expect_work(kernels::grid_sample, {plan, kA, kOut}, "grid_sample", 2.0 * 4 * 42, out + in + grid,
              {{kOut, 168, "w"}, {kA, 480, "r"}, {kB, 112, "r"}});
  GridSampleBackwardArgs back{plan, kA, nullptr, kOut, nullptr};
  expect_work(kernels::grid_sample_backward, back, "grid_sample_backward", 2.0 * 4 * 42, out + in + grid,
              {{kOut, 480, "w"}, {kA, 168, "r"}, {kB, 112, "r"}});
  back = {plan, kA, kC, nullptr, kD};
  expect_work(kernels::grid_sample_backward, back, "grid_sample_backward", 2.0 * 4 * 42 * 2,
              out + in + 2 * grid, {{kD, 112, "w"}, {kA, 168, "r"}, {kC, 480, "r"}, {kB, 112, "r"}});

  // Few places of volumes, each of which is one element.
  plan.mode = GridMode::Nearest;
  plan.volumes = true;
  plan.d = 10;
  plan.points = 1;
  expect_work(kernels::grid_sample, {plan, kA, kOut}, "grid_sample", 0, 24 + 24 + 24,
              {{kOut, 24, "w"}, {kA, 4800, "r"}, {kB, 24, "r"}});
  plan.channels = 0;
  expect_work(kernels::grid_sample, {plan, kA, kOut}, "grid_sample", 0, 0, {});
}

}  // namespace
}  // namespace tern::work_testing
