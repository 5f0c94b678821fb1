// PicturePipeline: from the bytes of pictures to the tensors that a network takes: transform, floats,
// normalisation. Shared by the sets of pictures in memory (image_tensors.h) and in folders (image_folder.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/data/transforms.h"

namespace tern::data {

/// What a set of pictures gives, in this order of steps: `transform` on the bytes [channels, height, width],
/// then bytes to floats in [0, 1], then (x - mean) / std.
struct ImageOptions {
  /// Subtract the mean and divide by the deviation, the set's own or `mean` and `std` where given.
  bool normalize = false;
  std::vector<double> mean = {};
  std::vector<double> std = {};
  /// False leaves the pictures as they come out of `transform`: bytes if there is none.
  bool to_float = true;
  Transform transform = {};
};

/// The mean and deviation per channel of a set, by which `normalize` works when none are given.
struct ImageStatistics {
  std::vector<double> mean = {};
  std::vector<double> std = {};
};

/// The steps of ImageOptions. Safe to use from several threads if the transform is.
class PicturePipeline {
 public:
  /// `name` is for messages. Throws ValueError for options that contradict each other: normalize without
  /// floats, mean and std without normalize, of different lengths, or missing where the set has none.
  PicturePipeline(ImageOptions options, const ImageStatistics& statistics, std::string name);

  bool has_transform() const { return static_cast<bool>(options_.transform); }
  /// The first step, on one picture.
  Tensor transform(const Tensor& picture, Random& random) const;
  /// The other steps, on one picture or a batch [..., channels, height, width].
  Tensor finish(const Tensor& pictures) const;
  /// gather_rows() and finish() in one pass over the memory: the rows of `images`, uint8 [size, channels,
  /// height, width], plain memory on the CPU. The indices must be in range.
  Tensor gather(const Tensor& images, IntArrayRef indices) const;

 private:
  void check_channels(int64_t channels) const;
  void convert(const uint8_t* from, float* to, int64_t channels, int64_t pixels) const;

  ImageOptions options_;
  std::string name_;
  std::vector<float> table_;  ///< for each entry of mean (or for all channels) the floats of the 256 bytes
  int64_t tables_ = 1;
};

}  // namespace tern::data
