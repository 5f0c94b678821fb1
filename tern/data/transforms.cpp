// The transforms of pictures as tensors; those of colour are in color.cpp and tones.cpp, blurring in
// blur.cpp, rotation and what is like it in affine.cpp, Pad in pad.cpp.
#include "tern/data/transforms.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "tern/base/check.h"
#include "tern/data/picture_checks.h"
#include "tern/data/picture_ops.h"
#include "tern/data/rows.h"
#include "tern/ops/shape.h"

namespace tern::data {

namespace detail {

void check_on_cpu(const Tensor& image, const char* transform) {
  TERN_CHECK(
      image.device().is_cpu(), DeviceError,
      "{}: works on the CPU, the picture is on {}; move it with .cpu() before, or the batch afterwards",
      transform, image.device().str());
}

Plane check_picture(const Tensor& image, const char* transform) {
  TERN_CHECK(image.dim() == 3, ShapeError, "{}: expects a picture [channels, height, width], got {}",
             transform, to_string(image.shape()));
  TERN_CHECK(image.dtype() == DType::UInt8 || image.dtype() == DType::Float32, DTypeError,
             "{}: expects uint8 or float32, got {}", transform, name(image.dtype()));
  check_on_cpu(image, transform);
  return {image.size(0), image.size(1), image.size(2)};
}

Plane check_gray_or_rgb(const Tensor& image, const char* transform) {
  const Plane plane = check_picture(image, transform);
  TERN_CHECK(plane.channels == 1 || plane.channels == 3, ShapeError, "{}: expects 1 or 3 channels, got {}",
             transform, to_string(image.shape()));
  return plane;
}

void check_probability(double p, const char* transform) {
  TERN_CHECK(p >= 0 && p <= 1, ValueError, "{}: p must be 0 to 1, got {}", transform, p);
}

void check_positive_range(const std::array<double, 2>& range, const char* transform, const char* what) {
  TERN_CHECK(range[0] > 0 && range[0] <= range[1] && std::isfinite(range[1]), ValueError,
             "{}: {} must be two positive numbers, the smaller first, got {} and {}", transform, what,
             range[0], range[1]);
}

std::array<double, 2> random_sides(const Plane& plane, const std::array<double, 2>& scale,
                                   const std::array<double, 2>& ratio, Random& random) {
  const double area = static_cast<double>(plane.pixels()) * random.between(scale[0], scale[1]);
  const double proportion = std::exp(random.between(std::log(ratio[0]), std::log(ratio[1])));
  return {std::nearbyint(std::sqrt(area * proportion)), std::nearbyint(std::sqrt(area / proportion))};
}

std::vector<size_t> random_order(size_t size, Random& random) {
  std::vector<size_t> order(size);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = size; i > 1; --i)
    std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  return order;
}

void check_fill(const std::vector<double>& fill, const char* transform) {
  TERN_CHECK(!fill.empty(), ValueError, "{}: fill must be one number, or one for each channel; there is none",
             transform);
}

void check_channel_values(const std::vector<double>& values, const Plane& plane, DType dtype,
                          const char* transform, const char* what) {
  TERN_CHECK(values.size() == 1 || static_cast<int64_t>(values.size()) == plane.channels, ValueError,
             "{}: {} has {} numbers for {} channels", transform, what, values.size(), plane.channels);
  for (const double value : values)
    TERN_CHECK(dtype != DType::UInt8 || (value >= 0 && value <= 255), ValueError,
               "{}: {} must be 0 to 255 in a picture of uint8, got {}", transform, what, value);
}

}  // namespace detail

