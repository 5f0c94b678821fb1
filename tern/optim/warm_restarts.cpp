// Cosine annealing with restarts.
#include "tern/optim/warm_restarts.h"

#include <cmath>
#include <numbers>

#include "tern/base/check.h"

namespace tern::optim {
namespace {

void check(const CosineAnnealingWarmRestartsOptions& o) {
  TERN_CHECK(o.T_0 >= 1, ValueError, "CosineAnnealingWarmRestarts: Expected positive integer T_0, but got {}",
             o.T_0);
  TERN_CHECK(o.T_mult >= 1, ValueError,
             "CosineAnnealingWarmRestarts: Expected integer T_mult >= 1, but got {}", o.T_mult);
}

/// Counts of epochs are saved as ints, parts of epochs as floats.
StateValue epochs_value(double epochs) {
  if (std::trunc(epochs) == epochs && std::fabs(epochs) < 0x1p53) return static_cast<int64_t>(epochs);
  return epochs;
}

}  // namespace

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer,
                                                         const CosineAnnealingWarmRestartsOptions& options)
    : LRScheduler("CosineAnnealingWarmRestarts", optimizer),
      options_(options),
      length_(static_cast<double>(options.T_0)) {
  check(options);
  start();
}

void CosineAnnealingWarmRestarts::step() {
  if (last_epoch_ < 0) return step(0.0);
  since_restart_ += 1;
  if (since_restart_ >= length_) {
    since_restart_ = std::fmod(since_restart_, length_);
    length_ *= static_cast<double>(options_.T_mult);
  }
  update_lr(last_epoch_ + 1);
}

void CosineAnnealingWarmRestarts::step(double epoch) {
  TERN_CHECK(epoch >= 0 && epoch < 0x1p53, ValueError,
             "CosineAnnealingWarmRestarts: Expected non-negative epoch, but got {}", epoch);
  const double first = static_cast<double>(options_.T_0), factor = static_cast<double>(options_.T_mult);
  if (epoch < first) {
    since_restart_ = epoch;
    length_ = first;
  } else if (options_.T_mult == 1) {
    since_restart_ = std::fmod(epoch, first);
  } else {
    const double restarts = std::trunc(std::log(epoch / first * (factor - 1) + 1) / std::log(factor));
    const double growth = std::pow(factor, restarts);
    since_restart_ = epoch - first * (growth - 1) / (factor - 1);
    length_ = first * growth;
  }
  update_lr(static_cast<int64_t>(std::floor(epoch)));
}

double CosineAnnealingWarmRestarts::next_lr(size_t group) {
  const double low = options_.eta_min;
  return low + (base(group) - low) * (1 + std::cos(std::numbers::pi * since_restart_ / length_)) / 2;
}

void CosineAnnealingWarmRestarts::save(StateMap& map) const {
  map.set("T_0", options_.T_0);
  map.set("T_i", epochs_value(length_));
  map.set("T_mult", options_.T_mult);
  map.set("eta_min", options_.eta_min);
  map.set("T_cur", epochs_value(since_restart_));
}

std::function<void()> CosineAnnealingWarmRestarts::load(const StateMap& map) {
  const CosineAnnealingWarmRestartsOptions read{map.integer("T_0").value_or(options_.T_0),
                                                map.integer("T_mult").value_or(options_.T_mult),
                                                map.number("eta_min").value_or(options_.eta_min)};
  check(read);
  const double length = map.number("T_i").value_or(length_),
               since = map.number("T_cur").value_or(since_restart_);
  TERN_CHECK(
      length > 0 && since >= 0, ValueError,
      "CosineAnnealingWarmRestarts: the loaded T_i must be positive and T_cur not negative, got {} and {}",
      length, since);
  return [=, this] {
    options_ = read;
    length_ = length;
    since_restart_ = since;
  };
}

}  // namespace tern::optim
