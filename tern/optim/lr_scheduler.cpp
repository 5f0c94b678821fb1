// The base of schedules, and the simple ones.
#include "tern/optim/lr_scheduler.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tern/base/check.h"

namespace tern::optim {

using std::numbers::pi;

LRScheduler::LRScheduler(const char* name, Optimizer& optimizer) : name_(name), optimizer_(optimizer) {
  keep_initial_lrs();
  keep_base_lrs();
}

void LRScheduler::keep_initial_lrs() {
  for (size_t g = 0; g < optimizer_.num_groups(); ++g)
    if (!optimizer_.extra("initial_lr", g)) optimizer_.set_extra("initial_lr", optimizer_.lr(g), g);
}

void LRScheduler::keep_base_lrs() {
  base_lrs_.clear();
  for (size_t g = 0; g < optimizer_.num_groups(); ++g)
    base_lrs_.push_back(*optimizer_.extra("initial_lr", g));
}

void LRScheduler::start() {
  step_count_ = 0;
  initial_ = true;
  step();
  initial_ = false;
}

void LRScheduler::step() {
  ++step_count_;
  update_lr();
}

void LRScheduler::update_lr(std::optional<int64_t> epoch) {
  const int64_t before = std::exchange(last_epoch_, epoch.value_or(last_epoch_ + 1));
  std::vector<double> lrs;
  try {
    TERN_CHECK(base_lrs_.size() == optimizer_.num_groups(), ValueError,
               "schedule: the optimizer has {} parameter groups, it had {} when the schedule was made: make "
               "the schedule after "
               "the last group was added",
               optimizer_.num_groups(), base_lrs_.size());
    for (size_t g = 0; g < optimizer_.num_groups(); ++g) {
      std::optional<double> closed = epoch ? closed_form_lr(g) : std::nullopt;
      lrs.push_back(closed ? *closed : next_lr(g));
    }
  } catch (...) {
    last_epoch_ = before;
    throw;
  }
  for (size_t g = 0; g < lrs.size(); ++g) optimizer_.set_lr(lrs[g], g);
  last_lr_ = std::move(lrs);
}

StateMap LRScheduler::state_dict() const {
  StateMap map;
  save(map);
  map.set("base_lrs", base_lrs_);
  map.set("last_epoch", last_epoch_);
  map.set("_step_count", step_count_);
  map.set("_is_initial", false);
  map.set("_get_lr_called_within_step", false);
  map.set("_last_lr", last_lr_);
  return map;
}

std::vector<double> LRScheduler::load_per_group(const StateMap& saved, const char* key,
                                                const std::vector<double>& present) const {
  auto values = saved.numbers(key);
  if (!values) return present;
  TERN_CHECK(values->size() == optimizer_.num_groups(), ValueError,
             "{}: '{}' of the loaded state has {} numbers, the optimizer has {} parameter groups", name_, key,
             values->size(), optimizer_.num_groups());
  return *std::move(values);
}

void LRScheduler::load_state_dict(const StateMap& saved) {
  auto put = load(saved);
  auto base_lrs = load_per_group(saved, "base_lrs", base_lrs_);
  auto last_lr = load_per_group(saved, "_last_lr", last_lr_);
  auto last_epoch = saved.integer("last_epoch");
  TERN_CHECK(last_epoch.has_value(), ValueError, "schedule: the loaded state has no 'last_epoch'");
  auto step_count = saved.integer("_step_count").value_or(*last_epoch + 1);
  put();
  base_lrs_ = std::move(base_lrs);
  last_lr_ = std::move(last_lr);
  last_epoch_ = *last_epoch;
  step_count_ = step_count;
}

// ---- StepLR
// ----------------------------------------------------------------------------------------------------------

StepLR::StepLR(Optimizer& optimizer, const StepLROptions& options)
    : LRScheduler("StepLR", optimizer), options_(options) {
  TERN_CHECK(options.step_size >= 1, ValueError, "StepLR: step_size must be at least 1, got {}",
             options.step_size);
  start();
}

double StepLR::next_lr(size_t group) {
  if (last_epoch_ == 0 || last_epoch_ % options_.step_size != 0) return current(group);
  return current(group) * options_.gamma;
}

std::optional<double> StepLR::closed_form_lr(size_t group) const {
  return base(group) * std::pow(options_.gamma, static_cast<double>(last_epoch_ / options_.step_size));
}

void StepLR::save(StateMap& map) const {
  map.set("step_size", options_.step_size);
  map.set("gamma", options_.gamma);
}

std::function<void()> StepLR::load(const StateMap& map) {
  StepLROptions read{map.integer("step_size").value_or(options_.step_size),
                     map.number("gamma").value_or(options_.gamma)};
  TERN_CHECK(read.step_size >= 1, ValueError, "StepLR: the loaded step_size must be at least 1, got {}",
             read.step_size);
  return [this, read] { options_ = read; };
}

// ---- MultiStepLR
// -----------------------------------------------------------------------------------------------------

MultiStepLR::MultiStepLR(Optimizer& optimizer, MultiStepLROptions options)
    : LRScheduler("MultiStepLR", optimizer), options_(std::move(options)) {
  std::sort(options_.milestones.begin(), options_.milestones.end());
  start();
}

double MultiStepLR::next_lr(size_t group) {
  const auto [first, last] =
      std::equal_range(options_.milestones.begin(), options_.milestones.end(), last_epoch_);
  if (first == last) return current(group);
  return current(group) * std::pow(options_.gamma, static_cast<double>(last - first));
}

std::optional<double> MultiStepLR::closed_form_lr(size_t group) const {
  const auto& list = options_.milestones;
  auto passed = std::upper_bound(list.begin(), list.end(), last_epoch_) - list.begin();
  return base(group) * std::pow(options_.gamma, static_cast<double>(passed));
}

void MultiStepLR::save(StateMap& map) const {
  map.set("milestones", options_.milestones);
  map.set("gamma", options_.gamma);
}

std::function<void()> MultiStepLR::load(const StateMap& map) {
  MultiStepLROptions read{map.integers("milestones").value_or(options_.milestones),
                          map.number("gamma").value_or(options_.gamma)};
  std::sort(read.milestones.begin(), read.milestones.end());
  return [this, read] { options_ = read; };
}

// ---- ConstantLR
// ------------------------------------------------------------------------------------------------------

ConstantLR::ConstantLR(Optimizer& optimizer, const ConstantLROptions& options)
    : LRScheduler("ConstantLR", optimizer), options_(options) {
  TERN_CHECK(options.factor > 0 && options.factor <= 1, ValueError,
             "ConstantLR: Constant multiplicative factor expected to be between 0 and 1, and not 0, got {}",
             options.factor);
  start();
}

double ConstantLR::next_lr(size_t group) {
  if (last_epoch_ == 0) return current(group) * options_.factor;
  if (last_epoch_ != options_.total_iters) return current(group);
  return current(group) * (1.0 / options_.factor);
}

std::optional<double> ConstantLR::closed_form_lr(size_t group) const {
  return base(group) * (options_.factor + (last_epoch_ >= options_.total_iters ? 1 - options_.factor : 0.0));
}

void ConstantLR::save(StateMap& map) const {
  map.set("factor", options_.factor);
  map.set("total_iters", options_.total_iters);
}

std::function<void()> ConstantLR::load(const StateMap& map) {
  ConstantLROptions read{map.number("factor").value_or(options_.factor),
                         map.integer("total_iters").value_or(options_.total_iters)};
  return [this, read] { options_ = read; };
}

// ---- LinearLR
// --------------------------------------------------------------------------------------------------------

LinearLR::LinearLR(Optimizer& optimizer, const LinearLROptions& options)
    : LRScheduler("LinearLR", optimizer), options_(options) {
  TERN_CHECK(
      options.start_factor > 0 && options.start_factor <= 1, ValueError,
      "LinearLR: Starting multiplicative factor expected to be greater than 0 and less or equal to 1, got {}",
      options.start_factor);
  TERN_CHECK(options.end_factor >= 0 && options.end_factor <= 1, ValueError,
             "LinearLR: Ending multiplicative factor expected to be between 0 and 1, got {}",
             options.end_factor);
  start();
}

double LinearLR::next_lr(size_t group) {
  const auto& [first, last, iters] = options_;
  if (last_epoch_ == 0) return current(group) * first;
  if (initial_ || last_epoch_ > iters) return current(group);
  return current(group) * (1.0 + (last - first) / (static_cast<double>(iters) * first +
                                                   static_cast<double>(last_epoch_ - 1) * (last - first)));
}

std::optional<double> LinearLR::closed_form_lr(size_t group) const {
  const auto& [first, last, iters] = options_;
  if (iters == 0) return base(group) * last;
  return base(group) * (first + (last - first) * static_cast<double>(std::min(iters, last_epoch_)) /
                                    static_cast<double>(iters));
}

void LinearLR::save(StateMap& map) const {
  map.set("start_factor", options_.start_factor);
  map.set("end_factor", options_.end_factor);
  map.set("total_iters", options_.total_iters);
}

std::function<void()> LinearLR::load(const StateMap& map) {
  LinearLROptions read{map.number("start_factor").value_or(options_.start_factor),
                       map.number("end_factor").value_or(options_.end_factor),
                       map.integer("total_iters").value_or(options_.total_iters)};
  return [this, read] { options_ = read; };
}

// ---- ExponentialLR
// ---------------------------------------------------------------------------------------------------

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma)
    : LRScheduler("ExponentialLR", optimizer), gamma_(gamma) {
  start();
}

