// Batch, layer, group and RMS norm: values against plain formulas, running statistics, gradients, types,
// errors.
#include "tern/ops/norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tern/autograd/engine.h"
#include "tern/autograd/gradcheck.h"
#include "tern/base/error.h"
#include "tern/base/parallel.h"
#include "tern/core/memory.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/ops/reduce_testing.h"
#include "tests/support/emulated.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using In = std::vector<Tensor>;

using namespace tern::testing;
using ::testing::HasSubstr;

/// (x - mean) / sqrt(var + eps) by operators in float64; a parameter broadcasts.
Tensor plain(const Tensor& x, IntArrayRef dims, double eps) {
  const Tensor wide = to(x, float64), d = sub(wide, mean(wide, dims, /*keepdim=*/true));
  return div(d, sqrt(add(mean(square(d), dims, /*keepdim=*/true), eps)));
}

TEST(BatchNorm, TrainingOnImagesAndMatrices) {
  const Tensor weight = tensor({1.5, -2.0, 0.5}), bias = tensor({0.25, 1.0, -3.0});
  for (const Shape& shape : {Shape{5, 3}, Shape{2, 3, 7}, Shape{4, 3, 5, 6}, Shape{2, 3, 80, 90}}) {
    for (const Tensor& x : {ragged(shape), transpose(contiguous(transpose(ragged(shape), 0, 1)), 0, 1)}) {
      Tensor mean_kept = tensor({1.0, 2.0, 3.0}), var_kept = tensor({1.0, 1.0, 4.0});
      const Tensor y = batch_norm(x, mean_kept, var_kept, weight, bias, /*training=*/true, 0.25, 1e-3);
      const Tensor rows = reshape(transpose(x, 0, 1), {3, -1});
      const Tensor wanted = add(mul(plain(rows, {1}, 1e-3), reshape(weight, {3, 1})), reshape(bias, {3, 1}));
      EXPECT_TRUE(allclose(to(reshape(transpose(y, 0, 1), {3, -1}), float64), wanted, 1e-5, 1e-5))
          << to_string(shape);
      EXPECT_TRUE(allclose(mean_kept, add(mul(mean(rows, 1), 0.25), mul(tensor({1.0, 2.0, 3.0}), 0.75))));
      EXPECT_TRUE(allclose(var_kept, add(mul(var(rows, 1), 0.25), mul(tensor({1.0, 1.0, 4.0}), 0.75))));
      EXPECT_EQ(mean_kept.version(), 1u);
    }
  }
}

TEST(BatchNorm, Evaluation) {
  const Tensor x = ragged({4, 3, 5}), m = tensor({0.5, -1.0, 0.0}), v = tensor({4.0, 1.0, 0.25});
  const Tensor y = batch_norm(x, m, v, {}, {}, /*training=*/false, 0.1, 0);
  EXPECT_TRUE(allclose(y, div(sub(x, reshape(m, {3, 1})), sqrt(reshape(v, {3, 1}))), 1e-6, 1e-6));
  EXPECT_EQ(m.version(), 0u);
}

TEST(BatchNorm, OfNothing) {
  for (const Shape& shape : {Shape{0, 3, 4, 4}, Shape{2, 3, 0, 4}, Shape{0, 3}}) {
    for (DType dtype : {float32, bfloat16}) {
      for (bool training : {true, false}) {
        for (bool create_graph : {false, true}) {
          const Tensor x = zeros(shape, {.dtype = dtype, .requires_grad = true});
          const Tensor weight = ones({3}, {.dtype = dtype, .requires_grad = true});
          const Tensor bias = zeros({3}, {.dtype = dtype, .requires_grad = true});
          const Tensor m = tensor({1.0, 2.0, 3.0}), v = tensor({4.0, 5.0, 6.0});
          const Tensor y = batch_norm(x, m, v, weight, bias, training);
          EXPECT_EQ(y.shape(), shape);
          EXPECT_EQ(m.to_vector<float>(), (std::vector<float>{1, 2, 3}));
          EXPECT_EQ(v.to_vector<float>(), (std::vector<float>{4, 5, 6}));
          const auto g = grad({y.sum()}, {x, weight, bias}, {}, {.create_graph = create_graph});
          EXPECT_EQ(g[0].shape(), shape);
          EXPECT_EQ(g[1].to_vector<float>(), (std::vector<float>{0, 0, 0}));
          EXPECT_EQ(g[2].to_vector<float>(), (std::vector<float>{0, 0, 0}));
        }
      }
    }
  }
}

