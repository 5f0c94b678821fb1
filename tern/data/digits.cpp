// Draws the set of digits in parallel; every picture has a random stream of its own.
#include "tern/data/digits.h"

#include "tern/base/check.h"
#include "tern/base/parallel.h"
#include "tern/data/digit_strokes.h"
#include "tern/data/mnist.h"
#include "tern/data/rows.h"

namespace tern::data {
namespace {

ImageTensors draw(DigitsOptions options) {
  const int64_t size = options.size.value_or(options.train ? 20000 : 4000);
  TERN_CHECK(size >= 0 && size <= 10'000'000, ValueError, "Digits: size must be 0 to 10,000,000, got {}",
             size);
  constexpr int64_t kPixels = kDigitSide * kDigitSide;
  Tensor pictures = detail::make_tensor({size, 1, kDigitSide, kDigitSide}, DType::UInt8);
  uint8_t* pixels = pictures.data<uint8_t>();
  std::vector<int64_t> labels(static_cast<size_t>(size));
  parallel_for(size, /*grain=*/64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Random random(options.seed, options.train ? 0 : 1, static_cast<uint64_t>(i));
      labels[static_cast<size_t>(i)] = i % 10;
      draw_digit(static_cast<int>(i % 10), random,
                 std::span<uint8_t, kPixels>(pixels + i * kPixels, kPixels));
    }
  });
  return ImageTensors(pictures, detail::tensor_from_list(labels),
                      {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, std::move(options.image),
                      {{kMnistMean}, {kMnistStd}}, "Digits");
}

}  // namespace

Digits::Digits(DigitsOptions options) : ImageTensors(draw(std::move(options))) {}

}  // namespace tern::data