namespace {

using detail::check_picture;
using detail::Plane;

/// Copies the window at (top, left), which may reach outside the picture, where it is 0.
Tensor crop(const Tensor& source, const Plane& from, int64_t top, int64_t left, int64_t height,
            int64_t width) {
  const Tensor image = source.contiguous();
  Tensor out = detail::make_tensor({from.channels, height, width}, image.dtype());
  const size_t item = itemsize(image.dtype());
  const char* in = static_cast<const char*>(image.data_ptr());
  char* to = static_cast<char*>(out.data_ptr());
  std::memset(to, 0, out.nbytes());
  const int64_t x0 = std::max<int64_t>(0, -left), x1 = std::min(width, from.width - left);
  const int64_t y0 = std::max<int64_t>(0, -top), y1 = std::min(height, from.height - top);
  if (x0 >= x1) return out;
  for (int64_t c = 0; c < from.channels; ++c) {
    for (int64_t y = y0; y < y1; ++y) {
      const int64_t at = (c * from.height + top + y) * from.width + left + x0;
      std::memcpy(to + static_cast<size_t>((c * height + y) * width + x0) * item,
                  in + static_cast<size_t>(at) * item, static_cast<size_t>(x1 - x0) * item);
    }
  }
  return out;
}

/// Left and right exchanged.
Tensor mirror(const Tensor& image) {
  const int64_t rows = image.size(0) * image.size(1), width = image.size(2);
  return detail::make_picture(image, image.shape(), [&]<class T>(const T* in, T* out) {
    for (int64_t y = 0; y < rows; ++y)
      std::reverse_copy(in + y * width, in + (y + 1) * width, out + y * width);
  });
}

/// Top and bottom exchanged.
Tensor turn_over(const Tensor& image) {
  const int64_t height = image.size(1), width = image.size(2);
  return detail::make_picture(image, image.shape(), [&]<class T>(const T* in, T* out) {
    for (int64_t c = 0; c < image.size(0); ++c)
      for (int64_t y = 0; y < height; ++y, out += width)
        std::copy_n(in + ((c + 1) * height - 1 - y) * width, width, out);
  });
}

template <class T>
void resize_all(const Tensor& image, const Plane& from, Tensor& out, Interpolation interpolation) {
  const int64_t height = out.size(1), width = out.size(2);
  for (int64_t c = 0; c < from.channels; ++c) {
    const std::span<const T> in(image.data<T>() + c * from.pixels(), static_cast<size_t>(from.pixels()));
    const std::span<T> to(out.data<T>() + c * height * width, static_cast<size_t>(height * width));
    resize_plane(in, from.height, from.width, to, height, width, interpolation);
  }
}

/// Where a piece of the middle begins; negative where it is larger than the side. Halves are rounded as
/// torchvision does: to even for the crop, down for the padding.
int64_t middle_offset(int64_t size, int64_t wanted) {
  if (wanted > size) return -((wanted - size) / 2);
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(size - wanted) / 2.0));
}

/// The corners in reading order, then the middle.
std::vector<Tensor> five_crops(const Tensor& image, const Plane& from, int64_t height, int64_t width,
                               const char* transform) {
  TERN_CHECK(height <= from.height && width <= from.width, ValueError,
             "{}: a crop of {}x{} (height x width) is larger than the picture of {}x{}", transform, height,
             width, from.height, from.width);
  const int64_t bottom = from.height - height, right = from.width - width;
  const std::array<std::array<int64_t, 2>, 5> places = {
      {{0, 0},
       {0, right},
       {bottom, 0},
       {bottom, right},
       {middle_offset(from.height, height), middle_offset(from.width, width)}}};
  std::vector<Tensor> crops;
  for (const auto& [top, left] : places) crops.push_back(crop(image, from, top, left, height, width));
  return crops;
}

void check_side(int64_t size, const char* transform) {
  TERN_CHECK(size > 0 && size <= (int64_t{1} << 20), ValueError,
             "{}: a side must be 1 to 2^20 pixels, got {}", transform, size);
}

}  // namespace

Tensor Compose::operator()(const Tensor& x, Random& random) const {
  Tensor result = x;
  for (const Transform& step : steps_) result = step(result, random);
  return result;
}

RandomApply::RandomApply(std::vector<Transform> transforms, double p) : steps_(std::move(transforms)), p_(p) {
  detail::check_probability(p, "RandomApply");
}

Tensor RandomApply::operator()(const Tensor& x, Random& random) const {
  return random.chance(p_) ? steps_(x, random) : x;
}

RandomChoice::RandomChoice(std::vector<Transform> transforms, const std::vector<double>& p)
    : transforms_(std::move(transforms)) {
  TERN_CHECK(!transforms_.empty(), ValueError, "RandomChoice: there are no transforms to choose from");
  TERN_CHECK(p.empty() || p.size() == transforms_.size(), ValueError,
             "RandomChoice: p has {} probabilities for {} transforms", p.size(), transforms_.size());
  double sum = 0;
  for (size_t i = 0; i < transforms_.size(); ++i) {
    const double part = p.empty() ? 1 : p[i];
    TERN_CHECK(part >= 0 && std::isfinite(part), ValueError,
               "RandomChoice: probabilities must be finite and not negative, got {}", part);
    ends_.push_back(sum += part);
  }
  TERN_CHECK(sum > 0, ValueError, "RandomChoice: one of the probabilities must be more than 0");
}

