// MNIST and its kin from folders of idx files.
#include "tern/data/mnist.h"

#include <algorithm>
#include <filesystem>

#include "tern/base/check.h"
#include "tern/data/idx.h"
#include "tern/data/rows.h"

namespace tern::data {
namespace {

struct Source {
  std::string set;     ///< "MNIST"
  std::string folder;  ///< where torchvision puts the files, below the root
  std::vector<std::string> classes;
  ImageStatistics statistics;
};

std::string find_file(const std::string& root, const Source& source, const std::string& stem) {
  namespace fs = std::filesystem;
  for (const char* folder : {"", "raw", source.folder.c_str()}) {
    for (const char* suffix : {"", ".gz"}) {
      const fs::path path = fs::path(root) / folder / (stem + suffix);
      std::error_code ignored;
      if (fs::is_regular_file(path, ignored)) return path.string();
    }
  }
  TERN_THROW(DataError, "{}: no file '{}' or '{}.gz' in '{}', nor in its folders raw/ and {}/", source.set,
             stem, stem, root, source.folder);
}

ImageTensors load(const std::string& root, bool train, ImageOptions options, const Source& source) {
  const std::string prefix = train ? "train" : "t10k";
  const std::string image_file = find_file(root, source, prefix + "-images-idx3-ubyte");
  const std::string label_file = find_file(root, source, prefix + "-labels-idx1-ubyte");
  const Bytes image_bytes = read_file_or_gzip(image_file);
  const Bytes label_bytes = read_file_or_gzip(label_file);
  const IdxView images = parse_idx(image_bytes, /*rank=*/3, image_file);
  const IdxView labels = parse_idx(label_bytes, /*rank=*/1, label_file);
  TERN_CHECK(images.shape[0] == labels.shape[0], DataError,
             "{}: '{}' has {} pictures (byte 4), '{}' has {} labels (byte 4)", source.set, image_file,
             images.shape[0], label_file, labels.shape[0]);
  std::vector<int64_t> list(labels.values.begin(), labels.values.end());
  for (size_t i = 0; i < list.size(); ++i) {
    TERN_CHECK(list[i] < 10, DataError, "'{}': byte {}: label {} of sample {} is out of range 0 to 9",
               label_file, 8 + i, list[i], i);
  }
  Tensor pictures = detail::make_tensor({images.shape[0], 1, images.shape[1], images.shape[2]}, DType::UInt8);
  std::copy(images.values.begin(), images.values.end(), pictures.data<uint8_t>());
  return ImageTensors(pictures, detail::tensor_from_list(list), source.classes, std::move(options),
                      source.statistics, source.set);
}

}  // namespace

MNIST::MNIST(const std::string& root, bool train, ImageOptions options)
    : ImageTensors(load(root, train, std::move(options),
                        {"MNIST",
                         "MNIST/raw",
                         {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"},
                         {{kMnistMean}, {kMnistStd}}})) {}

FashionMNIST::FashionMNIST(const std::string& root, bool train, ImageOptions options)
    : ImageTensors(load(root, train, std::move(options),
                        {"FashionMNIST",
                         "FashionMNIST/raw",
                         {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker",
                          "Bag", "Ankle boot"},
                         {{0.2860}, {0.3530}}})) {}

KMNIST::KMNIST(const std::string& root, bool train, ImageOptions options)
    : ImageTensors(load(root, train, std::move(options),
                        {"KMNIST",
                         "KMNIST/raw",
                         {"o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"},
                         /*statistics=*/{}})) {}

}  // namespace tern::data
