// ImageTensors: labelled pictures of one size that lie in memory as bytes. MNIST, CIFAR-10 and Digits are
// such sets; what is done to the pictures on the way out is in picture_pipeline.h.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/data/picture_pipeline.h"

namespace tern::data {

/// Pictures and labels in memory. An example is [picture, label]: float32 (or uint8) [channels, height,
/// width] and an int64 without dimensions. Copies share the data. A batch is gathered, converted and
/// normalised in one pass.
class ImageTensors : public Dataset {
 public:
  /// `images`: uint8 [size, channels, height, width]; `labels`: int64 [size], places in `classes`. `name` is
  /// for messages. Throws ShapeError, DTypeError, DeviceError (off the CPU), ValueError for options that
  /// contradict each other, DataError for a label outside the classes.
  ImageTensors(const Tensor& images, const Tensor& labels, std::vector<std::string> classes,
               ImageOptions options = {}, const ImageStatistics& statistics = {},
               const std::string& name = "ImageTensors");

  int64_t size() const override { return labels_.size(0); }
  Example get(int64_t index) const override { return sample(index, RandomKey{}); }
  Example sample(int64_t index, const RandomKey& key) const override;
  Batch get_batch(IntArrayRef indices, const RandomKey& key = {}) const override;

  /// uint8 [size, channels, height, width].
  const Tensor& images() const { return images_; }
  /// int64 [size].
  const Tensor& labels() const { return labels_; }
  /// Names of the classes; a label is a place in this list.
  const std::vector<std::string>& classes() const { return classes_; }
  /// From now on this is done to the pictures; `normalize` needs mean and std. Not while another thread
  /// reads the set. Throws as the constructor.
  void set_options(ImageOptions options) { pipeline_ = PicturePipeline(std::move(options), {}, name_); }

 private:
  Tensor picture(int64_t index, const RandomKey& key) const;

  Tensor images_;
  Tensor labels_;
  std::vector<std::string> classes_;
  std::string name_;
  PicturePipeline pipeline_;
};

}  // namespace tern::data
