// Variance, standard deviation and norms, with their gradients (the formulas are those of PyTorch's
// FunctionsManual.cpp); covariances.
#include <cmath>
#include <limits>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/complex.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/diagonal.h"
#include "tern/ops/index.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/reduce_geometry.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

void check_floating(const char* op, const Tensor& x) {
  TERN_CHECK(
      is_floating_point(x.dtype()), DTypeError,
      "{}: std and var only support floating point dtypes, got {}: convert the tensor with to(float32)", op,
      name(x.dtype()));
}

/// d var / d x = 2 (x - mean) / (n - correction).
Tensor var_gradient(const Tensor& g, const Tensor& x, DimMask mask, double correction) {
  const double count = static_cast<double>(reduced_numel(x.shape(), mask));
  SmallVector<int64_t, 6> dims;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (mask >> d & 1) dims.push_back(d);
  Tensor centered = dims.empty() ? sub(x, x) : sub(x, mean(x, dims, /*keepdim=*/true));
  return mul(mul(restore_dims(g, x.shape(), mask), 2.0 / (count - correction)), centered);
}

struct Moments {
  Tensor spread_;  ///< variance or deviation
  Tensor mean_;
};

Moments moments_over(const char* op, const Tensor& x, DimMask mask, double correction, bool keepdim,
                     bool root, bool with_mean) {
  check_floating(op, x);
  MomentsArgs args;
  make_geometry(x, mask, WalkOrder::Memory, args.kept, args.reduced);
  const Shape shape = reduced_shape(x.shape(), mask, keepdim);
  Moments result;
  result.spread_ = empty_contiguous(shape, args.kept.numel, x.dtype(), x.device());
  if (with_mean) result.mean_ = empty_contiguous(shape, args.kept.numel, x.dtype(), x.device());
  args.sqrt = root;
  args.dtype = x.dtype();
  args.correction = correction;
  args.out = result.spread_.data_ptr();
  args.mean = with_mean ? result.mean_.data_ptr() : nullptr;
  args.in = x.data_ptr();
  launch(current_stream(x.device()), kernels::moments, args);
  if (!tracks_grad(x)) return result;
  if (root)
    record(
        op, result.spread_, {x},
        [x_ = save(x), y_ = save_output(result.spread_), mask, correction](GradContext& c, const Tensor& g) {
          const Tensor y = c[y_];
          Tensor g_var = where(eq(y, 0), 0, div(g, mul(y, 2)));
          return var_gradient(g_var, c[x_], mask, correction);
        });
  else
    record(op, result.spread_, {x}, [x_ = save(x), mask, correction](GradContext& c, const Tensor& g) {
      return var_gradient(g, c[x_], mask, correction);
    });
  if (with_mean)
    record(op, result.mean_, {x}, [shape_ = x.shape(), mask](GradContext&, const Tensor& g) {
      return spread(div(g, static_cast<double>(reduced_numel(shape_, mask))), shape_, mask);
    });
  return result;
}

ReduceOp norm_op(double p) {
  if (p == 2) return ReduceOp::Norm2;
  if (p == 1) return ReduceOp::Norm1;
  if (std::isinf(p)) return p > 0 ? ReduceOp::NormInf : ReduceOp::NormNegInf;
  return ReduceOp::NormP;
}

/// y and g have the reduced dimensions with size 1.
Tensor norm_gradient(const Tensor& g, const Tensor& x, const Tensor& y, double p, DimMask mask) {
  if (p == 1) return mul(g, sign(x));
  if (p == 2) {
    const Tensor length = where(eq(y, 0), INFINITY, y);
    // One pass over the elements less, but in float16 g / y may overflow.
    return x.dtype() == DType::Float16 ? mul(g, div(x, length)) : mul(x, div(g, length));
  }
  if (std::isinf(p)) {
    const Tensor size = abs(x);
    Tensor chosen = cast(logical_or(eq(size, y), logical_and(isnan(size), isnan(y))), x.dtype());
    Tensor count = run_reduce(ReduceOp::Sum, chosen, mask, /*keepdim=*/true);
    return mul(mul(sign(x), chosen), div(g, count));
  }
  if (p < 1) {
    Tensor slope = where(eq(x, 0), 0, mul(sign(x), pow(abs(x), p - 1)));
    return mul(slope, mul(g, pow(y, 1 - p)));
  }
  Tensor scale = where(eq(y, 0), 0, div(g, pow(y, p - 1)));
  if (p < 2) return mul(mul(sign(x), pow(abs(x), p - 1)), scale);
  return mul(mul(x, pow(abs(x), p - 2)), scale);
}

void check_norm(const Tensor& x, double p, DimMask mask, std::optional<DType> dtype) {
  TERN_CHECK(is_floating_point(x.dtype()), DTypeError,
             "norm: Expected a floating point tensor as input. Got {}: convert it with to(float32)",
             name(x.dtype()));
  TERN_CHECK(!std::isnan(p), ValueError, "norm: the order p must be a number, got nan");
  TERN_CHECK(
      !dtype || (is_floating_point(*dtype) && promote_types(x.dtype(), *dtype) == *dtype), DTypeError,
      "norm: the dtype of the input ({}) should be convertible without narrowing to the specified dtype ({})",
      name(x.dtype()), name(*dtype));
  if (x.numel() != 0 || (p >= 0 && !std::isinf(p))) return;
  TERN_CHECK(reduced_numel(x.shape(), mask) != 0, ValueError,
             "norm: cannot compute the {} norm on an empty dimension (the shape is {}) because the operation "
             "does not have an "
             "identity",
             p, to_string(x.shape()));
}

