// Scans, sorting, topk and median: against plain loops and PyTorch's results, gradients, errors.
#include "tern/ops/sort.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tern/autograd/engine.h"
#include "tern/autograd/gradcheck.h"
#include "tern/base/error.h"
#include "tern/ops/compare.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/print.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/scan.h"
#include "tests/ops/reduce_testing.h"
#include "tests/support/emulated.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using namespace tern::testing;
using ::testing::HasSubstr;

/// Positions of a row in stable order, NaN last (first when descending).
std::vector<int64_t> plain_order(const std::vector<double>& row, bool descending) {
  std::vector<int64_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  auto less = [](double a, double b) { return a < b || (!std::isnan(a) && std::isnan(b)); };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const double x = row[static_cast<size_t>(a)], y = row[static_cast<size_t>(b)];
    return descending ? less(y, x) : less(x, y);
  });
  return order;
}

TEST(Sort, IsStableForEverySizeAndDtype) {
  for (DType dtype : {float32, float64, float16, bfloat16, int64, int32, int16, int8, uint8, bool_})
    for (int64_t size : {1, 2, 10, 100, 511, 512, 3000})
      for (bool descending : {false, true}) {
        Tensor x = to(mul(ragged({size}), 20), dtype);
        if (is_floating_point(dtype) && size >= 100) {
          x.slice(0, 5, 9).fill_(kNan);
          x.slice(0, 20, 22).fill_(-0.0);
          x.slice(0, 30, 32).fill_(0.0);
          x.slice(0, 40, 41).fill_(-kInf);
          x.slice(0, 41, 42).fill_(kInf);
        }
        const std::vector<int64_t> wanted = plain_order(to(x, float64).to_vector<double>(), descending);
        auto [values, indices] = sort(x, 0, descending);
        const std::string what = std::string(name(dtype)) + ", " + std::to_string(size);
        EXPECT_EQ(indices.to_vector<int64_t>(), wanted) << what;
        EXPECT_EQ(argsort(x, 0, descending).to_vector<int64_t>(), wanted) << what;
        for (int64_t k : {int64_t{1}, size / 2, size}) {
          if (dtype == bool_ || k == 0) continue;
          auto [top, places] = topk(x, k, 0, descending);
          EXPECT_EQ(places.to_vector<int64_t>(), std::vector<int64_t>(wanted.begin(), wanted.begin() + k))
              << what;
        }
        if (dtype != bool_ && !descending && size < 100) {
          EXPECT_EQ(median(x, 0).second.item<int64_t>(), wanted[static_cast<size_t>((size - 1) / 2)]) << what;
        }
      }
}

TEST(Sort, RowsOfEveryLength) {
  for (DType dtype : {float32, int64})
    for (int64_t size : {33, 129, 700, 2049, 4097})
      for (bool descending : {false, true}) {
        // Rows that lie side by side, with many equal elements.
        const Tensor x = to(mul(ragged({3, size, 2}), 30), dtype);
        const std::vector<double> rows = to(movedim(x, 1, -1), float64).contiguous().to_vector<double>();
        const auto check = [&](const std::pair<Tensor, Tensor>& got, int64_t first, int64_t count) {
          const std::string what =
              std::string(name(dtype)) + ", " + std::to_string(size) + ", " + std::to_string(count);
          const std::vector<int64_t> places = movedim(got.second, 1, -1).contiguous().to_vector<int64_t>();
          const std::vector<double> values =
              to(movedim(got.first, 1, -1), float64).contiguous().to_vector<double>();
          for (int64_t row = 0; row < 6; ++row) {
            const auto begin = rows.begin() + row * size;
            const std::vector<int64_t> order = plain_order({begin, begin + size}, descending);
            for (int64_t i = 0; i < count; ++i) {
              const int64_t place = order[static_cast<size_t>(first + i)];
              ASSERT_EQ(places[static_cast<size_t>(row * count + i)], place) << what;
              ASSERT_EQ(values[static_cast<size_t>(row * count + i)], begin[place]) << what;
            }
          }
        };
        check(sort(x, 1, descending), 0, size);
        for (int64_t k : {2, 33, 129})
          if (k <= size) check(topk(x, k, 1, descending), 0, k);
        if (!descending) check(median(x, 1, /*keepdim=*/true), (size - 1) / 2, 1);
      }
}

TEST(Sort, FirstOfLongRows) {
  for (DType dtype : {float32, int64}) {
    const Tensor x = to(mul(ragged({dtype == int64 ? 2 : 1, 40000}), 100000), dtype);
    for (bool descending : {false, true}) {
      const Tensor order = argsort(x, 1, descending);
      for (int64_t k : {3, 100}) {
        const auto [values, places] = topk(x, k, 1, descending);
        EXPECT_TRUE(equal(places, narrow(order, 1, 0, k))) << name(dtype) << ", " << k;
        EXPECT_TRUE(equal(values, gather(x, 1, places))) << name(dtype) << ", " << k;
      }
    }
  }
}

