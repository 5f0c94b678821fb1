// The normalisation, made of operators so that its gradient crosses devices by itself: mean first, then the
// variance around it, as the sums of squares alone would lose digits.
#include "tern/parallel/sync_batch_norm.h"

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/norm.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tern/parallel/collectives.h"
#include "tern/parallel/turns.h"

namespace tern::parallel {
namespace {

void blend(const Tensor& running, const Tensor& value, double momentum) {
  if (!running.defined()) return;
  Tensor changed = running;
  changed.mul_(1 - momentum);
  changed.add_(value.detach().to(running.dtype()), momentum);
}

/// Sums over all that a layer's batch is split over.
class Meeting {
 public:
  Meeting() : turns_(Turns::current()), group_(dist::GroupGuard::current()) {
    if (turns_ && turns_->size() == 1) turns_ = nullptr;
  }
  bool is_alone() const { return !turns_ && !group_; }

  /// `mine.values` is a vector. Differentiable.
  Turns::Sums sum(const Turns::Sums& mine) const {
    if (turns_) return turns_->sum(mine);
    // In float64 the count is exact, and travels with the values.
    const TensorOptions wide{.dtype = DType::Float64, .device = mine.values.device()};
    const int64_t size = mine.values.numel();
    const Tensor all =
        dist::all_reduce(cat({to(mine.values, DType::Float64), full({1}, mine.count, wide)}, 0), *group_);
    return {to(all.narrow(0, 0, size), mine.values.dtype()), static_cast<int64_t>(all[size].item<double>())};
  }

 private:
  Turns* turns_;
  const dist::ProcessGroup* group_;
};

Tensor normalize_together(const nn::BatchNorm& layer, const Tensor& x, double momentum) {
  const Meeting meeting;
  if (meeting.is_alone())
    return batch_norm(x, layer.running_mean, layer.running_var, layer.weight, layer.bias, /*training=*/true,
                      momentum, layer.eps());
  const int64_t channels = x.size(1);
  TERN_CHECK(channels == layer.num_features(), ShapeError,
             "SyncBatchNorm: expected {} channels, got input of shape {}", layer.num_features(),
             to_string(x.shape()));
  const bool is_small = x.dtype() == DType::Float16 || x.dtype() == DType::BFloat16;
  const DType dtype = is_small ? DType::Float32 : x.dtype();
  Shape dims, per_channel{channels};
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != 1) dims.push_back(d);
  for (int64_t d = 2; d < x.dim(); ++d) per_channel.push_back(1);
  auto spread = [&](const Tensor& vector) { return reshape(vector, per_channel); };

  const Tensor values = to(x, dtype);
  const auto [total, count] = meeting.sum({sum(values, dims), channels == 0 ? 0 : x.numel() / channels});
  TERN_CHECK(count > 1, ValueError,
             "SyncBatchNorm: Expected more than 1 value per channel when training, got {}", count);
  const double n = static_cast<double>(count);
  const Tensor mean = div(total, n);
  const Tensor deviation = sub(values, spread(mean));
  const Tensor variance = div(meeting.sum({sum(square(deviation), dims), 0}).values, n);
  {
    NoGradGuard no_grad;
    blend(layer.running_mean, mean, momentum);
    blend(layer.running_var, mul(variance, n / (n - 1)), momentum);
  }
  Tensor scale = rsqrt(add(variance, layer.eps()));
  if (layer.weight.defined()) scale = mul(scale, to(layer.weight, dtype));
  Tensor y = mul(deviation, spread(scale));
  if (layer.bias.defined()) y = add(y, spread(to(layer.bias, dtype)));
  return to(y, x.dtype());
}

constexpr nn::BatchNorm::TrainingNorm kSynchronised{"SyncBatchNorm", &normalize_together};

}  // namespace

SyncBatchNorm::SyncBatchNorm(int64_t num_features, const nn::BatchNormOptions& options)
    : BatchNorm("SyncBatchNorm", num_features, {.min_dim = 2}, options) {
  set_training_norm(&kSynchronised);
}

void convert_sync_batchnorm_(nn::Module& module) {
  for (nn::Module* each : module.modules())
    if (auto* layer = each->as<nn::BatchNorm>()) layer->set_training_norm(&kSynchronised);
}

bool needs_meetings(const nn::Module& module) {
  for (nn::Module* each : module.modules())
    if (auto* layer = each->as<nn::BatchNorm>())
      if (layer->training_norm() == &kSynchronised && layer->is_training()) return true;
  return false;
}

}  // namespace tern::parallel
