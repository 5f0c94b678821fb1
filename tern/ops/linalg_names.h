// The names that functions of ops/linalg.h had before torch.linalg, and what only they do.
#pragma once

#include <tuple>
#include <utility>

#include "tern/core/tensor.h"

namespace tern {

/// linalg::inv.
Tensor inverse(const Tensor& x);
/// linalg::det, linalg::slogdet.
Tensor det(const Tensor& x);
std::pair<Tensor, Tensor> slogdet(const Tensor& x);
/// The logarithm of the determinants: -inf for 0, NaN for negative ones.
Tensor logdet(const Tensor& x);
/// linalg::cholesky.
Tensor cholesky(const Tensor& x, bool upper = false);
/// x with a @ x = b, from the lower triangular l of a = l @ l^T, or with `upper` of a = l^T @ l.
Tensor cholesky_solve(const Tensor& b, const Tensor& l, bool upper = false);
/// a^-1, from the same.
Tensor cholesky_inverse(const Tensor& l, bool upper = false);
/// (x with a @ x = b, a) of a triangular a, the upper triangle first: see linalg::solve_triangular.
std::pair<Tensor, Tensor> triangular_solve(const Tensor& b, const Tensor& a, bool upper = true,
                                           bool transpose = false, bool unitriangular = false);
/// linalg::qr, "reduced" where `some`.
std::pair<Tensor, Tensor> qr(const Tensor& x, bool some = true);
/// (U, S, V) with x = U @ diag(S) @ V^T, of reduced matrices where `some`.
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& x, bool some = true, bool compute_uv = true);
/// linalg::pinv.
Tensor pinverse(const Tensor& x, double rcond = 1e-15);
/// linalg::matrix_power, linalg::matrix_exp.
Tensor matrix_power(const Tensor& x, int64_t n);
Tensor matrix_exp(const Tensor& x);

}  // namespace tern
