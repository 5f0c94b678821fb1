// Reductions: every layout against plain loops, PyTorch's results for special values, gradients, errors,
// accuracy, and independence of the number of threads.
#include "tern/ops/reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tern/autograd/gradcheck.h"
#include "tern/base/error.h"
#include "tern/base/parallel.h"
#include "tern/core/memory.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/print.h"
#include "tern/ops/shape.h"
#include "tern/ops/softmax.h"
#include "tests/ops/reduce_testing.h"
#include "tests/support/emulated.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using namespace tern::testing;
using ::testing::HasSubstr;

using Elements = std::vector<double>;

double plain_sum(const Elements& e) { return std::accumulate(e.begin(), e.end(), 0.0); }
double plain_var(const Elements& e) {
  const double n = static_cast<double>(e.size()), mean = plain_sum(e) / n;
  double squares = 0;
  for (double v : e) squares += (v - mean) * (v - mean);
  return squares / (n - 1);
}
double plain_norm(const Elements& e, double p) {
  double total = 0;
  for (double v : e) total += std::pow(std::abs(v), p);
  return std::pow(total, 1 / p);
}
double plain_max(const Elements& e) { return *std::max_element(e.begin(), e.end()); }
double plain_min(const Elements& e) { return *std::min_element(e.begin(), e.end()); }

/// An operator over dims, what a plain loop gives for one result, and how far they may be apart (relative to
/// 1 + |value|).
struct ReductionRow {
  const char* name;
  Tensor (*op)(const Tensor&, IntArrayRef);
  double (*plain)(const Elements&);
  double tolerance;
};

const ReductionRow kReductionRows[] = {
    {"sum", [](const Tensor& x, IntArrayRef d) { return sum(x, d); }, plain_sum, 0},
    {"mean", [](const Tensor& x, IntArrayRef d) { return mean(x, d); },
     [](const Elements& e) { return plain_sum(e) / static_cast<double>(e.size()); }, 1e-7},
    {"amax", [](const Tensor& x, IntArrayRef d) { return amax(x, d); }, plain_max, 0},
    {"amin", [](const Tensor& x, IntArrayRef d) { return amin(x, d); }, plain_min, 0},
    {"any", [](const Tensor& x, IntArrayRef d) { return d.empty() ? any(x) : any(x, d); },
     [](const Elements& e) { return plain_norm(e, 1) != 0 ? 1.0 : 0.0; }, 0},
    {"all", [](const Tensor& x, IntArrayRef d) { return d.empty() ? all(x) : all(x, d); },
     [](const Elements& e) { return std::count(e.begin(), e.end(), 0.0) == 0 ? 1.0 : 0.0; }, 0},
    {"count_nonzero", [](const Tensor& x, IntArrayRef d) { return count_nonzero(x, d); },
     [](const Elements& e) {
       return static_cast<double>(e.size()) - static_cast<double>(std::count(e.begin(), e.end(), 0.0));
     },
     0},
    {"var", [](const Tensor& x, IntArrayRef d) { return var(x, d); }, plain_var, 1e-6},
    {"std", [](const Tensor& x, IntArrayRef d) { return tern::std(x, d); },
     [](const Elements& e) { return std::sqrt(plain_var(e)); }, 1e-6},
    {"norm 1", [](const Tensor& x, IntArrayRef d) { return norm(x, 1, d); },
     [](const Elements& e) { return plain_norm(e, 1); }, 1e-6},
    {"norm 2", [](const Tensor& x, IntArrayRef d) { return norm(x, 2, d); },
     [](const Elements& e) { return plain_norm(e, 2); }, 1e-6},
    {"norm 3", [](const Tensor& x, IntArrayRef d) { return norm(x, 3, d); },
     [](const Elements& e) { return plain_norm(e, 3); }, 1e-6},
    {"norm 0", [](const Tensor& x, IntArrayRef d) { return norm(x, 0, d); },
     [](const Elements& e) {
       return static_cast<double>(e.size()) - static_cast<double>(std::count(e.begin(), e.end(), 0.0));
     },
     0},
    {"norm inf", [](const Tensor& x, IntArrayRef d) { return norm(x, kInf, d); },
     [](const Elements& e) { return std::max(plain_max(e), -plain_min(e)); }, 0},
    {"norm -inf", [](const Tensor& x, IntArrayRef d) { return norm(x, -kInf, d); },
     [](const Elements& e) {
       double least = kInf;
       for (double v : e) least = std::min(least, std::abs(v));
       return least;
     },
     0},
};