TEST(BatchNorm, SixteenBitInputs) {
  const Tensor x = ragged({6, 3, 8}), weight = tensor({1.5, -2.0, 0.5});
  const Tensor wanted = batch_norm(x, {}, {}, weight, {}, /*training=*/true);
  for (DType dtype : {float16, bfloat16}) {
    Tensor m = zeros({3}, {.dtype = dtype}), v = ones({3}, {.dtype = dtype});
    const Tensor y = batch_norm(to(x, dtype), m, v, to(weight, dtype), {}, /*training=*/true);
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_TRUE(allclose(to(y, float32), wanted, 2e-2, 2e-2));
    EXPECT_NE(v.to_vector<float>()[0], 1.0f);
    EXPECT_EQ(batch_norm(to(x, dtype), {}, {}, weight, {}, /*training=*/true).dtype(), dtype);
  }
}

TEST(LayerNorm, LastDimensions) {
  const Tensor x = ragged({3, 4, 37}), weight = ragged({37}), bias = slice(ragged({74}), 0, 0, 74, 2);
  const Tensor wanted = add(mul(plain(x, {2}, 1e-5), weight), bias);
  EXPECT_TRUE(allclose(to(layer_norm(x, {37}, weight, bias), float64), wanted, 1e-5, 1e-5));
  EXPECT_TRUE(allclose(to(layer_norm(x, {4, 37}), float64), plain(x, {1, 2}, 1e-5), 1e-5, 1e-5));
  const Tensor turned = transpose(x, 0, 2);
  EXPECT_TRUE(allclose(to(layer_norm(turned, {3}), float64), plain(turned, {2}, 1e-5), 1e-5, 1e-5));
  EXPECT_EQ(layer_norm(zeros({0, 5}), {5}).shape(), (Shape{0, 5}));
}

TEST(LayerNorm, EverySizeOfARow) {
  for (int64_t size : {1, 31, 64, 100, 256, 1000, 1024, 1025, 2048, 5000, 16384, 20000, 40000})
    for (DType dtype : {float32, float64, bfloat16}) {
      const In given = {ragged({3, size}, dtype), ragged({size}), add(ragged({size}), 1)};
      const auto& [x, weight, bias] = std::tie(given[0], given[1], given[2]);
      const In copies = on_cpu(given);
      const double tolerance = dtype == bfloat16 ? 2e-2 : 1e-5;
      const auto parameter = [&](const Tensor& p) { return dtype == float64 ? to(p, float64) : p; };
      EXPECT_TRUE(allclose(to(layer_norm(x, {size}, parameter(weight), parameter(bias)).cpu(), float64),
                           add(mul(plain(copies[0], {1}, 1e-5), copies[1]), copies[2]), tolerance, tolerance))
          << size << " of " << name(dtype);
      const Tensor wide = to(copies[0], float64);
      EXPECT_TRUE(allclose(to(rms_norm(x, {size}, {}, 1e-5).cpu(), float64),
                           div(wide, sqrt(add(mean(square(wide), 1, /*keepdim=*/true), 1e-5))), tolerance,
                           tolerance))
          << size << " of " << name(dtype);
    }
}

/// The result of layer norm (or RMS norm) of rows and the gradients of input, weight and, of layer norm,
/// bias.
In row_norm_and_gradients(const In& given, const Tensor& grad, bool rms, DType dtype) {
  In leaves;
  for (const Tensor& each : given) leaves.push_back(to(each, dtype).detach().requires_grad_());
  const Shape row = {given[1].size(0)};
  const Tensor y =
      rms ? rms_norm(leaves[0], row, leaves[1], 1e-5) : layer_norm(leaves[0], row, leaves[1], leaves[2]);
  y.backward(to(grad, dtype));
  In results = {y.detach(), leaves[0].grad(), leaves[1].grad()};
  if (!rms) results.push_back(leaves[2].grad());
  return results;
}

