// L-BFGS against PyTorch's numbers, its state, and wrong uses.
#include "tern/optim/lbfgs.h"

#include <gmock/gmock.h>

#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/optim/support.h"
#include "tests/support/expect_error.h"

namespace tern::optim {
namespace {

using ::testing::HasSubstr;
using namespace tern::testing;

std::vector<Tensor> start_of_valley(DType dtype = float64) {
  return {parameter({0.5F, -1, 2, 0.25F, 0, -3}, {2, 3}, dtype), parameter({1, -0.5F, 0.125F, 4}, {}, dtype)};
}

/// Rosenbrock's valley, whose least point is where all are 1.
Tensor valley(const std::vector<Tensor>& params) {
  const Tensor x = cat({flatten(params[0]), params[1]});
  const Tensor now = narrow(x, 0, 0, 9), next = narrow(x, 0, 1, 9);
  return sum(square(1 - now)) + 2 * sum(square(next - square(now)));
}

Tensor step_in_valley(LBFGS& optimizer, const std::vector<Tensor>& params) {
  return optimizer.step([&] {
    optimizer.zero_grad();
    Tensor loss = optimizer.options().maximize ? -valley(params) : valley(params);
    loss.backward();
    return loss;
  });
}

const std::vector<std::pair<const char*, LBFGSOptions>> kLbfgsCases = {
    {"plain", {.lr = 0.02, .max_iter = 5}},
    {"wolfe", {.line_search_fn = "strong_wolfe"}},
    {"wolfe_short",
     {.lr = 0.5,
      .max_iter = 6,
      .max_eval = 9,
      .history_size = 2,
      .line_search_fn = "strong_wolfe",
      .maximize = true}},
};

void append(std::vector<double>& all, const std::vector<Tensor>& params) {
  for (const Tensor& p : params)
    for (double v : p.detach().to_vector<double>()) all.push_back(v);
}

TEST(LBFGS, FourStepsGivePyTorchsNumbers) {
  for (const auto& [name, options] : kLbfgsCases) {
    SCOPED_TRACE(name);
    const std::vector<Tensor> params = start_of_valley();
    LBFGS optimizer(params, options);
    std::vector<double> got;
    for (int i = 0; i < 4; ++i) got.push_back(step_in_valley(optimizer, params).item<double>());
    append(got, params);
    const StateMap state = optimizer.state_dict().state.at(0).second;
    got.insert(got.begin(), {*state.number("n_iter"), *state.number("func_evals")});
    expect_near(got, row(tables::lbfgs, name), 1e-7, 1e-12);
  }
}

TEST(LBFGS, FloatsFollow) {
  const std::vector<Tensor> params = start_of_valley(float32);
  LBFGS optimizer(params, {.line_search_fn = "strong_wolfe"});
  for (int i = 0; i < 4; ++i) step_in_valley(optimizer, params);
  std::vector<double> got;
  append(got, params);
  expect_near(got, std::vector<double>(10, 1.0), 1e-2, 0);
}

TEST(LBFGS, ResumesBitForBit) {
  for (const auto& [name, options] : kLbfgsCases) {
    SCOPED_TRACE(name);
    const std::vector<Tensor> params = start_of_valley();
    LBFGS optimizer(params, options);
    EXPECT_TRUE(optimizer.state_dict().state.empty());
    step_in_valley(optimizer, params);
    std::vector<Tensor> copies;
    for (const Tensor& p : params) copies.push_back(p.detach().clone().requires_grad_());
    LBFGS resumed(copies);
    resumed.load_state_dict(optimizer.state_dict());
    std::vector<double> wanted, got;
    for (int i = 0; i < 2; ++i) {
      wanted.push_back(step_in_valley(optimizer, params).item<double>());
      got.push_back(step_in_valley(resumed, copies).item<double>());
    }
    append(wanted, params);
    append(got, copies);
    EXPECT_EQ(got, wanted);
  }
}

TEST(LBFGS, EndsAtOnceWhereTheGradientIsZero) {
  const Tensor x = parameter({1, 2}), unused = parameter({1});
  LBFGS optimizer({x, unused});
  int calls = 0;
  const auto closure = [&] {
    ++calls;
    optimizer.zero_grad();
    Tensor loss = sum(square(x - x.detach()));
    loss.backward();
    return loss;
  };
  EXPECT_EQ(optimizer.step(closure).item<double>(), 0);
  EXPECT_EQ(calls, 1);
  const OptimizerState saved = optimizer.state_dict();
  EXPECT_EQ(saved.state.at(0).second.size(), 2U);
  optimizer.load_state_dict(saved);
  EXPECT_EQ(optimizer.state_dict().state.at(0).second.integer("func_evals"), 1);
  EXPECT_EQ(saved.param_groups[0].options.integer("max_eval"), 25);
  EXPECT_TRUE(
      std::holds_alternative<std::monostate>(saved.param_groups[0].options.find("line_search_fn")->value));
}

TEST(LBFGS, RefusesWrongUses) {
  const Tensor x = parameter({1, 2});
  using Options = LBFGSOptions;
  for (const auto& [options, text] :
       {std::pair(Options{.lr = -1}, "LBFGS: Invalid learning rate: -1"),
        {Options{.max_iter = 0}, "max_iter must be at least 1, got 0"},
        {Options{.max_eval = 0}, "max_eval must be at least 1, got 0"},
        {Options{.history_size = 0}, "history_size must be at least 1, got 0"},
        {Options{.line_search_fn = "armijo"}, "only 'strong_wolfe' is supported"}})
    expect_error<ValueError>([&, &options = options] { LBFGS({x}, options); }, text);
  expect_error<ValueError>(
      [&] {
        LBFGS({x, parameter({1}, {}, float64)});
      },
      "all parameters must be of one dtype on one device");
  LBFGS optimizer({x});
  expect_error<ValueError>([&] { optimizer.step(); }, "LBFGS: step() needs a closure");
  expect_error<ValueError>([&] { optimizer.step(Optimizer::Closure()); }, "got an empty function");
  expect_error<ValueError>(
      [&] { optimizer.step([] { return Tensor(); }); },
      "the closure must return the loss, a tensor with one element, got an undefined tensor");
  expect_error<ValueError>([&] { optimizer.step([&] { return x * 2; }); }, "got [2]");
}

TEST(LBFGS, RefusesWrongState) {
  const std::vector<Tensor> params = start_of_valley();
  LBFGS optimizer(params);
  step_in_valley(optimizer, params);
  const OptimizerState good = optimizer.state_dict();
  LBFGS other(params);
  const auto load = [&](auto change) {
    OptimizerState saved = good;
    change(saved.state[0].second);
    return message_of([&] { other.load_state_dict(saved); });
  };
  EXPECT_THAT(load([](StateMap& s) { s.set("d", std::monostate()); }), HasSubstr("has no 'd'"));
  EXPECT_THAT(load([](StateMap& s) { s.set("d", parameter({1}).detach()); }),
              HasSubstr("'d' in the loaded state has"));
  EXPECT_THAT(load([](StateMap& s) { s.set("n_iter", int64_t{-1}); }), HasSubstr("must not be negative"));
  EXPECT_THAT(load([](StateMap& s) { s.set("old_dirs", std::vector<Tensor>()); }),
              HasSubstr("differ in length: 0"));
  EXPECT_THAT(load([](StateMap& s) { s.set("ro", 1.0); }), HasSubstr("'ro' must be a list of tensors"));
  EXPECT_THAT(load([](StateMap& s) {
                s.set("ro", std::vector<Tensor>{parameter({1, 2}).detach()});
              }),
              HasSubstr("'ro' in the loaded state must hold numbers"));
  OptimizerState wrong = good;
  wrong.state[0].first = 1;
  EXPECT_THAT(message_of<ValueError>([&] { other.load_state_dict(wrong); }), HasSubstr("parameter 1"));
  wrong.state.push_back(good.state[0]);
  EXPECT_THAT(message_of<ValueError>([&] { other.load_state_dict(wrong); }),
              HasSubstr("state of 2 parameters"));
  EXPECT_TRUE(other.state_dict().state.empty());
}

}  // namespace
}  // namespace tern::optim
