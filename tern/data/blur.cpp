// GaussianBlur: a pass along the rows, then one along the columns. ElasticTransform (warp.cpp) blurs with it.
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <vector>

#include "tern/base/check.h"
#include "tern/data/picture_checks.h"
#include "tern/data/picture_ops.h"
#include "tern/data/transforms.h"

namespace tern::data {
namespace {

/// Of the pixels around one, whose own is in the middle; their sum is 1.
std::vector<float> gaussian_weights(int64_t size, double sigma) {
  std::vector<double> weights(static_cast<size_t>(size));
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) {
    const double distance = static_cast<double>(i - size / 2) / sigma;
    sum += weights[static_cast<size_t>(i)] = std::exp(-distance * distance / 2);
  }
  std::vector<float> result(weights.size());
  std::transform(weights.begin(), weights.end(), result.begin(),
                 [&](double weight) { return static_cast<float>(weight / sum); });
  return result;
}

void add_weighted(const float* from, float weight, std::vector<float>& sums) {
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += weight * from[i];
}

template <class T>
void blur_plane(const T* in, T* out, const detail::Plane& plane, const std::vector<float>& across,
                const std::vector<float>& down) {
  const int64_t left = std::ssize(across) / 2, top = std::ssize(down) / 2, width = plane.width;
  std::vector<float> padded(static_cast<size_t>(width + 2 * left)), sums(static_cast<size_t>(width)), rows;
  rows.reserve(static_cast<size_t>(plane.pixels()));
  for (int64_t y = 0; y < plane.height; ++y) {
    for (int64_t x = 0; x < std::ssize(padded); ++x)
      padded[static_cast<size_t>(x)] = static_cast<float>(in[y * width + detail::mirrored(x - left, width)]);
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (size_t i = 0; i < across.size(); ++i) add_weighted(padded.data() + i, across[i], sums);
    rows.insert(rows.end(), sums.begin(), sums.end());
  }
  for (int64_t y = 0; y < plane.height; ++y) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (int64_t i = 0; i < std::ssize(down); ++i)
      add_weighted(rows.data() + detail::mirrored(y + i - top, plane.height) * width,
                   down[static_cast<size_t>(i)], sums);
    for (const float sum : sums)
      if constexpr (std::is_same_v<T, uint8_t>)
        *out++ = static_cast<uint8_t>(std::nearbyint(std::min(sum, 255.0f)));
      else
        *out++ = sum;
  }
}

}  // namespace

std::vector<float> detail::blurred(const std::vector<float>& plane, int64_t height, int64_t width,
                                   std::array<int64_t, 2> kernel_xy, std::array<double, 2> sigma_xy) {
  std::vector<float> out(plane.size());
  blur_plane(plane.data(), out.data(), {1, height, width}, gaussian_weights(kernel_xy[0], sigma_xy[0]),
             gaussian_weights(kernel_xy[1], sigma_xy[1]));
  return out;
}

GaussianBlur::GaussianBlur(int64_t kernel_width, int64_t kernel_height, BlurSigma sigma)
    : width_(kernel_width), height_(kernel_height), sigma_(sigma) {
  for (const int64_t size : {kernel_width, kernel_height})
    TERN_CHECK(size > 0 && size % 2 == 1, ValueError,
               "GaussianBlur: kernel_size must be odd and positive, got {}", size);
  TERN_CHECK(0 < sigma.low && sigma.low <= sigma.high && std::isfinite(sigma.high), ValueError,
             "GaussianBlur: sigma must be positive, the smaller bound first, got {} to {}", sigma.low,
             sigma.high);
}

Tensor GaussianBlur::operator()(const Tensor& source, Random& random) const {
  const detail::Plane plane = detail::check_picture(source, "GaussianBlur");
  TERN_CHECK(
      width_ / 2 < plane.width && height_ / 2 < plane.height, ShapeError,
      "GaussianBlur: a picture of {}x{} is too small to be mirrored at its edges for a kernel of {}x{} "
      "(width x height): half of it must be less than the picture",
      plane.width, plane.height, width_, height_);
  const double sigma = random.between(sigma_.low, sigma_.high);
  const std::vector<float> across = gaussian_weights(width_, sigma), down = gaussian_weights(height_, sigma);
  return detail::make_picture(source, source.shape(), [&](const auto* in, auto* out) {
    for (int64_t c = 0; c < plane.channels; ++c)
      blur_plane(in + c * plane.pixels(), out + c * plane.pixels(), plane, across, down);
  });
}

}  // namespace tern::data
