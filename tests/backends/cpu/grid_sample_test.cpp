// The readings by grids and their gradients, for every number of channels and threads, against plain loops
// over the taps of each point.
#include "tern/kernels/grid_sample.h"

#include <fmt/format.h>

#include "tern/kernels/grid_sample_axis.h"
#include "tests/backends/cpu/kernel_testing.h"

namespace tern::testing {
namespace {

struct Expected {
  std::vector<double> output, grad_input, grad_grid;
};

template <class T, GridMode mode>
Expected by_loops(const GridPlan& s, const std::vector<T>& x, const std::vector<T>& grid,
                  const std::vector<T>& grad) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  constexpr int kAlong = grid_taps(mode);
  const GridAxes<C> axes(s, /*backward=*/false);
  Expected e{std::vector<double>(grad.size()), std::vector<double>(x.size()),
             std::vector<double>(grid.size())};
  const int rank = s.rank();
  for (int64_t q = 0; q < s.batch * s.points; ++q) {
    GridTaps<C, kAlong> at[3];
    at[2] = {{0}, {1}, {0}};
    const auto coordinate = [&](int k) {
      return static_cast<C>(to_double(grid[static_cast<size_t>(q * rank + k)]));
    };
    axes.x.template find<mode>(coordinate(0), at[0]);
    axes.y.template find<mode>(coordinate(1), at[1]);
    if (s.volumes) axes.z.template find<mode>(coordinate(2), at[2]);
    for (int64_t c = 0; c < s.channels; ++c)
      for (int t = 0; t < s.taps(); ++t) {
        const int tap[] = {t % kAlong, t / kAlong % kAlong, t / kAlong / kAlong};
        if (at[0].place[tap[0]] < 0 || at[1].place[tap[1]] < 0 || at[2].place[tap[2]] < 0) continue;
        const int64_t plane = q / s.points * s.channels + c;
        const auto from = static_cast<size_t>(
            ((plane * s.d + at[2].place[tap[2]]) * s.h + at[1].place[tap[1]]) * s.w + at[0].place[tap[0]]);
        const auto to = static_cast<size_t>(plane * s.points + q % s.points);
        double weight = 1;
        for (int k = 0; k < 3; ++k) weight *= at[k].weight[tap[k]];
        e.output[to] += weight * to_double(x[from]);
        e.grad_input[from] += weight * to_double(grad[to]);
        for (int k = 0; k < rank; ++k) {
          double slope = at[k].slope[tap[k]];
          for (int other = 0; other < 3; ++other)
            if (other != k) slope *= at[other].weight[tap[other]];
          e.grad_grid[static_cast<size_t>(q * rank + k)] += slope * to_double(x[from]) * to_double(grad[to]);
        }
      }
  }
  return e;
}

template <class T>
void check(const Variant& variant, Random& random, GridPlan s) {
  s.dtype = dtype_of<T>();
  const std::string what = fmt::format("{} mode {} padding {} [{}, {}, {}, {}, {}] at {} points",
                                       name(s.dtype), static_cast<int>(s.mode), static_cast<int>(s.padding),
                                       s.batch, s.channels, s.d, s.h, s.w, s.points);
  const auto x = random.elements<T>(s.inputs()), grad = random.elements<T>(s.outputs());
  std::vector<T> grid(static_cast<size_t>(s.batch * s.points * s.rank()));
  for (T& each : grid) each = T(static_cast<float>(random.integer(-37, 37)) / 27.0f);
  std::vector<T> output(grad.size()), grad_input(x.size()), grad_grid(grid.size());
  const Expected expected = s.mode == GridMode::Nearest  ? by_loops<T, GridMode::Nearest>(s, x, grid, grad)
                            : s.mode == GridMode::Linear ? by_loops<T, GridMode::Linear>(s, x, grid, grad)
                                                         : by_loops<T, GridMode::Cubic>(s, x, grid, grad);
  s.grid = grid.data();
  variant.run(kernels::grid_sample, {s, x.data(), output.data()});
  expect_near(output, expected.output, what);
  const bool moves = s.mode != GridMode::Nearest;
  variant.run(kernels::grid_sample_backward,
              {s, grad.data(), x.data(), grad_input.data(), moves ? grad_grid.data() : nullptr});
  expect_near(grad_input, expected.grad_input, "gradient of the input, " + what);
  if (!moves) return;
  // Sums of channels, of numbers that cancel.
  for (size_t i = 0; i < grid.size(); ++i)
    EXPECT_NEAR(to_double(grad_grid[i]), expected.grad_grid[i],
                tolerance<T>() * (2.0 * static_cast<double>(s.channels * (s.h + s.w + s.d)) +
                                  std::abs(expected.grad_grid[i])))
        << "gradient of the grid, " << what;
}

TEST(CpuGridSample, EveryModeAndNumberOfChannels) {
  for_each_variant([](const Variant& variant) {
    Random random(1);
    for (int i = 0; i < 200; ++i) {
      GridPlan s;
      s.mode = static_cast<GridMode>(random.integer(0, 2));
      s.padding = static_cast<GridPadding>(random.integer(0, 2));
      s.align_corners = random.coin();
      s.volumes = random.integer(0, 2) == 0;
      s.batch = random.integer(1, 3);
      s.channels = random.coin() ? random.integer(1, 5) : random.integer(1, 37);
      if (s.volumes) s.d = random.integer(1, 5);
      s.h = random.integer(1, 12);
      s.w = random.integer(1, 40);
      s.points = random.coin() ? random.integer(1, 20) : random.integer(1, 300);
      with_random_float(random, [&]<class T>() { check<T>(variant, random, s); });
    }
  });
}

/// Where coordinates are no numbers or huge nothing outside is touched, and threads change no bit.
TEST(CpuGridSample, StaysInsideAndRepeatsTheSameBits) {
  for_each_variant([](const Variant& variant) {
    Random random(2);
    for (const bool volumes : {false, true})
      for (int mode = 0; mode < 3; ++mode)
        for (int padding = 0; padding < 3; ++padding) {
          GridPlan s;
          s.dtype = float32;
          s.mode = static_cast<GridMode>(mode);
          s.padding = static_cast<GridPadding>(padding);
          s.volumes = volumes;
          s.batch = 2;
          s.channels = 18;
          s.d = volumes ? 3 : 1;
          s.h = s.w = 5;
          s.points = 200;
          const auto x = random.elements<float>(s.inputs()), grad = random.elements<float>(s.outputs());
          std::vector<float> grid = random.elements<float>(s.batch * s.points * s.rank());
          s.grid = grid.data();
          std::vector<float> output(grad.size()), first(x.size()), again(x.size()), of_grid(grid.size());
          const GridSampleBackwardArgs back{s, grad.data(), x.data(), first.data(),
                                            mode == 0 ? nullptr : of_grid.data()};
          variant.run(kernels::grid_sample_backward, back);
          set_thread_local_num_threads(1);
          GridSampleBackwardArgs repeated = back;
          repeated.grad_input = again.data();
          variant.run(kernels::grid_sample_backward, repeated);
          EXPECT_EQ(first, again);
          const float huge[] = {NAN, INFINITY, -INFINITY, 1e20f, -1e20f, 3e9f, -3e9f};
          for (size_t i = 0; i < grid.size(); ++i) grid[i] = huge[i % 7];
          variant.run(kernels::grid_sample, {s, x.data(), output.data()});
          variant.run(kernels::grid_sample_backward, back);
        }
  });
}

}  // namespace
}  // namespace tern::testing
