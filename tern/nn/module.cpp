// Walking over modules: fields, lists of tensors, moving, modes, copies. The state dict is in
// nn/module_state.cpp, text and calls in nn/module_call.cpp and nn/module_text.cpp.
#include "tern/nn/module.h"

#include <unordered_map>
#include <unordered_set>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/nn/any_module.h"
#include "tern/nn/lazy.h"
#include "tern/nn/module_walk.h"

namespace tern::nn {
namespace {

void move_module(Module& module, std::optional<Device> device, std::optional<DType> dtype) {
  TERN_CHECK(!dtype || is_floating_point(*dtype), DTypeError,
             "Module::to: only floating-point dtypes are accepted, got {}: integer tensors of a module keep "
             "their dtype",
             name(*dtype));
  NoGradGuard no_grad;
  // A tensor that a device or a dtype can not hold must not leave the module half moved: all copies are made
  // first.
  std::vector<std::pair<Tensor, Tensor>> moved;
  std::unordered_set<const TensorImpl*> seen;
  auto plan = [&](const Tensor& tensor) {
    if (!seen.insert(&tensor.impl()).second) return;
    DType wanted = dtype && tensor.is_floating_point() ? *dtype : tensor.dtype();
    Device place = device.value_or(tensor.device());
    if (wanted == tensor.dtype() && place == tensor.device()) return;
    moved.emplace_back(tensor, tensor.detach().to(place, wanted));
    if (is_lazy(tensor)) detail::defer({&moved.back().second});
  };
  for (const Tensor& tensor : module.parameters()) {
    plan(tensor);
    if (Tensor grad = tensor.grad(); grad.defined()) plan(grad);
  }
  for (const Tensor& tensor : module.buffers()) plan(tensor);
  for (const auto& [tensor, data] : moved) detail::set_data(tensor, data);
}

/// Calls `f(name, module)` for every parameter and buffer that waits for its sizes; the module is its owner.
template <class F>
void visit_lazy(const Module& root, F f) {
  walk(root, [&](const std::string& path, Module& module, const Fields& fields) {
    const auto visit = [&](const auto& tensors) {
      for (const auto& [name, tensor] : tensors)
        if (is_lazy(*tensor)) f(join_path(path, name), module);
    };
    visit(fields.parameters);
    visit(fields.buffers);
  });
}

template <class Pick>
std::vector<std::pair<std::string, Tensor>> named_tensors(const Module& root, bool recurse, Pick pick) {
  std::vector<std::pair<std::string, Tensor>> list;
  std::unordered_set<const TensorImpl*> seen;
  walk(root, [&](const std::string& path, Module& module, const Fields& fields) {
    if (!recurse && &module != &root) return;
    for (const auto& [name, tensor] : pick(fields))
      if (seen.insert(&tensor->impl()).second) list.emplace_back(join_path(path, name), *tensor);
  });
  return list;
}

std::vector<Tensor> without_names(std::vector<std::pair<std::string, Tensor>> named) {
  std::vector<Tensor> list;
  list.reserve(named.size());
  for (auto& [name, tensor] : named) list.push_back(std::move(tensor));
  return list;
}

const auto kParameters = [](const Fields& fields) -> const auto& { return fields.parameters; };
const auto kBuffers = [](const Fields& fields) -> const auto& { return fields.buffers; };

}  // namespace

void Fields::add(std::string_view name, Parameter& parameter) {
  if (parameter.defined()) parameters.emplace_back(name, &parameter);
}
void Fields::add(std::string_view name, Buffer& buffer) {
  if (buffer.defined()) buffers.emplace_back(name, &buffer);
}
void Fields::add(std::string_view name, Module& module) { modules.emplace_back(name, &module); }
void Fields::add(std::string_view name, AnyModule& module) {
  if (module.has_value()) modules.emplace_back(name, &module.get());
}

std::string_view Fields::next_name(std::string_view& names) {
  size_t begin = std::min(names.find_first_not_of(" \t\n"), names.size());
  size_t comma = std::min(names.find(',', begin), names.size());
  std::string_view name = names.substr(begin, comma - begin);
  name = name.substr(0, name.find_last_not_of(" \t\n") + 1);
  names.remove_prefix(std::min(comma + 1, names.size()));
  return name;
}

Fields Module::declared_fields() const {
  Fields fields;
  const_cast<Module*>(this)->collect_fields(fields);
  if (added_) added_->collect(fields);
  return fields;
}

Fields Module::fields() const {
  Fields fields = declared_fields();
  if (hooks_) [[unlikely]]
    for (detail::Parametrization& p : hooks_->parametrizations) {
      std::erase_if(fields.parameters, [&](const auto& field) { return field.first == p.name; });
      for (auto& [name, parameter] : p.parameters) fields.add(name, parameter);
      for (auto& [name, buffer] : p.buffers) fields.add(name, buffer);
    }
  return fields;
}

std::vector<std::pair<std::string, Tensor>> Module::named_parameters(bool recurse) const {
  return named_tensors(*this, recurse, kParameters);
}
std::vector<std::pair<std::string, Tensor>> Module::named_buffers(bool recurse) const {
  return named_tensors(*this, recurse, kBuffers);
}
std::vector<Tensor> Module::parameters(bool recurse) const {
  return without_names(named_parameters(recurse));
}
std::vector<Tensor> Module::buffers(bool recurse) const { return without_names(named_buffers(recurse)); }

std::vector<std::pair<std::string, Module*>> Module::named_children() const { return fields().modules; }

std::vector<Module*> Module::children() const {
  std::vector<Module*> list;
  for (const auto& [name, module] : fields().modules) list.push_back(module);
  return list;
}

std::vector<std::pair<std::string, Module*>> Module::named_modules() const {
  std::vector<std::pair<std::string, Module*>> list;
  walk(*this,
       [&](const std::string& path, Module& module, const Fields&) { list.emplace_back(path, &module); });
  return list;
}

std::vector<Module*> Module::modules() const {
  std::vector<Module*> list;
  walk(*this, [&](const std::string&, Module& module, const Fields&) { list.push_back(&module); });
  return list;
}

Module& Module::to(Device device) {
  move_module(*this, device, std::nullopt);
  return *this;
}
Module& Module::to(DType dtype) {
  move_module(*this, std::nullopt, dtype);
  return *this;
}
Module& Module::to(Device device, DType dtype) {
  move_module(*this, device, dtype);
  return *this;
}

bool Module::has_uninitialized_params() const {
  bool any = false;
  visit_lazy(*this, [&](const std::string&, Module&) { any = true; });
  return any;
}

Module& Module::train(bool mode) {
  for (Module* module : modules()) module->training_ = mode;
  return *this;
}

void Module::zero_grad(bool set_to_none) {
  for (const Tensor& parameter : parameters()) {
    Tensor grad = parameter.grad();
    if (!grad.defined()) continue;
    if (set_to_none) {
      parameter.set_grad({});
    } else {
      Tensor zeroed = grad.detach();
      zeroed.zero_();
      parameter.set_grad(zeroed);
    }
  }
}

Module& Module::requires_grad_(bool requires_grad) {
  for (const Tensor& parameter : parameters()) parameter.requires_grad_(requires_grad);
  return *this;
}

Module& Module::apply(const std::function<void(Module&)>& f) {
  for (Module* child : children()) child->apply(f);
  f(*this);
  return *this;
}

namespace detail {

void separate(Module& root) {
  NoGradGuard no_grad;
  struct Pair {
    Tensor original;  // kept, so that no new tensor gets its address
    Tensor copy;
  };
  std::unordered_map<const TensorImpl*, Pair> copies;
  auto copy_of = [&](const Tensor& tensor) {
    auto [position, inserted] = copies.try_emplace(&tensor.impl());
    if (inserted) position->second = {tensor, tensor.detach().clone()};
    if (is_lazy(tensor)) defer({&position->second.copy});
    return position->second.copy;
  };
  walk(root, [&](const std::string&, Module&, const Fields& fields) {
    for (const auto& [name, parameter] : fields.parameters) {
      Tensor copy = copy_of(*parameter);
      if (parameter->requires_grad() && !copy.requires_grad()) {
        copy.requires_grad_();
        if (Tensor grad = parameter->grad(); grad.defined()) copy.set_grad(grad.detach().clone());
      }
      static_cast<Tensor&>(*parameter) = copy;
    }
    for (const auto& [name, buffer] : fields.buffers) *buffer = copy_of(*buffer);
  });
}

void check_initialized(const char* what, const Module& root) {
  visit_lazy(root, [&](const std::string& name, Module& module) {
    TERN_THROW(ValueError,
               "{}: '{}' is uninitialized: {} takes its sizes from its first input: call the module with one "
               "batch first, or load a state dict",
               what, name, module.class_name());
  });
}

}  // namespace detail
}  // namespace tern::nn
