// Linear algebra where the operator table does not reach: second derivatives, extreme scales, equal
// eigenvalues, layouts of results, many matrices. Values and gradients are compared with PyTorch's by
// operator_table.py.
#include "tern/ops/linalg.h"

#include <gtest/gtest.h>

#include <functional>

#include <fmt/format.h>

#include "tern/autograd/gradcheck.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/diagonal.h"
#include "tern/ops/linalg_names.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/support/emulated.h"

namespace tern {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

Tensor numbers(const Shape& shape, uint64_t seed = 1) {
  return randn(shape, {.dtype = float64}, Generator(seed));
}
/// With eigenvalues, and singular values, that are apart.
Tensor well(int64_t m, int64_t n) {
  return numbers({2, m, n}) * 0.2 + eye(m, n, {.dtype = float64}) * arange(1, n + 1, {.dtype = float64});
}
Tensor both(const std::pair<Tensor, Tensor>& pair) {
  return pair.first.square().sum() + pair.second.sin().sum();
}

TEST(Linalg, SecondDerivatives) {
  const struct {
    const char* name;
    Tensor x;
    Function f;
  } rows[] = {
      {"cholesky", well(3, 3), [](const Tensor& x) { return linalg::cholesky(matmul(x, mT(x))); }},
      {"qr", well(4, 3), [](const Tensor& x) { return both(linalg::qr(x)); }},
      {"wide qr", well(3, 4), [](const Tensor& x) { return both(linalg::qr(x)); }},
      {"lu", well(4, 3), [](const Tensor& x) { return linalg::lu_factor(x).first; }},
      {"wide lu", well(3, 4), [](const Tensor& x) { return linalg::lu_factor(x).first; }},
      {"solve", well(3, 3),
       [](const Tensor& x) {
         return linalg::solve(x, numbers({3, 2}, 2));
       }},
      {"inv", well(3, 3), [](const Tensor& x) { return linalg::inv(x); }},
      {"det", well(3, 3), [](const Tensor& x) { return linalg::det(x); }},
      {"logdet", well(3, 3), [](const Tensor& x) { return linalg::slogdet(x).second; }},
      {"pinv", well(4, 3), [](const Tensor& x) { return linalg::pinv(x); }},
      {"lstsq", well(4, 3),
       [](const Tensor& x) {
         return std::get<0>(linalg::lstsq(x, numbers({2, 4, 2}, 3)));
       }},
      {"eigvalsh", well(3, 3), [](const Tensor& x) { return linalg::eigvalsh(x + mT(x)); }},
      {"eigh", well(3, 3), [](const Tensor& x) { return linalg::eigh(x + mT(x)).second.abs(); }},
      {"svdvals", well(3, 4), [](const Tensor& x) { return linalg::svdvals(x); }},
      {"svd", well(4, 3),
       [](const Tensor& x) {
         const auto [u, s, vh] = linalg::svd(x, /*full_matrices=*/false);
         return u.abs().sum() + s.square().sum() + vh.abs().sin().sum();
       }},
      {"matrix_exp", well(3, 3), [](const Tensor& x) { return linalg::matrix_exp(x * 0.3); }},
      {"cond", well(3, 3), [](const Tensor& x) { return linalg::cond(x); }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto f = [&](const std::vector<Tensor>& x) { return row.f(x[0]); };
    const Tensor x = row.x.clone().requires_grad_();
    EXPECT_NO_THROW(gradcheck(f, {x}));
    EXPECT_NO_THROW(gradgradcheck(f, {x}));
  }
}

/// Largest |x|.
double size_of(const Tensor& x) { return x.abs().max().item<double>(); }

/// `tolerance` is relative to the matrix' 2-norm.
void expect_decompositions(const Tensor& a, double tolerance) {
  const Tensor one = eye(a.size(-1), {.dtype = a.dtype(), .device = a.device()});
  const auto [u, s, vh] = linalg::svd(a);
  const double scale = size_of(s) == 0 ? 1 : size_of(s);
  EXPECT_LT(size_of(matmul(u * s.unsqueeze(-2), vh) - a) / scale, tolerance);
  EXPECT_LT(size_of(matmul(mT(u), u) - one), tolerance);
  EXPECT_LT(size_of(matmul(vh, mT(vh)) - one), tolerance);
  EXPECT_TRUE((narrow(s, -1, 0, s.size(-1) - 1) >= narrow(s, -1, 1, s.size(-1) - 1)).all().item<bool>());
  EXPECT_TRUE((s >= 0).all().item<bool>());
  const Tensor symmetric = a + mT(a);
  const auto [values, vectors] = linalg::eigh(symmetric);
  EXPECT_LT(size_of(matmul(vectors * values.unsqueeze(-2), mT(vectors)) - symmetric) / scale, 2 * tolerance);
  EXPECT_LT(size_of(matmul(mT(vectors), vectors) - one), tolerance);
  EXPECT_TRUE(
      (narrow(values, -1, 0, s.size(-1) - 1) <= narrow(values, -1, 1, s.size(-1) - 1)).all().item<bool>());
  EXPECT_LT(size_of(linalg::svdvals(a) - s) / scale, tolerance);
  EXPECT_LT(size_of(linalg::eigvalsh(symmetric) - values) / scale, 2 * tolerance);
}

TEST(Linalg, DecompositionsOfEveryKindOfMatrix) {
  const double huge = 1e300, tiny = 1e-300;
  for (const int64_t n : {2, 3, 17, 65, 130}) {
    SCOPED_TRACE(n);
    const Tensor x = numbers({n, n});
    const Tensor low_rank = matmul(numbers({n, 2}), numbers({2, n}, 5));
    const Tensor graded =
        x * pow(10.0, -arange(n, {.dtype = float64}).unsqueeze(-1) * (12.0 / static_cast<double>(n)));
    for (const Tensor& a : {x, low_rank, graded, x * huge / 100.0, x * tiny, eye(n, {.dtype = float64}),
                            zeros({n, n}, {.dtype = float64}), ones({n, n}, {.dtype = float64}), triu(x)})
      expect_decompositions(a, 2e-14 * static_cast<double>(n));
    expect_decompositions(x.to(float32), 2e-6 * std::sqrt(static_cast<double>(n)));
    expect_decompositions(x.to(float32) * 1e36, 2e-6 * std::sqrt(static_cast<double>(n)));
  }
}

TEST(Linalg, MatricesOfLowRankConverge) {
  for (const int64_t n : {17, 101, 150}) {
    const double size_n = static_cast<double>(n);
    for (const int64_t rank : {0, 1, 2}) {
      const Tensor x =
          rank == 0 ? ones({n, n}, {.dtype = float64}) : matmul(numbers({n, rank}), numbers({rank, n}, 5));
      for (const double size : {1.0, 1e-100}) {
        SCOPED_TRACE(fmt::format("rank {} of {} by {}", rank, n, size));
        expect_decompositions(x * size, 2e-14 * size_n);
      }
      for (const double size : {1.0, 1e-30}) {
        SCOPED_TRACE(fmt::format("float32, rank {} of {} by {}", rank, n, size));
        expect_decompositions((x * size).to(float32), 2e-6 * std::sqrt(size_n));
      }
    }
  }
}

TEST(Linalg, EigenvaluesOfSmallBlocksBesideLargeOnes) {
  const Tensor x = tensor({{1.0, 0.0, 0.0}, {0.0, 2e-40, 1e-40}, {0.0, 1e-40, 2e-40}}, {.dtype = float64});
  const Tensor expected = tensor({1e-40, 3e-40, 1.0}, {.dtype = float64});
  EXPECT_LT(size_of(linalg::eigvalsh(x) / expected - 1), 1e-14);
  EXPECT_LT(size_of(linalg::svdvals(x) / expected.flip({0}) - 1), 1e-14);
}

TEST(Linalg, FactorsOfManyAndOfLargeMatrices) {
  for (const Shape& shape :
       {Shape{300, 4, 4}, Shape{40, 20, 20}, Shape{1, 33, 33}, Shape{300, 300}, Shape{2, 150, 150}}) {
    SCOPED_TRACE(to_string(shape));
    const Tensor x = numbers(shape);
    const int64_t n = shape.back();
    const double tolerance = 1e-11 * static_cast<double>(n);
    const Tensor one = eye(n, {.dtype = float64}), positive = matmul(x, mT(x)) + one;
    const Tensor l = linalg::cholesky(positive), upper = linalg::cholesky(positive, /*upper=*/true);
    EXPECT_LT(size_of(matmul(l, mT(l)) - positive), tolerance);
    EXPECT_LT(size_of(mT(l) - upper), tolerance);
    EXPECT_EQ(size_of(triu(l, 1)), 0);
    EXPECT_LT(size_of(matmul(cholesky_inverse(l), positive) - one), tolerance * 100);
    const auto [p, lower, u] = linalg::lu(x);
    EXPECT_LT(size_of(matmul(p, matmul(lower, u)) - x), tolerance);
    EXPECT_LE(size_of(lower), 1);
    EXPECT_LT(size_of(matmul(linalg::inv(positive), positive) - one), tolerance * 100);
    const auto [q, r] = linalg::qr(x);
    EXPECT_LT(size_of(matmul(q, r) - x), tolerance);
    EXPECT_LT(size_of(matmul(mT(q), q) - one), tolerance);
  }
}

TEST(Linalg, ResultsLieAsInPyTorch) {
  const Tensor x = numbers({3, 3});
  EXPECT_EQ(linalg::lu_factor(x).first.stride(-2), 1);
  EXPECT_EQ(linalg::eigh(x + x.t()).second.stride(-2), 1);
  EXPECT_EQ(linalg::qr(x).first.stride(-2), 1);
  EXPECT_EQ(linalg::qr(x, "r").first.shape(), Shape{0});
  EXPECT_EQ(std::get<0>(linalg::svd(numbers({0, 3}))).shape(), (Shape{0, 0}));
  EXPECT_TRUE(equal(std::get<2>(linalg::svd(numbers({0, 3}))), eye(3, {.dtype = float64})));
}

TEST(Linalg, DeterminantsOfSingularMatricesHaveGradients) {
  Tensor x = tensor({{1.0, 2.0}, {2.0, 4.0}}).requires_grad_();
  linalg::det(x).backward();
  EXPECT_TRUE(allclose(x.grad(), tensor({{4.0, -2.0}, {-2.0, 1.0}}), 1e-5, 1e-5));
}

}  // namespace
}  // namespace tern
