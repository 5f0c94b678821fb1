// The scale and its growth, on the host; gradients are unscaled where they are.
#include "tern/optim/grad_scaler.h"

#include <cmath>

#include "tern/autograd/arithmetic.h"
#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/core/recording.h"
#include "tern/kernels/list.h"
#include "tern/ops/copy.h"
#include "tern/ops/pointwise.h"
#include "tern/optim/grad_batch.h"

namespace tern::optim {
namespace {

void check_options(const GradScalerOptions& o) {
  TERN_CHECK(o.growth_factor > 1, ValueError, "GradScaler: The growth factor must be > 1.0, got {}",
             o.growth_factor);
  TERN_CHECK(o.backoff_factor < 1 && o.backoff_factor > 0, ValueError,
             "GradScaler: The backoff factor must be < 1.0 and above 0, got {}", o.backoff_factor);
  TERN_CHECK(o.growth_interval > 0, ValueError, "GradScaler: growth_interval must be at least 1, got {}",
             o.growth_interval);
}

float checked_scale(double scale) {
  const float narrow = static_cast<float>(scale);
  TERN_CHECK(std::isfinite(narrow) && narrow > 0, ValueError,
             "GradScaler: the scale must be a positive number of float32, got {}", scale);
  return narrow;
}

/// Calls that a step records in the scope are made only where `condition` is true.
class Conditional {
 public:
  Conditional(StepRecorder& recorder, std::shared_ptr<const bool> condition) : recorder_(recorder) {
    recorder.condition = std::move(condition);
  }
  ~Conditional() { recorder_.condition.reset(); }
  Conditional(const Conditional&) = delete;
  Conditional& operator=(const Conditional&) = delete;

 private:
  StepRecorder& recorder_;
};

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options)
    : options_(options), scale_(options.enabled ? checked_scale(options.init_scale) : 1.0f) {
  if (options.enabled) check_options(options);
}

void GradScaler::set_growth_factor(double factor) {
  GradScalerOptions changed = options_;
  changed.growth_factor = factor;
  check_options(changed);
  options_ = changed;
}
void GradScaler::set_backoff_factor(double factor) {
  GradScalerOptions changed = options_;
  changed.backoff_factor = factor;
  check_options(changed);
  options_ = changed;
}
void GradScaler::set_growth_interval(int64_t interval) {
  GradScalerOptions changed = options_;
  changed.growth_interval = interval;
  check_options(changed);
  options_ = changed;
}

Tensor GradScaler::scale(const Tensor& outputs) {
  if (!options_.enabled) return outputs;
  has_scaled_ = true;
  const bool narrow = itemsize(outputs.dtype()) == 2;
  const bool widens = narrow && outputs.dim() == 0;
  if (!tern::detail::step_recorder)
    return mul(widens ? to(outputs, float32) : outputs, static_cast<double>(scale_));
  const Tensor factor = empty_contiguous({}, 1, float32, outputs.device());
  const Stream stream = current_stream(outputs.device());
  tern::detail::step_recorder->call([this, factor, stream] {
    const StreamGuard guard(stream);
    fill_elements(factor, static_cast<double>(scale_));
  });
  // Not in 16 bits, where the factor itself may be infinite.
  const Tensor scaled = mul(narrow ? to(outputs, float32) : outputs, factor);
  return narrow && !widens ? to(scaled, outputs.dtype()) : scaled;
}

std::vector<Tensor> GradScaler::scale(const std::vector<Tensor>& outputs) {
  std::vector<Tensor> scaled;
  for (const Tensor& output : outputs) scaled.push_back(scale(output));
  return scaled;
}

void GradScaler::check_scaled(const char* function) const {
  TERN_CHECK(has_scaled_, AutogradError,
             "GradScaler: Attempted {} but _scale is None.  This may indicate your script did not use "
             "scaler.scale(loss or outputs) earlier in the iteration.",
             function);
}

void GradScaler::unscale_(Optimizer& optimizer) {
  if (!options_.enabled) return;
  check_scaled("unscale_");
  PerOptimizer& state = states_[&optimizer];
  TERN_CHECK(state.stage != Stage::Unscaled, AutogradError,
             "GradScaler: unscale_() has already been called on this optimizer since the last update().");
  TERN_CHECK(state.stage != Stage::Stepped, AutogradError,
             "GradScaler: unscale_() is being called after step().");
  const NoGradGuard no_grad;
  std::vector<Tensor> params;
  for (size_t group = 0; group < optimizer.num_groups(); ++group)
    for (const Tensor& param : optimizer.params(group)) params.push_back(param);
  std::vector<GradBatch> batches = grad_batches("GradScaler", params);
  for (const GradBatch& batch : batches)
    TERN_CHECK(batch.dtype != float16, ValueError,
               "GradScaler: Attempting to unscale FP16 gradients: keep the parameters in float32, and let "
               "autocast choose float16 for products");
  state.check = std::make_shared<Check>();
  state.check->agree = agree_;
  for (const GradBatch& batch : batches) state.check->flag_on(batch.device);
  tern::detail::call_and_record([this, check = state.check, batches = std::move(batches)]() mutable {
    const NoGradGuard unrecorded;
    check->known = false;
    for (const Check::Flag& flag : check->flags) {
      const StreamGuard guard(flag.stream);
      fill_elements(flag.found, 0);
    }
    const float inv_scale = static_cast<float>(1.0 / static_cast<double>(scale_));
    for (GradBatch& batch : batches) {
      const Check::Flag& flag = check->flag_on(batch.device);
      const StreamGuard guard(flag.stream);
      launch(flag.stream, kernels::optim_unscale,
             {.list = batch.list(),
              .inv_scale = inv_scale,
              .found_inf = static_cast<float*>(flag.found.data_ptr())});
      batch.finish();
    }
  });
  state.stage = Stage::Unscaled;
}

/// The flag of a device, made when it is first asked for.
const GradScaler::Check::Flag& GradScaler::Check::flag_on(Device device) {
  for (const Flag& flag : flags)
    if (flag.stream.device == device) return flag;
  return flags.emplace_back(Flag{current_stream(device), empty_contiguous({}, 1, float32, device)});
}

void GradScaler::Check::read() {
  if (known) return;
  finite = true;
  for (const Flag& flag : flags) {
    const StreamGuard guard(flag.stream);
    finite &= item(flag.found).to_double() == 0;
  }
  if (agree) finite = agree(finite);
  known = true;
}

bool GradScaler::step(Optimizer& optimizer) {
  return step(optimizer, [&] { optimizer.step(); });
}

bool GradScaler::step(Optimizer& optimizer, const std::function<void()>& take_step) {
  if (!options_.enabled) {
    take_step();
    return true;
  }
  check_scaled("step");
  PerOptimizer& state = states_[&optimizer];
  TERN_CHECK(state.stage != Stage::Stepped, AutogradError,
             "GradScaler: step() has already been called since the last update().");
  if (state.stage == Stage::Ready) unscale_(optimizer);
  TERN_CHECK(
      state.check->is_used(), AutogradError,
      "GradScaler: No inf checks were recorded for this optimizer: none of its parameters has a gradient");
  const std::shared_ptr<Check> check = state.check;
  try {
    tern::detail::call_and_record([check] { check->read(); });
    if (StepRecorder* recorder = tern::detail::step_recorder) {
      const Conditional where(*recorder, std::shared_ptr<const bool>(check, &check->finite));
      take_step();
    } else if (check->finite) {
      take_step();
    }
  } catch (...) {
    states_.erase(&optimizer);  // the next step begins with its own gradients
    throw;
  }
  state.stage = Stage::Stepped;
  return check->finite;
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!options_.enabled) return;
  check_scaled("update");
  std::vector<std::shared_ptr<Check>> checks;
  for (auto& [optimizer, state] : states_)
    if (state.check && state.check->is_used()) checks.push_back(state.check);
  TERN_CHECK(new_scale || !checks.empty(), AutogradError,
             "GradScaler: No inf checks were recorded prior to update.");
  const std::optional<float> given = new_scale ? std::optional(checked_scale(*new_scale)) : std::nullopt;
  tern::detail::call_and_record([this, given, checks = std::move(checks)] {
    if (given) {
      scale_ = *given;
      return;
    }
    bool found_inf = false;
    for (const auto& check : checks) {
      check->read();
      found_inf |= !check->finite;
    }
    adjust(found_inf);
  });
  states_.clear();
}

