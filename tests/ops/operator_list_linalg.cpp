// Linear algebra, for operator_list.cpp: one line for each. Vectors whose sign is open get one as in
// tests/support/operator_rows/linalg.py.
#include <cmath>

#include "tern/ops/linalg.h"
#include "tern/ops/linalg_names.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/ops/operator_tables.h"

namespace tern::testing {
namespace {

/// A pair or tuple of tensors.
Results several(const auto& results) {
  std::vector<Tensor> tensors;
  std::apply([&](const auto&... each) { (tensors.push_back(each), ...); }, results);
  return tensors;
}

Tensor signs_of(const Tensor& columns) {
  const int64_t n = columns.size(-2);
  std::vector<double> weights;
  for (int64_t i = 1; i <= n; ++i)
    weights.push_back(0.5 + std::fmod(static_cast<double>(i) * 0.6180339887498949, 1));
  const Tensor weight =
      reshape(tensor(weights, {.dtype = float64}), {n, 1}).to(columns.dtype()).to(columns.device());
  return sign(sum(mul(columns.detach(), weight), -2, /*keepdim=*/true));
}

/// PyTorch gives gradients for the other triangle too.
Tensor triangle_of(const Tensor& x, bool upper) { return upper ? triu(x) : tril(x); }

Results signed_eigh(A a) {
  const auto [values, vectors] = linalg::eigh(a.tensor(0), a.text(1, "L"));
  return std::vector<Tensor>{values, mul(vectors, signs_of(vectors))};
}

/// x @ x^T, which autocast leaves alone.
Tensor products_of(const Tensor& x) { return sum(mul(x.unsqueeze(-2), x.unsqueeze(-3)), -1).detach(); }

/// U and Vh of the first singular values, and what U^T @ U and Vh @ Vh^T are.
std::vector<Tensor> signed_svd(const Tensor& x, bool full) {
  const auto [u, s, vh] = linalg::svd(x, full);
  const int64_t k = s.size(-1);
  const Tensor left = narrow(u, -1, 0, k), signs = signs_of(left);
  return {mul(left, signs), s, mul(narrow(vh, -2, 0, k), mT(signs)), products_of(mT(u)), products_of(vh)};
}

std::vector<Tensor> signed_old_svd(const Tensor& x, bool some) {
  const auto [u, s, v] = svd(x, some);
  const int64_t k = s.size(-1);
  const Tensor left = narrow(u, -1, 0, k), signs = signs_of(left);
  return {mul(left, signs), s, mul(narrow(v, -1, 0, k), signs)};
}

Results least_squares(A a) {
  const std::string driver = a.text(3);
  const auto [x, residuals, rank, values] =
      linalg::lstsq(a.tensor(0), a.tensor(1), a.optional_real(2),
                    a.has(3) ? std::optional<std::string_view>(driver) : std::nullopt);
  if (!a.has(3)) return x;
  return std::vector<Tensor>{x, rank, values};
}

/// Calls f with a number or a text as the order of a norm.
Results with_order(A a, size_t at, const auto& f) {
  return a.is_text(at) ? f(std::string_view(a.text(at))) : f(a.real(at));
}

}  // namespace

const Table kLinalg = {
    {"linalg.cholesky", [](A a) { return linalg::cholesky(a.tensor(0), a.flag(1)); }},
    {"linalg.cholesky_ex", [](A a) { return linalg::cholesky_ex(a.tensor(0)); }},
    {"linalg.qr", [](A a) { return linalg::qr(a.tensor(0), a.text(1, "reduced")); }},
    {"linalg.qr_complete", [](A a) { return linalg::qr(a.tensor(0), "complete"); }},
    {"linalg.lu_factor", [](A a) { return linalg::lu_factor(a.tensor(0)); }},
    {"linalg.lu_factor_ex", [](A a) { return several(linalg::lu_factor_ex(a.tensor(0))); }},
    {"linalg.lu", [](A a) { return several(linalg::lu(a.tensor(0))); }},
    {"linalg.lu_solve",
     [](A a) { return linalg::lu_solve(a.tensor(0), a.tensor(1), a.tensor(2), a.flag(3, true), a.flag(4)); }},
    {"linalg.solve", [](A a) { return linalg::solve(a.tensor(0), a.tensor(1), a.flag(2, true)); }},
    {"linalg.solve_ex", [](A a) { return linalg::solve_ex(a.tensor(0), a.tensor(1)).first; }},
    {"linalg.solve_triangular",
     [](A a) {
       return linalg::solve_triangular(a.tensor(0), a.tensor(1), a.flag(2), a.flag(3, true), a.flag(4));
     }},
    {"linalg.inv", one(linalg::inv)},
    {"linalg.inv_ex", [](A a) { return linalg::inv_ex(a.tensor(0)).first; }},
    {"linalg.lstsq", least_squares},
    {"linalg.pinv",
     [](A a) { return linalg::pinv(a.tensor(0), a.optional_real(1), a.flag(2), a.optional_real(3)); }},
    {"linalg.det", one(linalg::det)},
    {"linalg.slogdet", [](A a) { return linalg::slogdet(a.tensor(0)); }},
    {"linalg.matrix_rank",
     [](A a) {
       return linalg::matrix_rank(a.tensor(0), a.optional_real(1), a.flag(2), a.optional_real(3),
                                  a.optional_real(4));
     }},
    {"linalg.cond",
     [](A a) {
       if (!a.has(1)) return Results(linalg::cond(a.tensor(0)));
       return with_order(a, 1, [&](auto p) { return linalg::cond(a.tensor(0), p); });
     }},
    {"linalg.eigh", signed_eigh},
    {"linalg.eigvalsh", [](A a) { return linalg::eigvalsh(a.tensor(0)); }},
    {"linalg.svd", [](A a) { return signed_svd(a.tensor(0), a.flag(1, true)); }},
    {"linalg.svdvals", [](A a) { return linalg::svdvals(a.tensor(0)); }},
    {"linalg.matrix_power", [](A a) { return linalg::matrix_power(a.tensor(0), a.integer(1)); }},
    {"linalg.matrix_exp", one(linalg::matrix_exp)},
    {"linalg.multi_dot", [](A a) { return linalg::multi_dot(a.tensors(0)); }},
    {"linalg.vander", [](A a) { return linalg::vander(a.tensor(0), a.optional_integer(1)); }},
    {"linalg.cross", [](A a) { return linalg::cross(a.tensor(0), a.tensor(1), a.integer(2, -1)); }},
    {"linalg.vecdot", [](A a) { return linalg::vecdot(a.tensor(0), a.tensor(1), a.integer(2, -1)); }},
    {"linalg.diagonal",
     [](A a) { return linalg::diagonal(a.tensor(0), a.integer(1), a.integer(2, -2), a.integer(3, -1)); }},
    {"linalg.vector_norm",
     [](A a) {
       return linalg::vector_norm(a.tensor(0), a.real(1, 2), a.integers(2), a.flag(3), a.dtype(4));
     }},
    {"linalg.matrix_norm",
     [](A a) {
       const std::vector<int64_t> dims = a.has(2) ? a.integers(2) : std::vector<int64_t>{-2, -1};
       return with_order(a, 1, [&](auto ord) {
         return linalg::matrix_norm(a.tensor(0), ord, dims, a.flag(3), a.dtype(4));
       });
     }},
    {"linalg.norm",
     [](A a) {
       if (!a.has(1)) return Results(linalg::norm(a.tensor(0), std::nullopt, a.integers(2), a.flag(3)));
       return with_order(a, 1,
                         [&](auto ord) { return linalg::norm(a.tensor(0), ord, a.integers(2), a.flag(3)); });
     }},
    {"inverse", one(inverse)},
    {"det", one(det)},
    {"slogdet", [](A a) { return slogdet(a.tensor(0)); }},
    {"logdet", one(logdet)},
    {"cholesky", [](A a) { return cholesky(a.tensor(0), a.flag(1)); }},
    {"cholesky_solve",
     [](A a) { return cholesky_solve(a.tensor(0), triangle_of(a.tensor(1), a.flag(2)), a.flag(2)); }},
    {"cholesky_inverse",
     [](A a) { return cholesky_inverse(triangle_of(a.tensor(0), a.flag(1)), a.flag(1)); }},
    {"triangular_solve",
     [](A a) { return triangular_solve(a.tensor(0), a.tensor(1), a.flag(2, true), a.flag(3), a.flag(4)); }},
    {"qr", [](A a) { return qr(a.tensor(0), a.flag(1, true)); }},
    {"svd", [](A a) { return signed_old_svd(a.tensor(0), a.flag(1, true)); }},
    {"pinverse", [](A a) { return pinverse(a.tensor(0)); }},
    {"matrix_power", [](A a) { return matrix_power(a.tensor(0), a.integer(1)); }},
    {"matrix_exp", one(matrix_exp)},
};

}  // namespace tern::testing
