// Both directions, one kind of value after the other.
#include "tern/train/state_value.h"

#include <algorithm>
#include <type_traits>

#include "tern/base/check.h"

namespace tern::train {
namespace {

constexpr int64_t kMaxMilestones = 1 << 20;

/// collections.Counter: how often each number is in the list.
Value to_counter(const std::vector<int64_t>& numbers) {
  ValueDict counts;
  for (int64_t number : numbers) {
    const Value* count = counts.find(number);
    counts.set(number, count ? count->as_int() + 1 : 1);
  }
  ValueObject counter;
  counter.callee = GlobalName{"collections", "Counter"};
  counter.args = Value::tuple();
  counter.entries.assign(counts.begin(), counts.end());
  return counter;
}

/// Each key as often as its count says.
std::vector<Value> from_counter(const auto& entries) {
  std::vector<Value> items;
  for (const auto& [key, count] : entries) {
    const int64_t left = kMaxMilestones - static_cast<int64_t>(items.size());
    TERN_CHECK(count.as_int() >= 0 && count.as_int() <= left, ValueError,
               "a Counter must have counts of at least 0 and {} in all at most, got {} of {}", kMaxMilestones,
               count.str(), key.str());
    items.insert(items.end(), static_cast<size_t>(count.as_int()), key);
  }
  return items;
}

Value to_value(const std::string& name, const optim::StateValue& state) {
  return std::visit(
      [&](const auto& held) -> Value {
        using T = std::remove_cvref_t<decltype(held)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          std::vector<Value> items(held.begin(), held.end());
          const bool is_tuple =
              name == "betas" || name == "etas" || name == "step_sizes" || name == "ns_coefficients";
          return is_tuple ? Value::tuple(std::move(items)) : Value::list(std::move(items));
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          return name == "milestones" ? to_counter(held) : Value(held);
        } else if constexpr (std::is_same_v<T, std::vector<std::monostate>>) {
          return Value::list(std::vector<Value>(held.size()));
        } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
          std::vector<Value> items;
          for (const Tensor& tensor : held) items.push_back(tensor.defined() ? Value(tensor) : Value());
          return Value::list(std::move(items));
        } else if constexpr (std::is_same_v<T, std::vector<optim::StateMap>>) {
          std::vector<Value> items;
          for (const optim::StateMap& map : held) items.push_back(train::to_value(map));
          return Value::list(std::move(items));
        } else if constexpr (std::is_same_v<T, optim::StateMap>) {
          return train::to_value(held);
        } else {
          return Value(held);
        }
      },
      state);
}

/// Of a list with elements.
bool all_of_kind(const std::vector<Value>& items, ValueKind kind) {
  return !items.empty() &&
         std::all_of(items.begin(), items.end(), [&](const Value& item) { return item.kind() == kind; });
}

optim::StateValue list_to_state(const std::string& name, const std::vector<Value>& items) {
  if (all_of_kind(items, ValueKind::Int)) {
    std::vector<int64_t> integers;
    for (const Value& item : items) integers.push_back(item.as_int());
    return integers;
  }
  if (all_of_kind(items, ValueKind::Str)) {
    std::vector<std::string> texts;
    for (const Value& item : items) texts.push_back(item.as_str());
    return texts;
  }
  // LambdaLR keeps None for a function, and the attributes of an object that is called like one.
  if (all_of_kind(items, ValueKind::None) || name == "lr_lambdas")
    return std::vector<std::monostate>(items.size());
  if (all_of_kind(items, ValueKind::Dict)) {
    std::vector<optim::StateMap> maps;
    for (const Value& item : items) maps.push_back(to_state_map(item));
    return maps;
  }
  // LBFGS keeps lists of tensors, some with None for what has not come up yet.
  const bool has_tensor = std::any_of(items.begin(), items.end(),
                                      [](const Value& item) { return item.kind() == ValueKind::Tensor; });
  if (has_tensor) {
    return with_context(fmt::format("'{}'", name), [&] {
      std::vector<Tensor> tensors;
      for (const Value& item : items) tensors.push_back(item.is_none() ? Tensor() : item.as_tensor());
      return tensors;
    });
  }
  return with_context(fmt::format("'{}'", name), [&] {
    std::vector<double> numbers;
    for (const Value& item : items) numbers.push_back(item.as_float());
    return numbers;
  });
}

optim::StateValue to_state(const std::string& name, const Value& value) {
  switch (value.kind()) {
    case ValueKind::None:
      return std::monostate();
    case ValueKind::Bool:
      return value.as_bool();
    case ValueKind::Int:
      return value.as_int();
    case ValueKind::Float:
      return value.as_float();
    case ValueKind::Str:
      return value.as_str();
    case ValueKind::Tensor:
      return value.as_tensor();
    case ValueKind::List:
    case ValueKind::Tuple:
      return list_to_state(name, value.as_sequence());
    case ValueKind::Dict:
      if (name == "milestones") return list_to_state(name, from_counter(value.as_dict()));
      return to_state_map(value);
    case ValueKind::Global:  // functions of Python, which some schedules keep among their numbers: their
                             // names
      return value.as_global().full();
    case ValueKind::Object:
      if (value.as_object().class_name() == "collections.Counter")
        return list_to_state(name, from_counter(value.as_object().entries));
      return value.str(200);
    default:
      TERN_THROW(TypeError, "'{}' is a {}, which the state of an optimizer or a schedule cannot hold", name,
                 tern::name(value.kind()));
  }
}

}  // namespace

Value to_value(const optim::StateMap& map) {
  ValueDict dict;
  for (const optim::StateEntry& entry : map) dict.set(entry.name, to_value(entry.name, entry.value));
  return dict;
}

Value to_value(const optim::OptimizerState& state) {
  ValueDict by_number;
  for (const auto& [number, map] : state.state) by_number.set(number, to_value(map));
  std::vector<Value> groups;
  for (const optim::OptimizerState::Group& group : state.param_groups) {
    Value dict = to_value(group.options);
    dict["params"] = Value(group.params);
    groups.push_back(std::move(dict));
  }
  ValueDict dict;
  dict.set("state", std::move(by_number));
  dict.set("param_groups", Value::list(std::move(groups)));
  return dict;
}

optim::StateMap to_state_map(const Value& value) {
  optim::StateMap map;
  for (const auto& [key, entry] : value.as_dict()) map.set(key.as_str(), to_state(key.as_str(), entry));
  return map;
}

optim::OptimizerState to_optimizer_state(const Value& value) {
  optim::OptimizerState state;
  for (const auto& [number, map] : value["state"].as_dict())
    with_context(fmt::format("state of parameter {}", number.str()), [&, &number = number, &map = map] {
      state.state.emplace_back(number.as_int(), to_state_map(map));
    });
  for (const Value& saved : value["param_groups"].as_sequence()) {
    optim::OptimizerState::Group group;
    for (const auto& [key, entry] : saved.as_dict()) {
      if (key.as_str() == "params")
        for (const Value& number : entry.as_sequence()) group.params.push_back(number.as_int());
      else
        group.options.set(key.as_str(), to_state(key.as_str(), entry));
    }
    state.param_groups.push_back(std::move(group));
  }
  return state;
}

}  // namespace tern::train
