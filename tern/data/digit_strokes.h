// Draws one handwritten-looking digit: stroke tables, random distortion, anti-aliased rendering.
// The data set made of such pictures is in digits.h.
#pragma once

#include <cstdint>
#include <span>

#include "tern/data/random.h"

namespace tern::data {

/// Side of the pictures that draw_digit makes, in pixels.
inline constexpr int kDigitSide = 28;

/// Draws the digit (0 to 9), white (255) on black (0), 28x28, row by row. As in MNIST, the ink fits a box of
/// about 20x20 pixels and its centre of mass lies near the middle. Style, slant, proportions, elastic
/// distortion, pen thickness, pressure and noise come from `random`, so equal streams give equal pictures.
void draw_digit(int digit, Random& random, std::span<uint8_t, kDigitSide * kDigitSide> pixels);

}  // namespace tern::data
