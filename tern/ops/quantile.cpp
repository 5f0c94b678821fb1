// Quantiles: sorting, then the elements at two neighbouring places and what lies between them.
#include "tern/ops/quantile.h"

#include <algorithm>
#include <cmath>

#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tern/ops/sort.h"

namespace tern {
namespace {

enum class Between { Linear, Lower, Higher, Midpoint, Nearest };

struct Quantile {
  const char* op;
  bool ignore_nan;

  Tensor operator()(const Tensor& x, double q, std::optional<int64_t> dim, bool keepdim,
                    std::string_view interpolation) const {
    TERN_CHECK(q >= 0 && q <= 1, ValueError, "{}: q must be in the range [0, 1] but got {}", op, q);
    check_dtype(x);
    if (ignore_nan)
      return of(x, full({}, q, {.dtype = x.dtype(), .device = x.device()}), dim, keepdim, interpolation);
    const Between kind = between(interpolation);
    const Tensor rows = rows_of(x, dim);
    const double rank = rank_of(q, rows, kind), low = std::floor(rank);
    const Tensor nan = last_nan(rows.detach()), has_nan = ge(nan, 0);
    const auto element = [&](double number) {
      const Tensor place =
          kthvalue(rows.detach(), static_cast<int64_t>(number) + 1, -1, /*keepdim=*/true).second;
      return gather(rows, -1, where(has_nan, nan, place));
    };
    Tensor y = element(low);
    if (is_between(kind)) {
      const Tensor above = rank == low ? y : element(low + 1);
      y = lerp(y, above, kind == Between::Midpoint ? 0.5 : rank - low);
    }
    return squeeze(placed(y, x, dim, keepdim), -1);
  }

  Tensor operator()(const Tensor& x, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                    std::string_view interpolation) const {
    check_dtype(x);
    check_same_device(op, {{"x", x}, {"q", q}});
    TERN_CHECK(
        q.dtype() == x.dtype(), DTypeError,
        "{}: q tensor must be same dtype as the input tensor, got {} and {}: convert one with to(dtype)", op,
        name(q.dtype()), name(x.dtype()));
    TERN_CHECK(q.dim() <= 1, ShapeError, "{}: q must be a scalar or 1D tensor, got shape {}", op,
               to_string(q.shape()));
    TERN_CHECK(!q.device().is_cpu() || q.numel() == 0 || item(all(logical_and(ge(q, 0), le(q, 1)))).to_bool(),
               ValueError, "{}: q values must be in the range [0, 1]", op);
    return of(x, q, dim, keepdim, interpolation);
  }

 private:
  void check_dtype(const Tensor& x) const {
    TERN_CHECK(x.dtype() == DType::Float32 || x.dtype() == DType::Float64, DTypeError,
               "{}: input tensor must be either float32 or float64, got {}: convert it with to(float32)", op,
               name(x.dtype()));
    TERN_CHECK(x.numel() > 0, ValueError, "{}: input tensor must be non-empty, got shape {}", op,
               to_string(x.shape()));
  }

  Between between(std::string_view word) const {
    constexpr std::string_view words[] = {"linear", "lower", "higher", "midpoint", "nearest"};
    for (size_t i = 0; i < std::size(words); ++i)
      if (words[i] == word) return static_cast<Between>(i);
    TERN_THROW(ValueError,
               "{}: interpolation must be one of linear, lower, higher, midpoint or nearest, but got {}", op,
               word);
  }

  static bool is_between(Between kind) { return kind == Between::Linear || kind == Between::Midpoint; }

  /// What quantiles are taken of, as the last dimension.
  Tensor rows_of(const Tensor& x, std::optional<int64_t> dim) const {
    return !dim || x.dim() == 0 ? reshape(x, {-1}) : movedim(x, wrap_dim(*dim, x.dim(), op), -1);
  }

