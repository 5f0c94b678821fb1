// CIFAR-10 from a folder of binary files.
#include "tern/data/cifar10.h"

#include <utility>

#include "tern/base/check.h"
#include "tern/data/cifar_binary.h"
#include "tern/data/rows.h"

namespace tern::data {
namespace {

ImageTensors load_cifar10(const std::string& root, bool train, ImageOptions options) {
  std::vector<std::string> files = {"test_batch.bin"};
  if (train) {
    files.clear();
    for (int i = 1; i <= 5; ++i) files.push_back(fmt::format("data_batch_{}.bin", i));
  }
  CifarRecords records = read_cifar(root, {"CIFAR10", "cifar-10-batches-bin", {{"label", 10}}}, files);
  return ImageTensors(
      take_cifar_images(records), detail::tensor_from_list(records.labels[0]),
      {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"},
      std::move(options), {{0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}}, "CIFAR10");
}

}  // namespace

CIFAR10::CIFAR10(const std::string& root, bool train, ImageOptions options)
    : ImageTensors(load_cifar10(root, train, std::move(options))) {}

}  // namespace tern::data
