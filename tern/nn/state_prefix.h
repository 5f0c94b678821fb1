// Names of a state dict: prefixes that wrappers put before them, patterns. Wrappers are in parallel/; reading
// a dict into a module is in module.h.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/core/state_dict.h"

namespace tern::nn {

/// Takes `prefix` ("module.") off the names that begin with it, and off the modules' versions, for a state
/// dict that was saved in a DataParallel: afterwards the network itself can load it. Other names stay; the
/// order too. The version that the wrapper recorded for itself is dropped. Throws CheckpointError when two
/// names would become one; the dict is unchanged then. (torch.nn.modules.utils)
void consume_prefix_in_state_dict_if_present(StateDict& dict, std::string_view prefix);

/// The same as a new dict, which shares the tensors.
StateDict strip_prefix(const StateDict& dict, std::string_view prefix);

/// A new dict, which shares the tensors, with `prefix` ("module.") before all names.
StateDict add_prefix(const StateDict& dict, std::string_view prefix);

/// Replacements in names, one after the other: {pattern, replacement}, as in std::regex (ECMAScript) and
/// std::regex_replace: `{{"^backbone\\.", ""}, {"\\.gamma$", ".weight"}}`.
using KeyMap = std::vector<std::pair<std::string, std::string>>;

/// A new dict, which shares the tensors, with names changed. Throws ValueError for a pattern that is none,
/// CheckpointError when two names would become one.
StateDict rename_keys(const StateDict& dict, const KeyMap& map);

/// What is to be done with the names of a dict so that a module finds its own.
struct NameFix {
  std::string strip;              ///< to be taken off ("module."), or ""
  std::string add;                ///< to be put before, or ""
  std::vector<std::string> drop;  ///< parts to be left out wherever they stand ("_orig_mod.")

  bool empty() const noexcept { return strip.empty() && add.empty() && drop.empty(); }
  /// "all begin with 'module.' (torch.nn.DataParallel)".
  std::string str() const;
  StateDict apply(const StateDict& dict) const;
};

/// Finds out by which prefix the names of a dict differ from those that a module expects: the one that makes
/// most names match. One is taken off and another added only if the first is a wrapper's. Empty when most
/// match as they are, or none does better than the others.
NameFix find_name_fix(const StateDict& dict, const std::vector<std::string>& expected);

}  // namespace tern::nn
