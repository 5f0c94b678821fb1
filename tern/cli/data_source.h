// The value of --data: which data set, and how its pictures become what a network takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/data/image.h"
#include "tern/io/value.h"

namespace tern::cli {

/// "mnist:DIR" in its parts.
struct DataSource {
  std::string kind;    ///< digits, mnist, fashion, cifar10 or images
  std::string folder;  ///< empty for digits

  /// Throws UsageError.
  static DataSource parse(const std::string& text);
  std::string str() const { return folder.empty() ? kind : kind + ":" + folder; }
};

/// What pictures a network was trained on: enough to treat others in the same way.
struct PictureFormat {
  std::string kind;  ///< as in DataSource
  int64_t channels = 1;
  int64_t height = 28;
  int64_t width = 28;
  std::vector<double> mean;  ///< one for each channel
  std::vector<double> std;
  std::vector<std::string> classes;

  /// The format of a kind; of images with sides of `size` and no classes yet.
  static PictureFormat of(const std::string& kind, int64_t size = 32);
  Value to_value() const;
  /// Throws tern::Error for a value of another kind.
  static PictureFormat from_value(const Value& value);
};

/// "'cat', 'dog'"; of many the first, and how many they are.
std::string quoted_names(const std::vector<std::string>& names);

struct DataSets {
  PictureFormat format;
  std::optional<data::DatasetHandle> train;
  std::optional<data::DatasetHandle> test;
  std::string note;  ///< something that the user should know; may be empty
};

struct OpenDataOptions {
  bool train = true;
  bool test = true;
  int64_t limit = 0;        ///< at most so many samples of each part; 0: all
  int64_t image_size = 32;  ///< of images:DIR
  uint64_t seed = 0;        ///< of splitting a folder without parts
};

/// Reads the set. Throws what the data sets throw.
DataSets open_data(const DataSource& source, const OpenDataOptions& options);

/// What a network that was trained on `format` sees of a picture, and the float tensor [1, channels, height,
/// width] that it takes. Of digits, a light background is turned into a dark one, and the ink is scaled into
/// 20x20 and centred by its mass, as MNIST's makers did; of other kinds the middle is scaled to the size.
struct Seen {
  data::Image image;
  Tensor input;
};
Seen prepare_picture(const data::Image& picture, const PictureFormat& format);

}  // namespace tern::cli
