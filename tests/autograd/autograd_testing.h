// What the tests of autograd share: leaves from numbers, values as vectors, errors by their text.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tern/autograd/engine.h"
#include "tern/autograd/grad_mode.h"
#include "tern/base/error.h"
#include "tern/ops/activation.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tern/ops/sort.h"

namespace tern {

using Floats = std::vector<float>;

/// A float32 leaf that requires a gradient.
inline Tensor leaf(const Floats& values) { return tensor(values, {.requires_grad = true}); }

inline Floats values(const Tensor& x) { return x.to_vector<float>(); }
/// The gradient's values; empty when there is none.
inline Floats grad_of(const Tensor& x) { return x.grad().defined() ? x.grad().to_vector<float>() : Floats(); }

/// The message of the AutogradError that `body` throws; fails the test when there is none.
template <class Body>
std::string autograd_error(Body&& body) {
  try {
    body();
  } catch (const AutogradError& error) {
    return error.message();
  }
  ADD_FAILURE() << "no AutogradError was thrown";
  return {};
}

}  // namespace tern
