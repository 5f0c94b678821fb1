// What `module(x)` does around forward(x): hooks, tensors that are computed from others (nn/utils.h), and the
// module's path in the text of errors.
// The call operator itself is written by TERN_MODULE (nn/module.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tern/base/error.h"
#include "tern/core/tensor.h"
#include "tern/device/scope.h"
#include "tern/nn/parameter.h"

namespace tern::nn {

class Module;

/// Returns an undefined tensor to leave things as they are. A hook that is registered may return nothing
/// instead.
using ForwardPreHook = std::function<Tensor(const Module& module, const Tensor& input)>;
using ForwardHook = std::function<Tensor(const Module& module, const Tensor& input, const Tensor& output)>;
using BackwardPreHook = std::function<Tensor(const Module& module, const Tensor& grad_output)>;
using BackwardHook =
    std::function<Tensor(const Module& module, const Tensor& grad_input, const Tensor& grad_output)>;

namespace detail {

/// A hook that only looks, as one that leaves things as they are; empty stays empty.
template <class... Args>
std::function<Tensor(Args...)> leaving_things(std::function<void(Args...)> hook) {
  if (!hook) return nullptr;
  return [hook = std::move(hook)](Args... args) {
    hook(args...);
    return Tensor();
  };
}

/// A parameter that is computed before each forward from others, which take its place in the module's lists
/// and state dict.
struct Parametrization {
  std::string name;  ///< of the field that is computed, "weight"
  const char* kind;  ///< who computes it, "weight_norm"
  std::vector<std::pair<std::string, Parameter>> parameters;
  std::vector<std::pair<std::string, Buffer>> buffers;
  std::function<Tensor(const Parametrization& self, bool training)> compute;
};

/// What the backward hooks of one call know.
struct BackwardCall {
  const Module& module;
  std::vector<std::pair<int64_t, BackwardPreHook>> before;
  std::vector<std::pair<int64_t, BackwardHook>> after;
  bool input_watched = false;
  Tensor grad_output;
};

/// What goes around each forward of a module, hooks and computed parameters included
/// (parallel/fully_shard.h).
class Surrounding {
 public:
  virtual ~Surrounding() = default;
  /// Called before a forward; what it returns goes when that is over, by an exception too.
  virtual std::shared_ptr<void> begin(Module& module) = 0;
};

struct ModuleHooks {
  int64_t next = 0;
  std::vector<std::pair<int64_t, ForwardPreHook>> before;
  std::vector<std::pair<int64_t, ForwardHook>> after;
  std::vector<std::pair<int64_t, BackwardPreHook>> backward_before;
  std::vector<std::pair<int64_t, BackwardHook>> backward_after;
  std::vector<Parametrization> parametrizations;
  std::shared_ptr<Surrounding> surrounding;

  std::shared_ptr<void> begin(Module& module) const {
    return surrounding ? surrounding->begin(module) : nullptr;
  }
  /// Computes the fields of the module that have a parametrization.
  void compute_parameters(Module& module) const;
  /// Null where there is no backward hook, or nothing is recorded.
  std::shared_ptr<BackwardCall> start_backward_call(const Module& module) const;
  Tensor run_before(const Module& module, Tensor input) const;
  /// `replaceable`: whether a hook may give another output; if it does all the same, ValueError.
  Tensor run_after(const Module& module, const Tensor& input, Tensor output, bool replaceable) const;
};

/// A view of the input whose gradient calls the backward hooks.
Tensor watch_input(const std::shared_ptr<BackwardCall>& call, const Tensor& input);
/// A view of the output whose gradient they get.
Tensor watch_output(const std::shared_ptr<BackwardCall>& call, const Tensor& output);

}  // namespace detail

/// Takes a hook away again. Does nothing once the hook or its module is gone.
class HookHandle {
 public:
  HookHandle() = default;
  HookHandle(std::weak_ptr<detail::ModuleHooks> hooks, int64_t number)
      : hooks_(std::move(hooks)), number_(number) {}
  void remove();

