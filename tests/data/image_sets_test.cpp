// MNIST, FashionMNIST, CIFAR-10 and -100, ImageFolder and Digits: from made-up files, and from real MNIST
// where it lies at hand.
#include <algorithm>
#include <cstdlib>

#include "tern/data/cifar10.h"
#include "tern/data/cifar100.h"
#include "tern/data/data_loader.h"
#include "tern/data/digits.h"
#include "tern/data/image_folder.h"
#include "tern/data/mnist.h"
#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tests/data/data_testing.h"
#include "tests/data/picture_bytes.h"

namespace tern::data {
namespace {

using testing::expect_error;
using testing::gzip;
using testing::TempFolder;
using testing::unhex;
using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

Bytes idx(const std::vector<uint8_t>& shape, const Bytes& values) {
  Bytes bytes = {0, 0, 8, static_cast<uint8_t>(shape.size())};
  for (const uint8_t size : shape) bytes.insert(bytes.end(), {0, 0, 0, size});
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

TEST(MNIST, FromPlainAndGzippedFiles) {
  for (const bool zipped : {false, true}) {
    for (const std::string below : {"", "raw/", "MNIST/raw/"}) {
      TempFolder folder;
      const auto put = [&](const std::string& name, const Bytes& bytes) {
        folder.write(below + name + (zipped ? ".gz" : ""), zipped ? gzip(bytes) : bytes);
      };
      put("train-images-idx3-ubyte", idx({2, 2, 2}, {0, 51, 102, 255, 1, 2, 3, 4}));
      put("train-labels-idx1-ubyte", idx({2}, {7, 3}));
      const MNIST set(folder.path());
      EXPECT_EQ(set.size(), 2);
      const auto [x, y] = set.get(0);
      EXPECT_EQ(x.shape(), (Shape{1, 2, 2}));
      EXPECT_EQ(x.to_vector<float>(), (Floats{0, 0.2f, 0.4f, 1}));
      EXPECT_EQ(y.item<int64_t>(), 7);
      EXPECT_EQ(set.classes()[3], "3");
      expect_error<DataError>(
          [&] { MNIST(folder.path(), /*train=*/false); },
          {"MNIST: no file 't10k-images-idx3-ubyte' or 't10k-images-idx3-ubyte.gz'", folder.path()});
    }
  }
}

TEST(MNIST, BatchesEqualSamples) {
  TempFolder folder;
  Bytes pixels(6 * 4);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 10);
  folder.write("t10k-images-idx3-ubyte", idx({6, 2, 2}, pixels));
  folder.write("t10k-labels-idx1-ubyte", idx({6}, {0, 1, 2, 3, 4, 9}));
  const Transform flip = RandomHorizontalFlip();
  const ImageOptions cases[] = {{},
                                {.normalize = true},
                                {.normalize = true, .mean = {0.5}, .std = {0.25}},
                                {.to_float = false},
                                {.transform = flip},
                                {.to_float = false, .transform = flip},
                                {.normalize = true, .transform = Compose(flip, ToFloat())}};
  for (const ImageOptions& options : cases) {
    const MNIST set(folder.path(), /*train=*/false, options);
    const RandomKey key{5, 2};
    const Batch batch = set.get_batch({5, 0, 3}, key);
    EXPECT_EQ(batch.data.shape(), (Shape{3, 1, 2, 2}));
    EXPECT_EQ(batch.target.to_vector<int64_t>(), (Ints{9, 0, 3}));
    for (int64_t i = 0; i < 3; ++i) {
      const Example example = set.sample(Ints{5, 0, 3}[static_cast<size_t>(i)], key);
      EXPECT_EQ(example.data.dtype(), batch.data.dtype());
      EXPECT_EQ(example.data.to_vector<float>(), batch.data[i].to_vector<float>());
    }
  }
  const MNIST bytes(folder.path(), false, {.to_float = false});
  EXPECT_EQ(bytes.get(1).data.to_vector<uint8_t>(), (Bytes{40, 50, 60, 70}));
  const MNIST normalized(folder.path(), false, {.normalize = true});
  EXPECT_FLOAT_EQ(normalized.get(0).data.to_vector<float>()[0], -0.42421296f);
  expect_error<IndexError>([&] { bytes.get(6); }, {"MNIST: index 6", "6 samples"});
  expect_error<IndexError>([&] { bytes.get_batch({0, -1}); }, {"MNIST: index -1"});
  EXPECT_THROW(bytes.get_batch({}), ValueError);
}

TEST(MNIST, BrokenFiles) {
  const Bytes images = idx({2, 1, 1}, {1, 2}), labels = idx({2}, {1, 2});
  struct Case {
    Bytes images, labels;
    std::vector<std::string> pieces;
  };
  const Case cases[] = {
      {labels, labels, {"train-images-idx3-ubyte': byte 0", "wrong magic 0x00000801"}},
      {idx({2, 1, 1}, {1}), labels, {"train-images-idx3-ubyte': byte 17", "file is short"}},
      {images, idx({3}, {1, 2, 3}), {"has 2 pictures", "has 3 labels"}},
      {images, idx({2}, {1, 10}), {"train-labels-idx1-ubyte': byte 9", "label 10 of sample 1", "0 to 9"}},
      {{0x1F, 0x8B, 0}, labels, {"train-images-idx3-ubyte': byte 3", "ends early"}},
      {images, {}, {"train-labels-idx1-ubyte': byte 0", "0 bytes"}},
  };
  for (const Case& c : cases) {
    TempFolder folder;
    folder.write("train-images-idx3-ubyte", c.images);
    folder.write("train-labels-idx1-ubyte", c.labels);
    expect_error<DataError>([&] { MNIST{folder.path()}; }, c.pieces);
  }
  expect_error<DataError>([] { FashionMNIST("/nowhere"); },
                          {"FashionMNIST: no file", "/nowhere", "FashionMNIST/raw/"});
  expect_error<DataError>([] { KMNIST("/nowhere"); }, {"KMNIST: no file", "/nowhere", "KMNIST/raw/"});
}

TEST(ImageTensors, WhatIsDoneCanBeChanged) {
  Digits set({.size = 2});
  const Tensor floats = set.get(0).data;
  set.set_options({.to_float = false, .transform = CenterCrop(20)});
  EXPECT_EQ(set.get(0).data.dtype(), DType::UInt8);
  EXPECT_EQ(set.get_batch({0, 1}).data.shape(), (Shape{2, 1, 20, 20}));
  set.set_options({.normalize = true, .mean = {0}, .std = {0.5}});
  EXPECT_TRUE(equal(set.get(0).data, floats * 2));
  expect_error<ValueError>([&] { set.set_options({.normalize = true}); }, {"Digits", "mean and std"});
}

TEST(MNIST, Real) {
  const char* shared = std::getenv("TERN_SHARED_DIR");
  const std::string root = shared != nullptr ? std::string(shared) + "/data/mnist" : "";
  if (root.empty() || !std::filesystem::exists(root)) {
    GTEST_SKIP() << "real MNIST is not here: TERN_SHARED_DIR/data/mnist would hold it";
  }
  const MNIST train(root), test(root, /*train=*/false);
  EXPECT_EQ(train.images().shape(), (Shape{60000, 1, 28, 28}));
  EXPECT_EQ(test.size(), 10000);
  Ints counts(10);
  for (const int64_t label : train.labels().to_vector<int64_t>()) ++counts[static_cast<size_t>(label)];
  EXPECT_EQ(counts, (Ints{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}));
  DataLoader loader(train, {.batch_size = 256});
  double sum = 0, squares = 0;
  for (auto& [x, y] : loader) {
    const float* value = x.data<float>();
    for (int64_t i = 0; i < x.numel(); ++i) sum += value[i], squares += double{value[i]} * value[i];
  }
  const double mean = sum / (60000.0 * 784);
  EXPECT_NEAR(mean, kMnistMean, 1e-4);
  EXPECT_NEAR(std::sqrt(squares / (60000.0 * 784) - mean * mean), kMnistStd, 1e-4);
}

TEST(CIFAR10, FromBinaryFiles) {
  TempFolder folder;
  for (int file = 1; file <= 5; ++file) {
    Bytes bytes(2 * 3073);
    bytes[0] = static_cast<uint8_t>(file);
    bytes[1] = static_cast<uint8_t>(51 * file);
    bytes[3073] = 9;
    folder.write("cifar-10-batches-bin/data_batch_" + std::to_string(file) + ".bin", bytes);
  }
  const CIFAR10 set(folder.path());
  EXPECT_EQ(set.images().shape(), (Shape{10, 3, 32, 32}));
  EXPECT_EQ(set.labels().to_vector<int64_t>(), (Ints{1, 9, 2, 9, 3, 9, 4, 9, 5, 9}));
  EXPECT_EQ(set.get(4).data.to_vector<float>()[0], 0.6f);
  EXPECT_EQ(set.classes()[9], "truck");
  const CIFAR10 normalized(folder.path(), true, {.normalize = true});
  const Floats values = normalized.get(1).data.to_vector<float>();
  EXPECT_FLOAT_EQ(values[0], (0.0f - 0.4914f) / 0.2470f);
  EXPECT_FLOAT_EQ(values[1024], (0.0f - 0.4822f) / 0.2435f);
  EXPECT_EQ(normalized.get_batch({1}).data.to_vector<float>(), values);
  expect_error<DataError>([&] { CIFAR10(folder.path(), false); },
                          {"no file 'test_batch.bin'", folder.path()});
  std::filesystem::remove(folder.file("cifar-10-batches-bin/data_batch_4.bin"));
  expect_error<DataError>([&] { CIFAR10(folder.path()); }, {"no file 'data_batch_4.bin'"});
  folder.write("data_batch_4.bin", Bytes(100));
  expect_error<DataError>([&] { CIFAR10(folder.path()); }, {"data_batch_4.bin': byte 0", "inside a record"});
}

TEST(CIFAR100, FineAndCoarseLabels) {
  TempFolder folder;
  Bytes bytes(2 * 3074);
  bytes[0] = 17;
  bytes[1] = 47;
  bytes[2] = 51;
  bytes[3075] = 99;
  folder.write("test.bin", bytes);
  folder.write("cifar-100-binary/train.bin.gz", gzip(bytes));
  for (const bool train : {false, true}) {
    const CIFAR100 set(folder.path(), train, {.normalize = true});
    EXPECT_EQ(set.images().shape(), (Shape{2, 3, 32, 32}));
    EXPECT_EQ(set.labels().to_vector<int64_t>(), (Ints{47, 99}));
    EXPECT_EQ(set.classes().size(), 100u);
    EXPECT_EQ(set.classes()[47], "maple_tree");
    EXPECT_FLOAT_EQ(set.get(0).data.to_vector<float>()[0], (0.2f - 0.5071f) / 0.2673f);
  }
  const CIFAR100 coarse(folder.path(), false, {}, CIFAR100Labels::kCoarse);
  EXPECT_EQ(coarse.labels().to_vector<int64_t>(), (Ints{17, 0}));
  EXPECT_EQ(coarse.classes().size(), 20u);
  EXPECT_EQ(coarse.classes()[17], "trees");
  expect_error<DataError>([] { CIFAR100("/nowhere"); },
                          {"CIFAR100: no file 'train.bin'", "/nowhere", "cifar-100-binary/"});
}

TEST(ImageTensors, Errors) {
  const TensorOptions bytes{.dtype = uint8, .device = kCPU}, ints{.dtype = int64, .device = kCPU},
      floats{.device = kCPU};
  const Tensor images = zeros({2, 1, 3, 3}, bytes), labels = zeros({2}, ints);
  const auto make = [](const Tensor& x, const Tensor& y, ImageOptions options = {}) {
    ImageTensors(x, y, {"a", "b"}, std::move(options));
  };
  EXPECT_NO_THROW(make(images, labels));
  expect_error<ShapeError>([&] { make(zeros({2, 3, 3}, bytes), labels); }, {"[2, 3, 3]"});
  expect_error<DTypeError>(
      [&] {
        make(zeros({2, 1, 3, 3}, floats), labels);
      },
      {"must be uint8, got float32"});
  expect_error<ShapeError>([&] { make(images, zeros({3}, ints)); }, {"[2]", "got [3]"});
  expect_error<DTypeError>([&] { make(images, zeros({2}, floats)); }, {"must be int64, got float32"});
  expect_error<DataError>([&] { make(images, full({2}, 2, ints)); }, {"label 2 of sample 0", "2 classes"});
  expect_error<ValueError>([&] { make(images, labels, {.normalize = true}); }, {"needs mean and std"});
  expect_error<ValueError>([&] { make(images, labels, {.mean = {0.5}, .std = {1}}); }, {"without normalize"});
  expect_error<ValueError>(
      [&] { make(images, labels, {.normalize = true, .mean = {0.5}, .std = {1}, .to_float = false}); },
      {"to_float is false"});
  expect_error<ValueError>([&] { make(images, labels, {.normalize = true, .mean = {0.5}, .std = {0}}); },
                           {"std not 0"});
  const ImageTensors three(images, labels, {"a"}, {.normalize = true, .mean = {0, 0, 0}, .std = {1, 1, 1}});
  expect_error<ValueError>([&] { three.get(0); }, {"3 values, the pictures 1 channels"});
}

TEST(ImageFolder, SortedClassesAndPictures) {
  TempFolder folder;
  const Bytes png = unhex(testing::kRgb8), gray = unhex(testing::kGray8), jpeg = unhex(testing::kJpegRgb);
  folder.write("dog/2.png", png);
  folder.write("dog/1.PNG", jpeg);  // the content decides
  folder.write("cat/deep/x.jpg", jpeg);
  folder.write("cat/.hidden.png", png);
  folder.write("cat/notes.txt", png);
  folder.write("ant/a.png", gray);
  folder.write("README.md", png);
  const ImageFolder set(folder.path());
  EXPECT_EQ(set.classes(), (std::vector<std::string>{"ant", "cat", "dog"}));
  ASSERT_EQ(set.size(), 4);
  EXPECT_EQ(set.other_files(), 1);
  EXPECT_THAT(set.samples()[2].first, ::testing::HasSubstr("dog/1.PNG"));
  EXPECT_EQ(set.samples()[3].second, 2);
  const auto [x, y] = set.get(3);
  EXPECT_EQ(x.shape(), (Shape{3, 2, 2}));
  EXPECT_EQ(x.to_vector<float>()[0], 1.0f);
  EXPECT_EQ(y.item<int64_t>(), 2);
  EXPECT_EQ(set.get(0).data.shape(), (Shape{3, 2, 3}));
  EXPECT_EQ(ImageFolder(folder.path(), {.channels = 1}).get(3).data.shape(), (Shape{1, 2, 2}));
  EXPECT_EQ(ImageFolder(folder.path(), {.channels = 0}).get(0).data.shape(), (Shape{1, 2, 3}));

  DataLoader sized(
      ImageFolder(folder.path(),
                  {.image = {.normalize = true, .mean = {0.5}, .std = {0.5}, .transform = Resize(4, 4)}}),
      {.batch_size = 4, .num_workers = 2});
  for (auto& [images, labels] : sized) {
    EXPECT_EQ(images.shape(), (Shape{4, 3, 4, 4}));
    EXPECT_EQ(labels.to_vector<int64_t>(), (Ints{0, 1, 2, 2}));
  }
  DataLoader unsized_loader(set, {.batch_size = 4});
  expect_error<DataError>([&] { unsized_loader.begin(); }, {"epoch 0, batch 0", "differ in shape", "Resize"});
}

TEST(ImageFolder, FoldersComeInTorchvisionsOrderAndLinksAreFollowed) {
  TempFolder folder;
  const Bytes png = unhex(testing::kRgb8);
  for (const char* name : {"a/z.png", "a/b/x.png", "a/b-c/y.png", "elsewhere/w.png"}) folder.write(name, png);
  std::filesystem::create_directories(folder / "root");
  std::filesystem::rename(folder / "a", folder / "root/a");
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "root/a/link");
  std::filesystem::create_directory_symlink(folder / "root/a", folder / "root/a/b/up");  // a circle
  const ImageFolder set((folder / "root").string());
  std::vector<std::string> names;
  for (const auto& [path, label] : set.samples())
    names.push_back(path.substr((folder / "root").string().size()));
  EXPECT_EQ(names, (std::vector<std::string>{"/a/z.png", "/a/b/x.png", "/a/b-c/y.png", "/a/link/w.png"}));
}

TEST(ImageFolder, Errors) {
  TempFolder folder;
  expect_error<IoError>([&] { ImageFolder(folder.file("none")); }, {"cannot read", "none"});
  expect_error<DataError>([&] { ImageFolder(folder.path()); }, {"no folders in it"});
  folder.write("cat/broken.png", Bytes{0x89, 'P', 'N', 'G'});
  expect_error<ValueError>([&] { ImageFolder(folder.path(), {.channels = 4}); }, {"channels", "got 4"});
  expect_error<ValueError>([&] { ImageFolder(folder.path(), {.image = {.normalize = true}}); },
                           {"needs mean and std"});
  DataLoader loader(ImageFolder(folder.path()), {});
  expect_error<DataError>([&] { loader.begin(); },
                          {"DataLoader: epoch 0, batch 0: sample 0: ", "cat/broken.png': byte 0"});
  std::filesystem::create_directories(folder.file("dog"));
  expect_error<DataError>([&] { ImageFolder(folder.path()); }, {"no .png, .jpg or .jpeg files", "/dog"});
}

TEST(Digits, DependOnSeedPartAndIndexAlone) {
  const Digits set({.size = 200}), longer({.size = 300}), test({.train = false, .size = 200}),
      other({.size = 200, .seed = 1});
  EXPECT_EQ(set.images().shape(), (Shape{200, 1, 28, 28}));
  const Bytes pixels = set.images().to_vector<uint8_t>(), more = longer.images().to_vector<uint8_t>();
  EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(), more.begin()));
  EXPECT_NE(pixels, test.images().to_vector<uint8_t>());
  EXPECT_NE(pixels, other.images().to_vector<uint8_t>());
  EXPECT_EQ(set.get(37).target.item<int64_t>(), 7);
  EXPECT_EQ(Digits({.size = 0}).size(), 0);
  EXPECT_THROW(Digits({.size = -1}), ValueError);
}

TEST(Digits, LookLikeMnist) {
  const Digits set({.size = 500});
  const uint8_t* pixel = set.images().data<uint8_t>();
  double total = 0;
  for (int64_t i = 0; i < set.size(); ++i, pixel += 784) {
    double ink = 0, x_sum = 0, y_sum = 0, border = 0;
    int peak = 0;
    for (int y = 0; y < 28; ++y) {
      for (int x = 0; x < 28; ++x) {
        const int value = pixel[y * 28 + x];
        ink += value;
        x_sum += value * x;
        y_sum += value * y;
        peak = std::max(peak, value);
        if (x == 0 || y == 0 || x == 27 || y == 27) border = std::max<double>(border, value);
      }
    }
    EXPECT_GT(peak, 120) << i;
    EXPECT_LT(border, 10) << i;
    EXPECT_NEAR(x_sum / ink, 13.5, 3) << i;
    EXPECT_NEAR(y_sum / ink, 13.5, 3) << i;
    total += ink;
  }
  // MNIST's mean is 0.1307.
  EXPECT_NEAR(total / 500 / 784 / 255, 0.12, 0.04);
}

}  // namespace
}  // namespace tern::data
