// The names of before torch.linalg.
#include "tern/ops/linalg_names.h"

#include "tern/ops/autocast_rules.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/linalg.h"
#include "tern/ops/linalg_common.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern {

Tensor inverse(const Tensor& x) { return linalg::inv(x); }
Tensor det(const Tensor& x) { return linalg::det(x); }
std::pair<Tensor, Tensor> slogdet(const Tensor& x) { return linalg::slogdet(x); }

Tensor logdet(const Tensor& x) {
  const auto [sign, logarithm] = linalg::slogdet(x);
  return where(lt(sign, 0), std::numeric_limits<double>::quiet_NaN(), logarithm);
}

Tensor cholesky(const Tensor& x, bool upper) { return linalg::cholesky(x, upper); }

Tensor cholesky_solve(const Tensor& b, const Tensor& l, bool upper) {
  if (autocasts_on_cpu(l)) [[unlikely]]
    return autocast_float32(cholesky_solve, b, l, upper);
  linalg::detail::check_system("cholesky_solve", l, b, /*left=*/true);
  if (upper)
    return linalg::solve_triangular(l, linalg::solve_triangular(mT(l), b, /*upper=*/false), /*upper=*/true);
  return linalg::solve_triangular(mT(l), linalg::solve_triangular(l, b, /*upper=*/false), /*upper=*/true);
}

Tensor cholesky_inverse(const Tensor& l, bool upper) {
  if (autocasts_on_cpu(l)) [[unlikely]]
    return autocast_float32(cholesky_inverse, l, upper);
  linalg::detail::check_matrices("cholesky_inverse", l, /*square=*/true);
  return cholesky_solve(eye(l.size(-1), {.dtype = l.dtype(), .device = l.device()}), l, upper);
}

std::pair<Tensor, Tensor> triangular_solve(const Tensor& b, const Tensor& a, bool upper, bool transpose,
                                           bool unitriangular) {
  if (autocasts_on_cpu(a)) [[unlikely]]
    return autocast_float32(triangular_solve, b, a, upper, transpose, unitriangular);
  linalg::detail::check_system("triangular_solve", a, b, /*left=*/true);
  return {
      linalg::solve_triangular(transpose ? mT(a) : a, b, upper != transpose, /*left=*/true, unitriangular),
      clone(a)};
}

std::pair<Tensor, Tensor> qr(const Tensor& x, bool some) {
  return linalg::qr(x, some ? "reduced" : "complete");
}

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& x, bool some, bool compute_uv) {
  if (compute_uv) {
    const auto [u, s, vh] = linalg::svd(x, /*full_matrices=*/!some);
    return {u, s, mT(vh)};
  }
  const TensorOptions options{.dtype = x.dtype(), .device = x.device()};
  const Tensor s = linalg::svdvals(x);
  return {zeros(linalg::detail::with_sizes(x, {x.size(-2), x.size(-2)}), options), s,
          zeros(linalg::detail::with_sizes(x, {x.size(-1), x.size(-1)}), options)};
}

Tensor pinverse(const Tensor& x, double rcond) {
  if (autocasts_on_cpu(x)) [[unlikely]]
    return autocast_float32(pinverse, x, rcond);
  return linalg::pinv(x, rcond);
}
Tensor matrix_power(const Tensor& x, int64_t n) { return linalg::matrix_power(x, n); }
Tensor matrix_exp(const Tensor& x) { return linalg::matrix_exp(x); }

}  // namespace tern
