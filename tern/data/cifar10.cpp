// CIFAR-10 from a folder of binary files.
#include "tern/data/cifar10.h"

#include <filesystem>

#include "tern/base/check.h"
#include "tern/data/cifar_binary.h"
#include "tern/data/rows.h"

namespace tern::data {
namespace {

std::string find_file(const std::string& root, const std::string& file) {
  namespace fs = std::filesystem;
  for (const char* folder : {"", "cifar-10-batches-bin"}) {
    for (const char* suffix : {"", ".gz"}) {
      const fs::path path = fs::path(root) / folder / (file + suffix);
      std::error_code ignored;
      if (fs::is_regular_file(path, ignored)) return path.string();
    }
  }
  TERN_THROW(DataError, "CIFAR10: no file '{}' or '{}.gz' in '{}', nor in its folder cifar-10-batches-bin/",
             file, file, root);
}

ImageTensors load(const std::string& root, bool train, ImageOptions options) {
  std::vector<std::string> files = {"test_batch.bin"};
  if (train) {
    files.clear();
    for (int i = 1; i <= 5; ++i) files.push_back(fmt::format("data_batch_{}.bin", i));
  }
  Bytes pictures;
  std::vector<int64_t> labels;
  for (const std::string& file : files) {
    const std::string path = find_file(root, file);
    parse_cifar10(read_file_or_gzip(path), path, pictures, labels);
  }
  const auto count = static_cast<int64_t>(labels.size());
  return ImageTensors(
      detail::tensor_from_bytes(std::move(pictures), {count, 3, kCifarSide, kCifarSide}),
      detail::tensor_from_list(labels),
      {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"},
      std::move(options), {{0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}}, "CIFAR10");
}

}  // namespace

CIFAR10::CIFAR10(const std::string& root, bool train, ImageOptions options)
    : ImageTensors(load(root, train, std::move(options))) {}

}  // namespace tern::data
