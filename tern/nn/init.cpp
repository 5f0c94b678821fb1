// Initialisation of parameters.
#include "tern/nn/init.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/linalg.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/random_torch.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern::nn::init {
namespace {

constexpr double kSqrt2 = std::numbers::sqrt2;

/// The innermost one of the calling thread.
constinit thread_local SkipInitGuard* skip_init_guard = nullptr;

double normal_cdf(double x) { return std::erfc(-x / kSqrt2) / 2; }

/// The inverse of erfc on [0, 1], to the far tail: Giles, "Approximating the erfinv function", 2012, then
/// Newton steps on the logarithm.
double inverse_erfc(double p) {
  if (p < 1e-300) return std::numeric_limits<double>::infinity();
  double w = -std::log(p * (2 - p)), y;
  if (w < 5) {
    w -= 2.5;
    y = 1.50140941 +
        w * (0.246640727 +
             w * (-0.00417768164 + w * (-0.00125372503 + w * (0.000218580870 + w * (-4.39150654e-06)))));
    y *= 1 - p;
  } else if (w < 16) {
    w = std::sqrt(w) - 3;
    y = 2.83297682 +
        w * (1.00167406 +
             w * (0.00943887047 + w * (-0.0076224613 + w * (0.00573950773 + w * (-0.00367342844)))));
    y *= 1 - p;
  } else {
    y = std::sqrt(w);
  }
  for (double step = 1; std::fabs(step) > 1e-9; y += step) {
    const double q = std::erfc(y);
    step = std::log(q / p) * q * std::sqrt(std::numbers::pi) / 2 * std::exp(y * y);
  }
  return y;
}

double inverse_normal_cdf(double p) {
  return kSqrt2 * (p < 0.5 ? -inverse_erfc(2 * p) : inverse_erfc(2 - 2 * p));
}

double kaiming_std(const Tensor& tensor, const KaimingOptions& options) {
  TERN_CHECK(options.mode == "fan_in" || options.mode == "fan_out", ValueError,
             "kaiming: Mode {} not supported, please use one of 'fan_in' and 'fan_out'", options.mode);
  auto [in, out] = fan_in_and_out(tensor);
  const double fan = static_cast<double>(options.mode == "fan_in" ? in : out);
  return calculate_gain(options.nonlinearity, options.a) / std::sqrt(fan);
}

double xavier_std(const Tensor& tensor, double gain) {
  auto [in, out] = fan_in_and_out(tensor);
  return gain * std::sqrt(2.0 / static_cast<double>(in + out));
}

/// A double as an element of the dtype.
double rounded(double value, DType dtype) {
  return item(full({}, value, {.dtype = dtype, .device = kCPU})).to_double();
}

/// Draws all numbers again until each has been within [a, b] once; PyTorch's way where that is likely.
void draw_until_inside(Tensor& x, double mean, double std, double a, double b,
                       const MaybeGenerator& generator) {
  const double low = rounded(a, x.dtype()), high = rounded(b, x.dtype());
  tern::normal_(x, mean, std, generator);
  for (;;) {
    const Tensor outside = logical_or(lt(x, low), gt(x, high));
    if (!item(any(outside)).to_bool()) return;
    Tensor again = empty_like(x);
    x.copy_(where(outside, tern::normal_(again, mean, std, generator), x));
  }
}

/// Uniform numbers of [a, b], drawn again until their density has been above a random share of the highest;
/// PyTorch's way elsewhere.
void draw_until_accepted(Tensor& x, double mean, double std, double a, double b,
                         const MaybeGenerator& generator) {
  const double mode = std::max(a, std::min(mean, b)),
               log_peak = -0.5 * (mode - mean) / std * ((mode - mean) / std);
  const auto refused = [&](const Tensor& candidates) {
    Tensor share = empty_like(x);
    return gt(log(tern::uniform_(share, 0, 1, generator)),
              sub(mul(square(div(sub(candidates, mean), std)), -0.5), log_peak));
  };
  tern::uniform_(x, a, b, generator);
  for (Tensor pending = refused(x); item(any(pending)).to_bool();) {
    Tensor candidates = empty_like(x);
    tern::uniform_(candidates, a, b, generator);
    x.copy_(where(pending, candidates, x));
    pending = logical_and(pending, refused(candidates));
  }
}

/// Uniform shares of the distribution between a and b, looked up in it: as fast in its far tails.
void look_up_shares(Tensor& x, double mean, double std, double a, double b, const MaybeGenerator& generator) {
  // The upper tail is the lower one mirrored, where probabilities have more digits.
  const double side = a > mean ? -1 : 1;
  const double at_a = normal_cdf(side * (a - mean) / std), at_b = normal_cdf(side * (b - mean) / std);
  Tensor wide = rand(x.shape(), {.dtype = float64, .device = kCPU}, generator);
  double* numbers = wide.data<double>();
  for (int64_t i = 0; i < wide.numel(); ++i) {
    const double z = side * inverse_normal_cdf(at_a + (at_b - at_a) * numbers[i]);
    numbers[i] = std::min(std::max(mean + std * z, a), b);
  }
  x.copy_(wide);
}

}  // namespace

SkipInitGuard::SkipInitGuard(std::vector<Storage>* skipped) noexcept
    : skipped_(skipped), outer_(std::exchange(skip_init_guard, this)) {}

SkipInitGuard::~SkipInitGuard() { skip_init_guard = outer_; }

bool SkipInitGuard::skips(const Tensor& tensor) {
  for (const SkipInitGuard* guard = skip_init_guard; guard; guard = guard->outer_)
    if (guard->skipped_) guard->skipped_->push_back(tensor.storage());
  return skip_init_guard != nullptr;
}

