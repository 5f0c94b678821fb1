// Normalisation layers.
#include "tern/nn/norm.h"

#include <fmt/format.h>

#include "tern/autograd/grad_mode.h"
#include "tern/nn/layer_support.h"
#include "tern/nn/text.h"
#include "tern/ops/norm.h"

namespace tern::nn {

// ---- what channels have
// --------------------------------------------------------------------------------------------------

ChannelNorm::ChannelNorm(const char* layer, int64_t num_features, const BatchNormOptions& options)
    : layer_(layer),
      num_features_(at_least(layer, "num_features", num_features, 0)),
      eps_(options.eps),
      momentum_(options.momentum) {
  if (options.affine) weight = empty_parameter({num_features_}, options);
  if (options.affine && options.bias) bias = empty_parameter({num_features_}, options);
  if (options.track_running_stats) {
    running_mean = empty({num_features_}, tensor_options(options));
    running_var = empty({num_features_}, tensor_options(options));
    TensorOptions count;
    count.dtype = int64;
    count.device = options.device;
    num_batches_tracked = empty({}, count);
  }
}

namespace {
/// Those that are lazy get their values later, those that are absent none.
void fill(const Tensor& tensor, double value) {
  if (tensor.defined() && !is_lazy(tensor)) init::constant_(tensor, value);
}
}  // namespace

void ChannelNorm::reset_parameters() {
  reset_running_stats();
  fill(weight, 1);
  fill(bias, 0);
}

void ChannelNorm::reset_running_stats() {
  fill(running_mean, 0);
  fill(running_var, 1);
  fill(num_batches_tracked, 0);
}

int64_t ChannelNorm::num_features() const {
  if (weight.defined()) return weight.numel();
  return running_mean.defined() ? running_mean.numel() : num_features_;
}

bool ChannelNorm::may_be_absent(std::string_view name, std::optional<int64_t> version) const {
  return name == "num_batches_tracked" && version.value_or(1) < 2;
}

std::string ChannelNorm::extra_repr() const {
  return fmt::format("{}, eps={}, momentum={}, affine={}, bias={}, track_running_stats={}", num_features(),
                     python_text(eps_), momentum_ ? python_text(*momentum_) : "None",
                     python_text(weight.defined()), python_text(bias.defined()),
                     python_text(running_mean.defined()));
}

void ChannelNorm::defer() const { detail::defer({&weight, &bias, &running_mean, &running_var}); }

bool ChannelNorm::is_lazy() const {
  return nn::is_lazy(weight) || nn::is_lazy(bias) || nn::is_lazy(running_mean) || nn::is_lazy(running_var);
}

void ChannelNorm::see_input(const Tensor& x, int64_t dim, detail::DimRange dims) const {
  const Shape shape{detail::size_of_first_input(std::string("Lazy") + layer(), x, dim, dims)};
  const std::pair<const Tensor*, double> starts[] = {
      {&weight, 1}, {&bias, 0}, {&running_mean, 0}, {&running_var, 1}};
  for (const auto& [tensor, value] : starts) {
    if (!nn::is_lazy(*tensor)) continue;  // absent, or a state dict had it
    detail::materialize({{*tensor, shape}});
    init::constant_(*tensor, value);
  }
}

// ---- batch norm
// --------------------------------------------------------------------------------------------------------

BatchNorm::BatchNorm(const char* layer, std::optional<int64_t> num_features, detail::DimRange dims,
                     const BatchNormOptions& options)
    : ChannelNorm(layer, num_features.value_or(0), options), dims_(dims) {
  if (!num_features) defer();
  reset_parameters();
}

Tensor BatchNorm::forward(const Tensor& x) const {
  const auto [min_dim, max_dim] = dims_;
  if (x.dim() < min_dim || x.dim() > max_dim) [[unlikely]] {
    std::string wanted = fmt::format("{}D", max_dim);
    if (max_dim == std::numeric_limits<int64_t>::max())
      wanted = fmt::format("at least {}D", min_dim);
    else if (min_dim != max_dim)
      wanted = fmt::format("{}D or ", min_dim) + wanted;
    TERN_THROW(ShapeError, "{}: expected {} input (got {}D input)", layer(), wanted, x.dim());
  }
  if (is_lazy()) [[unlikely]]
    see_input(x, 1, dims_);
  double share = momentum().value_or(0);
  if (is_training() && num_batches_tracked.defined()) {
    NoGradGuard no_grad;
    Tensor count = num_batches_tracked;
    count += Scalar(1);
    if (!momentum()) share = 1 / count.item<double>();
  }
  if (training_norm_ != nullptr && is_training()) return training_norm_->normalize(*this, x, share);
  return batch_norm(x, running_mean, running_var, weight, bias, is_training() || !running_mean.defined(),
                    share, eps());
}

std::string BatchNorm::class_name() const {
  if (is_lazy()) return std::string("Lazy") + layer();
  return training_norm_ ? training_norm_->class_name : layer();
}

// ---- instance norm
// -----------------------------------------------------------------------------------------------------

InstanceNorm::InstanceNorm(const char* layer, std::optional<int64_t> num_features, int64_t dims,
                           const InstanceNormOptions& options)
    : ChannelNorm(layer, num_features.value_or(0),
                  {.eps = options.eps,
                   .momentum = options.momentum,
                   .affine = options.affine,
                   .bias = options.bias,
                   .track_running_stats = options.track_running_stats,
                   .device = options.device,
                   .dtype = options.dtype}),
      dims_(dims) {
  if (!num_features) defer();
  reset_parameters();
}

Tensor InstanceNorm::forward(const Tensor& x) const {
  TERN_CHECK(x.dim() == dims_ || x.dim() == dims_ + 1, ShapeError,
             "{}: expected {}D or {}D input (got {}D input)", layer(), dims_, dims_ + 1, x.dim());
  if (is_lazy()) [[unlikely]]
    see_input(x, x.dim() - dims_, {dims_, dims_ + 1});
  const int64_t channels = x.size(x.dim() - dims_);
  TERN_CHECK(channels == num_features() || (!weight.defined() && !running_mean.defined()), ShapeError,
             "{}: expected input's size at dim={} to match num_features ({}), but got: {}", layer(),
             x.dim() - dims_, num_features(), channels);
  const bool batched = x.dim() > dims_;
  const Tensor y = instance_norm(batched ? x : x.unsqueeze(0), running_mean, running_var, weight, bias,
                                 is_training() || !running_mean.defined(), momentum().value_or(0), eps());
  return batched ? y : y.squeeze(0);
}

// ---- layer norm
// --------------------------------------------------------------------------------------------------------

LayerNorm::LayerNorm(std::vector<int64_t> normalized_shape, const LayerNormOptions& options)
    : normalized_shape_(std::move(normalized_shape)), eps_(options.eps) {
  if (options.elementwise_affine) weight = full_parameter(normalized_shape_, 1, options);
  if (options.elementwise_affine && options.bias) bias = full_parameter(normalized_shape_, 0, options);
}

Tensor LayerNorm::forward(const Tensor& x) const {
  return layer_norm(x, normalized_shape_, weight, bias, eps_);
}

std::string LayerNorm::extra_repr() const {
  return fmt::format("{}, eps={}, elementwise_affine={}, bias={}", python_tuple(normalized_shape_),
                     python_text(eps_), python_text(weight.defined()), python_text(bias.defined()));
}

// ---- group norm
// --------------------------------------------------------------------------------------------------------

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options)
    : num_groups_(at_least("GroupNorm", "num_groups", num_groups, 1)),
      num_channels_(at_least("GroupNorm", "num_channels", num_channels, 0)),
      eps_(options.eps) {
  TERN_CHECK(num_channels % num_groups == 0, ValueError,
             "GroupNorm: num_channels must be divisible by num_groups, got {} and {}", num_channels,
             num_groups);
  if (options.affine) {
    weight = full_parameter({num_channels}, 1, options);
    bias = full_parameter({num_channels}, 0, options);
  }
}

