// Separable resampling with a filter as wide as the scale demands; coefficients, rounding and the order of
// the passes follow Pillow's libImaging/Resample.c, so 8-bit results are the same to the bit.
#include "tern/data/resize.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "tern/base/check.h"

namespace tern::data {
namespace {

/// For every output position: the first source position, how many, and their weights.
struct Taps {
  int64_t stride = 0;  ///< weights reserved per output position
  std::vector<int64_t> first;
  std::vector<int64_t> count;
  std::vector<double> weights;
};

double sinc(double x) { return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x); }

/// A filter, and how far from its middle it reaches.
struct Filter {
  double support;
  double (*value)(double x);
};

Filter filter_of(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kArea:
      return {0.5, [](double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }};
    case Interpolation::kHamming:
      return {1, [](double x) {
                return std::abs(x) < 1 ? sinc(x) * (0.54 + 0.46 * std::cos(std::numbers::pi * x)) : 0.0;
              }};
    case Interpolation::kBicubic:
      return {2, [](double x) {
                constexpr double a = -0.5;
                x = std::abs(x);
                if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
                return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0.0;
              }};
    case Interpolation::kLanczos:
      return {3, [](double x) { return -3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0.0; }};
    default:
      return {1, [](double x) { return std::abs(x) < 1.0 ? 1.0 - std::abs(x) : 0.0; }};
  }
}

/// One tap each, of weight 1.
Taps make_nearest_taps(int64_t in_size, int64_t out_size) {
  Taps taps{1, std::vector<int64_t>(static_cast<size_t>(out_size)),
            std::vector<int64_t>(static_cast<size_t>(out_size), 1),
            std::vector<double>(static_cast<size_t>(out_size), 1.0)};
  const double scale = static_cast<double>(in_size) / static_cast<double>(out_size);
  for (int64_t i = 0; i < out_size; ++i)
    taps.first[static_cast<size_t>(i)] =
        std::min(in_size - 1, static_cast<int64_t>((static_cast<double>(i) + 0.5) * scale));
  return taps;
}

Taps make_taps(int64_t in_size, int64_t out_size, Interpolation interpolation) {
  if (interpolation == Interpolation::kNearest) return make_nearest_taps(in_size, out_size);
  const Filter filter = filter_of(interpolation);
  const double scale = static_cast<double>(in_size) / static_cast<double>(out_size);
  const double filter_scale = std::max(scale, 1.0);
  const double support = filter.support * filter_scale;
  Taps taps;
  taps.stride = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  taps.first.resize(static_cast<size_t>(out_size));
  taps.count.resize(static_cast<size_t>(out_size));
  taps.weights.resize(static_cast<size_t>(out_size * taps.stride), 0.0);
  for (int64_t i = 0; i < out_size; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(center - support + 0.5));
    const int64_t last = std::min(in_size, static_cast<int64_t>(center + support + 0.5));
    double* weights = taps.weights.data() + i * taps.stride;
    double sum = 0;
    for (int64_t j = first; j < last; ++j) {
      const double x = (static_cast<double>(j) - center + 0.5) / filter_scale;
      sum += weights[j - first] = filter.value(x);
    }
    for (int64_t j = 0; j < last - first; ++j) weights[j] = sum != 0 ? weights[j] / sum : weights[j];
    taps.first[static_cast<size_t>(i)] = first;
    taps.count[static_cast<size_t>(i)] = last - first;
  }
  return taps;
}

/// 8-bit samples are summed in fixed point and rounded after each pass.
struct Fixed {
  using Sample = uint8_t;
  using Weight = int32_t;
  using Sum = int32_t;
  static constexpr int kPrecision = 32 - 8 - 2;
  static Weight weight(double w) { return static_cast<Weight>(w * (1 << kPrecision) + (w < 0 ? -0.5 : 0.5)); }
  static constexpr Sum kStart = 1 << (kPrecision - 1);
  static Sample finish(Sum sum) { return static_cast<Sample>(std::clamp(sum >> kPrecision, 0, 255)); }
};

struct Float {
  using Sample = float;
  using Weight = float;
  using Sum = float;
  static Weight weight(double w) { return static_cast<float>(w); }
  static constexpr Sum kStart = 0;
  static Sample finish(Sum sum) { return sum; }
};

