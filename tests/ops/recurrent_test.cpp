// Recurrent layers and cells: gradients against finite differences, what is asked of the graph, autocast,
// errors. Values against PyTorch are in operator_rows/recurrent.py.
#include "tern/ops/recurrent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tern/autograd/engine.h"
#include "tern/autograd/grad_mode.h"
#include "tern/autograd/gradcheck.h"
#include "tern/base/parallel.h"
#include "tern/core/memory.h"
#include "tern/ops/autocast.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using detail::RecurrentKind;
using detail::RecurrentWeights;
using ::testing::HasSubstr;
using In = std::vector<Tensor>;

constexpr RecurrentKind kKinds[] = {RecurrentKind::Tanh, RecurrentKind::Relu, RecurrentKind::Lstm,
                                    RecurrentKind::Gru};

/// A leaf of numbers in (-1, 1).
Tensor leaf(const Shape& shape, DType dtype = float64, uint64_t seed = 0) {
  Tensor x = empty(shape, {.dtype = dtype});
  uniform_(x, -1, 1, Generator(static_cast<uint64_t>(x.numel()) + seed));
  return x.requires_grad_();
}
RecurrentWeights weights(RecurrentKind kind, int64_t inputs, int64_t hidden, DType dtype = float64) {
  const int64_t rows = detail::gates_of(kind) * hidden;
  return {leaf({rows, inputs}, dtype), leaf({rows, hidden}, dtype, 1), leaf({rows}, dtype, 2),
          leaf({rows}, dtype, 3)};
}

/// A number that everything that a layer gives goes into, with different factors.
Tensor mixed(const detail::RecurrentResult& result) {
  Tensor all = sum(mul(result.output, result.output));
  all = add(all, sum(mul(result.state.h, 3)));
  return result.state.c.defined() ? add(all, sum(mul(result.state.c, 0.5))) : all;
}

TEST(Recurrent, GradientsOfLayers) {
  for (const RecurrentKind kind : kKinds)
    for (const bool reverse : {false, true}) {
      SCOPED_TRACE(detail::name(kind));
      const RecurrentWeights w = weights(kind, 2, 3);
      const bool lstm = kind == RecurrentKind::Lstm;
      const auto with_state = [&](const In& in) {
        return mixed(recurrent_layer(kind, in[0], {in[1], lstm ? in[6] : Tensor()},
                                     {in[2], in[3], in[4], in[5]}, reverse));
      };
      In all{leaf({3, 2, 2}), leaf({2, 3}), w.w_ih, w.w_hh, w.b_ih, w.b_hh};
      if (lstm) all.push_back(leaf({2, 3}, float64, 5));
      gradcheck(with_state, all);
      gradcheck(
          [&](const In& in) {
            return mixed(recurrent_layer(kind, in[0], {}, {in[1], in[2], {}, {}}, reverse));
          },
          {leaf({3, 2, 2}), w.w_ih, w.w_hh});
      gradcheck(
          [&](const In& in) {
            return mixed(recurrent_layer(kind, in[0], {}, {in[1], in[2], {}, {}}, reverse));
          },
          {leaf({1, 2, 2}), w.w_ih, w.w_hh});
    }
}

TEST(Recurrent, GradientsOfCells) {
  const RecurrentWeights l = weights(RecurrentKind::Lstm, 2, 3), g = weights(RecurrentKind::Gru, 2, 3),
                         r = weights(RecurrentKind::Tanh, 2, 3);
  gradcheck(
      [](const In& in) {
        const LSTMState next = lstm_cell(in[0], {in[1], in[2]}, in[3], in[4], in[5], in[6]);
        return add(sum(mul(next.h, 2)), sum(mul(next.c, next.c)));
      },
      {leaf({4, 2}), leaf({4, 3}), leaf({4, 3}, float64, 1), l.w_ih, l.w_hh, l.b_ih, l.b_hh});
  gradcheck([](const In& in) { return gru_cell(in[0], in[1], in[2], in[3], in[4], in[5]); },
            {leaf({4, 2}), leaf({4, 3}), g.w_ih, g.w_hh, g.b_ih, g.b_hh});
  const auto plain = [](const In& in) { return rnn_tanh_cell(in[0], in[1], in[2], in[3], in[4], in[5]); };
  const In all{leaf({4, 2}), leaf({4, 3}), r.w_ih, r.w_hh, r.b_ih, r.b_hh};
  gradcheck(plain, all);
  gradgradcheck(plain, all);
}

