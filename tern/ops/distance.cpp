// Normalized vectors, cosine similarity and distances.
#include "tern/ops/distance.h"

#include <array>
#include <cmath>

#include "tern/autograd/arithmetic.h"
#include "tern/kernels/distance.h"
#include "tern/kernels/list.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/diagonal.h"
#include "tern/ops/index.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// x as long as the result along d; other dimensions broadcast by themselves.
Tensor stretched(const Tensor& x, const Shape& result, size_t d) {
  if (result.empty()) return x;
  Shape shape(result.size() - x.shape().size(), 1);
  for (const int64_t size : x.shape()) shape.push_back(size);
  shape[d] = result[d];
  return expand(x, shape);
}

/// x / max(|x|, eps), where the gradient does not know of eps.
Tensor unit(const Tensor& x, int64_t dim, double eps) {
  Tensor length = clone(norm(x, 2, dim, /*keepdim=*/true));
  {
    const NoGradGuard no_grad;
    length.clamp_(eps, {});
  }
  return div(x, length);
}

}  // namespace

Tensor normalize(const Tensor& x, double p, int64_t dim, double eps) {
  return div(x, clamp(norm(x, p, dim, /*keepdim=*/true), eps, {}));
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim, double eps) {
  if (autocasts_on_gpu(a)) [[unlikely]]
    return autocast_float32(cosine_similarity, a, b, dim, eps);
  const char* op = "cosine_similarity";
  check_same_device(op, {{"a", a}, {"b", b}});
  const DType dtype = result_type(a, b);
  TERN_CHECK(is_floating_point(dtype), DTypeError,
             "{}: expected common dtype to be floating point, yet common dtype is {}: convert one with "
             "to(float32)",
             op, name(dtype));
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), op);
  const size_t d = static_cast<size_t>(wrap_dim(dim, static_cast<int64_t>(shape.size()), op));
  const Tensor x = stretched(to(a, dtype), shape, d), y = stretched(to(b, dtype), shape, d);
  return sum(mul(unit(x, dim, eps), unit(y, dim, eps)), dim);
}

Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
  return norm(add(sub(a, b), eps), p, -1, keepdim);
}

namespace {

/// sqrt(|a|^2 + |b|^2 - 2 a b) of rows [..., n, m] and [..., k, m], by one matrix product; no history.
Tensor distances_by_product(const Tensor& a, const Tensor& b) {
  const auto joined = [](const Tensor& first, const Tensor& second, const Tensor& third) {
    return cat({first, second, third}, -1);
  };
  const auto ones = [](const Tensor& norms) { return full_like(norms, 1); };
  const Tensor of_a = sum(square(a), -1, /*keepdim=*/true), of_b = sum(square(b), -1, /*keepdim=*/true);
  Tensor squares = matmul(joined(mul(a, -2), of_a, ones(of_a)), mT(joined(b, ones(of_b), of_b)));
  squares.clamp_(0).sqrt_();
  return squares;
}

DistanceProblem problem_of(const Tensor& a, const Tensor& b, double p) {
  return {a.dtype(), p, a.size(0), a.size(1), b.size(1), a.size(2), a.data_ptr(), b.data_ptr()};
}

/// The leading dimensions as one, dense.
Tensor flat_batch(const Tensor& x) { return contiguous(reshape(x, {-1, x.size(-2), x.size(-1)})); }

/// The norms of the differences; no history. None of the sizes is 0.
Tensor distances_by_difference(const Tensor& a, const Tensor& b, double p, const Shape& shape) {
  Tensor y = empty_of(shape, a);
  const Tensor of_a = flat_batch(a), of_b = flat_batch(b);
  launch(current_stream(a.device()), kernels::distance, {problem_of(of_a, of_b, p), y.data_ptr()});
  return y;
}

/// The sum over the rows of b of g times the slope of the norm of a - b.
Tensor slopes_by_difference(const Tensor& g, const Tensor& a, const Tensor& b, double p, const Tensor& y) {
  const Tensor difference = sub(unsqueeze(a, -2), unsqueeze(b, -3)), shares = unsqueeze(g, -1);
  if (p == 1) return sum(mul(sign(difference), shares), -2);
  const Tensor size = abs(difference), norms = unsqueeze(y, -1);
  if (std::isinf(p)) return sum(mul(mul(sign(difference), cast(eq(size, norms), a.dtype())), shares), -2);
  const Tensor nothing = logical_or(eq(norms, 0), eq(size, 0));
  const Tensor slope =
      mul(sign(difference), pow(div(where(nothing, 1, size), where(nothing, 1, norms)), p - 1));
  return sum(where(nothing, 0, mul(slope, shares)), -2);
}

/// The gradient of distances y for a, where they were found by a matrix product or not.
Tensor distance_gradient(const Tensor& g, const Tensor& a, const Tensor& b, double p, const Tensor& y,
                         bool by_product) {
  if (p == 0) return mul(a, 0);
  const bool tracks = tracks_grad(g, a, b, y);
  if (by_product || (p == 2 && tracks)) {
    const Tensor ratio = where(eq(y, 0), 0, div(g, y));
    return sub(mul(a, sum(ratio, -1, /*keepdim=*/true)), matmul(ratio, b));
  }
  if (tracks) return slopes_by_difference(g, a, b, p, y);
  if (y.numel() == 0 || a.numel() == 0) return zeros_like(a);
  Tensor grad = empty_of(a.shape(), a);
  const Tensor of_a = flat_batch(a), of_b = flat_batch(b), of_y = flat_batch(y), of_g = flat_batch(g);
  launch(current_stream(a.device()), kernels::distance_backward,
         {problem_of(of_a, of_b, p), of_y.data_ptr(), of_g.data_ptr(), grad.data_ptr()});
  return grad;
}

}  // namespace

