// What optimizers save and load: PyTorch's layout, older layouts, and wrong ones.
#include <gmock/gmock.h>

#include "tern/optim/adadelta.h"
#include "tern/optim/adagrad.h"
#include "tern/optim/adam.h"
#include "tern/optim/adamax.h"
#include "tern/optim/asgd.h"
#include "tern/optim/lr_scheduler.h"
#include "tern/optim/nadam.h"
#include "tern/optim/radam.h"
#include "tern/optim/rmsprop.h"
#include "tern/optim/rprop.h"
#include "tern/optim/sgd.h"
#include "tests/optim/support.h"
#include "tests/support/expect_error.h"

namespace tern::optim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace tern::testing;

std::vector<std::string> names(const StateMap& map) {
  std::vector<std::string> list;
  for (const StateEntry& entry : map) list.push_back(entry.name);
  return list;
}

TEST(OptimizerState, AdamHasPyTorchsLayout) {
  Tensor a = parameter({1, 2, 3}), b = parameter({1}), c = parameter({5});
  Adam optimizer({{{a, b}, {.lr = 0.1}}, {{c}, {.lr = 0.2, .amsgrad = true}}});
  EXPECT_TRUE(optimizer.state_dict().state.empty());
  give_grad(a, {1, 1, 1});
  give_grad(c, {2});
  optimizer.step();
  optimizer.step();
  OptimizerState saved = optimizer.state_dict();
  ASSERT_EQ(saved.param_groups.size(), 2U);
  EXPECT_THAT(names(saved.param_groups[0].options),
              ElementsAre("lr", "betas", "eps", "weight_decay", "amsgrad", "maximize", "foreach",
                          "capturable", "differentiable", "fused", "decoupled_weight_decay"));
  EXPECT_THAT(saved.param_groups[0].params, ElementsAre(0, 1));
  EXPECT_THAT(saved.param_groups[1].params, ElementsAre(2));
  EXPECT_EQ(saved.param_groups[1].options.number("lr"), 0.2);
  EXPECT_EQ(std::get<std::vector<double>>(saved.param_groups[0].options.find("betas")->value),
            (std::vector<double>{0.9, 0.999}));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(saved.param_groups[0].options.find("fused")->value));
  ASSERT_EQ(saved.state.size(), 2U);
  EXPECT_EQ(saved.state[0].first, 0);
  EXPECT_THAT(names(saved.state[0].second), ElementsAre("step", "exp_avg", "exp_avg_sq"));
  EXPECT_EQ(saved.state[1].first, 2);
  EXPECT_THAT(names(saved.state[1].second), ElementsAre("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"));
  const Tensor& step = std::get<Tensor>(saved.state[0].second.find("step")->value);
  EXPECT_EQ(step.dim(), 0);
  EXPECT_EQ(step.dtype(), float32);
  EXPECT_EQ(step.item<float>(), 2);
}

TEST(OptimizerState, KeysOfTheOthers) {
  Tensor x = parameter({1, 2});
  give_grad(x, {1, 1});
  SGD plain({x}), momentum({x}, {.momentum = 0.9});
  RMSprop rmsprop({x}, {.momentum = 0.5, .centered = true});
  Adagrad adagrad({x}, {.initial_accumulator_value = 0.5});
  // Adagrad has state from the start.
  OptimizerState fresh = adagrad.state_dict();
  ASSERT_EQ(fresh.state.size(), 1U);
  EXPECT_EQ(fresh.state[0].second.integer("step"), 0);
  EXPECT_EQ(std::get<Tensor>(fresh.state[0].second.find("sum")->value).to_vector<float>(),
            (std::vector<float>{0.5F, 0.5F}));
  for (Optimizer* optimizer : std::initializer_list<Optimizer*>{&plain, &momentum, &rmsprop, &adagrad})
    optimizer->step();
  EXPECT_THAT(names(plain.state_dict().param_groups[0].options),
              ElementsAre("lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize", "foreach",
                          "differentiable", "fused"));
  EXPECT_TRUE(plain.state_dict().state.empty());
  EXPECT_THAT(names(momentum.state_dict().state.at(0).second), ElementsAre("momentum_buffer"));
  EXPECT_THAT(names(rmsprop.state_dict().state.at(0).second),
              ElementsAre("step", "square_avg", "momentum_buffer", "grad_avg"));
  EXPECT_THAT(names(rmsprop.state_dict().param_groups[0].options),
              ElementsAre("lr", "momentum", "alpha", "eps", "centered", "weight_decay", "capturable",
                          "foreach", "maximize", "differentiable"));
  EXPECT_THAT(names(adagrad.state_dict().state.at(0).second), ElementsAre("step", "sum"));
}

template <class O>
std::pair<std::vector<std::string>, std::vector<std::string>> keys_after_a_step() {
  Tensor x = parameter({1, 2});
  give_grad(x, {1, 1});
  O optimizer({x});
  optimizer.step();
  const OptimizerState saved = optimizer.state_dict();
  return {names(saved.param_groups[0].options), names(saved.state.at(0).second)};
}

