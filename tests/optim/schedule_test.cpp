// The schedules against PyTorch's numbers, and resuming.
#include <gmock/gmock.h>

#include <functional>
#include <memory>

#include "tern/optim/adagrad.h"
#include "tern/optim/adam.h"
#include "tern/optim/one_cycle_lr.h"
#include "tern/optim/reduce_lr_on_plateau.h"
#include "tern/optim/rmsprop.h"
#include "tern/optim/sequential_lr.h"
#include "tern/optim/sgd.h"
#include "tests/optim/support.h"

namespace tern::optim {
namespace {

using ::testing::HasSubstr;
using namespace tern::testing;

struct ScheduleCase {
  std::string name;
  std::function<std::unique_ptr<LRScheduler>(Optimizer&)> make;
};

std::vector<ScheduleCase> schedule_cases() {
  return {
      {"step",
       [](Optimizer& o) { return std::make_unique<StepLR>(o, StepLROptions{.step_size = 7, .gamma = 0.5}); }},
      {"multi_step",
       [](Optimizer& o) {
         return std::make_unique<MultiStepLR>(o,
                                              MultiStepLROptions{.milestones = {33, 5, 20, 5}, .gamma = 0.3});
       }},
      {"constant",
       [](Optimizer& o) {
         return std::make_unique<ConstantLR>(o, ConstantLROptions{.factor = 0.25, .total_iters = 9});
       }},
      {"linear",
       [](Optimizer& o) {
         return std::make_unique<LinearLR>(
             o, LinearLROptions{.start_factor = 0.1, .end_factor = 0.9, .total_iters = 30});
       }},
      {"exponential", [](Optimizer& o) { return std::make_unique<ExponentialLR>(o, 0.93); }},
      {"cosine",
       [](Optimizer& o) {
         return std::make_unique<CosineAnnealingLR>(o,
                                                    CosineAnnealingLROptions{.T_max = 20, .eta_min = 0.01});
       }},
      {"lambda",
       [](Optimizer& o) {
         return std::make_unique<LambdaLR>(
             o, [](int64_t epoch) { return 1.0 / (1 + 0.1 * static_cast<double>(epoch)); });
       }},
      {"one_cycle",
       [](Optimizer& o) {
         return std::make_unique<OneCycleLR>(o, OneCycleLROptions{.max_lr = 0.5, .total_steps = 50});
       }},
      {"one_cycle_linear",
       [](Optimizer& o) {
         return std::make_unique<OneCycleLR>(o, OneCycleLROptions{.max_lr = 0.5,
                                                                  .epochs = 5,
                                                                  .steps_per_epoch = 10,
                                                                  .pct_start = 0.4,
                                                                  .anneal_strategy = "linear",
                                                                  .div_factor = 10,
                                                                  .final_div_factor = 100});
       }},
      {"one_cycle_three",
       [](Optimizer& o) {
         return std::make_unique<OneCycleLR>(
             o, OneCycleLROptions{.max_lr = 0.5, .total_steps = 50, .pct_start = 0.35, .three_phase = true});
       }},
      {"sequential",
       [](Optimizer& o) {
         std::vector<std::shared_ptr<LRScheduler>> parts = {
             std::make_shared<LinearLR>(o, LinearLROptions{.start_factor = 0.1, .total_iters = 5}),
             std::make_shared<ExponentialLR>(o, 0.9),
             std::make_shared<CosineAnnealingLR>(o, CosineAnnealingLROptions{.T_max = 30})};
         return std::make_unique<SequentialLR>(o, std::move(parts),
                                               SequentialLROptions{.milestones = {5, 20}});
       }},
  };
}

class Schedules : public ::testing::TestWithParam<ScheduleCase> {};
INSTANTIATE_TEST_SUITE_P(All, Schedules, ::testing::ValuesIn(schedule_cases()),
                         [](const auto& row) { return row.param.name; });

bool cycles_momentum(const std::string& name) { return name.starts_with("one_cycle"); }

TEST_P(Schedules, FiftyEpochsGivePyTorchsNumbers) {
  SGD optimizer({parameter({0})}, {.lr = 0.4, .momentum = 0.7});
  auto schedule = GetParam().make(optimizer);
  std::vector<double> lrs, momenta;
  for (int epoch = 0; epoch < 50; ++epoch) {
    EXPECT_EQ(schedule->last_epoch(), epoch);
    EXPECT_EQ(schedule->get_last_lr(), std::vector<double>{optimizer.lr()});
    lrs.push_back(optimizer.lr());
    momenta.push_back(*optimizer.momentum());
    schedule->step();
  }
  expect_near(lrs, row(tables::schedules, GetParam().name), 1e-12, 1e-15);
  if (cycles_momentum(GetParam().name)) expect_near(momenta, row(tables::momenta, GetParam().name), 1e-12, 0);
}

TEST_P(Schedules, ResumesWithTheSameNumbers) {
  const std::vector<double>& wanted = testing::row(tables::schedules, GetParam().name);
  for (int stop : {0, 3, 5, 19, 33}) {
    SGD optimizer({parameter({0})}, {.lr = 0.4, .momentum = 0.7});
    auto schedule = GetParam().make(optimizer);
    for (int epoch = 0; epoch < stop; ++epoch) schedule->step();
    SGD other({parameter({0})}, {.lr = 0.4, .momentum = 0.7});
    auto resumed = GetParam().make(other);
    other.load_state_dict(optimizer.state_dict());
    resumed->load_state_dict(schedule->state_dict());
    EXPECT_EQ(resumed->get_last_lr(), schedule->get_last_lr());
    std::vector<double> lrs;
    for (int epoch = stop; epoch < 50; ++epoch) {
      lrs.push_back(other.lr());
      resumed->step();
    }
    expect_near(lrs, std::vector<double>(wanted.begin() + stop, wanted.end()), 1e-12, 1e-15);
  }
}

TEST(ReduceLROnPlateau, FiftyEpochsGivePyTorchsNumbers) {
  for (int stop : {50, 25}) {
    SGD optimizer({parameter({0})}, {.lr = 0.4});
    ReduceLROnPlateauOptions options{
        .factor = 0.5, .patience = 2, .threshold = 0.01, .cooldown = 1, .min_lr = 0.02};
    auto schedule = std::make_unique<ReduceLROnPlateau>(optimizer, options);
    std::vector<double> lrs;
    for (int epoch = 0; epoch < 50; ++epoch) {
      if (epoch == stop) {
        StateMap saved = schedule->state_dict();
        schedule = std::make_unique<ReduceLROnPlateau>(optimizer);
        schedule->load_state_dict(saved);
      }
      schedule->step(epoch < 10 ? 1.0 / (1 + epoch) : 0.1 + 0.01 * std::sin(epoch));
      lrs.push_back(optimizer.lr());
    }
    expect_near(lrs, row(tables::schedules, "plateau"), 1e-12, 0);
  }
}

TEST(Schedules, SaveWhatPyTorchSaves) {
  SGD optimizer({parameter({0})}, {.lr = 0.5});
  StepLR schedule(optimizer, {.step_size = 2});
  schedule.step();
  std::vector<std::string> names;
  for (const StateEntry& entry : schedule.state_dict()) names.push_back(entry.name);
  EXPECT_THAT(names, ::testing::ElementsAre("step_size", "gamma", "base_lrs", "last_epoch", "_step_count",
                                            "_is_initial", "_get_lr_called_within_step", "_last_lr"));
  EXPECT_EQ(schedule.state_dict().integer("_step_count"), 2);
  EXPECT_EQ(optimizer.state_dict().param_groups[0].options.number("initial_lr"), 0.5);
}

TEST(OneCycleLR, CyclesBeta1AndLeavesItsValuesInTheGroups) {
  Adam optimizer({parameter({0})});
  OneCycleLR schedule(optimizer, {.max_lr = 1.0, .total_steps = 10});
  schedule.step();
  EXPECT_DOUBLE_EQ(optimizer.lr(), 0.52);
  EXPECT_DOUBLE_EQ(optimizer.options().betas.first, 0.9);
  StateMap group = optimizer.state_dict().param_groups[0].options;
  EXPECT_EQ(group.number("initial_lr"), 0.04);
  EXPECT_EQ(group.number("max_lr"), 1.0);
  EXPECT_EQ(group.number("min_lr"), 4e-06);
  EXPECT_EQ(group.number("max_momentum"), 0.95);
  EXPECT_EQ(group.number("base_momentum"), 0.85);
  EXPECT_EQ(schedule.state_dict().boolean("use_beta1"), true);
}

template <class F>
std::string value_error(F&& f) {
  try {
    f();
  } catch (const ValueError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no ValueError";
  return {};
}

TEST(Schedules, RefuseWrongOptions) {
  Tensor x = parameter({0});
  SGD optimizer({x}, {.lr = 0.5, .momentum = 0.5});
  Adagrad adagrad({x});
  EXPECT_THAT(value_error([&] { StepLR(optimizer, {}); }), HasSubstr("step_size must be at least 1, got 0"));
  EXPECT_THAT(value_error([&] { CosineAnnealingLR(optimizer, {}); }), HasSubstr("T_max must be at least 1"));
  EXPECT_THAT(value_error([&] { ConstantLR(optimizer, {.factor = 2}); }), HasSubstr("between 0 and 1"));
  EXPECT_THAT(value_error([&] { LinearLR(optimizer, {.start_factor = 0}); }),
              HasSubstr("Starting multiplicative factor"));
  EXPECT_THAT(value_error([&] { LinearLR(optimizer, {.end_factor = 2}); }),
              HasSubstr("Ending multiplicative factor"));
  EXPECT_THAT(value_error([&] { OneCycleLR(optimizer, {.total_steps = 3}); }),
              HasSubstr("max_lr must be given"));
  EXPECT_THAT(value_error([&] { OneCycleLR(optimizer, {.max_lr = 1.0}); }),
              HasSubstr("total_steps OR (epochs AND"));
  EXPECT_THAT(value_error([&] { OneCycleLR(optimizer, {.max_lr = 1.0, .total_steps = 0}); }),
              HasSubstr("positive integer"));
  EXPECT_THAT(value_error([&] {
                OneCycleLR(optimizer, {.max_lr = {1.0, 2.0}, .total_steps = 5});
              }),
              HasSubstr("max_lr must have the same length as optimizer.param_groups"));
  EXPECT_THAT(value_error([&] {
                OneCycleLR(optimizer, {.max_lr = 1.0, .total_steps = 5, .anneal_strategy = "exp"});
              }),
              HasSubstr("'cos' or 'linear', instead got exp"));
  EXPECT_THAT(value_error([&] { OneCycleLR(optimizer, {.max_lr = 1.0, .total_steps = 5, .div_factor = 0}); }),
              HasSubstr("div_factor and final_div_factor must not be 0, got 0 and 10000"));
  EXPECT_THAT(
      value_error([&] { OneCycleLR(optimizer, {.max_lr = 1.0, .total_steps = 5, .final_div_factor = 0}); }),
      HasSubstr("must not be 0, got 25 and 0"));
  EXPECT_THAT(value_error([&] { OneCycleLR(adagrad, {.max_lr = 1.0, .total_steps = 5}); }),
              HasSubstr("momentum or beta1"));
  EXPECT_THAT(value_error([&] {
                OneCycleLR schedule(optimizer, {.max_lr = 1.0, .total_steps = 2});
                for (int i = 0; i < 5; ++i) schedule.step();
              }),
              HasSubstr("Tried to step 3 times. The specified number of total steps is 2"));
  EXPECT_THAT(value_error([&] { ReduceLROnPlateau(optimizer, {.mode = "up"}); }),
              HasSubstr("mode up is unknown"));
  EXPECT_THAT(value_error([&] { ReduceLROnPlateau(optimizer, {.factor = 1}); }),
              HasSubstr("Factor should be < 1.0"));
  EXPECT_THAT(value_error([&] {
                ReduceLROnPlateau schedule(optimizer);
                static_cast<LRScheduler&>(schedule).step();
              }),
              HasSubstr("needs the value of the metric"));
  EXPECT_THAT(value_error([&] { LambdaLR(optimizer, std::vector<LambdaLR::Function>(2)); }),
              HasSubstr("Expected 1 lr_lambdas"));
  EXPECT_THAT(value_error([&] { SequentialLR(optimizer, {}, {}); }), HasSubstr("at least one scheduler"));
  EXPECT_THAT(value_error([&] {
                SequentialLR(optimizer, {std::make_shared<ExponentialLR>(optimizer, 0.5)},
                             {.milestones = {3}});
              }),
              HasSubstr("one more than the number of milestone points"));
  EXPECT_THAT(value_error([&] {
                StepLR schedule(optimizer, {.step_size = 2});
                schedule.load_state_dict({});
              }),
              HasSubstr("has no 'last_epoch'"));
  EXPECT_THAT(value_error([&] {
                StepLR schedule(optimizer, {.step_size = 2});
                optimizer.add_param_group({parameter({1})});
                schedule.step();
              }),
              HasSubstr("2 parameter groups, it had 1"));
}

}  // namespace
}  // namespace tern::optim
