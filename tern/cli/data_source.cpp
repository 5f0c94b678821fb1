// Opening data sets by name.
#include "tern/cli/data_source.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "tern/base/check.h"
#include "tern/cli/usage.h"
#include "tern/data/cifar10.h"
#include "tern/data/digits.h"
#include "tern/data/image_folder.h"
#include "tern/data/mnist.h"
#include "tern/data/transforms.h"
#include "tern/io/utf8.h"

namespace tern::cli {
namespace {

const std::vector<std::string> kKinds = {"digits", "mnist", "fashion", "cifar10", "images"};

data::ImageOptions image_options(const PictureFormat& format) {
  return {.normalize = true, .mean = format.mean, .std = format.std};
}

data::DatasetHandle limited(data::DatasetHandle dataset, int64_t limit) {
  if (limit == 0 || limit >= dataset->size()) return dataset;
  std::vector<int64_t> first(static_cast<size_t>(limit));
  std::iota(first.begin(), first.end(), int64_t{0});
  return data::Subset(std::move(dataset), std::move(first));
}

/// The parts of a set of pictures in memory; `make(train)` reads one.
template <class Make>
void open_parts(DataSets& sets, const OpenDataOptions& options, Make&& make) {
  auto open = [&](bool train) {
    data::ImageTensors part = make(train);
    sets.format.height = part.images().size(2);
    sets.format.width = part.images().size(3);
    sets.format.classes = part.classes();
    return limited(std::move(part), options.limit);
  };
  if (options.train) sets.train = open(true);
  if (options.test) sets.test = open(false);
}

std::optional<std::string> subfolder(const std::string& folder, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto path = std::filesystem::path(folder) / name;
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) return path.string();
  }
  return std::nullopt;
}

data::ImageFolder open_folder(const std::string& folder, const PictureFormat& format) {
  data::ImageOptions image = image_options(format);
  image.transform = data::Compose(data::Resize(format.height), data::CenterCrop(format.height));
  data::ImageFolder pictures(folder, {.channels = format.channels, .image = std::move(image)});
  for (const std::string& name : pictures.classes())
    TERN_CHECK(io::is_utf8(name), DataError,
               "the name of the class folder '{}/{}' is not UTF-8, as checkpoints need it: rename the folder",
               folder, name);
  return pictures;
}

void open_images(DataSets& sets, const std::string& folder, const OpenDataOptions& options) {
  const auto train = subfolder(folder, {"train"}),
             test = subfolder(folder, {"test", "val", "valid", "validation"});
  if (train && test) {
    const data::ImageFolder train_set = open_folder(*train, sets.format),
                            test_set = open_folder(*test, sets.format);
    TERN_CHECK(train_set.classes() == test_set.classes(), DataError,
               "'{}' and '{}' have different classes: both need the same folders", *train, *test);
    sets.format.classes = train_set.classes();
    if (options.train) sets.train = limited(train_set, options.limit);
    if (options.test) sets.test = limited(test_set, options.limit);
    return;
  }
  const data::ImageFolder all = open_folder(folder, sets.format);
  sets.format.classes = all.classes();
  TERN_CHECK(all.size() > 1, DataError,
             "'{}' has one picture only: one for training and one for testing are needed", folder);
  const int64_t for_testing = std::max<int64_t>(all.size() / 10, 1);
  const auto parts =
      data::random_split(all, {all.size() - for_testing, for_testing}, Generator(options.seed));
  sets.note = fmt::format(
      "'{}' has no folders train/ and test/: a random tenth of the pictures ({} of {}) is for testing",
      folder, for_testing, all.size());
  if (options.train) sets.train = limited(parts[0], options.limit);
  if (options.test) sets.test = limited(parts[1], options.limit);
}

}  // namespace

DataSource DataSource::parse(const std::string& text) {
  const size_t colon = text.find(':');
  DataSource source{text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
  if (std::find(kKinds.begin(), kKinds.end(), source.kind) == kKinds.end()) {
    const std::string hint = nearest(source.kind, kKinds);
    throw_usage(
        "--data: unknown data set '{}'{}; known are digits, mnist:DIR, fashion:DIR, cifar10:DIR and "
        "images:DIR",
        source.kind, hint.empty() ? "" : fmt::format(" (did you mean '{}'?)", hint));
  }
  if (source.kind == "digits" && colon != std::string::npos)
    throw_usage("--data: digits are generated and take no folder, got '{}'", text);
  if (source.kind != "digits" && source.folder.empty())
    throw_usage("--data: {} needs the folder with its files: {}:DIR", source.kind, source.kind);
  return source;
}

PictureFormat PictureFormat::of(const std::string& kind, int64_t size) {
  const std::vector<std::string> digits = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  if (kind == "fashion") return {kind, 1, 28, 28, {0.2860}, {0.3530}, {}};
  if (kind == "cifar10") return {kind, 3, 32, 32, {0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}, {}};
  // The usual numbers, those of ImageNet.
  if (kind == "images") return {kind, 3, size, size, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}, {}};
  return {kind, 1, 28, 28, {data::kMnistMean}, {data::kMnistStd}, digits};
}

Value PictureFormat::to_value() const {
  return {{"kind", kind}, {"channels", channels}, {"height", height},  {"width", width},
          {"mean", mean}, {"std", std},           {"classes", classes}};
}

PictureFormat PictureFormat::from_value(const Value& value) {
  PictureFormat format;
  format.kind = value["kind"].as_str();
  format.channels = value["channels"].as_int();
  format.height = value["height"].as_int();
  format.width = value["width"].as_int();
  for (const Value& number : value["mean"].as_list()) format.mean.push_back(number.as_float());
  for (const Value& number : value["std"].as_list()) format.std.push_back(number.as_float());
  for (const Value& name : value["classes"].as_list()) format.classes.push_back(name.as_str());
  TERN_CHECK((format.channels == 1 || format.channels == 3) && format.height > 0 && format.width > 0 &&
                 format.height <= 4096 && format.width <= 4096,
             CheckpointError, "pictures of {}x{}x{} are out of range", format.channels, format.height,
             format.width);
  const auto channels = static_cast<size_t>(format.channels);
  TERN_CHECK(format.mean.size() == channels && format.std.size() == channels, CheckpointError,
             "mean and std need one number for each of the {} channels", channels);
  return format;
}

std::string quoted_names(const std::vector<std::string>& names) {
  constexpr size_t kMost = 4;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", names[i]);
  return names.size() > kMost ? fmt::format("{}, ... ({} in all)", text, names.size()) : text;
}

DataSets open_data(const DataSource& source, const OpenDataOptions& options) {
  DataSets sets;
  sets.format = PictureFormat::of(source.kind, options.image_size);
  const data::ImageOptions image = image_options(sets.format);
  if (source.kind == "images") {
    open_images(sets, source.folder, options);
  } else {
    open_parts(sets, options, [&](bool train) -> data::ImageTensors {
      if (source.kind == "mnist") return data::MNIST(source.folder, train, image);
      if (source.kind == "fashion") return data::FashionMNIST(source.folder, train, image);
      if (source.kind == "cifar10") return data::CIFAR10(source.folder, train, image);
      // A longer set begins with the shorter one, so that only as many are drawn as are used.
      const int64_t all = train ? 20'000 : 4'000;
      const int64_t size = options.limit > 0 ? std::min(options.limit, all) : all;
      return data::Digits({.train = train, .size = size, .image = image});
    });
  }
  for (const auto* part : {&sets.train, &sets.test})
    TERN_CHECK(!*part || (**part)->size() > 0, DataError, "'{}' has no samples", source.str());
  return sets;
}

}  // namespace tern::cli