TEST(Reduce, VarianceOfAnInfiniteElementIsNan) {
  for (DType dtype : {float32, float64, bfloat16})
    for (size_t place = 0; place < 3; ++place) {
      std::vector<double> values = {1, 2, 3};
      values[place] = kInf;
      const auto [variance, mean] = var_mean(numbers(values, dtype));
      EXPECT_TRUE(std::isnan(variance.item<double>())) << name(dtype) << ", " << place;
      EXPECT_TRUE(std::isnan(mean.item<double>())) << name(dtype) << ", " << place;
    }
}

TEST(Reduce, EveryLayoutAndDimListGivesWhatPlainLoopsGive) {
  for (DType dtype : {float32, float64, bfloat16, float16})
    for (const Layout& layout : layouts(dtype))
      for (const std::vector<int64_t>& dims : dim_lists())
        for (const ReductionRow& row : kReductionRows) {
          // Sums of a few multiples of 1/64 are exact in 16 bits only while they are small.
          const double tolerance = itemsize(dtype) == 2 ? std::max(row.tolerance, 8e-3) : row.tolerance;
          expect_close(row.op(layout.x, dims), reduce_plainly(layout.x, dims, row.plain), tolerance,
                       std::string(row.name) + " of " + layout.name + " over " + to_string(dims));
        }
}

TEST(Reduce, IntegersAndBool) {
  for (DType dtype : {uint8, int8, int16, int32, int64, bool_}) {
    const auto made = [&](const Shape& shape) { return to(mul(ragged(shape), 8), dtype); };
    // Rows that can be read in packs, others, and long ones.
    const int64_t longest = is_emulated(get_default_device()) ? 4003 : 40003;
    for (const Tensor& x : {made({3, 70}), made({5, 48}), slice(slice(made({6, 80}), 0, 1), 1, 16),
                            slice(made({6, 80}), 1, 1), made({3, longest})})
      for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{{}, {0}, {1}}) {
        const std::string what =
            std::string(name(dtype)) + " of " + to_string(x.shape()) + " over " + to_string(dims);
        EXPECT_EQ(sum(x, dims).dtype(), int64);
        expect_close(sum(x, dims), reduce_plainly(x, dims, plain_sum), 0, "sum of " + what);
        EXPECT_EQ(amax(x, dims).dtype(), dtype);
        expect_close(amax(x, dims), reduce_plainly(x, dims, plain_max), 0, "amax of " + what);
        expect_close(amin(x, dims), reduce_plainly(x, dims, plain_min), 0, "amin of " + what);
        EXPECT_EQ(any(x, 0).dtype(), dtype == uint8 ? uint8 : bool_);
      }
  }
  EXPECT_EQ(prod(tensor({2, 3, 4}, as(int8))).item<int64_t>(), 24);
  EXPECT_EQ(sum(tensor({127, 127, 127}, as(int8))).item<int64_t>(), 381);
  EXPECT_EQ(sum(full({3}, int64_t{1} << 62, as(int64)), 0).item<int64_t>(), -(int64_t{1} << 62));
}

TEST(Reduce, IndicesInEveryLayout) {
  auto first_of = [](bool largest) {
    return [largest](const Elements& e) {
      auto at = largest ? std::max_element(e.begin(), e.end()) : std::min_element(e.begin(), e.end());
      return static_cast<double>(at - e.begin());
    };
  };
  for (DType dtype : {float32, float64, bfloat16, int64, int8})
    for (const Layout& layout : layouts(dtype)) {
      for (int64_t dim : {0, 1, 2}) {
        const std::string what = layout.name + " along " + std::to_string(dim);
        auto [values, indices] = max(layout.x, dim);
        expect_close(values, reduce_plainly(layout.x, {dim}, plain_max), 0, what);
        expect_close(indices, reduce_plainly(layout.x, {dim}, first_of(true)), 0, what);
        expect_close(argmin(layout.x, dim), reduce_plainly(layout.x, {dim}, first_of(false)), 0, what);
      }
      expect_close(argmax(layout.x), reduce_plainly(layout.x, {}, first_of(true)), 0, layout.name);
    }
  Tensor tied = zeros({100000});
  EXPECT_EQ(argmax(tied).item<int64_t>(), 0);
  EXPECT_EQ(max(tied, 0).second.item<int64_t>(), 0);
  tied.slice(0, 70000).fill_(1);
  EXPECT_EQ(argmax(tied).item<int64_t>(), 70000);
}

