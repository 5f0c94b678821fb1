// Numbers, parts and misspellings.
#include "tern/cli/usage.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace tern::cli {
namespace {

template <class T>
bool parse_whole(std::string_view text, T& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// Insertions, deletions, changes and swaps of neighbours (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before.swap(row);
    row.swap(next);
  }
  return row.back();
}

}  // namespace

CLI::Validator number_from(double least, double most) {
  const std::string range =
      std::isfinite(most) ? fmt::format("from {} to {}", least, most) : fmt::format("from {} on", least);
  return {[=](std::string& text) {
            double value = 0;
            const bool good = CLI::detail::lexical_cast(text, value) && std::isfinite(value) &&
                              value >= least && value <= most;
            return good ? std::string() : fmt::format("expected a number {}, got '{}'", range, text);
          },
          "FLOAT " + range};
}

CLI::Validator whole_number() {
  return {[](std::string& text) {
            uint64_t value = 0;
            return parse_whole(text, value)
                       ? std::string()
                       : fmt::format("expected a whole number from 0 to {}, got '{}'", UINT64_MAX, text);
          },
          ""};
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t start = 0;;) {
    const size_t end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

double parse_number(std::string_view text, std::string_view what) {
  double value = 0;
  if (!parse_whole(text, value) || !std::isfinite(value))
    throw_usage("{} must be a number, got '{}'", what, text);
  return value;
}

int64_t parse_integer(std::string_view text, std::string_view what) {
  int64_t value = 0;
  if (!parse_whole(text, value)) throw_usage("{} must be a whole number, got '{}'", what, text);
  return value;
}

std::string nearest(std::string_view text, const std::vector<std::string>& candidates) {
  std::string best;
  size_t least = std::max<size_t>(1, text.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(text, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace tern::cli