/// The same in another layout of memory.
Tensor strided(const Tensor& x) { return transpose(contiguous(transpose(x.detach(), 0, -1)), 0, -1); }

TEST(Recurrent, AnyLayoutAndAnyNumberOfThreadsGiveTheSame) {
  for (const RecurrentKind kind : kKinds) {
    SCOPED_TRACE(detail::name(kind));
    const NoGradGuard guard;
    const RecurrentWeights w = weights(kind, 33, 70, float32);
    const Tensor x = leaf({3, 40, 33}, float32), h = leaf({40, 70}, float32);
    const LSTMState state{h, kind == RecurrentKind::Lstm ? leaf({40, 70}, float32, 1) : Tensor()};
    const LSTMState turned{strided(h), state.c.defined() ? strided(state.c) : Tensor()};
    const Tensor y = recurrent_layer(kind, x, state, w).output;
    const Tensor other =
        recurrent_layer(kind, strided(x), turned, {strided(w.w_ih), strided(w.w_hh), w.b_ih, w.b_hh}).output;
    EXPECT_TRUE(allclose(y, other, 1e-5, 1e-5));
    const int before = num_threads();
    set_num_threads(1);
    EXPECT_TRUE(allclose(y, recurrent_layer(kind, x, state, w).output, 1e-5, 1e-5));
    set_num_threads(before);
  }
}

TEST(Recurrent, OnlyWantedGradientsAndTwice) {
  for (const RecurrentKind kind : kKinds) {
    SCOPED_TRACE(detail::name(kind));
    const RecurrentWeights w = weights(kind, 2, 3);
    const Tensor x = leaf({4, 2, 2}), fixed = w.w_hh.detach();
    const Tensor loss = mixed(recurrent_layer(kind, x, {}, {w.w_ih, fixed, w.b_ih, w.b_hh}));
    const In first = grad({loss}, {x, w.w_ih, w.b_hh}, {}, {.retain_graph = true});
    const In second = grad({loss}, {x, w.w_ih, w.b_hh});
    for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(equal(first[i], second[i])) << i;
    EXPECT_FALSE(fixed.grad().defined());
    const Tensor constant = mixed(recurrent_layer(kind, x.detach(), {}, {w.w_ih.detach(), w.w_hh, {}, {}}));
    const In expected = grad({mixed(recurrent_layer(kind, x, {}, {w.w_ih, w.w_hh, {}, {}}))}, {w.w_hh});
    EXPECT_TRUE(allclose(grad({constant}, {w.w_hh})[0], expected[0]));
  }
}

TEST(Recurrent, SecondDerivativesAreRefused) {
  for (const RecurrentKind kind : kKinds) {
    const RecurrentWeights w = weights(kind, 2, 3);
    const Tensor x = leaf({4, 2, 2});
    const In first = grad({mixed(recurrent_layer(kind, x, {}, w))}, {x, w.w_hh}, {}, {.create_graph = true});
    expect_error<NotImplementedError>(
        [&] { sum(mul(first[0], first[0])).backward(); },
        std::string(detail::name(kind)) + ": second derivatives of recurrent layers");
    expect_error<NotImplementedError>([&] { sum(first[1]).backward(); }, "are not implemented");
  }
}

TEST(Recurrent, AChangeOfTheOutputIsNoticed) {
  const RecurrentWeights w = weights(RecurrentKind::Lstm, 2, 3);
  Tensor y = recurrent_layer(RecurrentKind::Lstm, leaf({4, 2, 2}), {}, w).output;
  y.mul_(2);
  EXPECT_THROW(sum(y).backward(), AutogradError);
}

