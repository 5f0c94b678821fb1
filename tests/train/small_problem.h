// A problem that is learnt in a moment, a network that has all kinds of state, and how runs are stopped and
// compared.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "tern/data/dataset.h"
#include "tern/nn/dropout.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/ops/activation.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"

namespace tern::train {

/// With running statistics and random numbers.
struct SmallNet : nn::Module {
  nn::Linear first{4, 16};
  nn::BatchNorm1d norm{16};
  nn::Dropout dropout{0.25};
  nn::Linear last{16, 3};
  TERN_MODULE(first, norm, dropout, last)
  Tensor forward(const Tensor& x) { return last(dropout(relu(norm(first(x))))); }
};

/// Three classes, told apart by the largest of the first three numbers.
inline data::TensorDataset problem(int64_t size, uint64_t seed) {
  Generator generator(seed);
  const Tensor x = randn({size, 4}, {}, generator);
  return data::TensorDataset(x, x.narrow(1, 0, 3).argmax(1));
}

/// For FitOptions::stop: yes to the question of that number.
inline std::function<bool()> stop_after(int questions) {
  return [questions]() mutable { return --questions == 0; };
}

inline void expect_same_bytes(const StateDict& a, const StateDict& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    const Tensor left = tensor.cpu().contiguous(), right = b.at(name).cpu().contiguous();
    ASSERT_EQ(left.nbytes(), right.nbytes());
    EXPECT_EQ(std::memcmp(left.data_ptr(), right.data_ptr(), left.nbytes()), 0) << name;
  }
}

}  // namespace tern::train