double ExponentialLR::next_lr(size_t group) { return initial_ ? current(group) : current(group) * gamma_; }

std::optional<double> ExponentialLR::closed_form_lr(size_t group) const {
  return base(group) * std::pow(gamma_, static_cast<double>(last_epoch_));
}

void ExponentialLR::save(StateMap& map) const { map.set("gamma", gamma_); }

std::function<void()> ExponentialLR::load(const StateMap& map) {
  return [this, gamma = map.number("gamma").value_or(gamma_)] { gamma_ = gamma; };
}

// ---- CosineAnnealingLR
// -----------------------------------------------------------------------------------------------

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options)
    : LRScheduler("CosineAnnealingLR", optimizer), options_(options) {
  TERN_CHECK(options.T_max >= 1, ValueError, "CosineAnnealingLR: T_max must be at least 1, got {}",
             options.T_max);
  start();
}

double CosineAnnealingLR::next_lr(size_t group) {
  const double epoch = static_cast<double>(last_epoch_), T_max = static_cast<double>(options_.T_max),
               low = options_.eta_min;
  if (initial_) return current(group);
  if (step_count_ == 1 && last_epoch_ > 0)
    return low + (base(group) - low) * (1 + std::cos(epoch * pi / T_max)) / 2;
  if ((last_epoch_ - 1 - options_.T_max) % (2 * options_.T_max) == 0)
    return current(group) + (base(group) - low) * (1 - std::cos(pi / T_max)) / 2;
  return (1 + std::cos(pi * epoch / T_max)) / (1 + std::cos(pi * (epoch - 1) / T_max)) *
             (current(group) - low) +
         low;
}

