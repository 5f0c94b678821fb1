// Digits: a generated set of handwritten-looking digits, the default data where no files are at hand. How one
// is drawn is in digit_strokes.h.
#pragma once

#include <cstdint>
#include <optional>

#include "tern/data/image_tensors.h"

namespace tern::data {

/// Which digits are drawn, besides what is done to the pictures.
struct DigitsOptions {
  bool train = true;                 ///< the two parts never share a picture
  std::optional<int64_t> size = {};  ///< by default 20,000 for training, 4,000 for testing
  uint64_t seed = 0;
  ImageOptions image = {};
};

/// Pictures 1x28x28 in the manner of MNIST, white on black, centred. The label of sample i is i mod 10, and
/// its picture depends on (seed, train, i) alone: a longer set begins with the shorter one. All are drawn at
/// construction, on all cores, in about 20 us each. `normalize` uses MNIST's mean and deviation.
class Digits : public ImageTensors {
 public:
  /// Throws ValueError for a size that is negative or above 10 million.
  explicit Digits(DigitsOptions options = {});
};

}  // namespace tern::data