TEST(LayerNorm, ManyRowsOfFewElements) {
  // As rows of which few are worked on together, in float64.
  for (int64_t size : {2, 5, 8, 16})
    for (int64_t rows : {15, 16, 127, 128, 300}) {
      const In given = {ragged({rows, size}), add(ragged({size}), 1), ragged({size})};
      const Tensor grad = ragged({rows, size});
      for (bool rms : {false, true})
        for (const auto& [dtype, tolerance] : {std::pair{float32, 2e-5}, {bfloat16, 3e-2}}) {
          In exact, wanted;
          for (const Tensor& each : on_cpu(given)) exact.push_back(to(to(each, dtype), float64));
          const Tensor exact_grad = to(to(grad.cpu(), dtype), float64);
          for (int64_t first = 0; first < rows; first += 15) {
            const int64_t count = std::min<int64_t>(15, rows - first);
            const In part = row_norm_and_gradients({exact[0].narrow(0, first, count), exact[1], exact[2]},
                                                   exact_grad.narrow(0, first, count), rms, float64);
            if (first == 0) wanted = part;
            for (size_t i = 0; first > 0 && i < part.size(); ++i)
              wanted[i] = i < 2 ? cat({wanted[i], part[i]}, 0) : wanted[i] + part[i];
          }
          const In got = on_cpu(row_norm_and_gradients(given, grad, rms, dtype));
          for (size_t i = 0; i < wanted.size(); ++i) {
            const double largest = wanted[i].abs().max().item<double>();
            EXPECT_TRUE(allclose(to(got[i], float64), wanted[i], 0, tolerance * std::max(largest, 1.0)))
                << "number " << i << " of " << rows << " x " << size << ", " << name(dtype) << ", rms "
                << rms;
          }
        }
    }
}

TEST(LayerNorm, LargeMeansKeepTheirDigits) {
  const Tensor x = add(ragged({4, 5000}), 1000);
  EXPECT_TRUE(allclose(to(layer_norm(x, {5000}), float64), plain(x, {1}, 1e-5), 1e-3, 1e-3));
}

TEST(LayerNorm, RowsOfOneNumberAreZero) {
  for (int64_t size : {3, 26, 768, 5000, 40000}) {
    for (int64_t rows : {2, 40})
      EXPECT_EQ(layer_norm(full({rows, size}, 3333.3), {size}).abs().max().item<double>(), 0) << size;
  }
}

TEST(BatchNorm, VariancesFarFromZeroKeepTheirDigits) {
  for (const Shape& shape : {Shape{8, 16, 2}, Shape{2, 16, 17}, Shape{128, 16}, Shape{65, 3, 20}}) {
    const Tensor x = randn(shape) + 1e4;
    const Tensor mean = zeros({shape[1]}), variance = ones_like(mean);
    batch_norm(x, mean, variance, {}, {}, /*training=*/true, /*momentum=*/1.0);
    std::vector<int64_t> dims{0};
    if (shape.size() == 3) dims.push_back(2);
    const Tensor exact = x.cpu().to(float64).var(dims), found = variance.cpu().to(float64);
    EXPECT_LT(((found - exact) / exact).abs().max().item<double>(), 1e-5) << to_string(shape);
  }
}

TEST(GroupNorm, ChannelsInGroups) {
  const Tensor x = ragged({2, 6, 3, 5}), weight = ragged({6}), bias = ragged({6});
  const Tensor wanted = add(mul(reshape(plain(reshape(x, {2, 3, 2, 3, 5}), {2, 3, 4}, 1e-5), {2, 6, 3, 5}),
                                reshape(weight, {6, 1, 1})),
                            reshape(bias, {6, 1, 1}));
  EXPECT_TRUE(allclose(to(group_norm(x, 3, weight, bias), float64), wanted, 1e-5, 1e-5));
}

