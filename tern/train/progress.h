// ProgressBar: one line on standard error that says how far a run is. What it can draw is asked in
// terminal.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tern/train/terminal.h"

namespace tern::train {

/// A line such as
///
///     epoch 2/5  47% ████████▍         12,345 samples/s  ETA 0:03  loss 0.1234  acc 96.21 %
///
/// or, where nobody knows how much there is to do,
///
///     epoch 2/5  123,456 samples  0:10  12,345 samples/s  loss 0.1234
///
/// redrawn at most ten times a second. Draws nothing where standard error is not a terminal. Blocks of
/// eighths where the locale is UTF-8, else '#'.
class ProgressBar {
 public:
  using Clock = std::chrono::steady_clock;

  ProgressBar() : ProgressBar(Terminal::of(2)) {}
  explicit ProgressBar(const Terminal& terminal) : terminal_(terminal) {}
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar() { clear(); }

  bool is_shown() const noexcept { return terminal_.is_terminal && terminal_.cursor; }
  /// Starts a new measurement of speed and time, for `total` samples, if that is known, of which `done` were
  /// behind us when the work began. Until more are done the speed is unknown, and not shown.
  void start(std::string title, std::optional<int64_t> total, int64_t done = 0,
             Clock::time_point began = Clock::now());
  /// True when it is time to draw again, so that what is shown needs to be computed only then.
  bool is_due() const;
  /// Draws. `tail` stands at the end: "loss 0.1234  acc 96.21 %".
  void draw(int64_t done, std::string_view tail);
  /// Wipes the line, so that other text can be printed.
  void clear();

  /// The line without control sequences, at most `columns` wide. What does not fit is left out: first the bar
  /// shrinks, then the end is cut.
  static std::string line(std::string_view title, double fraction, double samples_per_second,
                          double eta_seconds, std::string_view tail, int columns, bool unicode);
  /// The same for work of unknown length: how much is done, and for how long.
  static std::string open_line(std::string_view title, int64_t done, double samples_per_second,
                               double seconds, std::string_view tail, int columns);

 private:
  Terminal terminal_;
  std::string title_;
  std::optional<int64_t> total_;
  int64_t first_ = 0;
  Clock::time_point began_{};
  Clock::time_point next_{};
  bool drawn_ = false;
};

}  // namespace tern::train
