// Factorisations with their gradients. Formulas: I. Murray, "Differentiation of the Cholesky decomposition"
// (2016); S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions" (2010);
// PyTorch's.
#include "tern/autograd/arithmetic.h"
#include "tern/autograd/function.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/linalg.h"
#include "tern/ops/linalg_common.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern::linalg {
namespace {

using namespace detail;

std::string not_positive(int64_t order) {
  return fmt::format(
      "The factorization could not be completed because the input is not positive-definite (the leading "
      "minor of "
      "order {} is not positive-definite)",
      order);
}
std::string zero_pivot(int64_t column) {
  return fmt::format(
      "The diagonal element {} of U is zero, and using it on linalg.lu_solve would cause a division by "
      "zero",
      column);
}

/// a^-1 @ b for a triangular a, recorded.
Tensor divide_left(const Tensor& a, const Tensor& b, bool upper, bool unit = false) {
  return solve_triangular(a, b, upper, /*left=*/true, unit);
}
Tensor divide_right(const Tensor& b, const Tensor& a, bool upper) {
  return solve_triangular(a, b, upper, /*left=*/false);
}

/// (L, info) of the lower triangle.
std::pair<Tensor, Tensor> factor_cholesky(const Tensor& a) {
  const Batch batch = batch_of(a);
  Tensor l = compact_copy(a), info = made(a, {}, DType::Int32);
  if (a.numel() == 0)
    fill_elements(info, 0);
  else
    launch(current_stream(a.device()), kernels::cholesky,
           {.dtype = a.dtype(),
            .batch = batch.count,
            .n = batch.n,
            .a = l.data_ptr(),
            .info = static_cast<int32_t*>(info.data_ptr())});
  if (tracks_grad(a))
    record("linalg_cholesky", l, {a}, [l_ = save_output(l)](GradContext& c, const Tensor& g) {
      const Tensor saved = c[l_], product = matmul(mT(saved), g);
      const Tensor symmetric = mul(add(tril(product), mT(tril(product, -1))), 0.5);
      return divide_right(divide_left(mT(saved), symmetric, /*upper=*/true), saved, /*upper=*/false);
    });
  return {l, info};
}

std::pair<Tensor, Tensor> cholesky_of(const char* op, const Tensor& a, bool upper, bool check_errors) {
  check_matrices(op, a, /*square=*/true);
  auto [l, info] = factor_cholesky(upper ? mT(a) : a);
  if (check_errors) check_info(op, info, not_positive);
  return {upper ? mT(l) : l, info};
}

/// (Q [m, columns], R) without history; Q is empty for columns < 0.
std::pair<Tensor, Tensor> factor_qr(const Tensor& a, int64_t columns) {
  const Batch batch = batch_of(a);
  const int64_t count = std::min(batch.m, batch.n);
  Tensor memory = columns_of(a), tau = made(a, {count});
  if (a.numel() > 0)
    launch(current_stream(a.device()), kernels::qr,
           {.dtype = a.dtype(),
            .batch = batch.count,
            .m = batch.m,
            .n = batch.n,
            .a = memory.data_ptr(),
            .tau = tau.data_ptr()});
  const Tensor reflections = narrow(memory, -2, 0, count);  // [..., count, m]
  Tensor r = triu(narrow(mT(memory), -2, 0, std::max(columns, count)));
  if (columns < 0) return {empty_of({0}, a), r};
  Tensor q = made(a, {columns, batch.m});
  if (q.numel() > 0) {
    copy_elements(narrow(q, -2, 0, count), reflections);
    launch(current_stream(a.device()), kernels::householder_product,
           {.dtype = a.dtype(),
            .batch = batch.count,
            .m = batch.m,
            .n = columns,
            .count = count,
            .a = q.data_ptr(),
            .tau = tau.data_ptr()});
  }
  return {mT(q), r};
}

/// The gradient of a matrix that is not wider than tall, from those of its factors.
Tensor tall_qr_gradient(const Tensor& q, const Tensor& r, const Tensor& grad_q, const Tensor& grad_r) {
  Tensor inner;
  if (grad_r.defined()) inner = matmul(r, mT(grad_r));
  if (grad_q.defined()) {
    const Tensor product = matmul(mT(grad_q), q);
    inner = inner.defined() ? sub(inner, product) : neg(product);
  }
  Tensor sum = matmul(q, add(tril(inner), mT(tril(inner, -1))));
  if (grad_q.defined()) sum = add(sum, grad_q);
  return divide_right(sum, mT(r), /*upper=*/false);
}

struct LinalgQr : autograd::Function<LinalgQr> {
  bool differentiable = true;
  std::pair<Tensor, Tensor> forward(autograd::FunctionContext& context, const Tensor& a, int64_t columns) {
    differentiable = columns == std::min(a.size(-1), a.size(-2));
    context.set_materialize_grads(false);
    auto factors = factor_qr(a, columns);
    context.save_for_backward({a, factors.first, factors.second});
    return factors;
  }
  std::vector<Tensor> backward(const autograd::FunctionContext& context, const std::vector<Tensor>& grads) {
    const std::vector<Tensor> saved = context.saved_tensors();
    const Tensor &a = saved[0], &q = saved[1], &r = saved[2];
    TERN_CHECK(
        differentiable, NotImplementedError,
        "linalg.qr: The derivative is not implemented for mode='r', nor for mode='complete' of matrices that "
        "are taller than wide (shape {}): take mode='reduced'",
        to_string(a.shape()));
    Tensor grad_q = grads[0];
    const Tensor& grad_r = grads[1];
    if (!grad_q.defined() && !grad_r.defined()) return {Tensor()};
    const int64_t m = a.size(-2), n = a.size(-1);
    if (m >= n) return {tall_qr_gradient(q, r, grad_q, grad_r)};
    // a = [x | y], r = [u | v]: x = q @ u, and v = q^T @ y.
    if (!grad_r.defined())
      return {cat({tall_qr_gradient(q, narrow(r, -1, 0, m), grad_q, {}), zeros_like(narrow(a, -1, m, n - m))},
                  -1)};
    const Tensor grad_v = narrow(grad_r, -1, m, n - m),
                 through_v = matmul(narrow(a, -1, m, n - m), mT(grad_v));
    grad_q = grad_q.defined() ? add(grad_q, through_v) : through_v;
    return {cat(
        {tall_qr_gradient(q, narrow(r, -1, 0, m), grad_q, narrow(grad_r, -1, 0, m)), matmul(q, grad_v)}, -1)};
  }
};

/// The gradient of a from that of L and U in one matrix.
Tensor lu_gradient(const Tensor& lu, const Tensor& rows, const Tensor& grad) {
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  const Tensor square = narrow(narrow(lu, -2, 0, k), -1, 0, k);
  const Tensor unit_lower = add(tril(square, -1), eye(k, {.dtype = lu.dtype(), .device = lu.device()}));
  const Tensor upper = triu(square);
  const Tensor grad_square = narrow(narrow(grad, -2, 0, k), -1, 0, k);
  Tensor of_l = matmul(mT(unit_lower), tril(grad_square, -1)), of_u = matmul(triu(grad_square), mT(upper));
  if (n > k) of_l = sub(of_l, matmul(narrow(grad, -1, k, n - k), mT(narrow(lu, -1, k, n - k))));
  if (m > k) of_u = sub(of_u, matmul(mT(narrow(lu, -2, k, m - k)), narrow(grad, -2, k, m - k)));
  const Tensor inner =
      divide_left(mT(unit_lower), divide_right(add(tril(of_l, -1), triu(of_u)), mT(upper), /*upper=*/false),
                  /*upper=*/true, /*unit=*/true);
  Tensor of_rows = inner;
  if (n > k)
    of_rows = cat(
        {inner, divide_left(mT(unit_lower), narrow(grad, -1, k, n - k), /*upper=*/true, /*unit=*/true)}, -1);
  if (m > k) of_rows = cat({inner, divide_right(narrow(grad, -2, k, m - k), mT(upper), /*upper=*/false)}, -2);
  return scatter(zeros_like(of_rows), -2, expand(unsqueeze(rows, -1), of_rows.shape()), of_rows);
}

std::tuple<Tensor, Tensor, Tensor> lu_of(const char* op, const Tensor& a, bool pivot, bool check_errors) {
  check_matrices(op, a);
  TERN_CHECK(pivot, NotImplementedError, "{}: LU without pivoting is not implemented: leave out pivot=False",
             op);
  const LuFactors factors = factor(a);
  if (check_errors) check_info(op, factors.info, zero_pivot);
  if (tracks_grad(a))
    record("linalg_lu_factor", factors.lu, {a},
           [lu_ = save_output(factors.lu), rows = factors.rows](GradContext& c, const Tensor& g) {
             return lu_gradient(c[lu_], rows, g);
           });
  return {factors.lu, factors.pivots, factors.info};
}

}  // namespace

