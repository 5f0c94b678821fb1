// Recurrent layers and cells.
#include "tern/nn/rnn.h"

#include <fmt/format.h>

#include <algorithm>

#include "tern/nn/layer_support.h"
#include "tern/nn/text.h"
#include "tern/ops/autocast.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/random.h"
#include "tern/ops/shape.h"

namespace tern::nn {

using tern::detail::gates_of;
using tern::detail::recurrent_layer;
using tern::detail::RecurrentKind;
using tern::detail::RecurrentResult;
using tern::detail::RecurrentWeights;

namespace {

const char* layer_name(RecurrentKind kind) {
  return kind == RecurrentKind::Lstm ? "LSTM" : kind == RecurrentKind::Gru ? "GRU" : "RNN";
}

RecurrentKind plain_kind(const char* layer, const std::string& nonlinearity) {
  TERN_CHECK(nonlinearity == "tanh" || nonlinearity == "relu", ValueError,
             "{}: Unknown nonlinearity '{}'. Select from 'tanh' or 'relu'.", layer, nonlinearity);
  return nonlinearity == "tanh" ? RecurrentKind::Tanh : RecurrentKind::Relu;
}

RecurrentOptions without_nonlinearity(const RNNOptions& options) {
  return {.num_layers = options.num_layers,
          .bias = options.bias,
          .batch_first = options.batch_first,
          .dropout = options.dropout,
          .bidirectional = options.bidirectional,
          .device = options.device,
          .dtype = options.dtype};
}

/// PyTorch's tuple of sizes, which it writes before the list that it was given.
void check_state(const char* layer, const char* what, const Tensor& state, const Shape& expected) {
  TERN_CHECK(!state.defined() || state.shape() == expected, ShapeError, "{}: Expected {} size {}, got {}",
             layer, what, python_tuple(expected), to_string(state.shape()));
}

void check_dtype(const char* layer, const Tensor& x, const Parameter& weight) {
  TERN_CHECK(
      x.dtype() == weight.dtype() || is_autocast_enabled(x.device().type), DTypeError,
      "{}: input dtype ({}) does not match weight dtype ({}): convert the input with to({}), or the layer",
      layer, name(x.dtype()), name(weight.dtype()), name(weight.dtype()));
}

Tensor with_batch(const Tensor& x, int64_t dim) { return x.defined() ? unsqueeze(x, dim) : x; }
Tensor without_batch(const Tensor& x, int64_t dim) { return x.defined() ? squeeze(x, dim) : x; }

void check_both(const char* layer, bool lstm, const LSTMState& state) {
  TERN_CHECK(!lstm || state.h.defined() == state.c.defined(), ValueError,
             "{}: the state must have both h and c, or neither", layer);
}

/// The states of a batch [layers, N, H] in another order; itself where there is none.
Tensor in_order(const Tensor& state, const std::vector<int64_t>& order) {
  if (!state.defined() || order.empty()) return state;
  return index_select(state, 1, tensor(order, {.device = state.device()}));
}

// ---- packed rows

/// Neighbouring steps of as many sequences.
struct Stretch {
  int64_t steps, rows, offset;
};
std::vector<Stretch> stretches(const std::vector<int64_t>& batch_sizes) {
  std::vector<Stretch> all;
  int64_t offset = 0;
  for (const int64_t rows : batch_sizes) {
    if (all.empty() || all.back().rows != rows) all.push_back({0, rows, offset});
    ++all.back().steps;
    offset += rows;
  }
  return all;
}

Tensor first_rows(const Tensor& x, int64_t rows) { return x.defined() ? narrow(x, 0, 0, rows) : x; }

/// The states of sequences that go on, then of those that begin: rows of the first state, or zeros.
Tensor with_more(const Tensor& running, const Tensor& first, int64_t rows) {
  if (!running.defined() || running.size(0) == rows) return running;
  const int64_t begun = running.size(0);
  return cat({running, first.defined() ? narrow(first, 0, begun, rows - begun)
                                       : zeros({rows - begun, running.size(1)},
                                               {.dtype = running.dtype(), .device = running.device()})});
}

/// recurrent_layer of packed rows, one stretch after the other: from the first to the last, where sequences
/// end on the way, or from the last to the first, where they begin.
RecurrentResult packed_layer(RecurrentKind kind, const Tensor& data, const std::vector<int64_t>& batch_sizes,
                             const LSTMState& first, const RecurrentWeights& weights, bool reverse) {
  const std::vector<Stretch> all = stretches(batch_sizes);
  std::vector<Tensor> outputs(all.size()), ended_h, ended_c;
  LSTMState state;
  for (size_t k = 0; k < all.size(); ++k) {
    const size_t i = reverse ? all.size() - 1 - k : k;
    const auto [steps, rows, offset] = all[i];
    if (k == 0) {
      state = {first_rows(first.h, rows), first_rows(first.c, rows)};
    } else if (reverse) {
      state = {with_more(state.h, first.h, rows), with_more(state.c, first.c, rows)};
    } else {
      const int64_t ended = all[i - 1].rows - rows;
      ended_h.push_back(narrow(state.h, 0, rows, ended));
      if (state.c.defined()) ended_c.push_back(narrow(state.c, 0, rows, ended));
      state = {first_rows(state.h, rows), first_rows(state.c, rows)};
    }
    const Tensor x = reshape(narrow(data, 0, offset, steps * rows), {steps, rows, data.size(1)});
    const RecurrentResult result = recurrent_layer(kind, x, state, weights, reverse);
    outputs[i] = flatten(result.output, 0, 1);
    state = result.state;
  }
  const auto with_ended = [](const Tensor& running, std::vector<Tensor>& ended) {
    if (ended.empty()) return running;
    ended.push_back(running);
    std::reverse(ended.begin(), ended.end());
    return cat(ended);
  };
  return {outputs.size() == 1 ? outputs[0] : cat(outputs),
          {with_ended(state.h, ended_h), with_ended(state.c, ended_c)}};
}

}  // namespace

// ---- layers

RecurrentBase::RecurrentBase(RecurrentKind kind, int64_t input_size, int64_t hidden_size,
                             const RecurrentOptions& options)
    : kind_(kind), input_size_(input_size), hidden_size_(hidden_size), options_(options) {
  const char* layer = layer_name(kind);
  TERN_CHECK(options.dropout >= 0 && options.dropout <= 1, ValueError,
             "{}: dropout should be a number in range [0, 1] representing the probability of an element "
             "being zeroed, "
             "got {}",
             layer, options.dropout);
  at_least(layer, "input_size", input_size, 1);
  at_least(layer, "hidden_size", hidden_size, 1);
  at_least(layer, "num_layers", options.num_layers, 1);
  at_least(layer, "proj_size", options.proj_size, 0);
  TERN_CHECK(options.proj_size == 0 || kind == RecurrentKind::Lstm, ValueError,
             "{}: proj_size argument is only supported for LSTM, not RNN or GRU", layer);
  TERN_CHECK(options.proj_size < hidden_size, ValueError,
             "{}: proj_size has to be smaller than hidden_size, got {} and {}", layer, options.proj_size,
             hidden_size);
  const int64_t rows = gates_of(kind) * hidden_size;
  for (int64_t i = 0; i < options.num_layers * num_directions(); ++i) {
    RecurrentParameters& added = layers.emplace_back();
    const bool first = i < num_directions();
    added.weight_ih = empty_parameter({rows, first ? input_size : num_directions() * state_size()}, options);
    added.weight_hh = empty_parameter({rows, state_size()}, options);
    if (options.proj_size > 0) added.weight_hr = empty_parameter({state_size(), hidden_size}, options);
    if (!options.bias) continue;
    added.bias_ih = empty_parameter({rows}, options);
    added.bias_hh = empty_parameter({rows}, options);
  }
  reset_parameters();
}

void RecurrentBase::collect_fields(Fields& fields) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const size_t directions = static_cast<size_t>(num_directions());
    const std::string suffix = fmt::format("_l{}{}", i / directions, i % directions == 1 ? "_reverse" : "");
    fields.add("weight_ih" + suffix, layers[i].weight_ih);
    fields.add("weight_hh" + suffix, layers[i].weight_hh);
    fields.add("bias_ih" + suffix, layers[i].bias_ih);
    fields.add("bias_hh" + suffix, layers[i].bias_hh);
    fields.add("weight_hr" + suffix, layers[i].weight_hr);
  }
}

