// The convolution kernels and their gradients against plain loops in double.
#include "tern/kernels/conv.h"

#include <fmt/format.h>

#include <string_view>

#include "tests/backends/cpu/kernel_testing.h"

namespace tern::testing {
namespace {

struct ConvCase {
  Conv2dShape shape;
  bool relu = false;
  bool bias = true;
};

/// Sets the output sizes; false if the kernel does not fit.
bool infer_output(Conv2dShape& s) {
  s.out_h = Conv2dShape::output_size(s.in_h, s.kernel_h, s.stride_h, s.padding_h, s.dilation_h);
  s.out_w = Conv2dShape::output_size(s.in_w, s.kernel_w, s.stride_w, s.padding_w, s.dilation_w);
  return s.out_h > 0 && s.out_w > 0;
}

/// Calls f(output, input, weight) with the indices of every product.
template <class F>
void for_each_product(const Conv2dShape& s, const F& f) {
  const int64_t in_c = s.in_channels / s.groups, out_c = s.out_channels / s.groups;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t o = 0; o < s.out_channels; ++o)
      for (int64_t y = 0; y < s.out_h; ++y)
        for (int64_t x = 0; x < s.out_w; ++x)
          for (int64_t c = 0; c < in_c; ++c)
            for (int64_t i = 0; i < s.kernel_h; ++i)
              for (int64_t j = 0; j < s.kernel_w; ++j) {
                const int64_t in_y = y * s.stride_h - s.padding_h + i * s.dilation_h;
                const int64_t in_x = x * s.stride_w - s.padding_w + j * s.dilation_w;
                if (in_y < 0 || in_y >= s.in_h || in_x < 0 || in_x >= s.in_w) continue;
                const int64_t channel = o / out_c * in_c + c;
                f(static_cast<size_t>(((n * s.out_channels + o) * s.out_h + y) * s.out_w + x),
                  static_cast<size_t>(((n * s.in_channels + channel) * s.in_h + in_y) * s.in_w + in_x),
                  static_cast<size_t>(((o * in_c + c) * s.kernel_h + i) * s.kernel_w + j));
              }
}

template <class T>
void check(const Variant& variant, Random& random, const ConvCase& c) {
  const Conv2dShape& s = c.shape;
  const std::string what = fmt::format(
      "{} N {} C {} -> {} groups {} image {} x {} kernel {} x {} stride {} {} padding {} {} dilation {} {} "
      "bias {}",
      name(dtype_of<T>()), s.batch, s.in_channels, s.out_channels, s.groups, s.in_h, s.in_w, s.kernel_h,
      s.kernel_w, s.stride_h, s.stride_w, s.padding_h, s.padding_w, s.dilation_h, s.dilation_w, c.bias);
  const int64_t weights = s.out_channels * (s.in_channels / s.groups) * s.kernel_h * s.kernel_w;
  const int64_t inputs = s.batch * s.in_channels * s.in_h * s.in_w,
                outputs = s.batch * s.out_channels * s.out_h * s.out_w;
  const std::vector<T> input = random.elements<T>(inputs), weight = random.elements<T>(weights);
  const std::vector<T> bias = random.elements<T>(s.out_channels), grad_output = random.elements<T>(outputs);
  std::vector<T> output = random.elements<T>(outputs), grad_input = random.elements<T>(inputs);
  std::vector<T> grad_weight = random.elements<T>(weights), grad_bias = random.elements<T>(s.out_channels);

  std::vector<double> expected(output.size()), expected_input(input.size()), expected_weight(weight.size()),
      expected_bias(bias.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const size_t channel = i / static_cast<size_t>(s.out_h * s.out_w) % bias.size();
    expected[i] = c.bias ? to_double(bias[channel]) : 0.0;
  }
  for_each_product(
      s, [&](size_t o, size_t i, size_t w) { expected[o] += to_double(input[i]) * to_double(weight[w]); });
  if (c.relu)
    for (double& x : expected) x = std::max(x, 0.0);

  variant.run(kernels::conv2d, {dtype_of<T>(), c.relu, s, input.data(), weight.data(),
                                c.bias ? bias.data() : nullptr, output.data()});
  expect_near(output, expected, "forward " + what);
  std::vector<double> grad(output.size());
  for (size_t i = 0; i < grad.size(); ++i) {
    grad[i] = c.relu && !(to_double(output[i]) > 0) ? 0.0 : to_double(grad_output[i]);
    expected_bias[i / static_cast<size_t>(s.out_h * s.out_w) % bias.size()] += grad[i];
  }
  for_each_product(s, [&](size_t o, size_t i, size_t w) {
    expected_input[i] += grad[o] * to_double(weight[w]);
    expected_weight[w] += grad[o] * to_double(input[i]);
  });
  Conv2dBackwardArgs args{dtype_of<T>(), s, grad_output.data(), nullptr, input.data(), weight.data()};
  args.grad_input = grad_input.data();
  args.grad_weight = grad_weight.data();
  if (c.bias) args.grad_bias = grad_bias.data();
  if (c.relu) args.relu_output = output.data();
  variant.run(kernels::conv2d_backward, args);
  expect_near(grad_input, expected_input, "input " + what);
  expect_near(grad_weight, expected_weight, "weight " + what);
  if (c.bias) expect_near(grad_bias, expected_bias, "bias " + what);
}

TEST(CpuConv2d, RandomCases) {
  for_each_variant([](const Variant& variant) {
    Random random(1);
    for (int i = 0; i < 150; ++i) {
      Conv2dShape s;
      s.groups = random.integer(0, 2) == 0 ? random.integer(1, 3) : 1;
      s.batch = random.integer(0, 3) == 0 ? random.integer(5, 40) : random.integer(0, 5);
      s.in_channels = s.groups * random.integer(1, 7);
      s.out_channels = s.groups * (random.integer(0, 4) == 0 ? random.integer(1, 40) : random.integer(1, 9));
      s.in_h = random.integer(1, 14),
      s.in_w = random.integer(0, 4) == 0 ? random.integer(20, 45) : random.integer(1, 14);
      s.kernel_h = random.integer(1, 5), s.kernel_w = random.integer(1, 5);
      s.stride_h = random.coin() ? 1 : random.integer(1, 3),
      s.stride_w = random.coin() ? 1 : random.integer(1, 3);
      s.padding_h = random.integer(0, 4), s.padding_w = random.integer(0, 4);
      s.dilation_h = random.coin() ? 1 : random.integer(1, 3),
      s.dilation_w = random.coin() ? 1 : random.integer(1, 3);
      if (!infer_output(s)) continue;
      const ConvCase c{s, random.coin(), random.coin()};
      with_random_float(random, [&]<class T>() { check<T>(variant, random, c); });
    }
  });
}

/// One input channel in each group: blocks of 1, 4, 7 and 8 rows, columns of up to 9 taps.
TEST(CpuConv2d, RandomDepthwiseCases) {
  for_each_variant([](const Variant& variant) {
    Random random(3);
    for (int i = 0; i < 150; ++i) {
      Conv2dShape s;
      s.groups = s.in_channels = random.integer(2, 4);
      s.batch = random.integer(0, 3);
      s.out_channels = s.groups * random.integer(1, 5);
      s.in_h = random.integer(1, 30), s.in_w = random.integer(1, 45);
      s.kernel_h = random.integer(1, 9), s.kernel_w = random.integer(1, 7);
      s.stride_h = random.integer(1, 3), s.stride_w = random.integer(1, 3);
      s.padding_h = random.integer(0, 4), s.padding_w = random.integer(0, 4);
      s.dilation_h = random.coin() ? 1 : random.integer(1, 3);
      s.dilation_w = random.coin() ? 1 : random.integer(1, 3);
      if (!infer_output(s)) continue;
      check<float>(variant, random, {s, random.coin(), random.coin()});
    }
  });
}

TEST(CpuConv2d, LayersOfKnownNetworks) {
  for_each_variant([](const Variant& variant) {
    Random random(2);
    Conv2dShape shapes[] = {
        {.batch = 37,
         .in_channels = 1,
         .in_h = 28,
         .in_w = 28,
         .out_channels = 6,
         .kernel_h = 5,
         .kernel_w = 5,
         .padding_h = 2,
         .padding_w = 2},
        {.batch = 17,
         .in_channels = 6,
         .in_h = 14,
         .in_w = 14,
         .out_channels = 16,
         .kernel_h = 5,
         .kernel_w = 5},
        {.batch = 1,
         .in_channels = 6,
         .in_h = 14,
         .in_w = 14,
         .out_channels = 16,
         .kernel_h = 5,
         .kernel_w = 5},
        {.batch = 1,
         .in_channels = 3,
         .in_h = 64,
         .in_w = 64,
         .out_channels = 20,
         .kernel_h = 7,
         .kernel_w = 7,
         .stride_h = 2,
         .stride_w = 2,
         .padding_h = 3,
         .padding_w = 3},
        {.batch = 2,
         .in_channels = 70,
         .in_h = 30,
         .in_w = 31,
         .out_channels = 33,
         .kernel_h = 3,
         .kernel_w = 3,
         .padding_h = 1,
         .padding_w = 1},
        {.batch = 3,
         .in_channels = 80,
         .in_h = 7,
         .in_w = 7,
         .out_channels = 65,
         .kernel_h = 3,
         .kernel_w = 3,
         .padding_h = 1,
         .padding_w = 1},
        {.batch = 3,
         .in_channels = 40,
         .in_h = 15,
         .in_w = 15,
         .out_channels = 50,
         .kernel_h = 1,
         .kernel_w = 1},
        {.batch = 3,
         .in_channels = 40,
         .in_h = 15,
         .in_w = 15,
         .out_channels = 50,
         .kernel_h = 1,
         .kernel_w = 1,
         .stride_h = 2,
         .stride_w = 2},
        {.batch = 2,
         .in_channels = 24,
         .in_h = 20,
         .in_w = 20,
         .out_channels = 24,
         .kernel_h = 3,
         .kernel_w = 3,
         .padding_h = 1,
         .padding_w = 1,
         .groups = 24},
    };
    for (Conv2dShape& s : shapes) {
      ASSERT_TRUE(infer_output(s));
      check<float>(variant, random, {s, /*relu=*/true});
    }
  });
}

/// Channels that fill registers: the shapes of direct convolution.
constexpr Conv2dShape kDirectShapes[] = {
    {.batch = 3,
     .in_channels = 64,
     .in_h = 14,
     .in_w = 14,
     .out_channels = 40,
     .kernel_h = 3,
     .kernel_w = 3,
     .padding_h = 1,
     .padding_w = 1},
    {.batch = 1,
     .in_channels = 72,
     .in_h = 7,
     .in_w = 7,
     .out_channels = 33,
     .kernel_h = 3,
     .kernel_w = 3,
     .padding_h = 1,
     .padding_w = 1},
    {.batch = 6,
     .in_channels = 24,
     .in_h = 5,
     .in_w = 3,
     .out_channels = 48,
     .kernel_h = 2,
     .kernel_w = 3,
     .padding_h = 2,
     .padding_w = 1},
    {.batch = 5,
     .in_channels = 40,
     .in_h = 1,
     .in_w = 100,
     .out_channels = 32,
     .kernel_h = 1,
     .kernel_w = 3,
     .padding_w = 1},
    {.batch = 2,
     .in_channels = 16,
     .in_h = 1,
     .in_w = 3000,
     .out_channels = 32,
     .kernel_h = 1,
     .kernel_w = 2,
     .dilation_w = 4},
    {.batch = 3,
     .in_channels = 32,
     .in_h = 28,
     .in_w = 27,
     .out_channels = 64,
     .kernel_h = 4,
     .kernel_w = 4,
     .stride_h = 2,
     .stride_w = 2,
     .padding_h = 1,
     .padding_w = 1},
    {.batch = 2,
     .in_channels = 32,
     .in_h = 19,
     .in_w = 30,
     .out_channels = 32,
     .kernel_h = 3,
     .kernel_w = 5,
     .stride_h = 3,
     .stride_w = 2,
     .padding_h = 0,
     .padding_w = 3,
     .dilation_h = 2,
     .dilation_w = 3},
    {.batch = 4,
     .in_channels = 64,
     .in_h = 12,
     .in_w = 20,
     .out_channels = 96,
     .kernel_h = 3,
     .kernel_w = 3,
     .padding_h = 1,
     .padding_w = 1,
     .groups = 2},
    // Rows of outputs that see padding alone; their products take several passes.
    {.batch = 3,
     .in_channels = 96,
     .in_h = 5,
     .in_w = 7,
     .out_channels = 40,
     .kernel_h = 3,
     .kernel_w = 3,
     .padding_h = 5,
     .padding_w = 1},
    {.batch = 5,
     .in_channels = 120,
     .in_h = 6,
     .in_w = 30,
     .out_channels = 32,
     .kernel_h = 1,
     .kernel_w = 5,
     .stride_h = 2,
     .stride_w = 2,
     .padding_h = 1},
    // Patches, and strides beyond the image.
    {.batch = 3,
     .in_channels = 3,
     .in_h = 28,
     .in_w = 32,
     .out_channels = 160,
     .kernel_h = 4,
     .kernel_w = 4,
     .stride_h = 4,
     .stride_w = 4},
    {.batch = 20,
     .in_channels = 32,
     .in_h = 4,
     .in_w = 4,
     .out_channels = 32,
     .kernel_h = 4,
     .kernel_w = 4,
     .stride_h = 1000,
     .stride_w = 1000},
};

TEST(CpuConv2d, ManyChannels) {
  for_each_variant([](const Variant& variant) {
    Random random(4);
    for (Conv2dShape s : kDirectShapes) {
      ASSERT_TRUE(infer_output(s));
      for (bool relu : {false, true}) check<float>(variant, random, {s, relu});
    }
  });
}

TEST(CpuConv2d, ManyChannelsOfBFloat16) {
  std::vector<Conv2dShape> shapes(std::begin(kDirectShapes), std::end(kDirectShapes));
  // Few pixels in a row of the result: many rows, and images, in one register.
  for (const int64_t size : {4, 5, 6, 9})
    for (const int64_t stride : {1, 2})
      shapes.push_back({.batch = 35,
                        .in_channels = 33,
                        .in_h = size + 1,
                        .in_w = size,
                        .out_channels = 40,
                        .kernel_h = 3,
                        .kernel_w = 4,
                        .stride_h = stride,
                        .stride_w = stride,
                        .padding_h = size % 2});
  for_each_variant([&](const Variant& variant) {
    if (num_threads() != 2) return;
    Random random(5);
    for (Conv2dShape s : shapes) {
      ASSERT_TRUE(infer_output(s));
      check<BFloat16>(variant, random, {s, /*relu=*/s.groups == 1});
    }
  });
}

TEST(CpuConv2d, BFloat16KeepsNumbersBelowTheNormalOnes) {
  Conv2dShape s{.batch = 4,
                .in_channels = 32,
                .in_h = 20,
                .in_w = 20,
                .out_channels = 32,
                .kernel_h = 1,
                .kernel_w = 1};
  ASSERT_TRUE(infer_output(s));
  const std::vector<BFloat16> small(4 * 32 * 400, BFloat16(std::ldexp(1.0f, -130)));
  const std::vector<BFloat16> large(32 * 32, BFloat16(std::ldexp(1.0f, 20)));
  for_each_variant([&](const Variant& variant) {
    std::vector<BFloat16> output(small.size()), grad_input(small.size()), grad_weight(large.size());
    variant.run(kernels::conv2d,
                {DType::BFloat16, false, s, small.data(), large.data(), nullptr, output.data()});
    Conv2dBackwardArgs args{DType::BFloat16, s, small.data(), nullptr, small.data(), large.data()};
    args.grad_input = grad_input.data();
    variant.run(kernels::conv2d_backward, args);
    // A weight's gradient: 1600 products of a small number and a large one.
    const std::vector<BFloat16> large_grad(small.size(), large[0]);
    args = {DType::BFloat16, s, large_grad.data(), nullptr, small.data(), large.data()};
    args.grad_weight = grad_weight.data();
    variant.run(kernels::conv2d_backward, args);
    for (BFloat16 x : output) ASSERT_EQ(static_cast<float>(x), std::ldexp(32.0f, -110));
    for (BFloat16 x : grad_input) ASSERT_EQ(static_cast<float>(x), std::ldexp(32.0f, -110));
    for (BFloat16 x : grad_weight) ASSERT_EQ(static_cast<float>(x), std::ldexp(1600.0f, -110));
  });
}

/// Also for two instruction sets: with many channels the sums follow from the shape alone.
TEST(CpuConv2d, ManyChannelsGiveTheSameBitsEverywhere) {
  for (Conv2dShape s : kDirectShapes) {
    ASSERT_TRUE(infer_output(s));
    Random random(5);
    std::vector<float> input = random.elements<float>(s.batch * s.in_channels * s.in_h * s.in_w);
    std::vector<float> weight =
        random.elements<float>(s.out_channels * (s.in_channels / s.groups) * s.kernel_h * s.kernel_w);
    std::vector<float> grad_output = random.elements<float>(s.batch * s.out_channels * s.out_h * s.out_w);
    for (std::vector<float>* values : {&input, &weight, &grad_output})
      for (float& x : *values) x /= 3.0f;
    std::vector<std::vector<float>> outputs, grad_inputs, grad_weights;
    for_each_variant([&](const Variant& variant) {
      if (std::string_view(variant.table->variant) == "generic") return;
      std::vector<float> output(grad_output.size()), grad_input(input.size()), grad_weight(weight.size());
      variant.run(kernels::conv2d,
                  {DType::Float32, /*relu=*/false, s, input.data(), weight.data(), nullptr, output.data()});
      variant.run(kernels::conv2d_backward, {DType::Float32, s, grad_output.data(), nullptr, input.data(),
                                             weight.data(), grad_input.data(), grad_weight.data(), nullptr});
      outputs.push_back(std::move(output));
      grad_inputs.push_back(std::move(grad_input));
      grad_weights.push_back(std::move(grad_weight));
    });
    for (size_t i = 1; i < outputs.size(); ++i) {
      EXPECT_EQ(outputs[0], outputs[i]) << s.in_channels << " channels, run " << i;
      EXPECT_EQ(grad_inputs[0], grad_inputs[i]) << s.in_channels << " channels, run " << i;
      EXPECT_EQ(grad_weights[0], grad_weights[i]) << s.in_channels << " channels, run " << i;
    }
  }
}

/// Bits of results by any number of threads, of numbers whose sums are rounded.
template <class T>
void expect_the_same_on_threads(Conv2dShape s) {
  ASSERT_TRUE(infer_output(s));
  Random random(3);
  const auto thirds = [&](int64_t count) {
    std::vector<T> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(T(random.element<float>() / 3.0f));
    return values;
  };
  const std::vector<T> input = thirds(s.batch * s.in_channels * s.in_h * s.in_w),
                       weight = thirds(s.out_channels * (s.in_channels / s.groups) * s.kernel_h * s.kernel_w),
                       grad_output = thirds(s.batch * s.out_channels * s.out_h * s.out_w);
  for (const cpu::KernelTable* table : cpu::kernel_tables()) {
    if (!table->supported()) continue;
    std::vector<std::vector<double>> results;
    for (int threads : {1, 2, 3}) {
      set_thread_local_num_threads(threads);
      std::vector<T> output(grad_output.size()), grad_input(input.size()), grad_weight(weight.size()),
          grad_bias(static_cast<size_t>(s.out_channels));
      Variant{table}.run(kernels::conv2d, {dtype_of<T>(), /*relu=*/false, s, input.data(), weight.data(),
                                           nullptr, output.data()});
      Variant{table}.run(kernels::conv2d_backward,
                         {dtype_of<T>(), s, grad_output.data(), nullptr, input.data(), weight.data(),
                          grad_input.data(), grad_weight.data(), grad_bias.data()});
      std::vector<double>& all = results.emplace_back();
      for (const std::vector<T>* part : {&output, &grad_input, &grad_weight, &grad_bias})
        for (T x : *part) all.push_back(to_double(x));
    }
    EXPECT_EQ(results[0], results[1]) << table->variant << ", " << s.in_channels << " channels";
    EXPECT_EQ(results[0], results[2]) << table->variant << ", " << s.in_channels << " channels";
  }
  set_thread_local_num_threads(0);
}

TEST(CpuConv2d, ResultDoesNotDependOnThreads) {
  expect_the_same_on_threads<float>({.batch = 50,
                                     .in_channels = 3,
                                     .in_h = 17,
                                     .in_w = 13,
                                     .out_channels = 7,
                                     .kernel_h = 3,
                                     .kernel_w = 3,
                                     .padding_h = 1,
                                     .padding_w = 1});
  for (const Conv2dShape& s : kDirectShapes) expect_the_same_on_threads<BFloat16>(s);
}

/// A weight's gradient is a sum over outputs; what is computed beside them must not reach it.
TEST(CpuConv2d, BFloat16KeepsInfinitePixelsWhereTheyBelong) {
  for (int64_t kernel : {1, 3}) {
    for (int64_t padding : {0, 1}) {
      Conv2dShape s{.batch = 4,
                    .in_channels = 32,
                    .in_h = 15,
                    .in_w = 15,
                    .out_channels = 32,
                    .kernel_h = kernel,
                    .kernel_w = kernel,
                    .padding_h = padding,
                    .padding_w = padding};
      ASSERT_TRUE(infer_output(s));
      const size_t weights = static_cast<size_t>(s.out_channels * s.in_channels * kernel * kernel);
      const BFloat16 one(1.0f);
      for (size_t pixel : {225u, 15u * 15 * 32, 225u * 6 - 1}) {
        std::vector<BFloat16> input(4 * 32 * 225, one), weight(weights, one), grad_weight(weights),
            grad_output(static_cast<size_t>(s.batch * s.out_channels * s.out_h * s.out_w), one);
        input[pixel] = BFloat16(INFINITY);
        std::vector<bool> infinite(weights), expected(weights);
        for_each_product(s, [&](size_t, size_t i, size_t w) {
          if (i == pixel) expected[w] = true;
        });
        for_each_variant([&](const Variant& variant) {
          variant.run(kernels::conv2d_backward,
                      {DType::BFloat16, s, grad_output.data(), nullptr, input.data(), weight.data(), nullptr,
                       grad_weight.data(), nullptr});
          for (size_t w = 0; w < weights; ++w)
            infinite[w] = !std::isfinite(static_cast<float>(grad_weight[w]));
          EXPECT_EQ(infinite, expected) << kernel << ", " << padding << ", pixel " << pixel;
        });
      }
    }
  }
}

TEST(CpuConv2d, EmptyBatchGivesZeroGradients) {
  for_each_variant([](const Variant& variant) {
    Conv2dShape s{
        .batch = 0, .in_channels = 2, .in_h = 4, .in_w = 4, .out_channels = 3, .kernel_h = 3, .kernel_w = 3};
    ASSERT_TRUE(infer_output(s));
    std::vector<float> grad_weight(54, 1.0f), grad_bias(3, 1.0f);
    variant.run(kernels::conv2d,
                {DType::Float32, /*relu=*/false, s, nullptr, grad_weight.data(), nullptr, nullptr});
    variant.run(kernels::conv2d_backward, {DType::Float32, s, nullptr, nullptr, nullptr, nullptr, nullptr,
                                           grad_weight.data(), grad_bias.data()});
    EXPECT_EQ(grad_weight, std::vector<float>(54, 0.0f));
    EXPECT_EQ(grad_bias, std::vector<float>(3, 0.0f));
  });
}

}  // namespace
}  // namespace tern::testing
