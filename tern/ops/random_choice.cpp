// Permutations, samples from weights, and dropout.
#include <cmath>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/creation_checks.h"
#include "tern/ops/dropout_mask.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/random_torch.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tern/ops/softmax.h"
#include "tern/ops/sort.h"

namespace tern {

uint64_t detail::random_threshold(double p) { return static_cast<uint64_t>(std::llround(std::ldexp(p, 32))); }

namespace {

Generator chosen(const std::optional<Generator>& generator) {
  return generator ? *generator : default_generator();
}

Generator::State reserve(Generator source, int64_t numbers, int64_t per_counter) {
  return source.reserve(static_cast<uint64_t>((numbers + per_counter - 1) / per_counter));
}

}  // namespace

Tensor randperm(int64_t n, const TensorOptions& options, const std::optional<Generator>& generator) {
  TERN_CHECK(n >= 0, ValueError, "randperm: n must be non-negative, got {}", n);
  DType dtype = options.dtype.value_or(DType::Int64);
  TERN_CHECK(!is_bool(dtype) && (n == 0 || detail::fits(n - 1, dtype)), ValueError,
             "randperm: n is too large for dtype {}: {}", name(dtype), n);
  TERN_CHECK(n < int64_t{1} << 32, NotImplementedError, "randperm: n must be below 2^32, got {}", n);
  Tensor order = detail::make("randperm", {n}, DType::Int64, options.device);
  const Generator source = chosen(generator);
  if (n != 0 && detail::draws_as_torch(source, order.device())) {
    detail::permute_as_torch(order, source);
  } else if (n != 0) {
    Generator::State state = reserve(source, n, 2);
    launch(current_stream(order.device()), kernels::permutation,
           {.out = static_cast<int64_t*>(order.data_ptr()),
            .count = n,
            .seed = state.seed,
            .position = state.position});
  }
  return detail::finish(cast(order, dtype), options);
}

namespace {

[[noreturn]] void throw_weights(WeightFault fault, int64_t num_samples) {
  if (fault == WeightFault::NotFinite)
    TERN_THROW(ValueError,
               "multinomial: probability tensor contains either `inf`, `nan` or element < 0: weights must be "
               "finite and not negative");
  if (fault == WeightFault::Zero)
    TERN_THROW(ValueError,
               "multinomial: invalid multinomial distribution (sum of probabilities <= 0): each row needs a "
               "weight above zero");
  TERN_THROW(ValueError,
             "multinomial: invalid multinomial distribution (without replacement, a row has fewer positive "
             "weights than the {} samples)",
             num_samples);
}

/// PyTorch's choices, int64 [rows, num_samples]: with replacement one uniform number is looked up for each;
/// without, and for a single one, the largest quotients of the weights and exponential numbers are taken.
Tensor multinomial_as_torch(const Tensor& weights, int64_t num_samples, bool replacement, Generator source) {
  NoGradGuard no_grad;
  const Tensor positive = sum(gt(weights, 0), {-1});
  if (!item(all(logical_and(isfinite(weights), ge(weights, 0)))).to_bool())
    throw_weights(WeightFault::NotFinite, num_samples);
  const int64_t least = item(min(positive)).to_int();
  if (least == 0) throw_weights(WeightFault::Zero, num_samples);
  if (!replacement && least < num_samples) throw_weights(WeightFault::TooFew, num_samples);
  if (replacement && num_samples > 1) {
    Tensor out = empty_contiguous({weights.size(0), num_samples}, weights.size(0) * num_samples, DType::Int64,
                                  weights.device());
    detail::choose_as_torch(out, compact(weights), source);
    return out;
  }
  Tensor waits = empty_of(weights.shape(), weights);
  exponential_(waits, 1, source);
  const Tensor quotients = div(weights, waits);
  return num_samples == 1 ? argmax(quotients, -1, /*keepdim=*/true) : topk(quotients, num_samples, -1).second;
}

}  // namespace

Tensor multinomial(const Tensor& weights, int64_t num_samples, bool replacement,
                   const std::optional<Generator>& generator) {
  TERN_CHECK(weights.dim() == 1 || weights.dim() == 2, ShapeError,
             "multinomial: weights must be 1 or 2 dim, got shape {}", to_string(weights.shape()));
  TERN_CHECK(is_floating_point(weights.dtype()), DTypeError,
             "multinomial: weights must be of a floating-point dtype, got {}", name(weights.dtype()));
  TERN_CHECK(num_samples > 0, ValueError, "multinomial: cannot sample num_samples <= 0 samples, got {}",
             num_samples);
  const int64_t categories = weights.size(-1), rows = weights.dim() == 2 ? weights.size(0) : 1;
  TERN_CHECK(categories > 0, ShapeError, "multinomial: there are no categories: weights have shape {}",
             to_string(weights.shape()));
  TERN_CHECK(
      replacement || num_samples <= categories, ValueError,
      "multinomial: cannot sample num_samples ({}) > weights.size(-1) ({}) samples without replacement",
      num_samples, categories);
  Shape shape;
  if (weights.dim() == 2) shape.push_back(rows);
  shape.push_back(num_samples);
  if (rows == 0) return detail::make("multinomial", shape, DType::Int64, weights.device());
  const Generator source = chosen(generator);
  if (detail::draws_as_torch(source, weights.device()))
    return reshape(
        multinomial_as_torch(reshape(weights.detach(), {rows, categories}), num_samples, replacement, source),
        shape);
  Tensor w = compact(cast(weights.detach(), DType::Float64));
  Tensor out = detail::make("multinomial", shape, DType::Int64, weights.device());
  Tensor fault = detail::make("multinomial", {1}, DType::Int64, weights.device());
  Generator::State state = reserve(source, rows * (replacement ? num_samples : categories), 2);
  launch(current_stream(out.device()), kernels::multinomial,
         {.out = static_cast<int64_t*>(out.data_ptr()),
          .weights = static_cast<const double*>(w.data_ptr()),
          .fault = static_cast<int64_t*>(fault.data_ptr()),
          .rows = rows,
          .categories = categories,
          .samples = num_samples,
          .replacement = replacement,
          .seed = state.seed,
          .position = state.position});
  const auto found = static_cast<WeightFault>(item(fault).to_int());
  if (found != WeightFault::None) throw_weights(found, num_samples);
  return out;
}

namespace {

void check_dropout(const char* op, const Tensor& x, double p) {
  TERN_CHECK(p >= 0 && p <= 1, ValueError, "{}: probability has to be between 0 and 1, but got {}", op, p);
  check_floating(op, x.dtype());
}

/// The args say which elements stay; the same ones give the gradient.
Tensor apply_dropout(const Tensor& x, const DropoutArgs& mask) {
  Tensor source = contiguous(x.detach());
  Tensor y = empty_contiguous(x.shape(), x.numel(), x.dtype(), x.device());
  DropoutArgs args = mask;
  args.dtype = x.dtype();
  args.out = y.data_ptr();
  args.in = source.data_ptr();
  args.numel = x.numel();
  launch(current_stream(x.device()), kernels::dropout, args);
  if (tracks_grad(x))
    record("dropout", y, {x}, [mask](GradContext&, const Tensor& g) { return apply_dropout(g, mask); });
  return y;
}

/// 0 with probability p, else 1 / (1 - p).
Tensor torch_mask(const Tensor& x, double p, const Generator& source) {
  if (p == 1) return zeros_like(x, {.requires_grad = false});
  Tensor mask = detail::empty_in_order_of(x, x.dtype());
  detail::draw_as_torch(mask, {.distribution = Distribution::Bernoulli, .a = 1 - p}, source);
  return div(mask, 1 - p);
}

}  // namespace

DropoutMask::DropoutMask(const Tensor& like, double p, const std::optional<Generator>& generator) {
  const Generator source = chosen(generator);
  if (detail::draws_as_torch(source, like.device())) {
    factors_ = torch_mask(like, p, source);
    return;
  }
  const Generator::State state = reserve(source, like.numel(), 4);
  args_.seed = state.seed;
  args_.position = state.position;
  args_.threshold = detail::random_threshold(1 - p);
  args_.scale = p == 1 ? 0 : 1 / (1 - p);
}

Tensor DropoutMask::apply(const Tensor& x) const {
  return factors_.defined() ? mul(x, factors_) : apply_dropout(x, args_);
}

Tensor dropout(const Tensor& x, double p, bool training, const std::optional<Generator>& generator) {
  check_dropout("dropout", x, p);
  if (!training || p == 0 || x.numel() == 0) return x;
  return DropoutMask(x, p, generator).apply(x);
}

namespace {

/// [N, C, 1, ...] of x [N, C, ...].
Shape channel_shape(const char* op, const Tensor& x) {
  TERN_CHECK(x.dim() >= 2, ShapeError,
             "{}: Feature dropout requires at least 2 dimensions in the input, got {}", op,
             to_string(x.shape()));
  Shape shape(x.shape().size(), 1);
  shape[0] = x.size(0);
  shape[1] = x.size(1);
  return shape;
}

/// Numbers are drawn for the channels alone.
Tensor dropout_of_channels(const char* op, const Tensor& x, double p, bool training,
                           const std::optional<Generator>& generator) {
  check_dropout(op, x, p);
  const Shape shape = channel_shape(op, x);
  if (!training || p == 0 || x.numel() == 0) return x;
  return mul(x, dropout(ones(shape, {.dtype = x.dtype(), .device = x.device()}), p, training, generator));
}

}  // namespace

Tensor dropout1d(const Tensor& x, double p, bool training, const std::optional<Generator>& generator) {
  TERN_CHECK(x.dim() == 2 || x.dim() == 3, ShapeError,
             "dropout1d: Expected 2D or 3D input, but received a {}D input: dropout of single elements takes "
             "any shape",
             x.dim());
  if (x.dim() == 3) return dropout_of_channels("dropout1d", x, p, training, generator);
  return squeeze(dropout_of_channels("dropout1d", unsqueeze(x, 0), p, training, generator), 0);
}

Tensor dropout2d(const Tensor& x, double p, bool training, const std::optional<Generator>& generator) {
  return dropout_of_channels("dropout2d", x, p, training, generator);
}

Tensor dropout3d(const Tensor& x, double p, bool training, const std::optional<Generator>& generator) {
  TERN_CHECK(x.dim() == 4 || x.dim() == 5, ShapeError,
             "dropout3d: Expected 4D or 5D input, but received a {}D input: dropout of single elements takes "
             "any shape",
             x.dim());
  if (x.dim() == 5) return dropout_of_channels("dropout3d", x, p, training, generator);
  return squeeze(dropout_of_channels("dropout3d", unsqueeze(x, 0), p, training, generator), 0);
}

namespace {

/// `shape` is that of the numbers drawn, which broadcasts with x.
Tensor alpha_dropout_of(const Tensor& x, const Shape& shape, double p, bool training,
                        const std::optional<Generator>& generator) {
  if (!training || p == 0 || x.numel() == 0) return x;
  if (p == 1) return mul(x, 0);
  constexpr double kLimit = 1.7580993408473766;
  const double scale = 1 / std::sqrt((kLimit * kLimit * p + 1) * (1 - p));
  const TensorOptions options{.dtype = x.dtype(), .device = x.device()};
  Tensor kept = empty(shape, options);
  bernoulli_(kept, 1 - p, generator);
  // Kept: scale * x + shift; dropped: -scale * kLimit + shift; the shift is scale * kLimit * p.
  const Tensor shift = add(mul(kept, scale * kLimit), scale * kLimit * (p - 1));
  return add(mul(x, mul(kept, scale)), shift);
}

}  // namespace

Tensor alpha_dropout(const Tensor& x, double p, bool training, const std::optional<Generator>& generator) {
  check_dropout("alpha_dropout", x, p);
  return alpha_dropout_of(x, x.shape(), p, training, generator);
}

Tensor feature_alpha_dropout(const Tensor& x, double p, bool training,
                             const std::optional<Generator>& generator) {
  const char* op = "feature_alpha_dropout";
  check_dropout(op, x, p);
  return alpha_dropout_of(x, channel_shape(op, x), p, training, generator);
}

Tensor gumbel_softmax(const Tensor& logits, double tau, bool hard, int64_t dim,
                      const std::optional<Generator>& generator) {
  TERN_CHECK(is_floating_point(logits.dtype()), DTypeError,
             "gumbel_softmax: not implemented for {}: convert the logits with to(float32)",
             name(logits.dtype()));
  TERN_CHECK(tau > 0, ValueError, "gumbel_softmax: tau must be above 0, got {}", tau);
  const int64_t along = wrap_dim(dim, logits.dim(), "gumbel_softmax");
  const TensorOptions options{.dtype = logits.dtype(), .device = logits.device()};
  Tensor noise = empty(logits.shape(), options);
  exponential_(noise, 1, generator);
  const Tensor soft = softmax(div(sub(logits, log(noise)), tau), along);
  if (!hard) return soft;
  const Tensor constant = soft.detach();
  const Tensor one_hot =
      scatter(zeros(logits.shape(), options), along, argmax(constant, along, /*keepdim=*/true), 1);
  return add(sub(one_hot, constant), soft);
}

}  // namespace tern