/// Resamples the middle of three dimensions, [outer, in_size, inner] to [outer, out_size, inner].
template <class Arithmetic>
void pass(const typename Arithmetic::Sample* in, int64_t outer, int64_t in_size, int64_t inner,
          typename Arithmetic::Sample* out, int64_t out_size, Interpolation interpolation) {
  const Taps taps = make_taps(in_size, out_size, interpolation);
  std::vector<typename Arithmetic::Weight> weights(taps.weights.size());
  std::transform(taps.weights.begin(), taps.weights.end(), weights.begin(), &Arithmetic::weight);
  std::vector<typename Arithmetic::Sum> sums(static_cast<size_t>(inner));
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < out_size; ++i) {
      const auto* w = weights.data() + i * taps.stride;
      const auto* from = in + (o * in_size + taps.first[static_cast<size_t>(i)]) * inner;
      std::fill(sums.begin(), sums.end(), Arithmetic::kStart);
      for (int64_t j = 0; j < taps.count[static_cast<size_t>(i)]; ++j, from += inner) {
        for (int64_t k = 0; k < inner; ++k) sums[static_cast<size_t>(k)] += from[k] * w[j];
      }
      for (int64_t k = 0; k < inner; ++k) *out++ = Arithmetic::finish(sums[static_cast<size_t>(k)]);
    }
  }
}

/// Rows first, then columns; a pass that would change nothing is left out.
template <class Arithmetic>
void resample(const typename Arithmetic::Sample* in, int64_t in_height, int64_t in_width, int64_t channels,
              typename Arithmetic::Sample* out, int64_t out_height, int64_t out_width,
              Interpolation interpolation) {
  std::vector<typename Arithmetic::Sample> narrowed;
  if (out_width != in_width) {
    if (out_height == in_height) {
      return pass<Arithmetic>(in, in_height, in_width, channels, out, out_width, interpolation);
    }
    narrowed.resize(static_cast<size_t>(in_height * out_width * channels));
    pass<Arithmetic>(in, in_height, in_width, channels, narrowed.data(), out_width, interpolation);
    in = narrowed.data();
  }
  if (out_height == in_height) {
    std::copy_n(in, in_height * out_width * channels, out);
  } else {
    pass<Arithmetic>(in, 1, in_height, out_width * channels, out, out_height, interpolation);
  }
}

void check_sides(int64_t height, int64_t width) {
  constexpr int64_t kMaxSide = int64_t{1} << 20, kMaxPixels = int64_t{1} << 28;
  TERN_CHECK(
      height >= 1 && width >= 1 && height <= kMaxSide && width <= kMaxSide && height * width <= kMaxPixels,
      ValueError,
      "resize: sides must be 1 to {} and the picture at most {} pixels, not {}x{} (width x height)", kMaxSide,
      kMaxPixels, width, height);
}

void check_planes(size_t in, int64_t in_height, int64_t in_width, size_t out, int64_t out_height,
                  int64_t out_width) {
  check_sides(in_height, in_width);
  check_sides(out_height, out_width);
  TERN_CHECK(
      static_cast<int64_t>(in) == in_height * in_width && static_cast<int64_t>(out) == out_height * out_width,
      ValueError, "resize: planes of {} and {} values do not fit {}x{} and {}x{}", in, out, in_width,
      in_height, out_width, out_height);
}

}  // namespace

Image resize(const Image& image, int64_t height, int64_t width, Interpolation interpolation) {
  check_image(image, "resize");
  check_sides(height, width);
  Image out{height, width, image.channels, Bytes(static_cast<size_t>(height * width * image.channels))};
  resample<Fixed>(image.pixels.data(), image.height, image.width, image.channels, out.pixels.data(), height,
                  width, interpolation);
  return out;
}

void resize_plane(std::span<const uint8_t> in, int64_t in_height, int64_t in_width, std::span<uint8_t> out,
                  int64_t out_height, int64_t out_width, Interpolation interpolation) {
  check_planes(in.size(), in_height, in_width, out.size(), out_height, out_width);
  resample<Fixed>(in.data(), in_height, in_width, 1, out.data(), out_height, out_width, interpolation);
}

void resize_plane(std::span<const float> in, int64_t in_height, int64_t in_width, std::span<float> out,
                  int64_t out_height, int64_t out_width, Interpolation interpolation) {
  check_planes(in.size(), in_height, in_width, out.size(), out_height, out_width);
  resample<Float>(in.data(), in_height, in_width, 1, out.data(), out_height, out_width, interpolation);
}

}  // namespace tern::data
