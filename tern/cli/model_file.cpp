// Finding the weights in a file and the network that they are of.
#include "tern/cli/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tern/base/check.h"
#include "tern/cli/checkpoint_file.h"
#include "tern/cli/output.h"
#include "tern/cli/usage.h"
#include "tern/io/serialize.h"
#include "tern/io/torch_file.h"
#include "tern/nn/state_prefix.h"
#include "tern/train/checkpoint.h"
#include "tern/train/models.h"

namespace tern::cli {
namespace {

struct FoundModel {
  StateDict dict;
  std::optional<PictureFormat> format;  ///< where the file says
};

PictureFormat read_pictures(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  PictureFormat format;
  json.at("kind").get_to(format.kind);
  json.at("channels").get_to(format.channels);
  json.at("height").get_to(format.height);
  json.at("width").get_to(format.width);
  json.at("mean").get_to(format.mean);
  json.at("std").get_to(format.std);
  json.at("classes").get_to(format.classes);
  return PictureFormat::from_value(format.to_value());
}

/// Without what wrappers put before the names, as load_state_dict with the prefix "auto" takes them.
StateDict without_wrapper(const StateDict& dict) {
  std::vector<std::string> names;  // a LeNet's; an MLP has some of them
  for (const char* layer : {"conv1", "conv2", "fc1", "fc2", "fc3"})
    for (const char* part : {"weight", "bias"}) names.push_back(fmt::format("{}.{}", layer, part));
  const StateDict bare = nn::find_name_fix(dict, names).apply(dict);
  return train::recognize_model(bare).empty() ? dict : bare;
}

FoundModel read_model(const std::string& path) {
  const LoadedCheckpoint loaded = load_checkpoint(path);
  const Value& root = loaded.summary.root;
  return with_context(fmt::format("'{}'", path), [&] {
    FoundModel found;
    for (const auto& [name, value] : loaded.weights)
      with_context(fmt::format("'{}'", name),
                   [&, &name = name, &value = value] { found.dict.insert(name, value.as_tensor()); });
    found.dict = without_wrapper(found.dict);
    const auto& metadata = loaded.summary.metadata;
    if (const auto pictures = metadata.find("tern.pictures"); pictures != metadata.end()) {
      try {
        found.format = read_pictures(pictures->second);
      } catch (const nlohmann::json::exception& error) {
        TERN_THROW(CheckpointError, "metadata 'tern.pictures': {}", error.what());
      }
    }
    if (train::Checkpoint::is_checkpoint(root))
      if (const Value* info = root.find("info"); info && info->is_dict() && info->contains("pictures"))
        found.format = PictureFormat::from_value((*info)["pictures"]);
    return found;
  });
}

std::string names_of(const StateDict& dict) {
  std::string names;
  size_t shown = 0;
  for (const auto& [name, tensor] : dict) {
    if (shown++ == 6) return names + fmt::format(", ... ({} in all)", dict.size());
    names += (names.empty() ? "" : ", ") + name;
  }
  return names.empty() ? "none" : names;
}

PictureFormat format_for(const std::string& kind, const train::PictureShape& shape) {
  PictureFormat format = PictureFormat::of(kind, shape.height);
  format.height = shape.height;
  format.width = shape.width;
  TERN_CHECK(format.channels == shape.channels, CheckpointError,
             "the network takes {} channels, {} pictures have {}", shape.channels, kind, format.channels);
  if (format.classes.size() != static_cast<size_t>(shape.classes)) {
    format.classes.clear();
    for (int64_t i = 0; i < shape.classes; ++i) format.classes.push_back(std::to_string(i));
  }
  return format;
}

}  // namespace

void tell_absent_devices(const std::string& path, Device device) {
  LoadReport report;
  const LoadOptions options{
      .map_location = "auto", .weights_only = false, .report = &report, .skip_data = true};
  if (path == "-")
    io::read_checkpoint(open_input(path), options);
  else
    load(path, options);
  for (LoadReport::Moved& group : report.moved) group.to = device;
  if (report.moved.empty()) return;
  for (const std::string& line : split(report.str(), '\n')) print_error("tern", line);
}

TrainedModel load_model(const std::string& path, const LoadModelOptions& options) {
  const auto& known = train::model_names();
  if (!options.model.empty() && std::find(known.begin(), known.end(), options.model) == known.end())
    throw_usage("--model: unknown name '{}'; known are {}", options.model, fmt::join(known, ", "));
  const FoundModel found = read_model(path);
  tell_absent_devices(path, options.device);
  TrainedModel model;
  with_context(fmt::format("'{}'", path), [&] {
    model.name = train::recognize_model(found.dict);
    TERN_CHECK(!model.name.empty(), CheckpointError,
               "neither a LeNet (conv1, conv2, fc1, fc2, fc3) nor an MLP (fc1, fc2, ...): its tensors are {}",
               names_of(found.dict));
    TERN_CHECK(options.model.empty() || options.model == model.name, CheckpointError,
               "holds the model '{}', not '{}'", model.name, options.model);
    train::PictureShape shape = train::picture_shape(model.name, found.dict);
    if (found.format) {
      TERN_CHECK(found.format->channels == shape.channels || model.name == "mlp", CheckpointError,
                 "the network takes {} channels, the pictures that it was trained on had {}", shape.channels,
                 found.format->channels);
      shape.channels = found.format->channels;
      shape.height = found.format->height;
      shape.width = found.format->width;
    }
    model.format_known = found.format.has_value() || !options.kind.empty();
    if (found.format && (options.kind.empty() || options.kind == found.format->kind)) {
      model.format = *found.format;
    } else {
      model.format = format_for(!options.kind.empty() ? options.kind
                                : shape.channels == 1 ? "digits"
                                                      : "images",
                                shape);
      if (found.format) model.format.classes = found.format->classes;
    }
    TERN_CHECK(model.format.classes.size() == static_cast<size_t>(shape.classes), CheckpointError,
               "the network has {} outputs, its classes have {} names", shape.classes,
               model.format.classes.size());
    model.net = train::load_model(model.name, shape, found.dict);
  });
  model.net->to(options.device);
  model.net->eval();
  return model;
}

}  // namespace tern::cli
