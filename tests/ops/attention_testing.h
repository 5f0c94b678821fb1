// What attention is by definition, for tests.
#pragma once

#include <cmath>
#include <limits>

#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"
#include "tern/ops/softmax.h"

namespace tern::testing {

inline constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

inline Tensor below_diagonal(int64_t rows, int64_t columns) {
  return tril(ones({rows, columns}, {.dtype = DType::Bool}));
}

/// By operators that keep all scores.
inline Tensor by_formula(const Tensor& query, const Tensor& key, const Tensor& value,
                         const Tensor& visible = {}) {
  Tensor scores = matmul(query, mT(key)) / std::sqrt(static_cast<double>(query.size(-1)));
  if (visible.defined()) scores = masked_fill(scores, logical_not(visible), kMinusInfinity);
  return matmul(softmax(scores, -1), value);
}

}  // namespace tern::testing
