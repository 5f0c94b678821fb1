// ImageFolder: pictures in one folder per class. Decoding is in image.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/data/picture_pipeline.h"

namespace tern::data {

/// How the pictures of a folder are read.
struct ImageFolderOptions {
  int64_t channels = 3;  ///< 3 (colour), 1 (grey), or 0: as in the file
  ImageOptions image = {};
};

/// Pictures (.png, .jpg, .jpeg) at any depth of root/CLASS/, links to folders followed. Classes are the names
/// of the folders in byte order, samples sorted by class, folder and name, as in torchvision. What a file is
/// is told by its content. Hidden files are left out; files with other endings are counted in
/// `other_files()`. An example is [picture, label]; pictures are read when asked for.
class ImageFolder : public Dataset {
 public:
  /// Throws IoError if the folder cannot be read; DataError if it has no folders, or one of them has no
  /// pictures; ValueError for contradicting options.
  explicit ImageFolder(const std::string& root, ImageFolderOptions options = {});

  int64_t size() const override { return static_cast<int64_t>(files_->samples.size()); }
  Example get(int64_t index) const override { return sample(index, RandomKey{}); }
  /// Throws IoError or DataError naming the file.
  Example sample(int64_t index, const RandomKey& key) const override;

  /// Names of the classes; a label is a place in this list.
  const std::vector<std::string>& classes() const { return files_->classes; }
  /// Path and label of every sample.
  const std::vector<std::pair<std::string, int64_t>>& samples() const { return files_->samples; }
  /// From now on this is done to the pictures. Not while another thread reads the set. Throws as the
  /// constructor.
  void set_options(ImageOptions options) {
    pipeline_ = PicturePipeline(std::move(options), {}, "ImageFolder");
  }
  /// How many files were left out because of their ending.
  int64_t other_files() const { return files_->other; }

 private:
  struct Files {
    std::vector<std::string> classes;
    std::vector<std::pair<std::string, int64_t>> samples;
    int64_t other = 0;
  };
  static std::shared_ptr<const Files> list(const std::string& root);

  std::shared_ptr<const Files> files_;
  int64_t channels_;
  PicturePipeline pipeline_;
};

}  // namespace tern::data
