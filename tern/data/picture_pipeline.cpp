// The steps from bytes to normalised floats. A byte has only 256 values, so both steps are one look-up.
#include "tern/data/picture_pipeline.h"

#include <algorithm>

#include "tern/base/check.h"
#include "tern/base/parallel.h"
#include "tern/data/rows.h"

namespace tern::data {

PicturePipeline::PicturePipeline(ImageOptions options, const ImageStatistics& statistics, std::string name)
    : options_(std::move(options)), name_(std::move(name)) {
  const bool given = !options_.mean.empty() || !options_.std.empty();
  TERN_CHECK(options_.normalize || !given, ValueError, "{}: mean and std are given without normalize = true",
             name_);
  TERN_CHECK(options_.to_float || !options_.normalize, ValueError,
             "{}: normalize = true needs floats, but to_float is false", name_);
  if (options_.normalize && !given) {
    TERN_CHECK(!statistics.mean.empty(), ValueError,
               "{}: normalize = true needs mean and std, the set has none of its own", name_);
    options_.mean = statistics.mean;
    options_.std = statistics.std;
  }
  if (options_.normalize) with_context(name_, [&] { Normalize(options_.mean, options_.std); });

  tables_ = std::max<int64_t>(1, static_cast<int64_t>(options_.mean.size()));
  for (int64_t i = 0; i < tables_; ++i) {
    for (int value = 0; value < 256; ++value) {
      float x = static_cast<float>(value) / 255.0f;
      if (options_.normalize) {
        const auto at = static_cast<size_t>(i);
        x = (x - static_cast<float>(options_.mean[at])) / static_cast<float>(options_.std[at]);
      }
      table_.push_back(x);
    }
  }
}

Tensor PicturePipeline::transform(const Tensor& picture, Random& random) const {
  return options_.transform(picture, random);
}

void PicturePipeline::check_channels(int64_t channels) const {
  TERN_CHECK(tables_ == 1 || tables_ == channels, ValueError,
             "{}: mean and std have {} values, the pictures {} channels", name_, tables_, channels);
}

void PicturePipeline::convert(const uint8_t* from, float* to, int64_t channels, int64_t pixels) const {
  for (int64_t c = 0; c < channels; ++c) {
    const float* table = table_.data() + (tables_ == 1 ? 0 : 256 * c);
    for (int64_t i = 0; i < pixels; ++i) *to++ = table[*from++];
  }
}

Tensor PicturePipeline::finish(const Tensor& pictures) const {
  if (!options_.to_float || (pictures.dtype() != DType::UInt8 && !options_.normalize)) return pictures;
  TERN_CHECK(pictures.dim() >= 3, ShapeError,
             "{}: the transform must give pictures [channels, height, width], it gave {}", name_,
             to_string(pictures.shape()));
  TERN_CHECK(pictures.dtype() == DType::UInt8 || pictures.dtype() == DType::Float32, DTypeError,
             "{}: the transform must give uint8 or float32 to be normalised, it gave {}", name_,
             name(pictures.dtype()));
  TERN_CHECK(
      pictures.device().is_cpu(), DeviceError,
      "{}: the transform must give pictures on the CPU, it gave one on {}; let the DataLoader move the "
      "batches",
      name_, pictures.device().str());
  const int64_t channels = pictures.size(-3), pixels = pictures.size(-2) * pictures.size(-1);
  check_channels(channels);
  const Tensor in = pictures.contiguous();
  Tensor out = detail::make_tensor(in.shape(), DType::Float32);
  const int64_t picture = channels * pixels, count = picture == 0 ? 0 : in.numel() / picture;
  for (int64_t n = 0; n < count; ++n) {
    float* to = out.data<float>() + n * picture;
    if (in.dtype() == DType::UInt8) {
      convert(in.data<uint8_t>() + n * picture, to, channels, pixels);
      continue;
    }
    const float* from = in.data<float>() + n * picture;
    for (int64_t i = 0; i < picture; ++i) {
      const auto at = tables_ == 1 ? size_t{0} : static_cast<size_t>(i / pixels);
      to[i] = (from[i] - static_cast<float>(options_.mean[at])) / static_cast<float>(options_.std[at]);
    }
  }
  return out;
}

Tensor PicturePipeline::gather(const Tensor& images, IntArrayRef indices) const {
  if (!options_.to_float) return detail::gather_rows(images, indices);
  const int64_t channels = images.size(1), pixels = images.size(2) * images.size(3),
                picture = channels * pixels;
  check_channels(channels);
  Tensor out = detail::make_tensor(
      {static_cast<int64_t>(indices.size()), channels, images.size(2), images.size(3)}, DType::Float32);
  const uint8_t* from = images.data<uint8_t>();
  float* to = out.data<float>();
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 20) / std::max<int64_t>(picture, 1));
  parallel_for(out.size(0), grain, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      convert(from + indices[static_cast<size_t>(n)] * picture, to + n * picture, channels, pixels);
    }
  });
  return out;
}

}  // namespace tern::data