TEST(RmsNorm, ValuesAndDefaultEpsilon) {
  const Tensor x = ragged({3, 8});
  const Tensor wide = to(x, float64);
  const Tensor wanted = div(wide, sqrt(add(mean(square(wide), 1, /*keepdim=*/true), 0x1p-23)));
  EXPECT_TRUE(allclose(to(rms_norm(x, {8}), float64), wanted, 1e-5, 1e-6));
}

TEST(Norm, Gradients) {
  const Tensor m = to(tensor({0.5, -1.0}), float64), v = to(tensor({4.0, 1.0}), float64);
  for (const Shape& shape : {Shape{4, 2}, Shape{3, 2, 3}}) {
    for (bool training : {true, false}) {
      auto f = [&](const In& in) {
        return batch_norm(in[0], m.clone(), v.clone(), in[1], in[2], training, 0.1, 0.1);
      };
      gradcheck(f, {leaf(shape), leaf({2}), leaf({2})});
      gradgradcheck(f, {leaf(shape), leaf({2}), leaf({2})});
    }
  }
  auto layer = [](const In& in) { return layer_norm(in[0], {2, 3}, in[1], in[2], 0.1); };
  gradcheck(layer, {leaf({3, 2, 3}), leaf({2, 3}), leaf({2, 3})});
  gradgradcheck(layer, {leaf({3, 2, 3}), leaf({2, 3}), leaf({2, 3})});
  auto group = [](const In& in) { return group_norm(in[0], 2, in[1], in[2], 0.1); };
  gradcheck(group, {leaf({2, 4, 3}), leaf({4}), leaf({4})});
  gradgradcheck(group, {leaf({2, 4, 3}), leaf({4}), leaf({4})});
  auto rms = [](const In& in) { return rms_norm(in[0], {4}, in[1], 0.1); };
  gradcheck(rms, {leaf({3, 4}), leaf({4})});
  gradgradcheck(rms, {leaf({3, 4}), leaf({4})});
  gradcheck([](const In& in) { return layer_norm(in[0], {5}); }, {leaf({3, 5})});
}

TEST(Norm, BatchesOfManyRowsAndChannels) {
  const int before = num_threads();
  std::vector<Shape> shapes = {{65, 7}, {2, 1}};
  if (!is_emulated(get_default_device())) shapes.insert(shapes.end(), {{5000, 3}, {65, 600}, {300, 513}});
  for (const Shape& shape : shapes) {
    const int64_t channels = shape[1];
    const auto run = [&](DType dtype) {
      Tensor x = add(mul(ragged(shape, dtype), 3), 5), g = ragged(shape, dtype);
      Tensor weight = add(ragged({channels}, dtype), 2), bias = ragged({channels}, dtype);
      for (Tensor* leaf : {&x, &weight, &bias}) leaf->requires_grad_();
      const DType kept = dtype == float64 ? float64 : float32;
      Tensor mean = zeros({channels}, as(kept)), var = ones({channels}, as(kept));
      const Tensor y = batch_norm(x, mean, var, weight, bias, /*training=*/true);
      y.backward(g);
      return std::vector<Tensor>{y.detach(), x.grad(), weight.grad(), bias.grad(), mean, var};
    };
    const std::vector<Tensor> wanted = run(float64);
    for (DType dtype : {float32, bfloat16}) {
      set_num_threads(1);
      const std::vector<Tensor> one = run(dtype);
      set_num_threads(3);
      const std::vector<Tensor> three = run(dtype);
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_TRUE(equal(one[i], three[i])) << to_string(shape) << " result " << i;
        const double scale = std::max(1.0, max(abs(wanted[i])).item<double>());
        EXPECT_LE(max(abs(sub(to(one[i], float64), wanted[i]))).item<double>(),
                  scale * (dtype == float32 ? 2e-5 : 0.1))
            << to_string(shape) << " result " << i;
      }
    }
  }
  set_num_threads(before);
}

