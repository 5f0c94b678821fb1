// From pixels to characters.
#include "tern/cli/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace tern::cli {
namespace {

struct Rgb {
  int r, g, b;
  int luma() const { return (299 * r + 587 * g + 114 * b) / 1000; }
};

Rgb pixel(const data::Image& image, int64_t y, int64_t x) {
  if (y >= image.height) return {0, 0, 0};
  const int first = image.at(y, x, 0);
  if (image.channels == 1) return {first, first, first};
  return {first, image.at(y, x, 1), image.at(y, x, 2)};
}

/// Of xterm's 256 colours: the ramp of 24 greys from 232 on, or the cube of 6x6x6 from 16 on.
int palette_index(Rgb c) {
  const int spread = std::max({c.r, c.g, c.b}) - std::min({c.r, c.g, c.b});
  if (spread < 8) return c.r < 4 ? 16 : c.r > 246 ? 231 : 232 + std::clamp((c.r - 3) / 10, 0, 23);
  auto level = [](int v) { return v < 48 ? 0 : v < 115 ? 1 : (v - 35) / 40; };
  return 16 + 36 * level(c.r) + 6 * level(c.g) + level(c.b);
}

std::string color_line(const data::Image& image, int64_t y) {
  std::string line;
  int last_top = -1, last_bottom = -1;
  for (int64_t x = 0; x < image.width; ++x) {
    const int top = palette_index(pixel(image, y, x)), bottom = palette_index(pixel(image, y + 1, x));
    if (top != last_top) line += fmt::format("\033[38;5;{}m", last_top = top);
    if (bottom != last_bottom) line += fmt::format("\033[48;5;{}m", last_bottom = bottom);
    line += "▀";
  }
  return line + "\033[0m";
}

std::string block_line(const data::Image& image, int64_t y) {
  static constexpr const char* kBlocks[] = {" ", "▀", "▄", "█"};
  std::string line;
  for (int64_t x = 0; x < image.width; ++x)
    line +=
        kBlocks[(pixel(image, y, x).luma() >= 96 ? 1 : 0) + (pixel(image, y + 1, x).luma() >= 96 ? 2 : 0)];
  return line;
}

std::string ascii_line(const data::Image& image, int64_t y) {
  static constexpr std::string_view kRamp = " .:-=+*#%@";
  std::string line;
  for (int64_t x = 0; x < image.width; ++x) {
    const int mean = (pixel(image, y, x).luma() + pixel(image, y + 1, x).luma()) / 2;
    line += kRamp[static_cast<size_t>(mean) * (kRamp.size() - 1) / 255];
  }
  return line;
}

}  // namespace

std::vector<std::string> draw(const data::Image& image, const train::Terminal& terminal) {
  std::vector<std::string> lines;
  for (int64_t y = 0; y < image.height; y += 2)
    lines.push_back(!terminal.unicode ? ascii_line(image, y)
                    : terminal.color  ? color_line(image, y)
                                      : block_line(image, y));
  return lines;
}

std::string side_by_side(const std::vector<std::vector<std::string>>& blocks, const std::vector<int>& widths,
                         int gap) {
  size_t height = 0;
  for (const auto& block : blocks) height = std::max(height, block.size());
  std::string text;
  for (size_t y = 0; y < height; ++y) {
    std::string line;
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i) line.append(static_cast<size_t>(gap), ' ');
      line += y < blocks[i].size() ? blocks[i][y] : std::string(static_cast<size_t>(widths[i]), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace tern::cli
