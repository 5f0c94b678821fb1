// Initialisation of parameters.
#include "tern/nn/init.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/ops/creation.h"
#include "tern/ops/random.h"

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

/// Takes what the rows before it span away from each row of a row-major matrix with rows <= columns, and
/// makes its length 1 (modified Gram-Schmidt, twice, which is as good as Householder's: Giraud et al., 2005).
void orthonormalize_rows(std::vector<double>& m, size_t rows, size_t columns) {
  for (size_t r = 0; r < rows; ++r) {
    double* row = &m[r * columns];
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t q = 0; q < r; ++q) {
        const double* other = &m[q * columns];
        double dot = 0;
        for (size_t i = 0; i < columns; ++i) dot += row[i] * other[i];
        for (size_t i = 0; i < columns; ++i) row[i] -= dot * other[i];
      }
    }
    double square = 0;
    for (size_t i = 0; i < columns; ++i) square += row[i] * row[i];
    for (size_t i = 0; i < columns; ++i) row[i] /= std::sqrt(square);
  }
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
  // The upper tail is the lower one mirrored, where probabilities have more digits.
  const double side = a > mean ? -1 : 1;
  const double at_a = normal_cdf(side * (a - mean) / std), at_b = normal_cdf(side * (b - mean) / std);
  Tensor wide = rand(tensor.shape(), {.dtype = float64, .device = kCPU}, generator);
  double* x = wide.data<double>();
  for (int64_t i = 0; i < wide.numel(); ++i) {
    const double z = side * inverse_normal_cdf(at_a + (at_b - at_a) * x[i]);
    x[i] = std::min(std::max(mean + std * z, a), b);
  }
  return tensor.copy_(wide.to(tensor.device()));
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
  const size_t rows = static_cast<size_t>(tensor.size(0)),
               columns = static_cast<size_t>(tensor.numel()) / rows;
  const bool tall = rows > columns;
  const size_t short_side = std::min(rows, columns), long_side = std::max(rows, columns);
  std::vector<double> m = randn({static_cast<int64_t>(short_side), static_cast<int64_t>(long_side)},
                                {.dtype = float64, .device = kCPU}, generator)
                              .to_vector<double>();
  orthonormalize_rows(m, short_side, long_side);
  Tensor result = tern::tensor(m, {.dtype = float64, .device = kCPU})
                      .view({static_cast<int64_t>(short_side), static_cast<int64_t>(long_side)});
  if (tall) result = result.transpose(0, 1);
  result *= Scalar(gain);
  return tensor.copy_(result.reshape(tensor.shape()).to(tensor.device()));
}

}  // namespace tern::nn::init
