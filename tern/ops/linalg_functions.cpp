// Functions and products of matrices, least squares, norms: made of other operators.
#include <cmath>
#include <limits>

#include "tern/ops/autocast_rules.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/diagonal.h"
#include "tern/ops/index.h"
#include "tern/ops/linalg.h"
#include "tern/ops/linalg_common.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/products.h"
#include "tern/ops/reduce.h"
#include "tern/ops/scan.h"
#include "tern/ops/shape.h"

namespace tern::linalg {
namespace {

using namespace detail;

/// Coefficients of the numerator of the Pade approximant of exp of degree 13; with signs those of the
/// denominator.
constexpr double kPade[] = {64764752532480000,
                            32382376266240000,
                            7771770303897600,
                            1187353796428800,
                            129060195264000,
                            10559470521600,
                            670442572800,
                            33522128640,
                            1323241920,
                            40840800,
                            960960,
                            16380,
                            182,
                            1};
/// The largest 1-norm for which it is exact to float64.
constexpr double kPadeNorm = 5.371920351148152;

/// exp of matrices, without history.
Tensor find_exp(const Tensor& a) {
  const Tensor one = eye(a.size(-1), {.dtype = a.dtype(), .device = a.device()});
  const Tensor norms = amax(sum(abs(a), -2), {-1}, /*keepdim=*/true);
  Tensor halvings = clamp_min(ceil(log2(div(norms, kPadeNorm))), 0);
  // What is not finite is not scaled; it makes all of the result NaN.
  halvings = where(isfinite(norms), halvings, 0.0);
  const auto most = static_cast<int64_t>(amax(halvings).item<double>());
  const Tensor x = mul(a, unsqueeze(exp2(neg(halvings)), -1));
  const Tensor x2 = matmul(x, x), x4 = matmul(x2, x2), x6 = matmul(x4, x2);
  const auto sum_of = [&](int first) {  // kPade[first], [first + 2], ... times x^0, x^2, x^4, x^6
    return add(add(add(mul(x6, kPade[first + 6]), mul(x4, kPade[first + 4])), mul(x2, kPade[first + 2])),
               mul(one, kPade[first]));
  };
  const auto high = [&](int first) {
    return matmul(x6, add(add(mul(x6, kPade[first + 4]), mul(x4, kPade[first + 2])), mul(x2, kPade[first])));
  };
  const Tensor odd = matmul(x, add(high(9), sum_of(1))), even = add(high(8), sum_of(0));
  Tensor y = solve_ex(sub(even, odd), add(even, odd)).first;
  for (int64_t i = 0; i < most; ++i) y = where(unsqueeze(gt(halvings, i), -1), matmul(y, y), y);
  return y;
}

/// Of a chain of matrices a[i] @ ... @ a[j] the cheapest order: splits[i][j] (T. Cormen et al., "Introduction
/// to Algorithms", matrix-chain multiplication).
std::vector<std::vector<size_t>> cheapest_order(const std::vector<Tensor>& tensors) {
  const size_t count = tensors.size();
  std::vector<double> sizes{static_cast<double>(tensors[0].size(0))};
  for (const Tensor& x : tensors) sizes.push_back(static_cast<double>(x.size(1)));
  std::vector<std::vector<double>> costs(count, std::vector<double>(count, 0));
  std::vector<std::vector<size_t>> splits(count, std::vector<size_t>(count, 0));
  for (size_t length = 1; length < count; ++length)
    for (size_t i = 0; i + length < count; ++i) {
      const size_t j = i + length;
      costs[i][j] = std::numeric_limits<double>::infinity();
      for (size_t k = i; k < j; ++k) {
        const double cost = costs[i][k] + costs[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
        if (cost < costs[i][j]) {
          costs[i][j] = cost;
          splits[i][j] = k;
        }
      }
    }
  return splits;
}

Tensor multiply_chain(const std::vector<Tensor>& tensors, const std::vector<std::vector<size_t>>& splits,
                      size_t i, size_t j) {
  if (i == j) return tensors[i];
  const size_t k = splits[i][j];
  return mm(multiply_chain(tensors, splits, i, k), multiply_chain(tensors, splits, k + 1, j));
}

/// The two dimensions of the matrices, wrapped.
std::pair<int64_t, int64_t> matrix_dims(const char* op, const Tensor& a, IntArrayRef dims) {
  TERN_CHECK(dims.size() == 2, ShapeError, "{}: dim must be a tuple of two dimensions, got {}", op,
             to_string(dims));
  TERN_CHECK(a.dim() >= 2, ShapeError, "{}: The input tensor A must have at least 2 dimensions, got shape {}",
             op, to_string(a.shape()));
  const int64_t rows = wrap_dim(dims[0], a.dim(), op), columns = wrap_dim(dims[1], a.dim(), op);
  TERN_CHECK(rows != columns, ValueError, "{}: dims must be different. Got {}", op, to_string(dims));
  return {rows, columns};
}

/// The matrices as the last two dimensions, as `dtype`.
Tensor matrices_of(const char* op, const Tensor& a, IntArrayRef dims, std::optional<DType> dtype) {
  const auto [rows, columns] = matrix_dims(op, a, dims);
  const Tensor moved = movedim(a, {rows, columns}, {-2, -1});
  return dtype && *dtype != a.dtype() ? to(moved, *dtype) : moved;
}

/// A result of matrices_of()'s batch, with sizes of 1 where the matrices were, if they are to be kept.
Tensor with_kept(const Tensor& y, const Tensor& a, IntArrayRef dims, bool keepdim) {
  if (!keepdim) return y;
  const auto [rows, columns] = matrix_dims("linalg.matrix_norm", a, dims);
  return unsqueeze(unsqueeze(y, std::min(rows, columns)), std::max(rows, columns));
}

void check_floating(const char* op, const Tensor& a) {
  TERN_CHECK(is_floating_point(a.dtype()), DTypeError,
             "{}: Expected a floating point tensor as input, got {}: convert it with to(float32)", op,
             name(a.dtype()));
}

Shape all_dims_of(const Tensor& x) {
  Shape dims;
  for (int64_t d = 0; d < x.dim(); ++d) dims.push_back(d);
  return dims;
}

/// The x of least |a @ x - b| for a of full rank.
Tensor least_squares_by_qr(const Tensor& a, const Tensor& b) {
  const bool tall = a.size(-2) >= a.size(-1);
  const auto [q, r] = qr(tall ? a : mT(a));
  if (tall) return solve_triangular(r, matmul(mT(q), b), /*upper=*/true);
  return matmul(q, solve_triangular(mT(r), b, /*upper=*/false));
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const Tensor& a, const Tensor& b,
                                                 std::optional<double> rcond,
                                                 std::optional<std::string_view> driver) {
  if (autocasts_on_cpu(a)) [[unlikely]]
    return autocast_float32(lstsq, a, b, rcond, driver);
  const AutocastPause full_precision;
  const char* op = "linalg.lstsq";
  check_matrices(op, a);
  TERN_CHECK(b.defined() && b.dim() >= 1, ShapeError, "{}: other must have at least 1 dimension", op);
  check_pair(op, "input", a, "other", b);
  const std::string_view way = driver.value_or(a.device().is_cpu() ? "gelsy" : "gels");
  const bool by_qr = way == "gels";
  TERN_CHECK(by_qr || way == "gelsy" || way == "gelsd" || way == "gelss", ValueError,
             "{}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got '{}'", op, way);
  const bool is_vector = b.dim() + 1 == a.dim();
  const Tensor right = is_vector ? unsqueeze(b, -1) : b;
  TERN_CHECK(right.dim() == a.dim() && right.size(-2) == a.size(-2), ShapeError,
             "{}: input.size(-2) should match other.size(-2): input is {}, other is {}", op,
             to_string(a.shape()), to_string(b.shape()));
  TERN_CHECK(with_sizes(right, {}) == with_sizes(a, {}), ShapeError,
             "{}: the batches of input and other differ: {} and {}: expand one", op, to_string(a.shape()),
             to_string(b.shape()));
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  Tensor x, rank = empty_of({0}, a), values = empty_of({0}, a);
  rank = cast(rank, DType::Int64);
  bool full = true;  // of full rank, all of them
  if (by_qr) {
    x = least_squares_by_qr(a, right);
  } else {
    const double tolerance = rcond.value_or(eps_of(a.dtype()) * static_cast<double>(std::max(m, n)));
    const Tensor singular = svdvals(a.detach());
    rank = k == 0 ? zeros(with_sizes(a, {}), {.dtype = DType::Int64, .device = a.device()})
                  : sum(gt(singular, mul(narrow(singular, -1, 0, 1), tolerance)), -1);
    // QR is as exact for matrices of full rank, and cheaper.
    full = a.numel() == 0 || amin(rank).item<int64_t>() == k;
    x = full ? least_squares_by_qr(a, right) : matmul(pinv(a, tolerance), right);
    if (way != "gelsy") values = singular;
  }
  Tensor residuals = empty_of({0}, a);
  if (m > n && full) residuals = sum(square(sub(matmul(a, x), right)), -2);
  return {is_vector ? squeeze(x, -1) : x, residuals, rank, values};
}

Tensor matrix_power(const Tensor& a, int64_t n) {
  const char* op = "linalg.matrix_power";
  TERN_CHECK(a.dim() >= 2 && a.size(-1) == a.size(-2), ShapeError,
             "{}: A must be batches of square matrices, but its shape is {}", op, to_string(a.shape()));
  TERN_CHECK(n >= 0 || is_floating_point(a.dtype()), DTypeError,
             "{}: negative powers need a floating point tensor, got {}", op, name(a.dtype()));
  if (n == 0) return expand(eye(a.size(-1), {.dtype = a.dtype(), .device = a.device()}), a.shape()).clone();
  Tensor square = n < 0 ? inv(a) : a, result;
  for (uint64_t rest = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);;) {
    if (rest & 1) result = result.defined() ? matmul(result, square) : square;
    rest >>= 1;
    if (rest == 0) break;
    square = matmul(square, square);
  }
  return n == 1 ? clone(result) : result;
}

Tensor matrix_exp(const Tensor& a) {
  const AutocastPause full_precision;
  if (a.dtype() == DType::Float16 || a.dtype() == DType::BFloat16)
    return to(matrix_exp(to(a, DType::Float32)), a.dtype());
  check_matrices("linalg.matrix_exp", a, /*square=*/true);
  const auto find = [](const Tensor& x) {
    const NoGradGuard no_grad;
    return x.numel() == 0 ? clone(x.detach()) : find_exp(x.detach());
  };
  Tensor y = find(a);
  if (tracks_grad(a))
    record("linalg_matrix_exp", y, {a}, [a_ = save(a)](GradContext& c, const Tensor& g) {
      // exp([[x, g], [0, x]]) has the derivative of exp at x along g above its diagonal (N. Higham,
      // "Functions of Matrices", 2008, theorem 3.6).
      const Tensor x = mT(c[a_]);
      const int64_t n = x.size(-1);
      const Tensor whole = cat({cat({x, g}, -1), cat({zeros_like(x), x}, -1)}, -2);
      return narrow(narrow(matrix_exp(whole), -2, 0, n), -1, n, n);
    });
  return y;
}

Tensor multi_dot(const std::vector<Tensor>& tensors) {
  if (autocasts_on_gpu(tensors)) [[unlikely]]
    return autocast_lower(multi_dot, tensors);
  const char* op = "linalg.multi_dot";
  TERN_CHECK(tensors.size() >= 2, ValueError, "{}: expected at least 2 tensors but got {}", op,
             tensors.size());
  std::vector<Tensor> matrices = tensors;
  const size_t last = tensors.size() - 1;
  for (size_t i = 0; i <= last; ++i) {
    const bool may_be_vector = i == 0 || i == last;
    TERN_CHECK(tensors[i].dim() == 2 || (may_be_vector && tensors[i].dim() == 1), ShapeError,
               "{}: tensor {} must be {}, but got shape {}", op, i, may_be_vector ? "1D or 2D" : "2D",
               to_string(tensors[i].shape()));
  }
  const bool row = tensors[0].dim() == 1, column = tensors[last].dim() == 1;
  if (row) matrices[0] = unsqueeze(tensors[0], 0);
  if (column) matrices[last] = unsqueeze(tensors[last], -1);
  for (size_t i = 0; i < last; ++i) {
    check_factors(op, matrices[i], matrices[i + 1]);
    TERN_CHECK(matrices[i].size(1) == matrices[i + 1].size(0), ShapeError,
               "{}: tensors {} and {} with shapes {} and {} cannot be multiplied", op, i, i + 1,
               to_string(matrices[i].shape()), to_string(matrices[i + 1].shape()));
  }
  Tensor y = multiply_chain(matrices, cheapest_order(matrices), 0, last);
  if (row) y = squeeze(y, 0);
  return column ? squeeze(y, -1) : y;
}

Tensor vander(const Tensor& x, std::optional<int64_t> n) {
  const char* op = "linalg.vander";
  TERN_CHECK(!is_bool(x.dtype()), DTypeError,
             "{}: not implemented for bool: convert the tensor with to(int64)", op);
  TERN_CHECK(x.dim() >= 1, ShapeError, "{}: The input must have at least one dimension", op);
  const int64_t columns = n.value_or(x.size(-1));
  TERN_CHECK(!n || columns > 1, ValueError, "{}: N must be greater than 1, got {}", op, columns);
  const DType dtype = is_floating_point(x.dtype()) ? x.dtype() : DType::Int64;
  const Tensor given = dtype == x.dtype() ? x : to(x, dtype);
  Tensor y = cumprod(expand(unsqueeze(given, -1),
                            [&] {
                              Shape shape = x.shape();
                              shape.push_back(std::max<int64_t>(columns - 1, 0));
                              return shape;
                            }()),
                     -1);
  return cat({ones_like(unsqueeze(given, -1)), y}, -1);
}

Tensor cross(const Tensor& a, const Tensor& b, int64_t dim) {
  return with_context("linalg", [&] { return tern::cross(a, b, dim); });
}

Tensor vecdot(const Tensor& a, const Tensor& b, int64_t dim) {
  if (autocasts(a)) [[unlikely]]
    return autocast_lower(vecdot, a, b, dim);
  const char* op = "linalg.vecdot";
  check_floating(op, a);
  check_pair(op, "x", a, "y", b);
  return sum(mul(a, b), dim);
}

Tensor diagonal(const Tensor& a, int64_t offset, int64_t dim1, int64_t dim2) {
  return tern::diagonal(a, offset, dim1, dim2);
}

Tensor vector_norm(const Tensor& x, double ord, IntArrayRef dims, bool keepdim, std::optional<DType> dtype) {
  check_floating("linalg.vector_norm", x);
  const Shape all = all_dims_of(x);
  return tern::norm(x, ord, dims.size() == 0 ? IntArrayRef(all) : dims, keepdim, dtype);
}

Tensor matrix_norm(const Tensor& a, std::string_view ord, IntArrayRef dims, bool keepdim,
                   std::optional<DType> dtype) {
  if (autocasts_on_gpu(a)) [[unlikely]]
    return autocast_float32([&](const Tensor& x) { return matrix_norm(x, ord, dims, keepdim, dtype); }, a);
  const char* op = "linalg.matrix_norm";
  check_floating(op, a);
  TERN_CHECK(ord == "fro" || ord == "nuc", ValueError, "{}: Order '{}' not supported: 'fro' and 'nuc' are",
             op, ord);
  if (ord == "fro") {
    const auto [rows, columns] = matrix_dims(op, a, dims);
    return tern::norm(a, 2, {rows, columns}, keepdim, dtype);
  }
  return with_kept(sum(svdvals(matrices_of(op, a, dims, dtype)), -1), a, dims, keepdim);
}

Tensor matrix_norm(const Tensor& a, double ord, IntArrayRef dims, bool keepdim, std::optional<DType> dtype) {
  if (autocasts_on_gpu(a)) [[unlikely]]
    return autocast_float32([&](const Tensor& x) { return matrix_norm(x, ord, dims, keepdim, dtype); }, a);
  const char* op = "linalg.matrix_norm";
  check_floating(op, a);
  const double size = std::abs(ord);
  TERN_CHECK(size == 1 || size == 2 || std::isinf(size), ValueError,
             "{}: Order {} not supported: 1, 2, inf and their negatives are", op, ord);
  const Tensor matrices = matrices_of(op, a, dims, dtype);
  const Tensor numbers = size == 2 ? svdvals(matrices) : sum(abs(matrices), size == 1 ? -2 : -1);
  return with_kept(ord > 0 ? amax(numbers, {-1}) : amin(numbers, {-1}), a, dims, keepdim);
}

Tensor norm(const Tensor& a, std::optional<double> ord, IntArrayRef dims, bool keepdim,
            std::optional<DType> dtype) {
  const char* op = "linalg.norm";
  check_floating(op, a);
  if (!ord) return vector_norm(a, 2, dims, keepdim, dtype);
  const size_t count = dims.size() == 0 ? static_cast<size_t>(a.dim()) : dims.size();
  TERN_CHECK(
      count == 1 || count == 2, ShapeError,
      "{}: If dim is not specified but ord is, the input must be 1D or 2D, and dim must be of one or two "
      "dimensions. Got a {}D tensor and {} dimensions",
      op, a.dim(), dims.size());
  if (count == 1) return vector_norm(a, *ord, dims, keepdim, dtype);
  return matrix_norm(a, *ord, dims.size() == 0 ? IntArrayRef{-2, -1} : dims, keepdim, dtype);
}

Tensor norm(const Tensor& a, std::string_view ord, IntArrayRef dims, bool keepdim,
            std::optional<DType> dtype) {
  TERN_CHECK(dims.size() != 0 || a.dim() == 2, ShapeError,
             "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D, and 2D for '{}'. "
             "Got a {}D "
             "tensor",
             ord, a.dim());
  return matrix_norm(a, ord, dims.size() == 0 ? IntArrayRef{-2, -1} : dims, keepdim, dtype);
}

}  // namespace tern::linalg
