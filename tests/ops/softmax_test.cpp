// Softmax, log_softmax, logsumexp: layouts and sizes against plain loops, special values, gradients, errors.
#include "tern/ops/softmax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tern/autograd/grad_mode.h"
#include "tern/autograd/gradcheck.h"
#include "tern/base/error.h"
#include "tern/base/parallel.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/print.h"
#include "tern/ops/reduce.h"
#include "tests/ops/reduce_testing.h"

namespace tern {
namespace {

using namespace tern::testing;
using ::testing::HasSubstr;

/// softmax along dimension `dim` in float64 by plain loops.
std::vector<double> plain_softmax(const Tensor& x, int64_t dim, bool log) {
  const std::vector<double> in = to(x, float64).to_vector<double>();
  std::vector<double> out(in.size());
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < x.dim(); ++d) inner *= x.size(d);
  const int64_t size = x.size(dim);
  for (int64_t row = 0; row < x.numel() / size; ++row) {
    auto at = [&](int64_t j) {
      return static_cast<size_t>(row / inner * size * inner + j * inner + row % inner);
    };
    double sum = 0, max = -kInf;
    for (int64_t j = 0; j < size; ++j) max = std::max(max, in[at(j)]);
    for (int64_t j = 0; j < size; ++j) sum += std::exp(in[at(j)] - max);
    for (int64_t j = 0; j < size; ++j) {
      const double log_value = in[at(j)] - max - std::log(sum);
      out[at(j)] = log ? log_value : std::exp(log_value);
    }
  }
  return out;
}

double tolerance_of(DType dtype) {
  return dtype == float64 ? 1e-13 : dtype == float32 ? 3e-6 : dtype == float16 ? 2e-3 : 1e-2;
}

TEST(Softmax, EveryLayoutAndDimension) {
  for (DType dtype : {float32, float64, bfloat16, float16})
    for (const Layout& layout : layouts(dtype))
      for (int64_t dim : {0, 1, 2}) {
        const std::string what = layout.name + " along " + std::to_string(dim);
        expect_close(softmax(layout.x, dim), plain_softmax(layout.x, dim, false), tolerance_of(dtype), what,
                     /*least=*/1e-3);
        expect_close(log_softmax(layout.x, dim - 3), plain_softmax(layout.x, dim, true), tolerance_of(dtype),
                     what);
      }
}

TEST(Softmax, EverySizeOfARow) {
  for (int64_t size : {1, 2, 3, 10, 15, 16, 17, 63, 64, 1000, 1024, 1025, 5000, 32768, 40000})
    for (DType dtype : {float32, bfloat16}) {
      Tensor x = mul(ragged({3, size}, dtype), 4);
      expect_close(softmax(x, 1), plain_softmax(x, 1, false), tolerance_of(dtype) * 2, std::to_string(size),
                   /*least=*/1e-3);
      expect_close(log_softmax(x, 1), plain_softmax(x, 1, true), tolerance_of(dtype), std::to_string(size));
      Tensor columns = transpose(x, 0, 1).contiguous();
      expect_close(softmax(columns, 0), plain_softmax(columns, 0, false), tolerance_of(dtype) * 2,
                   std::to_string(size), /*least=*/1e-3);
    }
}

TEST(Softmax, ManyRowsOfFewElements) {
  for (int64_t size : {1, 2, 3, 10, 15})
    for (DType dtype : {float32, float64, float16, bfloat16}) {
      const Tensor x = mul(ragged({300, size}, dtype), 4);
      const std::string what = std::to_string(size) + " of " + std::string(name(dtype));
      expect_close(softmax(x, 1), plain_softmax(x, 1, false), tolerance_of(dtype) * 2, what, /*least=*/1e-3);
      expect_close(log_softmax(x, 1), plain_softmax(x, 1, true), tolerance_of(dtype), what);
      const std::vector<double> sums = to(logsumexp(x, 1), float64).to_vector<double>();
      const Tensor wide = to(x, float64);
      for (int64_t r : {0, 127, 128, 299})
        EXPECT_NEAR(sums[static_cast<size_t>(r)], log(sum(exp(wide.select(0, r)))).item<double>(),
                    tolerance_of(dtype) * 20)
            << what;
    }
}

TEST(Softmax, LogSumExpOverEveryDimList) {
  auto plain = [](const std::vector<double>& e) {
    double sum = 0, max = *std::max_element(e.begin(), e.end());
    for (double v : e) sum += std::exp(v - max);
    return max + std::log(sum);
  };
  for (DType dtype : {float32, float64})
    for (const Layout& layout : layouts(dtype))
      for (const std::vector<int64_t>& dims : dim_lists())
        expect_close(logsumexp(layout.x, dims), reduce_plainly(layout.x, dims, plain), tolerance_of(dtype),
                     layout.name + " over " + to_string(dims));
}

const Printed kPrintedSoftmaxes[] = {
    {"large numbers",
     [] {
       return softmax(numbers({1000, 1000}), 0);
     },
     "tensor([0.5000, 0.5000])"},
    {"large and small",
     [] {
       return log_softmax(numbers({1000, 0}), 0);
     },
     "tensor([    0., -1000.])"},
    {"0-d", [] { return softmax(tensor(3.0), 0); }, "tensor(1.)"},
    {"no rows",
     [] {
       return softmax(zeros({0, 3}), 1);
     },
     "tensor([], size=(0, 3))"},
    {"empty rows",
     [] {
       return softmax(zeros({3, 0}), 1);
     },
     "tensor([], size=(3, 0))"},
    {"a row of -inf",
     [] {
       return softmax(numbers({-kInf, -kInf}), 0);
     },
     "tensor([nan, nan])"},
    {"a column of -inf",
     [] {
       return softmax(numbers({-kInf, 0, -kInf, 0}).view({2, 2}), 0);
     },
     "tensor([[   nan, 0.5000],\n        [   nan, 0.5000]])"},
    {"one -inf",
     [] {
       return softmax(numbers({-kInf, 1}), 0);
     },
     "tensor([0., 1.])"},
    {"one inf",
     [] {
       return softmax(numbers({kInf, 1}), 0);
     },
     "tensor([nan, nan])"},
    {"a nan",
     [] {
       return log_softmax(numbers({kNan, 1}), 0);
     },
     "tensor([nan, nan])"},
    {"as float64",
     [] {
       return softmax(numbers({0, 0}), 0, float64);
     },
     "tensor([0.5000, 0.5000], dtype=torch.float64)"},
    {"integers as float32",
     [] {
       return softmax(tensor({0, 0}), 0, float32);
     },
     "tensor([0.5000, 0.5000])"},
    {"logsumexp of -inf",
     [] {
       return logsumexp(numbers({-kInf, -kInf}), 0);
     },
     "tensor(-inf)"},
    {"logsumexp of inf",
     [] {
       return logsumexp(numbers({kInf, 1}), 0);
     },
     "tensor(inf)"},
    {"logsumexp of nothing", [] { return logsumexp(zeros({0}), 0); }, "tensor(-inf)"},
    {"logsumexp of empty columns",
     [] {
       return logsumexp(zeros({0, 3}), 0);
     },
     "tensor([-inf, -inf, -inf])"},
    {"logsumexp of empty rows",
     [] {
       return logsumexp(zeros({2, 0}), 1);
     },
     "tensor([-inf, -inf])"},
    {"logsumexp of integers",
     [] {
       return logsumexp(tensor({1, 2, 3}), 0);
     },
     "tensor(3.4076)"},
    {"logsumexp keepdim",
     [] {
       return logsumexp(numbers({1, 2, 3}).view({1, 3}), {0, 1}, true);
     },
     "tensor([[3.4076]])"},
};

TEST(Softmax, SpecialValuesPrintAsInPyTorch) {
  for (const Printed& row : kPrintedSoftmaxes) EXPECT_EQ(row.op().cpu().str(), row.text) << row.name;
}

TEST(Softmax, LongRowsWithInfinities) {
  Tensor x = zeros({70000});
  x.slice(0, 0, 20000).fill_(-kInf);
  EXPECT_NEAR(softmax(x, 0).slice(0, 69999).item<double>(), 1.0 / 50000, 1e-10);
  EXPECT_EQ(softmax(x, 0).slice(0, 0, 1).item<double>(), 0);
  EXPECT_NEAR(logsumexp(x, 0).item<double>(), std::log(50000.0), 1e-6);
  x.fill_(-kInf);
  EXPECT_EQ(logsumexp(x, 0).item<double>(), -kInf);
  EXPECT_TRUE(std::isnan(softmax(x, 0).slice(0, 0, 1).item<double>()));
}

TEST(Softmax, DoesNotDependOnTheNumberOfThreads) {
  const int before = num_threads();
  for (const Shape& shape : {Shape{3, 100000}, Shape{300, 700}, Shape{200, 90}}) {
    Tensor x = ragged(shape);
    std::vector<std::vector<float>> results;
    for (int threads : {1, 2, 3}) {
      set_num_threads(threads);
      for (int64_t dim : {0, 1}) results.push_back(softmax(x, dim).to_vector<float>());
    }
    for (size_t i = 2; i < results.size(); ++i) EXPECT_EQ(results[i], results[i % 2]) << to_string(shape);
  }
  set_num_threads(before);
}

using Function = Tensor (*)(const std::vector<Tensor>&);

TEST(SoftmaxGradient, AgreesWithFiniteDifferences) {
  const std::pair<const char*, Function> functions[] = {
      {"softmax 0", [](const std::vector<Tensor>& v) { return softmax(v[0], 0); }},
      {"softmax 1", [](const std::vector<Tensor>& v) { return softmax(v[0], 1); }},
      {"softmax 2", [](const std::vector<Tensor>& v) { return softmax(v[0], 2); }},
      {"log_softmax 0", [](const std::vector<Tensor>& v) { return log_softmax(v[0], 0); }},
      {"log_softmax 1", [](const std::vector<Tensor>& v) { return log_softmax(v[0], 1); }},
      {"log_softmax 2", [](const std::vector<Tensor>& v) { return log_softmax(v[0], -1); }},
      {"logsumexp",
       [](const std::vector<Tensor>& v) {
         return logsumexp(v[0], {0, 2});
       }},
      {"logsumexp keepdim", [](const std::vector<Tensor>& v) { return logsumexp(v[0], 1, true); }},
  };
  Tensor x = ragged({3, 4, 2}, float64);
  x.requires_grad_();
  for (const auto& [name, function] : functions) {
    EXPECT_NO_THROW(gradcheck(function, {x})) << name;
    EXPECT_NO_THROW(gradgradcheck(function, {x})) << name;
  }
}

TEST(SoftmaxGradient, FusedKernelsAgreeWithTheFormulas) {
  for (const Shape& shape :
       {Shape{5, 1000}, Shape{2, 40000}, Shape{5, 10}, Shape{300, 10}, Shape{6, 33, 7}, Shape{2000, 70}})
    for (int64_t dim : {0, 1})
      for (bool log : {false, true})
        for (DType dtype : {float32, bfloat16}) {
          Tensor x = ragged(shape, dtype);
          Tensor g = ragged(shape, dtype);
          x.requires_grad_();
          Tensor y = log ? log_softmax(x, dim) : softmax(x, dim);
          y.backward(g);
          NoGradGuard no_grad;
          const Tensor v = to(y.detach().cpu(), float64), w = to(g.cpu(), float64);
          const Tensor wanted =
              log ? sub(w, mul(exp(v), sum(w, dim, true))) : mul(sub(w, sum(mul(w, v), dim, true)), v);
          const double scale = std::max(1e-3, max(abs(wanted)).item<double>());
          const double error = max(abs(sub(to(x.grad().cpu(), float64), wanted))).item<double>();
          EXPECT_LE(error, scale * (dtype == float32 ? 3e-6 : 1e-2))
              << to_string(shape) << " along " << dim << " log " << log;
        }
}

TEST(SoftmaxError, SaysOperatorRuleAndRemedy) {
  auto message = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const DTypeError& error) {
      return "DTypeError " + error.message();
    } catch (const IndexError& error) {
      return "IndexError " + error.message();
    }
    return "no error";
  };
  const Tensor integers = tensor({1, 2});
  EXPECT_THAT(
      message([&] { softmax(integers, 0); }),
      HasSubstr("DTypeError softmax: not implemented for int64: convert the tensor with to(float32)"));
  EXPECT_THAT(message([&] { log_softmax(ones({2}), 0, int32); }),
              HasSubstr("DTypeError log_softmax: not implemented for int32"));
  EXPECT_THAT(
      message([&] { softmax(ones({2}), 1); }),
      HasSubstr(
          "IndexError softmax: Dimension out of range (expected to be in range of [-1, 0], but got 1)"));
  EXPECT_THAT(message([&] { logsumexp(ones({2}), 2); }),
              HasSubstr("IndexError logsumexp: Dimension out of range"));
}

}  // namespace
}  // namespace tern
