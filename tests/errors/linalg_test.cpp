// Wrong uses: linear algebra.
#include <limits>

#include "wrong_use.h"

namespace tern {
namespace {

Tensor with_zero_row(int64_t n) {
  Tensor x = eye(n);
  x[1].zero_();
  return x;
}

std::vector<WrongUse> linalg_rows() {
  const std::type_index shape = typeid(ShapeError), dtype = typeid(DTypeError), value = typeid(ValueError),
                        broken = typeid(LinAlgError);
  return {
      {"cholesky_of_a_wide_matrix",
       shape,
       [] {
         linalg::cholesky(ones({3, 4}));
       },
       {"linalg.cholesky: A must be batches of square matrices, but they are 3 by 4 matrices", "[3, 4]"}},
      {"inv_of_a_vector", shape, [] { linalg::inv(ones({3})); }, {"linalg.inv: ", "at least 2", "[3]"}},
      {"inv_of_integers",
       dtype,
       [] {
         linalg::inv(ones({2, 2}, {.dtype = int64}));
       },
       {"linalg.inv: ", "int64", "to(float32)"}},
      {"det_of_half",
       dtype,
       [] {
         linalg::det(ones({2, 2}, {.dtype = float16}));
       },
       {"linalg.det: ", "float16", "to(float32)"}},
      {"solve_sizes",
       shape,
       [] {
         linalg::solve(ones({3, 3}), ones({4, 2}));
       },
       {"linalg.solve: ", "AX = B", "[3, 3]", "[4, 2]", "3 vs 4"}},
      {"solve_dtypes",
       dtype,
       [] {
         linalg::solve(ones({3, 3}), ones({3, 2}, {.dtype = float64}));
       },
       {"linalg.solve: ", "A is float32", "B is float64"}},
      {"solve_batches",
       shape,
       [] {
         linalg::solve(ones({2, 3, 3}), ones({4, 3, 1}));
       },
       {"linalg.solve", "[2]", "[4]"}},
      {"pivots_of_int64",
       dtype,
       [] {
         linalg::lu_solve(eye(3), arange(3), ones({3, 1}));
       },
       {"linalg.lu_solve: ", "int32", "int64"}},
      {"qr_mode", value, [] { linalg::qr(eye(2), "full"); }, {"linalg.qr: ", "'full'", "reduced"}},
      {"eigh_triangle", value, [] { linalg::eigh(eye(2), "X"); }, {"linalg.eigh: ", "UPLO", "X"}},
      {"lstsq_driver",
       value,
       [] { linalg::lstsq(eye(2), eye(2), {}, "qr"); },
       {"linalg.lstsq: ", "gelsy", "'qr'"}},
      {"matrix_norm_order",
       value,
       [] { linalg::matrix_norm(eye(2), 3.0); },
       {"linalg.matrix_norm: Order 3 not supported"}},
      {"multi_dot_of_one",
       value,
       [] { linalg::multi_dot({eye(2)}); },
       {"linalg.multi_dot: ", "at least 2", "1"}},
      {"multi_dot_sizes",
       shape,
       [] {
         linalg::multi_dot({ones({2, 3}), ones({2, 3})});
       },
       {"linalg.multi_dot: ", "[2, 3] and [2, 3]"}},
      {"negative_power_of_integers",
       dtype,
       [] {
         linalg::matrix_power(ones({2, 2}, {.dtype = int64}), -1);
       },
       {"linalg.matrix_power: ", "int64"}},
      {"inv_of_a_singular_matrix",
       broken,
       [] { linalg::inv(with_zero_row(3)); },
       {"linalg.inv: The diagonal element 2 is zero", "singular"}},
      {"solve_of_a_singular_matrix",
       broken,
       [] {
         linalg::solve(stack({eye(40), with_zero_row(40)}), ones({40, 1}));
       },
       {"linalg.solve: (Batch element 1): The solver failed because the input matrix is singular"}},
      {"cholesky_of_a_negative_matrix",
       broken,
       [] {
         linalg::cholesky(stack({eye(3), -eye(3)}));
       },
       {"linalg.cholesky: (Batch element 1): ", "the leading minor of order 1 is not positive-definite"}},
      {"cholesky_of_a_late_zero",
       broken,
       [] {
         Tensor x = eye(70);
         x[50].zero_();
         linalg::cholesky_ex(x, /*upper=*/false, /*check_errors=*/true);
       },
       {"linalg.cholesky_ex: ", "the leading minor of order 51"}},
      {"lu_factor_of_a_singular_matrix",
       broken,
       [] { linalg::lu_factor(with_zero_row(2)); },
       {"linalg.lu_factor: ", "diagonal element 2 of U is zero"}},
      {"eigh_of_nan",
       broken,
       [] {
         linalg::eigh(full({2, 2}, std::numeric_limits<double>::quiet_NaN()));
       },
       {"linalg.eigh: ", "not finite"}},
      {"svd_of_infinity",
       broken,
       [] {
         linalg::svd(full({2, 2, 2}, std::numeric_limits<double>::infinity()));
       },
       {"linalg.svd: (Batch element 0): ", "not finite"}},
      {"gradient_of_a_complete_qr",
       typeid(NotImplementedError),
       [] {
         linalg::qr(ones({3, 2}).requires_grad_(), "complete").first.sum().backward();
       },
       {"linalg.qr: ", "complete", "[3, 2]", "reduced"}},
  };
}

TERN_WRONG_USES(LinalgErrors, linalg_rows);

}  // namespace
}  // namespace tern
