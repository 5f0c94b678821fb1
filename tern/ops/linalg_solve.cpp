// Systems of equations, inverses and determinants with their gradients.
#include <cmath>
#include <limits>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/ops/diagonal.h"
#include "tern/ops/index.h"
#include "tern/ops/linalg.h"
#include "tern/ops/linalg_common.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern::linalg {
namespace {

using namespace detail;

std::string cannot_solve(int64_t) { return "The solver failed because the input matrix is singular."; }
std::string cannot_invert(int64_t column) {
  return fmt::format(
      "The diagonal element {} is zero, the inversion could not be completed because the input matrix is "
      "singular.",
      column);
}

/// a @ x = b of batches that broadcast, with info.
std::pair<Tensor, Tensor> solve_system(const char* op, const Tensor& a, const Tensor& b) {
  const Shape batch = shared_batch(op, a, b);
  const LuFactors factors = factor(a);
  Tensor lu, rows;
  {
    const NoGradGuard no_grad;
    Shape shape = batch;
    shape.push_back(a.size(-1));
    rows = expand(factors.rows, shape);
    lu = expanded(factors.lu, batch);
  }
  Tensor x = solve_with(lu, rows, expanded(b.detach(), batch), /*transposed=*/false);
  if (tracks_grad(a, b))
    record("linalg_solve", x, {a, b},
           [a_ = save(a), x_ = save_output(x), lu, rows, of_b = b.shape()](GradContext& c, const Tensor& g) {
             const Tensor saved = c[a_];
             const Tensor grad =
                 is_grad_enabled() ? solve(mT(saved), g) : solve_with(lu, rows, g, /*transposed=*/true);
             std::array<Tensor, 2> grads;
             if (c.needs(0)) grads[0] = reduce_to(neg(matmul(grad, mT(c[x_]))), saved.shape(), saved.dtype());
             if (c.needs(1)) grads[1] = reduce_to(grad, of_b, grad.dtype());
             return grads;
           });
  return {x, factors.info};
}

std::pair<Tensor, Tensor> solve_of(const char* op, const Tensor& a, const Tensor& b, bool left,
                                   bool check_errors) {
  check_matrices(op, a, /*square=*/true);
  const bool is_vector =
      b.defined() && (b.dim() == 1 || (b.dim() + 1 == a.dim() && b.shape() == with_sizes(a, {a.size(-1)})));
  TERN_CHECK(!is_vector || left, ShapeError,
             "{}: Vector broadcasting of the left hand side is not supported for left=False. B is {}", op,
             to_string(b.shape()));
  const Tensor right = is_vector ? unsqueeze(b, -1) : b;
  check_system(op, a, right, left);
  auto [x, info] = left ? solve_system(op, a, right) : solve_system(op, mT(a), mT(right));
  if (check_errors) check_info(op, info, cannot_solve);
  if (!left) x = mT(x);
  return {is_vector ? squeeze(x, -1) : x, info};
}

std::pair<Tensor, Tensor> invert(const char* op, const Tensor& a, bool check_errors) {
  check_matrices(op, a, /*square=*/true);
  const LuFactors factors = factor(a);
  Tensor inverse = inverse_with(factors.lu, factors.rows);
  if (check_errors) check_info(op, factors.info, cannot_invert);
  if (tracks_grad(a))
    record("linalg_inv", inverse, {a}, [y_ = save_output(inverse)](GradContext& c, const Tensor& g) {
      const Tensor turned = mT(c[y_]);
      return neg(matmul(turned, matmul(g, turned)));
    });
  return {inverse, factors.info};
}

/// +1 or -1, as the exchanges are an even or an odd number.
Tensor sign_of(const Tensor& pivots, DType dtype) {
  const NoGradGuard no_grad;
  const Tensor exchanged =
      ne(pivots, arange(1, pivots.size(-1) + 1, {.dtype = DType::Int32, .device = pivots.device()}));
  const Tensor odd = remainder(sum(exchanged, -1), 2);
  return cast(add(mul(odd, -2), 1), dtype);
}

Tensor scaled(const Tensor& matrix, const Tensor& factor) {
  return mul(matrix, unsqueeze(unsqueeze(factor, -1), -1));
}

/// det(a) * a^-T without history; for singular matrices zeros on the diagonal of U are made small.
Tensor cofactors(const LuFactors& factors) {
  const NoGradGuard no_grad;
  const Tensor values = linalg::diagonal(factors.lu);
  const double eps = eps_of(values.dtype());
  if (values.size(-1) == 0) return zeros_like(factors.lu);
  const Tensor least = clamp_min(mul(amax(abs(values), {-1}, /*keepdim=*/true), eps), eps);
  const Tensor lu = add(factors.lu, diag_embed(mul(cast(eq(values, 0), values.dtype()), least)));
  const Tensor value = mul(prod(linalg::diagonal(lu), -1), sign_of(factors.pivots, lu.dtype()));
  return scaled(mT(inverse_with(lu, factors.rows)), value);
}

Tensor solve_triangular_core(const Tensor& a, const Tensor& b, bool upper, bool unit) {
  Tensor x = compact_copy(b);
  solve_in_place(a.detach(), upper, unit, x);
  if (tracks_grad(a, b))
    record("linalg_solve_triangular", x, {a, b},
           [a_ = save(a), x_ = save_output(x), upper, unit](GradContext& c, const Tensor& g) {
             const Tensor grad = solve_triangular(mT(c[a_]), g, !upper, /*left=*/true, unit);
             std::array<Tensor, 2> grads;
             if (c.needs(0)) {
               const Tensor full = neg(matmul(grad, mT(c[x_])));
               grads[0] = upper ? triu(full, unit ? 1 : 0) : tril(full, unit ? -1 : 0);
             }
             grads[1] = grad;
             return grads;
           });
  return x;
}

}  // namespace