TEST(Norm, ParameterGradientsDoNotDependOnThreads) {
  const int before = num_threads();
  std::vector<std::vector<float>> results;
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    const Tensor x = ragged({3000, 40});
    Tensor weight = ones({40}, {.requires_grad = true});
    backward({layer_norm(x, {40}, weight)}, {ragged({3000, 40})});
    results.push_back(weight.grad().to_vector<float>());
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
}

TEST(Norm, ParameterGradientsOfManyRows) {
  const Tensor x = ragged({3000, 40}), grad = ragged({3000, 40});
  const auto gradients = [&](DType dtype, bool of_weight, bool of_bias) {
    Tensor weight = ones({40}, as(dtype)), bias = zeros({40}, as(dtype));
    weight.requires_grad_(of_weight);
    bias.requires_grad_(of_bias);
    backward({layer_norm(to(x, dtype), {40}, weight, bias)}, {to(grad, dtype)});
    return std::pair(weight.grad(), bias.grad());
  };
  const auto [weight, bias] = gradients(float64, true, true);
  EXPECT_TRUE(allclose(bias, sum(to(grad, float64), {0}), 1e-12, 1e-10));
  for (bool both : {true, false}) {
    EXPECT_TRUE(allclose(to(gradients(float32, true, both).first, float64), weight, 1e-5, 1e-4));
    EXPECT_TRUE(allclose(to(gradients(float32, both, true).second, float64), bias, 1e-5, 1e-4));
  }
}

TEST(NormErrors, ShapesTypesAndOptions) {
  const Tensor x = ones({2, 3}), three = ones({3});
  expect_error<ValueError>(
      [&] {
        batch_norm(ones({1, 3}), {}, {}, {}, {}, true);
      },
      "Expected more than 1 value per channel when training, got input size [1, 3]");
  expect_error<ShapeError>([&] { batch_norm(x, ones({4}), ones({4})); },
                           "running_mean should contain 3 elements");
  const double momentum = 0.1;
  expect_error<ValueError>([&] { batch_norm(x, {}, {}, {}, {}, /*training=*/true, momentum, 0); },
                           "batch_norm: eps must be positive during training, but got 0");
  expect_error<ValueError>([&] { batch_norm(x, three, three, {}, {}, /*training=*/false, momentum, -1); },
                           "batch_norm: eps must be non-negative, but got -1");
  EXPECT_NO_THROW(batch_norm(x, three, three, {}, {}, /*training=*/false, momentum, 0));
  expect_error<ShapeError>([&] { batch_norm(x, three, three, ones({5})); },
                           "weight should contain 3 elements");
  expect_error<ShapeError>([&] { batch_norm(three, three, three); }, "at least 2 dimensions");
  expect_error<ValueError>([&] { batch_norm(x, {}, {}); }, "must be defined in evaluation mode");
  expect_error<DTypeError>(
      [&] {
        batch_norm(ones({2, 3}, {.dtype = int64}), three, three);
      },
      "not implemented for int64");
  expect_error<DTypeError>([&] { batch_norm(x, three, three, ones({3}, {.dtype = float64})); },
                           "weight must have the dtype");
  expect_error<ShapeError>(
      [&] { layer_norm(x, {4}); },
      "Given normalized_shape=[4], expected input with shape [*, 4], but got input of size [2, 3]");
  expect_error<ShapeError>([&] { layer_norm(x, {3}, ones({4})); },
                           "Expected weight to be of same shape as normalized_shape");
  expect_error<ShapeError>([&] { layer_norm(x, IntArrayRef()); }, "at least 1-dimensional");
  expect_error<ShapeError>([&] { group_norm(ones({2, 3, 4}), 2); }, "divisible by num_groups");
  expect_error<ValueError>([&] { group_norm(ones({2, 3, 4}), 0); }, "greater than 0");
  expect_error<ValueError>(
      [&] {
        group_norm(ones({1, 4, 1}), 4);
      },
      "Expected more than 1 value per channel when training, got input size [1, 4, 1]");
  EXPECT_NO_THROW(group_norm(ones({2, 4}), 4)) << "two rows of one value, as in PyTorch";
  EXPECT_NO_THROW(group_norm(ones({0, 4}), 4));
}

}  // namespace
}  // namespace tern