Tensor cdist(const Tensor& given_a, const Tensor& given_b, double p, std::string_view compute_mode) {
  const char* op = "cdist";
  if (autocasts(given_a)) [[unlikely]]
    return autocast_float32(cdist, given_a, given_b, p, compute_mode);
  check_same_device(op, {{"a", given_a}, {"b", given_b}});
  TERN_CHECK(is_floating_point(given_a.dtype()) && given_a.dtype() == given_b.dtype(), DTypeError,
             "{}: only supports tensors of one floating-point dtype, got {} and {}: convert them with "
             "to(float32)",
             op, name(given_a.dtype()), name(given_b.dtype()));
  // 16 bits hold neither sums of many terms nor differences that are compared with the largest.
  if (itemsize(given_a.dtype()) < 4)
    return to(cdist(to(given_a, DType::Float32), to(given_b, DType::Float32), p, compute_mode),
              given_a.dtype());
  TERN_CHECK(given_a.dim() >= 2 && given_b.dim() >= 2 && given_a.size(-1) == given_b.size(-1), ShapeError,
             "{}: needs two tensors [..., n, m] and [..., k, m], got {} and {}", op,
             to_string(given_a.shape()), to_string(given_b.shape()));
  TERN_CHECK(p >= 0, ValueError, "{}: only supports non-negative p values, got {}", op, p);
  const bool always = compute_mode == "use_mm_for_euclid_dist",
             if_many = compute_mode == "use_mm_for_euclid_dist_if_necessary";
  TERN_CHECK(always || if_many || compute_mode == "donot_use_mm_for_euclid_dist", ValueError,
             "{}: {} is not a valid value for compute_mode", op, compute_mode);
  const auto leading = [](const Tensor& x) {
    Shape shape = x.shape();
    shape.resize(shape.size() - 2);
    return shape;
  };
  const Shape batch = broadcast_shapes(leading(given_a), leading(given_b), op);
  const auto stretch = [&](const Tensor& x) {
    Shape shape = batch;
    shape.push_back(x.size(-2));
    shape.push_back(x.size(-1));
    return expand(x, shape);
  };
  const Tensor a = stretch(given_a), b = stretch(given_b);
  Shape shape = batch;
  shape.push_back(a.size(-2));
  shape.push_back(b.size(-2));
  constexpr int64_t kFewRows = 25;
  const bool by_product = p == 2 && (always || (if_many && (a.size(-2) > kFewRows || b.size(-2) > kFewRows)));
  Tensor y;
  {
    const NoGradGuard no_grad;
    if (a.numel() == 0 || b.numel() == 0)
      y = filled(shape, a.dtype(), a.device(), 0);
    else if (by_product)
      y = distances_by_product(a, b);
    else
      y = distances_by_difference(a, b, p, shape);
  }
  if (tracks_grad(a, b))
    record(op, y, {a, b},
           [a_ = save(a), b_ = save(b), y_ = save_output(y), p, by_product](GradContext& c, const Tensor& g) {
             std::array<Tensor, 2> grads;
             if (c.needs(0)) grads[0] = distance_gradient(g, c[a_], c[b_], p, c[y_], by_product);
             if (c.needs(1)) grads[1] = distance_gradient(mT(g), c[b_], c[a_], p, mT(c[y_]), by_product);
             return grads;
           });
  return y;
}

Tensor pdist(const Tensor& x, double p) {
  const char* op = "pdist";
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(pdist, x, p);
  TERN_CHECK(x.dim() == 2, ShapeError, "{}: only supports 2D tensors, got: {}D", op, x.dim());
  TERN_CHECK(is_floating_point(x.dtype()), DTypeError, "{}: only supports floating-point dtypes, got {}", op,
             name(x.dtype()));
  TERN_CHECK(p >= 0, ValueError, "{}: only supports non-negative p values, got {}", op, p);
  const AutocastPause pause;  // cdist is on the list for the CPU too
  const Tensor distances = cdist(x, x, p, "donot_use_mm_for_euclid_dist");
  const Tensor pairs = triu_indices(x.size(0), x.size(0), 1, {.dtype = DType::Int64, .device = x.device()});
  return index(distances, {select(pairs, 0, 0), select(pairs, 0, 1)});
}

Tensor renorm(const Tensor& x, double p, int64_t dim, double maxnorm) {
  const char* op = "renorm";
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(renorm, x, p, dim, maxnorm);
  TERN_CHECK(p > 0, ValueError, "{}: non-positive norm not supported, got p = {}", op, p);
  TERN_CHECK(maxnorm >= 0, ValueError, "{}: expected maxnorm to be >= 0 but got {}", op, maxnorm);
  TERN_CHECK(x.dim() > 1, ShapeError, "{}: input needs at least 2 dimensions, got {}", op, x.dim());
  const int64_t d = wrap_dim(dim, x.dim(), op);
  Shape others;
  for (int64_t i = 0; i < x.dim(); ++i)
    if (i != d) others.push_back(i);
  const Tensor norms = norm(x, p, others, /*keepdim=*/true);
  return mul(x, where(gt(norms, maxnorm), mul(reciprocal(add(norms, 1e-7)), maxnorm), 1));
}

}  // namespace tern
