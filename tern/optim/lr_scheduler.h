// Schedules of the learning rate: the base and the simple ones. Those of more state have files of their own:
// cyclic_lr.h, one_cycle_lr.h, reduce_lr_on_plateau.h, warm_restarts.h, and combined_lr.h for schedules made
// of schedules. Formulas, names and saved entries are those of torch.optim.lr_scheduler.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tern/optim/optimizer.h"
#include "tern/optim/state.h"

namespace tern::optim {

/// Base of schedules. A schedule sets the first learning rate when it is made, and the next with each
/// `step()`, which comes after the optimizer's. It refers to the optimizer, which must outlive it.
class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  /// "StepLR".
  const char* name() const noexcept { return name_; }
  /// Goes on by one epoch (or whatever the schedule counts) and sets the learning rates of all groups.
  virtual void step();
  /// The learning rates that the last step set.
  const std::vector<double>& get_last_lr() const noexcept { return last_lr_; }
  /// Number of steps so far.
  int64_t last_epoch() const noexcept { return last_epoch_; }
  Optimizer& optimizer() const noexcept { return optimizer_; }

  /// The entries that PyTorch saves. Functions are not saved.
  virtual StateMap state_dict() const;
  /// Goes on where the saved schedule was. The optimizer's learning rate is part of the optimizer's own
  /// state. Throws ValueError or TypeError; then nothing has been changed.
  virtual void load_state_dict(const StateMap& saved);

 protected:
  /// Keeps the optimizer's present learning rates as `initial_lr`, unless a schedule before it did.
  LRScheduler(const char* name, Optimizer& optimizer);
  /// Without `initial_lr`: for schedules that only know the present learning rate, or set it first.
  struct KeepNoInitial {};
  LRScheduler(const char* name, Optimizer& optimizer, KeepNoInitial) : name_(name), optimizer_(optimizer) {}

  void keep_initial_lrs();
  /// Takes the groups' `initial_lr` as the base.
  void keep_base_lrs();
  /// The first step; for the constructors of schedules.
  void start();
  /// The learning rate of a group at last_epoch(), from the present one.
  virtual double next_lr(size_t group) = 0;
  /// The same from nothing but the base; nothing when there is no such formula.
  virtual std::optional<double> closed_form_lr(size_t /*group*/) const { return std::nullopt; }
  /// Adds the schedule's own entries.
  virtual void save(StateMap& map) const = 0;
  /// Reads them and returns what puts them in place.
  virtual std::function<void()> load(const StateMap& map) = 0;

  /// A loaded list that has a number for each parameter group, or `present` where it was not saved. Throws
  /// ValueError, naming the key, for another length.
  std::vector<double> load_per_group(const StateMap& saved, const char* key,
                                     const std::vector<double>& present) const;

  /// Sets the learning rates for the next epoch, or for `epoch`.
  void update_lr(std::optional<int64_t> epoch = std::nullopt);
  double current(size_t group) const { return optimizer_.lr(group); }
  double base(size_t group) const { return base_lrs_.at(group); }
  void set_base_lrs(std::vector<double> lrs) { base_lrs_ = std::move(lrs); }
  /// Forgets the first step, before a schedule that this one is part of takes it.
  virtual void take_back_first_step() { --last_epoch_; }

  bool initial_ = false;    ///< during the first step
  int64_t step_count_ = 0;  ///< calls of step, the first one included
  int64_t last_epoch_ = -1;
  std::vector<double> last_lr_;

 private:
  friend class CombinedLR;
  friend class SequentialLR;

  const char* name_;
  Optimizer& optimizer_;
  std::vector<double> base_lrs_;
};

struct StepLROptions {
  int64_t step_size = 0;  ///< to be given
  double gamma = 0.1;
};
/// Multiplies the learning rate by gamma every `step_size` epochs.
class StepLR final : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, const StepLROptions& options);

 private:
  double next_lr(size_t group) override;
  std::optional<double> closed_form_lr(size_t group) const override;
  void save(StateMap& map) const override;
  std::function<void()> load(const StateMap& map) override;
  StepLROptions options_;
};

struct MultiStepLROptions {
  std::vector<int64_t> milestones = {};
  double gamma = 0.1;
};
/// Multiplies the learning rate by gamma at each milestone. (Its saved `milestones` are a list; PyTorch's a
/// Counter.)
class MultiStepLR final : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, MultiStepLROptions options);

 private:
  double next_lr(size_t group) override;
  std::optional<double> closed_form_lr(size_t group) const override;
  void save(StateMap& map) const override;
  std::function<void()> load(const StateMap& map) override;
  MultiStepLROptions options_;
};

