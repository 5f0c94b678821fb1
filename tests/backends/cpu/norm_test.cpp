// The normalisation of rows and its gradients against plain loops in double.
#include "tern/kernels/norm.h"

#include <fmt/format.h>

#include "tests/backends/cpu/kernel_testing.h"

namespace tern::testing {
namespace {

struct NormCase {
  int64_t rows, groups, params, inner;
  bool rms, affine;
};

template <class T>
void check(const Variant& variant, Random& random, const NormCase& c) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const int64_t size = c.params * c.inner;
  const std::string what =
      fmt::format("{} rows {} groups {} params {} inner {} rms {} affine {}", name(dtype_of<T>()), c.rows,
                  c.groups, c.params, c.inner, c.rms, c.affine);
  const std::vector<T> input = random.elements<T>(c.rows * size), grad = random.elements<T>(c.rows * size);
  const std::vector<C> weight = random.elements<C>(c.groups * c.params),
                       bias = random.elements<C>(c.groups * c.params);
  const double eps = 0.5;

  std::vector<double> means(static_cast<size_t>(c.rows)), invstds(means), output(input.size()),
      grad_input(input.size()), grad_weight(weight.size()), grad_bias(weight.size());
  const auto param = [&](int64_t r, int64_t j) {
    return static_cast<size_t>(r % c.groups * c.params + j / c.inner);
  };
  for (int64_t r = 0; r < c.rows; ++r) {
    const auto at = [&](int64_t j) { return static_cast<size_t>(r * size + j); };
    const auto scale = [&](int64_t j) { return c.affine ? static_cast<double>(weight[param(r, j)]) : 1.0; };
    double sum = 0, squares = 0, of_grad = 0, of_product = 0;
    for (int64_t j = 0; j < size; ++j) sum += to_double(input[at(j)]);
    const double n = static_cast<double>(size), mean = c.rms ? 0 : sum / n;
    for (int64_t j = 0; j < size; ++j) squares += std::pow(to_double(input[at(j)]) - mean, 2);
    const double invstd = 1 / std::sqrt(squares / n + eps);
    const auto normal = [&](int64_t j) { return (to_double(input[at(j)]) - mean) * invstd; };
    for (int64_t j = 0; j < size; ++j) {
      const double g = to_double(grad[at(j)]), h = g * scale(j);
      output[at(j)] = normal(j) * scale(j) + (c.affine ? static_cast<double>(bias[param(r, j)]) : 0.0);
      grad_weight[param(r, j)] += g * normal(j);
      grad_bias[param(r, j)] += g;
      of_grad += c.rms ? 0 : h;
      of_product += h * normal(j);
    }
    for (int64_t j = 0; j < size; ++j)
      grad_input[at(j)] =
          invstd * (to_double(grad[at(j)]) * scale(j) - of_grad / n - normal(j) * of_product / n);
    means[static_cast<size_t>(r)] = mean;
    invstds[static_cast<size_t>(r)] = invstd;
  }

  std::vector<C> mean(means.size()), invstd(means.size()), got_weight(weight.size()), got_bias(weight.size());
  std::vector<T> got(input.size()), got_input(input.size());
  variant.run(kernels::row_norm, {dtype_of<T>(), c.rms, c.rows, size, c.groups, c.inner, eps, input.data(),
                                  c.affine ? weight.data() : nullptr, c.affine ? bias.data() : nullptr,
                                  mean.data(), invstd.data(), got.data()});
  expect_near(got, output, "output " + what);
  expect_near(invstd, invstds, "invstd " + what);
  if (!c.rms) expect_near(mean, means, "mean " + what);
  variant.run(kernels::row_norm_backward,
              {dtype_of<T>(), c.rms, c.rows, size, c.groups, c.inner, grad.data(), input.data(),
               c.affine ? weight.data() : nullptr, mean.data(), invstd.data(), got_input.data(),
               got_weight.data(), got_bias.data()});
  expect_near(got_input, grad_input, "grad_input " + what);
  expect_near(got_weight, grad_weight, "grad_weight " + what);
  expect_near(got_bias, grad_bias, "grad_bias " + what);
}

TEST(CpuRowNorm, EverySizeAroundBlocks) {
  for_each_variant([](const Variant& variant) {
    Random random(1);
    for (const int64_t size :
         {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 79, 127, 129, 500, 4095, 4097})
      for (const bool groups : {false, true})
        with_random_float(random, [&]<class T>() {
          const bool rms = !groups && random.coin();
          check<T>(variant, random,
                   {.rows = groups ? 6 : random.integer(1, 20),
                    .groups = groups ? 3 : 1,
                    .params = groups ? 2 : size,
                    .inner = groups ? size : 1,
                    .rms = rms,
                    .affine = random.coin()});
        });
  });
}

}  // namespace
}  // namespace tern::testing
