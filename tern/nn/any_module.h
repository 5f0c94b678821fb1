// AnyModule: a value that holds a module of any type. Lists of them are in nn/containers.h.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "tern/nn/activation.h"
#include "tern/nn/module.h"

namespace tern::nn {

namespace detail {
[[noreturn]] void throw_empty_module();
[[noreturn]] void throw_not_of_tensor(const Module& module);
[[noreturn]] void throw_not_copyable(const Module& module);
[[noreturn]] void throw_wrong_module(const Module& module, const std::type_info& wanted);
}  // namespace detail

/// Holds one module by value: copying an AnyModule copies the module in it (which shares its tensors, as
/// every copy of a module does). Callable with one tensor when the module is.
class AnyModule {
 public:
  AnyModule() = default;
  template <class M>
  requires std::derived_from<std::remove_cvref_t<M>, Module> AnyModule(M&& module)
      : module_(std::make_unique<std::remove_cvref_t<M>>(std::forward<M>(module))),
        type_(&type_of<std::remove_cvref_t<M>>) {}
  AnyModule(const AnyModule& other)
      : module_(other.module_ ? other.type_->copy(*other.module_) : nullptr), type_(other.type_) {}
  AnyModule(AnyModule&& other) noexcept = default;
  AnyModule& operator=(AnyModule other) noexcept {
    module_ = std::move(other.module_);
    type_ = other.type_;
    return *this;
  }
  ~AnyModule() = default;

  bool has_value() const noexcept { return module_ != nullptr; }
  /// The module. Throws ValueError when there is none.
  Module& get() const {
    if (!module_) [[unlikely]]
      detail::throw_empty_module();
    return *module_;
  }
  Module& operator*() const { return get(); }
  Module* operator->() const { return &get(); }
  /// The module as what it is. Throws TypeError when it is something else.
  template <class M>
  M& as() const {
    auto* module = dynamic_cast<M*>(&get());
    if (!module) detail::throw_wrong_module(*module_, typeid(M));
    return *module;
  }
  template <class M>
  bool is() const noexcept {
    return type_ == &type_of<M>;
  }
  /// Calls the module. Throws TypeError when its forward does not take one tensor and return one.
  Tensor operator()(const Tensor& x) const { return type_->call(get(), x); }
  /// relu(module(x)), see nn::relu_after. Only where has_relu().
  Tensor call_relu(const Tensor& x) const { return type_->call_relu(get(), x); }
  bool has_relu() const noexcept { return type_->call_relu != nullptr; }

 private:
  struct Type {
    Tensor (*call)(Module& module, const Tensor& x);
    Tensor (*call_relu)(Module& module, const Tensor& x);  ///< or null
    std::unique_ptr<Module> (*copy)(const Module& module);
  };
  template <class M>
  static Tensor call_as(Module& module, const Tensor& x) {
    auto& self = static_cast<M&>(module);
    if constexpr (requires {
                    { self.forward(x) } -> std::convertible_to<Tensor>;
                  })
      return self(x);
    else
      detail::throw_not_of_tensor(module);
  }
  template <class M>
  static constexpr auto relu_as() -> Tensor (*)(Module&, const Tensor&) {
    if constexpr (requires(M & m, const Tensor& x) {
                    { m.forward_relu(x) } -> std::convertible_to<Tensor>;
                  })
      return [](Module& module, const Tensor& x) { return relu_after(static_cast<M&>(module), x); };
    else
      return nullptr;
  }
  template <class M>
  static std::unique_ptr<Module> copy_as(const Module& module) {
    if constexpr (std::is_copy_constructible_v<M>)
      return std::make_unique<M>(static_cast<const M&>(module));
    else
      detail::throw_not_copyable(module);
  }
  template <class M>
  static constexpr Type type_of{&call_as<M>, relu_as<M>(), &copy_as<M>};
  static constexpr Type no_type{[](Module&, const Tensor&) -> Tensor { detail::throw_empty_module(); },
                                nullptr, nullptr};

  std::unique_ptr<Module> module_;
  const Type* type_ = &no_type;
};

/// A copy that shares no tensor with `module`.
inline AnyModule clone(const AnyModule& module) {
  AnyModule copy(module);
  if (copy.has_value()) detail::separate(copy.get());
  return copy;
}

}  // namespace tern::nn