TEST(Recurrent, Autocast) {
  const RecurrentWeights w = weights(RecurrentKind::Lstm, 2, 3, float32);
  const Tensor x = leaf({4, 2, 2}, float32), h = leaf({2, 3}, float32);
  Tensor loss;
  {
    const AutocastGuard guard({.device_type = get_default_device().type, .dtype = bfloat16});
    for (const RecurrentKind kind : kKinds) {
      const auto result = recurrent_layer(kind, x, {h, {}}, weights(kind, 2, 3, float32));
      EXPECT_EQ(result.output.dtype(), bfloat16) << detail::name(kind);
    }
    loss = mixed(recurrent_layer(RecurrentKind::Lstm, x, {h, h}, w));
    EXPECT_EQ(gru_cell(select(x, 0, 0), h, leaf({9, 2}, float32), leaf({9, 3}, float32)).dtype(), bfloat16);
  }
  loss.backward();
  EXPECT_EQ(w.w_hh.grad().dtype(), float32);
  EXPECT_EQ(h.grad().dtype(), float32);
}

TEST(Recurrent, Errors) {
  const Tensor x = ones({4, 2, 3});
  const RecurrentWeights w{ones({20, 3}), ones({20, 5}), ones({20}), {}};
  const auto run = [](const Tensor& input, const LSTMState& state, const RecurrentWeights& all) {
    return [=] { recurrent_layer(RecurrentKind::Lstm, input, state, all); };
  };
  expect_error<ShapeError>(run(ones({4, 3}), {}, w), "lstm: input must have 3 dimensions, got 2");
  expect_error<ShapeError>(run(ones({0, 2, 3}), {}, w),
                           "lstm: Expected sequence length to be larger than 0 in RNN");
  expect_error<ShapeError>(run(ones({4, 2, 4}), {}, w), "lstm: w_ih must be [20, 4], got [20, 3]");
  expect_error<ShapeError>(run(x, {}, {w.w_ih, ones({15, 5}), {}, {}}),
                           "lstm: w_hh must be [20, 5], got [15, 5]");
  expect_error<ShapeError>(run(x, {}, {w.w_ih, ones({20}), {}, {}}), "lstm: weights must be matrices");
  expect_error<ShapeError>(run(x, {}, {w.w_ih, w.w_hh, ones({5}), {}}), "lstm: b_ih must be [20], got [5]");
  expect_error<ShapeError>(run(x, {ones({3, 5}), {}}, w), "lstm: hx must be [2, 5], got [3, 5]");
  expect_error<DTypeError>(run(x, {{}, ones({2, 5}, {.dtype = float64})}, w),
                           "lstm: cx must have the dtype of the weights");
  expect_error<DTypeError>(run(to(x, int64), {}, {to(w.w_ih, int64), to(w.w_hh, int64), {}, {}}),
                           "lstm: not implemented for int64");
  expect_error<ShapeError>(
      [&] {
        gru_cell(ones({2, 4}), {}, ones({15, 3}), ones({15, 5}));
      },
      "gru_cell: input has inconsistent input_size: got 4 expected 3");
  expect_error<ShapeError>(
      [&] {
        lstm_cell(ones({2, 3}), {ones({3, 5}), {}}, w.w_ih, w.w_hh);
      },
      "lstm_cell: Input batch size 2 doesn't match hidden0 batch size 3");
  expect_error<ShapeError>(
      [&] {
        lstm_cell(ones({2, 3}), {ones({2, 5}), ones({2, 4})}, w.w_ih, w.w_hh);
      },
      "lstm_cell: hidden1 has inconsistent hidden_size: got 4, expected 5");
  expect_error<ShapeError>(
      [&] {
        rnn_relu_cell(ones({3}), {}, ones({5, 3}), ones({5, 5}));
      },
      "rnn_relu_cell: input and weights must be matrices, got [3]");
}

}  // namespace
}  // namespace tern