const Printed kPrintedReductions[] = {
    {"sum of nothing", [] { return sum(zeros({0})); }, "tensor(0.)"},
    {"sum of empty rows",
     [] {
       return sum(zeros({2, 0}), 1);
     },
     "tensor([0., 0.])"},
    {"sum of no rows",
     [] {
       return sum(zeros({0, 3}), 1);
     },
     "tensor([])"},
    {"sum over [] is over all",
     [] {
       return sum(ones({2, 3}), IntArrayRef());
     },
     "tensor(6.)"},
    {"sum keepdim",
     [] {
       return sum(ones({2, 3}), {0, -1}, true);
     },
     "tensor([[6.]])"},
    {"sum of 0-d", [] { return sum(tensor(3.0), -1); }, "tensor(3.)"},
    {"sum as int64",
     [] {
       return sum(numbers({1.7, 1.7}), int64);
     },
     "tensor(2)"},
    {"sum as bool",
     [] {
       return sum(numbers({1, -1}), bool_);
     },
     "tensor(True)"},
    {"sum as uint8",
     [] {
       return sum(numbers({300, 1}), uint8);
     },
     "tensor(45, dtype=torch.uint8)"},
    {"sum of bool",
     [] {
       return sum(tensor({true, false, true}));
     },
     "tensor(2)"},
    {"mean of nothing", [] { return mean(zeros({0})); }, "tensor(nan)"},
    {"mean of no rows",
     [] {
       return mean(zeros({0, 3}), 0);
     },
     "tensor([nan, nan, nan])"},
    {"mean of integers as float32",
     [] {
       return mean(tensor({1, 2, 3}), float32);
     },
     "tensor(2.)"},
    {"prod of nothing", [] { return prod(zeros({0})); }, "tensor(1.)"},
    {"prod as float32",
     [] {
       return prod(tensor({1, 2, 3}), float32);
     },
     "tensor(6.)"},
    {"max with nan",
     [] {
       return max(numbers({1, kNan, 3}));
     },
     "tensor(nan)"},
    {"min with nan",
     [] {
       return min(numbers({1, kNan, 3}));
     },
     "tensor(nan)"},
    {"amax of columns with nan",
     [] {
       return amax(numbers({1, kNan, 3, 4}).view({2, 2}), 0);
     },
     "tensor([3., nan])"},
    {"first nan wins",
     [] {
       return max(numbers({1, kNan, 3, kNan}), 0).second;
     },
     "tensor(1)"},
    {"argmin of nan",
     [] {
       return argmin(numbers({1, kNan, kNan}));
     },
     "tensor(1)"},
    {"argmax of columns with nan",
     [] {
       return argmax(numbers({1, 5, kNan, 6, 7, kNan}).view({3, 2}), 0);
     },
     "tensor([1, 2])"},
    {"amax of -inf",
     [] {
       return amax(numbers({-kInf, -kInf}));
     },
     "tensor(-inf)"},
    {"amax of no columns",
     [] {
       return amax(zeros({2, 0}), 0);
     },
     "tensor([])"},
    {"argmax keepdim",
     [] {
       return argmax(ones({2, 3}), 1, true);
     },
     "tensor([[0],\n        [0]])"},
    {"any of nothing", [] { return any(zeros({0})); }, "tensor(False)"},
    {"all of nothing", [] { return all(zeros({0})); }, "tensor(True)"},
    {"any of nan",
     [] {
       return any(numbers({0, kNan}));
     },
     "tensor(True)"},
    {"any of -0",
     [] {
       return any(numbers({0, -0.0}));
     },
     "tensor(False)"},
    {"any over [] is over none", [] { return any(ones({2}), IntArrayRef()); }, "tensor([True, True])"},
    {"all of uint8",
     [] {
       return all(tensor({1, 0}, as(uint8)));
     },
     "tensor(0, dtype=torch.uint8)"},
    {"count of nan",
     [] {
       return count_nonzero(numbers({kNan, 0, -0.0, 2}));
     },
     "tensor(2)"},
    {"var of one", [] { return var(numbers({1})); }, "tensor(nan)"},
    {"var of one, biased", [] { return var(numbers({1}), false); }, "tensor(0.)"},
    {"var of nothing",
     [] {
       return var(zeros({0, 2}), 0);
     },
     "tensor([nan, nan])"},
    {"var with correction beyond",
     [] {
       return var(numbers({1, 2, 3}), IntArrayRef(), 5);
     },
     "tensor(inf)"},
    {"var around 1e6",
     [] {
       return var(numbers({1e6, 1e6 + 1, 1e6 + 2}), 0);
     },
     "tensor(1.)"},
    {"mean of var_mean",
     [] {
       return var_mean(numbers({1, 2, 6})).second;
     },
     "tensor(3.)"},
    {"std of equals", [] { return tern::std(full({50000}, 0.1)); }, "tensor(0.)"},
    {"norm of nothing", [] { return norm(zeros({0})); }, "tensor(0.)"},
    {"norm inf of nan",
     [] {
       return norm(numbers({1, kNan}), kInf);
     },
     "tensor(nan)"},
    {"norm 0 of nan",
     [] {
       return norm(numbers({1, kNan}), 0);
     },
     "tensor(2.)"},
    {"norm -1",
     [] {
       return norm(numbers({1, 2, 3}), -1);
     },
     "tensor(0.5455)"},
    {"norm of 1e20",
     [] {
       return norm(numbers({1e20, 1e20}));
     },
     "tensor(inf)"},
    {"norm as float64",
     [] {
       return norm(numbers({3, 4}), 2, IntArrayRef(), false, float64);
     },
     "tensor(5., dtype=torch.float64)"},
    {"sum of float16 beyond its range", [] { return mean(full({70000}, 3, as(float16))); },
     "tensor(3., dtype=torch.float16)"},
};

