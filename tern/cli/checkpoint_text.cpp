// Texts and numbers of the commands on checkpoint files.
#include "tern/cli/checkpoint_text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <exception>
#include <new>

#include "tern/cli/output.h"
#include "tern/cli/usage.h"
#include "tern/io/word_list.h"
#include "tern/train/terminal.h"

namespace tern::cli {

namespace {

/// Bytes that continue a character of UTF-8 take no column.
size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(),
                                           [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}
/// The first or last `count` characters.
std::string_view first_characters(std::string_view text, size_t count) {
  size_t at = 0;
  while (at < text.size() && count > 0) {
    ++at;
    while (at < text.size() && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) ++at;
    --count;
  }
  return text.substr(0, at);
}
std::string_view last_characters(std::string_view text, size_t count) {
  size_t at = text.size();
  while (at > 0 && count > 0) {
    --at;
    while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) --at;
    --count;
  }
  return text.substr(at);
}

}  // namespace

int with_errors(std::string_view command, const std::function<int()>& body, int failure) {
  const std::string who = fmt::format("tern {}", command);
  try {
    return body();
  } catch (const UsageError&) {
    throw;
  } catch (const std::bad_alloc&) {
    print_failure(who, "out of memory");
  } catch (const std::exception& error) {
    print_failure(who, error.what());
  }
  return failure;
}

std::string shortened(const std::string& text, size_t width) {
  if (columns_of(text) <= width || width < 5) return text;
  const size_t tail = (width - 3) / 2;
  return fmt::format("{}...{}", first_characters(text, width - 3 - tail), last_characters(text, tail));
}

std::string size_text(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  auto size = static_cast<double>(bytes);
  const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  for (size /= 1024; size >= 1023.95 && unit < 4; ++unit) size /= 1024;
  return fmt::format("{:.1f} {}", size, units[unit]);
}

std::string count_text(uint64_t count, std::string_view word) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return fmt::format("{} {}{}", digits, word, count == 1 ? "" : "s");
}

uint64_t parse_size(std::string_view text, std::string_view what) {
  const size_t digits = text.find_first_not_of("0123456789.");
  const std::string_view number = text.substr(0, digits);
  std::string_view unit = digits == std::string_view::npos ? "" : text.substr(digits);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (number.empty()) throw_usage("{} must be a number and a unit such as 2GiB, got '{}'", what, text);
  const double value = parse_number(number, what);
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1},         {"b", 1},       {"kb", 1e3},   {"mb", 1e6},
      {"gb", 1e9},     {"tb", 1e12},   {"kib", 1024}, {"mib", 1024.0 * 1024},
      {"gib", 0x1p30}, {"tib", 0x1p40}};
  std::string small(unit);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto& [name, factor] : kUnits) {
    if (name != small) continue;
    const double bytes = value * factor;
    if (bytes < 1) throw_usage("{} must be from 1 byte on, got '{}'", what, text);
    if (bytes > 0x1p62) throw_usage("{} is too large: at most 4194304TiB, got '{}'", what, text);
    return static_cast<uint64_t>(bytes);
  }
  throw_usage("{} has the unknown unit '{}': KiB, MiB, GiB, TiB, KB, MB, GB, TB", what, unit);
}

nlohmann::ordered_json number_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

nlohmann::ordered_json number_json(std::complex<double> value, bool is_complex) {
  if (!is_complex) return number_json(value.real());
  return nlohmann::ordered_json::array({number_json(value.real()), number_json(value.imag())});
}

nlohmann::ordered_json number_json(const io::Number& number) {
  return std::visit(
      [](auto value) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<decltype(value), double>)
          return number_json(value);
        else if constexpr (std::is_same_v<decltype(value), std::complex<double>>)
          return number_json(value, /*is_complex=*/true);
        else
          return value;
      },
      number);
}

std::string number_text(std::complex<double> value, bool is_complex) {
  const std::string real = fmt::format("{:.6g}", value.real());
  return is_complex ? fmt::format("{}{:+.6g}j", real, value.imag()) : real;
}

std::string some_names(const std::vector<std::string>& names, size_t most) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(fmt::format("'{}'", name));
  return io::some_words(quoted, most);
}

std::string tensor_label(const std::string& name, const Value& root) {
  if (name.empty() && !root.is_dict()) return "(the file itself)";
  const bool plain = !name.empty() && name.front() != ' ' && name.back() != ' ';
  return plain ? shown(name) : fmt::format("'{}'", shown(name));
}

std::vector<std::string> table_rows(const std::vector<std::vector<std::string>>& rows,
                                    const std::vector<bool>& right, size_t width) {
  const size_t count = right.size();
  std::vector<size_t> widths(count, 0);
  for (const auto& row : rows)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], columns_of(row[c]));
  size_t together = 0;  // of all columns but the last, which often is long
  for (size_t c = 0; c + 1 < count; ++c) together += widths[c] + (c > 0 ? 2 : 0);
  // The columns that begin a line.
  std::vector<bool> begins(count, false);
  for (size_t c = 1, end = widths[0]; c < count; ++c) {
    end += 2 + widths[c];
    begins[c] = end > width || (c == 1 && together > width);
    if (begins[c]) end = 2 + widths[c];
  }
  std::vector<std::string> texts;
  for (const auto& row : rows) {
    std::string text, line;
    auto end_line = [&] {
      line.erase(line.find_last_not_of(' ') + 1);
      if (!line.empty()) text += line + "\n";
    };
    for (size_t c = 0; c < row.size(); ++c) {
      if (begins[c]) {
        end_line();
        line.clear();
      }
      const size_t used = columns_of(row[c]), wanted = std::min(widths[c], width);
      const std::string padding(wanted > used ? wanted - used : 0, ' ');
      line += (c > 0 ? "  " : "") + (right[c] ? padding + row[c] : row[c] + padding);
    }
    end_line();
    texts.push_back(std::move(text));
  }
  return texts;
}

size_t table_width() {
  constexpr size_t kPipeWidth = 240;
  const train::Terminal terminal = train::Terminal::of(1);
  return terminal.is_terminal ? static_cast<size_t>(terminal.columns) : kPipeWidth;
}

}  // namespace tern::cli
