// Optimizer: parameter groups, state of the parameters, saving and loading. The algorithms are in the files
// beside this one, their kernels in kernels/optim.h.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tern/core/recording.h"
#include "tern/core/tensor.h"
#include "tern/kernels/optim.h"
#include "tern/optim/state.h"

namespace tern::optim {

/// Base of optimizers. It holds handles to the parameters; each step updates those that have a gradient, in
/// one launch for each group (and dtype and device in it). Neither copyable nor movable: schedules refer to
/// it.
///
/// Groups are numbered from 0. Every function that takes the number of one throws IndexError for one that is
/// not there.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates all parameters that have a gradient, and counts a change in place of each.
  virtual void step() = 0;
  /// Computes the loss anew: zero_grad, forward, backward; returns the loss.
  using Closure = std::function<Tensor()>;
  /// Calls `closure`, with gradients being recorded, then takes a step, and returns what it gave. Throws
  /// ValueError for an empty function.
  virtual Tensor step(const Closure& closure);
  /// Takes the gradients away, or fills them with zeros.
  void zero_grad(bool set_to_none = true);

  /// "Adam".
  const char* name() const noexcept { return name_; }
  size_t num_groups() const noexcept { return groups_.size(); }
  std::vector<Tensor> params(size_t group) const;

  virtual double lr(size_t group = 0) const = 0;
  virtual void set_lr(double lr, size_t group) = 0;
  /// For all groups.
  void set_lr(double lr);
  /// The momentum, or the first of the betas; nothing when the algorithm has neither.
  virtual std::optional<double> momentum(size_t group = 0) const = 0;
  virtual void set_momentum(double momentum, size_t group) = 0;
  /// True when that is the first of the betas.
  virtual bool uses_beta1() const noexcept = 0;
  /// Further values of a group that are saved with it: `initial_lr` and others that schedules leave there.
  virtual std::optional<double> extra(std::string_view name, size_t group) const {
    return extras(checked(group)).number(name);
  }
  virtual void set_extra(std::string_view name, double value, size_t group) {
    extras(checked(group)).set(name, value);
  }

  /// PyTorch's layout and names. The tensors are the optimizer's own, not copies.
  virtual OptimizerState state_dict() const;
  /// Takes copies of the saved values, converted to the parameters' dtype and device. Parameters are matched
  /// by their place in the groups. Throws ValueError (PyTorch's sentences), ShapeError or TypeError; then
  /// nothing has been changed.
  virtual void load_state_dict(const OptimizerState& saved);

 protected:
  static constexpr int kMaxStates = 3;
  static constexpr int kMaxNumbers = 2;

  /// One parameter with its state; what is in `state` depends on the algorithm, undefined before the first
  /// step.
  struct Slot {
    Tensor param;
    std::array<Tensor, kMaxStates> state{};
    int64_t steps = 0;
    bool fresh = false;                         ///< its state holds nothing yet
    std::array<double, kMaxNumbers> numbers{};  ///< further state, from the first step on

    bool has_state() const noexcept { return steps > 0 || state[0].defined(); }
  };
  struct Group {
    std::vector<Slot> slots;
    StateMap extra;
  };
  /// How an algorithm's state is saved.
  struct StateLayout {
    bool has_step = false;
    std::array<const char*, kMaxStates> names{};     ///< null: not used
    std::array<bool, kMaxStates> required{};         ///< a saved state without it is an error
    std::optional<double> initial = std::nullopt;    ///< set: state exists from the start, filled with this
    std::array<const char*, kMaxNumbers> numbers{};  ///< of Slot::numbers; null: not used
  };

  explicit Optimizer(const char* name) : name_(name) {}

