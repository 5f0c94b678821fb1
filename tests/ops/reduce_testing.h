// What tests of operators share: tensors in many layouts, plain loops that reductions are compared with,
// results as PyTorch prints them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/shape.h"

namespace tern::testing {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();

inline TensorOptions as(DType dtype, bool requires_grad = false) {
  return {.dtype = dtype, .device = {}, .requires_grad = requires_grad};
}

/// Numbers in [-2, 2) that look random and are the same everywhere; multiples of 1/64, so that sums of a few
/// are exact.
inline Tensor ragged(IntArrayRef shape, DType dtype = float32) {
  int64_t numel = 1;
  for (int64_t size : shape) numel *= size;
  std::vector<double> values(static_cast<size_t>(numel));
  uint32_t state = 12345;
  for (double& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<double>(static_cast<int32_t>(state >> 24) - 128) / 64;
  }
  return to(reshape(tensor(values, as(float64)), shape), dtype);
}

/// Where what is wanted is worked out: by other kernels than those of the device under test, and soon.
inline std::vector<Tensor> on_cpu(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& each : tensors) copies.push_back(each.cpu());
  return copies;
}

/// ragged() as a leaf of float64 that asks for its gradient.
inline Tensor leaf(IntArrayRef shape) { return ragged(shape, float64).clone().requires_grad_(); }

struct Layout {
  std::string name;
  Tensor x;
};

/// A tensor of [4, 5, 37] in the layouts that kernels treat differently.
inline std::vector<Layout> layouts(DType dtype) {
  Tensor x = ragged({4, 5, 37}, dtype);
  return {
      {"contiguous", x},
      {"transposed", transpose(contiguous(transpose(x, 0, 2)), 0, 2)},
      {"middle outside", transpose(contiguous(transpose(x, 0, 1)), 0, 1)},
      {"every second column", slice(ragged({4, 5, 74}, dtype), 2, {}, {}, 2)},
      {"part of wider rows", narrow(ragged({4, 5, 50}, dtype), 2, 7, 37)},
      {"expanded rows", expand(ragged({4, 1, 37}, dtype), {4, 5, 37})},
      {"expanded columns", expand(ragged({4, 5, 1}, dtype), {4, 5, 37})},
      {"small inside", permute(ragged({37, 5, 4}, dtype), {2, 1, 0})},
  };
}

/// Calls `f(kept index, elements)` for each result of a reduction of x over the dimensions in `dims`, in the
/// order of the result; elements stand in row-major order.
inline std::vector<double> reduce_plainly(const Tensor& x, const std::vector<int64_t>& dims,
                                          const std::function<double(const std::vector<double>&)>& f) {
  const int64_t rank = x.dim();
  std::vector<bool> reduced(static_cast<size_t>(rank), dims.empty());
  for (int64_t d : dims) reduced[static_cast<size_t>(d)] = true;
  std::vector<int64_t> order;
  int64_t count = 1;
  for (int64_t d = 0; d < rank; ++d)
    if (!reduced[static_cast<size_t>(d)]) order.push_back(d);
  for (int64_t d = 0; d < rank; ++d)
    if (reduced[static_cast<size_t>(d)]) order.push_back(d), count *= x.size(d);
  const std::vector<double> values = to(permute(x, order), float64).to_vector<double>();
  std::vector<double> result;
  for (size_t i = 0; i < values.size(); i += static_cast<size_t>(count))
    result.push_back(
        f({values.begin() + static_cast<int64_t>(i), values.begin() + static_cast<int64_t>(i) + count}));
  return result;
}

inline const std::vector<std::vector<int64_t>>& dim_lists() {
  static const std::vector<std::vector<int64_t>> lists = {{}, {0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}};
  return lists;
}

/// Each element differs by at most `tolerance` times |wanted| + least.
inline void expect_close(const Tensor& got, const std::vector<double>& wanted, double tolerance,
                         const std::string& what, double least = 1) {
  const std::vector<double> values = to(got, float64).to_vector<double>();
  ASSERT_EQ(values.size(), wanted.size()) << what;
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_LE(std::abs(values[i] - wanted[i]), tolerance * (least + std::abs(wanted[i])))
        << what << ", result " << i << ": " << values[i] << " and not " << wanted[i];
}

/// A result of PyTorch 2 for special inputs, as it prints it.
struct Printed {
  const char* name;
  Tensor (*op)();
  const char* text;
};

inline Tensor numbers(std::vector<double> values, DType dtype = float32) { return tensor(values, as(dtype)); }

}  // namespace tern::testing
