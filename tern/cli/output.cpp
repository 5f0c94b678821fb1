// Escaping, quoting, and the standard streams.
#include "tern/cli/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>

#include "tern/base/check.h"
#include "tern/io/utf8.h"

namespace tern::cli {
namespace {

/// Bytes of the character with which `text` begins; 0 for a control character and for what is not UTF-8.
size_t printable_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  for (size_t count = 2; count <= std::min<size_t>(text.size(), 4); ++count)
    if (io::is_utf8(text.substr(0, count))) return byte(0) == 0xc2 && byte(1) < 0xa0 ? 0 : count;
  return 0;
}

}  // namespace

bool open_standard_streams() noexcept {
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != descriptor) return false;
  return true;
}

void survive_file_size_limit() noexcept { std::signal(SIGXFSZ, SIG_IGN); }

std::string shown(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t count = printable_bytes(text);
    if (count > 0)
      result += text.substr(0, count);
    else
      result += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
    text.remove_prefix(std::max<size_t>(count, 1));
  }
  return result;
}

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= 0x80 || std::isalnum(c) ||
           std::string_view("/._-+=:,@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return text;
  std::string word = "'";
  for (char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void print_error(std::string_view who, std::string_view text) noexcept {
  try {
    std::string line(text.substr(0, text.find_last_not_of('\n') + 1));
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
    line = fmt::format("{}: {}\n", who, shown(line));
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (const std::exception&) {
    // No memory for the line.
  }
}

void check_output() {
  TERN_CHECK(std::fflush(stdout) == 0 && !std::ferror(stdout), IoError, "standard output cannot be written");
}

}  // namespace tern::cli
