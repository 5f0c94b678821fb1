// Reading of TERN_* environment variables with clear errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tern {

/// The text of an environment variable, or nothing when it is unset or empty.
std::optional<std::string> env_text(const char* name);

/// The variable as an integer in [low, high], or nothing when unset. Throws ValueError naming the variable.
std::optional<int64_t> env_int(const char* name, int64_t low, int64_t high);

}  // namespace tern