TEST(Sort, IntegersOfEverySpan) {
  for (int shift : {0, 20, 27, 40})
    for (bool descending : {false, true}) {
      const Tensor x = mul(to(mul(ragged({3000}), 64), int64), int64_t{1} << shift);
      EXPECT_EQ(argsort(x, 0, descending).to_vector<int64_t>(),
                plain_order(to(x, float64).to_vector<double>(), descending))
          << shift;
    }
}

TEST(Sort, WorksAlongEveryDimensionOfEveryLayout) {
  for (const Layout& layout : layouts(float32))
    for (int64_t dim : {0, 1, 2}) {
      auto [values, indices] = sort(layout.x, dim);
      const Tensor rows = movedim(layout.x, dim, -1).contiguous(),
                   got = movedim(indices, dim, -1).contiguous();
      const Tensor sorted = movedim(values, dim, -1).contiguous();
      const std::vector<double> in = to(rows, float64).to_vector<double>(),
                                out = to(sorted, float64).to_vector<double>();
      const std::vector<int64_t> places = got.to_vector<int64_t>();
      const int64_t size = rows.size(-1);
      for (int64_t start = 0; start < rows.numel(); start += size) {
        const std::vector<int64_t> order =
            plain_order({in.begin() + start, in.begin() + start + size}, false);
        for (int64_t i = 0; i < size; ++i) {
          ASSERT_EQ(places[static_cast<size_t>(start + i)], order[static_cast<size_t>(i)]) << layout.name;
          ASSERT_EQ(out[static_cast<size_t>(start + i)],
                    in[static_cast<size_t>(start + order[static_cast<size_t>(i)])]);
        }
      }
    }
}

TEST(Scan, EveryLayoutAndDimension) {
  for (DType dtype : {float32, float64, int32, bool_})
    for (const Layout& layout : layouts(dtype))
      for (int64_t dim : {0, 1, 2}) {
        const std::vector<double> in = to(movedim(layout.x, dim, -1), float64).to_vector<double>();
        const std::vector<double> sums =
            to(movedim(cumsum(layout.x, dim), dim, -1), float64).to_vector<double>();
        const std::vector<double> products =
            to(movedim(cumprod(layout.x, dim), dim, -1), float64).to_vector<double>();
        double sum = 0, product = 1;
        for (size_t i = 0; i < in.size(); ++i) {
          if (i % static_cast<size_t>(layout.x.size(dim)) == 0) sum = 0, product = 1;
          sum += in[i];
          product *= in[i];
          ASSERT_EQ(sums[i], sum) << layout.name << " along " << dim;
          ASSERT_NEAR(products[i], product, 1e-6 * std::abs(product) + 1e-40)
              << layout.name << " along " << dim;
        }
      }
}

// A GPU cuts columns into pieces and rows into tiles.
TEST(Scan, LongColumnsAreAsLongRows) {
  for (int64_t length : {127, 128, 1000}) {
    const Tensor x = randn({2, length, 3}, {.dtype = float64}), rows = contiguous(movedim(x, 1, -1));
    const auto expect_same = [&](const char* name, const Tensor& found, const Tensor& of_rows) {
      const Tensor wanted = movedim(of_rows, -1, 1);
      EXPECT_TRUE(allclose(found, wanted, 1e-12, 1e-12)) << name << " of " << length;
    };
    expect_same("cumsum", cumsum(x, 1), cumsum(rows, 2));
    expect_same("cumsum from the end", flip(cumsum(flip(x, {1}), 1), {1}),
                flip(cumsum(flip(rows, {2}), 2), {2}));
    expect_same("logcumsumexp", logcumsumexp(x, 1), logcumsumexp(rows, 2));
    const auto [values, places] = cummax(x, 1);
    const auto [of_rows, places_of_rows] = cummax(rows, 2);
    EXPECT_TRUE(equal(values, movedim(of_rows, -1, 1)) && equal(places, movedim(places_of_rows, -1, 1)));
  }
}