/// torch._amp_update_scale_
void GradScaler::adjust(bool found_inf) {
  if (found_inf) {
    scale_ = static_cast<float>(static_cast<double>(scale_) * options_.backoff_factor);
    growth_tracker_ = 0;
  } else if (++growth_tracker_ == options_.growth_interval) {
    const float larger = static_cast<float>(static_cast<double>(scale_) * options_.growth_factor);
    if (std::isfinite(larger)) scale_ = larger;
    growth_tracker_ = 0;
  }
}

StateMap GradScaler::state_dict() const {
  StateMap state;
  if (!options_.enabled) return state;
  state.set("scale", static_cast<double>(scale_));
  state.set("growth_factor", options_.growth_factor);
  state.set("backoff_factor", options_.backoff_factor);
  state.set("growth_interval", options_.growth_interval);
  state.set("_growth_tracker", growth_tracker_);
  return state;
}

void GradScaler::load_state_dict(const StateMap& state) {
  if (!options_.enabled) return;
  TERN_CHECK(state.size() != 0, ValueError,
             "GradScaler: The source state dict is empty, possibly because it was saved from a disabled "
             "instance of GradScaler.");
  const auto required = [](const auto& value, const char* name) {
    TERN_CHECK(value.has_value(), ValueError, "GradScaler: the state has no '{}'", name);
    return *value;
  };
  GradScalerOptions loaded = options_;
  const float scale = checked_scale(required(state.number("scale"), "scale"));
  loaded.growth_factor = required(state.number("growth_factor"), "growth_factor");
  loaded.backoff_factor = required(state.number("backoff_factor"), "backoff_factor");
  loaded.growth_interval = required(state.integer("growth_interval"), "growth_interval");
  const int64_t tracker = required(state.integer("_growth_tracker"), "_growth_tracker");
  check_options(loaded);
  TERN_CHECK(tracker >= 0, ValueError, "GradScaler: '_growth_tracker' is negative: {}", tracker);
  options_ = loaded;
  scale_ = scale;
  growth_tracker_ = tracker;
}

}  // namespace tern::optim
