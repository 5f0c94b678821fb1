// Checkpoints and states as trees of values: there and back, PyTorch's layout, refusals.
#include "tern/train/checkpoint.h"

#include <gtest/gtest.h>

#include "tern/base/error.h"
#include "tern/nn/linear.h"
#include "tern/ops/creation.h"
#include "tern/ops/reduce.h"
#include "tern/optim/grad_scaler.h"
#include "tern/optim/lr_scheduler.h"
#include "tern/optim/sgd.h"
#include "tern/train/state_value.h"
#include "tests/train/train_testing.h"

namespace tern::train {
namespace {

optim::OptimizerState adam_state() {
  optim::OptimizerState state;
  optim::StateMap entry;
  entry.set("step", full({}, 3.0));
  entry.set("exp_avg", ones({2, 3}));
  state.state.emplace_back(1, entry);
  optim::OptimizerState::Group group;
  group.options.set("lr", 1e-3);
  group.options.set("betas", std::vector<double>{0.9, 0.999});
  group.options.set("amsgrad", false);
  group.options.set("foreach", std::monostate());
  group.params = {0, 1};
  state.param_groups.push_back(group);
  return state;
}

Checkpoint some_checkpoint() {
  Checkpoint c;
  c.model.insert("fc.weight", ones({2, 3}));
  c.model.set_version("", 1);
  c.optimizer = adam_state();
  c.scheduler.emplace();
  c.scheduler->set("last_epoch", int64_t{4});
  c.scheduler->set("base_lrs", std::vector<double>{0.1});
  c.epoch = 2;
  c.step = 77;
  c.awaits_test = true;
  c.data = {0xFFFFFFFFFFFFFFFFull, 0x8000000000000001ull, 3, 7, 64, 1000};
  Generator generator;
  generator.set_state({0xF000000000000000ull, 12345});
  c.random = generator.bytes();
  c.settings.set("seed", 5);
  c.info.set("data", "digits");
  c.epoch_sums = {12.5, 90, 100, 100};
  c.interval_sums = {0.25, 3, 4, 4};
  EpochReport report;
  report.epoch = 1;
  report.test_accuracy = 0.1 + 0.2;
  c.history = {report};
  c.log_size = 4321;
  return c;
}

void expect_equal(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.awaits_test, b.awaits_test);
  EXPECT_EQ(a.data, b.data);
  EXPECT_EQ(a.random, b.random);
  EXPECT_EQ(a.epoch_sums, b.epoch_sums);
  EXPECT_EQ(a.interval_sums, b.interval_sums);
  EXPECT_EQ(a.log_size, b.log_size);
  EXPECT_EQ(b.settings.find("seed")->as_int(), 5);
  EXPECT_EQ(b.info.find("data")->as_str(), "digits");
  ASSERT_EQ(b.history.size(), 1u);
  EXPECT_EQ(b.history[0].test_accuracy, 0.1 + 0.2);
  EXPECT_EQ(b.model.at("fc.weight").to_vector<double>(), std::vector<double>(6, 1.0));
  EXPECT_EQ(b.scheduler->integer("last_epoch"), 4);
  ASSERT_EQ(b.optimizer.state.size(), 1u);
  EXPECT_EQ(b.optimizer.state[0].first, 1);
  EXPECT_EQ(b.optimizer.state[0].second.integer("step"), 3);
  EXPECT_EQ(b.optimizer.param_groups[0].params, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(b.optimizer.param_groups[0].options.number("lr"), 1e-3);
}

TEST(Checkpoint, ThereAndBack) {
  const Checkpoint c = some_checkpoint();
  expect_equal(c, Checkpoint::from_value(c.to_value()));
  const TemporaryFolder folder;
  c.save(folder.path() / "c.pt");
  expect_equal(c, Checkpoint::load(folder.path() / "c.pt"));
}

TEST(Checkpoint, KeepsAMersenneTwister) {
  Checkpoint c = some_checkpoint();
  Generator generator(5, RandomEngine::MersenneTwister);
  generator.reserve(1);
  c.random = generator.bytes();
  const Value value = c.to_value();
  EXPECT_EQ(value["random"].as_tensor().numel(), 5056);
  EXPECT_EQ(Checkpoint::from_value(value).random, c.random);
}

TEST(Checkpoint, WithoutASchedule) {
  Checkpoint c = some_checkpoint();
  c.scheduler.reset();
  EXPECT_FALSE(Checkpoint::from_value(c.to_value()).scheduler.has_value());
}

TEST(Checkpoint, OtherFilesAreRefused) {
  EXPECT_THROW(Checkpoint::from_value(Value()), CheckpointError);
  EXPECT_THROW(Checkpoint::from_value(Value{{"model", 1}}), CheckpointError);
  EXPECT_FALSE(Checkpoint::is_checkpoint(Value{{"format", 3}}));
  // Every entry is needed, and must be of its kind.
  const Value whole = some_checkpoint().to_value();
  for (const auto& [key, value] : whole.as_dict()) {
    Value wrong = some_checkpoint().to_value();
    wrong[key] = Value::bytes("?");
    EXPECT_THROW(Checkpoint::from_value(wrong), CheckpointError) << key.str();
    Value less = some_checkpoint().to_value();
    less.as_dict().erase(key);
    EXPECT_THROW(Checkpoint::from_value(less), CheckpointError) << key.str();
  }
  Value newer = some_checkpoint().to_value();
  newer["version"] = 2;
  EXPECT_THROW(Checkpoint::from_value(newer), CheckpointError);
  Value negative = some_checkpoint().to_value();
  negative["step"] = -1;
  EXPECT_THROW(Checkpoint::from_value(negative), CheckpointError);
}

TEST(StateValue, OptimizersHavePyTorchsLayout) {
  const Value value = to_value(adam_state());
  EXPECT_TRUE(value["state"][1]["exp_avg"].resolve().is_tensor());
  const Value& group = value["param_groups"][0];
  EXPECT_TRUE(group["betas"].resolve().is_tuple());
  EXPECT_TRUE(group["foreach"].is_none());
  EXPECT_FALSE(group["amsgrad"].as_bool());
  EXPECT_EQ(group["params"].as_list().size(), 2u);
  EXPECT_EQ(group.as_dict().entry(group.as_dict().size() - 1).key.as_str(), "params");
}

TEST(StateValue, StatesAreSavedAndLoadedAsTheyAre) {
  nn::Linear net(2, 1), other(2, 1);
  optim::SGD sgd(net.parameters(), {.lr = 0.5, .momentum = 0.9}), other_sgd(other.parameters());
  optim::StepLR schedule(sgd, {.step_size = 1}), other_schedule(other_sgd, {.step_size = 3});
  optim::GradScaler scaler({.init_scale = 8}), other_scaler;
  net(ones({1, 2})).sum().backward();
  sgd.step();
  schedule.step();

  const std::vector<std::byte> file = save_to_buffer({{"optimizer", sgd.state_dict()},
                                                      {"schedule", schedule.state_dict()},
                                                      {"scaler", scaler.state_dict()}});
  const Value saved = load_from_buffer(file);
  other_sgd.load_state_dict(saved["optimizer"]);
  static_cast<optim::LRScheduler&>(other_schedule).load_state_dict(saved["schedule"]);
  other_scaler.load_state_dict(saved["scaler"]);
  EXPECT_EQ(other_sgd.lr(), 0.05);
  EXPECT_EQ(other_sgd.options().momentum, 0.9);
  EXPECT_EQ(other_schedule.last_epoch(), 1);
  EXPECT_EQ(other_scaler.get_scale(), 8);
  EXPECT_EQ(Value(other_sgd.state_dict())["state"][0]["momentum_buffer"].as_tensor().to_vector<float>(),
            (std::vector<float>{1, 1}));
  // The whole file may be the state.
  other_sgd.load_state_dict(load_from_buffer(save_to_buffer(sgd.state_dict())));
  EXPECT_THROW(other_sgd.load_state_dict(saved["optimiser"]), IndexError);
  EXPECT_THROW(other_sgd.load_state_dict(saved["schedule"]), IndexError);
  EXPECT_THROW(other_schedule.load_state_dict(Value(3)), TypeError);
}

TEST(StateValue, ListsKeepTheirKind) {
  optim::StateMap inner;
  inner.set("x", 1.5);
  optim::StateMap map;
  map.set("ints", std::vector<int64_t>{30, 80});
  map.set("floats", std::vector<double>{0.5});
  map.set("maps", std::vector<optim::StateMap>{inner, inner});
  map.set("map", inner);
  map.set("text", std::string("cos"));
  map.set("milestones", std::vector<int64_t>{3, 6, 6});
  map.set("param_names", std::vector<std::string>{"weight", "bias"});
  map.set("lr_lambdas", std::vector<std::monostate>(2));
  const optim::StateMap back = to_state_map(to_value(map));
  ASSERT_EQ(back.size(), map.size());
  auto other = back.begin();
  for (const optim::StateEntry& entry : map) {
    EXPECT_EQ(entry.name, other->name);
    EXPECT_EQ(entry.value.index(), other->value.index()) << entry.name;
    ++other;
  }
}

TEST(StateValue, SchedulesHavePyTorchsKinds) {
  optim::StateMap map;
  map.set("milestones", std::vector<int64_t>{6, 3, 6});
  map.set("lr_lambdas", std::vector<std::monostate>(2));
  const Value value = to_value(map);
  const ValueObject& counter = value["milestones"].as_object();
  EXPECT_EQ(counter.class_name(), "collections.Counter");
  ASSERT_EQ(counter.entries.size(), 2u);
  EXPECT_EQ(counter.entries[0].key.as_int(), 6);
  EXPECT_EQ(counter.entries[0].value.as_int(), 2);
  EXPECT_EQ(value["lr_lambdas"].str(), "[None, None]");
}

TEST(StateValue, MilestonesOfAnyKind) {
  const std::pair<const char*, Value> rows[] = {
      {"a list, as Tern wrote it before", Value::list({3, 6, 6})},
      {"a dict", Value{{3, 1}, {6, 2}}},
      {"a Counter", to_value([] {
         optim::StateMap map;
         map.set("milestones", std::vector<int64_t>{3, 6, 6});
         return map;
       }())["milestones"]},
      {"a Counter of floats", Value{{3.0, 1}, {6, 2}}},
  };
  for (const auto& [what, value] : rows)
    EXPECT_EQ(to_state_map(Value{{"milestones", value}}).integers("milestones"),
              (std::vector<int64_t>{3, 6, 6}))
        << what;
  EXPECT_THROW(to_state_map(Value{{"milestones", Value{{3, int64_t{1} << 40}}}}), ValueError);
  EXPECT_THROW(to_state_map(Value{{"milestones", Value{{3, -1}}}}), ValueError);
}

/// LambdaLR's objects that are called like functions come with their attributes.
TEST(StateValue, LambdasOfAnyKind) {
  const Value lambdas = Value::list({nullptr, Value{{"warmup", Value::bytes("b")}}});
  const optim::StateMap map = to_state_map(Value{{"lr_lambdas", lambdas}});
  EXPECT_EQ(std::get<std::vector<std::monostate>>(map.find("lr_lambdas")->value).size(), 2u);
}

TEST(StateValue, StrangeValuesAreRefused) {
  EXPECT_THROW(to_state_map(Value{{"x", Value::bytes("b")}}), TypeError);
  EXPECT_THROW(to_state_map(Value{{3, 4}}), TypeError);
  EXPECT_THROW(to_state_map(Value{{"x", Value::list({1, "two"})}}), TypeError);
  EXPECT_THROW(to_optimizer_state(Value{{"state", 3}, {"param_groups", Value::list()}}), TypeError);
}

}  // namespace
}  // namespace tern::train