struct ConstantLROptions {
  double factor = 1.0 / 3;
  int64_t total_iters = 5;
};
/// Multiplies the learning rate by `factor` until `total_iters` epochs have passed.
class ConstantLR final : public LRScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, const ConstantLROptions& options = {});

 private:
  double next_lr(size_t group) override;
  std::optional<double> closed_form_lr(size_t group) const override;
  void save(StateMap& map) const override;
  std::function<void()> load(const StateMap& map) override;
  ConstantLROptions options_;
};

struct LinearLROptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1.0;
  int64_t total_iters = 5;
};
/// Goes in equal steps from start_factor to end_factor times the learning rate.
class LinearLR final : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, const LinearLROptions& options = {});

 private:
  double next_lr(size_t group) override;
  std::optional<double> closed_form_lr(size_t group) const override;
  void save(StateMap& map) const override;
  std::function<void()> load(const StateMap& map) override;
  LinearLROptions options_;
};

/// Multiplies the learning rate by gamma every epoch.
class ExponentialLR final : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 private:
  double next_lr(size_t group) override;
  std::optional<double> closed_form_lr(size_t group) const override;
  void save(StateMap& map) const override;
  std::function<void()> load(const StateMap& map) override;
  double gamma_;
};

struct CosineAnnealingLROptions {
  int64_t T_max = 0;  ///< to be given
  double eta_min = 0;
};
/// Half a cosine from the learning rate down to eta_min in T_max epochs, and up again (Loshchilov and Hutter,
/// "SGDR: stochastic gradient descent with warm restarts", ICLR 2017, without the restarts).
class CosineAnnealingLR final : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options);

 private:
  double next_lr(size_t group) override;
  std::optional<double> closed_form_lr(size_t group) const override;
  void save(StateMap& map) const override;
  std::function<void()> load(const StateMap& map) override;
  CosineAnnealingLROptions options_;
};

struct PolynomialLROptions {
  int64_t total_iters = 5;
  double power = 1.0;
};
/// Goes down to 0 in `total_iters` epochs, as a power of what is left of them.
class PolynomialLR final : public LRScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, const PolynomialLROptions& options = {});

 private:
  double next_lr(size_t group) override;
  std::optional<double> closed_form_lr(size_t group) const override;
  void save(StateMap& map) const override;
  std::function<void()> load(const StateMap& map) override;
  PolynomialLROptions options_;
};

/// What schedules share whose learning rate a function of the epoch gives, one function for each group.
/// Functions are not saved.
class FunctionLR : public LRScheduler {
 public:
  using Function = std::function<double(int64_t epoch)>;

 protected:
  FunctionLR(const char* name, Optimizer& optimizer, std::vector<Function> lr_lambdas);
  double factor(size_t group) const { return lr_lambdas_.at(group)(last_epoch_); }

 private:
  void save(StateMap& map) const override;
  std::function<void()> load(const StateMap& map) override;
  std::vector<Function> lr_lambdas_;
};

/// Multiplies the first learning rate by a function of the epoch.
class LambdaLR final : public FunctionLR {
 public:
  LambdaLR(Optimizer& optimizer, Function lr_lambda);
  /// One function for each group.
  LambdaLR(Optimizer& optimizer, std::vector<Function> lr_lambdas);

 private:
  double next_lr(size_t group) override { return base(group) * factor(group); }
};

/// Multiplies the present learning rate by a function of the epoch, from epoch 1 on.
class MultiplicativeLR final : public FunctionLR {
 public:
  MultiplicativeLR(Optimizer& optimizer, Function lr_lambda);
  /// One function for each group.
  MultiplicativeLR(Optimizer& optimizer, std::vector<Function> lr_lambdas);

 private:
  double next_lr(size_t group) override { return initial_ ? current(group) : current(group) * factor(group); }
};

/// A number for all parameter groups, or one for each.
struct PerGroup {
  PerGroup(double value) : values{value} {}
  PerGroup(std::initializer_list<double> list) : values(list) {}
  PerGroup(std::vector<double> list) : values(std::move(list)) {}
  /// As many numbers as there are groups. Throws ValueError, naming the option, for another number of them.
  std::vector<double> expand(const char* option, size_t groups) const;

  std::vector<double> values;
};

}  // namespace tern::optim
