// Example: the tensors that a dataset gives for one index; a batch has the same form. And collate, which
// makes the batch out of the examples. Datasets are in dataset.h.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::data {

/// A tensor or a number, as an argument: integers become int64, floating-point numbers float64 and bools bool
/// tensors without dimensions, which is what PyTorch's default_collate makes of them.
class Value {
 public:
  Value(Tensor tensor) : tensor_(std::move(tensor)) {}
  template <class T>
  requires std::is_arithmetic_v<T> Value(T number) : tensor_(from_number(number)) {}

  Tensor&& take() && { return std::move(tensor_); }

 private:
  static Tensor from_number(bool number);
  static Tensor from_number(double number);
  static Tensor from_number(int64_t number);
  template <class T>
  static Tensor from_number(T number) {
    if constexpr (std::is_floating_point_v<T>)
      return from_number(static_cast<double>(number));
    else
      return from_number(static_cast<int64_t>(number));
  }

  Tensor tensor_;
};

/// A tensor of an example with its name.
struct Field {
  std::string name;
  Value value;
};

/// What a dataset gives for one index: usually [data, target], at least one tensor, any number of them. They
/// may have names, as the entries of a dict in PyTorch.
///
///     return {image, label};                     // in Dataset::get
///     for (auto& [x, y] : loader) ...            // a batch of two
///     auto [a, b, c] = batch.unpack<3>();        // of any other number
///
///     return {{"image", image}, {"label", label}, {"weight", 0.5}};
///     for (auto& batch : loader) ... batch["image"] ...
struct Example {
  Tensor data;                     ///< the first tensor
  Tensor target;                   ///< the second one; undefined when there is one only
  std::vector<Tensor> rest;        ///< those after the second
  std::vector<std::string> names;  ///< of all tensors, in their order; empty where they have none

  Example() = default;
  /// Throws ValueError if the list is empty or a name occurs twice.
  Example(std::initializer_list<Field> fields);
  template <class... Values>
  requires(sizeof...(Values) > 0 && (std::convertible_to<Values, Value> && ...)) Example(Values&&... values) {
    (push(Value(std::forward<Values>(values)).take()), ...);
  }
  template <class First, class Second>
  requires std::convertible_to<First, Value> && std::convertible_to<Second, Value> Example(
      std::pair<First, Second> pair)
      : Example(std::move(pair.first), std::move(pair.second)) {}
  template <class... Values>
  requires(sizeof...(Values) > 0 && (std::convertible_to<Values, Value> && ...))
      Example(std::tuple<Values...> values) {
    std::apply([this](auto&... each) { (push(Value(std::move(each)).take()), ...); }, values);
  }
  /// Throws ValueError if the list is empty.
  Example(const std::vector<Tensor>& tensors);

  /// How many tensors there are.
  size_t size() const { return (data.defined() ? 1u : 0u) + (target.defined() ? 1u : 0u) + rest.size(); }
  /// One of them. Throws IndexError.
  Tensor& operator[](size_t i);
  const Tensor& operator[](size_t i) const { return const_cast<Example&>(*this)[i]; }
  /// The tensor of this name. Throws IndexError.
  Tensor& operator[](std::string_view name);
  const Tensor& operator[](std::string_view name) const { return const_cast<Example&>(*this)[name]; }
  bool contains(std::string_view name) const;
  /// All of them.
  std::vector<Tensor> tensors() const;

  /// The tensors as an array to take apart. Throws ValueError unless there are N.
  template <size_t N>
  std::array<Tensor, N> unpack() const {
    check_size(N);
    return [this]<size_t... I>(std::index_sequence<I...>) { return std::array<Tensor, N>{(*this)[I]...}; }
    (std::make_index_sequence<N>());
  }

  /// For `auto& [x, y] = batch`. Throws ValueError unless there are two.
  template <size_t I>
  Tensor& get() {
    check_size(2);
    return I == 0 ? data : target;
  }
  template <size_t I>
  const Tensor& get() const {
    return const_cast<Example&>(*this).get<I>();
  }

 private:
  void push(Tensor&& tensor);
  void check_size(size_t expected) const;
};

/// A batch has the form of an example; its tensors have one dimension more, the first.
using Batch = Example;

/// Makes a batch out of examples.
using CollateFn = std::function<Batch(const std::vector<Example>&)>;

/// Stacks the tensors of the examples, the first ones, the second ones and so on, or those of one name, as
/// PyTorch's default_collate does; names come in the order of the first example. Throws ValueError for an
/// empty list, DataError if the numbers of tensors, their names, shapes, dtypes or devices differ; the
/// message names the first example that is different.
Batch default_collate(const std::vector<Example>& examples);

}  // namespace tern::data

template <>
struct std::tuple_size<tern::data::Example> : std::integral_constant<size_t, 2> {};
template <size_t I>
struct std::tuple_element<I, tern::data::Example> {
  using type = tern::Tensor;
};
