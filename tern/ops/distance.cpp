// Normalized vectors, cosine similarity and distances, made of other operators, whose gradients are theirs.
#include "tern/ops/distance.h"

#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
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

}  // namespace tern