const Printed kPrintedSorts[] = {
    {"sort with nan",
     [] {
       return sort(numbers({1, kNan, 2})).second;
     },
     "tensor([0, 2, 1])"},
    {"descending with nan",
     [] {
       return sort(numbers({1, kNan, 2}), -1, true).first;
     },
     "tensor([nan, 2., 1.])"},
    {"zeros of both signs",
     [] {
       return sort(numbers({0, -0.0}), 0, true).first;
     },
     "tensor([0., -0.])"},
    {"sort of bool",
     [] {
       return sort(tensor({true, false})).second;
     },
     "tensor([1, 0])"},
    {"sort of nothing",
     [] {
       return sort(zeros({0, 3}), 0).first;
     },
     "tensor([], size=(0, 3))"},
    {"sort of 0-d", [] { return sort(tensor(3.0)).second; }, "tensor(0)"},
    {"topk with nan",
     [] {
       return topk(numbers({1, kNan, 2}), 2).second;
     },
     "tensor([1, 2])"},
    {"smallest",
     [] {
       return topk(numbers({1, kNan, 2}), 2, -1, false).first;
     },
     "tensor([1., 2.])"},
    {"top 0", [] { return topk(ones({3}), 0).first; }, "tensor([])"},
    {"topk of 0-d", [] { return topk(tensor(3.0), 0).first; }, "tensor(3.)"},
    {"median is the lower",
     [] {
       return median(numbers({4, 1, 3, 2}));
     },
     "tensor(2.)"},
    {"median with nan",
     [] {
       return median(numbers({1, kNan, 3, kNan}), 0).second;
     },
     "tensor(1)"},
    {"median of equals",
     [] {
       return median(numbers({2, 1, 1, 2, 1, 2}), 0).second;
     },
     "tensor(4)"},
    {"median of nothing", [] { return median(zeros({0})); }, "tensor(nan)"},
    {"median of no integers", [] { return median(zeros({0}, as(int64))); }, "tensor(-9223372036854775808)"},
    {"median keepdim",
     [] {
       return median(numbers({1, 2, 3}).view({1, 3}), 1, true).first;
     },
     "tensor([[2.]])"},
    {"cumsum of bool",
     [] {
       return cumsum(tensor({true, true}), 0);
     },
     "tensor([1, 2])"},
    {"cumsum of 0-d", [] { return cumsum(tensor(3.0), 0); }, "tensor(3.)"},
    {"cumsum of nothing", [] { return cumsum(zeros({0}), 0); }, "tensor([])"},
    {"cumsum as int64",
     [] {
       return cumsum(numbers({1.5, 1.5}), 0, int64);
     },
     "tensor([1, 2])"},
    {"cumprod of uint8",
     [] {
       return cumprod(tensor({20, 20}, as(uint8)), 0);
     },
     "tensor([ 20, 400])"},
    {"cumsum after inf",
     [] {
       return cumsum(numbers({1, kInf, -kInf, 1}), 0);
     },
     "tensor([1., inf, nan, nan])"},
};

TEST(SortAndScan, SpecialValuesPrintAsInPyTorch) {
  for (const Printed& row : kPrintedSorts) EXPECT_EQ(row.op().cpu().str(), row.text) << row.name;
}

