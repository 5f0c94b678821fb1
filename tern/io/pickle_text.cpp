// The text forms of numbers and strings in pickles of protocol 0.
#include "tern/io/pickle_text.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>

#include "tern/base/check.h"
#include "tern/io/utf8.h"

namespace tern::io {

namespace {

[[noreturn]] void fail(const char* what) { throw CheckpointError(what); }

/// The number behind the escape letter at text[i] ('x', 'u' or 'U'); i moves to its last digit.
uint32_t hex_digits(std::string_view text, size_t& i, size_t count) {
  if (text.size() - i - 1 < count) fail("an escape is cut short");
  const char* first = text.data() + i + 1;
  uint32_t value = 0;
  auto [stop, error] = std::from_chars(first, first + count, value, 16);
  if (error != std::errc() || stop != first + count) fail("an escape has a wrong digit");
  i += count;
  return value;
}

/// Up to three octal digits from text[i] on; i moves to the last.
char octal_digits(std::string_view text, size_t& i) {
  unsigned code = 0;
  size_t first = i;
  for (; i < text.size() && i < first + 3 && text[i] >= '0' && text[i] <= '7'; ++i)
    code = code * 8 + static_cast<unsigned>(text[i] - '0');
  --i;
  return static_cast<char>(code & 0xff);
}

}  // namespace

double parse_text_float(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  double value = 0;
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range && stop == end)
    return std::strtod(std::string(text).c_str(), nullptr);
  if (error != std::errc() || stop != end) fail("a float is not a number");
  return value;
}

std::string unquote_string(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  bool quoted = text.size() >= 2 && text.front() == text.back() && (text[0] == '\'' || text[0] == '"');
  if (!quoted) fail("a STRING has no quotes");
  text = text.substr(1, text.size() - 2);
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes.push_back(text[i]);
      continue;
    }
    if (++i == text.size()) fail("a STRING ends in a backslash");
    static constexpr std::string_view kLetters = "ntrabfv\\'\"", kMeanings = "\n\t\r\a\b\f\v\\'\"";
    if (size_t letter = kLetters.find(text[i]); letter != std::string_view::npos)
      bytes.push_back(kMeanings[letter]);
    else if (text[i] == 'x')
      bytes.push_back(static_cast<char>(hex_digits(text, i, 2)));
    else if (text[i] >= '0' && text[i] <= '7')
      bytes.push_back(octal_digits(text, i));
    else
      bytes.append({'\\', text[i]});
  }
  return bytes;
}

std::string decode_raw_unicode(std::string_view text) {
  std::string utf8;
  for (size_t i = 0; i < text.size(); ++i) {
    bool escape = text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == 'u' || text[i + 1] == 'U');
    if (!escape) {
      append_utf8(utf8, static_cast<uint8_t>(text[i]));
      continue;
    }
    ++i;
    uint32_t code = hex_digits(text, i, text[i] == 'u' ? 4 : 8);
    if (code > 0x10ffff) fail("an escape is no character");
    append_utf8(utf8, code);
  }
  return utf8;
}

}  // namespace tern::io
