// Nested: a value made of tensors, numbers, texts, lists and dicts, for modules whose inputs or outputs have
// a structure that is known only at run time. How it is split over devices is in parallel/scatter_gather.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::parallel {

/// A tensor, a list or dict of values, or something that is no tensor. Copies share their tensors.
///
///     Nested input = Nested::dict({{"x", x}, {"sizes", Nested::list({a, b})}, {"scale", 2.0}});
class Nested {
 public:
  using List = std::vector<Nested>;
  /// In the order in which the entries were given.
  using Dict = std::vector<std::pair<std::string, Nested>>;

  Nested() = default;  ///< None
  Nested(Tensor tensor) : value_(std::move(tensor)) {}
  template <std::integral T>
  Nested(T value) {
    if constexpr (std::same_as<T, bool>)
      value_ = value;
    else
      value_ = static_cast<int64_t>(value);
  }
  Nested(double value) : value_(value) {}
  Nested(std::string value) : value_(std::move(value)) {}
  Nested(const char* value) : value_(std::string(value)) {}

  static Nested list(List values);
  /// Throws ValueError for a key that occurs twice.
  static Nested dict(Dict entries);

  bool is_none() const noexcept { return std::holds_alternative<std::monostate>(value_); }
  bool is_tensor() const noexcept { return std::holds_alternative<Tensor>(value_); }
  bool is_list() const noexcept { return std::holds_alternative<List>(value_); }
  bool is_dict() const noexcept { return std::holds_alternative<Dict>(value_); }

  // The value as what it is. Throw TypeError when it is something else.
  const Tensor& as_tensor() const;
  bool as_bool() const;
  int64_t as_int() const;
  double as_double() const;  ///< of an integer too
  const std::string& as_string() const;
  const List& as_list() const;
  const Dict& as_dict() const;

  /// An element of a list. Throws TypeError, IndexError.
  const Nested& operator[](size_t index) const;
  /// An entry of a dict. Throws TypeError, IndexError.
  const Nested& operator[](std::string_view key) const;
  const Nested& operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  const Nested& operator[](int index) const;
  /// Elements of a list or dict; 0 of anything else.
  size_t size() const noexcept;

  /// "tensor", "list", "int", ...
  const char* kind() const noexcept;
  /// The same kind and, unless tensors are in it, the same value.
  bool same_without_tensors(const Nested& other) const;

 private:
  template <class T>
  const T& get(const char* wanted) const;

  std::variant<std::monostate, Tensor, bool, int64_t, double, std::string, List, Dict> value_;
};

}  // namespace tern::parallel
