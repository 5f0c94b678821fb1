// Pad: each pixel of the result is copied from one of the picture, or is the fill.
#include <cstdint>
#include <utility>
#include <vector>

#include "tern/base/check.h"
#include "tern/data/picture_checks.h"
#include "tern/data/picture_ops.h"
#include "tern/data/transforms.h"

namespace tern::data {
namespace {

constexpr int64_t kFilled = -1;

/// From which place of a side each place of the padded one is copied, or kFilled.
std::vector<int64_t> padded_places(int64_t before, int64_t size, int64_t after, PaddingMode mode) {
  const auto place = [&](int64_t at) {
    if (at >= 0 && at < size) return at;
    switch (mode) {
      case PaddingMode::kConstant:
        return kFilled;
      case PaddingMode::kEdge:
        return at < 0 ? 0 : size - 1;
      case PaddingMode::kReflect:
        return detail::mirrored(at, size);
      default: {
        const int64_t period = 2 * size, within = (at < 0 ? -1 - at : at) % period;
        return within < size ? within : period - 1 - within;
      }
    }
  };
  std::vector<int64_t> places;
  places.reserve(static_cast<size_t>(before + size + after));
  for (int64_t at = -before; at < size + after; ++at) places.push_back(place(at));
  return places;
}

}  // namespace

Pad::Pad(Padding padding, PadOptions options) : padding_(padding), options_(std::move(options)) {
  for (const int64_t side : {padding.left, padding.top, padding.right, padding.bottom})
    TERN_CHECK(side >= 0 && side <= (int64_t{1} << 20), ValueError, "Pad: padding must be 0 to 2^20, got {}",
               side);
  detail::check_fill(options_.fill, "Pad");
}

Tensor Pad::operator()(const Tensor& image) const {
  const detail::Plane plane = detail::check_picture(image, "Pad");
  detail::check_channel_values(options_.fill, plane, image.dtype(), "Pad", "fill");
  TERN_CHECK(plane.pixels() > 0 || options_.padding_mode == PaddingMode::kConstant, ShapeError,
             "Pad: the picture is empty and has nothing to be continued: {}", to_string(image.shape()));
  const std::vector<int64_t> rows =
      padded_places(padding_.top, plane.height, padding_.bottom, options_.padding_mode);
  const std::vector<int64_t> columns =
      padded_places(padding_.left, plane.width, padding_.right, options_.padding_mode);
  return detail::make_picture(
      image, {plane.channels, std::ssize(rows), std::ssize(columns)}, [&]<class T>(const T* in, T* out) {
        for (int64_t c = 0; c < plane.channels; ++c, in += plane.pixels()) {
          const auto fill = static_cast<T>(detail::channel_value(options_.fill, c));
          for (const int64_t row : rows)
            for (const int64_t column : columns)
              *out++ = row == kFilled || column == kFilled ? fill : in[row * plane.width + column];
        }
      });
}

}  // namespace tern::data
