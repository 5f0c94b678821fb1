// Lookups and typed reads of saved values.
#include "tern/optim/state.h"

#include <algorithm>
#include <cmath>

#include "tern/base/check.h"

namespace tern::optim {
namespace {

const char* kind_name(const StateValue& value) {
  constexpr const char* names[] = {"None",        "bool",          "int",           "float",        "str",
                                   "Tensor",      "list of float", "list of int",   "list of dict", "dict",
                                   "list of str", "list of None",  "list of Tensor"};
  static_assert(std::size(names) == std::variant_size_v<StateValue>);
  return names[value.index()];
}

[[noreturn]] void throw_kind(std::string_view name, const char* wanted, const StateValue& value) {
  TERN_THROW(TypeError, "state dict: '{}' must be {}, got {}", name, wanted, kind_name(value));
}

/// True for whole numbers that a double holds exactly.
bool is_whole(double number) { return std::fabs(number) < 0x1p53 && std::trunc(number) == number; }

/// The value of a name, null when absent or None.
const StateValue* value_of(const StateMap& map, std::string_view name) {
  const StateEntry* entry = map.find(name);
  return entry && !std::holds_alternative<std::monostate>(entry->value) ? &entry->value : nullptr;
}

}  // namespace

const StateEntry* StateMap::find(std::string_view name) const {
  for (const StateEntry& entry : entries_)
    if (entry.name == name) return &entry;
  return nullptr;
}

std::optional<double> StateMap::number(std::string_view name) const {
  const StateValue* value = value_of(*this, name);
  if (!value) return std::nullopt;
  if (auto* number = std::get_if<double>(value)) return *number;
  if (auto* number = std::get_if<int64_t>(value)) return static_cast<double>(*number);
  if (auto* number = std::get_if<bool>(value)) return *number ? 1.0 : 0.0;
  if (auto* tensor = std::get_if<Tensor>(value); tensor && tensor->defined() && tensor->numel() == 1)
    return tensor->item<double>();
  throw_kind(name, "a number", *value);
}

std::optional<int64_t> StateMap::integer(std::string_view name) const {
  const StateValue* value = value_of(*this, name);
  if (!value) return std::nullopt;
  if (auto* number = std::get_if<int64_t>(value)) return *number;
  std::optional<double> number = this->number(name);
  if (!is_whole(*number)) throw_kind(name, "a whole number", *value);
  return static_cast<int64_t>(*number);
}

std::optional<bool> StateMap::boolean(std::string_view name) const {
  const StateValue* value = value_of(*this, name);
  if (!value) return std::nullopt;
  if (auto* flag = std::get_if<bool>(value)) return *flag;
  if (auto* number = std::get_if<int64_t>(value)) return *number != 0;
  throw_kind(name, "a bool", *value);
}

std::optional<std::string> StateMap::text(std::string_view name) const {
  const StateValue* value = value_of(*this, name);
  if (!value) return std::nullopt;
  if (auto* text = std::get_if<std::string>(value)) return *text;
  throw_kind(name, "a str", *value);
}

std::optional<std::vector<double>> StateMap::numbers(std::string_view name) const {
  const StateValue* value = value_of(*this, name);
  if (!value) return std::nullopt;
  if (auto* list = std::get_if<std::vector<double>>(value)) return *list;
  if (auto* list = std::get_if<std::vector<int64_t>>(value))
    return std::vector<double>(list->begin(), list->end());
  throw_kind(name, "a list of numbers", *value);
}

std::optional<std::vector<int64_t>> StateMap::integers(std::string_view name) const {
  const StateValue* value = value_of(*this, name);
  if (!value) return std::nullopt;
  if (auto* list = std::get_if<std::vector<int64_t>>(value)) return *list;
  std::optional<std::vector<double>> list = numbers(name);
  if (!std::all_of(list->begin(), list->end(), is_whole)) throw_kind(name, "a list of whole numbers", *value);
  return std::vector<int64_t>(list->begin(), list->end());
}

std::optional<std::vector<StateMap>> StateMap::maps(std::string_view name) const {
  const StateValue* value = value_of(*this, name);
  if (!value) return std::nullopt;
  if (auto* list = std::get_if<std::vector<StateMap>>(value)) return *list;
  throw_kind(name, "a list of dict", *value);
}

std::optional<Tensor> StateMap::tensor(std::string_view name) const {
  const StateValue* value = value_of(*this, name);
  if (!value) return std::nullopt;
  if (auto* tensor = std::get_if<Tensor>(value); tensor && tensor->defined()) return *tensor;
  throw_kind(name, "a tensor", *value);
}

std::optional<std::vector<Tensor>> StateMap::tensors(std::string_view name) const {
  const StateValue* value = value_of(*this, name);
  if (!value) return std::nullopt;
  if (auto* list = std::get_if<std::vector<Tensor>>(value)) {
    for (const Tensor& tensor : *list)
      if (!tensor.defined()) throw_kind(name, "a list of tensors without None", *value);
    return *list;
  }
  // An empty list does not say of what it is.
  if (auto* list = std::get_if<std::vector<double>>(value); list && list->empty())
    return std::vector<Tensor>();
  throw_kind(name, "a list of tensors", *value);
}

}  // namespace tern::optim
