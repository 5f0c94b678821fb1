// Going through a module and all below it, with paths. Internal to nn.
#pragma once

#include <string>

#include "tern/nn/module.h"

namespace tern::nn {

inline std::string join_path(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

/// Calls `f(path, module, fields)` for the module at `path` and all below it, parents first.
template <class F>
void walk_from(const std::string& path, Module& module, F& f) {
  const Fields fields = module.fields();
  f(path, module, fields);
  for (const auto& [name, child] : fields.modules) walk_from(join_path(path, name), *child, f);
}

/// The same for a whole module; the root's path is "".
template <class F>
void walk(const Module& root, F&& f) {
  walk_from(std::string(), const_cast<Module&>(root), f);
}

}  // namespace tern::nn