Tensor RandomChoice::operator()(const Tensor& x, Random& random) const {
  const double place = random.between(0, ends_.back());
  const auto chosen = std::upper_bound(ends_.begin(), ends_.end() - 1, place);
  return transforms_[static_cast<size_t>(chosen - ends_.begin())](x, random);
}

RandomOrder::RandomOrder(std::vector<Transform> transforms) : transforms_(std::move(transforms)) {}

Tensor RandomOrder::operator()(const Tensor& x, Random& random) const {
  Tensor result = x;
  for (const size_t i : detail::random_order(transforms_.size(), random))
    result = transforms_[i](result, random);
  return result;
}

Tensor ToFloat::operator()(const Tensor& image) const {
  if (image.dtype() == DType::Float32) return image;
  TERN_CHECK(image.dtype() == DType::UInt8, DTypeError, "ToFloat: expects uint8 or float32, got {}",
             name(image.dtype()));
  detail::check_on_cpu(image, "ToFloat");
  const Tensor in = image.contiguous();
  Tensor out = detail::make_tensor(in.shape(), DType::Float32);
  const uint8_t* from = in.data<uint8_t>();
  float* to = out.data<float>();
  for (int64_t i = 0; i < in.numel(); ++i) to[i] = static_cast<float>(from[i]) / 255.0f;
  return out;
}

Normalize::Normalize(std::vector<double> mean, std::vector<double> std)
    : mean_(mean.begin(), mean.end()), std_(std.begin(), std.end()) {
  TERN_CHECK(mean.size() == std.size() && !mean.empty(), ValueError,
             "Normalize: mean and std must be as many as the channels, or one each; got {} and {}",
             mean.size(), std.size());
  for (size_t i = 0; i < mean.size(); ++i) {
    TERN_CHECK(std::isfinite(mean_[i]) && std::isfinite(std_[i]) && std_[i] != 0, ValueError,
               "Normalize: values must be finite and std not 0, got mean {} and std {} for channel {}",
               mean[i], std[i], i);
  }
}

Tensor Normalize::operator()(const Tensor& image) const {
  const Plane plane = check_picture(image, "Normalize");
  TERN_CHECK(image.dtype() == DType::Float32, DTypeError,
             "Normalize: expects float32, got {}; put ToFloat before it", name(image.dtype()));
  TERN_CHECK(mean_.size() == 1 || static_cast<int64_t>(mean_.size()) == plane.channels, ValueError,
             "Normalize: {} means for {} channels", mean_.size(), plane.channels);
  const Tensor in = image.contiguous();
  Tensor out = detail::make_tensor(in.shape(), DType::Float32);
  const float* from = in.data<float>();
  float* to = out.data<float>();
  for (int64_t c = 0; c < plane.channels; ++c) {
    const size_t which = mean_.size() == 1 ? 0 : static_cast<size_t>(c);
    for (int64_t i = 0; i < plane.pixels(); ++i) *to++ = (*from++ - mean_[which]) / std_[which];
  }
  return out;
}

Resize::Resize(int64_t size, Interpolation interpolation)
    : height_(size), width_(0), interpolation_(interpolation) {
  check_side(size, "Resize");
}

Resize::Resize(int64_t height, int64_t width, Interpolation interpolation)
    : height_(height), width_(width), interpolation_(interpolation) {
  check_side(height, "Resize");
  check_side(width, "Resize");
}

Tensor Resize::operator()(const Tensor& source) const {
  const Plane from = check_picture(source, "Resize");
  TERN_CHECK(from.pixels() > 0, ShapeError, "Resize: the picture is empty: {}", to_string(source.shape()));
  int64_t height = height_, width = width_;
  if (width_ == 0) {
    const bool wide = from.width >= from.height;
    const int64_t longer = height_ * (wide ? from.width : from.height) / (wide ? from.height : from.width);
    height = wide ? height_ : longer;
    width = wide ? longer : height_;
  }
  if (height == from.height && width == from.width) return source;
  check_side(height, "Resize");
  check_side(width, "Resize");
  const Tensor image = source.contiguous();
  Tensor out = detail::make_tensor({from.channels, height, width}, image.dtype());
  if (image.dtype() == DType::UInt8)
    resize_all<uint8_t>(image, from, out, interpolation_);
  else
    resize_all<float>(image, from, out, interpolation_);
  return out;
}

CenterCrop::CenterCrop(int64_t height, int64_t width) : height_(height), width_(width) {
  check_side(height, "CenterCrop");
  check_side(width, "CenterCrop");
}

Tensor CenterCrop::operator()(const Tensor& image) const {
  const Plane from = check_picture(image, "CenterCrop");
  return crop(image, from, middle_offset(from.height, height_), middle_offset(from.width, width_), height_,
              width_);
}

