// Eigenvalues and singular values with their gradients, and what is made of them. Formulas: M. Giles, "An
// extended collection of matrix derivative results" (2008); PyTorch's.
#include <limits>

#include "tern/autograd/arithmetic.h"
#include "tern/autograd/function.h"
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

std::string no_eigenvalues(int64_t code) {
  return fmt::format(
      "The algorithm failed to converge because the input matrix is ill-conditioned, has too many "
      "repeated eigenvalues or values that are not finite (error code: {}).",
      code);
}
std::string no_singular_values(int64_t code) {
  return fmt::format(
      "The algorithm failed to converge because the input matrix is ill-conditioned, has too many "
      "repeated singular values or values that are not finite (error code: {}).",
      code);
}

bool is_upper(const char* op, std::string_view uplo) {
  TERN_CHECK(uplo == "L" || uplo == "l" || uplo == "U" || uplo == "u", ValueError,
             "{}: Expected UPLO argument to be 'L' or 'U', but got {}", op, uplo);
  return uplo == "U" || uplo == "u";
}

/// Without history; vectors are undefined unless wanted.
std::pair<Tensor, Tensor> find_eigenvalues(const char* op, const Tensor& a, bool upper, bool vectors) {
  const NoGradGuard no_grad;
  const Batch batch = batch_of(a);
  // Rows as columns: the transposed matrix, whose other triangle is meant.
  Tensor memory = compact_copy(a.detach()), values = made(a, {batch.n}), info = made(a, {}, DType::Int32);
  if (a.numel() > 0) {
    launch(current_stream(a.device()), kernels::eigh,
           {.dtype = a.dtype(),
            .upper = !upper,
            .vectors = vectors,
            .batch = batch.count,
            .n = batch.n,
            .a = memory.data_ptr(),
            .values = values.data_ptr(),
            .info = static_cast<int32_t*>(info.data_ptr())});
    check_info(op, info, no_eigenvalues);
  }
  return {values, vectors ? mT(memory) : Tensor()};
}

/// 1 / (x[j] - x[i]) in element (i, j), 0 on the diagonal.
Tensor inverse_differences(const Tensor& difference) {
  const int64_t n = difference.size(-1);
  const Tensor one = eye(n, {.dtype = difference.dtype(), .device = difference.device()});
  return sub(reciprocal(add(difference, one)), one);
}

/// x - x^T
Tensor skew(const Tensor& x) { return sub(x, mT(x)); }

struct LinalgEigh : autograd::Function<LinalgEigh> {
  static std::pair<Tensor, Tensor> forward(autograd::FunctionContext& context, const Tensor& a, bool upper) {
    context.set_materialize_grads(false);
    auto found = find_eigenvalues("linalg.eigh", a, upper, /*vectors=*/true);
    context.save_for_backward({found.first, found.second});
    return found;
  }
  static std::vector<Tensor> backward(const autograd::FunctionContext& context,
                                      const std::vector<Tensor>& grads) {
    const std::vector<Tensor> saved = context.saved_tensors();
    const Tensor &values = saved[0], &vectors = saved[1];
    if (!grads[0].defined() && !grads[1].defined()) return {Tensor()};
    if (!grads[1].defined()) return {matmul(mul(vectors, unsqueeze(grads[0], -2)), mT(vectors))};
    const Tensor inverse = inverse_differences(sub(unsqueeze(values, -2), unsqueeze(values, -1)));
    Tensor inner = mul(mul(skew(matmul(mT(vectors), grads[1])), 0.5), inverse);
    if (grads[0].defined()) inner = add(inner, diag_embed(grads[0]));
    return {matmul(vectors, matmul(inner, mT(vectors)))};
  }
};

