// torch.linalg: factorisations, systems of equations, eigenvalues, singular values, norms of matrices.
// Matrix products are in ops/matmul.h, the old names of some functions (det, inverse, svd) in
// ops/linalg_names.h.
//
// Common rules. Matrices are the last two dimensions of float32 or float64 tensors; those before them are a
// batch, which is broadcast where there are two operands. Throws ShapeError for other ranks and sizes,
// DTypeError for other dtypes and for two of them. A matrix that has no inverse, no such factors, or NaN
// where an iteration needs numbers is a LinAlgError that says which of the batch it is: for that the host
// waits, but for the functions ending in
// `_ex`, which tell it in a tensor `info` of int32 unless `check_errors`. Gradients are PyTorch's, and may be
// differentiated again.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::linalg {

// ---- factorisations

/// The lower triangular L of a = L @ L^T, or with `upper` U of a = U^T @ U, for symmetric positive definite
/// matrices; only that triangle of a is read. Throws LinAlgError with the first minor that is not positive.
Tensor cholesky(const Tensor& a, bool upper = false);
/// (L, info).
std::pair<Tensor, Tensor> cholesky_ex(const Tensor& a, bool upper = false, bool check_errors = false);
/// (Q, R) with a = Q @ R, orthonormal columns and upper triangular R. `mode`: "reduced", "complete" (Q is
/// square) or "r" (Q is empty). Gradients need "reduced", or "complete" of matrices that are not taller than
/// wide, and linearly independent first columns.
std::pair<Tensor, Tensor> qr(const Tensor& a, std::string_view mode = "reduced");
/// (LU, pivots): both factors of P @ L @ U in one matrix, and int32 [..., min(m, n)]: row i was exchanged
/// with row pivots[i], from 1 on. Throws LinAlgError for a zero on the diagonal of U. `pivot` must be true.
std::pair<Tensor, Tensor> lu_factor(const Tensor& a, bool pivot = true);
/// (LU, pivots, info).
std::tuple<Tensor, Tensor, Tensor> lu_factor_ex(const Tensor& a, bool pivot = true,
                                                bool check_errors = false);
/// (P, L, U) with a = P @ L @ U.
std::tuple<Tensor, Tensor, Tensor> lu(const Tensor& a, bool pivot = true);

// ---- systems of equations

/// x with a @ x = b, or x @ a = b unless `left`. b is [..., n, k], or [..., n] when a's shape without its
/// last size is b's. Throws LinAlgError for a singular matrix.
Tensor solve(const Tensor& a, const Tensor& b, bool left = true);
/// (x, info).
std::pair<Tensor, Tensor> solve_ex(const Tensor& a, const Tensor& b, bool left = true,
                                   bool check_errors = false);
/// The same for triangular matrices, whose other triangle is not read; with `unitriangular` neither the
/// diagonal, which is 1. A zero there gives infinities and NaN.
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left = true,
                        bool unitriangular = false);
/// The same with what lu_factor() gave; `adjoint`: of the transposed matrix.
Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left = true,
                bool adjoint = false);
/// The inverse. Throws LinAlgError for a singular matrix.
Tensor inv(const Tensor& a);
/// (inverse, info).
std::pair<Tensor, Tensor> inv_ex(const Tensor& a, bool check_errors = false);
/// The x of least |a @ x - b|: (solution, residuals, rank, singular_values), each empty where it was not
/// computed. `driver`: "gels", by QR, for matrices of full rank; "gelsy", "gelsd" and "gelss", by singular
/// values, of which those below `rcond` (eps * max(m, n)) times the largest count as zero. Without one
/// "gelsy" on the CPU and "gels" on GPUs. Residuals are the squared |a @ x - b| of each column where m > n
/// and, as far as it was found, the rank is n.
std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const Tensor& a, const Tensor& b,
                                                 std::optional<double> rcond = {},
                                                 std::optional<std::string_view> driver = {});
/// The Moore-Penrose inverse [..., n, m]; singular values at most max(atol, rtol * the largest) count as
/// zero, where rtol is eps * max(m, n) unless one of them is given. `hermitian`: by eigenvalues, for
/// symmetric matrices.
Tensor pinv(const Tensor& a, std::optional<double> rtol = {}, bool hermitian = false,
            std::optional<double> atol = {});

