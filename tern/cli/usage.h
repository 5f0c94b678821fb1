// Wrong use of the program, as an exception; checks of options, and the parsing of small grammars in their
// values.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
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

/// For options: a finite number from `least` to `most`. (CLI11's own ranges let NaN through.)
CLI::Validator number_from(double least, double most = std::numeric_limits<double>::infinity());
/// For options: what fits a uint64_t. (CLI11 takes the nearest of these for any other whole number.)
CLI::Validator whole_number();

/// "a:b:c" in its parts.
std::vector<std::string> split(std::string_view text, char separator);

/// The whole text as a number; throws UsageError naming `what`.
double parse_number(std::string_view text, std::string_view what);
int64_t parse_integer(std::string_view text, std::string_view what);

/// Of `candidates` the one that `text` is most likely a misspelling of; "" when none is near.
std::string nearest(std::string_view text, const std::vector<std::string>& candidates);

}  // namespace tern::cli