TEST(Scan, ManyRowsAndLongOnes) {
  const bool emulated = is_emulated(get_default_device());
  for (const Shape& shape : {Shape{3, 5000}, emulated ? Shape{1030, 129} : Shape{8192, 129},
                             Shape{emulated ? 400'000 : 4'300'000}}) {
    const Tensor wanted = arange(1, shape.back() + 1, {.device = kCPU});
    EXPECT_TRUE(equal(cumsum(ones(shape, as(int32)), -1).cpu(), expand(wanted, shape)));
  }
  EXPECT_TRUE(equal(cumprod(full({3, 5000}, -1, as(int32)), -1),
                    expand(add(mul(remainder(arange(1, 5001), 2), -2), 1), {3, 5000})));
  Tensor x = ones({3, 5000}, {.requires_grad = true});
  backward({cumsum(x, -1)}, {ones({3, 5000})});
  EXPECT_TRUE(equal(to(x.grad(), int64), sub(full({3, 5000}, 5000, as(int64)), arange(5000))));
}

TEST(Scan, LongRunningSumsAreAccurate) {
  const double tenth = static_cast<double>(0.1f);
  Tensor y = cumsum(full({1 << 20}, 0.1), 0);
  EXPECT_NEAR(y[-1].item<double>() / (tenth * (1 << 20)), 1, 1e-7);
}

using Function = Tensor (*)(const std::vector<Tensor>&);

TEST(SortAndScanGradient, AgreesWithFiniteDifferences) {
  const std::pair<const char*, Function> functions[] = {
      {"sort", [](const std::vector<Tensor>& v) { return sort(v[0], 1).first; }},
      {"sort descending", [](const std::vector<Tensor>& v) { return sort(v[0], 0, true).first; }},
      {"topk", [](const std::vector<Tensor>& v) { return topk(v[0], 2, 1).first; }},
      {"median", [](const std::vector<Tensor>& v) { return median(v[0], 1).first; }},
      {"median keepdim", [](const std::vector<Tensor>& v) { return median(v[0], 2, true).first; }},
      {"whole median", [](const std::vector<Tensor>& v) { return median(v[0]); }},
      {"cumsum", [](const std::vector<Tensor>& v) { return cumsum(v[0], 1); }},
      {"cumprod", [](const std::vector<Tensor>& v) { return cumprod(v[0], 1); }},
      {"cumprod of columns", [](const std::vector<Tensor>& v) { return cumprod(v[0], 0); }},
  };
  Tensor x = add(ragged({3, 4, 2}, float64), mul(reshape(arange(24, as(float64)), {3, 4, 2}), 1e-2));
  x.requires_grad_();
  Tensor with_zeros = tensor({{0.0, 2.0, 3.0, 0.0}, {1.0, 0.0, 5.0, 2.0}, {1.0, 2.0, 4.0, 0.5}}, as(float64));
  with_zeros.requires_grad_();
  for (const auto& [name, function] : functions) {
    EXPECT_NO_THROW(gradcheck(function, {x})) << name;
    EXPECT_NO_THROW(gradgradcheck(function, {x})) << name;
  }
  for (int64_t dim : {0, 1}) {
    auto function = [dim](const std::vector<Tensor>& v) { return cumprod(v[0], dim); };
    EXPECT_NO_THROW(gradcheck(function, {with_zeros})) << dim;
    EXPECT_NO_THROW(gradgradcheck(function, {with_zeros})) << dim;
  }
}

TEST(SortAndScanGradient, ProductsOfRowsAndColumnsAgree) {
  for (const Shape& shape : {Shape{17, 2}, Shape{300, 100}, Shape{16, 129}, Shape{40, 1000}})
    for (bool cumulative : {false, true}) {
      const auto gradient = [&](const Tensor& values, int64_t dim) {
        Tensor x = clone(values).requires_grad_();
        const Tensor y = cumulative ? cumprod(x, dim) : prod(x, dim);
        sum(y * y).backward();
        return x.grad();
      };
      const Tensor x = add(mul(ragged(shape, float32), 1e-3), 1);
      EXPECT_TRUE(allclose(gradient(x, 1), t(gradient(contiguous(t(x)), 0)), 1e-5, 1e-6))
          << shape[0] << " x " << shape[1] << (cumulative ? ", cumulative" : "");
    }
}

TEST(SortAndScanGradient, ProductsOfPartsMayBeTooLargeForTheDtype) {
  struct Case {
    DType dtype;
    std::vector<double> values;
    double wanted;  ///< gradient of the second element
  };
  for (const auto& [dtype, values, wanted] : {Case{float16, {1e-3, 1, 300, 300}, 90},
                                              {float32, {1e-30, 1, 1e30, 1e30}, 1e30},
                                              {float32, {1e30, 1, 1e-30, 1e-30}, 1e-30}})
    for (int64_t rows : {1, 20})
      for (bool cumulative : {false, true}) {
        Tensor x = expand(numbers(values).to(dtype), {rows, 4}).contiguous().requires_grad_();
        const Tensor y = cumulative ? select(cumprod(x, 1), 1, 3) : prod(x, 1);
        y.backward(ones({rows}, as(dtype)));
        EXPECT_NEAR(x.grad()[rows - 1][1].item<double>() / wanted, 1, 2e-2)
            << name(dtype) << ", " << rows << " rows" << (cumulative ? ", cumulative" : "");
      }
}

TEST(SortAndScanGradient, WholeMedianIsSharedByEquals) {
  for (const auto& [values, grad] : std::vector<std::pair<std::vector<double>, const char*>>{
           {{1, 3, 3}, "tensor([0.0000, 0.5000, 0.5000])"}, {{1, kNan, 0}, "tensor([0., 1., 0.])"}}) {
    Tensor x = numbers(values);
    x.requires_grad_();
    median(x).backward();
    EXPECT_EQ(x.grad().cpu().str(), grad);
  }
}

TEST(SortAndScanError, SaysOperatorRuleAndRemedy) {
  const Tensor x = ones({2, 3});
  expect_error<ValueError>(
      [&] { topk(x, 4); },
      "topk: selected index k out of range: k is 4, the size of dimension 1 is 3 (shape [2, 3])");
  expect_error<ValueError>([&] { topk(x, -1); }, "topk: selected index k out of range");
  expect_error<DTypeError>([&] { topk(tensor({true}), 1); }, "topk: does not support bool");
  expect_error<DTypeError>([&] { median(tensor({true})); }, "median: not implemented for bool");
  expect_error<IndexError>(
      [&] {
        median(zeros({2, 0}), 1);
      },
      "median: Expected reduction dim 1 to have non-zero size");
  expect_error<IndexError>([&] { sort(x, 2); },
                           "sort: Dimension out of range (expected to be in range of [-2, 1], but got 2)");
  expect_error<IndexError>([&] { cumsum(x, -3); }, "cumsum: Dimension out of range");
  expect_error<IndexError>([&] { cumprod(tensor(1.0), 1); }, "cumprod: Dimension out of range");
}

}  // namespace
}  // namespace tern