// ---- numbers of a matrix

/// The determinants. They are differentiable at singular matrices too, once.
Tensor det(const Tensor& a);
/// (sign, logabsdet) of the determinants; (0, -inf) for singular matrices.
std::pair<Tensor, Tensor> slogdet(const Tensor& a);
/// How many singular values are above max(atol, rtol * the largest), as for pinv(); int64.
Tensor matrix_rank(const Tensor& a, std::optional<double> tol = {}, bool hermitian = false,
                   std::optional<double> atol = {}, std::optional<double> rtol = {});
/// |a| * |a^-1| in a matrix_norm; without `p` the largest singular value over the smallest. A singular matrix
/// has inf.
Tensor cond(const Tensor& a, std::optional<double> p = {});
Tensor cond(const Tensor& a, std::string_view p);

// ---- eigenvalues and singular values

/// (eigenvalues, eigenvectors) of symmetric matrices, ascending, one vector for each column. `uplo`: "L" or
/// "U", the triangle that is read. Gradients of vectors are finite where the values differ.
std::pair<Tensor, Tensor> eigh(const Tensor& a, std::string_view uplo = "L");
Tensor eigvalsh(const Tensor& a, std::string_view uplo = "L");
/// (U, S, Vh) with a = U @ diag(S) @ Vh, S descending. With `full_matrices` U and Vh are square, else [...,
/// m, k] and
/// [..., k, n] with k = min(m, n). Gradients of vectors are finite where the values differ and are not 0.
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& a, bool full_matrices = true,
                                       std::optional<std::string_view> driver = {});
Tensor svdvals(const Tensor& a, std::optional<std::string_view> driver = {});

// ---- functions and products of matrices

/// a @ a @ ..., n times; powers of the inverse for negative n.
Tensor matrix_power(const Tensor& a, int64_t n);
/// exp of a matrix, by scaling and squaring (N. Higham, 2005). The host waits.
Tensor matrix_exp(const Tensor& a);
/// The product of matrices in the order that costs least; the first and the last may be vectors.
Tensor multi_dot(const std::vector<Tensor>& tensors);
/// The columns 1, x, x^2, ... up to n of them: [..., size, n or size].
Tensor vander(const Tensor& x, std::optional<int64_t> n = {});
/// Products of vectors along `dim`, which must be 3 for the cross product.
Tensor cross(const Tensor& a, const Tensor& b, int64_t dim = -1);
Tensor vecdot(const Tensor& a, const Tensor& b, int64_t dim = -1);
/// The diagonal of each matrix, a view.
Tensor diagonal(const Tensor& a, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);

// ---- norms

/// (sum |x|^ord)^(1/ord) over `dims`, all of them where there are none; see norm() in ops/reduce.h.
Tensor vector_norm(const Tensor& x, double ord = 2, IntArrayRef dims = {}, bool keepdim = false,
                   std::optional<DType> dtype = {});
/// "fro" (root of the sum of squares) or "nuc" (sum of singular values) of the matrices in two dimensions.
Tensor matrix_norm(const Tensor& a, std::string_view ord = "fro", IntArrayRef dims = {-2, -1},
                   bool keepdim = false, std::optional<DType> dtype = {});
/// 1 and -1: the largest and smallest sum of a column's magnitudes; inf and -inf: of a row's; 2 and -2: the
/// largest and smallest singular value. Throws ValueError for others.
Tensor matrix_norm(const Tensor& a, double ord, IntArrayRef dims = {-2, -1}, bool keepdim = false,
                   std::optional<DType> dtype = {});
/// Of one dimension vector_norm(), of two matrix_norm(); without `ord` the 2-norm of all elements of `dims`.
Tensor norm(const Tensor& a, std::optional<double> ord = {}, IntArrayRef dims = {}, bool keepdim = false,
            std::optional<DType> dtype = {});
Tensor norm(const Tensor& a, std::string_view ord, IntArrayRef dims = {}, bool keepdim = false,
            std::optional<DType> dtype = {});

}  // namespace tern::linalg
