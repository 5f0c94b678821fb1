// Wrong use of the program, as an exception; and the parsing of small grammars in option values.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tern::cli {

/// Reported as one line on standard error, with exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Args>
[[noreturn]] void throw_usage(fmt::format_string<Args...> text, Args&&... args) {
  throw UsageError(fmt::format(text, std::forward<Args>(args)...));
}

/// "a:b:c" in its parts.
std::vector<std::string> split(std::string_view text, char separator);

/// The whole text as a number; throws UsageError naming `what`.
double parse_number(std::string_view text, std::string_view what);
int64_t parse_integer(std::string_view text, std::string_view what);

/// Of `candidates` the one that `text` is most likely a misspelling of; "" when none is near.
std::string nearest(std::string_view text, const std::vector<std::string>& candidates);

}  // namespace tern::cli
