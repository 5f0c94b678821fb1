// state_dict and load_state_dict. The sentences and their order are PyTorch's (torch/nn/modules/module.py);
// unlike there, everything is checked before the first number is copied.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <unordered_map>
#include <unordered_set>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/nn/lazy.h"
#include "tern/nn/module.h"
#include "tern/nn/module_walk.h"
#include "tern/nn/state_prefix.h"
#include "tern/nn/text.h"

namespace tern::nn {
namespace {

/// Calls `f(name, tensor)` for a module's own entries.
template <class F>
void for_each_entry(const Fields& fields, F&& f) {
  for (const auto& [name, parameter] : fields.parameters) f(name, static_cast<Tensor&>(*parameter));
  for (const auto& [name, buffer] : fields.buffers)
    if (buffer->persistent) f(name, static_cast<Tensor&>(*buffer));
}

/// Why `loaded` can not be copied into `own`, or take its place; empty when it can.
std::string why_not(const std::string& key, const Tensor& own, const Tensor& loaded, bool assign) {
  if (!loaded.defined())
    return fmt::format(
        "While copying the parameter named \"{}\", expected torch.Tensor or Tensor-like object from "
        "checkpoint but "
        "received an undefined tensor",
        key);
  bool one_for_scalar = own.dim() == 0 && loaded.dim() == 1 && loaded.size(0) == 1;  // files of PyTorch 0.3
  if (!one_for_scalar && !detail::can_have_shape(own, loaded.shape()))
    return fmt::format(
        "size mismatch for {}: copying a param with shape {} from checkpoint, the shape in current model is "
        "{}.",
        key, size_text(loaded.shape()), size_text(own.shape()));
  if (assign && own.requires_grad() && !loaded.is_floating_point())
    return fmt::format(
        "While copying the parameter named \"{}\", whose dtype in the checkpoint is {}: it takes the place "
        "of "
        "a parameter that requires a gradient, which only floating-point tensors have.",
        key, name(loaded.dtype()));
  if (!assign && loaded.dtype() != own.dtype() && !is_computable(loaded.dtype()))
    return fmt::format(
        "While copying the parameter named \"{}\", whose dtype in the model is {} and whose dtype in the "
        "checkpoint is {}: "
        "there is no conversion between them.",
        key, name(own.dtype()), name(loaded.dtype()));
  return {};
}

struct Copy {
  Tensor* to;
  Tensor from;
};

void copy(const Tensor& own, Tensor loaded) {
  if (is_lazy(own)) detail::materialize({{own, loaded.shape()}});
  if (loaded.dim() != own.dim()) loaded = loaded.reshape({});
  if (loaded.device() != own.device()) loaded = loaded.to(own.device());
  own.detach().copy_(loaded);
}

void assign(Tensor& own, const Tensor& loaded) {
  Tensor tensor = loaded.detach();
  if (tensor.dim() != own.dim()) tensor = tensor.reshape({});
  tensor.requires_grad_(own.requires_grad());
  own = tensor;
}

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
  detail::check_initialized("state_dict", *this);
  StateDict dict;
  walk(*this, [&](const std::string& path, Module& module, const Fields& fields) {
    dict.set_version(path, module.state_version());
    for_each_entry(fields, [&](const std::string& name, const Tensor& tensor) {
      dict.insert(join_path(path, name), tensor.detach());
    });
  });
  return dict;
}

namespace {

std::vector<std::string> state_names(const Module& module) {
  std::vector<std::string> names;
  walk(module, [&](const std::string& path, Module&, const Fields& fields) {
    for_each_entry(fields,
                   [&](const std::string& name, const Tensor&) { names.push_back(join_path(path, name)); });
  });
  return names;
}

/// PyTorch's sentences for what the options make errors; "" when there is none.
std::string sentences(const IncompatibleKeys& keys, const LoadStateDictOptions& options) {
  std::string text;
  if (options.strict && !keys.missing_keys.empty())
    text += "\n\tMissing key(s) in state_dict: " + quoted(keys.missing_keys) + ". ";
  if (options.strict && !keys.unexpected_keys.empty())
    text += "\n\tUnexpected key(s) in state_dict: " + quoted(keys.unexpected_keys) + ". ";
  if (options.on_mismatch == OnMismatch::Error)
    for (const std::string& reason : keys.reasons) text += "\n\t" + reason;
  return text;
}

/// The way out that fits the error.
std::string remedy(const Module& module, const StateDict& dict, const IncompatibleKeys& keys,
                   const LoadStateDictOptions& options) {
  const auto is_part_of_norm = [](const std::string& name) {
    return name.ends_with("_g") || name.ends_with("_orig") ||
           name.find("parametrizations.") != std::string::npos;
  };
  if (!keys.missing_keys.empty() &&
      std::any_of(keys.unexpected_keys.begin(), keys.unexpected_keys.end(), is_part_of_norm))
    return "\n\tThe dict has weights in parts, of a weight norm or a spectral norm: load "
           "nn::utils::fold_norms(dict), or call nn::utils::weight_norm or spectral_norm of the layers "
           "before.";
  if (options.prefix != "auto" && !keys.missing_keys.empty()) {
    const NameFix fix = find_name_fix(dict, state_names(module));
    if (!fix.empty())
      return fmt::format(
          "\n\tNames in the dict {}: load with .prefix = \"auto\"{}.", fix.str(),
          fix.add.empty() && fix.drop.empty() ? fmt::format(" or \"{}\"", fix.strip) : std::string());
  }
  if (keys.missing_keys.empty() && keys.unexpected_keys.empty())
    return "\n\tTo load the others and leave these as they are: .on_mismatch = OnMismatch::Skip.";
  return {};
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const IncompatibleKeys& keys) { return out << keys.str(); }

IncompatibleKeys Module::load_state_dict(const StateDict& given, const LoadStateDictOptions& options) {
  StateDict renamed;
  if (options.prefix == "auto")
    renamed = find_name_fix(given, state_names(*this)).apply(given);
  else if (!options.prefix.empty())
    renamed = strip_prefix(given, options.prefix);
  const StateDict& dict = options.prefix.empty() ? given : renamed;

  IncompatibleKeys keys;
  std::vector<Copy> copies;
  std::unordered_set<std::string> expected;
  std::unordered_map<std::string, size_t> module_order;
  walk(*this, [&](const std::string& path, Module& module, const Fields& fields) {
    module_order.emplace(path, module_order.size());
    for_each_entry(fields, [&](const std::string& name, Tensor& own) {
      std::string key = join_path(path, name);
      expected.insert(key);
      const Tensor* loaded = dict.find(key);
      if (!loaded) {
        if (!module.may_be_absent(name, dict.version(path))) keys.missing_keys.push_back(key);
      } else if (std::string reason = why_not(key, own, *loaded, options.assign); !reason.empty()) {
        keys.mismatched.push_back(key);
        keys.reasons.push_back(std::move(reason));
      } else {
        copies.push_back({&own, *loaded});
      }
    });
  });
  keys.unexpected_keys = unexpected_names(dict, expected, module_order);

  if (std::string text = sentences(keys, options); !text.empty())
    throw CheckpointError("Error(s) in loading state_dict for " + class_name() + ":" + text +
                          remedy(*this, dict, keys, options));
  NoGradGuard no_grad;
  for (Copy& entry : copies) {
    if (options.assign)
      assign(*entry.to, entry.from);
    else
      copy(*entry.to, entry.from);
  }
  return keys;
}

}  // namespace tern::nn
