// Reading of TERN_* environment variables, and of texts that may come from others, with clear errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "tern/base/error.h"

namespace tern {

/// An environment variable that says what it cannot mean. Whatever was being done then is not to blame.
struct EnvironmentError : ValueError {
  using ValueError::ValueError;
};

/// The text of an environment variable, or nothing when it is unset or empty.
std::optional<std::string> env_text(const char* name);

/// The variable as an integer in [low, high], or nothing when unset. Throws EnvironmentError naming the
/// variable.
std::optional<int64_t> env_int(const char* name, int64_t low, int64_t high);

/// The place of the variable's text among `choices`, 0 when unset. Throws EnvironmentError that names all
/// of them.
size_t env_choice(const char* name, std::initializer_list<std::string_view> choices);

/// `text` itself. Throws ValueError, with `what` as its beginning, for a null pointer, which getenv() gives
/// for a variable that is not set.
const char* given_text(const char* text, std::string_view what);

}  // namespace tern
