// Reading of TERN_* environment variables.
#include "tern/base/env.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "tern/base/check.h"

namespace tern {

std::optional<std::string> env_text(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::string(text);
}

std::optional<int64_t> env_int(const char* name, int64_t low, int64_t high) {
  auto text = env_text(name);
  if (!text) return std::nullopt;
  int64_t value = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  TERN_CHECK(error == std::errc() && end == text->data() + text->size() && value >= low && value <= high,
             EnvironmentError, "environment variable {}: expected an integer from {} to {}, got '{}'", name,
             low, high, *text);
  return value;
}

size_t env_choice(const char* name, std::initializer_list<std::string_view> choices) {
  const auto text = env_text(name);
  if (!text) return 0;
  const auto found = std::find(choices.begin(), choices.end(), *text);
  TERN_CHECK(found != choices.end(), EnvironmentError, "environment variable {}: expected {} or {}, got '{}'",
             name, fmt::join(choices.begin(), choices.end() - 1, ", "), *(choices.end() - 1), *text);
  return static_cast<size_t>(found - choices.begin());
}

const char* given_text(const char* text, std::string_view what) {
  TERN_CHECK(text != nullptr, ValueError, "{}: is it an environment variable that is not set?", what);
  return text;
}

}  // namespace tern