void RecurrentBase::reset_parameters() {
  for (RecurrentParameters& p : layers)
    init_uniform({&p.weight_ih, &p.weight_hh, &p.bias_ih, &p.bias_hh, &p.weight_hr}, hidden_size_);
}

std::string RecurrentBase::extra_repr() const {
  std::string text = fmt::format("{}, {}", input_size_, hidden_size_);
  if (options_.proj_size != 0) text += fmt::format(", proj_size={}", options_.proj_size);
  if (options_.num_layers != 1) text += fmt::format(", num_layers={}", options_.num_layers);
  if (!options_.bias) text += ", bias=False";
  if (options_.batch_first) text += ", batch_first=True";
  if (options_.dropout != 0) text += ", dropout=" + python_text(options_.dropout);
  if (options_.bidirectional) text += ", bidirectional=True";
  return text;
}

void RecurrentBase::check_input(const Tensor& x) const {
  const char* layer = layer_name(kind_);
  check_dtype(layer, x, layers[0].weight_ih);
  TERN_CHECK(x.size(-1) == input_size_, ShapeError,
             "{}: input.size(-1) must be equal to input_size. Expected {}, got {}", layer, input_size_,
             x.size(-1));
}

/// `batch` is nothing where the state has no dimension for it.
void RecurrentBase::check_sizes(const LSTMState& state, std::optional<int64_t> batch) const {
  const char* layer = layer_name(kind_);
  Shape expected{options_.num_layers * num_directions()};
  if (batch) expected.push_back(*batch);
  expected.push_back(state_size());
  check_state(layer, kind_ == RecurrentKind::Lstm ? "hidden[0]" : "hidden", state.h, expected);
  expected.back() = hidden_size_;
  check_state(layer, "hidden[1]", state.c, expected);
}

