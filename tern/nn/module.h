// Module: the base of layers and networks. A module is a plain struct whose fields are named once:
//   struct Net : nn::Module {
//     nn::Linear hidden{20, 256};
//     nn::Linear output{256, 10};
//     TERN_MODULE(hidden, output)
//     Tensor forward(const Tensor& x) { return output(relu(hidden(x))); }
//   };
// Layers are in the files beside this one, modules of any type in nn/any_module.h, lists of them in
// nn/containers.h.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tern/base/error.h"
#include "tern/core/state_dict.h"
#include "tern/core/tensor.h"
#include "tern/nn/module_call.h"
#include "tern/nn/parameter.h"

/// Names the fields of a module, in the order of its state_dict: parameters, buffers, modules (AnyModule
/// too), and std::optional or std::vector of those. A module without any writes `TERN_MODULE()`. It also
/// gives the struct its call operator, `net(x)`: forward(x) with hooks and with the module's path in errors.
/// What follows it is public. The call operator is a template, so such a struct can not be local to a
/// function. A struct that is derived from one with fields writes TERN_MODULE_OF; nothing else would know the
/// fields of its base, and the compiler refuses TERN_MODULE there.
#define TERN_MODULE(...)                                                   \
 public:                                                                   \
  virtual void tern_module_base_has_fields_write_TERN_MODULE_OF() final {} \
  void collect_fields(::tern::nn::Fields& tern_fields) override {          \
    tern_fields.add_all(#__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__);          \
  }                                                                        \
  TERN_MODULE_CALL

/// The same for a struct that is derived from `Base`, a module with fields: they come first.
#define TERN_MODULE_OF(Base, ...)                                 \
 public:                                                          \
  void collect_fields(::tern::nn::Fields& tern_fields) override { \
    Base::collect_fields(tern_fields);                            \
    tern_fields.add_all(#__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__); \
  }                                                               \
  TERN_MODULE_CALL

#define TERN_MODULE_CALL                                                      \
  template <class... Args>                                                    \
  auto operator()(Args&&... tern_args) {                                      \
    return ::tern::nn::detail::call(*this, std::forward<Args>(tern_args)...); \
  }                                                                           \
  template <class... Args>                                                    \
  auto operator()(Args&&... tern_args) const {                                \
    return ::tern::nn::detail::call(*this, std::forward<Args>(tern_args)...); \
  }

namespace tern::nn {

class Module;
class AnyModule;

/// The fields of one module with their names, in order. Absent ones are left out.
class Fields {
 public:
  std::vector<std::pair<std::string, Parameter*>> parameters;
  std::vector<std::pair<std::string, Buffer*>> buffers;
  std::vector<std::pair<std::string, Module*>> modules;

  void add(std::string_view name, Parameter& parameter);
  void add(std::string_view name, Buffer& buffer);
  void add(std::string_view name, Module& module);
  void add(std::string_view name, AnyModule& module);
  template <class T>
  void add(std::string_view name, std::optional<T>& field) {
    if (field) add(name, *field);
  }
  /// Elements are called "name.0", "name.1", ...
  template <class T>
  void add(std::string_view name, std::vector<T>& fields) {
    for (size_t i = 0; i < fields.size(); ++i) add(std::string(name) + "." + std::to_string(i), fields[i]);
  }

  /// `names` is the text of the fields as they stand in TERN_MODULE: "hidden, output".
  template <class... Ts>
  void add_all([[maybe_unused]] std::string_view names, Ts&... fields) {
    static_assert(
        (addable<Ts> && ...),
        "TERN_MODULE takes Parameter, Buffer, modules, AnyModule, and std::optional or std::vector of those");
    (add(next_name(names), fields), ...);
  }

 private:
  template <class T, class Self = Fields>
  static constexpr bool addable = requires(Self& fields, T& field) {
    fields.add(std::string_view(), field);
  };
  static std::string_view next_name(std::string_view& names);
};

namespace detail {
/// Fields of a module beside those of its struct, as those that Python adds to layers; see
/// Module::set_added_fields.
class AddedFields {
 public:
  virtual ~AddedFields() = default;
  /// Adds them to the struct's own, some of which it may take out.
  virtual void collect(Fields& fields) = 0;
  /// For a copy of the module: the same tensors, in a list of its own.
  virtual std::shared_ptr<AddedFields> copy() const = 0;
};
}  // namespace detail

/// What load_state_dict found. Names are full ("conv1.weight").
struct IncompatibleKeys {
  std::vector<std::string> missing_keys;     ///< of the module, not in the dict
  std::vector<std::string> unexpected_keys;  ///< in the dict, not of the module
  std::vector<std::string> mismatched;  ///< in both, with sizes or kinds that do not fit; left as they were
  std::vector<std::string> reasons;     ///< a sentence of PyTorch's for each of them

  bool empty() const noexcept {
    return missing_keys.empty() && unexpected_keys.empty() && mismatched.empty();
  }
  /// PyTorch's text: "<All keys matched successfully>" or the lists.
  std::string str() const;
};
std::ostream& operator<<(std::ostream& out, const IncompatibleKeys& keys);

/// What is done with a tensor whose sizes or kind do not fit the module's tensor of its name.
enum class OnMismatch : uint8_t {
  Error,
  Skip,  ///< the module's stays as it is, and the name is in IncompatibleKeys::mismatched
};

struct LoadStateDictOptions {
  /// Missing and unexpected names are errors. When false they are returned, and the rest is loaded.
  bool strict = true;
  /// What a wrapper put before the names of the dict, to be taken off: "module." for DataParallel. "auto":
  /// whatever makes the names match, also parts in the middle (`_orig_mod.`), or a prefix that the module has
  /// and the dict lacks.
  std::string prefix = {};
  /// The tensors of the dict take the place of the module's, sharing their memory, with their dtype and
  /// device; whether a gradient is required stays the module's. Optimizers that hold the earlier tensors must
  /// be made after it.
  bool assign = false;
  OnMismatch on_mismatch = OnMismatch::Error;
};

/// Base of modules. Copying a module copies the struct and its list of hooks, and shares its tensors;
/// `nn::clone` copies the numbers too.
class Module {
 public:
  virtual ~Module() = default;

  /// Adds the module's own fields; TERN_MODULE writes it.
  virtual void collect_fields(Fields& fields) = 0;
  /// The class as it stands in errors and in str(): "Linear".
  virtual std::string class_name() const;
  /// What stands in the parentheses of str(): "in_features=20, out_features=256, bias=True".
  virtual std::string extra_repr() const { return {}; }
  /// The text that PyTorch prints for the module.
  virtual std::string str() const;
  /// The version of the layout of the module's own entries in a state dict.
  virtual int64_t state_version() const { return 1; }
  /// True when the own entry `name` may be absent from a state dict that the module's `version` wrote.
  virtual bool may_be_absent(std::string_view /*name*/, std::optional<int64_t> /*version*/) const {
    return false;
  }

  /// Those of collect_fields and those that were added; a field that is computed from others (nn/utils.h)
  /// gives its place to them.
  Fields fields() const;

  // Lists in order: own fields first, then those of the modules below, as in PyTorch. A tensor that stands in
  // several places is listed once.
  std::vector<Tensor> parameters(bool recurse = true) const;
  std::vector<std::pair<std::string, Tensor>> named_parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  std::vector<std::pair<std::string, Tensor>> named_buffers(bool recurse = true) const;
  std::vector<Module*> children() const;
  std::vector<std::pair<std::string, Module*>> named_children() const;
  /// This module (path "") and all below it. The pointers live as long as the module is not moved or changed.
  std::vector<Module*> modules() const;
  std::vector<std::pair<std::string, Module*>> named_modules() const;
  /// This module as a `M`, or null.
  template <class M>
  M* as() {
    return dynamic_cast<M*>(this);
  }
  template <class M>
  const M* as() const {
    return dynamic_cast<const M*>(this);
  }

  /// True while a lazy layer among them waits for its first input; see nn/lazy.h.
  bool has_uninitialized_params() const;

  /// Moves parameters and buffers, and their gradients. Tensors stay the same tensors: optimizers go on with
  /// them.
  Module& to(Device device);
  Module& to(const char* device) { return to(Device(device)); }
  /// To the GPU of this number, as in PyTorch.
  Module& to(int gpu) { return to(Device(gpu)); }
  /// Converts floating-point parameters and buffers. Throws DTypeError unless `dtype` is floating point.
  Module& to(DType dtype);
  Module& to(Device device, DType dtype);
  Module& cpu() { return to(kCPU); }
  Module& cuda(int index = -1) { return to(Device(DeviceType::CUDA, index)); }

  /// Sets the mode of this module and all below (dropout, batch norm).
  Module& train(bool mode = true);
  Module& eval() { return train(false); }
  bool is_training() const noexcept { return training_; }

  /// Takes the gradients of all parameters away, or fills them with zeros.
  void zero_grad(bool set_to_none = true);
  /// Sets requires_grad of all parameters.
  Module& requires_grad_(bool requires_grad = true);

  /// Names and tensors of all parameters and persistent buffers, with the modules' versions. The tensors
  /// share the module's storages and have no history. Throws ValueError while a lazy layer waits for its
  /// first input.
  StateDict state_dict() const;
  /// Copies tensors of the dict into the module's, converting dtype and device. What the options make an
  /// error throws CheckpointError with all names in PyTorch's words, and the fix where a wrapper is
  /// recognised; then nothing has been changed.
  IncompatibleKeys load_state_dict(const StateDict& dict, const LoadStateDictOptions& options = {});

  /// Calls `f` with every module, children before their parent.
  Module& apply(const std::function<void(Module&)>& f);

  /// Calls `hook(module, input)` before forward, `input` being the first tensor among the arguments; what it
  /// returns, when defined, takes the input's place. A copy of the module begins with the same
  /// hooks; what is registered or removed later is for one of them.
  HookHandle register_forward_pre_hook(ForwardPreHook hook);
  template <class F>
  requires std::is_void_v<std::invoke_result_t<F&, const Module&, const Tensor&>> HookHandle
  register_forward_pre_hook(F hook) {
    using Looks = std::function<void(const Module&, const Tensor&)>;
    return register_forward_pre_hook(detail::leaving_things(Looks(std::move(hook))));
  }
  /// Calls `hook(module, input, output)` after forward; what it returns, when defined, takes the output's
  /// place. Of a forward that returns several tensors, `output` is the first and can not be replaced.
  HookHandle register_forward_hook(ForwardHook hook);
  template <class F>
  requires std::is_void_v<std::invoke_result_t<F&, const Module&, const Tensor&, const Tensor&>> HookHandle
  register_forward_hook(F hook) {
    using Looks = std::function<void(const Module&, const Tensor&, const Tensor&)>;
    return register_forward_hook(detail::leaving_things(Looks(std::move(hook))));
  }

  /// Calls `hook(module, grad_input, grad_output)` in each backward through a later call of the module, with
  /// the gradients of its first tensor argument and of its result (of several, the first); what it returns,
  /// when defined, takes the place of grad_input. Where that argument requires no gradient, grad_input is
  /// undefined and can not be replaced (AutogradError). The module must still be there, in its place, when
  /// backward runs.
  HookHandle register_full_backward_hook(BackwardHook hook);
  template <class F>
  requires std::is_void_v<std::invoke_result_t<F&, const Module&, const Tensor&, const Tensor&>> HookHandle
  register_full_backward_hook(F hook) {
    using Looks = std::function<void(const Module&, const Tensor&, const Tensor&)>;
    return register_full_backward_hook(detail::leaving_things(Looks(std::move(hook))));
  }
  /// The same before the gradients inside the module are computed: `hook(module, grad_output)` may replace
  /// grad_output.
  HookHandle register_full_backward_pre_hook(BackwardPreHook hook);
  template <class F>
  requires std::is_void_v<std::invoke_result_t<F&, const Module&, const Tensor&>> HookHandle
  register_full_backward_pre_hook(F hook) {
    using Looks = std::function<void(const Module&, const Tensor&)>;
    return register_full_backward_pre_hook(detail::leaving_things(Looks(std::move(hook))));
  }

  /// For nn/module_call.h.
  const std::shared_ptr<detail::ModuleHooks>& hooks() const noexcept { return hooks_; }
  /// For nn/utils.h.
  detail::ModuleHooks& make_hooks();
  /// As fields(), with those that are computed.
  Fields declared_fields() const;
  /// Fields that come after those of collect_fields; null where nobody added any.
  const std::shared_ptr<detail::AddedFields>& added_fields() const noexcept { return added_; }
  void set_added_fields(std::shared_ptr<detail::AddedFields> added) { added_ = std::move(added); }

 protected:
  Module() = default;
  Module(const Module& other);
  Module(Module&&) = default;
  Module& operator=(const Module& other);
  Module& operator=(Module&&) = default;

 private:
  std::shared_ptr<detail::ModuleHooks> hooks_;
  std::shared_ptr<detail::AddedFields> added_;
  bool training_ = true;
};

std::ostream& operator<<(std::ostream& out, const Module& module);

namespace detail {
/// Gives the module tensors of its own with the same numbers; what was shared inside it stays shared inside
/// it.
void separate(Module& module);
/// Throws ValueError "<what>: ..." with the name of the first tensor that still waits for a size.
void check_initialized(const char* what, const Module& module);
}  // namespace detail

/// A copy of a module that shares nothing with it: parameters, buffers and gradients are copied.
template <class M>
M clone(const M& module) {
  M copy(module);
  detail::separate(copy);
  return copy;
}

}  // namespace tern::nn
