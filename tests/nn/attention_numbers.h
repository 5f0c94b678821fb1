// Numbers by formulas, for layers of attention beside PyTorch: tensors and weights that Python makes too,
//   def numbers(shape, k):
//       i = torch.arange(math.prod(shape), dtype=torch.float64)
//       return torch.sin(0.7 * i + k).float().reshape(shape)
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tern/autograd/grad_mode.h"
#include "tern/nn/module.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"

namespace tern::nn::formulas {

/// bool, [size, size]: hides positions after their own.
inline Tensor causal_mask(int64_t size) { return triu(ones({size, size}, {.dtype = DType::Bool}), 1); }

inline Tensor numbers(IntArrayRef shape, double k) {
  std::vector<float> values;
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(std::sin(0.7 * static_cast<double>(i) + k)));
  return from_blob(values.data(), shape).clone().to(get_default_device());
}

/// Parameter number j of the module becomes 0.6 * numbers(shape, j + 1).
inline void set_weights(Module& module) {
  NoGradGuard no_grad;
  double k = 1;
  for (Tensor& parameter : module.parameters()) parameter.copy_(numbers(parameter.shape(), k++) * 0.6);
}

/// For each parameter the sum of its gradient times numbers(shape, 3), when `y` has the gradient
/// numbers(shape, 5).
inline std::vector<double> gradient_sums(Module& module, const Tensor& y) {
  module.zero_grad();
  y.backward(numbers(y.shape(), 5));
  std::vector<double> sums;
  for (const Tensor& parameter : module.parameters())
    sums.push_back(sum(mul(parameter.grad(), numbers(parameter.shape(), 3))).item<double>());
  return sums;
}

inline void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 2e-5) << "number " << i;
}
inline void expect_near(const Tensor& actual, const std::vector<double>& expected) {
  expect_near(actual.detach().to_vector<double>(), expected);
}

inline std::vector<std::string> parameter_names(const Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : module.state_dict()) names.push_back(name);
  return names;
}

}  // namespace tern::nn::formulas