Tensor cholesky(const Tensor& a, bool upper) {
  if (autocasts_on_cpu(a)) [[unlikely]]
    return autocast_float32(cholesky, a, upper);
  return cholesky_of("linalg.cholesky", a, upper, /*check_errors=*/true).first;
}

std::pair<Tensor, Tensor> cholesky_ex(const Tensor& a, bool upper, bool check_errors) {
  if (autocasts_on_cpu(a)) [[unlikely]]
    return autocast_float32(cholesky_ex, a, upper, check_errors);
  return cholesky_of("linalg.cholesky_ex", a, upper, check_errors);
}

std::pair<Tensor, Tensor> qr(const Tensor& a, std::string_view mode) {
  if (autocasts_on_cpu(a)) [[unlikely]]
    return autocast_float32(qr, a, mode);
  const char* op = "linalg.qr";
  check_matrices(op, a);
  const int64_t m = a.size(-2), n = a.size(-1);
  TERN_CHECK(mode == "reduced" || mode == "complete" || mode == "r", ValueError,
             "{}: unrecognized mode '{}': expected 'reduced', 'complete' or 'r'", op, mode);
  const int64_t columns = mode == "r" ? -1 : mode == "complete" ? m : std::min(m, n);
  if (tracks_grad(a)) return LinalgQr::apply(a, columns);
  const NoGradGuard no_grad;
  return factor_qr(a, columns);
}

