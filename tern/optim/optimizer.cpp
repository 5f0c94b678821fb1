// Gathering parameters for the fused step. Saving and loading are in optim/optimizer_state.cpp.
#include "tern/optim/optimizer.h"

#include <cmath>
#include <unordered_set>

#include "tern/autograd/arithmetic.h"
#include "tern/autograd/grad_mode.h"
#include "tern/autograd/node.h"
#include "tern/base/check.h"

namespace tern::optim {

std::vector<Tensor> Optimizer::params(size_t group) const {
  std::vector<Tensor> list;
  for (const Slot& slot : groups_[checked(group)].slots) list.push_back(slot.param);
  return list;
}

void Optimizer::set_lr(double lr) {
  for (size_t group = 0; group < num_groups(); ++group) set_lr(lr, group);
}

void Optimizer::check_closure(const char* optimizer, const Closure& closure) {
  TERN_CHECK(static_cast<bool>(closure), ValueError,
             "{}: step(closure) got an empty function: it must compute the loss and return it", optimizer);
}

Tensor Optimizer::step(const Closure& closure) {
  check_closure(name_, closure);
  Tensor loss;
  {
    const EnableGradGuard enable_grad;
    loss = closure();
  }
  step();
  return loss;
}

void Optimizer::zero_grad(bool set_to_none) {
  for (Group& group : groups_) {
    for (Slot& slot : group.slots) {
      GradMeta* meta = find_meta(slot.param);
      if (!meta || !meta->grad.defined()) continue;
      if (set_to_none) {
        meta->grad = Tensor();
      } else {
        meta->grad = meta->grad.detach();
        meta->grad.zero_();
      }
    }
  }
}

void Optimizer::add_slots(std::vector<Tensor> params) {
  TERN_CHECK(!params.empty(), ValueError, "{}: optimizer got an empty parameter list", name_);
  std::unordered_set<const TensorImpl*> known;
  for (const Group& group : groups_)
    for (const Slot& slot : group.slots) known.insert(&slot.param.impl());
  const size_t before = known.size();
  Group added;
  for (size_t i = 0; i < params.size(); ++i) {
    Tensor& param = params[i];
    TERN_CHECK(param.defined(), ValueError, "{}: parameter {} is undefined: leave absent parameters out",
               name_, i);
    TERN_CHECK(param.is_floating_point() || is_complex_computable(param.dtype()), DTypeError,
               "{}: only floating-point and complex tensors can be optimized, parameter {} is {}", name_, i,
               tern::name(param.dtype()));
    TERN_CHECK(param.is_leaf(), ValueError,
               "{}: can't optimize a non-leaf Tensor: parameter {} was computed by '{}'", name_, i,
               param.grad_fn_name());
    TERN_CHECK(known.insert(&param.impl()).second, ValueError,
               "{}: some parameters appear {}: parameter {} of the new group", name_,
               before == 0 ? "twice in a parameter group" : "in more than one parameter group", i);
    added.slots.push_back({.param = std::move(param)});
  }
  groups_.push_back(std::move(added));
}

Optimizer::Batch& Optimizer::batch_of(DType dtype, Device device) {
  for (size_t b = 0; b < used_; ++b)
    if (batches_[b].dtype == dtype && batches_[b].device == device) return batches_[b];
  if (used_ == batches_.size()) batches_.emplace_back();
  Batch& batch = batches_[used_++];
  batch.dtype = dtype;
  batch.device = device;
  batch.entries.clear();
  batch.slots.clear();
  batch.numel = 0;
  return batch;
}

void Optimizer::throw_no_group(size_t group) const {
  TERN_THROW(IndexError, "{}: there is no parameter group {}: the optimizer has {}, numbered from 0", name_,
             group, groups_.size());
}

void Optimizer::throw_bad_gradient(const Slot& slot, const Tensor& grad) const {
  TERN_THROW(ValueError,
             "{}: a gradient of shape {}, dtype {} on {} does not fit its parameter of shape {}, dtype {} on "
             "{}: make the "
             "gradient anew (zero_grad) after the parameter was moved or converted",
             name_, to_string(grad.shape()), tern::name(grad.dtype()), grad.device().str(),
             to_string(slot.param.shape()), tern::name(slot.param.dtype()), slot.param.device().str());
}

void Optimizer::check_gradient(const Slot& slot, const Tensor& grad) const {
  const TensorImpl &param = slot.param.impl(), &g = grad.impl();
  if (g.dtype != param.dtype || g.storage->device() != param.storage->device() || !(g.shape == param.shape))
      [[unlikely]]
    throw_bad_gradient(slot, grad);
}

void Optimizer::make_state(Slot& slot, const StateFill& fill) {
  const TensorImpl& param = slot.param.impl();
  const Device device = param.storage->device();
  for (size_t s = 0; s < kMaxStates; ++s) {
    if (!fill[s]) continue;
    Tensor& state = slot.state[s];
    if (!state.defined()) [[unlikely]] {
      TERN_CHECK(!detail::step_recorder, CaptureError,
                 "capture: {}: the first step of an optimizer makes its state, which replays must not do "
                 "again: take a step before, or let capture() do so ({{.warmup = 1}}); one that a gradient "
                 "scaler skipped does not count",
                 name_);
      state = empty_contiguous(param.shape, param.numel, param.dtype, device);
      if (std::isnan(*fill[s]))
        slot.fresh = true;
      else
        (state.is_complex() ? real_view(state) : state).fill_(*fill[s]);
    }
    TERN_CHECK(state.device() == device && state.dtype() == param.dtype, DeviceError,
               "{}: the state of a parameter is {} on {}, the parameter {} on {}: move and convert a module "
               "before its "
               "optimizer takes steps, or load the optimizer's state again",
               name_, tern::name(state.dtype()), state.device().str(), tern::name(param.dtype), device.str());
  }
}

void Optimizer::add_entry(Slot& slot, const Tensor& grad, const StateFill& fill) {
  check_gradient(slot, grad);
  make_state(slot, fill);
  const TensorImpl& param = slot.param.impl();
  const TensorImpl& g = grad.impl();
  const Device device = param.storage->device();
  OptimEntry entry{};
  const bool is_complex = tern::is_complex(param.dtype);  // the parts are optimized, as real numbers
  entry.numel = is_complex ? 2 * param.numel : param.numel;
  entry.param = slot.param.data_ptr();
  entry.grad = grad.data_ptr();
  if (!g.contiguous) [[unlikely]] {
    NoGradGuard no_grad;
    held_.push_back(grad.contiguous());
    entry.grad = held_.back().data_ptr();
  }
  if (!param.contiguous) [[unlikely]] {
    NoGradGuard no_grad;
    copied_params_.emplace_back(slot.param.detach(), slot.param.detach().contiguous());
    entry.param = copied_params_.back().second.data_ptr();
  }
  for (size_t s = 0; s < kMaxStates; ++s)
    if (fill[s]) entry.state[s] = slot.state[s].data_ptr();
  entry.fresh = slot.fresh;
  Batch& batch = batch_of(real_dtype(param.dtype), device);
  entry.first = batch.numel;
  batch.numel += entry.numel;
  batch.entries.push_back(entry);
  batch.slots.push_back(&slot);
}

void Optimizer::gather(Group& group, const StateFill& fill) {
  used_ = 0;
  held_.clear();
  copied_params_.clear();
  for (Slot& slot : group.slots) {
    const GradMeta* meta = find_meta(slot.param);
    if (meta && meta->grad.defined()) add_entry(slot, meta->grad, fill);
  }
}

void Optimizer::update_each(size_t group, const StateFill& fill,
                            const std::function<void(Slot& slot, const Tensor& grad)>& update) {
  const NoGradGuard no_grad;
  for (Slot& slot : groups_[group].slots) {
    const GradMeta* meta = find_meta(slot.param);
    if (!meta || !meta->grad.defined()) continue;
    check_gradient(slot, meta->grad);
    make_state(slot, fill);
    ++slot.steps;
    update(slot, meta->grad);
  }
}

void Optimizer::count_changes(const Batch& batch) {
  for (Slot* slot : batch.slots) {
    slot->fresh = false;
    slot->param.storage()->bump_version();
    for (const Tensor& state : slot->state)
      if (state.defined()) state.storage()->bump_version();
  }
}

void Optimizer::finish() {
  for (size_t b = 0; b < used_; ++b) count_changes(batches_[b]);
  if (!copied_params_.empty()) [[unlikely]] {
    NoGradGuard no_grad;
    for (auto& [param, copy] : copied_params_) param.copy_(copy);
    copied_params_.clear();
  }
  held_.clear();
}

}  // namespace tern::optim
