// The arguments of one case of the operator table, read from the values that the script wrote. The operators
// are listed in operator_list.cpp, the cases in operator_table.py.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tern/core/scalar.h"
#include "tern/core/tensor.h"
#include "tern/io/value.h"

namespace tern::testing {

/// Arguments by position; those that are missing or None take the default.
class Arguments {
 public:
  explicit Arguments(const Value& list) : values_(list.as_sequence()) {}

  bool has(size_t i) const { return i < values_.size() && !values_[i].is_none(); }
  bool is_text(size_t i) const { return has(i) && values_[i].is_str(); }
  bool is_tensor(size_t i) const { return has(i) && values_[i].is_tensor(); }

  /// Undefined when missing.
  Tensor tensor(size_t i) const { return has(i) ? values_[i].as_tensor() : Tensor(); }
  std::vector<Tensor> tensors(size_t i) const {
    std::vector<Tensor> all;
    for (const Value& value : values_.at(i).as_sequence())
      all.push_back(value.is_none() ? Tensor() : value.as_tensor());
    return all;
  }
  int64_t integer(size_t i, int64_t otherwise = 0) const { return has(i) ? values_[i].as_int() : otherwise; }
  double real(size_t i, double otherwise = 0) const { return has(i) ? values_[i].as_float() : otherwise; }
  bool flag(size_t i, bool otherwise = false) const { return has(i) ? values_[i].as_bool() : otherwise; }
  std::string text(size_t i, const char* otherwise = "") const {
    return has(i) ? values_[i].as_str() : otherwise;
  }
  /// A whole number counts as a list of one.
  std::vector<int64_t> integers(size_t i) const {
    std::vector<int64_t> all;
    if (!has(i)) return all;
    if (values_[i].is_int()) return {values_[i].as_int()};
    for (const Value& value : values_[i].as_sequence()) all.push_back(value.as_int());
    return all;
  }
  /// A number counts as a list of one.
  std::vector<double> reals(size_t i) const {
    std::vector<double> all;
    if (!has(i)) return all;
    if (!values_[i].is_list()) return {values_[i].as_float()};
    for (const Value& value : values_[i].as_sequence()) all.push_back(value.as_float());
    return all;
  }
  std::optional<int64_t> optional_integer(size_t i) const {
    return has(i) ? std::optional(integer(i)) : std::nullopt;
  }
  std::optional<double> optional_real(size_t i) const {
    return has(i) ? std::optional(real(i)) : std::nullopt;
  }
  std::optional<DType> dtype(size_t i) const {
    return has(i) ? std::optional(values_[i].as_dtype()) : std::nullopt;
  }
  TensorOptions options(size_t i) const { return {.dtype = dtype(i), .device = {}, .requires_grad = false}; }
  /// A number with its kind: bool, int or float.
  Scalar number(size_t i, const Scalar& otherwise = 0) const {
    if (!has(i)) return otherwise;
    const Value& value = values_[i];
    if (value.is_bool()) return value.as_bool();
    if (value.is_float()) return value.as_float();
    if (value.kind() == ValueKind::Complex) return value.as_complex();
    return value.as_int();
  }
  std::optional<Scalar> optional_number(size_t i) const {
    return has(i) ? std::optional(number(i)) : std::nullopt;
  }

  /// All tensors that want a gradient, in order, those in lists too.
  std::vector<Tensor> wanting_gradients() const {
    std::vector<Tensor> wanting;
    auto add = [&](const Value& value) {
      if (value.is_tensor() && value.as_tensor().requires_grad()) wanting.push_back(value.as_tensor());
    };
    for (const Value& value : values_) {
      add(value);
      if (value.is_list())
        for (const Value& item : value.as_list()) add(item);
    }
    return wanting;
  }

 private:
  const std::vector<Value>& values_;
};

/// What an operator gave: one tensor or several.
class Results {
 public:
  Results(Tensor one) : tensors_{std::move(one)} {}
  Results(std::vector<Tensor> several) : tensors_(std::move(several)) {}
  Results(std::pair<Tensor, Tensor> two) : tensors_{std::move(two.first), std::move(two.second)} {}
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

/// The operators of tests/support/operator_rows/ by name.
using Operator = std::function<Results(const Arguments&)>;
using Table = std::map<std::string, Operator, std::less<>>;

/// Throws IndexError where there is none of that name.
const Operator& find_operator(const std::string& name);

}  // namespace tern::testing