TEST(Reduce, SpecialValuesPrintAsInPyTorch) {
  for (const Printed& row : kPrintedReductions) EXPECT_EQ(row.op().cpu().str(), row.text) << row.name;
}

TEST(Reduce, DoesNotDependOnTheNumberOfThreads) {
  if (is_emulated(get_default_device()))
    GTEST_SKIP() << "the emulator's kernels run on one thread, whatever the number";
  struct Case {
    Shape shape;
    std::vector<int64_t> dims;
  };
  const Case cases[] = {{{1000003}, {}},        {{3000, 70}, {0}},       {{70, 3000}, {1}},
                        {{8, 3, 5000}, {0, 2}}, {{200, 16, 49}, {0, 2}}, {{2999, 40}, {1}},
                        {{5003, 17}, {1}},      {{3001, 100}, {1}},      {{301, 1024}, {1}}};
  const int before = num_threads();
  for (const Case& c : cases) {
    Tensor x = div(ragged(c.shape), 3);
    std::vector<std::vector<Tensor>> results;
    for (int threads : {1, 2, 3, 7}) {
      set_num_threads(threads);
      auto [v, m] = var_mean(x, c.dims);
      results.push_back({sum(x, c.dims), norm(x, 2, c.dims), v, m});
    }
    set_num_threads(before);
    for (const std::vector<Tensor>& other : results)
      for (size_t i = 0; i < other.size(); ++i)
        EXPECT_EQ(other[i].to_vector<float>(), results[0][i].to_vector<float>())
            << to_string(c.shape) << ", result " << i;
  }
}

