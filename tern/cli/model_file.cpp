// Finding the weights in a file and the network that they are of.
#include "tern/cli/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tern/base/check.h"
#include "tern/cli/usage.h"
#include "tern/io/file.h"
#include "tern/io/format.h"
#include "tern/io/serialize.h"
#include "tern/train/checkpoint.h"
#include "tern/train/models.h"

namespace tern::cli {
namespace {

struct Weights {
  StateDict dict;
  std::optional<PictureFormat> format;
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

Weights read_safetensors(const std::string& path) {
  SafetensorsFile file = load_safetensors(path);
  Weights weights{std::move(file.tensors), {}};
  if (auto pictures = file.metadata.find("tern.pictures"); pictures != file.metadata.end()) {
    try {
      weights.format = read_pictures(pictures->second);
    } catch (const nlohmann::json::exception& error) {
      TERN_THROW(CheckpointError, "'{}': metadata 'tern.pictures': {}", path, error.what());
    }
  }
  return weights;
}

/// The dict of tensors in what was loaded: the value itself, or the entry under which training programs put
/// it.
const Value& weights_in(const Value& value) {
  if (value.is_dict())
    for (const char* key : {"model", "state_dict", "model_state_dict"})
      if (const Value* inner = value.find(key); inner && inner->is_dict()) return *inner;
  return value;
}

Weights read_torch(const std::string& path) {
  const Value value = tern::load(path, {.map_location = "cpu"});
  return with_context(fmt::format("'{}'", path), [&] {
    Weights weights;
    if (train::Checkpoint::is_checkpoint(value)) {
      weights.dict = value["model"].as_state_dict();
      if (const Value* info = value.find("info"); info && info->is_dict() && info->contains("pictures"))
        weights.format = PictureFormat::from_value((*info)["pictures"]);
      return weights;
    }
    try {
      weights.dict = weights_in(value).as_state_dict();
    } catch (const TypeError& error) {
      TERN_THROW(CheckpointError, "no state dict in there: {}", error.what());
    }
    return weights;
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
  tern::load(path, {.map_location = "auto", .report = &report, .skip_data = true});
  for (LoadReport::Moved& group : report.moved) group.to = device;
  if (report.moved.empty()) return;
  for (const std::string& line : split(report.str(), '\n')) fmt::print(stderr, "tern: {}\n", line);
}

TrainedModel load_model(const std::string& path, const LoadModelOptions& options) {
  const auto& known = train::model_names();
  if (!options.model.empty() && std::find(known.begin(), known.end(), options.model) == known.end())
    throw_usage("--model: unknown name '{}'; known are {}", options.model, fmt::join(known, ", "));
  const bool safetensors = io::sniff_format(*io::open_file(path)) == io::FileFormat::Safetensors;
  Weights weights = safetensors ? read_safetensors(path) : read_torch(path);
  if (!safetensors) tell_absent_devices(path, options.device);  // the other format says nothing of devices
  TrainedModel model;
  with_context(fmt::format("'{}'", path), [&] {
    model.name = train::recognize_model(weights.dict);
    TERN_CHECK(!model.name.empty(), CheckpointError,
               "neither a LeNet (conv1, conv2, fc1, fc2, fc3) nor an MLP (fc1, fc2, ...): its tensors are {}",
               names_of(weights.dict));
    TERN_CHECK(options.model.empty() || options.model == model.name, CheckpointError,
               "holds the model '{}', not '{}'", model.name, options.model);
    train::PictureShape shape = train::picture_shape(model.name, weights.dict);
    if (weights.format) {
      TERN_CHECK(weights.format->channels == shape.channels || model.name == "mlp", CheckpointError,
                 "the network takes {} channels, the pictures that it was trained on had {}", shape.channels,
                 weights.format->channels);
      shape.channels = weights.format->channels;
      shape.height = weights.format->height;
      shape.width = weights.format->width;
    }
    model.format_known = weights.format.has_value() || !options.kind.empty();
    if (weights.format && (options.kind.empty() || options.kind == weights.format->kind))
      model.format = *weights.format;
    else
      model.format = format_for(!options.kind.empty() ? options.kind
                                : shape.channels == 1 ? "digits"
                                                      : "images",
                                shape);
    TERN_CHECK(model.format.classes.size() == static_cast<size_t>(shape.classes), CheckpointError,
               "the network has {} outputs, its classes have {} names", shape.classes,
               model.format.classes.size());
    model.net = train::load_model(model.name, shape, weights.dict);
  });
  model.net->to(options.device);
  model.net->eval();
  return model;
}

}  // namespace tern::cli