Tensor uniform_(Tensor tensor, double a, double b, const MaybeGenerator& generator) {
  if (SkipInitGuard::skips(tensor)) return tensor;
  NoGradGuard no_grad;
  return tern::uniform_(tensor, a, b, generator);
}

Tensor normal_(Tensor tensor, double mean, double std, const MaybeGenerator& generator) {
  if (SkipInitGuard::skips(tensor)) return tensor;
  NoGradGuard no_grad;
  return tern::normal_(tensor, mean, std, generator);
}

Tensor trunc_normal_(Tensor tensor, double mean, double std, double a, double b,
                     const MaybeGenerator& generator) {
  TERN_CHECK(std > 0 && a < b, ValueError,
             "trunc_normal_: expected std > 0 and a < b, got std {}, a {}, b {}", std, a, b);
  if (SkipInitGuard::skips(tensor)) return tensor;
  NoGradGuard no_grad;
  // On the host, so that the numbers are the same on every device.
  Tensor x = tensor.is_cpu() ? tensor : empty(tensor.shape(), {.dtype = tensor.dtype(), .device = kCPU});
  if (normal_cdf((b - mean) / std) - normal_cdf((a - mean) / std) > 0.3)
    draw_until_inside(x, mean, std, a, b, generator);
  else if (tern::detail::draws_as_torch(generator.value_or(default_generator()), kCPU))
    draw_until_accepted(x, mean, std, a, b, generator);
  else
    look_up_shares(x, mean, std, a, b, generator);
  return tensor.is_cpu() ? tensor : tensor.copy_(x);
}

Tensor constant_(Tensor tensor, double value) {
  NoGradGuard no_grad;
  return tensor.fill_(value);
}

Tensor zeros_(Tensor tensor) { return constant_(std::move(tensor), 0); }
Tensor ones_(Tensor tensor) { return constant_(std::move(tensor), 1); }

Tensor eye_(Tensor tensor) {
  TERN_CHECK(tensor.dim() == 2, ShapeError,
             "eye_: Only tensors with 2 dimensions are supported, got shape {}", to_string(tensor.shape()));
  NoGradGuard no_grad;
  return tensor.copy_(
      eye(tensor.size(0), tensor.size(1), {.dtype = tensor.dtype(), .device = tensor.device()}));
}

std::pair<int64_t, int64_t> fan_in_and_out(const Tensor& tensor) {
  TERN_CHECK(
      tensor.dim() >= 2, ShapeError,
      "init: Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, got shape {}",
      to_string(tensor.shape()));
  int64_t field = 1;
  for (int64_t d = 2; d < tensor.dim(); ++d) field *= tensor.size(d);
  return {tensor.size(1) * field, tensor.size(0) * field};
}

double calculate_gain(std::string_view nonlinearity, std::optional<double> param) {
  for (std::string_view plain : {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
                                 "conv_transpose2d", "conv_transpose3d", "sigmoid"})
    if (nonlinearity == plain) return 1;
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return kSqrt2;
  if (nonlinearity == "leaky_relu") {
    const double slope = param.value_or(0.01);
    return std::sqrt(2.0 / (1 + slope * slope));
  }
  if (nonlinearity == "selu") return 3.0 / 4;
  TERN_THROW(
      ValueError,
      "calculate_gain: Unsupported nonlinearity {}: the known ones are linear, conv1d, conv2d, conv3d, "
      "conv_transpose1d, conv_transpose2d, conv_transpose3d, sigmoid, tanh, relu, leaky_relu and selu",
      nonlinearity);
}

Tensor xavier_uniform_(Tensor tensor, double gain, const MaybeGenerator& generator) {
  const double bound = std::sqrt(3.0) * xavier_std(tensor, gain);
  return uniform_(std::move(tensor), -bound, bound, generator);
}

Tensor xavier_normal_(Tensor tensor, double gain, const MaybeGenerator& generator) {
  const double std = xavier_std(tensor, gain);
  return normal_(std::move(tensor), 0, std, generator);
}

Tensor kaiming_uniform_(Tensor tensor, const KaimingOptions& options, const MaybeGenerator& generator) {
  if (tensor.numel() == 0) return tensor;
  const double bound = std::sqrt(3.0) * kaiming_std(tensor, options);
  return uniform_(std::move(tensor), -bound, bound, generator);
}

Tensor kaiming_normal_(Tensor tensor, const KaimingOptions& options, const MaybeGenerator& generator) {
  if (tensor.numel() == 0) return tensor;
  const double std = kaiming_std(tensor, options);
  return normal_(std::move(tensor), 0, std, generator);
}

Tensor orthogonal_(Tensor tensor, double gain, const MaybeGenerator& generator) {
  TERN_CHECK(tensor.dim() >= 2, ShapeError,
             "orthogonal_: Only tensors with 2 or more dimensions are supported, got shape {}",
             to_string(tensor.shape()));
  if (tensor.numel() == 0 || SkipInitGuard::skips(tensor)) return tensor;
  NoGradGuard no_grad;
  const int64_t rows = tensor.size(0), columns = tensor.numel() / rows;
  const DType dtype = tensor.dtype() == float64 ? float64 : float32;
  // On the host, so that the numbers are the same on every device.
  Tensor drawn = randn({rows, columns}, {.dtype = dtype, .device = kCPU, .requires_grad = false}, generator);
  const auto [q, r] = linalg::qr(rows < columns ? drawn.t() : drawn);
  const Tensor unique = mul(q, mul(sign(diagonal(r)), gain));
  return tensor.copy_((rows < columns ? unique.t() : unique).reshape(tensor.shape()));
}

}  // namespace tern::nn::init
