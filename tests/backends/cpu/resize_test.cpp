// The resizing kernel and its gradient against plain loops in double over the windows of both axes.
#include "tern/kernels/resize.h"

#include <fmt/format.h>

#include "tern/kernels/resize_window.h"
#include "tests/backends/cpu/kernel_testing.h"

namespace tern::testing {
namespace {

/// The matrix of an axis, [out, in].
template <class C>
std::vector<double> matrix(const ResizeAxis& axis) {
  const ResizeRule<C> rule(axis);
  std::vector<C> weights(static_cast<size_t>(rule.most()));
  std::vector<double> all(static_cast<size_t>(axis.out * axis.in));
  for (int64_t o = 0; o < axis.out; ++o) {
    const ResizeWindow window = rule.window(o, weights.data());
    for (int64_t k = 0; k < window.count; ++k) all[o * axis.in + window.first + k] = weights[k];
  }
  return all;
}

/// from [outer, h, w, inner] -> [outer, h', w', inner], where a(i, y) and b(j, x) are the weights.
template <class T, class A, class B>
std::vector<double> product(const ResizeArgs& s, const std::vector<T>& from, int64_t from_h, int64_t from_w,
                            int64_t to_h, int64_t to_w, const A& a, const B& b) {
  std::vector<double> rows(static_cast<size_t>(s.outer * to_h * from_w * s.inner));
  std::vector<double> all(static_cast<size_t>(s.outer * to_h * to_w * s.inner));
  for (int64_t n = 0; n < s.outer; ++n)
    for (int64_t i = 0; i < to_h; ++i) {
      for (int64_t y = 0; y < from_h; ++y)
        for (int64_t k = 0; k < from_w * s.inner; ++k)
          rows[(n * to_h + i) * from_w * s.inner + k] +=
              a(i, y) * to_double(from[(n * from_h + y) * from_w * s.inner + k]);
      for (int64_t j = 0; j < to_w; ++j)
        for (int64_t x = 0; x < from_w; ++x)
          for (int64_t c = 0; c < s.inner; ++c)
            all[((n * to_h + i) * to_w + j) * s.inner + c] +=
                b(j, x) * rows[((n * to_h + i) * from_w + x) * s.inner + c];
    }
  return all;
}

template <class T>
void check(const Variant& variant, Random& random, ResizeArgs s) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  s.dtype = dtype_of<T>();
  const std::string what = fmt::format("{} mode {} align {} [{}, {} -> {}, {} -> {}, {}]", name(s.dtype),
                                       static_cast<int>(s.h.mode), s.h.align_corners, s.outer, s.h.in,
                                       s.h.out, s.w.in, s.w.out, s.inner);
  const std::vector<double> a = matrix<C>(s.h), b = matrix<C>(s.w);
  const std::vector<T> x = random.elements<T>(s.outer * s.h.in * s.w.in * s.inner);
  std::vector<T> y(static_cast<size_t>(s.outer * s.h.out * s.w.out * s.inner));
  s.input = x.data();
  s.output = y.data();
  variant.run(kernels::resize, s);
  expect_near(
      y,
      product(
          s, x, s.h.in, s.w.in, s.h.out, s.w.out, [&](int64_t i, int64_t k) { return a[i * s.h.in + k]; },
          [&](int64_t j, int64_t k) { return b[j * s.w.in + k]; }),
      what);
  if constexpr (std::is_integral_v<T>) return;
  const std::vector<T> grad = random.elements<T>(static_cast<int64_t>(y.size()));
  std::vector<T> grad_x(x.size());
  s.transposed = true;
  s.input = grad.data();
  s.output = grad_x.data();
  variant.run(kernels::resize, s);
  expect_near(
      grad_x,
      product(
          s, grad, s.h.out, s.w.out, s.h.in, s.w.in, [&](int64_t i, int64_t k) { return a[k * s.h.in + i]; },
          [&](int64_t j, int64_t k) { return b[k * s.w.in + j]; }),
      "gradient " + what);
}

ResizeAxis random_axis(Random& random, ResizeMode mode, bool align_corners, int64_t most) {
  ResizeAxis axis{random.integer(1, most), random.integer(1, most), mode, align_corners, 0};
  if (random.integer(0, 5) == 0) axis.out = axis.in;
  if (!align_corners && mode != ResizeMode::Area && random.integer(0, 3) == 0) {
    axis.scale = static_cast<double>(axis.out) / static_cast<double>(axis.in) + 0.01;
    axis.out = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(axis.in) * axis.scale));
  }
  return axis;
}

TEST(CpuResize, EveryMode) {
  for_each_variant([](const Variant& variant) {
    Random random(1);
    for (int i = 0; i < 300; ++i) {
      const auto mode = static_cast<ResizeMode>(random.integer(0, 6));
      const bool interpolates = mode != ResizeMode::Nearest && mode != ResizeMode::NearestExact;
      const bool align_corners = interpolates && mode != ResizeMode::Area && random.integer(0, 3) == 0;
      ResizeArgs s;
      s.outer = random.integer(1, 3);
      s.inner = random.coin() ? 1 : random.integer(1, 20);
      s.h = random_axis(random, mode, align_corners, 30);
      s.w = random_axis(random, mode, align_corners, s.inner == 1 ? 150 : 40);
      if (random.integer(0, 9) == 0) s.h = {};
      if (!interpolates && random.integer(0, 3) == 0)
        check<uint8_t>(variant, random, s);
      else
        with_random_float(random, [&]<class T>() { check<T>(variant, random, s); });
    }
  });
}

/// A sum of no terms is 0, one of one term that term with its sign, and what a window lacks is not read.
TEST(CpuResize, TakesNothingFromOutside) {
  for_each_variant([](const Variant& variant) {
    for (const int64_t width : {3, 8, 40}) {
      std::vector<float> x(static_cast<size_t>(width), NAN), y(static_cast<size_t>(width));
      x[1] = -0.0f;
      ResizeArgs s;
      s.dtype = float32;
      s.w = {width, width, ResizeMode::Nearest, false, 0.999};
      s.input = x.data();
      s.output = y.data();
      variant.run(kernels::resize, s);
      EXPECT_TRUE(y[1] == 0 && std::signbit(y[1]));
      s.w = {width, 2 * width, ResizeMode::Linear, false, 0};
      std::vector<float> grad(static_cast<size_t>(2 * width), 1.0f), grad_x(static_cast<size_t>(width));
      grad[0] = grad[1] = INFINITY;
      s.transposed = true;
      s.input = grad.data();
      s.output = grad_x.data();
      variant.run(kernels::resize, s);
      EXPECT_EQ(grad_x[0], INFINITY);
      EXPECT_EQ(grad_x[2], 2.0f);
    }
  });
}

}  // namespace
}  // namespace tern::testing
