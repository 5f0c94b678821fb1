// Drawing of the progress bar.
#include "tern/train/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tern::train {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr int kWidestBar = 30;

/// Characters, for text that is ASCII but for the bar.
int width_of(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string bar_text(double fraction, int width, bool unicode) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  std::string bar;
  const int eighths = static_cast<int>(fraction * width * 8);
  for (int i = 0; i < eighths / 8; ++i) bar += unicode ? "█" : "#";
  int used = eighths / 8;
  if (unicode && eighths % 8 != 0) {
    bar += kEighths[eighths % 8];
    ++used;
  }
  bar.append(static_cast<size_t>(width - used), unicode ? ' ' : '.');
  return unicode ? "▕" + bar + "▏" : "[" + bar + "]";
}

/// A speed that no sample count reaches is shortened, and fits an integer.
std::string speed_text(double speed) {
  return speed < 1e12 ? with_commas(static_cast<long long>(speed + 0.5)) : fmt::format("{:.3g}", speed);
}

/// As much of the text as fits.
std::string cut(std::string text, int columns) {
  if (width_of(text) <= columns) return text;
  size_t bytes = 0;
  for (int shown = 0; bytes < text.size(); ++bytes)
    if ((text[bytes] & 0xC0) != 0x80 && shown++ == columns) break;
  text.resize(bytes);
  return text;
}

bool is_known_speed(double speed) { return speed > 0 && std::isfinite(speed); }

}  // namespace

std::string ProgressBar::line(std::string_view title, double fraction, double samples_per_second,
                              double eta_seconds, std::string_view tail, int columns, bool unicode) {
  fraction = std::clamp(std::isfinite(fraction) ? fraction : 0.0, 0.0, 1.0);
  const std::string head = fmt::format("{} {:3}%", title, static_cast<int>(fraction * 100));
  std::string rest;
  if (is_known_speed(samples_per_second))
    rest = fmt::format("{} samples/s  ETA {}", speed_text(samples_per_second), duration_text(eta_seconds));
  if (!tail.empty()) rest += fmt::format("{}{}", rest.empty() ? "" : "  ", tail);
  // Two for the ends of the bar, two spaces around it.
  const int free = columns - width_of(head) - width_of(rest) - 4;
  std::string text = head;
  if (free >= 4) text += " " + bar_text(fraction, std::min(free, kWidestBar), unicode);
  if (!rest.empty()) text += " " + rest;
  return cut(std::move(text), columns);
}

std::string ProgressBar::open_line(std::string_view title, int64_t done, double samples_per_second,
                                   double seconds, std::string_view tail, int columns) {
  std::string text = fmt::format("{}  {} samples  {}", title, with_commas(done), duration_text(seconds));
  if (is_known_speed(samples_per_second))
    text += fmt::format("  {} samples/s", speed_text(samples_per_second));
  if (!tail.empty()) text += fmt::format("  {}", tail);
  return cut(std::move(text), columns);
}

void ProgressBar::start(std::string title, std::optional<int64_t> total, int64_t done,
                        Clock::time_point began) {
  title_ = std::move(title);
  total_ = total;
  first_ = done;
  began_ = began;
  next_ = Clock::now();
}

bool ProgressBar::is_due() const { return is_shown() && Clock::now() >= next_; }

void ProgressBar::draw(int64_t done, std::string_view tail) {
  if (!is_shown()) return;
  const auto now = Clock::now();
  next_ = now + kInterval;
  const double seconds = std::chrono::duration<double>(now - began_).count();
  const double speed = seconds > 0 ? static_cast<double>(done - first_) / seconds : 0;
  // The last column stays free: some terminals go to the next line when it is written to.
  const int columns = std::max(Terminal::of(2).columns - 1, 1);
  std::string text;
  if (total_) {
    const double eta = speed > 0 ? static_cast<double>(*total_ - done) / speed : -1;
    const double fraction = *total_ > 0 ? static_cast<double>(done) / static_cast<double>(*total_) : 0;
    text = line(title_, fraction, speed, eta, tail, columns, terminal_.unicode);
  } else {
    text = open_line(title_, done, speed, seconds, tail, columns);
  }
  fmt::print(stderr, "\r{}\033[K", text);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressBar::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace tern::train