void RecurrentBase::check(const Tensor& x, const LSTMState& state) const {
  const char* layer = layer_name(kind_);
  const bool lstm = kind_ == RecurrentKind::Lstm, batched = x.dim() == 3;
  TERN_CHECK(batched || x.dim() == 2, ShapeError, "{}: Expected input to be 2D or 3D, got {}D instead", layer,
             x.dim());
  check_input(x);
  check_both(layer, lstm, state);
  if (!state.h.defined()) return;
  const int64_t dim = x.dim();
  const bool fits = state.h.dim() == dim && (!lstm || state.c.dim() == dim);
  const char* kind_of_input = batched ? "batched 3-D" : "unbatched 2-D";
  TERN_CHECK(fits || lstm, ShapeError, "{}: For {} input, hx should also be {}-D but got {}-D tensor", layer,
             kind_of_input, dim, state.h.dim());
  TERN_CHECK(fits, ShapeError, "{}: For {} input, hx and cx should also be {}-D but got ({}-D, {}-D) tensors",
             layer, kind_of_input, dim, state.h.dim(), state.c.dim());
  check_sizes(state, batched ? std::optional(x.size(options_.batch_first ? 0 : 1)) : std::nullopt);
}

std::pair<Tensor, LSTMState> RecurrentBase::run_layers(Tensor x, const std::vector<int64_t>* batch_sizes,
                                                       const LSTMState& state) const {
  std::vector<Tensor> h, c;
  for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
    if (layer > 0) x = dropout(x, options_.dropout, is_training() && options_.dropout > 0);
    std::vector<Tensor> outputs;
    for (int64_t direction = 0; direction < num_directions(); ++direction) {
      const int64_t i = layer * num_directions() + direction;
      const RecurrentParameters& p = layers[static_cast<size_t>(i)];
      const auto own = [&](const Tensor& all) { return all.defined() ? select(all, 0, i) : Tensor(); };
      const LSTMState first{own(state.h), own(state.c)};
      const RecurrentWeights weights{p.weight_ih, p.weight_hh, p.bias_ih, p.bias_hh, p.weight_hr};
      const bool reverse = direction == 1;
      const RecurrentResult result = batch_sizes
                                         ? packed_layer(kind_, x, *batch_sizes, first, weights, reverse)
                                         : recurrent_layer(kind_, x, first, weights, reverse);
      outputs.push_back(result.output);
      h.push_back(result.state.h);
      if (result.state.c.defined()) c.push_back(result.state.c);
    }
    x = outputs.size() == 1 ? outputs[0] : cat(outputs, -1);
  }
  return {x, {stack(h), c.empty() ? Tensor() : stack(c)}};
}

