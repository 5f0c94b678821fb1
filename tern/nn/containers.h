// Sequential, ModuleList and ModuleDict: modules that hold modules; ParameterList and ParameterDict.
#pragma once

#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/nn/any_module.h"

namespace tern::nn {

namespace detail {
[[noreturn]] void throw_no_element(const char* container, int64_t index, size_t size, const char* held);
[[noreturn]] void throw_no_key(std::string_view key, const std::vector<std::string>& keys,
                               const char* held = "module");
[[noreturn]] void throw_double_key(const char* container, std::string_view key);
/// PyTorch's text of a list: equal neighbours are written once, "(0-5): 6 x Block(...)".
std::string list_text(const Module& list);

/// An index counted from the end when negative.
inline size_t checked_index(const char* container, int64_t index, size_t size, const char* held = "modules") {
  const int64_t count = static_cast<int64_t>(size);
  if (index < -count || index >= count) throw_no_element(container, index, size, held);
  return static_cast<size_t>(index < 0 ? index + count : index);
}
}  // namespace detail

/// Modules that are called one after the other, each with the result of the one before:
/// `nn::Sequential net{nn::Linear(20, 256), nn::ReLU(), nn::Linear(256, 10)};` with keys "0", "1", "2", or
/// `nn::Sequential net{{"hidden", nn::Linear(20, 256)}, {"act", nn::ReLU()}};` with keys of its own.
///
/// Layers that are made in the call stand between braces, since C++ makes them from left to right only there:
/// between parentheses the compiler chooses the order (GCC begins at the last), so that first weights would
/// depend on the compiler, and differ from PyTorch's of the same seed.
class Sequential final : public Module {
 public:
  using Entry = std::pair<std::string, AnyModule>;

  Sequential() = default;
  template <class... Ms>
  requires(sizeof...(Ms) > 0 && (std::derived_from<std::remove_cvref_t<Ms>, Module> && ...) &&
           !(sizeof...(Ms) == 1 && (std::same_as<std::remove_cvref_t<Ms>, Sequential> &&
                                    ...))) explicit Sequential(Ms&&... modules) {
    (push_back(std::forward<Ms>(modules)), ...);
  }
  /// Throws ValueError for a name that occurs twice.
  explicit Sequential(std::initializer_list<Entry> named) {
    for (const Entry& entry : named) push_back(entry.first, entry.second);
  }

  Tensor forward(const Tensor& x) const;
  template <class... Args>
  Tensor operator()(Args&&... args) const {
    return detail::call(*this, std::forward<Args>(args)...);
  }

  /// Adds a module under its number.
  void push_back(AnyModule module) { push_back(std::to_string(size()), std::move(module)); }
  void push_back(std::string name, AnyModule module);
  size_t size() const noexcept { return entries_.size(); }
  bool empty() const noexcept { return entries_.empty(); }
  /// Throws IndexError; a negative index counts from the end.
  AnyModule& operator[](int64_t index) {
    return entries_[detail::checked_index("Sequential", index, size())].second;
  }
  const AnyModule& operator[](int64_t index) const {
    return entries_[detail::checked_index("Sequential", index, size())].second;
  }
  /// Throws IndexError unless there is a module of this name.
  AnyModule& operator[](std::string_view name);

  // Iteration over the entries: `for (auto& [name, module] : net)`.
  auto begin() noexcept { return entries_.begin(); }
  auto end() noexcept { return entries_.end(); }
  auto begin() const noexcept { return entries_.begin(); }
  auto end() const noexcept { return entries_.end(); }

  void collect_fields(Fields& fields) override {
    for (auto& [name, module] : entries_) fields.add(name, module);
  }

 private:
  std::vector<Entry> entries_;
};

/// A list of modules under the keys "0", "1", ...: of one type, `nn::ModuleList<Block> blocks`, or of any,
/// `nn::ModuleList<> layers`. It is not called itself.
template <class M = AnyModule>
class ModuleList final : public Module {
 public:
  ModuleList() = default;
  ModuleList(std::initializer_list<M> modules) : modules_(modules) {}
  explicit ModuleList(std::vector<M> modules) : modules_(std::move(modules)) {}

  void push_back(M module) { modules_.push_back(std::move(module)); }
  template <class... Args>
  M& emplace_back(Args&&... args) {
    return modules_.emplace_back(std::forward<Args>(args)...);
  }
  size_t size() const noexcept { return modules_.size(); }
  bool empty() const noexcept { return modules_.empty(); }
  /// Throws IndexError; a negative index counts from the end.
  M& operator[](int64_t index) { return modules_[detail::checked_index("ModuleList", index, size())]; }
  const M& operator[](int64_t index) const {
    return modules_[detail::checked_index("ModuleList", index, size())];
  }
  auto begin() noexcept { return modules_.begin(); }
  auto end() noexcept { return modules_.end(); }
  auto begin() const noexcept { return modules_.begin(); }
  auto end() const noexcept { return modules_.end(); }

  void collect_fields(Fields& fields) override {
    for (size_t i = 0; i < modules_.size(); ++i) fields.add(std::to_string(i), modules_[i]);
  }
  std::string str() const override { return detail::list_text(*this); }