TEST(Reduce, LongSumsAreAccurate) {
  // Naive summation of as many 0.1 in float32 is off by 1e-2 and more.
  const double tenth = static_cast<double>(0.1f);
  const int64_t count = is_emulated(get_default_device()) ? 1 << 20 : 1 << 24, root = 1 << 10;
  Tensor x = full({count}, 0.1);
  EXPECT_NEAR(sum(x).item<double>() / (tenth * static_cast<double>(count)), 1, 2e-7);
  EXPECT_NEAR(mean(x).item<double>() / tenth, 1, 2e-7);
  for (const Tensor& column : {sum(x.view({count / 16, 16}), 0), sum(x.view({count / root, root}), 0)})
    for (double total : to(column, float64).to_vector<double>())
      EXPECT_NEAR(total / (tenth * static_cast<double>(count / column.numel())), 1, 4e-7);
  Tensor shifted = add(div(ragged({1 << 20}), 2), 1e4);
  EXPECT_NEAR(var(shifted).item<double>() / var(to(shifted, float64)).item<double>(), 1, 1e-6);
}

using Function = Tensor (*)(const std::vector<Tensor>&);

TEST(ReduceGradient, AgreesWithFiniteDifferences) {
  const std::pair<const char*, Function> functions[] = {
      {"sum",
       [](const std::vector<Tensor>& v) {
         return sum(v[0], {0, 2});
       }},
      {"sum keepdim", [](const std::vector<Tensor>& v) { return sum(v[0], 1, true); }},
      {"mean",
       [](const std::vector<Tensor>& v) {
         return mean(v[0], {1, 2});
       }},
      {"whole mean", [](const std::vector<Tensor>& v) { return mean(v[0]); }},
      {"prod", [](const std::vector<Tensor>& v) { return prod(v[0], 1); }},
      {"whole prod", [](const std::vector<Tensor>& v) { return prod(v[0].narrow(2, 0, 1)); }},
      {"max", [](const std::vector<Tensor>& v) { return max(v[0], 1).first; }},
      {"min keepdim", [](const std::vector<Tensor>& v) { return min(v[0], -1, true).first; }},
      {"whole max", [](const std::vector<Tensor>& v) { return max(v[0]); }},
      {"amin",
       [](const std::vector<Tensor>& v) {
         return amin(v[0], {0, 1});
       }},
      {"var",
       [](const std::vector<Tensor>& v) {
         return var(v[0], {0, 2});
       }},
      {"var, correction 0, keepdim", [](const std::vector<Tensor>& v) { return var(v[0], 1, 0, true); }},
      {"std", [](const std::vector<Tensor>& v) { return tern::std(v[0], 2); }},
      {"mean of var_mean",
       [](const std::vector<Tensor>& v) {
         return var_mean(v[0], {0, 1}).second;
       }},
      {"norm", [](const std::vector<Tensor>& v) { return norm(v[0]); }},
      {"norm 2 keepdim", [](const std::vector<Tensor>& v) { return norm(v[0], 2, 1, true); }},
      {"norm 1",
       [](const std::vector<Tensor>& v) {
         return norm(v[0], 1, {0, 1});
       }},
      {"norm 1.5",
       [](const std::vector<Tensor>& v) {
         return norm(v[0], 1.5, {0, 1});
       }},
      {"norm 3", [](const std::vector<Tensor>& v) { return norm(v[0], 3, {2}); }},
      {"norm 0.5", [](const std::vector<Tensor>& v) { return norm(v[0], 0.5, {2}); }},
      {"norm inf", [](const std::vector<Tensor>& v) { return norm(v[0], kInf, {1}); }},
      {"norm -inf", [](const std::vector<Tensor>& v) { return norm(v[0], -kInf, {1}); }},
  };
  // All elements differ in size, so that finite differences meet no tie.
  Tensor x = add(ragged({3, 4, 2}, float64), mul(reshape(arange(24, as(float64)), {3, 4, 2}), 1e-2));
  x.requires_grad_();
  for (const auto& [name, function] : functions) {
    EXPECT_NO_THROW(gradcheck(function, {x})) << name;
    EXPECT_NO_THROW(gradgradcheck(function, {x})) << name;
  }
  Tensor with_zeros = tensor({{0.0, 2.0, 3.0}, {0.0, 0.0, 5.0}, {1.0, 2.0, 4.0}}, as(float64));
  with_zeros.requires_grad_();
  const std::pair<const char*, Function> products[] = {
      {"prod", [](const std::vector<Tensor>& v) { return prod(v[0], 1); }},
      {"prod of columns", [](const std::vector<Tensor>& v) { return prod(v[0], 0); }},
      {"whole prod", [](const std::vector<Tensor>& v) { return prod(v[0]); }},
  };
  for (const auto& [name, function] : products) {
    EXPECT_NO_THROW(gradcheck(function, {with_zeros})) << name;
    EXPECT_NO_THROW(gradgradcheck(function, {with_zeros})) << name;
  }
}

