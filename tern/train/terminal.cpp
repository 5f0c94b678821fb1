// Asking the system and the environment about the terminal.
#include "tern/train/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "tern/base/env.h"

namespace tern::train {
namespace {

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    auto text = env_text(name);
    if (!text) continue;
    std::string plain;
    for (char c : *text)
      if (std::isalnum(static_cast<unsigned char>(c)))
        plain.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    return plain.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

Terminal Terminal::of(int fd) {
  Terminal terminal;
  terminal.is_terminal = ::isatty(fd) == 1;
  if (!terminal.is_terminal) return terminal;
  terminal.unicode = locale_is_utf8();
  const std::string kind = env_text("TERM").value_or("dumb");
  terminal.cursor = kind != "dumb";
  terminal.color = terminal.cursor && !env_text("NO_COLOR");
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) terminal.columns = size.ws_col;
  return terminal;
}

Style::Style(const Terminal& terminal) {
  if (!terminal.color) return;
  bold = "\033[1m";
  dim = "\033[2m";
  green = "\033[32m";
  red = "\033[31m";
  yellow = "\033[33m";
  cyan = "\033[36m";
  reset = "\033[0m";
}

std::string duration_text(double seconds) {
  if (!(seconds >= 0)) return "?";
  const auto whole = static_cast<long long>(std::min(seconds, 359999.0) + 0.5);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string with_commas(long long number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

}  // namespace tern::train