  /// q * (n - 1), computed in the dtype of the rows, to which both were rounded.
  static double rank_of(double q, const Tensor& rows, Between kind) {
    const double last = static_cast<double>(rows.size(-1) - 1);
    const double rank =
        rows.dtype() == DType::Float64
            ? q * last
            : std::min(last, static_cast<double>(static_cast<float>(q) * static_cast<float>(last)));
    return kind == Between::Lower     ? std::floor(rank)
           : kind == Between::Higher  ? std::ceil(rank)
           : kind == Between::Nearest ? std::nearbyint(rank)
                                      : rank;
  }

  /// The place of the last NaN of each row, which takes its gradient as in PyTorch: [..., 1]; -1 for none.
  static Tensor last_nan(const Tensor& rows) {
    const Tensor places = arange(rows.size(-1), {.device = rows.device()});
    return amax(where(isnan(rows), places, -1), -1, /*keepdim=*/true);
  }

  /// y [..., number of q] with the reduced dimension wherever it belongs, and the number of q last.
  Tensor placed(const Tensor& y, const Tensor& x, std::optional<int64_t> dim, bool keepdim) const {
    if (!keepdim) return y;
    if (!dim || x.dim() == 0) return reshape(y, kept_shape(x, y.size(-1)));
    return unsqueeze(y, wrap_dim(*dim, x.dim(), op));
  }

  /// q * (n - 1), n being how many elements count, for each row: [..., 1] or [..., number of q].
  Tensor places(const Tensor& sorted, const Tensor& q) const {
    const Tensor nan = isnan(sorted), wide = q.dim() == 0 ? reshape(q, {1}) : q;
    if (ignore_nan)
      return clamp(mul(wide, sub(to(sum(logical_not(nan), -1, /*keepdim=*/true), q.dtype()), 1)), 0, {});
    const double last = static_cast<double>(sorted.size(-1) - 1);
    return where(any(nan, -1, /*keepdim=*/true), last, mul(wide, last));
  }

  Tensor of(const Tensor& x, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
            std::string_view interpolation) const {
    const Between kind = between(interpolation);
    const Tensor rows = rows_of(x, dim);
    const auto [sorted, order] = sort(rows.detach(), -1);
    Tensor ranks = places(sorted, q);
    if (kind == Between::Lower) ranks = floor(ranks);
    if (kind == Between::Higher) ranks = ceil(ranks);
    if (kind == Between::Nearest) ranks = round(ranks);
    const Tensor low = to(floor(ranks), DType::Int64);
    Tensor y = gather(rows, -1, gather(order, -1, low));
    if (is_between(kind)) {
      const Tensor above = gather(rows, -1, gather(order, -1, to(ceil(ranks), DType::Int64)));
      y = kind == Between::Midpoint ? lerp(y, above, 0.5)
                                    : lerp(y, above, sub(ranks, to(low, ranks.dtype())));
    }
    y = placed(y, x, dim, keepdim);
    return q.dim() == 0 ? squeeze(y, -1) : movedim(y, -1, 0);
  }

  static Shape kept_shape(const Tensor& x, int64_t last) {
    Shape shape(x.shape().size(), 1);
    shape.push_back(last);
    return shape;
  }
};

/// `q` is a number or a tensor.
template <class Q>
Tensor quantile_of(const Quantile& quantile, const Tensor& x, const Q& q, std::optional<int64_t> dim,
                   bool keepdim, std::string_view interpolation) {
  if (autocasts_on_cpu(x)) [[unlikely]]
    return autocast_float32(quantile, x, q, dim, keepdim, interpolation);
  return quantile(x, q, dim, keepdim, interpolation);
}

constexpr Quantile kQuantile{"quantile", /*ignore_nan=*/false};
constexpr Quantile kNanQuantile{"nanquantile", /*ignore_nan=*/true};

}  // namespace

Tensor quantile(const Tensor& x, double q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
  return quantile_of(kQuantile, x, q, dim, keepdim, interpolation);
}
Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
  return quantile_of(kQuantile, x, q, dim, keepdim, interpolation);
}
Tensor nanquantile(const Tensor& x, double q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  return quantile_of(kNanQuantile, x, q, dim, keepdim, interpolation);
}
Tensor nanquantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  return quantile_of(kNanQuantile, x, q, dim, keepdim, interpolation);
}

}  // namespace tern