struct Singular {
  Tensor u, s, vh;
};
Singular find_singular_values(const char* op, const Tensor& a, bool vectors, bool full) {
  const NoGradGuard no_grad;
  const Batch batch = batch_of(a);
  const bool wide = batch.m < batch.n;
  // Of a wide matrix the transposed one, whose columns are a's rows.
  const int64_t m = std::max(batch.m, batch.n), n = std::min(batch.m, batch.n), columns = full ? m : n;
  Tensor s = made(a, {n}), u, vh;
  if (vectors) {
    u = made(a, {columns, m});
    vh = made(a, {n, n});
  }
  if (a.numel() > 0) {
    Tensor memory = wide ? compact_copy(a.detach()) : columns_of(a), info = made(a, {}, DType::Int32);
    launch(current_stream(a.device()), kernels::svd,
           {.dtype = a.dtype(),
            .vectors = vectors,
            .batch = batch.count,
            .m = m,
            .n = n,
            .columns = columns,
            .a = memory.data_ptr(),
            .u = vectors ? u.data_ptr() : nullptr,
            .s = s.data_ptr(),
            .vh = vectors ? vh.data_ptr() : nullptr,
            .info = static_cast<int32_t*>(info.data_ptr())});
    check_info(op, info, no_singular_values);
  } else if (vectors && u.numel() > 0) {
    copy_elements(u, expand(eye(m, {.dtype = a.dtype(), .device = a.device()}), u.shape()));
  }
  if (!vectors) return {{}, s, {}};
  return wide ? Singular{mT(vh), s, u} : Singular{mT(u), s, vh};
}

Tensor svd_gradient(const Singular& x, const std::vector<Tensor>& grads) {
  const Tensor &grad_u = grads[0], &grad_s = grads[1], &grad_vh = grads[2];
  const int64_t m = x.u.size(-2), n = x.vh.size(-1), k = x.s.size(-1);
  if (!grad_u.defined() && !grad_vh.defined()) {
    if (!grad_s.defined()) return {};
    return m >= n ? matmul(x.u, mul(unsqueeze(grad_s, -1), x.vh))
                  : matmul(mul(x.u, unsqueeze(grad_s, -2)), x.vh);
  }
  const Tensor row = unsqueeze(x.s, -2), column = unsqueeze(x.s, -1);
  const Tensor inverse = inverse_differences(mul(sub(row, column), add(row, column)));
  Tensor inner;
  const auto add_to = [](Tensor& sum, const Tensor& more) { sum = sum.defined() ? add(sum, more) : more; };
  if (grad_u.defined()) add_to(inner, mul(mul(skew(matmul(mT(x.u), grad_u)), inverse), row));
  if (grad_vh.defined()) add_to(inner, mul(column, mul(skew(matmul(x.vh, mT(grad_vh))), inverse)));
  if (grad_s.defined()) add_to(inner, diag_embed(grad_s));
  if (m > k && grad_u.defined()) {
    const Tensor divided = div(grad_u, row);
    const Tensor outside = sub(divided, matmul(x.u, matmul(mT(x.u), divided)));
    return matmul(add(matmul(x.u, inner), outside), x.vh);
  }
  if (n > k && grad_vh.defined()) {
    const Tensor divided = div(grad_vh, column);
    const Tensor outside = sub(divided, matmul(matmul(divided, mT(x.vh)), x.vh));
    return matmul(x.u, add(matmul(inner, x.vh), outside));
  }
  return m >= n ? matmul(x.u, matmul(inner, x.vh)) : matmul(matmul(x.u, inner), x.vh);
}

struct LinalgSvd : autograd::Function<LinalgSvd> {
  static std::tuple<Tensor, Tensor, Tensor> forward(autograd::FunctionContext& context, const Tensor& a,
                                                    bool full) {
    context.set_materialize_grads(false);
    const Singular found = find_singular_values("linalg.svd", a, /*vectors=*/true, full);
    context.save_for_backward({found.u, found.s, found.vh});
    return {found.u, found.s, found.vh};
  }
  static std::vector<Tensor> backward(const autograd::FunctionContext& context, std::vector<Tensor> grads) {
    const std::vector<Tensor> saved = context.saved_tensors();
    const int64_t k = saved[1].size(-1);
    const auto part = [k](const Tensor& x, int64_t dim) { return x.defined() ? narrow(x, dim, 0, k) : x; };
    return {svd_gradient({part(saved[0], -1), saved[1], part(saved[2], -2)},
                         {part(grads[0], -1), grads[1], part(grads[2], -2)})};
  }
};

