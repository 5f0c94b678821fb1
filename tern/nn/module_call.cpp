// Hooks of modules, and the path of a module in the text of errors.
#include "tern/nn/module_call.h"

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/base/type_name.h"
#include "tern/nn/any_module.h"
#include "tern/nn/module.h"
#include "tern/nn/module_walk.h"
#include "tern/ops/shape.h"

namespace tern::nn {

namespace detail {
namespace {

/// The error on its way out through calls of modules: the last module it left, and the text put before it so
/// far.
struct ErrorTrail {
  const Error* error = nullptr;
  const Module* module = nullptr;
  std::string path;
  std::string class_name;
  std::string context;
};
thread_local ErrorTrail trail;

std::string path_to(const Module& from, const Module* to) {
  for (const auto& [path, module] : from.named_modules())
    if (module == to) return path;
  return {};
}

template <class Hook>
int64_t add_hook(ModuleHooks& hooks, std::vector<std::pair<int64_t, Hook>>& list, Hook hook) {
  list.emplace_back(hooks.next, std::move(hook));
  return hooks.next++;
}

}  // namespace

void ModuleHooks::compute_parameters(Module& module) const {
  if (parametrizations.empty()) return;
  const Fields own = module.declared_fields();
  for (const Parametrization& p : parametrizations)
    for (const auto& [name, field] : own.parameters)
      if (name == p.name) static_cast<Tensor&>(*field) = p.compute(p, module.is_training());
}

std::shared_ptr<BackwardCall> ModuleHooks::start_backward_call(const Module& module) const {
  if ((backward_before.empty() && backward_after.empty()) || !is_grad_enabled()) return nullptr;
  return std::make_shared<BackwardCall>(BackwardCall{module, backward_before, backward_after, false, {}});
}

Tensor watch_input(const std::shared_ptr<BackwardCall>& call, const Tensor& input) {
  if (call->after.empty() || !input.requires_grad()) return input;
  call->input_watched = true;
  const Tensor watched = view_as(input, input);
  watched.register_hook([call](const Tensor& given) {
    TERN_CHECK(call->grad_output.defined(), AutogradError,
               "Module backward hook for grad_input is called before the grad_output one: in {} a gradient "
               "reaches the input that did not pass through the output",
               call->module.class_name());
    Tensor grad_input = given;
    for (const auto& [number, hook] : call->after)
      if (Tensor replaced = hook(call->module, grad_input, call->grad_output); replaced.defined())
        grad_input = replaced;
    call->grad_output = Tensor();
    return grad_input;
  });
  return watched;
}

Tensor watch_output(const std::shared_ptr<BackwardCall>& call, const Tensor& output) {
  if (!output.requires_grad()) return output;
  const Tensor watched = view_as(output, output);
  watched.register_hook([call](const Tensor& given) {
    Tensor grad_output = given;
    for (const auto& [number, hook] : call->before)
      if (Tensor replaced = hook(call->module, grad_output); replaced.defined()) grad_output = replaced;
    if (call->input_watched) {
      call->grad_output = grad_output;
      return grad_output;
    }
    for (const auto& [number, hook] : call->after)
      TERN_CHECK(
          !hook(call->module, Tensor(), grad_output).defined(), AutogradError,
          "register_full_backward_hook: the input of {} requires no gradient, so a hook can not replace "
          "it: return an undefined tensor from the hook",
          call->module.class_name());
    return grad_output;
  });
  return watched;
}

Tensor ModuleHooks::run_before(const Module& module, Tensor input) const {
  const auto hooks = before;  // a hook may take itself away
  for (const auto& [number, hook] : hooks)
    if (Tensor replaced = hook(module, input); replaced.defined()) input = replaced;
  return input;
}

Tensor ModuleHooks::run_after(const Module& module, const Tensor& input, Tensor output,
                              bool replaceable) const {
  const auto hooks = after;
  for (const auto& [number, hook] : hooks) {
    Tensor replaced = hook(module, input, output);
    if (!replaced.defined()) continue;
    TERN_CHECK(replaceable, ValueError,
               "register_forward_hook: the forward of {} does not return one tensor, so a hook can not "
               "replace its result: "
               "return an undefined tensor from the hook",
               module.class_name());
    output = replaced;
  }
  return output;
}

void add_module_context(Error& error, const Module& module) {
  std::string relative;
  bool inside =
      trail.error == &error && trail.module != &module && error.message().starts_with(trail.context);
  if (inside) relative = path_to(module, trail.module);
  if (relative.empty()) {
    trail = {&error, &module, "", module.class_name(), ""};
    if (module.fields().modules.empty()) return;  // a layer on its own: the operator's message says it all
  } else {
    trail.module = &module;
    trail.path = join_path(relative, trail.path);
    if (trail.path.ends_with('.')) trail.path.pop_back();
  }
  std::string message = error.message().substr(trail.context.size());
  trail.context = trail.path.empty()
                      ? module.class_name() + ": "
                      : fmt::format("{}.{} ({}): ", module.class_name(), trail.path, trail.class_name);
  error = Error(trail.context + message);
}

void hand_on_context(const Error& from, const Error& to) {
  if (trail.error == &from) trail.error = &to;
}

/// One call of a module on a thread's stack of calls.
struct ModuleScope::Frame {
  const Module& module;
  std::string path;
  ScopeGuard guard;
  Frame* outer;
};

namespace {
thread_local ModuleScope::Frame* innermost = nullptr;
}  // namespace

void ModuleScope::enter(const Module& module) {
  std::string path = module.class_name();
  if (innermost) {
    const std::string below = path_to(innermost->module, &module);
    path = join_path(innermost->path, below.empty() ? path : below);
  }
  frame_ = new Frame{module, std::move(path), ScopeGuard(tern::detail::scope), innermost};
  tern::detail::scope.module_path = &frame_->path;
  innermost = frame_;
}

void ModuleScope::leave() noexcept {
  innermost = frame_->outer;
  delete frame_;
}

void throw_empty_module() { TERN_THROW(ValueError, "AnyModule: it holds no module"); }

void throw_not_of_tensor(const Module& module) {
  TERN_THROW(TypeError,
             "AnyModule: the forward of {0} does not take one tensor and return one: call it as a {0}, with "
             "as<{0}>()",
             module.class_name());
}

void throw_not_copyable(const Module& module) {
  TERN_THROW(TypeError, "AnyModule: a {} can not be copied", module.class_name());
}

void throw_wrong_module(const Module& module, const std::type_info& wanted) {
  TERN_THROW(TypeError, "AnyModule: it holds a {}, not a {}", module.class_name(), short_type_name(wanted));
}

}  // namespace detail

void HookHandle::remove() {
  if (auto hooks = hooks_.lock()) {
    auto is_this = [this](const auto& entry) { return entry.first == number_; };
    std::erase_if(hooks->before, is_this);
    std::erase_if(hooks->after, is_this);
    std::erase_if(hooks->backward_before, is_this);
    std::erase_if(hooks->backward_after, is_this);
  }
}

Module::Module(const Module& other) { *this = other; }

Module& Module::operator=(const Module& other) {
  if (this == &other) return *this;
  hooks_ = other.hooks_ ? std::make_shared<detail::ModuleHooks>(*other.hooks_) : nullptr;
  added_ = other.added_ ? other.added_->copy() : nullptr;
  training_ = other.training_;
  return *this;
}

detail::ModuleHooks& Module::make_hooks() {
  if (!hooks_) hooks_ = std::make_shared<detail::ModuleHooks>();
  return *hooks_;
}

HookHandle Module::register_forward_pre_hook(ForwardPreHook hook) {
  TERN_CHECK(static_cast<bool>(hook), ValueError, "register_forward_pre_hook: the hook is an empty function");
  detail::ModuleHooks& hooks = make_hooks();
  return {hooks_, detail::add_hook(hooks, hooks.before, std::move(hook))};
}

HookHandle Module::register_forward_hook(ForwardHook hook) {
  TERN_CHECK(static_cast<bool>(hook), ValueError, "register_forward_hook: the hook is an empty function");
  detail::ModuleHooks& hooks = make_hooks();
  return {hooks_, detail::add_hook(hooks, hooks.after, std::move(hook))};
}

HookHandle Module::register_full_backward_pre_hook(BackwardPreHook hook) {
  TERN_CHECK(static_cast<bool>(hook), ValueError,
             "register_full_backward_pre_hook: the hook is an empty function");
  detail::ModuleHooks& hooks = make_hooks();
  return {hooks_, detail::add_hook(hooks, hooks.backward_before, std::move(hook))};
}

HookHandle Module::register_full_backward_hook(BackwardHook hook) {
  TERN_CHECK(static_cast<bool>(hook), ValueError,
             "register_full_backward_hook: the hook is an empty function");
  detail::ModuleHooks& hooks = make_hooks();
  return {hooks_, detail::add_hook(hooks, hooks.backward_after, std::move(hook))};
}

}  // namespace tern::nn
