// Averages of a model's weights.
#include "tern/optim/swa_utils.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tern/base/check.h"
#include "tern/nn/norm.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"

namespace tern::optim {
namespace {

void average(const std::vector<Tensor>& averaged, const std::vector<Tensor>& current, double weight) {
  for (size_t i = 0; i < averaged.size(); ++i) {
    Tensor to = averaged[i];
    if (to.is_floating_point())
      to.lerp_(current[i], weight);
    else
      to.copy_(to * (1 - weight) + current[i] * weight);  // cut off to whole numbers
  }
}

/// The tensors of a dtype on a device.
struct TensorGroup {
  std::vector<Tensor> averaged, current;
};

}  // namespace

MultiAvgFn get_ema_multi_avg_fn(double decay) {
  TERN_CHECK(decay >= 0 && decay <= 1, ValueError,
             "get_ema_multi_avg_fn: Invalid decay value {} provided. Please provide a value in [0,1] range",
             decay);
  return
      [decay](const auto& averaged, const auto& current, int64_t) { average(averaged, current, 1 - decay); };
}

MultiAvgFn get_swa_multi_avg_fn() {
  return [](const auto& averaged, const auto& current, int64_t num_averaged) {
    average(averaged, current, 1 / static_cast<double>(num_averaged + 1));
  };
}

namespace detail {

nn::Buffer make_count(std::optional<Device> device) {
  return nn::Buffer(zeros({}, {.dtype = int64, .device = device.value_or(get_default_device())}));
}

void update_average(nn::Module& averaged, const nn::Module& model, nn::Buffer& n_averaged,
                    const AveragedModelOptions& options) {
  const NoGradGuard no_grad;
  const auto pairs = [&](const std::vector<Tensor>& to, const std::vector<Tensor>& from, const char* what) {
    TERN_CHECK(
        to.size() == from.size(), ValueError,
        "AveragedModel: the model has {} {}, the averaged one {}: it must be the model that the average "
        "was made of",
        from.size(), what, to.size());
    std::vector<std::pair<Tensor, Tensor>> list;
    for (size_t i = 0; i < to.size(); ++i) {
      TERN_CHECK(to[i].shape() == from[i].shape(), ValueError,
                 "AveragedModel: number {} of the {} has shape {}, in the averaged model {}", i, what,
                 to_string(from[i].shape()), to_string(to[i].shape()));
      list.emplace_back(to[i].detach(), from[i].detach().to(to[i].device()));
    }
    return list;
  };
  auto averages = pairs(averaged.parameters(), model.parameters(), "parameters");
  const auto buffers = pairs(averaged.buffers(), model.buffers(), "buffers");
  if (options.use_buffers) averages.insert(averages.end(), buffers.begin(), buffers.end());

  if (const int64_t count = n_averaged.item<int64_t>(); count == 0) {
    for (auto& [to, from] : averages) to.copy_(from);
  } else {
    std::vector<TensorGroup> groups;
    for (const auto& [to, from] : averages) {
      auto group = std::find_if(groups.begin(), groups.end(), [&to = to](const TensorGroup& g) {
        return g.averaged[0].dtype() == to.dtype() && g.averaged[0].device() == to.device();
      });
      if (group == groups.end()) group = groups.insert(group, TensorGroup());
      group->averaged.push_back(to);
      group->current.push_back(from.to(to.dtype()));
    }
    const MultiAvgFn& update = options.multi_avg_fn ? options.multi_avg_fn : get_swa_multi_avg_fn();
    for (const TensorGroup& group : groups) update(group.averaged, group.current, count);
  }
  if (!options.use_buffers)
    for (auto [to, from] : buffers) to.copy_(from);
  n_averaged.add_(1);
}

CollectedStatistics::CollectedStatistics(nn::Module& model) {
  for (nn::Module* module : model.modules()) {
    modes_.emplace_back(module, module->is_training());
    if (auto* layer = module->as<nn::BatchNorm>()) layers_.emplace_back(layer, layer->momentum());
  }
  if (layers_.empty()) return;
  for (const auto& [layer, momentum] : layers_) {
    layer->reset_running_stats();
    layer->set_momentum(std::nullopt);
  }
  model.train();
}

CollectedStatistics::~CollectedStatistics() {
  for (const auto& [layer, momentum] : layers_) layer->set_momentum(momentum);
  // Parents first, whose mode goes to all below.
  for (const auto& [module, training] : modes_)
    if (module->is_training() != training) module->train(training);
}

}  // namespace detail

SWALR::SWALR(Optimizer& optimizer, SWALROptions options)
    : LRScheduler("SWALR", optimizer),
      anneal_epochs_(options.anneal_epochs),
      anneal_strategy_(std::move(options.anneal_strategy)) {
  TERN_CHECK(!options.swa_lr.values.empty(), ValueError, "SWALR: swa_lr must be given");
  TERN_CHECK(anneal_strategy_ == "cos" || anneal_strategy_ == "linear", ValueError,
             "SWALR: anneal_strategy must be one of 'cos' or 'linear', instead got {}", anneal_strategy_);
  TERN_CHECK(anneal_epochs_ >= 0, ValueError, "SWALR: anneal_epochs must be equal or greater than 0, got {}",
             anneal_epochs_);
  const std::vector<double> lrs = options.swa_lr.expand("swa_lr", optimizer.num_groups());
  for (size_t g = 0; g < lrs.size(); ++g) optimizer.set_extra("swa_lr", lrs[g], g);
  start();
}

/// The share of swa_lr after a number of steps.
double SWALR::anneal(int64_t step) const {
  const double part = std::clamp(
      static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, anneal_epochs_)), 0.0, 1.0);
  return anneal_strategy_ == "linear" ? part : (1 - std::cos(std::numbers::pi * part)) / 2;
}

double SWALR::next_lr(size_t group) {
  const std::optional<double> swa_lr = optimizer().extra("swa_lr", group);
  TERN_CHECK(swa_lr, ValueError, "SWALR: parameter group {} of the optimizer has lost its 'swa_lr'", group);
  int64_t step = step_count_ - 1;
  if (anneal_epochs_ == 0) step = std::max<int64_t>(1, step);
  const double before = anneal(step - 1), now = anneal(step);
  const double first = before == 1 ? *swa_lr : (current(group) - before * *swa_lr) / (1 - before);
  return *swa_lr * now + first * (1 - now);
}

void SWALR::save(StateMap& map) const {
  map.set("_anneal_strategy", anneal_strategy_);
  map.set("anneal_epochs", anneal_epochs_);
}

std::function<void()> SWALR::load(const StateMap& map) {
  const std::string strategy = map.text("_anneal_strategy").value_or(anneal_strategy_);
  const int64_t epochs = map.integer("anneal_epochs").value_or(anneal_epochs_);
  TERN_CHECK((strategy == "cos" || strategy == "linear") && epochs >= 0, ValueError,
             "SWALR: the loaded anneal strategy and epochs are not usable: {}, {}", strategy, epochs);
  return [=, this] {
    anneal_strategy_ = strategy;
    anneal_epochs_ = epochs;
  };
}

}  // namespace tern::optim