void check_driver(const char* op, std::optional<std::string_view> driver) {
  TERN_CHECK(!driver || *driver == "gesvd" || *driver == "gesvdj" || *driver == "gesvda", ValueError,
             "{}: unrecognized driver '{}': leave it out", op, driver.value_or(""));
}

/// What singular values (the largest of which is `largest`, [..., 1]) must be above.
Tensor threshold_of(const Tensor& a, const Tensor& largest, std::optional<double> atol,
                    std::optional<double> rtol) {
  const double relative = rtol ? *rtol
                          : atol && *atol > 0
                              ? 0
                              : eps_of(a.dtype()) * static_cast<double>(std::max(a.size(-1), a.size(-2)));
  return clamp_min(mul(largest, relative), atol.value_or(0));
}

/// The Moore-Penrose inverse by its factors, without history.
Tensor find_pinv(const Tensor& a, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
  const NoGradGuard no_grad;
  if (a.numel() == 0) return made(a, {a.size(-1), a.size(-2)});
  Tensor values, left, right;  // a = left @ diag(values) @ right^T
  if (hermitian) {
    std::tie(values, left) = find_eigenvalues("linalg.pinv", a, /*upper=*/false, /*vectors=*/true);
    right = left;
  } else {
    const Singular found = find_singular_values("linalg.pinv", a, /*vectors=*/true, /*full=*/false);
    values = found.s, left = found.u, right = mT(found.vh);
  }
  const Tensor sizes = abs(values);
  const Tensor kept = gt(sizes, threshold_of(a, amax(sizes, {-1}, /*keepdim=*/true), atol, rtol));
  const Tensor inverse = where(kept, reciprocal(values), 0.0);
  return matmul(mul(right, unsqueeze(inverse, -2)), mT(left));
}

/// |a| * |a^-1|; infinite without an inverse.
Tensor cond_by_inverse(const Tensor& a, auto p) {
  auto [inverse, info] = inv_ex(a);
  const Tensor regular = eq(info, 0);
  inverse = where(unsqueeze(unsqueeze(regular, -1), -1), inverse, 0.0);
  const Tensor product = mul(matrix_norm(a, p), matrix_norm(inverse, p));
  return where(regular, product, std::numeric_limits<double>::infinity());
}

}  // namespace

std::pair<Tensor, Tensor> eigh(const Tensor& a, std::string_view uplo) {
  if (autocasts_on_cpu(a)) [[unlikely]]
    return autocast_float32(eigh, a, uplo);
  check_matrices("linalg.eigh", a, /*square=*/true);
  const bool upper = is_upper("linalg.eigh", uplo);
  if (tracks_grad(a)) return LinalgEigh::apply(a, upper);
  return find_eigenvalues("linalg.eigh", a, upper, /*vectors=*/true);
}

Tensor eigvalsh(const Tensor& a, std::string_view uplo) {
  if (autocasts_on_cpu(a)) [[unlikely]]
    return autocast_float32(eigvalsh, a, uplo);
  check_matrices("linalg.eigvalsh", a, /*square=*/true);
  const bool upper = is_upper("linalg.eigvalsh", uplo);
  if (tracks_grad(a)) return LinalgEigh::apply(a, upper).first;
  return find_eigenvalues("linalg.eigvalsh", a, upper, /*vectors=*/false).first;
}

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& a, bool full_matrices,
                                       std::optional<std::string_view> driver) {
  if (autocasts_on_cpu(a)) [[unlikely]]
    return autocast_float32(svd, a, full_matrices, driver);
  check_matrices("linalg.svd", a);
  check_driver("linalg.svd", driver);
  if (tracks_grad(a)) return LinalgSvd::apply(a, full_matrices);
  const Singular found = find_singular_values("linalg.svd", a, /*vectors=*/true, full_matrices);
  return {found.u, found.s, found.vh};
}

