// state_dict and load_state_dict. The sentences and their order are PyTorch's (torch/nn/modules/module.py);
// unlike there, everything is checked before the first number is copied.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/nn/module.h"
#include "tern/nn/module_walk.h"
#include "tern/nn/text.h"

namespace tern::nn {
namespace {

/// Calls `f(name, tensor)` for a module's own entries.
template <class F>
void for_each_entry(const Fields& fields, F&& f) {
  for (const auto& [name, parameter] : fields.parameters) f(name, static_cast<const Tensor&>(*parameter));
  for (const auto& [name, buffer] : fields.buffers)
    if (buffer->persistent) f(name, static_cast<const Tensor&>(*buffer));
}

/// Why `loaded` can not be copied into `own`; empty when it can.
std::string why_not(const std::string& key, const Tensor& own, const Tensor& loaded) {
  if (!loaded.defined())
    return fmt::format(
        "While copying the parameter named \"{}\", expected torch.Tensor or Tensor-like object from "
        "checkpoint but "
        "received an undefined tensor",
        key);
  bool one_for_scalar = own.dim() == 0 && loaded.dim() == 1 && loaded.size(0) == 1;  // files of PyTorch 0.3
  if (!one_for_scalar && !(loaded.shape() == own.shape()))
    return fmt::format(
        "size mismatch for {}: copying a param with shape {} from checkpoint, the shape in current model is "
        "{}.",
        key, size_text(loaded.shape()), size_text(own.shape()));
  if (loaded.dtype() != own.dtype() && !is_computable(loaded.dtype()))
    return fmt::format(
        "While copying the parameter named \"{}\", whose dtype in the model is {} and whose dtype in the "
        "checkpoint is {}: "
        "there is no conversion between them.",
        key, name(own.dtype()), name(loaded.dtype()));
  return {};
}

struct Copy {
  Tensor to;
  Tensor from;
};

/// Names of the dict that belong to no entry, module by module as PyTorch lists them.
std::vector<std::string> unexpected_names(const StateDict& dict,
                                          const std::unordered_set<std::string>& expected,
                                          const std::unordered_map<std::string, size_t>& module_order) {
  std::vector<std::pair<size_t, std::string>> found;
  for (const auto& [key, tensor] : dict) {
    if (expected.count(key)) continue;
    std::string path = key;
    auto owner = module_order.end();
    while (owner == module_order.end()) {
      size_t dot = path.rfind('.');
      path = dot == std::string::npos ? "" : path.substr(0, dot);
      owner = module_order.find(path);
    }
    found.emplace_back(owner->second, key);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [order, key] : found) names.push_back(std::move(key));
  return names;
}

std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : ", \"") + name + "\"";
  return text;
}

std::string python_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return "[" + text + "]";
}

}  // namespace

std::string IncompatibleKeys::str() const {
  if (empty()) return "<All keys matched successfully>";
  std::string text = fmt::format("_IncompatibleKeys(missing_keys={}, unexpected_keys={}",
                                 python_list(missing_keys), python_list(unexpected_keys));
  if (!mismatched.empty()) text += ", mismatched=" + python_list(mismatched);
  return text + ")";
}

StateDict Module::state_dict() const {
  StateDict dict;
  walk(*this, [&](const std::string& path, Module& module, const Fields& fields) {
    dict.set_version(path, module.state_version());
    for_each_entry(fields, [&](const std::string& name, const Tensor& tensor) {
      dict.insert(join_path(path, name), tensor.detach());
    });
  });
  return dict;
}

IncompatibleKeys Module::load_state_dict(const StateDict& dict, LoadStateDictOptions options) {
  IncompatibleKeys keys;
  std::vector<std::string> errors;
  std::vector<Copy> copies;
  std::unordered_set<std::string> expected;
  std::unordered_map<std::string, size_t> module_order;
  walk(*this, [&](const std::string& path, Module& module, const Fields& fields) {
    module_order.emplace(path, module_order.size());
    for_each_entry(fields, [&](const std::string& name, const Tensor& own) {
      std::string key = join_path(path, name);
      expected.insert(key);
      const Tensor* loaded = dict.find(key);
      if (!loaded) {
        if (!module.may_be_absent(name, dict.version(path))) keys.missing_keys.push_back(key);
      } else if (std::string reason = why_not(key, own, *loaded); !reason.empty()) {
        keys.mismatched.push_back(key);
        errors.push_back(std::move(reason));
      } else {
        copies.push_back({own.detach(), *loaded});
      }
    });
  });
  keys.unexpected_keys = unexpected_names(dict, expected, module_order);

  if (options.strict && !keys.empty()) {
    std::string text = "Error(s) in loading state_dict for " + class_name() + ":";
    if (!keys.missing_keys.empty())
      text += "\n\tMissing key(s) in state_dict: " + quoted(keys.missing_keys) + ". ";
    if (!keys.unexpected_keys.empty())
      text += "\n\tUnexpected key(s) in state_dict: " + quoted(keys.unexpected_keys) + ". ";
    for (const std::string& error : errors) text += "\n\t" + error;
    throw CheckpointError(text);
  }
  NoGradGuard no_grad;
  for (Copy& copy : copies) {
    Tensor from = copy.from.dim() == copy.to.dim() ? copy.from : copy.from.reshape({});
    if (from.device() != copy.to.device()) from = from.to(copy.to.device());
    copy.to.copy_(from);
  }
  return keys;
}

}  // namespace tern::nn
