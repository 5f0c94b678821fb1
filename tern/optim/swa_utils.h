// Averages of a model's weights, as torch.optim.swa_utils: stochastic weight averaging (SWA) and exponential
// moving averages (EMA).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tern/autograd/grad_mode.h"
#include "tern/nn/module.h"
#include "tern/optim/lr_scheduler.h"

namespace tern::nn {
class BatchNorm;
}

namespace tern::optim {

/// Updates averages in place. Called with the averages of one dtype on one device, the present values, and
/// the number of models that have been averaged so far.
using MultiAvgFn = std::function<void(const std::vector<Tensor>& averaged, const std::vector<Tensor>& current,
                                      int64_t num_averaged)>;

/// average = decay * average + (1 - decay) * current. Throws ValueError for a decay outside [0, 1].
MultiAvgFn get_ema_multi_avg_fn(double decay = 0.999);
/// The average in which all models have the same weight.
MultiAvgFn get_swa_multi_avg_fn();

struct AveragedModelOptions {
  std::optional<Device> device = std::nullopt;  ///< of the averages; by default the model's
  MultiAvgFn multi_avg_fn = {};                 ///< by default get_swa_multi_avg_fn()
  /// Buffers are averaged too; otherwise they are copied from the model.
  bool use_buffers = false;
};

namespace detail {

/// AveragedModel::update_parameters for any module.
void update_average(nn::Module& averaged, const nn::Module& model, nn::Buffer& n_averaged,
                    const AveragedModelOptions& options);
nn::Buffer make_count(std::optional<Device> device);

/// While it lives, the batch norm layers of a model collect the plain average over all batches anew.
class CollectedStatistics {
 public:
  explicit CollectedStatistics(nn::Module& model);
  ~CollectedStatistics();
  CollectedStatistics(const CollectedStatistics&) = delete;
  CollectedStatistics& operator=(const CollectedStatistics&) = delete;
  bool empty() const noexcept { return layers_.empty(); }

 private:
  std::vector<std::pair<nn::BatchNorm*, std::optional<double>>> layers_;  ///< with their momenta
  std::vector<std::pair<nn::Module*, bool>> modes_;
};

/// The input in a batch: the batch itself, or its first tensor.
template <class Batch>
const Tensor& input_of(const Batch& batch) {
  if constexpr (std::is_convertible_v<const Batch&, const Tensor&>)
    return batch;
  else if constexpr (requires { batch.data.defined(); })
    return batch.data;
  else if constexpr (requires { std::get<0>(batch); })
    return std::get<0>(batch);
  else
    return batch[0];
}

}  // namespace detail

/// A copy of a model whose weights are averages over the model's at several times (Izmailov et al.,
/// "Averaging weights leads to wider optima and better generalization", UAI 2018; Polyak and Juditsky, 1992).
/// In its state dict stand `n_averaged` and the model's names after `module.`, as in PyTorch.
///
///     optim::AveragedModel ema(net, {.multi_avg_fn = optim::get_ema_multi_avg_fn(0.999)});
///     ...  optimizer.step();  ema.update_parameters(net);
///     Tensor y = ema(x);
template <class M>
class AveragedModel final : public nn::Module {
 public:
  M module;
  nn::Buffer n_averaged;  ///< 0-d int64
  TERN_MODULE(module, n_averaged)

  explicit AveragedModel(const M& model, AveragedModelOptions options = {})
      : module(nn::clone(model)), options_(std::move(options)) {
    if (options_.device) module.to(*options_.device);
    n_averaged = detail::make_count(options_.device);
  }

  template <class... Args>
  auto forward(Args&&... args) {
    return module(std::forward<Args>(args)...);
  }
  std::string class_name() const override { return "AveragedModel"; }

  /// Takes one more model into the average; the first is copied. Throws ValueError for a model with other
  /// tensors.
  void update_parameters(const nn::Module& model) {
    detail::update_average(module, model, n_averaged, options_);
  }

 private:
  AveragedModelOptions options_;
};

/// Collects the running statistics of a model's batch norm layers anew, in one pass over `loader`: any range
/// of tensors, or of batches whose first tensor is the input. Layers keep their momenta, and modules their
/// modes.
template <class Loader, class M>
void update_bn(Loader&& loader, M& model, std::optional<Device> device = std::nullopt) {
  const NoGradGuard no_grad;
  const detail::CollectedStatistics collected(model);
  if (collected.empty()) return;
  for (auto&& batch : loader) {
    const Tensor& input = detail::input_of(batch);
    model(device ? input.to(*device) : input);
  }
}

struct SWALROptions {
  PerGroup swa_lr = std::vector<double>{};  ///< to be given
  int64_t anneal_epochs = 10;
  std::string anneal_strategy = "cos";  ///< or "linear"
};

/// Goes from the present learning rate to `swa_lr` in `anneal_epochs` epochs, and stays there.
class SWALR final : public LRScheduler {
 public:
  SWALR(Optimizer& optimizer, SWALROptions options);

 private:
  double next_lr(size_t group) override;
  void save(StateMap& map) const override;
  std::function<void()> load(const StateMap& map) override;
  double anneal(int64_t step) const;

  int64_t anneal_epochs_;
  std::string anneal_strategy_;
};

}  // namespace tern::optim
