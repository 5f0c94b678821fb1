// The pooling kernels and their gradients against plain loops in double.
#include "tern/kernels/pool.h"

#include <fmt/format.h>

#include "tests/backends/cpu/kernel_testing.h"

namespace tern::testing {
namespace {

/// First, last and step of the inputs of output `out` along one dimension.
struct Span {
  int64_t first, last, step;
};

Span adaptive_span(int64_t out, int64_t out_size, int64_t in_size) {
  return {out * in_size / out_size, ((out + 1) * in_size + out_size - 1) / out_size, 1};
}
Span window_span(int64_t out, int64_t stride, int64_t padding, int64_t dilation, int64_t kernel,
                 int64_t size) {
  int64_t first = out * stride - padding;
  const int64_t last = std::min(first + (kernel - 1) * dilation + 1, size);
  while (first < 0) first += dilation;
  return {first, last, dilation};
}

/// Calls f(index of the output, start of its plane in the input, rows, columns) for every output.
template <class F>
void for_each_output(const Pool2dShape& s, bool adaptive, const F& f) {
  for (int64_t plane = 0, index = 0; plane < s.planes; ++plane)
    for (int64_t y = 0; y < s.out_h; ++y)
      for (int64_t x = 0; x < s.out_w; ++x, ++index)
        f(static_cast<size_t>(index), plane * s.in_h * s.in_w,
          adaptive ? adaptive_span(y, s.out_h, s.in_h)
                   : window_span(y, s.stride_h, s.padding_h, s.dilation_h, s.kernel_h, s.in_h),
          adaptive ? adaptive_span(x, s.out_w, s.in_w)
                   : window_span(x, s.stride_w, s.padding_w, s.dilation_w, s.kernel_w, s.in_w));
}

std::string describe(const Pool2dShape& s, DType dtype) {
  return fmt::format(
      "{} planes {} image {} x {} -> {} x {} kernel {} x {} stride {} {} padding {} {} dilation {} {}",
      name(dtype), s.planes, s.in_h, s.in_w, s.out_h, s.out_w, s.kernel_h, s.kernel_w, s.stride_h, s.stride_w,
      s.padding_h, s.padding_w, s.dilation_h, s.dilation_w);
}

template <class T>
void check_max(const Variant& variant, Random& random, const Pool2dShape& s, bool adaptive) {
  const std::string what = describe(s, dtype_of<T>());
  std::vector<T> input = random.elements<T>(s.planes * s.in_h * s.in_w), grad_input = input;
  if constexpr (!std::is_integral_v<T>) {
    if (random.integer(0, 3) == 0)
      for (T& x : input)
        if (random.integer(0, 9) == 0) x = T(NAN);
  }
  std::vector<T> output(static_cast<size_t>(s.planes * s.out_h * s.out_w));
  const std::vector<T> grad_output = random.elements<T>(static_cast<int64_t>(output.size()));
  std::vector<int64_t> indices(output.size()), expected_indices(output.size());
  std::vector<double> expected(output.size()), expected_grad(input.size());
  for_each_output(s, adaptive, [&](size_t o, int64_t plane, Span h, Span w) {
    double best = -INFINITY;
    int64_t where = h.first < h.last && w.first < w.last ? h.first * s.in_w + w.first : 0;
    for (int64_t y = h.first; y < h.last; y += h.step)
      for (int64_t x = w.first; x < w.last; x += w.step) {
        const double value = to_double(input[static_cast<size_t>(plane + y * s.in_w + x)]);
        if (value > best || std::isnan(value)) best = value, where = y * s.in_w + x;
      }
    expected[o] = best;
    expected_indices[o] = where;
    expected_grad[static_cast<size_t>(plane + where)] += to_double(grad_output[o]);
  });
  if (adaptive)
    variant.run(kernels::adaptive_max_pool2d,
                {dtype_of<T>(), s, input.data(), output.data(), indices.data()});
  else
    variant.run(kernels::max_pool2d, {dtype_of<T>(), s, input.data(), output.data(), indices.data()});
  expect_near(output, expected, what);
  EXPECT_EQ(indices, expected_indices) << what;
  variant.run(kernels::max_pool2d_backward,
              {dtype_of<T>(), s, grad_output.data(), indices.data(), grad_input.data()});
  expect_near(grad_input, expected_grad, "gradient " + what);
}

template <class T>
void check_mean(const Variant& variant, Random& random, const Pool2dShape& s, bool adaptive) {
  const std::string what = describe(s, dtype_of<T>());
  const bool count_include_pad = random.coin();
  const int64_t divisor = random.integer(0, 2) == 0 ? random.integer(1, 5) : 0;
  const std::vector<T> input = random.elements<T>(s.planes * s.in_h * s.in_w);
  std::vector<T> grad_input = input, output(static_cast<size_t>(s.planes * s.out_h * s.out_w));
  const std::vector<T> grad_output = random.elements<T>(static_cast<int64_t>(output.size()));
  std::vector<double> expected(output.size()), expected_grad(input.size());
  const auto whole = [](double x) { return std::is_integral_v<T> ? std::trunc(x) : x; };
  for_each_output(s, adaptive, [&](size_t o, int64_t plane, Span h, Span w) {
    double count = static_cast<double>((h.last - h.first) * (w.last - w.first));
    if (!adaptive) {
      if (h.first >= h.last || w.first >= w.last) return;
      const int64_t y0 = static_cast<int64_t>(o) / s.out_w % s.out_h * s.stride_h - s.padding_h;
      const int64_t x0 = static_cast<int64_t>(o) % s.out_w * s.stride_w - s.padding_w;
      if (count_include_pad)
        count = static_cast<double>((std::min(y0 + s.kernel_h, s.in_h + s.padding_h) - y0) *
                                    (std::min(x0 + s.kernel_w, s.in_w + s.padding_w) - x0));
      if (divisor != 0) count = static_cast<double>(divisor);
    }
    double sum = 0;
    for (int64_t y = h.first; y < h.last; ++y)
      for (int64_t x = w.first; x < w.last; ++x) {
        const size_t i = static_cast<size_t>(plane + y * s.in_w + x);
        sum += to_double(input[i]);
        expected_grad[i] += whole(to_double(grad_output[o]) / count);
      }
    expected[o] = whole(sum / count);
  });
  if (adaptive) {
    variant.run(kernels::adaptive_avg_pool2d, {dtype_of<T>(), s, input.data(), output.data()});
    variant.run(kernels::adaptive_avg_pool2d_backward,
                {dtype_of<T>(), s, grad_output.data(), grad_input.data()});
  } else {
    variant.run(kernels::avg_pool2d,
                {dtype_of<T>(), count_include_pad, divisor, s, input.data(), output.data()});
    variant.run(kernels::avg_pool2d_backward,
                {dtype_of<T>(), count_include_pad, divisor, s, grad_output.data(), grad_input.data()});
  }
  expect_near(output, expected, what);
  expect_near(grad_input, expected_grad, "gradient " + what);
}

/// A shape with windows; 2 x 2 side by side in every second one.
Pool2dShape random_shape(Random& random, bool dilated) {
  Pool2dShape s;
  s.planes = random.integer(0, 5);
  s.in_h = random.integer(2, 20), s.in_w = random.integer(2, 80);
  bool ceil_mode = random.coin();
  if (random.coin()) {
    s.kernel_h = s.kernel_w = s.stride_h = s.stride_w = 2;
    ceil_mode = false;
  } else {
    s.kernel_h = random.integer(1, 4), s.kernel_w = random.integer(1, 4);
    s.stride_h = random.integer(1, 3), s.stride_w = random.integer(1, 3);
    s.padding_h = random.integer(0, s.kernel_h / 2), s.padding_w = random.integer(0, s.kernel_w / 2);
    if (dilated) s.dilation_h = random.integer(1, 2), s.dilation_w = random.integer(1, 2);
  }
  s.out_h = Pool2dShape::output_size(s.in_h, s.kernel_h, s.stride_h, s.padding_h, s.dilation_h, ceil_mode);
  s.out_w = Pool2dShape::output_size(s.in_w, s.kernel_w, s.stride_w, s.padding_w, s.dilation_w, ceil_mode);
  return s;
}

Pool2dShape random_adaptive_shape(Random& random) {
  Pool2dShape s;
  s.planes = random.integer(0, 5);
  s.in_h = random.integer(1, 20), s.in_w = random.integer(1, 70);
  s.out_h = random.integer(1, 9), s.out_w = random.integer(1, 9);
  return s;
}

TEST(CpuPool2d, Maximum) {
  for_each_variant([](const Variant& variant) {
    Random random(1);
    for (int i = 0; i < 150; ++i) {
      const Pool2dShape s = random_shape(random, /*dilated=*/true);
      if (i % 8 == 0)
        check_max<int64_t>(variant, random, s, /*adaptive=*/false);
      else if (i % 8 == 1)
        check_max<int16_t>(variant, random, s, /*adaptive=*/false);
      else
        with_random_float(random, [&]<class T>() { check_max<T>(variant, random, s, /*adaptive=*/false); });
    }
  });
}

TEST(CpuPool2d, Mean) {
  for_each_variant([](const Variant& variant) {
    Random random(2);
    for (int i = 0; i < 150; ++i) {
      const Pool2dShape s = random_shape(random, /*dilated=*/false);
      if (i % 8 == 0)
        check_mean<int64_t>(variant, random, s, /*adaptive=*/false);
      else
        with_random_float(random, [&]<class T>() { check_mean<T>(variant, random, s, /*adaptive=*/false); });
    }
  });
}

TEST(CpuPool2d, Adaptive) {
  for_each_variant([](const Variant& variant) {
    Random random(3);
    for (int i = 0; i < 150; ++i) {
      const Pool2dShape s = random_adaptive_shape(random);
      with_random_float(random, [&]<class T>() {
        check_max<T>(variant, random, s, /*adaptive=*/true);
        check_mean<T>(variant, random, s, /*adaptive=*/true);
      });
    }
  });
}

}  // namespace
}  // namespace tern::testing
