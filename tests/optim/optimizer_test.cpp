// The optimizers against PyTorch's numbers, and what holds for all of them.
#include <gmock/gmock.h>

#include <functional>
#include <memory>

#include "tern/autograd/grad_mode.h"
#include "tern/base/parallel.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/optim/adadelta.h"
#include "tern/optim/adagrad.h"
#include "tern/optim/adam.h"
#include "tern/optim/adamax.h"
#include "tern/optim/asgd.h"
#include "tern/optim/nadam.h"
#include "tern/optim/radam.h"
#include "tern/optim/rmsprop.h"
#include "tern/optim/rprop.h"
#include "tern/optim/sgd.h"
#include "tests/optim/support.h"
#include "tests/support/expect_error.h"

namespace tern::optim {
namespace {

using ::testing::HasSubstr;
using namespace tern::testing;

double gradient(int step, int place) { return std::sin(0.7 * step + 1.3 * place) * (1 + 0.1 * place); }

struct OptimizerCase {
  std::string name;
  std::function<std::unique_ptr<Optimizer>(std::vector<Tensor>)> make;
};

template <class O, class Options>
OptimizerCase make_case(std::string name, Options options) {
  return {std::move(name),
          [options](std::vector<Tensor> params) { return std::make_unique<O>(std::move(params), options); }};
}

std::vector<OptimizerCase> optimizer_cases() {
  using S = SGDOptions;
  using A = AdamOptions;
  using W = AdamWOptions;
  using R = RMSpropOptions;
  using G = AdagradOptions;
  using N = NAdamOptions;
  using V = RAdamOptions;
  using X = AdamaxOptions;
  using D = AdadeltaOptions;
  using P = RpropOptions;
  using Average = ASGDOptions;
  return {
      make_case<SGD>("sgd", S{.lr = 0.05}),
      make_case<SGD>("sgd_decay", S{.lr = 0.05, .weight_decay = 0.1}),
      make_case<SGD>("sgd_momentum", S{.lr = 0.05, .momentum = 0.9}),
      make_case<SGD>("sgd_dampening", S{.lr = 0.05, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.02}),
      make_case<SGD>("sgd_nesterov", S{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.02, .nesterov = true}),
      make_case<SGD>("sgd_maximize", S{.lr = 0.05, .momentum = 0.9, .maximize = true}),
      make_case<Adam>("adam", A{.lr = 0.05}),
      make_case<Adam>("adam_decay", A{.lr = 0.05, .betas = {0.8, 0.95}, .eps = 1e-3, .weight_decay = 0.1}),
      make_case<Adam>("adam_amsgrad", A{.lr = 0.05, .amsgrad = true}),
      make_case<Adam>("adam_far", A{.lr = 0.05, .betas = {0.4, 0.9}}),
      make_case<Adam>("adam_maximize", A{.lr = 0.05, .maximize = true}),
      make_case<AdamW>("adamw", W{.lr = 0.05}),
      make_case<AdamW>("adamw_amsgrad", W{.lr = 0.05, .weight_decay = 0.3, .amsgrad = true}),
      make_case<RMSprop>("rmsprop", R{.lr = 0.02}),
      make_case<RMSprop>("rmsprop_momentum",
                         R{.lr = 0.02, .alpha = 0.9, .weight_decay = 0.05, .momentum = 0.8}),
      make_case<RMSprop>("rmsprop_centered", R{.lr = 0.02, .alpha = 0.9, .eps = 1e-2, .centered = true}),
      make_case<RMSprop>(
          "rmsprop_all",
          R{.lr = 0.02, .alpha = 0.9, .eps = 1e-2, .momentum = 0.5, .centered = true, .maximize = true}),
      make_case<Adagrad>("adagrad", G{.lr = 0.1}),
      make_case<Adagrad>(
          "adagrad_all",
          G{.lr = 0.1, .lr_decay = 0.05, .weight_decay = 0.1, .initial_accumulator_value = 0.2, .eps = 1e-3}),
      make_case<NAdam>("nadam", N{.lr = 0.05}),
      make_case<NAdam>(
          "nadam_decay",
          N{.lr = 0.05, .betas = {0.8, 0.95}, .eps = 1e-3, .weight_decay = 0.1, .momentum_decay = 0.1}),
      make_case<NAdam>("nadam_decoupled",
                       N{.lr = 0.05, .weight_decay = 0.1, .decoupled_weight_decay = true, .maximize = true}),
      make_case<RAdam>("radam", V{.lr = 0.05}),
      make_case<RAdam>("radam_decay", V{.lr = 0.05, .betas = {0.4, 0.9}, .eps = 1e-3, .weight_decay = 0.1}),
      make_case<RAdam>("radam_decoupled",
                       V{.lr = 0.05, .weight_decay = 0.1, .decoupled_weight_decay = true, .maximize = true}),
      make_case<Adamax>("adamax", X{.lr = 0.05}),
      make_case<Adamax>(
          "adamax_all",
          X{.lr = 0.05, .betas = {0.4, 0.9}, .eps = 1e-3, .weight_decay = 0.1, .maximize = true}),
      make_case<Adadelta>("adadelta", D{.lr = 2}),
      make_case<Adadelta>("adadelta_all",
                          D{.lr = 0.5, .rho = 0.8, .eps = 1e-3, .weight_decay = 0.1, .maximize = true}),
      make_case<ASGD>("asgd", Average{.lr = 0.05}),
      make_case<ASGD>(
          "asgd_all",
          Average{.lr = 0.05, .lambd = 0.01, .alpha = 0.6, .t0 = 5, .weight_decay = 0.1, .maximize = true}),
      make_case<Rprop>("rprop", P{.lr = 0.05}),
      make_case<Rprop>("rprop_all",
                       P{.lr = 0.02, .etas = {0.4, 1.3}, .step_sizes = {0.01, 0.1}, .maximize = true}),
  };
}

std::vector<Tensor> two_parameters(DType dtype = float32) {
  return {parameter({0.5F, -1, 2, 0.25F, 0, -3}, {2, 3}, dtype), parameter({1, -0.5F, 0.125F, 4}, {}, dtype)};
}

/// One step with the gradients that the table was made with.
void step(Optimizer& optimizer, const std::vector<Tensor>& params, int number) {
  int place = 0;
  for (size_t i = 0; i < params.size(); ++i) {
    std::vector<float> values;
    for (int64_t k = 0; k < params[i].numel(); ++k)
      values.push_back(static_cast<float>(gradient(number, place++)));
    if (i == 1 && number < 3)
      params[i].set_grad({});
    else
      give_grad(params[i], values);
  }
  optimizer.step();
}

std::vector<double> values_of(const std::vector<Tensor>& params) {
  std::vector<double> all;
  for (const Tensor& p : params)
    for (double v : p.detach().to_vector<double>()) all.push_back(v);
  return all;
}

class Optimizers : public ::testing::TestWithParam<OptimizerCase> {};
INSTANTIATE_TEST_SUITE_P(All, Optimizers, ::testing::ValuesIn(optimizer_cases()),
                         [](const auto& row) { return row.param.name; });

TEST_P(Optimizers, TwentyStepsGivePyTorchsNumbers) {
  std::vector<Tensor> params = two_parameters();
  auto optimizer = GetParam().make(params);
  for (int i = 0; i < 20; ++i) step(*optimizer, params, i);
  expect_near(values_of(params), row(tables::optimizers, GetParam().name), 1e-6, 3e-7);
}

TEST_P(Optimizers, Float64AndSixteenBitsFollow) {
  for (auto [dtype, tolerance] :
       {std::pair(float64, 1e-5), std::pair(float16, 2e-2), std::pair(bfloat16, 2e-1)}) {
    std::vector<Tensor> params = two_parameters(dtype);
    auto optimizer = GetParam().make(params);
    for (int i = 0; i < 20; ++i) step(*optimizer, params, i);
    expect_near(values_of(params), row(tables::optimizers, GetParam().name), tolerance, tolerance);
  }
}

TEST_P(Optimizers, ResumesBitForBit) {
  std::vector<Tensor> params = two_parameters(), copies;
  auto optimizer = GetParam().make(params);
  for (int i = 0; i < 8; ++i) step(*optimizer, params, i);
  for (const Tensor& p : params) {
    copies.push_back(p.detach().clone());
    copies.back().requires_grad_();
  }
  auto resumed = GetParam().make(copies);
  resumed->load_state_dict(optimizer->state_dict());
  for (int i = 8; i < 20; ++i) {
    step(*optimizer, params, i);
    step(*resumed, copies, i);
  }
  EXPECT_EQ(values_of(params), values_of(copies));
}

TEST_P(Optimizers, NumberOfThreadsAndPlaceInMemoryDoNotMatter) {
  const int64_t n = 70001;
  std::vector<float> start(n), grad(n);
  for (size_t i = 0; i < start.size(); ++i) {
    start[i] = std::sin(0.01F * static_cast<float>(i));
    grad[i] = std::cos(0.37F * static_cast<float>(i));
  }
  std::vector<double> results[2];
  const int before = num_threads();
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    Tensor x = parameter(start), first = parameter({1, 2, 3});
    std::vector<Tensor> params = threads == 1 ? std::vector{x, first} : std::vector{first, x};
    auto optimizer = GetParam().make(params);
    for (int i = 0; i < 3; ++i) {
      give_grad(x, grad);
      give_grad(first, {1, 2, 3});
      optimizer->step();
    }
    results[threads - 1] = x.detach().to_vector<double>();
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
}

TEST(Optimizer, ClosuresGiveTheLossFromBeforeTheStep) {
  Tensor x = parameter({3, -1});
  SGD optimizer({x}, {.lr = 0.25});
  const NoGradGuard no_grad;  // which does not reach the closure
  std::vector<float> losses;
  for (int i = 0; i < 3; ++i)
    losses.push_back(optimizer
                         .step([&] {
                           optimizer.zero_grad();
                           Tensor loss = sum(square(x));
                           loss.backward();
                           return loss;
                         })
                         .item<float>());
  EXPECT_EQ(losses, (std::vector<float>{10, 2.5, 0.625}));
  EXPECT_EQ(x.detach().to_vector<float>(), (std::vector<float>{0.375, -0.125}));
  expect_error<ValueError>([&] { optimizer.step(Optimizer::Closure()); },
                           "SGD: step(closure) got an empty function");
}

TEST(Rprop, NaNAndZeroGradientsMoveNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Tensor x = parameter({1, 2, 3});
  Rprop optimizer({x}, {.lr = 0.5});
  for (const std::vector<float>& grad : {std::vector<float>{nan, 0, 1}, {1, 0, -1}, {1, 0, -1}}) {
    give_grad(x, grad);
    optimizer.step();
  }
  expect_near(x.detach().to_vector<double>(), {-0.1, 2, 2.75}, 1e-6, 0);  // PyTorch 2.15
}

TEST(Optimizer, CountsAVersionAndSkipsParametersWithoutGradient) {
  std::vector<Tensor> params = two_parameters();
  SGD optimizer(params, {.lr = 0.1});
  uint32_t first = params[0].version(), second = params[1].version();
  give_grad(params[0], {1, 1, 1, 1, 1, 1});
  optimizer.step();
  EXPECT_GT(params[0].version(), first);
  EXPECT_EQ(params[1].version(), second);
  EXPECT_EQ(params[1].detach().to_vector<float>(), (std::vector<float>{1, -0.5F, 0.125F, 4}));
}

TEST(Optimizer, ZeroGradTakesAwayOrFills) {
  std::vector<Tensor> params = two_parameters();
  SGD optimizer(params);
  give_grad(params[1], {1, 2, 3, 4});
  optimizer.zero_grad(/*set_to_none=*/false);
  EXPECT_FALSE(params[0].grad().defined());
  EXPECT_EQ(params[1].grad().to_vector<float>(), (std::vector<float>(4, 0)));
  optimizer.zero_grad();
  EXPECT_FALSE(params[1].grad().defined());
}

TEST(Optimizer, TakesParametersAndGradientsThatAreNotRowMajor) {
  Tensor base = parameter({1, 2, 3, 4, 5, 6}, {2, 3});
  Tensor x = base.detach().transpose(0, 1);
  x.requires_grad_();
  x.set_grad(parameter({1, 2, 3, 4, 5, 6}, {2, 3}).detach().transpose(0, 1));
  SGD optimizer({x}, {.lr = 0.5, .momentum = 0.9});
  optimizer.step();
  EXPECT_EQ(base.detach().to_vector<float>(), (std::vector<float>{0.5F, 1, 1.5F, 2, 2.5F, 3}));
}

TEST(Optimizer, MixedDtypesAndEmptyTensorsShareAGroup) {
  Tensor a = parameter({1, 2}), b = parameter({1, 2}, {}, float64), c = parameter({}, {0}),
         d = parameter({3});
  for (const Tensor& x : {a, b, c, d}) x.set_grad(x.detach().clone());
  SGD optimizer({a, b, c, d}, {.lr = 0.5});
  optimizer.step();
  EXPECT_EQ(a.detach().to_vector<float>(), (std::vector<float>{0.5F, 1}));
  EXPECT_EQ(b.detach().to_vector<double>(), (std::vector<double>{0.5, 1}));
  EXPECT_EQ(d.detach().to_vector<float>(), (std::vector<float>{1.5F}));
}

TEST(Optimizer, GroupsHaveOptionsOfTheirOwn) {
  Tensor a = parameter({1}), b = parameter({1}), c = parameter({1});
  SGD optimizer({{{a}, {.lr = 0.1}}, {{b}, {.lr = 0.2}}});
  optimizer.add_param_group({c}, {.lr = 0.3});
  EXPECT_EQ(optimizer.num_groups(), 3U);
  for (const Tensor& x : {a, b, c}) give_grad(x, {1});
  optimizer.set_lr(0.5, 1);
  optimizer.options(2).weight_decay = 1;
  optimizer.step();
  EXPECT_FLOAT_EQ(a.detach().item<float>(), 0.9F);
  EXPECT_FLOAT_EQ(b.detach().item<float>(), 0.5F);
  EXPECT_FLOAT_EQ(c.detach().item<float>(), 0.4F);
}

TEST(Optimizer, GroupsInheritWhatTheyAreGiven) {
  SGD optimizer({parameter({1})}, {.lr = 0.1, .momentum = 0.9});
  optimizer.add_param_group({parameter({1})});
  optimizer.add_param_group({parameter({1})}, {.lr = 0.3});
  SGDOptions slow = optimizer.defaults();
  slow.lr = 0.01;
  optimizer.add_param_group({parameter({1})}, slow);
  std::vector<std::pair<double, double>> got;
  for (size_t g = 0; g < optimizer.num_groups(); ++g)
    got.emplace_back(optimizer.lr(g), optimizer.options(g).momentum);
  EXPECT_EQ(got, (std::vector<std::pair<double, double>>{{0.1, 0.9}, {0.1, 0.9}, {0.3, 0}, {0.01, 0.9}}));
}

TEST(Optimizer, GroupsOfAdamWDecayApart) {
  AdamW optimizer({parameter({1})}, {.lr = 0.1, .weight_decay = 0.5});
  optimizer.add_param_group({parameter({1})});
  optimizer.add_param_group({parameter({1})}, {.lr = 0.2});
  AdamOptions copied = optimizer.defaults();
  copied.lr = 0.3;
  optimizer.add_param_group({parameter({1})}, copied);
  optimizer.add_param_group({parameter({1})}, AdamOptions{.lr = 0.4});
  const std::vector<std::pair<double, double>> expected{
      {0.1, 0.5}, {0.1, 0.5}, {0.2, 0.01}, {0.3, 0.5}, {0.4, 0}};
  ASSERT_EQ(optimizer.num_groups(), expected.size());
  for (size_t g = 0; g < expected.size(); ++g) {
    EXPECT_EQ(std::pair(optimizer.lr(g), optimizer.options(g).weight_decay), expected[g]) << g;
    EXPECT_TRUE(optimizer.options(g).decoupled_weight_decay) << g;
  }
}

TEST(Optimizer, MomentumSwitchedOnLaterStartsFresh) {
  Tensor x = parameter({1, 1, 1});
  SGD optimizer({x}, {.lr = 1});
  give_grad(x, {1, 1, 1});
  optimizer.step();
  optimizer.options().momentum = 0.5;
  optimizer.step();
  EXPECT_EQ(x.detach().to_vector<float>(), (std::vector<float>{-1, -1, -1}));
}

TEST(Optimizer, RefusesWrongParametersAndOptions) {
  Tensor x = parameter({1, 2});
  EXPECT_THAT(message_of<ValueError>([] { SGD(std::vector<Tensor>{}); }), HasSubstr("empty parameter list"));
  EXPECT_THAT(message_of<ValueError>([&] { SGD({x, Tensor()}); }), HasSubstr("parameter 1 is undefined"));
  EXPECT_THAT(message_of<ValueError>([&] { SGD({x, x}); }), HasSubstr("twice in a parameter group"));
  EXPECT_THAT(message_of<ValueError>([&] {
                SGD optimizer({x});
                optimizer.add_param_group({x});
              }),
              HasSubstr("some parameters appear in more than one parameter group"));
  EXPECT_THAT(message_of<DTypeError>([&] { SGD({x.detach().to(int64)}); }),
              HasSubstr("parameter 0 is int64"));
  EXPECT_THAT(message_of<ValueError>([&] { SGD({x * x}); }), HasSubstr("can't optimize a non-leaf Tensor"));
  EXPECT_THAT(message_of<ValueError>([&] { SGD({x}, {.lr = -1}); }),
              HasSubstr("SGD: Invalid learning rate: -1"));
  EXPECT_THAT(message_of<ValueError>([&] { SGD({x}, {.nesterov = true}); }),
              HasSubstr("Nesterov momentum requires"));
  EXPECT_THAT(message_of<ValueError>([&] {
                Adam({x}, {.betas = {0.9, 1.0}});
              }),
              HasSubstr("beta parameter at index 1: 1"));
  EXPECT_THAT(message_of<ValueError>([&] { AdamW({x}, {.eps = -1}); }), HasSubstr("AdamW: Invalid epsilon"));
  EXPECT_THAT(message_of<ValueError>([&] { RMSprop({x}, {.alpha = -1}); }),
              HasSubstr("RMSprop: Invalid alpha"));
  EXPECT_THAT(message_of<ValueError>([&] { Adagrad({x}, {.lr_decay = -1}); }),
              HasSubstr("Adagrad: Invalid lr_decay"));
  EXPECT_THAT(message_of<ValueError>([&] { NAdam({x}, {.momentum_decay = -1}); }),
              HasSubstr("NAdam: Invalid momentum_decay value: -1"));
  EXPECT_THAT(message_of<ValueError>([&] {
                RAdam({x}, {.betas = {-0.5, 0.9}});
              }),
              HasSubstr("RAdam: Invalid beta parameter at index 0: -0.5"));
  EXPECT_THAT(message_of<ValueError>([&] { Adamax({x}, {.eps = std::nan("")}); }),
              HasSubstr("Adamax: Invalid epsilon value: nan"));
  EXPECT_THAT(message_of<ValueError>([&] { Adadelta({x}, {.rho = 1.5}); }),
              HasSubstr("Adadelta: Invalid rho value: 1.5 (it must be from 0 to 1)"));
  EXPECT_THAT(message_of<ValueError>([&] { ASGD({x}, {.lambd = -1}); }), HasSubstr("ASGD: Invalid lambd"));
  EXPECT_THAT(message_of<ValueError>([&] {
                Rprop({x}, {.etas = {0.5, 1}});
              }),
              HasSubstr("Rprop: Invalid eta values: 0.5, 1"));
}

}  // namespace
}  // namespace tern::optim
