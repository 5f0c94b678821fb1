// Takes a prefix off the names of a state dict.
#include "tern/nn/state_prefix.h"

#include <utility>

#include "tern/base/check.h"

namespace tern::nn {

void consume_prefix_in_state_dict_if_present(StateDict& dict, std::string_view prefix) {
  auto without = [&](std::string_view name) {
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  };
  StateDict result;
  for (const auto& [name, tensor] : dict) {
    const std::string_view key = without(name);
    TERN_CHECK(
        !result.contains(key), CheckpointError,
        "state dict: without the prefix '{}' two tensors would be called '{}': rename or erase one of them",
        prefix, key);
    result.insert(key, tensor);
  }
  // The wrapped module is at path "module", without the point.
  const std::string_view wrapped = prefix.ends_with('.') ? prefix.substr(0, prefix.size() - 1) : prefix;
  const bool has_wrapper = dict.version(wrapped).has_value();
  for (const auto& [path, version] : dict.versions()) {
    if (path == wrapped)
      result.set_version("", version);
    else if (!path.empty() || !has_wrapper)
      result.set_version(without(path), version);
  }
  dict = std::move(result);
}

}  // namespace tern::nn
