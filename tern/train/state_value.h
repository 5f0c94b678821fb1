// States of optimizers and schedules as trees of values, which io saves and loads in PyTorch's layout.
#pragma once

#include "tern/io/value.h"
#include "tern/optim/state.h"

namespace tern::train {

/// A dict; lists become lists, but 'betas' a tuple and the ints of 'milestones' a Counter, as PyTorch has it.
Value to_value(const optim::StateMap& map);
/// {'state': {index: {...}}, 'param_groups': [{..., 'params': [indices]}]}. Tensors are not copied.
Value to_value(const optim::OptimizerState& state);

/// The way back, also from what PyTorch saved; of functions in it (OneCycleLR's before torch 2) the text is
/// kept, of a Counter its elements. Throw TypeError, naming the place, for values that such a state cannot
/// have.
optim::StateMap to_state_map(const Value& value);
optim::OptimizerState to_optimizer_state(const Value& value);

}  // namespace tern::train

namespace tern {

// `save({{"optimizer", optimizer.state_dict()}}, path)` and
// `optimizer.load_state_dict(load(path)["optimizer"])`; the same with schedules and GradScaler.

template <>
struct ValueConverter<optim::StateMap> {
  static Value to_value(const optim::StateMap& map) { return train::to_value(map); }
  static optim::StateMap from_value(const Value& value) { return train::to_state_map(value); }
};

template <>
struct ValueConverter<optim::OptimizerState> {
  static Value to_value(const optim::OptimizerState& state) { return train::to_value(state); }
  static optim::OptimizerState from_value(const Value& value) { return train::to_optimizer_state(value); }
};

}  // namespace tern