TEST(OptimizerState, KeysAreInPyTorchsOrder) {
  using Keys = std::pair<std::vector<std::string>, std::vector<std::string>>;
  EXPECT_EQ(keys_after_a_step<NAdam>(),
            Keys({"lr", "betas", "eps", "weight_decay", "momentum_decay", "decoupled_weight_decay",
                  "maximize", "foreach", "capturable", "differentiable"},
                 {"step", "mu_product", "exp_avg", "exp_avg_sq"}));
  EXPECT_EQ(keys_after_a_step<RAdam>(), Keys({"lr", "betas", "eps", "weight_decay", "maximize", "foreach",
                                              "capturable", "decoupled_weight_decay", "differentiable"},
                                             {"step", "exp_avg", "exp_avg_sq"}));
  EXPECT_EQ(keys_after_a_step<Adamax>(), Keys({"lr", "betas", "eps", "weight_decay", "foreach", "maximize",
                                               "differentiable", "capturable"},
                                              {"step", "exp_avg", "exp_inf"}));
  EXPECT_EQ(keys_after_a_step<Adadelta>(),
            Keys({"lr", "rho", "eps", "weight_decay", "maximize", "capturable", "foreach", "differentiable"},
                 {"step", "square_avg", "acc_delta"}));
  EXPECT_EQ(keys_after_a_step<ASGD>(), Keys({"lr", "lambd", "alpha", "t0", "weight_decay", "foreach",
                                             "maximize", "differentiable", "capturable"},
                                            {"step", "eta", "mu", "ax"}));
  EXPECT_EQ(keys_after_a_step<Rprop>(),
            Keys({"lr", "etas", "step_sizes", "foreach", "maximize", "differentiable", "capturable"},
                 {"step", "prev", "step_size"}));
}

TEST(OptimizerState, NumbersOfParametersAreLoadedAndRequired) {
  Tensor x = parameter({1, 2});
  give_grad(x, {1, 1});
  NAdam optimizer({x}), other({x});
  optimizer.step();
  optimizer.step();
  OptimizerState saved = optimizer.state_dict();
  const double product = *saved.state[0].second.number("mu_product");
  EXPECT_NEAR(product, 0.9 * (1 - 0.5 * std::pow(0.96, 0.004)) * 0.9 * (1 - 0.5 * std::pow(0.96, 0.008)),
              1e-7);
  other.load_state_dict(saved);
  EXPECT_EQ(other.state_dict().state[0].second.number("mu_product"), product);
  saved.state[0].second.set("mu_product", std::monostate());
  EXPECT_THAT(message_of<ValueError>([&] { other.load_state_dict(saved); }),
              HasSubstr("has no 'mu_product'"));
  saved.state[0].second.set("mu_product", std::string("x"));
  EXPECT_THAT(message_of<TypeError>([&] { other.load_state_dict(saved); }), HasSubstr("'mu_product'"));
}

/// State as Adam of PyTorch 1.6 saved it: numbers by id, whole-number steps, few keys.
OptimizerState old_adam() {
  OptimizerState saved;
  saved.param_groups.resize(1);
  saved.param_groups[0].params = {140234, 140999};
  saved.param_groups[0].options.set("lr", int64_t{1});
  saved.param_groups[0].options.set("betas", std::vector<double>{0.5, 0.75});
  saved.param_groups[0].options.set("something_new", true);
  StateMap state;
  state.set("step", int64_t{7});
  state.set("exp_avg", parameter({1, 2}).detach());
  state.set("exp_avg_sq", parameter({4, 9}, {}, float64).detach());
  saved.state.emplace_back(140999, state);
  return saved;
}

TEST(OptimizerState, LoadsOldLayoutsAndKeepsUnknownOptions) {
  Tensor a = parameter({1}), b = parameter({1, 2});
  Adam optimizer({a, b}, {.eps = 0.25});
  OptimizerState old = old_adam();
  optimizer.load_state_dict(old);
  EXPECT_EQ(optimizer.lr(), 1);
  EXPECT_EQ(optimizer.options().betas, std::pair(0.5, 0.75));
  EXPECT_EQ(optimizer.options().eps, 0.25);
  OptimizerState saved = optimizer.state_dict();
  EXPECT_EQ(saved.param_groups[0].options.boolean("something_new"), true);
  ASSERT_EQ(saved.state.size(), 1U);
  EXPECT_EQ(saved.state[0].first, 1);
  EXPECT_EQ(saved.state[0].second.integer("step"), 7);
  const Tensor& square = std::get<Tensor>(saved.state[0].second.find("exp_avg_sq")->value);
  EXPECT_EQ(square.dtype(), float32);
  // What was loaded is a copy.
  const Tensor& loaded = std::get<Tensor>(old.state[0].second.find("exp_avg")->value);
  give_grad(b, {1, 1});
  optimizer.step();
  EXPECT_EQ(loaded.to_vector<float>(), (std::vector<float>{1, 2}));
}