/// What PyTorch 2 leaves in x.grad after op(x).backward().
struct GradientRow {
  const char* name;
  std::vector<double> x;
  Tensor (*op)(const Tensor&);
  const char* grad;
};

const GradientRow kGradients[] = {
    {"max of equals", {1, 3, 3}, [](const Tensor& x) { return max(x); }, "tensor([0.0000, 0.5000, 0.5000])"},
    {"amax of equals",
     {1, 3, 3},
     [](const Tensor& x) { return amax(x); },
     "tensor([0.0000, 0.5000, 0.5000])"},
    {"max of nan",
     {1, kNan, kNan},
     [](const Tensor& x) { return max(x); },
     "tensor([0.0000, 0.5000, 0.5000])"},
    {"amax of nan", {1, kNan, kNan}, [](const Tensor& x) { return amax(x); }, "tensor([nan, nan, nan])"},
    {"max along a dimension",
     {1, 3, 3},
     [](const Tensor& x) { return max(x, 0).first; },
     "tensor([0., 1., 0.])"},
    {"norm 2 at 0", {0, 0}, [](const Tensor& x) { return norm(x); }, "tensor([0., 0.])"},
    {"norm 1 at 0", {0, 0}, [](const Tensor& x) { return norm(x, 1); }, "tensor([0., 0.])"},
    {"norm 3 at 0", {0, 0}, [](const Tensor& x) { return norm(x, 3); }, "tensor([0., 0.])"},
    {"norm 0.5 at 0", {0, 4}, [](const Tensor& x) { return norm(x, 0.5); }, "tensor([0., 1.])"},
    {"norm inf at 0", {0, 0}, [](const Tensor& x) { return norm(x, kInf); }, "tensor([0., 0.])"},
    {"norm inf of equals",
     {1, -3, 3, 0},
     [](const Tensor& x) { return norm(x, kInf); },
     "tensor([ 0.0000, -0.5000,  0.5000,  0.0000])"},
    {"norm 0", {1, 0}, [](const Tensor& x) { return norm(x, 0); }, "tensor([0., 0.])"},
    {"std at 0", {2, 2}, [](const Tensor& x) { return tern::std(x); }, "tensor([0., 0.])"},
    {"std of one", {2}, [](const Tensor& x) { return tern::std(x); }, "tensor([nan])"},
    {"var of one", {2}, [](const Tensor& x) { return var(x); }, "tensor([nan])"},
    {"prod with a zero", {2, 0, 3}, [](const Tensor& x) { return prod(x); }, "tensor([0., 6., 0.])"},
    {"prod with two zeros", {0, 3, 0}, [](const Tensor& x) { return prod(x); }, "tensor([0., 0., 0.])"},
    {"norm of nothing", {}, [](const Tensor& x) { return norm(x); }, "tensor([])"},
    {"mean of nothing", {}, [](const Tensor& x) { return mean(x); }, "tensor([])"},
    {"sum as float64", {1, 2}, [](const Tensor& x) { return sum(x, float64); }, "tensor([1., 1.])"},
};

TEST(ReduceGradient, SpecialCasesAsInPyTorch) {
  for (const GradientRow& row : kGradients) {
    Tensor x = numbers(row.x);
    x.requires_grad_();
    row.op(x).backward();
    EXPECT_EQ(x.grad().cpu().str(), row.grad) << row.name;
  }
}

