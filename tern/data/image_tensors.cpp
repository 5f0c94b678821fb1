// Sets of pictures in memory.
#include "tern/data/image_tensors.h"

#include <algorithm>

#include "tern/base/check.h"
#include "tern/data/rows.h"

namespace tern::data {

ImageTensors::ImageTensors(const Tensor& images, const Tensor& labels, std::vector<std::string> classes,
                           ImageOptions options, const ImageStatistics& statistics, const std::string& name)
    : images_(images),
      labels_(labels),
      classes_(std::move(classes)),
      name_(name),
      pipeline_(std::move(options), statistics, name) {
  TERN_CHECK(images.dim() == 4, ShapeError, "{}: images must be [size, channels, height, width], got {}",
             name, to_string(images.shape()));
  TERN_CHECK(images.dtype() == DType::UInt8, DTypeError, "{}: images must be uint8, got {}", name,
             tern::name(images.dtype()));
  TERN_CHECK(labels.dim() == 1 && labels.size(0) == images.size(0), ShapeError,
             "{}: labels must be [{}], one for each image, got {}", name, images.size(0),
             to_string(labels.shape()));
  TERN_CHECK(labels.dtype() == DType::Int64, DTypeError, "{}: labels must be int64, got {}", name,
             tern::name(labels.dtype()));
  TERN_CHECK(
      images.device().is_cpu() && labels.device().is_cpu(), DeviceError,
      "{}: images and labels must be on the CPU, they are on {} and {}; let the DataLoader move the batches",
      name, images.device().str(), labels.device().str());
  images_ = images_.contiguous();
  labels_ = labels_.contiguous();
  const int64_t* label = labels_.data<int64_t>();
  for (int64_t i = 0; i < size(); ++i) {
    TERN_CHECK(label[i] >= 0 && label[i] < static_cast<int64_t>(classes_.size()), DataError,
               "{}: label {} of sample {} is out of range for {} classes", name, label[i], i,
               classes_.size());
  }
}

Tensor ImageTensors::picture(int64_t index, const RandomKey& key) const {
  const Tensor bytes = detail::gather_rows(images_, {index});
  Random random = key.random(index);
  return pipeline_.transform(Tensor::from_storage(bytes.storage(), DType::UInt8,
                                                  {images_.size(1), images_.size(2), images_.size(3)}),
                             random);
}

Example ImageTensors::sample(int64_t index, const RandomKey& key) const {
  detail::check_sample_index(index, size(), name_.c_str());
  return {pipeline_.finish(picture(index, key)), labels_.data<int64_t>()[index]};
}

Batch ImageTensors::get_batch(IntArrayRef indices, const RandomKey& key) const {
  if (pipeline_.has_transform()) return Dataset::get_batch(indices, key);
  TERN_CHECK(!indices.empty(), ValueError, "{}: the list of indices of the batch is empty", name_);
  for (const int64_t index : indices) detail::check_sample_index(index, size(), name_.c_str());
  return {pipeline_.gather(images_, indices), detail::gather_rows(labels_, indices)};
}

}  // namespace tern::data
