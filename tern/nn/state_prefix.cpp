// New dicts with other names, and what wrapper it was that changed them.
#include "tern/nn/state_prefix.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <unordered_set>
#include <utility>

#include "tern/base/check.h"

namespace tern::nn {
namespace {

/// Parts of names that only wrappers make, and that may stand before any module of a network.
constexpr std::string_view kInnerWrappers[] = {"_orig_mod.", "_fsdp_wrapped_module.",
                                               "_checkpoint_wrapped_module."};

std::string_view maker_of(std::string_view part) {
  if (part == "module") return "torch.nn.DataParallel or DistributedDataParallel";
  if (part == "_orig_mod") return "torch.compile";
  if (part == "_fsdp_wrapped_module") return "FullyShardedDataParallel";
  if (part == "_checkpoint_wrapped_module") return "activation checkpointing";
  if (part == "_forward_module" || part == "model" || part == "net")
    return "Lightning, or a module around it";
  return {};
}

/// Every name through `change`, versions too: there "bn." stands for the module "bn", "" for the root.
template <class Change>
StateDict with_names(const StateDict& dict, std::string_view done, Change&& change) {
  StateDict result;
  for (const auto& [name, tensor] : dict) {
    const std::string key = change(name);
    TERN_CHECK(!result.contains(key), CheckpointError,
               "state dict: {} two tensors would be called '{}': rename or erase one of them", done, key);
    result.insert(key, tensor);
  }
  // Of two that become the root, the wrapped module is meant.
  std::optional<int64_t> wrapped;
  for (const auto& [path, version] : dict.versions())
    if (!path.empty() && change(path + ".").empty()) wrapped = version;
  for (const auto& [path, version] : dict.versions()) {
    std::string key = change(path.empty() ? path : path + ".");
    if (key.ends_with('.')) key.pop_back();
    result.set_version(key, key.empty() && wrapped ? *wrapped : version);
  }
  return result;
}

std::string without_inner(std::string name, const std::vector<std::string>& drop) {
  for (const std::string& part : drop)
    for (size_t at = name.find(part); at != std::string::npos; at = name.find(part, at)) {
      if (at == 0 || name[at - 1] == '.')
        name.erase(at, part.size());
      else
        at += part.size();
    }
  return name;
}

/// The prefix before which the most of `names` become one of `wanted`, if that is more than `least` and no
/// other prefix does as well; else "".
std::string best_prefix(const std::vector<std::string>& names, const std::unordered_set<std::string>& wanted,
                        size_t least) {
  std::map<std::string, size_t> matches;
  for (const std::string& name : names)
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
      if (wanted.count(name.substr(dot + 1))) ++matches[name.substr(0, dot + 1)];
  std::string best;
  size_t count = least;
  bool alone = true;
  for (const auto& [prefix, found] : matches) {
    if (found < count || (found == count && best.empty())) continue;
    alone = found > count;
    best = prefix;
    count = found;
  }
  return alone ? best : std::string();
}

/// The wrappers' parts that all names begin with: "module.", "model.net.".
std::string wrapper_of(const std::vector<std::string>& names) {
  std::string wrapper;
  while (!names.empty()) {
    const std::string_view rest = std::string_view(names[0]).substr(wrapper.size());
    const size_t dot = rest.find('.');
    if (dot == std::string_view::npos || maker_of(rest.substr(0, dot)).empty()) break;
    const std::string longer = wrapper + std::string(rest.substr(0, dot + 1));
    if (!std::all_of(names.begin(), names.end(), [&](const auto& name) { return name.starts_with(longer); }))
      break;
    wrapper = longer;
  }
  return wrapper;
}

}  // namespace

void consume_prefix_in_state_dict_if_present(StateDict& dict, std::string_view prefix) {
  dict = strip_prefix(dict, prefix);
}

StateDict strip_prefix(const StateDict& dict, std::string_view prefix) {
  return with_names(dict, fmt::format("without the prefix '{}'", prefix), [&](const std::string& name) {
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  });
}

StateDict add_prefix(const StateDict& dict, std::string_view prefix) {
  return with_names(dict, {}, [&](const std::string& name) { return std::string(prefix) + name; });
}

StateDict rename_keys(const StateDict& dict, const KeyMap& map) {
  std::vector<std::pair<std::regex, std::string>> patterns;
  for (const auto& [pattern, replacement] : map) {
    try {
      patterns.emplace_back(std::regex(pattern, std::regex::ECMAScript | std::regex::optimize), replacement);
    } catch (const std::regex_error& error) {
      TERN_THROW(ValueError, "rename_keys: '{}' is no regular expression: {}", pattern, error.what());
    }
  }
  return with_names(dict, "renamed,", [&](std::string name) {
    for (const auto& [pattern, replacement] : patterns) name = std::regex_replace(name, pattern, replacement);
    return name;
  });
}

std::string NameFix::str() const {
  std::string text;
  auto say = [&](std::string_view what, const std::string& part) {
    const size_t dot = part.find('.');
    const std::string_view maker = maker_of(std::string_view(part).substr(0, dot));
    text += fmt::format("{}{} '{}'{}", text.empty() ? "" : ", and ", what, part,
                        maker.empty() ? "" : fmt::format(" ({})", maker));
  };
  for (const std::string& part : drop) say("have the wrapper's part", part);
  if (!strip.empty()) say("begin with", strip);
  if (!add.empty()) say("lack the model's", add);
  return text;
}

StateDict NameFix::apply(const StateDict& dict) const {
  StateDict result = dict;
  if (!drop.empty())
    result = with_names(result, "without the parts that wrappers added",
                        [&](const std::string& name) { return without_inner(name, drop); });
  if (!strip.empty()) result = strip_prefix(result, strip);
  return add.empty() ? result : add_prefix(result, add);
}

NameFix find_name_fix(const StateDict& dict, const std::vector<std::string>& expected) {
  const std::unordered_set<std::string> wanted(expected.begin(), expected.end());
  NameFix fix;
  for (std::string_view part : kInnerWrappers) {
    auto has = [&](const std::string& name) { return without_inner(name, {std::string(part)}) != name; };
    const bool in_dict = std::any_of(dict.begin(), dict.end(), [&](const auto& e) { return has(e.first); });
    if (in_dict && std::none_of(expected.begin(), expected.end(), has)) fix.drop.emplace_back(part);
  }
  std::vector<std::string> names;
  size_t matching = 0, matching_before = 0;
  for (const auto& [name, tensor] : dict) {
    matching_before += wanted.count(name);
    names.push_back(without_inner(name, fix.drop));
    matching += wanted.count(names.back());
  }
  fix.strip = best_prefix(names, wanted, matching);
  if (fix.strip.empty()) fix.add = best_prefix(expected, {names.begin(), names.end()}, matching);
  if (fix.strip.empty() && fix.add.empty()) {
    // Both, if it is a wrapper's part that goes: otherwise one layer's names could become another's.
    const std::string wrapper = wrapper_of(names);
    for (std::string& name : names) name.erase(0, wrapper.size());
    fix.add = best_prefix(expected, {names.begin(), names.end()}, matching);
    if (!fix.add.empty()) fix.strip = wrapper;
  }
  if (fix.strip.empty() && fix.add.empty() && matching <= matching_before) return {};
  return fix;
}

}  // namespace tern::nn