std::tuple<Tensor, Tensor, Tensor> lu_factor_ex(const Tensor& a, bool pivot, bool check_errors) {
  return lu_of("linalg.lu_factor_ex", a, pivot, check_errors);
}

std::pair<Tensor, Tensor> lu_factor(const Tensor& a, bool pivot) {
  auto [lu, pivots, info] = lu_of("linalg.lu_factor", a, pivot, /*check_errors=*/true);
  return {lu, pivots};
}

std::tuple<Tensor, Tensor, Tensor> lu(const Tensor& a, bool pivot) {
  auto [packed, pivots, info] = lu_of("linalg.lu", a, pivot, /*check_errors=*/false);
  return unpack_lu(packed, pivots);
}

}  // namespace tern::linalg

namespace tern::linalg::detail {

std::tuple<Tensor, Tensor, Tensor> unpack_lu(const Tensor& lu, const Tensor& pivots) {
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  const Tensor rows = rows_of(pivots, m);
  // Row i of P @ a is row rows[i] of a.
  const Tensor p =
      cast(eq(unsqueeze(arange(m, {.device = lu.device()}), -1), unsqueeze(rows, -2)), lu.dtype());
  const Tensor l =
      add(tril(narrow(lu, -1, 0, k), -1), eye(m, k, {.dtype = lu.dtype(), .device = lu.device()}));
  return {p, l, triu(narrow(lu, -2, 0, k))};
}

}  // namespace tern::linalg::detail