/// A schedule's last step may round to below zero; names of parameters are PyTorch's since 2.6.
TEST(OptimizerState, LoadsWhatItSaved) {
  Tensor x = parameter({1, 2});
  SGD optimizer({x}, {.lr = 0.1});
  LinearLR schedule(optimizer, {.start_factor = 1.0 / 3, .end_factor = 0, .total_iters = 5});
  for (int i = 0; i < 5; ++i) schedule.step();
  EXPECT_LT(optimizer.lr(), 0);
  OptimizerState saved = optimizer.state_dict();
  const std::vector<std::string> param_names = {"weight"};
  saved.param_groups[0].options.set("param_names", param_names);
  SGD other({x}, {.lr = 0.1});
  other.load_state_dict(saved);
  EXPECT_EQ(other.lr(), optimizer.lr());
  EXPECT_EQ(std::get<std::vector<std::string>>(
                other.state_dict().param_groups[0].options.find("param_names")->value),
            param_names);
}

TEST(OptimizerState, AdamWStaysDecoupledWithStateOfAdam) {
  Tensor a = parameter({1}), b = parameter({1, 2});
  AdamW optimizer({a, b});
  OptimizerState saved = old_adam();
  saved.param_groups[0].options.set("decoupled_weight_decay", false);
  optimizer.load_state_dict(saved);
  EXPECT_TRUE(optimizer.options().decoupled_weight_decay);
}

TEST(OptimizerState, RefusesWhatDoesNotFitAndChangesNothing) {
  Tensor a = parameter({1}), b = parameter({1, 2});
  Adam optimizer({a, b}, {.lr = 0.125});
  auto load = [&](auto change) {
    OptimizerState saved = old_adam();
    change(saved);
    return message_of<ValueError>([&] { optimizer.load_state_dict(saved); });
  };
  EXPECT_THAT(load([](auto& s) { s.param_groups.emplace_back(); }),
              HasSubstr("loaded state dict has a different number of parameter groups"));
  EXPECT_THAT(
      load([](auto& s) { s.param_groups[0].params.pop_back(); }),
      HasSubstr(
          "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"));
  EXPECT_THAT(load([](auto& s) { s.state[0].first = 3; }), HasSubstr("state of parameter 3"));
  EXPECT_THAT(load([](auto& s) {
                s.state[0].second.set("square_avg", parameter({1, 2}).detach());
              }),
              HasSubstr("has 'square_avg', which this optimizer does not keep"));
  EXPECT_THAT(load([](auto& s) { s.state[0].second.set("exp_avg", std::monostate()); }),
              HasSubstr("has no 'exp_avg'"));
  EXPECT_THAT(load([](auto& s) { s.state[0].second.set("step", int64_t{-1}); }), HasSubstr("'step'"));
  EXPECT_THAT(load([](auto& s) { s.param_groups[0].options.set("amsgrad", true); }),
              HasSubstr("has no 'max_exp_avg_sq'"));
  OptimizerState wrong_shape = old_adam();
  wrong_shape.state[0].second.set("exp_avg", parameter({1, 2, 3}).detach());
  EXPECT_THROW(optimizer.load_state_dict(wrong_shape), ShapeError);
  OptimizerState wrong_kind = old_adam();
  wrong_kind.param_groups[0].options.set("lr", std::string("fast"));
  EXPECT_THROW(optimizer.load_state_dict(wrong_kind), TypeError);
  EXPECT_EQ(optimizer.lr(), 0.125);
  EXPECT_FALSE(optimizer.options().amsgrad);
  EXPECT_TRUE(optimizer.state_dict().state.empty());
}

TEST(StateMap, ReadsNumbersAndRefusesOtherKinds) {
  StateMap map;
  map.set("i", int64_t{3});
  map.set("d", 2.5);
  map.set("n", std::monostate());
  map.set("huge", 1e300);
  EXPECT_EQ(map.number("i"), 3);
  EXPECT_EQ(map.integer("i"), 3);
  EXPECT_FALSE(map.number("n"));
  EXPECT_FALSE(map.number("absent"));
  EXPECT_THROW(map.integer("d"), TypeError);
  EXPECT_THROW(map.integer("huge"), TypeError);
  map.set("list", std::vector<double>{1, 2.5});
  EXPECT_THROW(map.integers("list"), TypeError);
  map.set("list", std::vector<double>{1, 3});
  EXPECT_EQ(map.integers("list"), (std::vector<int64_t>{1, 3}));
  EXPECT_THROW(map.text("d"), TypeError);
  EXPECT_THROW(map.numbers("d"), TypeError);
  EXPECT_THROW(map.maps("d"), TypeError);
  EXPECT_THROW(map.tensor("d"), TypeError);
  EXPECT_THROW(map.tensors("list"), TypeError);
  map.set("list", std::vector<Tensor>{parameter({1}), Tensor()});
  EXPECT_THAT(message_of<TypeError>([&] { map.tensors("list"); }), HasSubstr("without None"));
  map.set("list", std::vector<double>());
  EXPECT_TRUE(map.tensors("list")->empty());
}

}  // namespace
}  // namespace tern::optim
