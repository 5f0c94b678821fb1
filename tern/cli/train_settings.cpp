// Defaults, checks, and what is made of the settings.
#include "tern/cli/train_settings.h"

#include <algorithm>
#include <filesystem>

#include "tern/base/check.h"
#include "tern/cli/usage.h"
#include "tern/optim/adam.h"
#include "tern/optim/one_cycle_lr.h"
#include "tern/optim/rmsprop.h"
#include "tern/optim/sgd.h"
#include "tern/train/models.h"

namespace tern::cli {
namespace {

void check_name(const char* option, const std::string& given, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), given) != known.end()) return;
  const std::string hint = nearest(given, known);
  throw_usage("{}: unknown name '{}'{}; known are {}", option, given,
              hint.empty() ? "" : fmt::format(" (did you mean '{}'?)", hint), fmt::join(known, ", "));
}

}  // namespace

Schedule Schedule::parse(const std::string& text) {
  const auto parts = split(text, ':');
  Schedule schedule;
  schedule.kind = parts[0];
  check_name("--schedule", schedule.kind, {"none", "step", "exponential", "cosine", "onecycle"});
  auto count = [&](size_t least, size_t most, const char* form) {
    if (parts.size() < least || parts.size() > most)
      throw_usage("--schedule: write {}, not '{}'", form, text);
  };
  if (schedule.kind == "step") {
    count(2, 3, "step:EPOCHS or step:EPOCHS:FACTOR");
    schedule.step_size = parse_integer(parts[1], "--schedule: the epochs of step");
    if (parts.size() > 2) schedule.gamma = parse_number(parts[2], "--schedule: the factor of step");
    if (schedule.step_size < 1)
      throw_usage("--schedule: the epochs of step must be at least 1, got {}", schedule.step_size);
  } else if (schedule.kind == "exponential") {
    count(2, 2, "exponential:FACTOR");
    schedule.gamma = parse_number(parts[1], "--schedule: the factor of exponential");
  } else if (schedule.kind == "cosine") {
    count(1, 2, "cosine or cosine:LEAST");
    if (parts.size() > 1) schedule.eta_min = parse_number(parts[1], "--schedule: the least rate of cosine");
    if (schedule.eta_min < 0) throw_usage("--schedule: the least rate of cosine must not be negative");
  } else {
    count(1, 1, schedule.kind.c_str());
  }
  if (schedule.gamma <= 0) throw_usage("--schedule: the factor of {} must be positive", schedule.kind);
  return schedule;
}

std::unique_ptr<optim::LRScheduler> Schedule::make(optim::Optimizer& optimizer, double lr,
                                                   int64_t total_steps) const {
  if (kind == "step")
    return std::make_unique<optim::StepLR>(optimizer,
                                           optim::StepLROptions{.step_size = step_size, .gamma = gamma});
  if (kind == "exponential") return std::make_unique<optim::ExponentialLR>(optimizer, gamma);
  const int64_t steps = std::max<int64_t>(total_steps, 1);
  if (kind == "cosine")
    return std::make_unique<optim::CosineAnnealingLR>(
        optimizer, optim::CosineAnnealingLROptions{.T_max = steps, .eta_min = eta_min});
  if (kind == "onecycle")
    return std::make_unique<optim::OneCycleLR>(
        optimizer,
        optim::OneCycleLROptions{
            .max_lr = lr, .total_steps = steps, .cycle_momentum = optimizer.momentum().value_or(0) > 0});
  return nullptr;
}

void TrainSettings::complete() {
  check_name("--model", model, train::model_names());
  check_name("--optimizer", optimizer, {"sgd", "adam", "adamw", "rmsprop"});
  check_name("--precision", precision, {"fp32", "bf16", "fp16"});
  DataSource::parse(data);
  Schedule::parse(schedule);
  const bool has_momentum = optimizer == "sgd" || optimizer == "rmsprop";
  if (momentum && !has_momentum) throw_usage("--momentum is for sgd and rmsprop, not for {}", optimizer);
  if (!momentum && has_momentum) momentum = optimizer == "sgd" ? 0.9 : 0.0;
  if (!lr) lr = optimizer == "sgd" ? 0.05 : optimizer == "rmsprop" ? 0.001 : 0.003;
  if (!weight_decay) weight_decay = optimizer == "adamw" ? 0.01 : 0.0;
}

ValueDict TrainSettings::fixed() const {
  ValueDict dict;
  dict.set("model", model);
  dict.set("data", DataSource::parse(data).kind);
  dict.set("batch_size", batch_size);
  dict.set("optimizer", optimizer);
  dict.set("lr", *lr);
  dict.set("momentum", momentum ? Value(*momentum) : Value());
  dict.set("weight_decay", *weight_decay);
  dict.set("schedule", schedule);
  if (Schedule::parse(schedule).spans_run()) dict.set("epochs", epochs);
  dict.set("seed", static_cast<int64_t>(seed));
  dict.set("limit", limit);
  dict.set("image_size", image_size);
  if (precision != "fp32") dict.set("precision", precision);  // older runs do not name it
  return dict;
}

std::optional<DType> TrainSettings::autocast() const {
  if (precision == "bf16") return bfloat16;
  if (precision == "fp16") return float16;
  return std::nullopt;
}

ValueDict TrainSettings::free(const PictureFormat& format) const {
  DataSource source = DataSource::parse(data);
  if (!source.folder.empty())
    source.folder = std::filesystem::absolute(source.folder).lexically_normal().string();
  ValueDict dict;
  dict.set("data", source.str());
  dict.set("epochs", epochs);
  dict.set("pictures", format.to_value());
  dict.set("tern", TERN_VERSION);
  return dict;
}

std::unique_ptr<optim::Optimizer> TrainSettings::make_optimizer(std::vector<Tensor> params) const {
  if (optimizer == "sgd")
    return std::make_unique<optim::SGD>(
        std::move(params),
        optim::SGDOptions{.lr = *lr, .momentum = *momentum, .weight_decay = *weight_decay});
  if (optimizer == "rmsprop")
    return std::make_unique<optim::RMSprop>(
        std::move(params),
        optim::RMSpropOptions{.lr = *lr, .weight_decay = *weight_decay, .momentum = *momentum});
  if (optimizer == "adamw")
    return std::make_unique<optim::AdamW>(std::move(params),
                                          optim::AdamWOptions{.lr = *lr, .weight_decay = *weight_decay});
  return std::make_unique<optim::Adam>(std::move(params),
                                       optim::AdamOptions{.lr = *lr, .weight_decay = *weight_decay});
}

}  // namespace tern::cli
