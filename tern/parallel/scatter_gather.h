// scatter and gather: splitting inputs over devices and joining outputs, for tensors and for values with
// tensors in them. Sending many tensors to many devices at once is in parallel/comm.h. The functions are
// those of torch.nn.parallel; they are differentiable.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/parallel/nested.h"

namespace tern::parallel {

/// The sizes of the parts of `size` elements for `devices` devices, as torch.chunk: ceil(size / devices)
/// each, the last one smaller, and no part without elements; of 0 elements, an empty part for each device.
std::vector<int64_t> chunk_sizes(int64_t size, size_t devices);

/// Splits x along `dim` into as many parts as chunk_sizes() says, the i-th on the i-th device; x may be
/// anywhere. A part on the device of x is a view. The gradient is gathered where x is. Never blocks the host:
/// pinned memory is read when the device comes to it, other host memory on return. Throws ShapeError for a
/// 0-d tensor, IndexError for a wrong dimension.
std::vector<Tensor> scatter(const Tensor& x, const std::vector<Device>& devices, int64_t dim = 0);

/// PyTorch's text for gather() of 0-d tensors.
inline constexpr const char* kScalarGatherWarning =
    "Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze and "
    "return a vector.";

/// Called with the text of a warning.
using Warn = std::function<void(const std::string&)>;

/// Joins tensors of any devices along `dim` on `target`. 0-d tensors become a vector with an element for
/// each, of which `warn` is told. The gradient is scattered to where the parts were. Throws ValueError for an
/// empty list, ShapeError and DTypeError for tensors that do not fit.
Tensor gather(const std::vector<Tensor>& parts, Device target, int64_t dim = 0, const Warn& warn = {});

namespace detail {

template <class T>
struct StructureOf {
  static constexpr bool has_tensors = std::is_base_of_v<Tensor, T>;
};
template <>
struct StructureOf<Nested> {
  static constexpr bool has_tensors = true;
};
template <class T>
struct StructureOf<std::vector<T>> : StructureOf<T> {};
template <class T>
struct StructureOf<std::optional<T>> : StructureOf<T> {};
template <class T>
struct StructureOf<std::map<std::string, T>> : StructureOf<T> {};
template <class... Ts>
struct StructureOf<std::tuple<Ts...>> {
  static constexpr bool has_tensors = (StructureOf<Ts>::has_tensors || ...);
};
template <class A, class B>
struct StructureOf<std::pair<A, B>> : StructureOf<std::tuple<A, B>> {};

[[noreturn]] void throw_different_parts(const Tensor& a, size_t a_parts, const Tensor& b, size_t b_parts,
                                        int64_t dim);
[[noreturn]] void throw_unlike_outputs(const char* what, size_t first, size_t other, size_t replica);
[[noreturn]] void throw_unlike_keys(const std::string& key, size_t replica);
std::vector<Nested> scatter_nested(const Nested& value, const std::vector<Device>& devices, int64_t dim);
Nested gather_nested(const std::vector<Nested>& parts, Device target, int64_t dim, const Warn& warn);
void for_each_nested_tensor(const Nested& value, const std::function<void(const Tensor&)>& f);

}  // namespace detail

/// Whether there may be tensors in a T: in Tensor and Nested, and in vector, optional, pair, tuple and
/// map<string, ...> of such.
template <class T>
inline constexpr bool has_tensors = detail::StructureOf<std::remove_cvref_t<T>>::has_tensors;

/// Calls `f(tensor)` for the defined tensors in a value, in order.
template <class T, class F>
void for_each_tensor(const T& value, F&& f) {
  if constexpr (std::is_base_of_v<Tensor, T>) {
    if (value.defined()) f(static_cast<const Tensor&>(value));
  } else if constexpr (std::is_same_v<T, Nested>) {
    detail::for_each_nested_tensor(value, f);
  } else if constexpr (!has_tensors<T>) {
    return;
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    std::apply([&](const auto&... parts) { (for_each_tensor(parts, f), ...); }, value);
  } else if constexpr (requires { value.has_value(); }) {
    if (value) for_each_tensor(*value, f);
  } else if constexpr (requires { typename T::mapped_type; }) {
    for (const auto& [key, part] : value) for_each_tensor(part, f);
  } else {
    for (const auto& part : value) for_each_tensor(part, f);
  }
}

/// Into how many parts the tensors of some values are split: the number of devices if there are none. Throws
/// ShapeError when they do not all give the same number.
template <class... Ts>
size_t number_of_parts(size_t devices, int64_t dim, const Ts&... values) {
  Tensor first;
  size_t parts = devices;
  auto look = [&](const Tensor& x) {
    const size_t own = x.dim() == 0 ? devices : chunk_sizes(x.size(dim), devices).size();
    if (first.defined() && own != parts) detail::throw_different_parts(first, parts, x, own, dim);
    if (!first.defined()) first = x;
    parts = own;
  };
  (for_each_tensor(values, look), ...);
  return parts;
}

/// A value for each device: tensors in it are split, whatever else is in it is handed to every one. `devices`
/// are as many as number_of_parts().
template <class T>
requires(!std::is_base_of_v<Tensor, T>) std::vector<T> scatter(const T& value,
                                                               const std::vector<Device>& devices,
                                                               int64_t dim = 0) {
  const size_t n = devices.size();
  if constexpr (std::is_same_v<T, Nested>) {
    return detail::scatter_nested(value, devices, dim);
  } else if constexpr (!has_tensors<T>) {
    return std::vector<T>(n, value);
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    std::vector<T> result(n);
    [&]<size_t... i>(std::index_sequence<i...>) {
      auto put = [&]<size_t k>(std::integral_constant<size_t, k>) {
        auto parts = scatter(std::get<k>(value), devices, dim);
        for (size_t r = 0; r < n; ++r) std::get<k>(result[r]) = std::move(parts[r]);
      };
      (put(std::integral_constant<size_t, i>()), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
    return result;
  } else if constexpr (requires { value.has_value(); }) {
    std::vector<T> result(n);
    if (!value) return result;
    auto parts = scatter(*value, devices, dim);
    for (size_t r = 0; r < n; ++r) result[r] = std::move(parts[r]);
    return result;
  } else if constexpr (requires { typename T::mapped_type; }) {
    std::vector<T> result(n);
    for (const auto& [key, element] : value) {
      auto parts = scatter(element, devices, dim);
      for (size_t r = 0; r < n; ++r) result[r].emplace(key, std::move(parts[r]));
    }
    return result;
  } else {
    std::vector<T> result(n);
    for (const auto& element : value) {
      auto parts = scatter(element, devices, dim);
      for (size_t r = 0; r < n; ++r) result[r].push_back(std::move(parts[r]));
    }
    return result;
  }
}

/// One value from those of all replicas, which have the same structure: their tensors are joined. Throws
/// ValueError when the structures differ, TypeError for numbers and texts, which can not be joined.
template <class T>
requires(!std::is_base_of_v<Tensor, T>) T
    gather(const std::vector<T>& parts, Device target, int64_t dim = 0, const Warn& warn = {}) {
  static_assert(
      has_tensors<T>,
      "outputs that are gathered are Tensor, Nested, or vector, optional, pair, tuple and map<string, "
      "...> of such");
  const size_t n = parts.size();
  if constexpr (std::is_same_v<T, Nested>) {
    return detail::gather_nested(parts, target, dim, warn);
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      auto joined = [&]<size_t k>(std::integral_constant<size_t, k>) {
        std::vector<std::tuple_element_t<k, T>> column;
        for (const T& part : parts) column.push_back(std::get<k>(part));
        return gather(column, target, dim, warn);
      };
      return T{joined(std::integral_constant<size_t, i>())...};
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (requires(const T& value) { value.has_value(); }) {
    std::vector<typename T::value_type> column;
    for (size_t r = 0; r < n; ++r) {
      if (parts[r].has_value() != parts[0].has_value())
        detail::throw_unlike_outputs("optional outputs", parts[0].has_value(), parts[r].has_value(), r);
      if (parts[r]) column.push_back(*parts[r]);
    }
    return column.empty() ? T() : T(gather(column, target, dim, warn));
  } else if constexpr (requires { typename T::mapped_type; }) {
    T result;
    for (size_t r = 0; r < n; ++r)
      if (parts[r].size() != parts[0].size())
        detail::throw_unlike_outputs("dicts", parts[0].size(), parts[r].size(), r);
    for (const auto& [key, ignored] : parts.at(0)) {
      std::vector<typename T::mapped_type> column;
      for (size_t r = 0; r < n; ++r) {
        const auto found = parts[r].find(key);
        if (found == parts[r].end()) detail::throw_unlike_keys(key, r);
        column.push_back(found->second);
      }
      result.emplace(key, gather(column, target, dim, warn));
    }
    return result;
  } else {
    T result;
    for (size_t r = 0; r < n; ++r)
      if (parts[r].size() != parts[0].size())
        detail::throw_unlike_outputs("lists", parts[0].size(), parts[r].size(), r);
    for (size_t i = 0; i < parts.at(0).size(); ++i) {
      std::vector<typename T::value_type> column;
      for (const T& part : parts) column.push_back(part[i]);
      result.push_back(gather(column, target, dim, warn));
    }
    return result;
  }
}

}  // namespace tern::parallel
