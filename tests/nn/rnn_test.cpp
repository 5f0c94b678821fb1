// Recurrent layers and cells as modules: text, names, first numbers, values of several layers and directions
// against PyTorch's, shapes, dropout, errors. The operators are tested in tests/ops/recurrent_test.cpp.
#include "tern/nn/rnn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "tern/autograd/grad_mode.h"
#include "tern/core/memory.h"
#include "tern/nn/containers.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/support/expect_error.h"

namespace tern::nn {
namespace {

using ::testing::ElementsAre;

/// The numbers that the tables below were made with: sin(i), sin(i + 1), ... in the i-th parameter.
void fill(Module& module) {
  const NoGradGuard guard;
  double first = 0;
  for (Tensor& p : module.parameters()) {
    p.copy_(reshape(sin(add(arange(p.numel(), {.dtype = float32}), first)), p.shape()));
    first += 1;
  }
}
Tensor input() { return reshape(cos(arange(12, {.dtype = float32})), {3, 2, 2}).requires_grad_(); }

void expect_numbers(const char* what, const Tensor& x, const Tensor& expected) {
  EXPECT_TRUE(allclose(flatten(x.detach()), expected, 2e-5, 2e-5))
      << what << ": " << to_string(flatten(x.detach()).shape());
}

/// Of two layers in both directions, PyTorch's numbers.
struct Expected {
  Tensor output, h, grad_x, grad_weight, grad_bias;
};
void expect_layers(RecurrentBase& module, const Tensor& x, const Tensor& y, const LSTMState& state,
                   const Expected& e) {
  Tensor loss =
      add(sum(mul(y, reshape(arange(y.numel(), {.dtype = float32}), y.shape()))), mul(sum(state.h), 2));
  if (state.c.defined()) loss = add(loss, mul(sum(state.c), 3));
  loss.backward();
  expect_numbers("output", select(y, 0, 1), e.output);
  expect_numbers("h", select(state.h, 0, 2), e.h);
  expect_numbers("grad of x", select(x.grad(), 0, 1), e.grad_x);
  expect_numbers("grad of weight_hh_l0_reverse", select(module.layers[1].weight_hh.grad(), 0, 0),
                 e.grad_weight);
  expect_numbers("grad of bias_hh_l1", narrow(module.layers[2].bias_hh.grad(), 0, 0, 2), e.grad_bias);
}

TEST(Recurrent, LstmAsPyTorch) {
  LSTM lstm(2, 2, {.num_layers = 2, .bidirectional = true});
  fill(lstm);
  const Tensor x = input();
  const auto [y, state] = lstm(x);
  expect_numbers("c", select(state.c, 0, 3), tensor({0.055531, 0.473126, -0.061789, 0.451058}));
  expect_layers(
      lstm, x, y, state,
      {tensor({0.067028, 0.007351, 0.057598, 0.379271, 0.092817, 0.007967, -0.242144, 0.363665}),
       tensor({0.079201, 0.014275, 0.089578, 0.014681}), tensor({3.52763, 0.728395, -0.93532, 1.506792}),
       tensor({0.526027, 0.528884}), tensor({4.606037, 1.62637})});
}

TEST(Recurrent, GruAsPyTorch) {
  GRU gru(2, 2, {.num_layers = 2, .bidirectional = true});
  fill(gru);
  const Tensor x = input();
  const auto [y, h] = gru(x);
  expect_layers(
      gru, x, y, {h, {}},
      {tensor({0.097805, 0.130701, -0.472134, 0.713517, 0.2231, 0.113888, -0.423789, 0.710901}),
       tensor({0.440972, 0.155634, 0.409879, 0.159256}), tensor({1.066818, 1.199645, 4.528203, 4.330314}),
       tensor({0.020494, 0.021155}), tensor({3.352707, -0.199264})});
}

TEST(Recurrent, RnnAsPyTorch) {
  RNN by_tanh(2, 2, {.num_layers = 2, .bidirectional = true});
  fill(by_tanh);
  Tensor x = input();
  auto [y, h] = by_tanh(x);
  expect_layers(by_tanh, x, y, {h, {}},
                {tensor({-0.906352, -0.707237, 0.835231, 0.969476, -0.794729, -0.631321, 0.972089, 0.637961}),
                 tensor({-0.987387, 0.731534, -0.980751, 0.047717}),
                 tensor({-1.959616, -4.294853, -3.389691, -2.468741}), tensor({3.535179, 3.479321}),
                 tensor({-3.408016, 39.777649})});
  RNN by_relu(2, 2, {.num_layers = 2, .nonlinearity = "relu", .bidirectional = true});
  fill(by_relu);
  x = input();
  std::tie(y, h) = by_relu(x);
  expect_layers(
      by_relu, x, y, {h, {}},
      {tensor({0.0, 0.0, 3.62249, 1.583492, 0.0, 0.0, 4.616381, 1.57663}), tensor({0.0, 0.0, 0.0, 0.0}),
       tensor({-4.938365, -9.55396, -34.905209, -17.200613}), tensor({0.0, 35.719452}), tensor({0.0, 6.0})});
}

TEST(Recurrent, TextAsPyTorch) {
  EXPECT_EQ(
      LSTM(2, 3, {.num_layers = 2, .bias = false, .batch_first = true, .dropout = 0.5, .bidirectional = true})
          .str(),
      "LSTM(2, 3, num_layers=2, bias=False, batch_first=True, dropout=0.5, bidirectional=True)");
  EXPECT_EQ(RNN(2, 3, {.nonlinearity = "relu"}).str(), "RNN(2, 3)");
  EXPECT_EQ(GRU(2, 3).str(), "GRU(2, 3)");
  EXPECT_EQ(LSTMCell(2, 3).str(), "LSTMCell(2, 3)");
  EXPECT_EQ(GRUCell(2, 3, {.bias = false}).str(), "GRUCell(2, 3, bias=False)");
  EXPECT_EQ(RNNCell(2, 3, {.nonlinearity = "relu"}).str(), "RNNCell(2, 3, nonlinearity=relu)");
}

std::vector<std::string> names(const Module& module) {
  std::vector<std::string> found;
  for (const auto& [name, parameter] : module.named_parameters()) found.push_back(name);
  return found;
}

TEST(Recurrent, NamesAsPyTorch) {
  EXPECT_THAT(names(LSTM(2, 3, {.bidirectional = true})),
              ElementsAre("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_ih_l0_reverse",
                          "weight_hh_l0_reverse", "bias_ih_l0_reverse", "bias_hh_l0_reverse"));
  EXPECT_THAT(names(GRU(2, 3, {.num_layers = 2, .bias = false})),
              ElementsAre("weight_ih_l0", "weight_hh_l0", "weight_ih_l1", "weight_hh_l1"));
  EXPECT_THAT(names(RNNCell(2, 3)), ElementsAre("weight_ih", "weight_hh", "bias_ih", "bias_hh"));
  const LSTM wide(2, 3, {.num_layers = 2, .bidirectional = true});
  EXPECT_EQ(wide.layers[2].weight_ih.shape(), (Shape{12, 6}));
  EXPECT_EQ(wide.layers[2].weight_hh.shape(), (Shape{12, 3}));
}

TEST(Recurrent, FirstNumbersAsPyTorch) {
  if (!get_default_device().is_cpu()) GTEST_SKIP() << "PyTorch's numbers are for tensors on the CPU";
  manual_seed(0, RandomEngine::MersenneTwister);
  const LSTM lstm(2, 3, {.num_layers = 2, .bidirectional = true});
  manual_seed(0);
  EXPECT_EQ(narrow(flatten(lstm.layers[0].weight_ih.detach()), 0, 0, 3).to_vector<float>(),
            (std::vector<float>{-0.004322517663240433f, 0.3097158372402191f, -0.4751853346824646f}));
  EXPECT_EQ(narrow(lstm.layers[3].bias_hh.detach(), 0, 9, 3).to_vector<float>(),
            (std::vector<float>{0.20801548659801483f, -0.40999385714530945f, 0.21461661159992218f}));
}

TEST(Recurrent, BatchFirstAndWithoutBatch) {
  LSTM lstm(4, 3, {.num_layers = 2, .bidirectional = true}),
      turned(4, 3, {.num_layers = 2, .batch_first = true, .bidirectional = true});
  turned.load_state_dict(lstm.state_dict());
  const NoGradGuard guard;
  const Tensor x = rand({5, 2, 4}), h = rand({4, 2, 3}), c = rand({4, 2, 3});
  const auto [y, state] = lstm(x, {h, c});
  EXPECT_EQ(y.shape(), (Shape{5, 2, 6}));
  EXPECT_EQ(state.h.shape(), (Shape{4, 2, 3}));
  const auto [other, other_state] = turned(transpose(x, 0, 1), {h, c});
  EXPECT_TRUE(allclose(transpose(other, 0, 1), y));
  EXPECT_TRUE(allclose(other_state.c, state.c));
  for (LSTM* each : {&lstm, &turned}) {
    const auto [row, row_state] = (*each)(select(x, 1, 1), {select(h, 1, 1), select(c, 1, 1)});
    EXPECT_TRUE(allclose(row, select(y, 1, 1)));
    EXPECT_TRUE(allclose(row_state.h, select(state.h, 1, 1)));
  }
  const auto [nothing, empty_state] = lstm(rand({5, 0, 4}));
  EXPECT_EQ(nothing.shape(), (Shape{5, 0, 6}));
  EXPECT_EQ(empty_state.c.shape(), (Shape{4, 0, 3}));
}

TEST(Recurrent, EmptyBatchHasGradientsOfZeros) {
  GRU gru(4, 3);
  sum(gru(rand({5, 0, 4})).first).backward();
  for (const Tensor& p : gru.parameters()) EXPECT_TRUE(equal(p.grad(), zeros_like(p)));
}

TEST(Recurrent, CellsMakeLayers) {
  const NoGradGuard guard;
  const Tensor x = rand({3, 2, 4});
  LSTM lstm(4, 5);
  LSTMCell cell(4, 5);
  GRU gru(4, 5);
  GRUCell gru_cell(4, 5);
  RNN rnn(4, 5, {.nonlinearity = "relu"});
  RNNCell rnn_cell(4, 5, {.nonlinearity = "relu"});
  for (Module* module : std::initializer_list<Module*>{&lstm, &cell, &gru, &gru_cell, &rnn, &rnn_cell})
    fill(*module);
  LSTMState state;
  Tensor h, r;
  for (int64_t t = 0; t < 3; ++t) {
    const Tensor step = select(x, 0, t);
    state = cell(step, state);
    h = gru_cell(step, h);
    r = rnn_cell(step, r);
    EXPECT_TRUE(allclose(state.h, select(lstm(x).first, 0, t)));
    EXPECT_TRUE(allclose(h, select(gru(x).first, 0, t)));
    EXPECT_TRUE(allclose(r, select(rnn(x).first, 0, t)));
  }
  const Tensor first = select(x, 0, 0), one = select(first, 0, 0);
  EXPECT_TRUE(allclose(cell(one).c, select(cell(first).c, 0, 0)));
  EXPECT_EQ(gru_cell(one, zeros({5})).shape(), (Shape{5}));
}

TEST(Recurrent, DropoutBetweenLayersInTraining) {
  LSTM lstm(4, 8, {.num_layers = 2, .dropout = 0.5});
  const NoGradGuard guard;
  const Tensor x = rand({5, 2, 4});
  EXPECT_FALSE(allclose(lstm(x).first, lstm(x).first));
  // The first layer knows nothing of it.
  EXPECT_TRUE(allclose(select(lstm(x).second.h, 0, 0), select(lstm(x).second.h, 0, 0)));
  lstm.eval();
  EXPECT_TRUE(equal(lstm(x).first, lstm(x).first));
  EXPECT_EQ(lstm.options().dropout, 0.5);
}

TEST(Recurrent, CopiesAndDtypes) {
  LSTM lstm(4, 3);
  const LSTM copy = clone(lstm);
  fill(lstm);
  EXPECT_FALSE(allclose(copy.layers[0].weight_hh, lstm.layers[0].weight_hh));
  lstm.to(float64);
  EXPECT_EQ(lstm(rand({5, 2, 4}, {.dtype = float64})).first.dtype(), float64);
  // The states are the caller's own.
  auto [y, state] = lstm(rand({5, 2, 4}, {.dtype = float64}));
  const Tensor before = clone(y);
  no_grad([&, h = state.h]() mutable { h.zero_(); });
  EXPECT_TRUE(equal(y, before));
}

TEST(Recurrent, Errors) {
  LSTM lstm(4, 3, {.num_layers = 2, .bidirectional = true});
  GRU gru(4, 3, {.batch_first = true});
  const Tensor x = ones({5, 2, 4});
  expect_error<ShapeError>([&] { lstm(ones({4})); }, "LSTM: Expected input to be 2D or 3D, got 1D instead");
  expect_error<ShapeError>(
      [&] {
        lstm(ones({5, 2, 3}));
      },
      "input.size(-1) must be equal to input_size. Expected 4, got 3");
  expect_error<ShapeError>(
      [&] {
        lstm(x, {ones({4, 3, 3}), ones({4, 2, 3})});
      },
      "Expected hidden[0] size (4, 2, 3), got [4, 3, 3]");
  expect_error<ShapeError>(
      [&] {
        lstm(x, {ones({4, 2, 3}), ones({2, 2, 3})});
      },
      "Expected hidden[1] size (4, 2, 3), got [2, 2, 3]");
  expect_error<ShapeError>(
      [&] {
        lstm(x, {ones({4, 3}), ones({4, 2, 3})});
      },
      "For batched 3-D input, hx and cx should also be 3-D but got (2-D, 3-D) tensors");
  expect_error<ValueError>(
      [&] {
        lstm(x, {ones({4, 2, 3}), {}});
      },
      "the state must have both h and c, or neither");
  expect_error<ShapeError>(
      [&] {
        gru(x, ones({1, 2, 3}));
      },
      "GRU: Expected hidden size (1, 5, 3), got [1, 2, 3]");
  expect_error<ShapeError>(
      [&] {
        gru(ones({5, 4}), ones({1, 1, 3}));
      },
      "GRU: For unbatched 2-D input, hx should also be 2-D but got 3-D tensor");
  expect_error<DTypeError>(
      [&] {
        gru(ones({5, 2, 4}, {.dtype = float64}));
      },
      "GRU: input dtype (float64) does not match weight dtype (float32)");
  expect_error<ShapeError>(
      [&] {
        gru(ones({5, 0, 4}));
      },
      "Expected sequence length to be larger than 0 in RNN");
  expect_error<ValueError>([] { LSTM(0, 3); }, "LSTM: input_size must be at least 1, got 0");
  expect_error<ValueError>([] { GRU(2, 0); }, "GRU: hidden_size must be at least 1, got 0");
  expect_error<ValueError>([] { GRU(2, 3, {.num_layers = 0}); }, "GRU: num_layers must be at least 1, got 0");
  expect_error<ValueError>([] { GRU(2, 3, {.dropout = 1.5}); },
                           "GRU: dropout should be a number in range [0, 1]");
  expect_error<ValueError>([] { RNN(2, 3, {.nonlinearity = "gelu"}); },
                           "RNN: Unknown nonlinearity 'gelu'. Select from 'tanh' or 'relu'.");
  expect_error<ShapeError>(
      [] {
        LSTMCell(2, 3)(ones({1, 2, 2}));
      },
      "LSTMCell: Expected input to be 1D or 2D, got 3D instead");
  expect_error<ShapeError>(
      [] {
        GRUCell(2, 3)(ones({1, 2}), ones({3}));
      },
      "GRUCell: Expected hidden to be 2D");
}

}  // namespace
}  // namespace tern::nn
