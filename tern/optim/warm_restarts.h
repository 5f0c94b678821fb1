// Cosine annealing with restarts. The base of schedules is in optim/lr_scheduler.h.
#pragma once

#include "tern/optim/lr_scheduler.h"

namespace tern::optim {

struct CosineAnnealingWarmRestartsOptions {
  int64_t T_0 = 0;     ///< epochs up to the first restart; to be given
  int64_t T_mult = 1;  ///< each further time is so many times as long
  double eta_min = 0;
};

/// Half a cosine from the learning rate down to eta_min, again and again (Loshchilov and Hutter, "SGDR:
/// stochastic gradient descent with warm restarts", ICLR 2017).
class CosineAnnealingWarmRestarts final : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, const CosineAnnealingWarmRestartsOptions& options);
  void step() override;
  /// Goes to an epoch, also to a part of one: `step(epoch + batch / batches)`. Throws ValueError for a
  /// negative one.
  void step(double epoch);

 private:
  double next_lr(size_t group) override;
  void save(StateMap& map) const override;
  std::function<void()> load(const StateMap& map) override;

  CosineAnnealingWarmRestartsOptions options_;
  double since_restart_ = 0;  ///< T_cur of PyTorch
  double length_;             ///< T_i
};

}  // namespace tern::optim