std::optional<double> CosineAnnealingLR::closed_form_lr(size_t group) const {
  const double low = options_.eta_min;
  return low +
         (base(group) - low) *
             (1 + std::cos(pi * static_cast<double>(last_epoch_) / static_cast<double>(options_.T_max))) / 2;
}

void CosineAnnealingLR::save(StateMap& map) const {
  map.set("T_max", options_.T_max);
  map.set("eta_min", options_.eta_min);
}

std::function<void()> CosineAnnealingLR::load(const StateMap& map) {
  CosineAnnealingLROptions read{map.integer("T_max").value_or(options_.T_max),
                                map.number("eta_min").value_or(options_.eta_min)};
  TERN_CHECK(read.T_max >= 1, ValueError, "CosineAnnealingLR: the loaded T_max must be at least 1, got {}",
             read.T_max);
  return [this, read] { options_ = read; };
}

// ---- PolynomialLR
// ----------------------------------------------------------------------------------------------------

PolynomialLR::PolynomialLR(Optimizer& optimizer, const PolynomialLROptions& options)
    : LRScheduler("PolynomialLR", optimizer), options_(options) {
  TERN_CHECK(options.total_iters >= 1, ValueError, "PolynomialLR: total_iters must be at least 1, got {}",
             options.total_iters);
  start();
}

