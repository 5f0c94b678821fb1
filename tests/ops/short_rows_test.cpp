// Rows of every short length, which kernels gather, turn or work on together: against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tern/core/memory.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/scan.h"
#include "tern/ops/shape.h"
#include "tern/ops/sort.h"
#include "tests/ops/reduce_testing.h"
#include "tests/support/emulated.h"

namespace tern {
namespace {

using namespace tern::testing;

const std::vector<int64_t>& row_sizes() {
  static const std::vector<int64_t> sizes = {1,  2,  3,  4,  5,  7,  8,  9,  12, 15, 16,  17,
                                             20, 31, 32, 33, 47, 48, 49, 63, 64, 65, 100, 129};
  return sizes;
}

std::vector<int64_t> row_counts() {
  return is_emulated(get_default_device()) ? std::vector<int64_t>{3, 140}
                                           : std::vector<int64_t>{3, 16, 37, 1100};
}

/// Calls `f(x, values)` for matrices of short rows and their elements.
template <class F>
void for_each_matrix(const std::vector<DType>& dtypes, F&& f) {
  for (DType dtype : dtypes)
    for (int64_t n : row_sizes())
      for (int64_t rows : row_counts()) {
        SCOPED_TRACE(std::string(name(dtype)) + ", " + std::to_string(rows) + " x " + std::to_string(n));
        const Tensor x = ragged({rows, n}, dtype);
        f(x, to(x, float64).to_vector<double>());
      }
}

TEST(ShortRows, RunningSums) {
  for_each_matrix({float32, float64, bfloat16, int64, int16, uint8, bool_},
                  [](const Tensor& x, std::vector<double> wanted) {
                    const auto n = static_cast<size_t>(x.size(1));
                    for (size_t i = 0; i < wanted.size(); ++i)
                      if (i % n != 0) wanted[i] += wanted[i - 1];
                    const Tensor sums = cumsum(to(x, x.dtype() == bfloat16 ? float32 : x.dtype()), 1);
                    EXPECT_EQ(to(sums, float64).to_vector<double>(), wanted);
                  });
}

TEST(ShortRows, SumsAndExtremes) {
  for_each_matrix(
      {float32, float64, int64, int32, int8}, [](const Tensor& x, const std::vector<double>& values) {
        const auto n = static_cast<size_t>(x.size(1));
        std::vector<double> sums, largest;
        for (size_t i = 0; i < values.size(); i += n) {
          const auto begin = values.begin() + static_cast<int64_t>(i), end = begin + static_cast<int64_t>(n);
          sums.push_back(std::accumulate(begin, end, 0.0));
          largest.push_back(*std::max_element(begin, end));
        }
        EXPECT_EQ(to(sum(x, {1}), float64).to_vector<double>(), sums);
        EXPECT_EQ(to(amax(x, {1}), float64).to_vector<double>(), largest);
      });
}

TEST(ShortRows, PositionsOfTheFirstExtremeOrNan) {
  for_each_matrix({float32, float64, bfloat16, int64, int8}, [](const Tensor& x, std::vector<double> values) {
    const int64_t n = x.size(1);
    Tensor y = x.clone();
    if (is_floating_point(x.dtype()) && n > 3) {
      y.slice(0, 1, 3).slice(1, 2, 4).fill_(kNan);
      for (int64_t r : {1, 2})
        for (int64_t j : {2, 3}) values[static_cast<size_t>(r * n + j)] = kNan;
    }
    std::vector<int64_t> wanted;
    for (auto row = values.begin(); row != values.end(); row += n)
      wanted.push_back(
          std::max_element(row, row + n,
                           [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }) -
          row);
    EXPECT_EQ(argmax(y, 1).to_vector<int64_t>(), wanted);
  });
}

TEST(ShortRows, OperandsThatAreGathered) {
  for_each_matrix({float32, float64, int8}, [](const Tensor& x, const std::vector<double>& values) {
    const int64_t rows = x.size(0), n = x.size(1);
    const Tensor wide = cat({x, x}, 1), column = x.slice(1, 0, 1);
    const Tensor strided = wide.slice(1, n, 2 * n), across = contiguous(x.t()).t();
    EXPECT_EQ(to(wide, float64).to_vector<double>(),
              to(reshape(stack({x, x}, 1), {rows, 2 * n}), float64).to_vector<double>());
    EXPECT_EQ(to(contiguous(across), float64).to_vector<double>(), values);
    EXPECT_EQ(to(contiguous(strided), float64).to_vector<double>(), values);
    std::vector<double> doubled = values, shifted = values;
    for (size_t i = 0; i < values.size(); ++i) {
      doubled[i] += values[i];
      shifted[i] += values[i / static_cast<size_t>(n) * static_cast<size_t>(n)];
    }
    for (const Tensor& other : {strided, across})
      EXPECT_EQ(to(add(other, x), float64).to_vector<double>(), doubled);
    EXPECT_EQ(to(add(x, column), float64).to_vector<double>(), shifted);
    EXPECT_EQ(to(add(x, contiguous(column)), float64).to_vector<double>(), shifted);
  });
}

}  // namespace
}  // namespace tern
