// Rows of operators whose gradients are compared with finite differences: gradcheck_test.cpp and
// gradcheck_in_place_test.cpp.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern::gradient_rows {

using Tensors = std::vector<Tensor>;
enum Derivatives { kFirst = 1, kSecond = 2 };

/// An input: its shape, and the range of its numbers, which keeps away from kinks and poles.
struct Input {
  std::vector<int64_t> shape;
  double low = -1;
  double high = 1;
};

struct GradientRow {
  std::string name;
  std::vector<Input> inputs;
  std::function<Tensor(const Tensors&)> function;
  Derivatives derivatives = kSecond;
};

/// Numbers that are all different, far enough from each other for a step of the differences.
inline Tensor make_input(const Input& input, uint64_t salt) {
  int64_t numel = 1;
  for (int64_t size : input.shape) numel *= size;
  std::vector<double> values(static_cast<size_t>(numel));
  for (int64_t i = 0; i < numel; ++i) {
    const double fraction =
        std::fmod(static_cast<double>(i + 1) * 0.6180339887498949 + 0.37 * static_cast<double>(salt), 1.0);
    values[static_cast<size_t>(i)] = input.low + (input.high - input.low) * fraction;
  }
  return reshape(tensor(values, {.dtype = float64}), input.shape).requires_grad_();
}

inline Tensor long_tensor(const std::vector<int64_t>& values) { return tensor(values); }
inline Tensor mask(const std::vector<int64_t>& shape) {
  const Tensor x = arange(checked_numel(shape));
  return eq(remainder(reshape(x, shape), 3), 0);
}

inline const Input kMatrix{{3, 4}}, kPositive{{3, 4}, 0.3, 2.0}, kVector{{4}}, kImage{{2, 2, 5, 6}},
    kFractions{{3, 4}, 1.1, 1.9};

class Gradcheck : public ::testing::TestWithParam<GradientRow> {};

inline std::string row_name(const ::testing::TestParamInfo<GradientRow>& info) { return info.param.name; }

}  // namespace tern::gradient_rows
