// Defaults, checks, and what is made of the settings.
#include "tern/cli/train_settings.h"

#include <algorithm>
#include <filesystem>

#include "tern/base/check.h"
#include "tern/cli/usage.h"
#include "tern/optim/adadelta.h"
#include "tern/optim/adagrad.h"
#include "tern/optim/adam.h"
#include "tern/optim/adamax.h"
#include "tern/optim/asgd.h"
#include "tern/optim/nadam.h"
#include "tern/optim/one_cycle_lr.h"
#include "tern/optim/radam.h"
#include "tern/optim/rmsprop.h"
#include "tern/optim/sgd.h"
#include "tern/optim/warm_restarts.h"
#include "tern/train/models.h"

namespace tern::cli {
namespace {

void check_name(const char* option, const std::string& given, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), given) != known.end()) return;
  const std::string hint = nearest(given, known);
  throw_usage("{}: unknown name '{}'{}; known are {}", option, given,
              hint.empty() ? "" : fmt::format(" (did you mean '{}'?)", hint), fmt::join(known, ", "));
}

template <class O, class Options>
std::unique_ptr<optim::Optimizer> make(std::vector<Tensor> params, const TrainSettings& s) {
  Options options{.lr = *s.lr};
  options.weight_decay = *s.weight_decay;
  if constexpr (requires { options.momentum; }) options.momentum = *s.momentum;
  return std::make_unique<O>(std::move(params), options);
}

/// An optimizer for batches, with what stands where the command line says nothing.
struct OptimizerChoice {
  const char* name;
  std::unique_ptr<optim::Optimizer> (*make)(std::vector<Tensor> params, const TrainSettings& settings);
  double lr;
  std::optional<double> momentum = std::nullopt;
  double weight_decay = 0;
};

const std::vector<OptimizerChoice>& optimizers() {
  static const std::vector<OptimizerChoice> choices = {
      {"sgd", make<optim::SGD, optim::SGDOptions>, 0.05, 0.9},
      {"adam", make<optim::Adam, optim::AdamOptions>, 0.003},
      {"adamw", make<optim::AdamW, optim::AdamWOptions>, 0.003, std::nullopt, 0.01},
      {"rmsprop", make<optim::RMSprop, optim::RMSpropOptions>, 0.001, 0.0},
      {"adadelta", make<optim::Adadelta, optim::AdadeltaOptions>, 1.0},
      {"adagrad", make<optim::Adagrad, optim::AdagradOptions>, 0.01},
      {"adamax", make<optim::Adamax, optim::AdamaxOptions>, 0.003},
      {"asgd", make<optim::ASGD, optim::ASGDOptions>, 0.05},
      {"nadam", make<optim::NAdam, optim::NAdamOptions>, 0.003},
      {"radam", make<optim::RAdam, optim::RAdamOptions>, 0.003},
  };
  return choices;
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerChoice& choice : optimizers()) names.emplace_back(choice.name);
  return names;
}

/// Of a name that is known.
const OptimizerChoice& optimizer_choice(const std::string& name) {
  return *std::find_if(optimizers().begin(), optimizers().end(),
                       [&](const OptimizerChoice& choice) { return choice.name == name; });
}

}  // namespace

std::string optimizer_choices() {
  std::vector<std::string> names = optimizer_names();
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

std::string default_learning_rates() {
  std::vector<std::string> rates;
  for (const OptimizerChoice& choice : optimizers())
    rates.push_back(fmt::format("{} {}", choice.name, choice.lr));
  return fmt::format("{}", fmt::join(rates, ", "));
}

bool optimizer_has_momentum(const std::string& optimizer) {
  return std::any_of(optimizers().begin(), optimizers().end(), [&](const OptimizerChoice& choice) {
    return choice.name == optimizer && choice.momentum;
  });
}

Schedule Schedule::parse(const std::string& text) {
  const auto parts = split(text, ':');
  Schedule schedule;
  schedule.kind = parts[0];
  check_name("--schedule", schedule.kind,
             {"none", "step", "exponential", "restarts", "polynomial", "cosine", "onecycle"});
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
  } else if (schedule.kind == "restarts") {
    count(2, 3, "restarts:EPOCHS or restarts:EPOCHS:FACTOR");
    schedule.step_size = parse_integer(parts[1], "--schedule: the epochs of restarts");
    if (parts.size() > 2) schedule.growth = parse_integer(parts[2], "--schedule: the factor of restarts");
    if (schedule.step_size < 1 || schedule.growth < 1)
      throw_usage("--schedule: the epochs and the factor of restarts must be at least 1, got {} and {}",
                  schedule.step_size, schedule.growth);
  } else if (schedule.kind == "polynomial") {
    count(1, 2, "polynomial or polynomial:POWER");
    if (parts.size() > 1) schedule.power = parse_number(parts[1], "--schedule: the power of polynomial");
    if (schedule.power <= 0) throw_usage("--schedule: the power of polynomial must be positive");
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
  if (kind == "restarts")
    return std::make_unique<optim::CosineAnnealingWarmRestarts>(
        optimizer, optim::CosineAnnealingWarmRestartsOptions{.T_0 = step_size, .T_mult = growth});
  const int64_t steps = std::max<int64_t>(total_steps, 1);
  if (kind == "polynomial")
    return std::make_unique<optim::PolynomialLR>(
        optimizer, optim::PolynomialLROptions{.total_iters = steps, .power = power});
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
  check_name("--optimizer", optimizer, optimizer_names());
  check_name("--precision", precision, {"fp32", "bf16", "fp16"});
  DataSource::parse(data);
  Schedule::parse(schedule);
  const OptimizerChoice& choice = optimizer_choice(optimizer);
  if (momentum && !choice.momentum) throw_usage("--momentum is for sgd and rmsprop, not for {}", optimizer);
  if (!momentum) momentum = choice.momentum;
  if (!lr) lr = choice.lr;
  if (!weight_decay) weight_decay = choice.weight_decay;
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
  return optimizer_choice(optimizer).make(std::move(params), *this);
}

}  // namespace tern::cli