FiveCrop::FiveCrop(int64_t height, int64_t width) : height_(height), width_(width) {
  check_side(height, "FiveCrop");
  check_side(width, "FiveCrop");
}

Tensor FiveCrop::operator()(const Tensor& image) const {
  const Plane from = check_picture(image, "FiveCrop");
  return stack(five_crops(image, from, height_, width_, "FiveCrop"));
}

TenCrop::TenCrop(int64_t height, int64_t width, const TenCropOptions& options)
    : height_(height), width_(width), vertical_flip_(options.vertical_flip) {
  check_side(height, "TenCrop");
  check_side(width, "TenCrop");
}

Tensor TenCrop::operator()(const Tensor& image) const {
  const Plane from = check_picture(image, "TenCrop");
  std::vector<Tensor> crops = five_crops(image, from, height_, width_, "TenCrop");
  for (Tensor& flipped :
       five_crops(vertical_flip_ ? turn_over(image) : mirror(image), from, height_, width_, "TenCrop"))
    crops.push_back(std::move(flipped));
  return stack(crops);
}

RandomCrop::RandomCrop(int64_t height, int64_t width, int64_t padding)
    : height_(height), width_(width), padding_(padding) {
  check_side(height, "RandomCrop");
  check_side(width, "RandomCrop");
  TERN_CHECK(padding >= 0 && padding <= (int64_t{1} << 20), ValueError,
             "RandomCrop: padding must be 0 to 2^20, got {}", padding);
}

Tensor RandomCrop::operator()(const Tensor& image, Random& random) const {
  const Plane from = check_picture(image, "RandomCrop");
  const int64_t free_y = from.height + 2 * padding_ - height_, free_x = from.width + 2 * padding_ - width_;
  TERN_CHECK(
      free_y >= 0 && free_x >= 0, ValueError,
      "RandomCrop: a crop of {}x{} (height x width) is larger than the picture of {}x{} with padding {}",
      height_, width_, from.height, from.width, padding_);
  const int64_t top = random.below(free_y + 1) - padding_;
  const int64_t left = random.below(free_x + 1) - padding_;
  return crop(image, from, top, left, height_, width_);
}

RandomHorizontalFlip::RandomHorizontalFlip(double p) : p_(p) {
  detail::check_probability(p, "RandomHorizontalFlip");
}

Tensor RandomHorizontalFlip::operator()(const Tensor& image, Random& random) const {
  check_picture(image, "RandomHorizontalFlip");
  return random.chance(p_) ? mirror(image) : image;
}

RandomVerticalFlip::RandomVerticalFlip(double p) : p_(p) {
  detail::check_probability(p, "RandomVerticalFlip");
}

Tensor RandomVerticalFlip::operator()(const Tensor& image, Random& random) const {
  check_picture(image, "RandomVerticalFlip");
  return random.chance(p_) ? turn_over(image) : image;
}

RandomResizedCrop::RandomResizedCrop(int64_t height, int64_t width, const RandomResizedCropOptions& options)
    : resize_(height, width, options.interpolation), options_(options) {
  detail::check_positive_range(options.scale, "RandomResizedCrop", "scale");
  detail::check_positive_range(options.ratio, "RandomResizedCrop", "ratio");
}

Tensor RandomResizedCrop::operator()(const Tensor& image, Random& random) const {
  const Plane from = check_picture(image, "RandomResizedCrop");
  TERN_CHECK(from.pixels() > 0, ShapeError, "RandomResizedCrop: the picture is empty: {}",
             to_string(image.shape()));
  const auto [least, most] = options_.ratio;
  for (int tries = 0; tries < 10; ++tries) {
    const auto [width, height] = detail::random_sides(from, options_.scale, options_.ratio, random);
    if (width < 1 || height < 1 || width > static_cast<double>(from.width) ||
        height > static_cast<double>(from.height))
      continue;
    const auto w = static_cast<int64_t>(width), h = static_cast<int64_t>(height);
    const int64_t top = random.below(from.height - h + 1), left = random.below(from.width - w + 1);
    return resize_(crop(image, from, top, left, h, w));
  }
  const double ratio = static_cast<double>(from.width) / static_cast<double>(from.height);
  int64_t width = from.width, height = from.height;
  if (ratio < least)
    height = std::llrint(static_cast<double>(width) / least);
  else if (ratio > most)
    width = std::llrint(static_cast<double>(height) * most);
  width = std::max<int64_t>(width, 1);
  height = std::max<int64_t>(height, 1);
  return resize_(crop(image, from, (from.height - height) / 2, (from.width - width) / 2, height, width));
}

