// Checkpoints as trees of values and back.
#include "tern/train/checkpoint.h"

#include "tern/base/check.h"
#include "tern/ops/random.h"
#include "tern/train/state_value.h"

namespace tern::train {
namespace {

constexpr const char* kFormat = "tern-checkpoint";
constexpr int64_t kVersion = 1;

/// Seeds use all 64 bits, and a Python int of 64 bits has a sign.
Value seed_value(uint64_t seed) { return static_cast<int64_t>(seed); }
template <class V>
uint64_t read_seed(const V& value) {
  return static_cast<uint64_t>(value.as_int());
}

template <class V>
int64_t read_count(const V& value, const char* what) {
  const int64_t count = value.as_int();
  TERN_CHECK(count >= 0, CheckpointError, "'{}' is negative: {}", what, count);
  return count;
}

Value random_value(const std::vector<uint8_t>& bytes) {
  Generator generator;
  generator.set_bytes(bytes);
  if (generator.engine() == RandomEngine::MersenneTwister) return get_rng_state(generator);
  const Generator::State state = generator.state();
  return {{"seed", seed_value(state.seed)}, {"position", seed_value(state.position)}};
}

std::vector<uint8_t> read_random(const Value& value) {
  Generator generator;
  if (value.is_tensor())
    set_rng_state(value.as_tensor(), generator);
  else
    generator.set_state({read_seed(value["seed"]), read_seed(value["position"])});
  return generator.bytes();
}

Value sums_value(const Averages::Sums& sums) {
  return Value::list({sums.loss, sums.correct, sums.judged, sums.count});
}

template <class V>
Averages::Sums read_sums(const V& value) {
  const auto& list = value.as_sequence();
  TERN_CHECK(list.size() == 4, CheckpointError, "sums of metrics have 4 entries, got {}", list.size());
  return {list[0].as_float(), list[1].as_int(), list[2].as_int(), list[3].as_int()};
}

Value report_value(const EpochReport& report) {
  return {{"epoch", report.epoch},
          {"step", report.step},
          {"loss", report.loss},
          {"accuracy", report.accuracy},
          {"test_loss", report.test_loss},
          {"test_accuracy", report.test_accuracy},
          {"lr", report.lr},
          {"seconds", report.seconds}};
}

EpochReport read_report(const Value& value) {
  EpochReport report;
  report.epoch = value["epoch"].as_int();
  report.step = value["step"].as_int();
  report.loss = value["loss"].as_float();
  report.accuracy = value["accuracy"].as_float();
  report.test_loss = value["test_loss"].as_float();
  report.test_accuracy = value["test_accuracy"].as_float();
  report.lr = value["lr"].as_float();
  report.seconds = value["seconds"].as_float();
  return report;
}

Checkpoint read_checkpoint(const Value& value) {
  Checkpoint c;
  c.model = value["model"].as_state_dict();
  c.optimizer = to_optimizer_state(value["optimizer"]);
  if (!value["scheduler"].is_none()) c.scheduler = to_state_map(value["scheduler"]);
  if (const Value* name = value.find("scheduler_name")) c.scheduler_name = name->as_str();
  if (const Value* scaler = value.find("grad_scaler"); scaler && !scaler->is_none())
    c.grad_scaler = to_state_map(*scaler);
  c.epoch = read_count(value["epoch"], "epoch");
  c.step = read_count(value["step"], "step");
  c.awaits_test = value["awaits_test"].as_bool();
  const ValueItem data = value["data"];
  c.data = {read_seed(data["seed"]),
            read_seed(data["sampler_seed"]),
            read_count(data["epoch"], "data.epoch"),
            read_count(data["batch"], "data.batch"),
            read_count(data["batch_size"], "data.batch_size"),
            read_count(data["dataset_size"], "data.dataset_size")};
  c.random = read_random(value["random"]);
  if (const Value* others = value.find("random_of_others"))
    for (const Value& random : others->as_list()) c.random_of_others.push_back(read_random(random));
  c.settings = value["settings"].as_dict();
  c.info = value["info"].as_dict();
  const ValueItem metrics = value["metrics"];
  c.epoch_sums = read_sums(metrics["epoch"]);
  c.interval_sums = read_sums(metrics["interval"]);
  for (const Value& report : metrics["history"].as_list()) c.history.push_back(read_report(report));
  c.log_size = static_cast<uint64_t>(read_count(metrics["log_size"], "metrics.log_size"));
  return c;
}

}  // namespace

Value Checkpoint::to_value() const {
  std::vector<Value> reports;
  for (const EpochReport& report : history) reports.push_back(report_value(report));
  Value all{{"format", kFormat},
            {"version", kVersion},
            {"model", model},
            {"optimizer", train::to_value(optimizer)},
            {"scheduler", scheduler ? train::to_value(*scheduler) : Value()},
            {"epoch", epoch},
            {"step", step},
            {"awaits_test", awaits_test},
            {"data", Value{{"seed", seed_value(data.seed)},
                           {"sampler_seed", seed_value(data.sampler_seed)},
                           {"epoch", data.epoch},
                           {"batch", data.batch},
                           {"batch_size", data.batch_size},
                           {"dataset_size", data.dataset_size}}},
            {"random", random_value(random)},
            {"settings", settings},
            {"info", info},
            {"metrics", Value{{"epoch", sums_value(epoch_sums)},
                              {"interval", sums_value(interval_sums)},
                              {"history", Value::list(std::move(reports))},
                              {"log_size", static_cast<int64_t>(log_size)}}}};
  if (!scheduler_name.empty()) all.as_dict().set("scheduler_name", scheduler_name);
  if (!random_of_others.empty()) {
    std::vector<Value> others;
    for (const auto& bytes : random_of_others) others.push_back(random_value(bytes));
    all.as_dict().set("random_of_others", Value::list(std::move(others)));
  }
  if (grad_scaler) all.as_dict().set("grad_scaler", train::to_value(*grad_scaler));
  return all;
}

bool Checkpoint::is_checkpoint(const Value& value) {
  if (!value.is_dict()) return false;
  const Value* format = value.find("format");
  return format && format->is_str() && format->as_str() == kFormat;
}

Checkpoint Checkpoint::from_value(const Value& value) {
  TERN_CHECK(is_checkpoint(value), CheckpointError,
             "not a checkpoint of a training run: those are dicts with 'format': '{}'", kFormat);
  try {
    const int64_t version = value["version"].as_int();
    TERN_CHECK(version == kVersion, CheckpointError,
               "checkpoint version {} is not known, only {}: use a newer tern", version, kVersion);
    return read_checkpoint(value);
  } catch (const CheckpointError&) {
    throw;
  } catch (const Error& error) {
    throw CheckpointError(std::string("broken checkpoint of a training run: ") + error.what());
  }
}

void Checkpoint::save(const std::filesystem::path& path) const { tern::save(to_value(), path); }

Checkpoint Checkpoint::load(const std::filesystem::path& path) {
  const Value value = tern::load(path, {.map_location = "cpu"});
  return with_context(fmt::format("loading '{}'", path.string()), [&] { return from_value(value); });
}

}  // namespace tern::train