std::pair<Tensor, LSTMState> RecurrentBase::run(const Tensor& given, const LSTMState& state_given) const {
  check(given, state_given);
  const bool batched = given.dim() == 3, turned = batched && options_.batch_first;
  const LSTMState first =
      batched ? state_given : LSTMState{with_batch(state_given.h, 1), with_batch(state_given.c, 1)};
  const auto [x, last] = run_layers(!batched ? unsqueeze(given, 1)
                                    : turned ? transpose(given, 0, 1)
                                             : given,
                                    nullptr, first);
  if (!batched) return {squeeze(x, 1), {without_batch(last.h, 1), without_batch(last.c, 1)}};
  return {turned ? transpose(x, 0, 1) : x, last};
}

std::pair<PackedSequence, LSTMState> RecurrentBase::run(const PackedSequence& given,
                                                        const LSTMState& state) const {
  const char* layer = layer_name(kind_);
  given.check(layer);
  TERN_CHECK(given.data.dim() == 2, ShapeError,
             "{}: the data of a packed sequence must be [rows, input_size], got {}", layer,
             to_string(given.data.shape()));
  check_input(given.data);
  check_both(layer, kind_ == RecurrentKind::Lstm, state);
  check_sizes(state, given.batch_sizes[0]);
  const auto [data, last] =
      run_layers(given.data, &given.batch_sizes,
                 {in_order(state.h, given.sorted_indices), in_order(state.c, given.sorted_indices)});
  PackedSequence output = given;
  output.data = data;
  return {output, {in_order(last.h, given.unsorted_indices), in_order(last.c, given.unsorted_indices)}};
}