Tensor svdvals(const Tensor& a, std::optional<std::string_view> driver) {
  if (autocasts_on_cpu(a)) [[unlikely]]
    return autocast_float32(svdvals, a, driver);
  check_matrices("linalg.svdvals", a);
  check_driver("linalg.svdvals", driver);
  if (tracks_grad(a)) return std::get<1>(LinalgSvd::apply(a, /*full=*/false));
  return find_singular_values("linalg.svdvals", a, /*vectors=*/false, /*full=*/false).s;
}

Tensor pinv(const Tensor& a, std::optional<double> rtol, bool hermitian, std::optional<double> atol) {
  check_matrices("linalg.pinv", a, hermitian);
  const AutocastPause full_precision;
  Tensor y = find_pinv(a.detach(), atol, rtol, hermitian);
  if (tracks_grad(a))
    record("linalg_pinv", y, {a}, [a_ = save(a), y_ = save_output(y)](GradContext& c, const Tensor& g) {
      // G. Golub and V. Pereyra, "The differentiation of pseudo-inverses" (1973).
      const Tensor x = c[a_], p = c[y_], pt = mT(p), gt = mT(g);
      const Tensor through = matmul(pt, matmul(g, pt));
      const Tensor left = matmul(gt, matmul(p, pt)), right = matmul(matmul(pt, p), gt);
      return add(sub(sub(left, matmul(x, matmul(p, left))), through),
                 sub(right, matmul(matmul(right, p), x)));
    });
  return y;
}

Tensor matrix_rank(const Tensor& a, std::optional<double> tol, bool hermitian, std::optional<double> atol,
                   std::optional<double> rtol) {
  if (autocasts_on_cpu(a)) [[unlikely]]
    return autocast_float32(matrix_rank, a, tol, hermitian, atol, rtol);
  const char* op = "linalg.matrix_rank";
  check_matrices(op, a, hermitian);
  const NoGradGuard no_grad;
  if (a.numel() == 0) return zeros(with_sizes(a, {}), {.dtype = DType::Int64, .device = a.device()});
  const Tensor values = hermitian ? abs(find_eigenvalues(op, a, /*upper=*/false, /*vectors=*/false).first)
                                  : find_singular_values(op, a, /*vectors=*/false, /*full=*/false).s;
  const Tensor threshold = threshold_of(a, amax(values, {-1}, /*keepdim=*/true), tol ? tol : atol,
                                        tol ? std::optional<double>(0) : rtol);
  return sum(gt(values, threshold), -1);
}

Tensor cond(const Tensor& a, std::optional<double> p) {
  if (autocasts_on_cpu(a)) [[unlikely]]
    return autocast_float32([](const Tensor& x, std::optional<double> order) { return cond(x, order); }, a,
                            p);
  check_matrices("linalg.cond", a, p && *p != 2 && *p != -2);
  if (!p || *p == 2 || *p == -2) {
    if (a.numel() == 0) return zeros(with_sizes(a, {}), {.dtype = a.dtype(), .device = a.device()});
    const Tensor values = svdvals(a), largest = select(values, -1, 0), smallest = select(values, -1, -1);
    return p && *p == -2 ? div(smallest, largest) : div(largest, smallest);
  }
  return cond_by_inverse(a, *p);
}

Tensor cond(const Tensor& a, std::string_view p) {
  if (autocasts_on_cpu(a)) [[unlikely]]
    return autocast_float32([](const Tensor& x, std::string_view order) { return cond(x, order); }, a, p);
  check_matrices("linalg.cond", a, /*square=*/true);
  return cond_by_inverse(a, p);
}

}  // namespace tern::linalg