 private:
  std::weak_ptr<detail::ModuleHooks> hooks_;
  int64_t number_ = 0;
};

namespace detail {

using tern::detail::observing;

/// Puts the path from `module` to where the error arose before its message: "LeNet.fc1 (Linear): ...".
void add_module_context(Error& error, const Module& module);
/// An error that goes on as another object: what is known of its path goes with it.
void hand_on_context(const Error& from, const Error& to);

template <class T>
inline constexpr bool is_tensor = std::is_base_of_v<Tensor, std::remove_cvref_t<T>>;

/// The first tensor among the arguments of a call; a Tensor stands in its place in `arguments`.
inline Tensor* first_tensor() { return nullptr; }
template <class First, class... Rest>
Tensor* first_tensor(First& first, Rest&... rest) {
  if constexpr (is_tensor<First>)
    return &first;
  else
    return first_tensor(rest...);
}

/// An argument as it is kept while hooks run: tensors as handles that may be replaced, the rest as it was
/// given.
template <class T>
using HeldArgument = std::conditional_t<is_tensor<T>, Tensor, T&&>;

/// The first tensor of what a forward returns; null where there is none.
template <class T>
Tensor* first_output(T& output) {
  if constexpr (is_tensor<T>)
    return &output;
  else if constexpr (requires { std::tuple_size<T>::value; })
    return std::apply([](auto&... parts) { return first_tensor(parts...); }, output);
  else if constexpr (std::is_same_v<T, std::vector<Tensor>>)
    return output.empty() ? nullptr : &output.front();
  else
    return nullptr;
}

template <class Self, class... Args>
[[gnu::noinline]] auto call_with_hooks(Self& self, Args&&... args) {
  std::shared_ptr<ModuleHooks> hooks = self.hooks();
  auto& module = const_cast<std::remove_const_t<Self>&>(self);
  const std::shared_ptr<void> surrounded = hooks->begin(module);
  hooks->compute_parameters(module);
  const std::shared_ptr<BackwardCall> backward = hooks->start_backward_call(self);
  std::tuple<HeldArgument<Args>...> held(std::forward<Args>(args)...);
  Tensor input;
  std::apply(
      [&](auto&... arguments) {
        if (Tensor* first = first_tensor(arguments...)) {
          input = hooks->run_before(self, *first);
          *first = backward ? watch_input(backward, input) : input;
        } else {
          input = hooks->run_before(self, Tensor());
        }
      },
      held);
  auto output = std::apply(
      [&](auto&... arguments) { return self.forward(static_cast<HeldArgument<Args>&&>(arguments)...); },
      held);
  Tensor* first = first_output(output);
  const Tensor seen = hooks->run_after(self, input, first ? *first : Tensor(), is_tensor<decltype(output)>);
  if (first) *first = backward ? watch_output(backward, seen) : seen;
  return output;
}

/// While somebody observes launches, the calling thread is known to be in this module's forward.
class ModuleScope {
 public:
  explicit ModuleScope(const Module& module) {
    if (observing()) [[unlikely]]
      enter(module);
  }
  ~ModuleScope() {
    if (frame_) [[unlikely]]
      leave();
  }
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

  struct Frame;

 private:
  void enter(const Module& module);
  void leave() noexcept;
  Frame* frame_ = nullptr;
};

/// f() as a part of this module: errors and profiles name it.
template <class Self, class F>
auto call_inside(Self& self, F&& f) {
  const ModuleScope scope(self);
  try {
    return f();
  } catch (Error& error) {
    add_module_context(error, self);
    throw;
  }
}

template <class Self, class... Args>
auto call(Self& self, Args&&... args) {
  return call_inside(self, [&] {
    if (self.hooks()) [[unlikely]]
      return call_with_hooks(self, std::forward<Args>(args)...);
    return self.forward(std::forward<Args>(args)...);
  });
}

}  // namespace detail
}  // namespace tern::nn