RandomErasing::RandomErasing(RandomErasingOptions options) : options_(std::move(options)) {
  detail::check_probability(options_.p, "RandomErasing");
  const auto [least, most] = options_.scale;
  TERN_CHECK(0 <= least && least <= most && most <= 1, ValueError,
             "RandomErasing: scale must be two parts of the area, 0 to 1, the smaller first, got {} and {}",
             least, most);
  detail::check_positive_range(options_.ratio, "RandomErasing", "ratio");
  TERN_CHECK(!options_.value.empty(), ValueError,
             "RandomErasing: value must be one number, or one for each channel; there is none");
}

Tensor RandomErasing::operator()(const Tensor& source, Random& random) const {
  const Plane plane = check_picture(source, "RandomErasing");
  const bool bytes = source.dtype() == DType::UInt8;
  TERN_CHECK(
      !options_.random_value || !bytes, DTypeError,
      "RandomErasing: random values are normal numbers, which uint8 cannot have; put ToFloat before it");
  if (!options_.random_value)
    detail::check_channel_values(options_.value, plane, source.dtype(), "RandomErasing", "value");
  if (!random.chance(options_.p)) return source;
  for (int tries = 0; tries < 10; ++tries) {
    const auto [height, width] = detail::random_sides(plane, options_.scale, options_.ratio, random);
    if (height >= static_cast<double>(plane.height) || width >= static_cast<double>(plane.width)) continue;
    const auto h = static_cast<int64_t>(height), w = static_cast<int64_t>(width);
    const int64_t top = random.below(plane.height - h + 1), left = random.below(plane.width - w + 1);
    Tensor out = source.contiguous().clone();
    const auto erase = [&]<class T>(T* data) {
      for (int64_t c = 0; c < plane.channels; ++c)
        for (int64_t y = top; y < top + h; ++y)
          for (int64_t x = left; x < left + w; ++x)
            data[(c * plane.height + y) * plane.width + x] =
                options_.random_value ? static_cast<T>(random.normal())
                                      : static_cast<T>(detail::channel_value(options_.value, c));
    };
    if (bytes)
      erase(out.data<uint8_t>());
    else
      erase(out.data<float>());
    return out;
  }
  return source;
}

Tensor image_to_tensor(const Image& image) {
  check_image(image, "image_to_tensor");
  Tensor out = detail::make_tensor({image.channels, image.height, image.width}, DType::UInt8);
  const int64_t n = image.height * image.width;
  uint8_t* to = out.data<uint8_t>();
  for (int64_t c = 0; c < image.channels; ++c) {
    const uint8_t* from = image.pixels.data() + c;
    for (int64_t i = 0; i < n; ++i, from += image.channels) *to++ = *from;
  }
  return out;
}

Image tensor_to_image(const Tensor& tensor) {
  TERN_CHECK(tensor.dim() == 2 || (tensor.dim() == 3 && (tensor.size(0) == 1 || tensor.size(0) == 3)),
             ShapeError,
             "tensor_to_image: expects [height, width] or [1 or 3 channels, height, width], got {}",
             to_string(tensor.shape()));
  TERN_CHECK(tensor.dtype() == DType::UInt8 || tensor.dtype() == DType::Float32, DTypeError,
             "tensor_to_image: expects uint8 or float32, got {}", name(tensor.dtype()));
  TERN_CHECK(tensor.device().is_cpu(), DeviceError,
             "tensor_to_image: works on the CPU, the tensor is on {}; move it with .cpu() before",
             tensor.device().str());
  const int64_t channels = tensor.dim() == 2 ? 1 : tensor.size(0);
  Image image{tensor.size(-2), tensor.size(-1), channels, Bytes(static_cast<size_t>(tensor.numel()))};
  check_image(image, "tensor_to_image");
  const Tensor in = tensor.detach().contiguous();
  const int64_t n = image.height * image.width;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < n; ++i) {
      uint8_t& to = image.pixels[static_cast<size_t>(i * channels + c)];
      if (in.dtype() == DType::UInt8) {
        to = in.data<uint8_t>()[c * n + i];
      } else {
        const float value = in.data<float>()[c * n + i];
        to = static_cast<uint8_t>(std::isnan(value) ? 0.0f
                                                    : std::nearbyint(std::clamp(value, 0.0f, 1.0f) * 255.0f));
      }
    }
  }
  return image;
}

}  // namespace tern::data
