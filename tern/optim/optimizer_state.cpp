// state_dict and load_state_dict of optimizers.
#include <algorithm>
#include <unordered_map>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/optim/optimizer.h"

namespace tern::optim {
namespace {

/// A number as PyTorch keeps it: a 0-dim float32 on the CPU.
Tensor number_tensor(double number) {
  Tensor tensor = empty_contiguous(Shape{}, 1, float32, kCPU);
  tensor.fill_(number);
  return tensor;
}

}  // namespace

OptimizerState Optimizer::state_dict() const {
  OptimizerState saved;
  int64_t number = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    OptimizerState::Group group{save_options(g), {}};
    const StateLayout layout = state_layout(g);
    for (const Slot& slot : groups_[g].slots) {
      group.params.push_back(number);
      if (slot.has_state() || layout.initial) {
        StateMap state;
        if (layout.has_step) state.set("step", number_tensor(static_cast<double>(slot.steps)));
        for (size_t n = 0; n < kMaxNumbers; ++n)
          if (layout.numbers[n]) state.set(layout.numbers[n], number_tensor(slot.numbers[n]));
        for (size_t s = 0; s < kMaxStates; ++s) {
          if (!layout.names[s]) continue;
          Tensor tensor = slot.state[s];
          if (!tensor.defined() && layout.initial) {
            tensor = empty_contiguous(slot.param.shape(), slot.param.numel(), slot.param.dtype(),
                                      slot.param.device());
            tensor.fill_(*layout.initial);
          }
          if (tensor.defined()) state.set(layout.names[s], tensor);
        }
        if (state.size() != 0) saved.state.emplace_back(number, std::move(state));
      }
      ++number;
    }
    saved.param_groups.push_back(std::move(group));
  }
  return saved;
}

Optimizer::Slot Optimizer::loaded_slot(const Slot& own, const StateMap& saved, const StateLayout& layout,
                                       int64_t number) const {
  Slot slot{.param = own.param};
  auto is_number = [&](const std::string& name) {
    return name == "step" || std::any_of(layout.numbers.begin(), layout.numbers.end(),
                                         [&](const char* known) { return known && name == known; });
  };
  for (const StateEntry& entry : saved) {
    if (is_number(entry.name)) continue;
    if (std::holds_alternative<std::monostate>(entry.value)) continue;
    const auto* tensor = std::get_if<Tensor>(&entry.value);
    size_t s = 0;
    while (s < kMaxStates && !(layout.names[s] && entry.name == layout.names[s])) ++s;
    TERN_CHECK(s < kMaxStates, ValueError,
               "{}: the loaded state of parameter {} has '{}', which this optimizer does not keep", name_,
               number, entry.name);
    TERN_CHECK(tensor && tensor->defined(), TypeError,
               "{}: '{}' in the loaded state of parameter {} must be a tensor", name_, entry.name, number);
    TERN_CHECK(tensor->shape() == own.param.shape(), ShapeError,
               "{}: '{}' in the loaded state of parameter {} has shape {}, the parameter has {}", name_,
               entry.name, number, to_string(tensor->shape()), to_string(own.param.shape()));
    slot.state[s] = tensor->detach().to(own.param.device(), own.param.dtype(), {.copy = true}).contiguous();
  }
  slot.steps = saved.integer("step").value_or(slot.state[0].defined() ? 1 : 0);
  TERN_CHECK(slot.steps >= 0, ValueError, "{}: 'step' in the loaded state of parameter {} is negative: {}",
             name_, number, slot.steps);
  TERN_CHECK(!layout.has_step || saved.contains("step"), ValueError,
             "{}: the loaded state of parameter {} has no 'step'", name_, number);
  for (size_t n = 0; n < kMaxNumbers; ++n) {
    if (!layout.numbers[n]) continue;
    const std::optional<double> value = saved.number(layout.numbers[n]);
    TERN_CHECK(value, ValueError, "{}: the loaded state of parameter {} has no '{}'", name_, number,
               layout.numbers[n]);
    slot.numbers[n] = *value;
  }
  for (size_t s = 0; s < kMaxStates; ++s)
    TERN_CHECK(!layout.required[s] || slot.state[s].defined(), ValueError,
               "{}: the loaded state of parameter {} has no '{}'", name_, number, layout.names[s]);
  return slot;
}

void Optimizer::load_state_dict(const OptimizerState& saved) {
  TERN_CHECK(saved.param_groups.size() == groups_.size(), ValueError,
             "{}: loaded state dict has a different number of parameter groups ({} instead of {})", name_,
             saved.param_groups.size(), groups_.size());
  std::unordered_map<int64_t, std::pair<size_t, size_t>> places;  // saved number -> group and place in it
  for (size_t g = 0; g < groups_.size(); ++g) {
    const std::vector<int64_t>& numbers = saved.param_groups[g].params;
    TERN_CHECK(numbers.size() == groups_[g].slots.size(), ValueError,
               "{}: loaded state dict contains a parameter group that doesn't match the size of optimizer's "
               "group ({} "
               "parameters instead of {})",
               name_, numbers.size(), groups_[g].slots.size());
    for (size_t i = 0; i < numbers.size(); ++i)
      TERN_CHECK(places.emplace(numbers[i], std::pair(g, i)).second, ValueError,
                 "{}: loaded state dict names parameter {} twice in its groups", name_, numbers[i]);
  }
  NoGradGuard no_grad;
  auto put_options = read_options(saved);
  // The layout depends on the options (amsgrad, centered): it is asked for with the new ones, and they are
  // taken back when the state does not fit.
  OptimizerState before;
  for (size_t g = 0; g < groups_.size(); ++g) before.param_groups.push_back({save_options(g), {}});
  auto put_back = read_options(before);
  put_options();
  std::vector<Group> loaded(groups_.size());
  try {
    for (size_t g = 0; g < groups_.size(); ++g)
      for (const Slot& slot : groups_[g].slots) loaded[g].slots.push_back({.param = slot.param});
    for (const auto& [number, state] : saved.state) {
      auto place = places.find(number);
      TERN_CHECK(place != places.end(), ValueError,
                 "{}: loaded state dict has state of parameter {}, which is in none of its parameter groups",
                 name_, number);
      auto [g, i] = place->second;
      loaded[g].slots[i] = loaded_slot(groups_[g].slots[i], state, state_layout(g), number);
    }
  } catch (...) {
    put_back();
    throw;
  }
  for (size_t g = 0; g < groups_.size(); ++g) groups_[g].slots = std::move(loaded[g].slots);
}

}  // namespace tern::optim
