// The schedules against PyTorch's numbers, and resuming.
#include <gmock/gmock.h>

#include <functional>
#include <memory>

#include "tern/optim/adagrad.h"
#include "tern/optim/adam.h"
#include "tern/optim/chained_scheduler.h"
#include "tern/optim/cyclic_lr.h"
#include "tern/optim/one_cycle_lr.h"
#include "tern/optim/reduce_lr_on_plateau.h"
#include "tern/optim/rmsprop.h"
#include "tern/optim/sequential_lr.h"
#include "tern/optim/sgd.h"
#include "tern/optim/swa_utils.h"
#include "tern/optim/warm_restarts.h"
#include "tests/optim/support.h"
#include "tests/support/expect_error.h"

namespace tern::optim {
namespace {

using ::testing::HasSubstr;
using namespace tern::testing;

struct ScheduleCase {
  std::string name;
  std::function<std::unique_ptr<LRScheduler>(Optimizer&)> make;
};

template <class S, class Options>
ScheduleCase case_of(const char* name, Options options) {
  return {name, [options](Optimizer& o) { return std::make_unique<S>(o, options); }};
}

std::vector<ScheduleCase> schedule_cases() {
  using C = CyclicLROptions;
  return {
      case_of<PolynomialLR>("polynomial", PolynomialLROptions()),
      case_of<PolynomialLR>("polynomial_power", PolynomialLROptions{.total_iters = 40, .power = 2.5}),
      {"multiplicative",
       [](Optimizer& o) {
         return std::make_unique<MultiplicativeLR>(
             o, [](int64_t epoch) { return 1.0 - 0.1 / static_cast<double>(epoch); });
       }},
      case_of<CosineAnnealingWarmRestarts>("restarts", CosineAnnealingWarmRestartsOptions{.T_0 = 7}),
      case_of<CosineAnnealingWarmRestarts>(
          "restarts_longer", CosineAnnealingWarmRestartsOptions{.T_0 = 5, .T_mult = 2, .eta_min = 0.01}),
      case_of<CyclicLR>("cyclic", C{.base_lr = 0.1, .max_lr = 0.5, .step_size_up = 8}),
      case_of<CyclicLR>(
          "cyclic_halved",
          C{.base_lr = 0.1, .max_lr = 0.5, .step_size_up = 6, .step_size_down = 3, .mode = "triangular2"}),
      case_of<CyclicLR>("cyclic_exp", C{.base_lr = 0.1,
                                        .max_lr = 0.5,
                                        .step_size_up = 6,
                                        .mode = "exp_range",
                                        .gamma = 0.97,
                                        .cycle_momentum = false}),
      case_of<CyclicLR>("cyclic_function", C{.base_lr = 0.1,
                                             .max_lr = 0.5,
                                             .step_size_up = 6,
                                             .scale_fn = [](double x) { return 1 / x; },
                                             .base_momentum = 0.6}),
      {"chained",
       [](Optimizer& o) {
         return std::make_unique<ChainedScheduler>(ChainedScheduler::Schedulers{
             std::make_shared<ConstantLR>(o, ConstantLROptions{.factor = 0.1, .total_iters = 6}),
             std::make_shared<ExponentialLR>(o, 0.9)});
       }},
      {"chained_first",
       [](Optimizer& o) {
         SequentialLR::Schedulers chain = {
             std::make_shared<ConstantLR>(o, ConstantLROptions{.factor = 0.5, .total_iters = 3}),
             std::make_shared<ExponentialLR>(o, 0.9)};
         auto first = std::make_shared<ChainedScheduler>(chain);
         auto then =
             std::make_shared<CosineAnnealingWarmRestarts>(o, CosineAnnealingWarmRestartsOptions{.T_0 = 30});
         return std::make_unique<SequentialLR>(o, SequentialLR::Schedulers{first, then},
                                               SequentialLROptions{.milestones = {10}});
       }},
      {"restarts_first",
       [](Optimizer& o) {
         auto first =
             std::make_shared<CosineAnnealingWarmRestarts>(o, CosineAnnealingWarmRestartsOptions{.T_0 = 4});
         auto then = std::make_shared<PolynomialLR>(o, PolynomialLROptions{.total_iters = 30});
         return std::make_unique<SequentialLR>(o, SequentialLR::Schedulers{first, then},
                                               SequentialLROptions{.milestones = {10}});
       }},
      case_of<SWALR>("swa", SWALROptions{.swa_lr = 0.05}),
      case_of<SWALR>("swa_linear",
                     SWALROptions{.swa_lr = 0.05, .anneal_epochs = 7, .anneal_strategy = "linear"}),
      case_of<SWALR>("swa_at_once", SWALROptions{.swa_lr = 0.05, .anneal_epochs = 0}),
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

bool cycles_momentum(const std::string& name) {
  return name.starts_with("one_cycle") || (name.starts_with("cyclic") && name != "cyclic_exp");
}

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

std::vector<std::string> saved_names(const LRScheduler& schedule) {
  std::vector<std::string> names;
  for (const StateEntry& entry : schedule.state_dict()) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Schedules, OthersSaveWhatPyTorchSavesToo) {
  SGD optimizer({parameter({0})}, {.lr = 0.4, .momentum = 0.7});
  const CosineAnnealingWarmRestarts restarts(optimizer, {.T_0 = 3});
  const CyclicLR cyclic(optimizer, {.base_lr = 0.1, .max_lr = 0.5});
  const ChainedScheduler chained({std::make_shared<ExponentialLR>(optimizer, 0.9)});
  const SWALR swa(optimizer, {.swa_lr = 0.05});
  const PolynomialLR polynomial(optimizer);
  const MultiplicativeLR multiplicative(optimizer, [](int64_t) { return 1.0; });
  const auto with = [](std::vector<std::string> names) {
    for (const char* each :
         {"base_lrs", "last_epoch", "_step_count", "_is_initial", "_get_lr_called_within_step", "_last_lr"})
      names.emplace_back(each);
    std::sort(names.begin(), names.end());
    return names;
  };
  EXPECT_EQ(saved_names(restarts), with({"T_0", "T_i", "T_mult", "eta_min", "T_cur"}));
  EXPECT_EQ(saved_names(cyclic),
            with({"max_lrs", "total_size", "step_ratio", "mode", "gamma", "scale_mode", "cycle_momentum",
                  "use_beta1", "base_momentums", "max_momentums", "_scale_fn_custom"}));
  EXPECT_EQ(saved_names(chained), (std::vector<std::string>{"_last_lr", "_schedulers"}));
  EXPECT_EQ(saved_names(swa), with({"_anneal_strategy", "anneal_epochs"}));
  EXPECT_EQ(saved_names(polynomial), with({"total_iters", "power"}));
  EXPECT_EQ(saved_names(multiplicative), with({"lr_lambdas"}));
  EXPECT_EQ(restarts.state_dict().integer("_step_count"), 0);
  const StateMap group = optimizer.state_dict().param_groups[0].options;
  for (auto [name, value] :
       {std::pair("max_momentum", 0.9), {"base_momentum", 0.8}, {"swa_lr", 0.05}, {"initial_lr", 0.4}})
    EXPECT_EQ(group.number(name), value) << name;
  EXPECT_STREQ(restarts.name(), "CosineAnnealingWarmRestarts");
}

TEST(CosineAnnealingWarmRestarts, GoesToPartsOfEpochs) {
  SGD optimizer({parameter({0})}, {.lr = 0.4});
  CosineAnnealingWarmRestarts schedule(optimizer, {.T_0 = 3, .T_mult = 2, .eta_min = 0.01});
  struct At {
    double epoch, lr;
    int64_t last_epoch;
  };
  for (At at :
       {At{0.5, 0.3738749537379656, 0}, At{2, 0.10750000000000004, 2}, At{2.75, 0.0166444638736317, 2},
        At{3.5, 0.3933555361263683, 3}, At{8.5, 0.0166444638736317, 8}, At{9, 0.4, 9},
        At{30.25, 0.2736887593446406, 30}, At{1, 0.3025, 1}}) {
    schedule.step(at.epoch);
    EXPECT_NEAR(optimizer.lr(), at.lr, 1e-15) << at.epoch;
    EXPECT_EQ(schedule.last_epoch(), at.last_epoch);
  }
  schedule.step(8.5);
  EXPECT_EQ(schedule.state_dict().number("T_cur"), 5.5);
  EXPECT_EQ(schedule.state_dict().integer("T_i"), 6);
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

TEST(Schedules, RefuseWrongOptions) {
  Tensor x = parameter({0});
  SGD optimizer({x}, {.lr = 0.5, .momentum = 0.5});
  Adagrad adagrad({x});
  EXPECT_THAT(message_of<ValueError>([&] { StepLR(optimizer, {}); }),
              HasSubstr("step_size must be at least 1, got 0"));
  EXPECT_THAT(message_of<ValueError>([&] { CosineAnnealingLR(optimizer, {}); }),
              HasSubstr("T_max must be at least 1"));
  EXPECT_THAT(message_of<ValueError>([&] { ConstantLR(optimizer, {.factor = 2}); }),
              HasSubstr("between 0 and 1"));
  EXPECT_THAT(message_of<ValueError>([&] { LinearLR(optimizer, {.start_factor = 0}); }),
              HasSubstr("Starting multiplicative factor"));
  EXPECT_THAT(message_of<ValueError>([&] { LinearLR(optimizer, {.end_factor = 2}); }),
              HasSubstr("Ending multiplicative factor"));
  EXPECT_THAT(message_of<ValueError>([&] { OneCycleLR(optimizer, {.total_steps = 3}); }),
              HasSubstr("max_lr must be given"));
  EXPECT_THAT(message_of<ValueError>([&] { OneCycleLR(optimizer, {.max_lr = 1.0}); }),
              HasSubstr("total_steps OR (epochs AND"));
  EXPECT_THAT(message_of<ValueError>([&] { OneCycleLR(optimizer, {.max_lr = 1.0, .total_steps = 0}); }),
              HasSubstr("positive integer"));
  EXPECT_THAT(message_of<ValueError>([&] {
                OneCycleLR(optimizer, {.max_lr = {1.0, 2.0}, .total_steps = 5});
              }),
              HasSubstr("max_lr must have the same length as optimizer.param_groups"));
  EXPECT_THAT(message_of<ValueError>([&] {
                OneCycleLR(optimizer, {.max_lr = 1.0, .total_steps = 5, .anneal_strategy = "exp"});
              }),
              HasSubstr("'cos' or 'linear', instead got exp"));
  EXPECT_THAT(message_of<ValueError>(
                  [&] { OneCycleLR(optimizer, {.max_lr = 1.0, .total_steps = 5, .div_factor = 0}); }),
              HasSubstr("div_factor and final_div_factor must not be 0, got 0 and 10000"));
  EXPECT_THAT(message_of<ValueError>(
                  [&] { OneCycleLR(optimizer, {.max_lr = 1.0, .total_steps = 5, .final_div_factor = 0}); }),
              HasSubstr("must not be 0, got 25 and 0"));
  EXPECT_THAT(message_of<ValueError>([&] { OneCycleLR(adagrad, {.max_lr = 1.0, .total_steps = 5}); }),
              HasSubstr("momentum or beta1"));
  EXPECT_THAT(message_of<ValueError>([&] {
                OneCycleLR schedule(optimizer, {.max_lr = 1.0, .total_steps = 2});
                for (int i = 0; i < 5; ++i) schedule.step();
              }),
              HasSubstr("Tried to step 3 times. The specified number of total steps is 2"));
  EXPECT_THAT(message_of<ValueError>([&] { ReduceLROnPlateau(optimizer, {.mode = "up"}); }),
              HasSubstr("mode up is unknown"));
  EXPECT_THAT(message_of<ValueError>([&] { ReduceLROnPlateau(optimizer, {.factor = 1}); }),
              HasSubstr("Factor should be < 1.0"));
  EXPECT_THAT(message_of<ValueError>([&] {
                ReduceLROnPlateau schedule(optimizer);
                static_cast<LRScheduler&>(schedule).step();
              }),
              HasSubstr("needs the value of the metric"));
  EXPECT_THAT(message_of<ValueError>([&] { LambdaLR(optimizer, std::vector<LambdaLR::Function>(2)); }),
              HasSubstr("Expected 1 lr_lambdas"));
  EXPECT_THAT(message_of<ValueError>([&] { PolynomialLR(optimizer, {.total_iters = 0}); }),
              HasSubstr("PolynomialLR: total_iters must be at least 1, got 0"));
  EXPECT_THAT(message_of<ValueError>([&] { MultiplicativeLR(optimizer, MultiplicativeLR::Function()); }),
              HasSubstr("MultiplicativeLR: one of the functions is empty"));
  EXPECT_THAT(message_of<ValueError>([&] { CosineAnnealingWarmRestarts(optimizer, {}); }),
              HasSubstr("Expected positive integer T_0, but got 0"));
  EXPECT_THAT(
      message_of<ValueError>([&] { CosineAnnealingWarmRestarts(optimizer, {.T_0 = 2, .T_mult = 0}); }),
      HasSubstr("Expected integer T_mult >= 1, but got 0"));
  for (double epoch : {-1.0, std::nan(""), kInfinity})
    EXPECT_THAT(
        message_of<ValueError>([&] { CosineAnnealingWarmRestarts(optimizer, {.T_0 = 2}).step(epoch); }),
        HasSubstr("Expected non-negative epoch"));
  EXPECT_THAT(message_of<ValueError>([&] { CyclicLR(optimizer, {.max_lr = 1.0}); }),
              HasSubstr("base_lr and max_lr must be given"));
  EXPECT_THAT(message_of<ValueError>(
                  [&] { CyclicLR(optimizer, {.base_lr = 0.1, .max_lr = 1.0, .step_size_up = 0}); }),
              HasSubstr("step_size_up must be at least 1"));
  EXPECT_THAT(
      message_of<ValueError>([&] { CyclicLR(optimizer, {.base_lr = 0.1, .max_lr = 1.0, .mode = "square"}); }),
      HasSubstr("mode 'square' is invalid and scale_fn is None"));
  EXPECT_THAT(message_of<ValueError>([&] { CyclicLR(adagrad, {.base_lr = 0.1, .max_lr = 1.0}); }),
              HasSubstr("momentum or beta1"));
  EXPECT_THAT(message_of<ValueError>([&] { SWALR(optimizer, {}); }),
              HasSubstr("SWALR: swa_lr must be given"));
  EXPECT_THAT(message_of<ValueError>([&] { SWALR(optimizer, {.swa_lr = 0.1, .anneal_epochs = -1}); }),
              HasSubstr("anneal_epochs must be equal or greater than 0, got -1"));
  EXPECT_THAT(message_of<ValueError>([&] { SWALR(optimizer, {.swa_lr = 0.1, .anneal_strategy = "exp"}); }),
              HasSubstr("'cos' or 'linear', instead got exp"));
  EXPECT_THAT(message_of<ValueError>([&] { ChainedScheduler({}); }),
              HasSubstr("ChainedScheduler: expects at least one scheduler"));
  EXPECT_THAT(message_of<ValueError>([&] {
                ChainedScheduler({std::make_shared<ExponentialLR>(optimizer, 0.5),
                                  std::make_shared<ExponentialLR>(adagrad, 0.5)});
              }),
              HasSubstr("scheduler 1 belongs to another"));
  EXPECT_THAT(
      message_of<ValueError>([&] { ChainedScheduler({std::make_shared<ReduceLROnPlateau>(optimizer)}); }),
      HasSubstr("ChainedScheduler: does not support `ReduceLROnPlateau`"));
  EXPECT_THAT(message_of<ValueError>([&] {
                auto first = std::make_shared<ExponentialLR>(optimizer, 0.5);
                auto chain = std::make_shared<ChainedScheduler>(
                    ChainedScheduler::Schedulers{std::make_shared<ExponentialLR>(optimizer, 0.5)});
                SequentialLR(optimizer, {first, chain}, {.milestones = {3}});
              }),
              HasSubstr("a ChainedScheduler can only be the first"));
  EXPECT_THAT(message_of<ValueError>([&] { SequentialLR(optimizer, {}, {}); }),
              HasSubstr("at least one scheduler"));
  EXPECT_THAT(message_of<ValueError>([&] {
                SequentialLR(optimizer, {std::make_shared<ExponentialLR>(optimizer, 0.5)},
                             {.milestones = {3}});
              }),
              HasSubstr("one more than the number of milestone points"));
  EXPECT_THAT(message_of<ValueError>([&] {
                StepLR schedule(optimizer, {.step_size = 2});
                schedule.load_state_dict({});
              }),
              HasSubstr("has no 'last_epoch'"));
  EXPECT_THAT(message_of<ValueError>([&] {
                StepLR schedule(optimizer, {.step_size = 2});
                optimizer.add_param_group({parameter({1})});
                schedule.step();
              }),
              HasSubstr("2 parameter groups, it had 1"));
}

TEST(Schedules, RefuseStatesOfOtherSizesAndKinds) {
  SGD optimizer({parameter({0})}, {.lr = 0.4, .momentum = 0.7});
  Adagrad plain({parameter({0})});
  CyclicLR cyclic(optimizer, {.base_lr = 0.1, .max_lr = 0.5}),
      of_plain(plain, {.base_lr = 0.1, .max_lr = 0.5, .cycle_momentum = false});
  StepLR by_steps(optimizer, {.step_size = 2});
  ReduceLROnPlateau plateau(optimizer);
  ChainedScheduler chained({std::make_shared<ExponentialLR>(optimizer, 0.9)});
  const auto part = [&] { return std::make_shared<ExponentialLR>(optimizer, 0.9); };
  SequentialLR sequential(optimizer, {part(), part(), part()}, {.milestones = {3, 5}});
  struct Row {
    LRScheduler& schedule;
    std::string key;
    StateValue value;
    std::string error;
  };
  const std::vector<double> none, two{0.1, 0.2};
  const std::vector<Row> rows{
      {by_steps, "_last_lr", two,
       "StepLR: '_last_lr' of the loaded state has 2 numbers, the optimizer has 1"},
      {by_steps, "base_lrs", none, "StepLR: 'base_lrs' of the loaded state has 0 numbers"},
      {plateau, "_last_lr", two, "ReduceLROnPlateau: '_last_lr' of the loaded state has 2 numbers"},
      {plateau, "min_lrs", two, "ReduceLROnPlateau: 'min_lrs' of the loaded state has 2 numbers"},
      {chained, "_last_lr", none, "ChainedScheduler: '_last_lr' of the loaded state has 0 numbers"},
      {chained, "_schedulers", std::vector<StateMap>(2), "the loaded state is of 2 schedulers, not of 1"},
      {sequential, "_last_lr", two, "SequentialLR: '_last_lr' of the loaded state has 2 numbers"},
      {sequential, "_milestones", std::vector<int64_t>{5, 3}, "'_milestones' of the loaded state must be in"},
      {cyclic, "max_lrs", two, "CyclicLR: 'max_lrs' of the loaded state has 2 numbers"},
      {cyclic, "base_momentums", none, "CyclicLR: 'base_momentums' of the loaded state has 0 numbers"},
      {cyclic, "max_momentums", two, "CyclicLR: 'max_momentums' of the loaded state has 2 numbers"},
      {cyclic, "_last_lr", two, "CyclicLR: '_last_lr' of the loaded state has 2 numbers"},
      {cyclic, "mode", "square", "the loaded state: CyclicLR: mode 'square' is invalid"},
      {cyclic, "scale_mode", "epochs", "scale_mode 'epochs' is invalid: it is 'cycle' or 'iterations'"},
      {of_plain, "cycle_momentum", true, "the loaded state: CyclicLR: optimizer must support momentum"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.error);
    const std::vector<double> before = row.schedule.get_last_lr();
    StateMap state = row.schedule.state_dict();
    state.set(row.key, row.value);
    EXPECT_THAT(message_of<ValueError>([&] { row.schedule.load_state_dict(state); }), HasSubstr(row.error));
    EXPECT_EQ(row.schedule.get_last_lr(), before);
  }
  SGD other({parameter({0})}, {.lr = 0.4, .momentum = 0.7});
  CyclicLR without_momenta(other, {.base_lr = 0.1, .max_lr = 0.5, .cycle_momentum = false});
  StateMap state = without_momenta.state_dict();
  state.set("cycle_momentum", true);
  EXPECT_THAT(message_of<ValueError>([&] { without_momenta.load_state_dict(state); }),
              HasSubstr("lacks 'base_momentums' or 'max_momentums'"));
}

}  // namespace
}  // namespace tern::optim
