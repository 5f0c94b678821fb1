// StateDict: names and tensors in order, with the versions of the modules they came from. What nn gives and
// takes, and what io saves; neither needs to know the other.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

/// An ordered map from names ("conv1.weight") to tensors. Names keep the order in which they were first
/// inserted. `for (const auto& [name, tensor] : dict)` visits all.
class StateDict {
 public:
  using Entry = std::pair<std::string, Tensor>;
  using const_iterator = std::vector<Entry>::const_iterator;

  StateDict() = default;
  StateDict(std::initializer_list<Entry> entries);

  size_t size() const noexcept { return entries_.size(); }
  bool empty() const noexcept { return entries_.empty(); }
  const_iterator begin() const noexcept { return entries_.begin(); }
  const_iterator end() const noexcept { return entries_.end(); }

  bool contains(std::string_view name) const { return index_.find(name) != index_.end(); }
  /// The tensor of this name, or null.
  const Tensor* find(std::string_view name) const;
  /// The tensor of this name. Throws IndexError, with the name that comes nearest, when there is none. Of a
  /// temporary dict (`net.state_dict().at("weight")`) the handle itself, which outlives it.
  const Tensor& at(std::string_view name) const&;
  Tensor at(std::string_view name) const&& { return at(name); }
  /// The tensor of this name. As in std::map, a variable that is not const gets an undefined one at the end
  /// when there is none: at() and contains() do not insert. Of const and temporary dicts it is at().
  Tensor& operator[](std::string_view name) &;
  const Tensor& operator[](std::string_view name) const& { return at(name); }
  Tensor operator[](std::string_view name) const&& { return at(name); }
  /// Inserts at the end, or replaces the tensor of a name that is there.
  void insert(std::string_view name, Tensor tensor) { (*this)[name] = std::move(tensor); }
  /// True when the name was there. Linear in the size.
  bool erase(std::string_view name);
  void clear();

  /// The version that the module at `path` ("" is the root) recorded, as PyTorch's `_metadata` does.
  std::optional<int64_t> version(std::string_view path) const;
  void set_version(std::string_view path, int64_t version);
  /// All module paths and versions in the order of recording.
  const std::vector<std::pair<std::string, int64_t>>& versions() const noexcept { return versions_; }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Index = std::unordered_map<std::string, size_t, Hash, std::equal_to<>>;

  std::vector<Entry> entries_;
  Index index_;
  std::vector<std::pair<std::string, int64_t>> versions_;
  Index version_index_;
};

}  // namespace tern
