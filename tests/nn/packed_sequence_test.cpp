// Packed sequences, padding, and recurrent layers over them, with PyTorch's numbers; LSTM with projections.
#include "tern/nn/packed_sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tern/autograd/grad_mode.h"
#include "tern/nn/rnn.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/print.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/support/expect_error.h"

namespace tern::nn {
namespace {

using namespace utils::rnn;
using ::testing::ElementsAre;

Tensor counting(int64_t count, double first = 0) { return add(arange(count, {.dtype = float32}), first); }

/// sin(i), sin(i + 1), ... in the i-th parameter.
void fill_with_sines(Module& module) {
  const NoGradGuard guard;
  double first = 0;
  for (Tensor& p : module.parameters()) p.copy_(reshape(sin(counting(p.numel(), first++)), p.shape()));
}

void expect_values(const char* what, const Tensor& x, const Tensor& expected) {
  EXPECT_TRUE(allclose(flatten(x.detach()), flatten(expected), 2e-5, 2e-5)) << what << ": " << to_string(x);
}

Tensor batch() { return reshape(cos(counting(24)), {4, 3, 2}); }
PackedSequence pack_batch(const Tensor& x) {
  return pack_padded_sequence(x, {2, 4, 1}, {.enforce_sorted = false});
}

/// Of a batch of the lengths 2, 4, 1.
struct ExpectedPacked {
  const char* name;
  Tensor second_step, first_h, last_h, last_c, grad_x, grad_weight, last_rows, last_h_from_state;
};
void expect_packed(RecurrentBase& module, const Tensor& x, const PackedSequence& y, const LSTMState& state,
                   const ExpectedPacked& e) {
  SCOPED_TRACE(e.name);
  EXPECT_THAT(y.batch_sizes, ElementsAre(3, 2, 1, 1));
  EXPECT_THAT(y.sorted_indices, ElementsAre(1, 0, 2));
  const auto [out, lengths] = pad_packed_sequence(y);
  expect_values("lengths", lengths.to(float32), tensor({2.0, 4.0, 1.0}, {.device = kCPU}));
  expect_values("output", select(out, 0, 1), e.second_step);
  expect_values("h", select(state.h, 0, 0), e.first_h);
  expect_values("last h", select(state.h, 0, -1), e.last_h);
  Tensor loss = add(sum(mul(out, reshape(counting(out.numel()), out.shape()))), mul(sum(state.h), 2));
  if (state.c.defined()) {
    expect_values("c", select(state.c, 0, -1), e.last_c);
    loss = add(loss, mul(sum(state.c), 3));
  }
  loss.backward();
  expect_values("grad of x", select(x.grad(), 1, 0), e.grad_x);
  expect_values("grad of weight_hh_l0_reverse", select(module.layers[1].weight_hh.grad(), 0, 0),
                e.grad_weight);
}

LSTMState given_state(const Tensor& h, const Tensor& c = {}) {
  return {reshape(sin(counting(h.numel(), 0.5)), h.shape()),
          c.defined() ? reshape(cos(counting(c.numel())), c.shape()) : Tensor()};
}

void expect_lstm(LSTM lstm, const ExpectedPacked& e) {
  fill_with_sines(lstm);
  const Tensor x = batch().requires_grad_();
  const auto [y, state] = lstm(pack_batch(x));
  expect_packed(lstm, x, y, state, e);
  const auto [z, next] = lstm(pack_batch(x), given_state(state.h, state.c));
  expect_values("from a state", narrow(z.data, 0, 5, 2), e.last_rows);
  expect_values("h from a state", select(next.h, 0, -1), e.last_h_from_state);
}
template <class Layer>
void expect_layer(Layer layer, const ExpectedPacked& e) {
  fill_with_sines(layer);
  const Tensor x = batch().requires_grad_();
  const auto [y, h] = layer(pack_batch(x));
  expect_packed(layer, x, y, {h, {}}, e);
  const auto [z, next] = layer(pack_batch(x), given_state(h).h);
  expect_values("from a state", narrow(z.data, 0, 5, 2), e.last_rows);
  expect_values("h from a state", select(next, 0, -1), e.last_h_from_state);
}

TEST(Packed, LayersAsPyTorch) {
  expect_lstm(LSTM(2, 2, {.num_layers = 2, .bidirectional = true}),
              {"lstm",
               tensor({0.0918047, 0.00969394, -0.194051, 0.362723, 0.0521466, 0.00804192, 0.207835, 0.313148,
                       0., 0., 0., 0.}),
               tensor({0.585828, -0.00898148, 0.21729, 0.195502, -0.10215, 0.0776792}),
               tensor({-0.378865, 0.339934, 0.322624, 0.260637, -0.126817, 0.374422}),
               tensor({-0.530387, 0.463022, 0.448464, 0.294141, -0.168335, 0.501689}),
               tensor({2.88486, 2.88048, -3.49355, -1.62294, 0., 0., 0., 0.}), tensor({0.184791, 0.0794013}),
               tensor({0.0560875, -0.0287023, 0.304711, 0.372029, 0.101029, -0.0193943, 0.352037, 0.0888056}),
               tensor({-0.462259, 0.317096, 0.373602, 0.257967, -0.372529, 0.405537})});
  expect_lstm(
      LSTM(2, 3, {.num_layers = 2, .bidirectional = true, .proj_size = 2}),
      {"projected",
       tensor({-0.176101, 0.12739, -0.0935809, 0.0639405, -0.148969, 0.10924, -0.204109, 0.111311, 0., 0., 0.,
               0.}),
       tensor({-0.519773, 0.51721, 0.163803, -0.228908, -0.0465805, 0.0110757}),
       tensor({-0.156078, 0.103068, -0.313949, 0.210437, -0.0827215, 0.0412316}),
       tensor({-0.198396, -0.36608, 0.497252, -0.524938, -0.708958, 0.556522, -0.142323, -0.27979, 0.399773}),
       tensor({0.118553, -0.561448, 1.64219, 1.56779, 0., 0., 0., 0.}), tensor({-0.0613157, 0.0399919}),
       tensor({-0.22235, 0.179162, 0.112696, -0.155083, -0.253973, 0.21067, 0.574467, -0.604043}),
       tensor({-0.508289, 0.42923, -0.208901, 0.120322, -0.618492, 0.547445})});
  expect_layer(
      GRU(2, 2, {.num_layers = 2, .bidirectional = true}),
      {"gru",
       tensor(
           {0.207799, 0.137686, -0.101623, 0.68493, 0.366054, 0.105504, -0.763504, 0.773311, 0., 0., 0., 0.}),
       tensor({0.950582, -0.253511, -0.211317, 0.86115, -0.23347, 0.525444}),
       tensor({-0.289816, 0.713721, -0.737081, 0.764868, -0.374453, 0.724208}), Tensor(),
       tensor({1.89236, 1.41556, -0.714368, -0.383161, 0., 0., 0., 0.}), tensor({0.00789223, 0.014861}),
       tensor({0.655613, 0.188167, -0.734876, 0.859015, 0.727081, 0.156469, -0.387802, 0.762911}),
       tensor({-0.646192, 0.822034, -0.850531, 0.862096, -0.416824, 0.89362})});
  expect_layer(RNN(2, 2, {.bidirectional = true}),
               {"rnn",
                tensor({0.992162, 0.220176, -0.790222, 0.953898, -0.268109, -0.227549, 0.687347, 0.976907, 0.,
                        0., 0., 0.}),
                tensor({0.992162, 0.220176, 0.175549, 0.00314002, 0.858894, -0.824275}),
                tensor({-0.385165, 0.97304, 0.610529, 0.987396, 0.53722, 0.965096}), Tensor(),
                tensor({-10.2909, -3.9462, 9.5178, -0.883167, 0., 0., 0., 0.}), tensor({14.4002, 33.3866}),
                tensor({0.131058, -0.343606, 0.710185, 0.958403, 0.369083, -0.0433458, -0.149595, 0.925017}),
                tensor({-0.291759, 0.970827, 0.758011, 0.981796, 0.933945, 0.516285})});
}

TEST(Packed, EachSequenceAsAlone) {
  manual_seed(1);
  LSTM lstm(3, 4, {.num_layers = 2, .bidirectional = true});
  std::vector<Tensor> sequences;
  for (const int64_t length : {3, 7, 1, 7, 2}) sequences.push_back(randn({length, 3}));
  const auto [packed, state] = lstm(pack_sequence(sequences, /*enforce_sorted=*/false));
  const std::vector<Tensor> results = unpack_sequence(packed);
  for (size_t i = 0; i < sequences.size(); ++i) {
    const auto [alone, last] = lstm(sequences[i]);
    EXPECT_TRUE(allclose(results[i], alone, 1e-5, 1e-6));
    EXPECT_TRUE(allclose(select(state.c, 1, static_cast<int64_t>(i)), last.c, 1e-5, 1e-6));
  }
}

TEST(Projection, AsPyTorch) {
  LSTM lstm(2, 3, {.proj_size = 2});
  EXPECT_EQ(lstm.str(), "LSTM(2, 3, proj_size=2)");
  EXPECT_EQ(LSTM(2, 3, {.num_layers = 2, .bias = false, .bidirectional = true, .proj_size = 1}).str(),
            "LSTM(2, 3, proj_size=1, num_layers=2, bias=False, bidirectional=True)");
  std::vector<std::string> names;
  for (const auto& [name, tensor] : lstm.state_dict()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0"));
  fill_with_sines(lstm);
  const auto [y, state] = lstm(batch());
  expect_values("output", select(y, 0, 3),
                tensor({-0.559503, 0.547927, 0.163803, -0.228908, 0.0686554, -0.164048}));
  expect_values(
      "c", state.c,
      tensor({1.21961, 0.848216, -0.124088, 0.482609, -0.170772, -0.546843, 0.750049, -0.230676, -0.790582}));
  EXPECT_EQ(state.h.shape(), Shape({1, 3, 2}));
}

TEST(Padding, AsPyTorch) {
  const std::vector<Tensor> sequences{counting(3), counting(2, 10), counting(1, 20)};
  expect_values("steps first", pad_sequence(sequences), tensor({0., 10., 20., 1., 11., 0., 2., 0., 0.}));
  expect_values("batch first", pad_sequence(sequences, /*batch_first=*/true, -1),
                tensor({0., 1., 2., 10., 11., -1., 20., -1., -1.}));
  expect_values("left", pad_sequence(sequences, /*batch_first=*/true, 0, "left"),
                tensor({0., 1., 2., 0., 10., 11., 0., 0., 20.}));
  const std::vector<Tensor> back = unpad_sequence(pad_sequence(sequences), {3, 2, 1});
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(equal(back[i], sequences[i]));
  const PackedSequence packed =
      pack_sequence({sequences[1], sequences[0], sequences[2]}, /*enforce_sorted=*/false);
  expect_values("packed", packed.data, tensor({0., 10., 20., 1., 11., 2.}));
  EXPECT_THAT(packed.batch_sizes, ElementsAre(3, 2, 1));
  EXPECT_THAT(packed.unsorted_indices, ElementsAre(1, 0, 2));
  const auto [padded, lengths] =
      pad_packed_sequence(packed, {.batch_first = true, .padding_value = 7, .total_length = 4});
  expect_values("padded", padded, tensor({10., 11., 7., 7., 0., 1., 2., 7., 20., 7., 7., 7.}));
  const PackedSequence by_batch = pack_padded_sequence(padded, tensor({2, 3, 1}, {.dtype = int64}),
                                                       {.batch_first = true, .enforce_sorted = false});
  EXPECT_TRUE(equal(by_batch.data, packed.data));
  EXPECT_EQ(by_batch.to(float64).data.dtype(), float64);
}

TEST(Packed, Errors) {
  const Tensor x = ones({4, 3, 2});
  expect_error<ValueError>(
      [&] {
        pack_padded_sequence(x, {2, 4, 1});
      },
      "must be sorted in decreasing order when `enforce_sorted` is True");
  expect_error<ValueError>(
      [&] {
        pack_padded_sequence(x, {4, 4});
      },
      "Expected `len(lengths)` to be equal to batch_size, but got 2 (batch_size=3)");
  expect_error<ValueError>(
      [&] {
        pack_padded_sequence(x, {4, 2, 0});
      },
      "Length of all samples has to be greater than 0, but got 0");
  expect_error<ValueError>([&] { pack_padded_sequence(x, {5, 2, 1}); }, "a length is 5, but the batch has 4");
  expect_error<ValueError>([&] { pack_padded_sequence(x, tensor({1., 1., 1.})); }, "1-D tensor of int64");
  expect_error<ShapeError>([&] { pack_padded_sequence(ones({4}), {1}); }, "one of sequences, got [4]");
  expect_error<ValueError>([] { pad_sequence({}); }, "received an empty list of sequences");
  expect_error<ShapeError>([] { pad_sequence({ones({2, 3}), ones({2, 4})}); }, "got [2, 3] and [2, 4]");
  expect_error<ValueError>([] { pad_sequence({ones({2})}, false, 0, "middle"); }, "one of left or right");
  expect_error<ValueError>([&] { unpad_sequence(x, {1, 2}); }, "len(lengths)");
  const PackedSequence packed = pack_padded_sequence(x, {4, 2, 1});
  expect_error<ValueError>([&] { pad_packed_sequence(packed, {.total_length = 3}); },
                           "total_length=3 and max sequence length being 4");
  PackedSequence broken = packed;
  broken.batch_sizes = {3, 2, 1};
  LSTM lstm(2, 3);
  expect_error<ValueError>([&] { lstm(broken); }, "LSTM: the batch_sizes of a packed sequence, [3, 2, 1]");
  broken = packed;
  broken.sorted_indices = {0, 1, 3};
  expect_error<ValueError>([&] { lstm(broken); }, "must be orders of its 3 sequences");
  expect_error<ShapeError>(
      [&] {
        lstm(packed, {zeros({1, 2, 3}), zeros({1, 2, 3})});
      },
      "LSTM: Expected hidden[0] size (1, 3, 3), got [1, 2, 3]");
  expect_error<ShapeError>([&] { LSTM(3, 3)(packed); }, "input.size(-1) must be equal to input_size");
  expect_error<ValueError>([] { LSTM(2, 3, {.proj_size = 3}); },
                           "LSTM: proj_size has to be smaller than hidden_size, got 3 and 3");
  expect_error<ValueError>([] { LSTM(2, 3, {.proj_size = -1}); }, "LSTM: proj_size must be at least 0");
  expect_error<ValueError>([] { GRU(2, 3, {.proj_size = 1}); },
                           "GRU: proj_size argument is only supported for LSTM");
}

}  // namespace
}  // namespace tern::nn