Tensor solve(const Tensor& a, const Tensor& b, bool left) {
  if (autocasts_on_cpu(a)) [[unlikely]]
    return autocast_float32(solve, a, b, left);
  return solve_of("linalg.solve", a, b, left, /*check_errors=*/true).first;
}

std::pair<Tensor, Tensor> solve_ex(const Tensor& a, const Tensor& b, bool left, bool check_errors) {
  return solve_of("linalg.solve_ex", a, b, left, check_errors);
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unitriangular) {
  const char* op = "linalg.solve_triangular";
  check_system(op, a, b, left);
  const Shape batch = shared_batch(op, a, b);
  if (left) return solve_triangular_core(expanded(a, batch), expanded(b, batch), upper, unitriangular);
  return mT(solve_triangular_core(expanded(mT(a), batch), expanded(mT(b), batch), !upper, unitriangular));
}

Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint) {
  const char* op = "linalg.lu_solve";
  if (!left) return mT(lu_solve(lu, pivots, mT(b), /*left=*/true, !adjoint));
  check_system(op, lu, b, /*left=*/true);
  check_same_device(op, {{"LU", lu}, {"pivots", pivots}});
  TERN_CHECK(pivots.dtype() == DType::Int32, DTypeError, "{}: pivots should be int32, got {}", op,
             name(pivots.dtype()));
  TERN_CHECK(
      pivots.shape() == with_sizes(lu, {lu.size(-1)}), ShapeError,
      "{}: Number of pivots per batch should be same as the dimension of the matrix: LU is {}, pivots are {}",
      op, to_string(lu.shape()), to_string(pivots.shape()));
  const Shape batch = shared_batch(op, lu, b);
  Shape shape = batch;
  shape.push_back(lu.size(-1));
  const Tensor right = expanded(b, batch);
  const Tensor places = expand(unsqueeze(expand(rows_of(pivots, lu.size(-1)), shape), -1), right.shape());
  if (!adjoint)
    return solve_triangular(lu, solve_triangular(lu, gather(right, -2, places), /*upper=*/false, true, true),
                            /*upper=*/true);
  const Tensor x = solve_triangular(mT(lu), solve_triangular(mT(lu), right, /*upper=*/false), /*upper=*/true,
                                    /*left=*/true, /*unitriangular=*/true);
  return scatter(zeros_like(x), -2, places, x);
}

Tensor inv(const Tensor& a) {
  if (autocasts_on_cpu(a)) [[unlikely]]
    return autocast_float32(inv, a);
  return invert("linalg.inv", a, /*check_errors=*/true).first;
}

std::pair<Tensor, Tensor> inv_ex(const Tensor& a, bool check_errors) {
  if (autocasts_on_cpu(a)) [[unlikely]]
    return autocast_float32(inv_ex, a, check_errors);
  return invert("linalg.inv_ex", a, check_errors);
}

Tensor det(const Tensor& a) {
  check_matrices("linalg.det", a, /*square=*/true);
  const LuFactors factors = factor(a);
  Tensor value;
  {
    const NoGradGuard no_grad;
    value = mul(prod(linalg::diagonal(factors.lu), -1), sign_of(factors.pivots, a.dtype()));
  }
  if (tracks_grad(a))
    record("linalg_det", value, {a},
           [a_ = save(a), value_ = save_output(value), factors](GradContext& c, const Tensor& g) {
             if (!is_grad_enabled()) return scaled(cofactors(factors), g);
             return scaled(mT(inv_ex(c[a_]).first), mul(g, c[value_]));
           });
  return value;
}

std::pair<Tensor, Tensor> slogdet(const Tensor& a) {
  check_matrices("linalg.slogdet", a, /*square=*/true);
  const LuFactors factors = factor(a);
  Tensor sign, logarithm;
  {
    const NoGradGuard no_grad;
    const Tensor diagonal_of = linalg::diagonal(factors.lu);
    sign = mul(prod(tern::sign(diagonal_of), -1), sign_of(factors.pivots, a.dtype()));
    logarithm = sum(log(abs(diagonal_of)), -1);
  }
  if (tracks_grad(a)) {
    record("linalg_slogdet", sign, {a}, [](GradContext&, const Tensor&) { return Tensor(); });
    record("linalg_slogdet", logarithm, {a}, [a_ = save(a), factors](GradContext& c, const Tensor& g) {
      const Tensor inverse = is_grad_enabled() ? inv_ex(c[a_]).first : inverse_with(factors.lu, factors.rows);
      return scaled(mT(inverse), g);
    });
  }
  return {sign, logarithm};
}

}  // namespace tern::linalg