 private:
  std::vector<M> modules_;
};

/// Modules by name, in the order in which they were inserted. It is not called itself.
template <class M = AnyModule>
class ModuleDict final : public Module {
 public:
  using Entry = std::pair<std::string, M>;

  ModuleDict() = default;
  /// Throws ValueError for a name that occurs twice.
  ModuleDict(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) insert(entry.first, entry.second);
  }

  /// Throws ValueError when the name is there already.
  void insert(std::string name, M module) {
    if (contains(name)) detail::throw_double_key("ModuleDict", name);
    entries_.emplace_back(std::move(name), std::move(module));
  }
  bool contains(std::string_view name) const { return find(name) != entries_.end(); }
  /// Throws IndexError unless there is a module of this name.
  M& operator[](std::string_view name) {
    auto found = find(name);
    if (found == entries_.end()) detail::throw_no_key(name, keys());
    return const_cast<M&>(found->second);
  }
  size_t size() const noexcept { return entries_.size(); }
  bool empty() const noexcept { return entries_.empty(); }
  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    for (const Entry& entry : entries_) names.push_back(entry.first);
    return names;
  }
  auto begin() noexcept { return entries_.begin(); }
  auto end() noexcept { return entries_.end(); }
  auto begin() const noexcept { return entries_.begin(); }
  auto end() const noexcept { return entries_.end(); }

  void collect_fields(Fields& fields) override {
    for (auto& [name, module] : entries_) fields.add(name, module);
  }

 private:
  auto find(std::string_view name) const {
    return std::find_if(entries_.begin(), entries_.end(),
                        [&](const Entry& entry) { return entry.first == name; });
  }

  std::vector<Entry> entries_;
};

/// Parameters under the keys "0", "1", ...: "weights.0", "weights.1" for a field `weights` of a module. It is
/// not called itself. Tensors that are added become parameters that share their numbers; parameters stay the
/// same parameters. Throws ValueError for one that is absent.
class ParameterList final : public Module {
 public:
  ParameterList() = default;
  ParameterList(std::initializer_list<Parameter> parameters) { extend(parameters); }
  explicit ParameterList(const std::vector<Parameter>& parameters) { extend(parameters); }

  void append(const Parameter& parameter) { insert(static_cast<int64_t>(size()), parameter); }
  void append(const Tensor& tensor) { append(Parameter(tensor)); }
  /// Before the element of this index; as Python's list takes it, from the end when negative, and at the ends
  /// for an index beyond them.
  void insert(int64_t index, const Parameter& parameter);
  void insert(int64_t index, const Tensor& tensor) { insert(index, Parameter(tensor)); }
  /// Appends all of a range of parameters or tensors.
  template <class Range>
  void extend(const Range& range) {
    for (const auto& each : range) append(each);
  }
  size_t size() const noexcept { return parameters_.size(); }
  bool empty() const noexcept { return parameters_.empty(); }
  /// Throws IndexError; a negative index counts from the end.
  Parameter& operator[](int64_t index) { return parameters_[place_of(index)]; }
  const Parameter& operator[](int64_t index) const { return parameters_[place_of(index)]; }
  auto begin() noexcept { return parameters_.begin(); }
  auto end() noexcept { return parameters_.end(); }
  auto begin() const noexcept { return parameters_.begin(); }
  auto end() const noexcept { return parameters_.end(); }

  void collect_fields(Fields& fields) override {
    for (size_t i = 0; i < parameters_.size(); ++i) fields.add(std::to_string(i), parameters_[i]);
  }
  std::string extra_repr() const override;

 private:
  size_t place_of(int64_t index) const;

  std::vector<Parameter> parameters_;
};

/// Parameters by name, in the order in which they were inserted: "weights.left" for a field `weights` of a
/// module. It is not called itself.
class ParameterDict final : public Module {
 public:
  using Entry = std::pair<std::string, Parameter>;

  ParameterDict() = default;
  /// Throws as insert does.
  ParameterDict(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) insert(entry.first, entry.second);
  }

  /// A tensor becomes a parameter that shares its numbers. Throws ValueError when the name is there already,
  /// is empty or has a point in it, and for a parameter that is absent.
  void insert(std::string name, const Parameter& parameter);
  void insert(std::string name, const Tensor& tensor) { insert(std::move(name), Parameter(tensor)); }
  bool contains(std::string_view name) const;
  /// Throws IndexError unless there is a parameter of this name.
  Parameter& operator[](std::string_view name) { return const_cast<Parameter&>(std::as_const(*this)[name]); }
  const Parameter& operator[](std::string_view name) const;
  size_t size() const noexcept { return entries_.size(); }
  bool empty() const noexcept { return entries_.empty(); }
  std::vector<std::string> keys() const;
  auto begin() noexcept { return entries_.begin(); }
  auto end() noexcept { return entries_.end(); }
  auto begin() const noexcept { return entries_.begin(); }
  auto end() const noexcept { return entries_.end(); }

  void collect_fields(Fields& fields) override {
    for (auto& [name, parameter] : entries_) fields.add(name, parameter);
  }
  std::string extra_repr() const override;

 private:
  std::vector<Entry> entries_;
};

}  // namespace tern::nn
