// A tree of values as text, one line for each.
#pragma once

#include <string>

#include "tern/io/value.h"

namespace tern::cli {

struct TreeOptions {
  bool unicode = false;  ///< draw with characters beyond ASCII
  bool all = false;      ///< do not shorten long containers
};

/// As `tree` shows folders. A container that is in the tree more than once is shown at its first place.
std::string tree_text(const Value& root, const TreeOptions& options);

}  // namespace tern::cli
