// Small pictures drawn with characters. Decoding and resizing of pictures is in data/.
#pragma once

#include <string>
#include <vector>

#include "tern/data/image.h"
#include "tern/train/terminal.h"

namespace tern::cli {

/// A picture as lines of text, one character for each column of pixels and two rows of pixels to a line: half
/// blocks in 256 colours, half blocks in one colour, or ASCII, by what the terminal shows. Every line shows
/// `image.width` columns.
std::vector<std::string> draw(const data::Image& image, const train::Terminal& terminal);

/// Blocks of lines side by side, with `gap` spaces between; `widths` are the columns that each block shows.
std::string side_by_side(const std::vector<std::vector<std::string>>& blocks, const std::vector<int>& widths,
                         int gap);

}  // namespace tern::cli
