// What the tests of optimizers share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tern/core/memory.h"
#include "tern/core/tensor.h"
#include "tests/optim/tables.h"

namespace tern::testing {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A leaf on the default device that requires a gradient.
inline Tensor parameter(const std::vector<float>& values, std::vector<int64_t> shape = {},
                        DType dtype = float32) {
  if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
  Tensor x =
      empty_contiguous(IntArrayRef(shape).to_shape(), static_cast<int64_t>(values.size()), float32, kCPU);
  std::copy(values.begin(), values.end(), x.data<float>());
  x = x.to(dtype).to(get_default_device());
  x.requires_grad_();
  return x;
}

inline void give_grad(const Tensor& x, const std::vector<float>& values) {
  Tensor grad = parameter(values).detach().to(x.dtype()).view(x.shape());
  x.set_grad(grad);
}

inline const std::vector<double>& row(const std::vector<tables::Row>& table, const std::string& name) {
  for (const tables::Row& entry : table)
    if (entry.name == name) return entry.values;
  ADD_FAILURE() << "no row " << name;
  static const std::vector<double> none;
  return none;
}

inline void expect_near(const std::vector<double>& got, const std::vector<double>& wanted, double relative,
                        double absolute) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], absolute + relative * std::fabs(wanted[i])) << "at " << i;
}

}  // namespace tern::testing
