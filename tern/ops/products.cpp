// Products along dimensions, made of matrix products and of broadcast ones.
#include "tern/ops/products.h"

#include <algorithm>

#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {

Tensor tensordot(const Tensor& a, const Tensor& b, int64_t dims) {
  TERN_CHECK(dims >= 0, ValueError, "tensordot: expects dims >= 0, but got dims = {}", dims);
  TERN_CHECK(
      dims <= a.dim() && dims <= b.dim(), ShapeError,
      "tensordot: expects dims <= the number of dimensions of both tensors, but got dims = {}, a is {}, "
      "b is {}",
      dims, to_string(a.shape()), to_string(b.shape()));
  Shape of_a, of_b;
  for (int64_t i = 0; i < dims; ++i) {
    of_a.push_back(a.dim() - dims + i);
    of_b.push_back(i);
  }
  return tensordot(a, b, of_a, of_b);
}

Tensor tensordot(const Tensor& given_a, const Tensor& given_b, IntArrayRef dims_a, IntArrayRef dims_b) {
  const char* op = "tensordot";
  if (autocasts_on_gpu(given_a)) [[unlikely]]
    return autocast_widest([&](const Tensor& x, const Tensor& y) { return tensordot(x, y, dims_a, dims_b); },
                           given_a, given_b);
  TERN_CHECK(dims_a.size() == dims_b.size(), ShapeError,
             "{}: both dimension lists should have same length, got {} and {}", op, to_string(dims_a),
             to_string(dims_b));
  check_factors(op, given_a, given_b);
  Tensor a = given_a, b = given_b;
  Shape of_a, of_b;
  int64_t shared = 1;
  const auto add = [&](Shape& dims, int64_t dim, const Tensor& x) {
    const int64_t d = wrap_dim(dim, x.dim(), op);
    TERN_CHECK(std::find(dims.begin(), dims.end(), d) == dims.end(), ValueError,
               "{}: dim {} appears multiple times in the list of dims", op, d);
    dims.push_back(d);
    return d;
  };
  for (size_t i = 0; i < dims_a.size(); ++i) {
    const int64_t p = add(of_a, dims_a[i], a), q = add(of_b, dims_b[i], b);
    if (a.size(p) == 1)
      b = sum(b, q, /*keepdim=*/true, b.dtype());
    else if (b.size(q) == 1)
      a = sum(a, p, /*keepdim=*/true, a.dtype());
    TERN_CHECK(a.size(p) == b.size(q), ShapeError,
               "{}: contracted dimensions need to match, but first has size {} in dim {} and second has size "
               "{} in dim {}",
               op, a.size(p), p, b.size(q), q);
    shared *= a.size(p);
  }
  Shape free_a, free_b, result;
  const auto rest = [&](const Tensor& x, const Shape& taken, Shape& rest_of) {
    int64_t count = 1;
    for (int64_t d = 0; d < x.dim(); ++d)
      if (std::find(taken.begin(), taken.end(), d) == taken.end()) {
        rest_of.push_back(d);
        result.push_back(x.size(d));
        count *= x.size(d);
      }
    return count;
  };
  const int64_t rows = rest(a, of_a, free_a), cols = rest(b, of_b, free_b);
  with_context(op, [&] { checked_numel(result); });
  const auto joined = [](const Shape& first, const Shape& second) {
    Shape all = first;
    for (const int64_t d : second) all.push_back(d);
    return all;
  };
  const Tensor left = reshape(permute(a, joined(free_a, of_a)), {rows, shared});
  const Tensor right = reshape(permute(b, joined(of_b, free_b)), {shared, cols});
  if (result.empty())
    return dot(reshape(left, {shared}), reshape(right, {shared}));  // left alone by autocast
  return reshape(mm(left, right), result);
}

Tensor inner(const Tensor& a, const Tensor& b) {
  if (a.dim() == 0 || b.dim() == 0) return mul(a, b);
  TERN_CHECK(a.size(-1) == b.size(-1), ShapeError,
             "inner: the last dimension must match on both tensors, but got shapes {} and {}",
             to_string(a.shape()), to_string(b.shape()));
  return with_context("inner", [&] { return tensordot(a, b, {-1}, {-1}); });
}

Tensor kron(const Tensor& a, const Tensor& b) {
  const size_t rank = std::max(a.shape().size(), b.shape().size());
  Shape shape_a, shape_b, result;
  for (size_t d = 0; d < rank; ++d) {
    const auto size_of = [&](const Tensor& x) {
      const size_t missing = rank - x.shape().size();
      return d < missing ? 1 : x.shape()[d - missing];
    };
    shape_a.push_back(size_of(a));
    shape_a.push_back(1);
    shape_b.push_back(1);
    shape_b.push_back(size_of(b));
    int64_t size = 0;
    TERN_CHECK(!__builtin_mul_overflow(size_of(a), size_of(b), &size), ShapeError,
               "kron: the product of shapes {} and {} is more than a size can be", to_string(a.shape()),
               to_string(b.shape()));
    result.push_back(size);
  }
  return with_context("kron", [&] { return reshape(mul(reshape(a, shape_a), reshape(b, shape_b)), result); });
}

Tensor cross(const Tensor& a, const Tensor& b, std::optional<int64_t> dim) {
  const char* op = "cross";
  if (autocasts_on_gpu(a)) [[unlikely]]
    return autocast_widest(cross, a, b, dim);
  check_same_device(op, {{"a", a}, {"b", b}});
  TERN_CHECK(a.dim() == b.dim(), ShapeError,
             "{}: inputs must have the same number of dimensions, got {} and {}", op, to_string(a.shape()),
             to_string(b.shape()));
  TERN_CHECK(a.dtype() == b.dtype(), DTypeError, "{}: expected one dtype, got {} and {}: convert one", op,
             name(a.dtype()), name(b.dtype()));
  if (!dim) {
    for (int64_t d = 0; d < a.dim() && !dim; ++d)
      if (a.size(d) == 3) dim = d;
    TERN_CHECK(dim.has_value(), ShapeError, "{}: no dimension of size 3 in input of shape {}", op,
               to_string(a.shape()));
  }
  const int64_t d = wrap_dim(*dim, a.dim(), op);
  TERN_CHECK(a.dim() > 0 && a.size(d) == 3 && b.size(d) == 3, ShapeError,
             "{}: inputs dimension {} must have length 3. Got {} and {}", op, d, to_string(a.shape()),
             to_string(b.shape()));
  const auto turned = [&](const Tensor& x, int64_t by) { return roll(x, {-by}, {d}); };
  return sub(mul(turned(a, 1), turned(b, 2)), mul(turned(a, 2), turned(b, 1)));
}

}  // namespace tern
