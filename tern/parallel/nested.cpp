// Reading values of unknown structure.
#include "tern/parallel/nested.h"

#include <algorithm>

#include "tern/base/check.h"

namespace tern::parallel {

Nested Nested::list(List values) {
  Nested result;
  result.value_ = std::move(values);
  return result;
}

Nested Nested::dict(Dict entries) {
  for (auto a = entries.begin(); a != entries.end(); ++a)
    for (auto b = entries.begin(); b != a; ++b)
      TERN_CHECK(a->first != b->first, ValueError, "Nested::dict: the key '{}' occurs twice", a->first);
  Nested result;
  result.value_ = std::move(entries);
  return result;
}

const char* Nested::kind() const noexcept {
  static constexpr const char* kKinds[] = {"None",   "tensor", "bool", "int",
                                           "double", "string", "list", "dict"};
  return kKinds[value_.index()];
}

template <class T>
const T& Nested::get(const char* wanted) const {
  const T* value = std::get_if<T>(&value_);
  TERN_CHECK(value, TypeError, "Nested: expected a {}, it holds a {}", wanted, kind());
  return *value;
}

const Tensor& Nested::as_tensor() const { return get<Tensor>("tensor"); }
bool Nested::as_bool() const { return get<bool>("bool"); }
int64_t Nested::as_int() const { return get<int64_t>("int"); }
double Nested::as_double() const {
  const int64_t* integer = std::get_if<int64_t>(&value_);
  return integer ? static_cast<double>(*integer) : get<double>("double");
}
const std::string& Nested::as_string() const { return get<std::string>("string"); }
const Nested::List& Nested::as_list() const { return get<List>("list"); }
const Nested::Dict& Nested::as_dict() const { return get<Dict>("dict"); }

const Nested& Nested::operator[](size_t index) const {
  const List& values = as_list();
  TERN_CHECK(index < values.size(), IndexError, "Nested: index {} is out of range for a list of {} elements",
             index, values.size());
  return values[index];
}

const Nested& Nested::operator[](int index) const {
  TERN_CHECK(index >= 0, IndexError, "Nested: index {} is negative", index);
  return (*this)[static_cast<size_t>(index)];
}

const Nested& Nested::operator[](std::string_view key) const {
  const Dict& entries = as_dict();
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == key; });
  TERN_CHECK(found != entries.end(), IndexError, "Nested: the dict has no key '{}'", key);
  return found->second;
}

size_t Nested::size() const noexcept {
  if (const List* values = std::get_if<List>(&value_)) return values->size();
  if (const Dict* entries = std::get_if<Dict>(&value_)) return entries->size();
  return 0;
}

bool Nested::same_without_tensors(const Nested& other) const {
  if (value_.index() != other.value_.index()) return false;
  if (is_tensor()) return true;
  if (const List* values = std::get_if<List>(&value_)) {
    const List& others = other.as_list();
    return std::equal(values->begin(), values->end(), others.begin(), others.end(),
                      [](const Nested& a, const Nested& b) { return a.same_without_tensors(b); });
  }
  if (const Dict* entries = std::get_if<Dict>(&value_)) {
    const Dict& others = other.as_dict();
    return std::equal(entries->begin(), entries->end(), others.begin(), others.end(),
                      [](const auto& a, const auto& b) {
                        return a.first == b.first && a.second.same_without_tensors(b.second);
                      });
  }
  return std::visit(
      [&]<class T>(const T& value) {
        if constexpr (std::same_as<T, bool> || std::same_as<T, int64_t> || std::same_as<T, double> ||
                      std::same_as<T, std::string>)
          return value == std::get<T>(other.value_);
        else
          return true;
      },
      value_);
}

}  // namespace tern::parallel