TEST(ReduceError, SaysOperatorRuleAndRemedy) {
  const Tensor nothing = zeros({0}), empty_rows = zeros({2, 0}), x = ones({2, 3}),
               integers = tensor({1, 2, 3});
  expect_error<ValueError>(
      [&] { max(nothing); },
      "max: Expected reduction dim to be specified for input.numel() == 0 (the shape is [0]). Specify "
      "the reduction dim with the 'dim' argument.");
  expect_error<ValueError>([&] { amin(empty_rows); }, "amin: Expected reduction dim to be specified");
  expect_error<IndexError>([&] { max(empty_rows, 1); },
                           "max: Expected reduction dim 1 to have non-zero size");
  expect_error<IndexError>([&] { amax(empty_rows, -1); },
                           "amax: Expected reduction dim 1 to have non-zero size");
  expect_error<IndexError>([&] { argmax(nothing); },
                           "argmax: Expected reduction dim to be specified for input.numel() == 0");
  expect_error<IndexError>([&] { argmin(empty_rows, 1); },
                           "argmin: Expected reduction dim 1 to have non-zero size");
  expect_error<DTypeError>([&] { argmax(tensor({true})); }, "argmax: does not support bool input");
  expect_error<ValueError>([&] { aminmax(nothing); },
                           "aminmax: cannot compute aminmax over an empty dimension");
  expect_error<ValueError>(
      [&] {
        sum(x, {0, -2});
      },
      "sum: dim 0 appears multiple times in the list of dims [0, -2]");
  expect_error<IndexError>([&] { sum(x, 2); },
                           "sum: Dimension out of range (expected to be in range of [-2, 1], but got 2)");
  expect_error<DTypeError>(
      [&] { mean(integers); },
      "mean: could not infer output dtype. Input dtype must be a floating point dtype. Got: int64");
  expect_error<DTypeError>([&] { mean(x, int64); }, "mean: could not infer output dtype. Optional dtype");
  expect_error<DTypeError>([&] { var(integers); },
                           "var: std and var only support floating point dtypes, got int64");
  expect_error<DTypeError>([&] { norm(integers); },
                           "norm: Expected a floating point tensor as input. Got int64");
  expect_error<DTypeError>([&] { norm(ones({2}, as(float64)), 2, IntArrayRef(), false, float32); },
                           "should be convertible without narrowing");
  expect_error<ValueError>([&] { norm(nothing, kInf); },
                           "norm: cannot compute the inf norm on an empty dimension");
  expect_error<ValueError>([&] { norm(x, kNan); }, "norm: the order p must be a number");
}

TEST(Reduce, AnEmptyListOfDimensionsIsNotDimensionZero) {
  const Tensor x = arange(12, {.dtype = float32}).view({3, 4});
  for (const Tensor& all : {sum(x, {}), x.sum({}), mul(mean(x, {}), 12), mul(x.mean({}), 12)})
    EXPECT_EQ(all.item<float>(), 66);
  EXPECT_EQ(amax(x, {}).item<float>(), 11);
  EXPECT_EQ(count_nonzero(x, {}).item<int64_t>(), 11);
  EXPECT_EQ(var(x, {}).item<float>(), 13);
  EXPECT_TRUE(allclose(norm(x, 2, {}), norm(x)));
  EXPECT_TRUE(allclose(logsumexp(x, {}), logsumexp(x, {0, 1})));
  EXPECT_EQ(any(x, {}).shape(), x.shape()) << "reduces nothing, as in PyTorch";
  EXPECT_EQ(squeeze(ones({1, 2}), {}).shape(), (Shape{1, 2}));
  EXPECT_EQ(sum(x, DType::Float64).dtype(), DType::Float64);
}

TEST(Reduce, VarianceAsAMethodTakesWhatTheFunctionTakes) {
  const Tensor x = arange(12, {.dtype = float32}).view({3, 4});
  EXPECT_TRUE(equal(x.var(0), full({4}, 16)));
  EXPECT_TRUE(allclose(x.std(1), full({3}, std::sqrt(5.0 / 3))));
  EXPECT_EQ(x.var().item<float>(), 13);
  EXPECT_TRUE(allclose(x.var(false), full({}, 143.0 / 12)));
  EXPECT_TRUE(equal(x.var({0, 1}, /*correction=*/0), x.var(false)));
}

}  // namespace
}  // namespace tern
