// Random tensors whose distribution differs from element to element. Draws of one distribution are in
// random.cpp.
#include <cmath>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/random_torch.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

using MaybeGenerator = std::optional<Generator>;

/// Numbers for each element of a and b, which have one shape.
Tensor draw_variates(const char* op, Variate variate, const Tensor& a, const Tensor& b,
                     const MaybeGenerator& generator) {
  NoGradGuard no_grad;
  check_floating(op, a.dtype());
  const Tensor first = compact(a.detach()), second = b.defined() ? compact(b.detach()) : Tensor();
  Tensor out = empty_contiguous(a.shape(), a.numel(), a.dtype(), a.device());
  if (out.numel() == 0) return out;
  Generator source = generator ? *generator : default_generator();
  if (detail::draws_as_torch(source, out.device())) {
    detail::draw_variates_as_torch(variate, out, first, second, source);
    return out;
  }
  const Generator::State state = source.reserve(1);
  launch(current_stream(out.device()), kernels::variates,
         {.variate = variate,
          .dtype = out.dtype(),
          .out = out.data_ptr(),
          .a = first.data_ptr(),
          .b = second.defined() ? second.data_ptr() : nullptr,
          .numel = out.numel(),
          .seed = state.seed,
          .position = state.position});
  return out;
}

/// A result that does not move with its parameters.
Tensor fixed(const char* op, Tensor y, const std::vector<Tensor>& parameters) {
  bool tracked = false;
  for (const Tensor& x : parameters) tracked = tracked || tracks_grad(x);
  if (tracked)
    record(op, y, parameters, [shapes = parameters.size()](GradContext&, const Tensor& g) {
      return std::vector<Tensor>(shapes, filled(g.shape(), g.dtype(), g.device(), 0));
    });
  return y;
}

void check_deviation(double std) {
  TERN_CHECK(std >= 0, ValueError, "normal: expects all elements of std >= 0.0, but found std {}", std);
}

/// Standard normal numbers of that shape, like x.
Tensor standard_normal(const Shape& shape, const Tensor& x, const MaybeGenerator& generator) {
  check_floating("normal", x.dtype());
  return randn(shape, {.dtype = x.dtype(), .device = x.device(), .requires_grad = false}, generator);
}

}  // namespace

Tensor normal(const Tensor& mean, const Tensor& std, const MaybeGenerator& generator) {
  NoGradGuard no_grad;
  const std::vector<Tensor> both = broadcast_tensors({mean, std});
  check_floating("normal", std.dtype());
  return add(mul(standard_normal(both[0].shape(), mean, generator), std), mean);
}
Tensor normal(const Tensor& mean, double std, const MaybeGenerator& generator) {
  NoGradGuard no_grad;
  check_deviation(std);
  return add(mul(standard_normal(mean.shape(), mean, generator), std), mean);
}
Tensor normal(double mean, const Tensor& std, const MaybeGenerator& generator) {
  NoGradGuard no_grad;
  return add(mul(standard_normal(std.shape(), std, generator), std), mean);
}

Tensor poisson(const Tensor& rate, const MaybeGenerator& generator) {
  check_floating("poisson", rate.dtype());
  if (rate.numel() != 0) {
    NoGradGuard no_grad;
    const double least = item(min(rate)).to_double();
    TERN_CHECK(least >= 0, ValueError,
               "poisson: invalid Poisson rate, expected rate to be non-negative, got {}", least);
  }
  return fixed("poisson", draw_variates("poisson", Variate::Poisson, rate, {}, generator), {rate});
}

Tensor binomial(const Tensor& count, const Tensor& prob, const MaybeGenerator& generator) {
  check_floating("binomial", prob.dtype());
  TERN_CHECK(count.dtype() == prob.dtype(), DTypeError,
             "binomial: Found dtype {} but expected {}: count and prob must have one dtype: convert one with "
             "to(dtype)",
             name(prob.dtype()), name(count.dtype()));
  const std::vector<Tensor> both = broadcast_tensors({count, prob});
  return fixed("binomial", draw_variates("binomial", Variate::Binomial, both[0], both[1], generator), both);
}

Tensor standard_gamma(const Tensor& shape, const MaybeGenerator& generator) {
  Tensor y = draw_variates("standard_gamma", Variate::StandardGamma, shape, {}, generator);
  if (tracks_grad(shape))
    record("standard_gamma", y, {shape},
           [shape_ = save(shape), y_ = save_output(y)](GradContext& c, const Tensor& g) {
             const Tensor a = c[shape_], sample = c[y_];
             return mul(g, differentiable_once("standard_gamma",
                                               binary(BinaryOp::StandardGammaGrad, a, sample), a, sample));
           });
  return y;
}

}  // namespace tern
