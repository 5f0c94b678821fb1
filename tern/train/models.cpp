// Names, sizes and weights of the networks.
#include "tern/train/models.h"

#include <algorithm>
#include <cmath>

#include "tern/base/check.h"
#include "tern/nn/models.h"

namespace tern::train {
namespace {

constexpr int64_t kHidden = 256;

/// A tensor of the dict with the expected rank.
const Tensor& weight(const StateDict& dict, const std::string& name, int64_t dims) {
  const Tensor* tensor = dict.find(name);
  TERN_CHECK(tensor, CheckpointError, "there is no tensor '{}'", name);
  TERN_CHECK(tensor->dim() == dims, CheckpointError, "'{}' should have {} dimensions, it has shape {}", name,
             dims, to_string(tensor->shape()));
  return *tensor;
}

/// The side of a square of this area, 0 when there is none.
int64_t square_side(int64_t area) {
  const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(area))));
  return side * side == area ? side : 0;
}

std::string layer_weight(size_t layer) { return fmt::format("fc{}.weight", layer); }

/// Inputs of all layers of an MLP, and the outputs of the last.
std::vector<int64_t> mlp_sizes(const StateDict& dict) {
  std::vector<int64_t> sizes = {weight(dict, layer_weight(1), 2).size(1)};
  for (size_t layer = 1; dict.contains(layer_weight(layer)); ++layer)
    sizes.push_back(weight(dict, layer_weight(layer), 2).size(0));
  return sizes;
}

PictureShape mlp_shape(const StateDict& dict) {
  const std::vector<int64_t> sizes = mlp_sizes(dict);
  PictureShape shape;
  shape.classes = sizes.back();
  // Nothing but the product is in the file: three channels are taken only where that alone gives a square.
  shape.channels = square_side(sizes[0]) > 0 ? 1 : 3;
  shape.height = shape.width = sizes[0] % shape.channels == 0 ? square_side(sizes[0] / shape.channels) : 0;
  TERN_CHECK(shape.height > 0, CheckpointError, "'fc1.weight' is not for square pictures: {} inputs",
             sizes[0]);
  return shape;
}

PictureShape lenet_shape(const StateDict& dict) {
  PictureShape shape;
  shape.channels = weight(dict, "conv1.weight", 4).size(1);
  shape.classes = weight(dict, "fc3.weight", 2).size(0);
  const int64_t inputs = weight(dict, "fc1.weight", 2).size(1);
  const int64_t side = inputs % 16 == 0 ? square_side(inputs / 16) : 0;
  TERN_CHECK(side > 0, CheckpointError,
             "'fc1.weight' should have 16 times a square number of inputs, it has {}", inputs);
  shape.height = shape.width = 4 * side + 8;
  return shape;
}

void check_name(const std::string& model) {
  const auto& names = model_names();
  TERN_CHECK(std::find(names.begin(), names.end(), model) != names.end(), ValueError,
             "unknown model '{}'; known are lenet and mlp", model);
}

nn::LeNet make_lenet(const PictureShape& shape) {
  return nn::LeNet({.in_channels = shape.channels,
                    .image_size = {shape.height, shape.width},
                    .num_classes = shape.classes});
}

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = {"lenet", "mlp"};
  return names;
}

nn::AnyModule make_model(const std::string& name, const PictureShape& shape) {
  check_name(name);
  TERN_CHECK(shape.channels >= 1 && shape.height >= 1 && shape.width >= 1 && shape.classes >= 1, ValueError,
             "{}: sizes must be at least 1, got pictures {}x{}x{} and {} classes", name, shape.channels,
             shape.height, shape.width, shape.classes);
  if (name == "lenet") return make_lenet(shape);
  return nn::MLP({shape.channels * shape.height * shape.width, kHidden, shape.classes});
}

std::string recognize_model(const StateDict& dict) {
  auto has_all = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&](const char* name) { return dict.contains(name); });
  };
  if (has_all({"conv1.weight", "conv2.weight", "fc1.weight", "fc2.weight", "fc3.weight"})) return "lenet";
  const bool only_layers =
      std::all_of(dict.begin(), dict.end(), [](const auto& entry) { return entry.first.starts_with("fc"); });
  return only_layers && has_all({"fc1.weight"}) ? "mlp" : "";
}

PictureShape picture_shape(const std::string& model, const StateDict& dict) {
  check_name(model);
  return model == "lenet" ? lenet_shape(dict) : mlp_shape(dict);
}

nn::AnyModule load_model(const std::string& model, const PictureShape& shape, const StateDict& dict) {
  check_name(model);
  picture_shape(model, dict);  // for its checks, before the sizes are used
  nn::AnyModule net =
      model == "lenet" ? nn::AnyModule(make_lenet(shape)) : nn::AnyModule(nn::MLP(mlp_sizes(dict)));
  net->load_state_dict(dict);
  return net;
}

}  // namespace tern::train
