// What the terminal can show: width, characters, colours. The progress bar is in progress.h.
#pragma once

#include <string>

namespace tern::train {

/// What one of the standard streams can show. All false and 80 columns where it is not a terminal.
struct Terminal {
  bool is_terminal = false;
  bool unicode = false;  ///< the locale is UTF-8
  bool color = false;    ///< not switched off by NO_COLOR or TERM=dumb
  bool cursor = false;   ///< understands the control sequences that redraw a line: not TERM=dumb
  int columns = 80;

  /// Asks about standard output (1) or standard error (2).
  static Terminal of(int fd);
};

/// "\033[2m" and the like where `terminal` shows colours, else nothing.
struct Style {
  explicit Style(const Terminal& terminal);
  std::string bold, dim, green, red, yellow, cyan, reset;
};

/// "1:05", "2:03:09"; "0:07" for seven seconds.
std::string duration_text(double seconds);

/// "1,234,567".
std::string with_commas(long long number);

}  // namespace tern::train
