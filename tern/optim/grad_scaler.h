// GradScaler: scaling of the loss for training in float16, whose gradients would otherwise become zero. The
// dtypes are chosen by autocast (ops/autocast.h); bfloat16 needs no scaling.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/device/stream.h"
#include "tern/optim/optimizer.h"
#include "tern/optim/state.h"

namespace tern::optim {

/// As torch.amp.GradScaler has them.
struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;        ///< above 1
  double backoff_factor = 0.5;     ///< below 1
  int64_t growth_interval = 2000;  ///< steps in a row without infinities after which the scale grows
  bool enabled = true;             ///< false: scale() and the others do nothing, step() is the optimizer's
};

/// torch.amp.GradScaler:
///
///     GradScaler scaler;
///     scaler.scale(loss).backward();
///     scaler.unscale_(optimizer);   // only to look at the gradients or to clip them
///     scaler.step(optimizer);       // skipped when a gradient is infinite or NaN
///     scaler.update();
///
/// Gradients are unscaled and checked in one launch for each dtype and device. step() blocks the host until
/// the answers of all devices are there; the others block it never, but update() where an optimizer was
/// unscaled and not stepped. The scale is a float32, as in PyTorch.
///
/// All of them may be part of a recorded step (device/capture.h), together: the scale, the answer and whether
/// the optimizer takes its step are then those of each replay, which waits for the answer. The scaler must
/// live as long as the step.
///
/// Calls in a wrong order are an AutogradError in PyTorch's words.
class GradScaler {
 public:
  /// Throws ValueError for factors out of range.
  explicit GradScaler(const GradScalerOptions& options = {});
  GradScaler(const GradScaler&) = delete;
  GradScaler& operator=(const GradScaler&) = delete;

  /// outputs times the scale; differentiable. A 0-d tensor of 16 bits becomes float32, as by PyTorch's
  /// promotion.
  Tensor scale(const Tensor& outputs);
  std::vector<Tensor> scale(const std::vector<Tensor>& outputs);
  /// Divides the gradients of the optimizer's parameters by the scale, in place. Throws ValueError for
  /// gradients of float16.
  void unscale_(Optimizer& optimizer);
  /// unscale_(), unless that was called, and the optimizer's step, unless an element of a gradient is
  /// infinite or NaN. Whether it was made.
  bool step(Optimizer& optimizer);
  /// The same with `take_step` for the optimizer's step, which may be more than step().
  bool step(Optimizer& optimizer, const std::function<void()>& take_step);
  /// After the steps of all optimizers: a smaller scale when one was skipped, a larger one after
  /// `growth_interval` updates without; or `new_scale`.
  void update(std::optional<double> new_scale = {});

  /// 1 when disabled.
  double get_scale() const noexcept { return options_.enabled ? scale_ : 1; }
  double get_growth_factor() const noexcept { return options_.growth_factor; }
  void set_growth_factor(double factor);
  double get_backoff_factor() const noexcept { return options_.backoff_factor; }
  void set_backoff_factor(double factor);
  int64_t get_growth_interval() const noexcept { return options_.growth_interval; }
  void set_growth_interval(int64_t interval);
  bool is_enabled() const noexcept { return options_.enabled; }
  /// Whether gradients are finite is what `agree` makes of this process' answer: for parameters that are
  /// divided over processes (dist::agree_on_finite), all of which must take a step or none. Counts from the
  /// next unscale_() or step() on.
  void set_agreement(std::function<bool(bool)> agree) { agree_ = std::move(agree); }

  /// 'scale', 'growth_factor', 'backoff_factor', 'growth_interval' and '_growth_tracker'; empty when
  /// disabled.
  StateMap state_dict() const;
  /// Does nothing when disabled. Throws ValueError or TypeError, and then nothing has been changed.
  void load_state_dict(const StateMap& state);

 private:
  enum class Stage { Ready, Unscaled, Stepped };
  /// Whether gradients are finite: on devices first, then on the host.
  struct Check {
    struct Flag {
      Stream stream;
      Tensor found;  ///< a float32: not 0 for infinities
    };
    std::vector<Flag> flags;  ///< one for each device
    bool known = false;       ///< to the host
    bool finite = true;       ///< once it is known
    std::function<bool(bool)> agree = {};

    /// Something was unscaled, here or on another process.
    bool is_used() const noexcept { return !flags.empty() || agree; }
    const Flag& flag_on(Device device);
    void read();
  };
  struct PerOptimizer {
    Stage stage = Stage::Ready;
    std::shared_ptr<Check> check = {};  ///< what a recorded step keeps as well
  };

  void check_scaled(const char* function) const;
  void adjust(bool found_inf);

  GradScalerOptions options_;
  float scale_;
  int64_t growth_tracker_ = 0;
  bool has_scaled_ = false;
  std::function<bool(bool)> agree_;
  std::unordered_map<const Optimizer*, PerOptimizer> states_;
};

}  // namespace tern::optim