Tensor GroupNorm::forward(const Tensor& x) const { return group_norm(x, num_groups_, weight, bias, eps_); }

std::string GroupNorm::extra_repr() const {
  return fmt::format("{}, {}, eps={}, affine={}, bias={}", num_groups_, num_channels_, python_text(eps_),
                     python_text(weight.defined()), python_text(bias.defined()));
}

// ---- local response norm
// --------------------------------------------------------------------------------------------------------

LocalResponseNorm::LocalResponseNorm(int64_t size_, const LocalResponseNormOptions& options_)
    : size(at_least("LocalResponseNorm", "size", size_, 1)), options(options_) {}

Tensor LocalResponseNorm::forward(const Tensor& x) const {
  return local_response_norm(x, size, options.alpha, options.beta, options.k);
}

std::string LocalResponseNorm::extra_repr() const {
  return fmt::format("{}, alpha={}, beta={}, k={}", size, python_text(options.alpha),
                     python_text(options.beta), python_text(options.k));
}

// ---- RMS norm
// ----------------------------------------------------------------------------------------------------------

RMSNorm::RMSNorm(std::vector<int64_t> normalized_shape, const RMSNormOptions& options)
    : normalized_shape_(std::move(normalized_shape)), eps_(options.eps) {
  if (options.elementwise_affine) weight = full_parameter(normalized_shape_, 1, options);
}

Tensor RMSNorm::forward(const Tensor& x) const { return rms_norm(x, normalized_shape_, weight, eps_); }

std::string RMSNorm::extra_repr() const {
  return fmt::format("{}, eps={}, elementwise_affine={}", python_tuple(normalized_shape_),
                     eps_ ? python_text(*eps_) : "None", python_text(weight.defined()));
}

}  // namespace tern::nn