double PolynomialLR::next_lr(size_t group) {
  if (initial_ || last_epoch_ > options_.total_iters) return current(group);
  const double epoch = static_cast<double>(last_epoch_), iters = static_cast<double>(options_.total_iters);
  return current(group) * std::pow((1.0 - epoch / iters) / (1.0 - (epoch - 1) / iters), options_.power);
}

std::optional<double> PolynomialLR::closed_form_lr(size_t group) const {
  const auto& [iters, power] = options_;
  const double passed = static_cast<double>(std::min(iters, last_epoch_)) / static_cast<double>(iters);
  return base(group) * std::pow(1.0 - passed, power);
}

void PolynomialLR::save(StateMap& map) const {
  map.set("total_iters", options_.total_iters);
  map.set("power", options_.power);
}

std::function<void()> PolynomialLR::load(const StateMap& map) {
  PolynomialLROptions read{map.integer("total_iters").value_or(options_.total_iters),
                           map.number("power").value_or(options_.power)};
  TERN_CHECK(read.total_iters >= 1, ValueError,
             "PolynomialLR: the loaded total_iters must be at least 1, got {}", read.total_iters);
  return [this, read] { options_ = read; };
}

// ---- LambdaLR, MultiplicativeLR
// --------------------------------------------------------------------------------------

FunctionLR::FunctionLR(const char* name, Optimizer& optimizer, std::vector<Function> lr_lambdas)
    : LRScheduler(name, optimizer), lr_lambdas_(std::move(lr_lambdas)) {
  TERN_CHECK(lr_lambdas_.size() == optimizer.num_groups(), ValueError,
             "{}: Expected {} lr_lambdas, but got {}", name, optimizer.num_groups(), lr_lambdas_.size());
  for (const Function& function : lr_lambdas_)
    TERN_CHECK(static_cast<bool>(function), ValueError, "{}: one of the functions is empty", name);
}

void FunctionLR::save(StateMap& map) const {
  map.set("lr_lambdas", std::vector<std::monostate>(lr_lambdas_.size()));
}
std::function<void()> FunctionLR::load(const StateMap&) {
  return [] {};
}

LambdaLR::LambdaLR(Optimizer& optimizer, Function lr_lambda)
    : LambdaLR(optimizer, std::vector<Function>(optimizer.num_groups(), std::move(lr_lambda))) {}
LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Function> lr_lambdas)
    : FunctionLR("LambdaLR", optimizer, std::move(lr_lambdas)) {
  start();
}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, Function lr_lambda)
    : MultiplicativeLR(optimizer, std::vector<Function>(optimizer.num_groups(), std::move(lr_lambda))) {}
MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, std::vector<Function> lr_lambdas)
    : FunctionLR("MultiplicativeLR", optimizer, std::move(lr_lambdas)) {
  start();
}

// ---- PerGroup
// --------------------------------------------------------------------------------------------------------

std::vector<double> PerGroup::expand(const char* option, size_t groups) const {
  if (values.size() == 1) return std::vector<double>(groups, values.front());
  TERN_CHECK(values.size() == groups, ValueError,
             "{} must have the same length as optimizer.param_groups: {} has {} values, param_groups has {}",
             option, option, values.size(), groups);
  return values;
}

}  // namespace tern::optim
