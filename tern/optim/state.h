// What optimizers and schedules save: plain values in PyTorch's layout. Turning them into files is for train/
// and io/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::optim {

struct StateEntry;

/// An ordered map of names to values.
class StateMap {
 public:
  using const_iterator = std::vector<StateEntry>::const_iterator;

  const_iterator begin() const noexcept;
  const_iterator end() const noexcept;
  size_t size() const noexcept;
  bool contains(std::string_view name) const { return find(name) != nullptr; }

  /// The value of a name, or null.
  const StateEntry* find(std::string_view name) const;
  /// Inserts at the end, or replaces the value of a name that is there.
  template <class T>
  void set(std::string_view name, T&& value);

  // Typed reads: nothing when the name is absent or None. They throw TypeError, naming the entry, for another
  // kind.
  std::optional<double> number(std::string_view name) const;
  std::optional<int64_t> integer(std::string_view name) const;
  std::optional<bool> boolean(std::string_view name) const;
  std::optional<std::string> text(std::string_view name) const;
  std::optional<std::vector<double>> numbers(std::string_view name) const;
  std::optional<std::vector<int64_t>> integers(std::string_view name) const;
  std::optional<std::vector<StateMap>> maps(std::string_view name) const;
  std::optional<Tensor> tensor(std::string_view name) const;
  std::optional<std::vector<Tensor>> tensors(std::string_view name) const;

 private:
  std::vector<StateEntry> entries_;
};

/// None, bool, int, float, str, a tensor, a list of floats (a tuple where the name is "betas", "etas",
/// "step_sizes" or "ns_coefficients"), of ints (a Counter where it is "milestones"), of dicts, a dict, or a
/// list of strs, of Nones, or of tensors (undefined where None stands among them).
using StateValue = std::variant<std::monostate, bool, int64_t, double, std::string, Tensor,
                                std::vector<double>, std::vector<int64_t>, std::vector<StateMap>, StateMap,
                                std::vector<std::string>, std::vector<std::monostate>, std::vector<Tensor>>;

struct StateEntry {
  std::string name;
  StateValue value;
};

inline StateMap::const_iterator StateMap::begin() const noexcept { return entries_.begin(); }
inline StateMap::const_iterator StateMap::end() const noexcept { return entries_.end(); }
inline size_t StateMap::size() const noexcept { return entries_.size(); }

template <class T>
void StateMap::set(std::string_view name, T&& value) {
  if (const StateEntry* entry = find(name))
    const_cast<StateEntry*>(entry)->value = std::forward<T>(value);
  else
    entries_.push_back({std::string(name), StateValue(std::forward<T>(value))});
}

/// optimizer.state_dict() of PyTorch: {'state': {index: {...}}, 'param_groups': [{..., 'params':
/// [indices]}]}.
struct OptimizerState {
  struct Group {
    StateMap options;  ///< everything but 'params'
    std::vector<int64_t> params;
  };
  /// By the numbers that stand in the groups' `params`; parameters that were never stepped are absent.
  std::vector<std::pair<int64_t, StateMap>> state;
  std::vector<Group> param_groups;
};

}  // namespace tern::optim