LSTM::LSTM(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : RecurrentBase(RecurrentKind::Lstm, input_size, hidden_size, options) {}

GRU::GRU(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : RecurrentBase(RecurrentKind::Gru, input_size, hidden_size, options) {}

std::pair<Tensor, Tensor> GRU::forward(const Tensor& x, const Tensor& h) const {
  auto [output, state] = run(x, {h, {}});
  return {output, state.h};
}
std::pair<PackedSequence, Tensor> GRU::forward(const PackedSequence& x, const Tensor& h) const {
  auto [output, state] = run(x, {h, {}});
  return {output, state.h};
}

RNN::RNN(int64_t input_size, int64_t hidden_size, const RNNOptions& options)
    : RecurrentBase(plain_kind("RNN", options.nonlinearity), input_size, hidden_size,
                    without_nonlinearity(options)) {}

std::pair<Tensor, Tensor> RNN::forward(const Tensor& x, const Tensor& h) const {
  auto [output, state] = run(x, {h, {}});
  return {output, state.h};
}
std::pair<PackedSequence, Tensor> RNN::forward(const PackedSequence& x, const Tensor& h) const {
  auto [output, state] = run(x, {h, {}});
  return {output, state.h};
}

const char* RNN::nonlinearity() const { return kind() == RecurrentKind::Tanh ? "tanh" : "relu"; }

// ---- cells

RecurrentCellBase::RecurrentCellBase(RecurrentKind kind, int64_t input_size, int64_t hidden_size,
                                     const RecurrentCellOptions& options)
    : kind_(kind) {
  const std::string cell = std::string(layer_name(kind)) + "Cell";
  at_least(cell.c_str(), "input_size", input_size, 0);
  at_least(cell.c_str(), "hidden_size", hidden_size, 0);
  const int64_t rows = gates_of(kind) * hidden_size;
  weight_ih = empty_parameter({rows, input_size}, options);
  weight_hh = empty_parameter({rows, hidden_size}, options);
  if (options.bias) {
    bias_ih = empty_parameter({rows}, options);
    bias_hh = empty_parameter({rows}, options);
  }
  reset_parameters();
}

void RecurrentCellBase::collect_fields(Fields& fields) {
  fields.add("weight_ih", weight_ih);
  fields.add("weight_hh", weight_hh);
  fields.add("bias_ih", bias_ih);
  fields.add("bias_hh", bias_hh);
}

void RecurrentCellBase::reset_parameters() {
  init_uniform({&weight_ih, &weight_hh, &bias_ih, &bias_hh}, hidden_size());
}

std::string RecurrentCellBase::extra_repr() const {
  std::string text = fmt::format("{}, {}", input_size(), hidden_size());
  if (!bias_ih.defined()) text += ", bias=False";
  if (kind_ == RecurrentKind::Relu) text += ", nonlinearity=relu";
  return text;
}

void RecurrentCellBase::check(const Tensor& x, const LSTMState& state) const {
  const char* layer = layer_name(kind_);
  TERN_CHECK(x.dim() == 1 || x.dim() == 2, ShapeError,
             "{}Cell: Expected input to be 1D or 2D, got {}D instead", layer, x.dim());
  const auto check_one = [&](const char* what, const Tensor& h) {
    TERN_CHECK(!h.defined() || h.dim() == x.dim(), ShapeError,
               "{}Cell: Expected {} to be {}D, as the input, got {}D", layer, what, x.dim(), h.dim());
  };
  check_one(kind_ == RecurrentKind::Lstm ? "hx[0]" : "hidden", state.h);
  check_one("hx[1]", state.c);
}

namespace {

/// `step(x, state)` with a batch of one where there is none.
template <class Step>
LSTMState with_or_without_batch(const Tensor& x, const LSTMState& state, const Step& step) {
  if (x.dim() == 2) return step(x, state);
  const LSTMState next = step(unsqueeze(x, 0), LSTMState{with_batch(state.h, 0), with_batch(state.c, 0)});
  return {without_batch(next.h, 0), without_batch(next.c, 0)};
}

}  // namespace

LSTMCell::LSTMCell(int64_t input_size, int64_t hidden_size, const RecurrentCellOptions& options)
    : RecurrentCellBase(RecurrentKind::Lstm, input_size, hidden_size, options) {}

LSTMState LSTMCell::forward(const Tensor& x, const LSTMState& state) const {
  check(x, state);
  return with_or_without_batch(x, state, [&](const Tensor& input, const LSTMState& hx) {
    return lstm_cell(input, hx, weight_ih, weight_hh, bias_ih, bias_hh);
  });
}

GRUCell::GRUCell(int64_t input_size, int64_t hidden_size, const RecurrentCellOptions& options)
    : RecurrentCellBase(RecurrentKind::Gru, input_size, hidden_size, options) {}

Tensor GRUCell::forward(const Tensor& x, const Tensor& h) const {
  check(x, {h, {}});
  return with_or_without_batch(
             x, {h, {}},
             [&](const Tensor& input, const LSTMState& hx) {
               return LSTMState{gru_cell(input, hx.h, weight_ih, weight_hh, bias_ih, bias_hh), {}};
             })
      .h;
}

RNNCell::RNNCell(int64_t input_size, int64_t hidden_size, const RNNCellOptions& options)
    : RecurrentCellBase(plain_kind("RNNCell", options.nonlinearity), input_size, hidden_size,
                        {.bias = options.bias, .device = options.device, .dtype = options.dtype}) {}

Tensor RNNCell::forward(const Tensor& x, const Tensor& h) const {
  check(x, {h, {}});
  const auto cell = kind_ == RecurrentKind::Tanh ? rnn_tanh_cell : rnn_relu_cell;
  return with_or_without_batch(
             x, {h, {}},
             [&](const Tensor& input, const LSTMState& hx) {
               return LSTMState{cell(input, hx.h, weight_ih, weight_hh, bias_ih, bias_hh), {}};
             })
      .h;
}

const char* RNNCell::nonlinearity() const { return kind_ == RecurrentKind::Tanh ? "tanh" : "relu"; }

}  // namespace tern::nn
