// Recurrent layers and cells.
#include "tern/nn/rnn.h"

#include <fmt/format.h>

#include "tern/nn/layer_support.h"
#include "tern/nn/text.h"
#include "tern/ops/autocast.h"
#include "tern/ops/random.h"
#include "tern/ops/shape.h"

namespace tern::nn {

using tern::detail::gates_of;
using tern::detail::RecurrentKind;

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

void init_uniform(const std::vector<Parameter*>& parameters, int64_t hidden_size) {
  const double bound = hidden_size > 0 ? 1 / std::sqrt(static_cast<double>(hidden_size)) : 0;
  for (const Parameter* parameter : parameters)
    if (parameter->defined()) init::uniform_(*parameter, -bound, bound);
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
  const int64_t rows = gates_of(kind) * hidden_size;
  for (int64_t i = 0; i < options.num_layers * num_directions(); ++i) {
    RecurrentParameters& added = layers.emplace_back();
    const bool first = i < num_directions();
    added.weight_ih = empty_parameter({rows, first ? input_size : num_directions() * hidden_size}, options);
    added.weight_hh = empty_parameter({rows, hidden_size}, options);
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
  }
}

void RecurrentBase::reset_parameters() {
  for (RecurrentParameters& p : layers)
    init_uniform({&p.weight_ih, &p.weight_hh, &p.bias_ih, &p.bias_hh}, hidden_size_);
}

std::string RecurrentBase::extra_repr() const {
  std::string text = fmt::format("{}, {}", input_size_, hidden_size_);
  if (options_.num_layers != 1) text += fmt::format(", num_layers={}", options_.num_layers);
  if (!options_.bias) text += ", bias=False";
  if (options_.batch_first) text += ", batch_first=True";
  if (options_.dropout != 0) text += ", dropout=" + python_text(options_.dropout);
  if (options_.bidirectional) text += ", bidirectional=True";
  return text;
}

void RecurrentBase::check(const Tensor& x, const LSTMState& state) const {
  const char* layer = layer_name(kind_);
  const bool lstm = kind_ == RecurrentKind::Lstm, batched = x.dim() == 3;
  TERN_CHECK(batched || x.dim() == 2, ShapeError, "{}: Expected input to be 2D or 3D, got {}D instead", layer,
             x.dim());
  check_dtype(layer, x, layers[0].weight_ih);
  TERN_CHECK(x.size(-1) == input_size_, ShapeError,
             "{}: input.size(-1) must be equal to input_size. Expected {}, got {}", layer, input_size_,
             x.size(-1));
  if (!state.h.defined() && !state.c.defined()) return;
  TERN_CHECK(!lstm || (state.h.defined() && state.c.defined()), ValueError,
             "{}: the state must have both h and c, or neither", layer);
  const int64_t dim = x.dim();
  const bool fits = state.h.dim() == dim && (!lstm || state.c.dim() == dim);
  const char* kind_of_input = batched ? "batched 3-D" : "unbatched 2-D";
  TERN_CHECK(fits || lstm, ShapeError, "{}: For {} input, hx should also be {}-D but got {}-D tensor", layer,
             kind_of_input, dim, state.h.dim());
  TERN_CHECK(fits, ShapeError, "{}: For {} input, hx and cx should also be {}-D but got ({}-D, {}-D) tensors",
             layer, kind_of_input, dim, state.h.dim(), state.c.dim());
  Shape expected{options_.num_layers * num_directions(), hidden_size_};
  if (batched) expected = {expected[0], x.size(options_.batch_first ? 0 : 1), hidden_size_};
  check_state(layer, lstm ? "hidden[0]" : "hidden", state.h, expected);
  check_state(layer, "hidden[1]", state.c, expected);
}

/// Appends the last states of its directions.
Tensor RecurrentBase::run_layer(int64_t layer, const Tensor& x, const LSTMState& state,
                                std::vector<Tensor>& h, std::vector<Tensor>& c) const {
  std::vector<Tensor> outputs;
  for (int64_t direction = 0; direction < num_directions(); ++direction) {
    const int64_t i = layer * num_directions() + direction;
    const auto& [weight_ih, weight_hh, bias_ih, bias_hh] = layers[static_cast<size_t>(i)];
    const auto own = [&](const Tensor& all) { return all.defined() ? select(all, 0, i) : Tensor(); };
    const auto result = recurrent_layer(kind_, x, {own(state.h), own(state.c)},
                                        {weight_ih, weight_hh, bias_ih, bias_hh}, /*reverse=*/direction == 1);
    outputs.push_back(result.output);
    h.push_back(result.state.h);
    if (result.state.c.defined()) c.push_back(result.state.c);
  }
  return outputs.size() == 1 ? outputs[0] : cat(outputs, -1);
}

std::pair<Tensor, LSTMState> RecurrentBase::run(const Tensor& given, const LSTMState& state_given) const {
  check(given, state_given);
  const bool batched = given.dim() == 3, turned = batched && options_.batch_first;
  Tensor x = !batched ? unsqueeze(given, 1) : turned ? transpose(given, 0, 1) : given;
  const LSTMState state =
      batched ? state_given : LSTMState{with_batch(state_given.h, 1), with_batch(state_given.c, 1)};
  std::vector<Tensor> h, c;
  for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
    if (layer > 0) x = dropout(x, options_.dropout, is_training() && options_.dropout > 0);
    x = run_layer(layer, x, state, h, c);
  }
  LSTMState last{stack(h), c.empty() ? Tensor() : stack(c)};
  if (!batched) return {squeeze(x, 1), {without_batch(last.h, 1), without_batch(last.c, 1)}};
  return {turned ? transpose(x, 0, 1) : x, last};
}

LSTM::LSTM(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : RecurrentBase(RecurrentKind::Lstm, input_size, hidden_size, options) {}

GRU::GRU(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : RecurrentBase(RecurrentKind::Gru, input_size, hidden_size, options) {}

std::pair<Tensor, Tensor> GRU::forward(const Tensor& x, const Tensor& h) const {
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