Tensor norm_over(const Tensor& input, double p, DimMask mask, bool keepdim, std::optional<DType> dtype) {
  if (is_complex(input.dtype())) return norm_over(abs(input), p, mask, keepdim, dtype);
  check_norm(input, p, mask, dtype);
  Tensor x = dtype && *dtype != input.dtype() ? to(input, *dtype) : input;
  if (p == 0) {
    Tensor y = cast(run_reduce(ReduceOp::CountNonzero, x, mask, keepdim), x.dtype());
    if (tracks_grad(x))
      record("norm", y, {x}, [shape = x.shape()](GradContext&, const Tensor& g) {
        return filled(shape, g.dtype(), g.device(), 0);
      });
    return y;
  }
  Tensor y = run_reduce(norm_op(p), x, mask, keepdim, p);
  if (tracks_grad(x))
    record("norm", y, {x}, [x_ = save(x), y_ = save_output(y), p, mask](GradContext& c, const Tensor& g) {
      const Tensor v = c[x_];
      return norm_gradient(restore_dims(g, v.shape(), mask), v, restore_dims(c[y_], v.shape(), mask), p,
                           mask);
    });
  return y;
}

}  // namespace

Tensor var(const Tensor& x, IntArrayRef dims, double correction, bool keepdim) {
  if (is_complex(x.dtype()))
    return add(var(real(x), dims, correction, keepdim), var(imag(x), dims, correction, keepdim));
  return moments_over("var", x, dims_of("var", dims, x.dim()), correction, keepdim, /*root=*/false,
                      /*with_mean=*/false)
      .spread_;
}
Tensor std(const Tensor& x, IntArrayRef dims, double correction, bool keepdim) {
  if (is_complex(x.dtype())) return sqrt(var(x, dims, correction, keepdim));
  return moments_over("std", x, dims_of("std", dims, x.dim()), correction, keepdim, /*root=*/true,
                      /*with_mean=*/false)
      .spread_;
}
std::pair<Tensor, Tensor> var_mean(const Tensor& x, IntArrayRef dims, double correction, bool keepdim) {
  Moments m =
      moments_over("var_mean", x, dims_of("var_mean", dims, x.dim()), correction, keepdim, /*root=*/false,
                   /*with_mean=*/true);
  return {m.spread_, m.mean_};
}
std::pair<Tensor, Tensor> std_mean(const Tensor& x, IntArrayRef dims, double correction, bool keepdim) {
  Moments m =
      moments_over("std_mean", x, dims_of("std_mean", dims, x.dim()), correction, keepdim, /*root=*/true,
                   /*with_mean=*/true);
  return {m.spread_, m.mean_};
}

Tensor norm(const Tensor& x, double p) {
  return norm_over(x, p, all_dims(x.dim()), /*keepdim=*/false, autocast_result(x, {}));
}
Tensor norm(const Tensor& x, double p, IntArrayRef dims, bool keepdim, std::optional<DType> dtype) {
  return norm_over(x, p, dims_of("norm", dims, x.dim()), keepdim, autocast_result(x, dtype));
}

namespace {

void check_weights(const char* what, const Tensor& weights, bool integral, int64_t observations) {
  if (!weights.defined()) return;
  TERN_CHECK(integral == !is_floating_point(weights.dtype()) && !is_bool(weights.dtype()), DTypeError,
             "cov: expected {} to have {} dtype, got {}", what, integral ? "an integral" : "a floating point",
             name(weights.dtype()));
  TERN_CHECK(weights.dim() <= 1 && weights.numel() == observations, ShapeError,
             "cov: expected {} to be a vector of {} weights, one for each observation, got shape {}", what,
             observations, to_string(weights.shape()));
  TERN_CHECK(observations == 0 || amin(weights.detach()).item<double>() >= 0, ValueError,
             "cov: {} cannot be negative", what);
}

}  // namespace

Tensor cov(const Tensor& x, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  check_same_device("cov", {{"x", x}, {"fweights", fweights}, {"aweights", aweights}});
  TERN_CHECK(x.dim() <= 2, ShapeError, "cov: expected two or fewer dimensions, got shape {}",
             to_string(x.shape()));
  TERN_CHECK(!is_bool(x.dtype()), DTypeError,
             "cov: bool is not supported: convert the tensor with to(float32)");
  const Tensor rows = atleast_2d(x);
  const int64_t observations = rows.size(1);
  check_weights("fweights", fweights, /*integral=*/true, observations);
  check_weights("aweights", aweights, /*integral=*/false, observations);
  const bool is_weighted = fweights.defined() || aweights.defined();
  const Tensor weights = !fweights.defined()   ? aweights
                         : !aweights.defined() ? fweights
                                               : mul(fweights, aweights);
  const auto weighted = [&](const Tensor& y) { return is_weighted ? mul(y, weights) : y; };
  const Tensor total = is_weighted ? sum(weights) : full({}, observations, {.device = x.device()});
  TERN_CHECK(!is_weighted || total.item<double>() != 0, ValueError,
             "cov: weights sum to zero, can't be normalized");
  const Tensor centered = sub(rows, div(sum(weighted(rows), 1, /*keepdim=*/true), total));
  const Tensor degrees = aweights.defined() && correction != 0
                             ? sub(total, div(mul(sum(mul(weights, aweights)), correction), total))
                             : sub(total, correction);
  return squeeze(div(mm(centered, t(weighted(centered))), clamp_min(degrees, 0)));
}

Tensor corrcoef(const Tensor& x) {
  const Tensor c = with_context("corrcoef", [&] { return cov(x); });
  if (c.dim() == 0) return div(c, c);
  const Tensor deviations = sqrt(diag(c));
  return clamp(div(div(c, unsqueeze(deviations, 1)), unsqueeze(deviations, 0)), -1, 1);
}

}  // namespace tern