  void add_slots(std::vector<Tensor> params);
  static void check_closure(const char* optimizer, const Closure& closure);
  /// The number itself. Throws IndexError unless there is such a group.
  size_t checked(size_t group) const {
    if (group >= groups_.size()) [[unlikely]]
      throw_no_group(group);
    return group;
  }
  StateMap& extras(size_t group) { return groups_[group].extra; }
  const StateMap& extras(size_t group) const { return groups_[group].extra; }

  virtual StateLayout state_layout(size_t group) const = 0;
  virtual StateMap save_options(size_t group) const = 0;
  /// Checks the saved options of all groups and returns what puts them in place.
  virtual std::function<void()> read_options(const OptimizerState& saved) = 0;

  /// What a step needs of a parameter's state: number `i` is made on its first step, filled with `fill[i]`;
  /// NaN leaves it as it is, for kernels that know of first steps; nothing means that it is not used.
  using StateFill = std::array<std::optional<double>, kMaxStates>;
  static constexpr double kUnfilled = std::numeric_limits<double>::quiet_NaN();

  /// The fused step of a group: counts a step for each parameter with a gradient, calls `prepare(slot,
  /// entry)` to fill in the entry's scalars (and the slot's numbers), and `start(stream, list)` for each
  /// dtype and device.
  ///
  /// Both are kept by a recorded step (device/capture.h), whose replays count and prepare as well: what they
  /// refer to must live as long as the optimizer.
  template <class Prepare, class Start>
  void update_group(size_t group, const StateFill& fill, Prepare prepare, Start start) {
    gather(groups_[group], fill);
    auto update = [prepare, start](Stream stream, Batch& batch) mutable {
      for (size_t i = 0; i < batch.slots.size(); ++i) {
        Slot& slot = *batch.slots[i];
        ++slot.steps;
        prepare(slot, batch.entries[i]);
      }
      start(stream, batch.list());
    };
    for (size_t b = 0; b < used_; ++b) {
      Batch& batch = batches_[b];
      const Stream stream = current_stream(batch.device);
      if (tern::detail::step_recorder) [[unlikely]]
        tern::detail::step_recorder->call([update, stream, batch]() mutable {
          update(stream, batch);
          count_changes(batch);
        });
      else
        update(stream, batch);
    }
    finish();
  }

  /// The step of an algorithm that is made of operators: calls `update(slot, gradient)` for each parameter
  /// with a gradient, whose state is there; gradients are not recorded. A recorded step keeps the numbers
  /// that it was recorded with.
  void update_each(size_t group, const StateFill& fill,
                   const std::function<void(Slot& slot, const Tensor& grad)>& update);

 private:
  /// Entries of one dtype on one device.
  struct Batch {
    DType dtype{};
    Device device;
    std::vector<OptimEntry> entries;
    std::vector<Slot*> slots;
    int64_t numel = 0;

    OptimList list() const { return {dtype, static_cast<int32_t>(entries.size()), entries.data(), numel}; }
  };

  Batch& batch_of(DType dtype, Device device);
  void gather(Group& group, const StateFill& fill);
  void add_entry(Slot& slot, const Tensor& grad, const StateFill& fill);
  void check_gradient(const Slot& slot, const Tensor& grad) const;
  void make_state(Slot& slot, const StateFill& fill);
  void finish();
  /// After a step: the tensors of the batch were changed in place.
  static void count_changes(const Batch& batch);
  [[noreturn]] void throw_no_group(size_t group) const;
  [[noreturn]] void throw_bad_gradient(const Slot& slot, const Tensor& grad) const;
  Slot loaded_slot(const Slot& own, const StateMap& saved, const StateLayout& layout, int64_t number) const;

  const char* name_;
  std::vector<Group> groups_;
  std::vector<Batch> batches_;  ///< kept between steps for their memory; the first `used_` are in use
  size_t used_ = 0;
  std::vector<Tensor> held_;  ///< row-major copies of gradients that are not
  std::vector<std::pair<Tensor, Tensor>>
      copied_params_;  ///< parameters that are not row-major, and their copies
};

}  // namespace tern::optim
