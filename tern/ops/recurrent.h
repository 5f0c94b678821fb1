// Recurrent cells, as torch.lstm_cell and its like, and whole layers of them in one direction, which
// nn::LSTM, nn::GRU and nn::RNN are made of. Second derivatives exist for the plain cells only: where others
// are asked for them, NotImplementedError is thrown.
#pragma once

#include <cstdint>

#include "tern/core/tensor.h"

namespace tern {

/// What an LSTM hands from step to step: the hidden state and the cell's. Both may be undefined where a state
/// is given, and are zeros then.
struct LSTMState {
  Tensor h, c;
};

/// One step of an LSTM (Hochreiter and Schmidhuber, "Long short-term memory", 1997):
///   i, f, g, o = input W_ih^T + b_ih + h W_hh^T + b_hh
///   c' = sigmoid(f) * c + sigmoid(i) * tanh(g),  h' = sigmoid(o) * tanh(c')
/// of input [N, C], h and c [N, H], w_ih [4 H, C], w_hh [4 H, H] and biases [4 H], which may be undefined.
/// Throws ShapeError, DTypeError.
LSTMState lstm_cell(const Tensor& input, const LSTMState& hx, const Tensor& w_ih, const Tensor& w_hh,
                    const Tensor& b_ih = {}, const Tensor& b_hh = {});

/// One step of a GRU (Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014):
///   r, z, n = input W_ih^T + b_ih,  s, t, m = h W_hh^T + b_hh
///   h' = (1 - z') * tanh(n + r' * m) + z' * h  with r' = sigmoid(r + s), z' = sigmoid(z + t)
/// of input [N, C], h [N, H], w_ih [3 H, C], w_hh [3 H, H] and biases [3 H], which may be undefined.
Tensor gru_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                const Tensor& b_ih = {}, const Tensor& b_hh = {});

/// tanh(input W_ih^T + b_ih + h W_hh^T + b_hh) of input [N, C], h [N, H], w_ih [H, C], w_hh [H, H] and biases
/// [H], which may be undefined.
Tensor rnn_tanh_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                     const Tensor& b_ih = {}, const Tensor& b_hh = {});
/// The same with relu.
Tensor rnn_relu_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                     const Tensor& b_ih = {}, const Tensor& b_hh = {});

namespace detail {

/// The cell of a recurrent layer.
enum class RecurrentKind : uint8_t { Tanh, Relu, Lstm, Gru };

/// The words "rnn_tanh", "rnn_relu", "lstm" and "gru", for errors.
const char* name(RecurrentKind kind);
/// Rows of the weights for each element of the hidden state: 4 for LSTM, 3 for GRU, 1 else.
int64_t gates_of(RecurrentKind kind);

/// The parameters of one layer and direction, under torch.nn.LSTM's names.
struct RecurrentWeights {
  Tensor w_ih;  ///< [gates * H, C]
  Tensor w_hh;  ///< [gates * H, H]
  Tensor b_ih;  ///< [gates * H], or undefined
  Tensor b_hh;  ///< [gates * H], or undefined
  /// [P, H] of an LSTM with projections, whose hidden state is w_hr times that of the cell (Sak et al., "Long
  /// short-term memory based recurrent neural network architectures", 2014); w_hh is [4 H, P] then. Else
  /// undefined.
  Tensor w_hr = {};
};

/// What a layer gives: all hidden states, and the last state in the order of its walk. `state.c` is
/// undefined but for LSTM. The state may share its memory with the output.
struct RecurrentResult {
  Tensor output;  ///< [T, N, H]; with projections [T, N, P], as the hidden state
  LSTMState state;
};

/// All steps of a layer in one direction, from the last to the first where `reverse`: x [T, N, C] and a state
/// of [N, H], or undefined for zeros. One node of the graph; per step one product and one cell. With
/// projections there are nodes for each step. Throws ShapeError, DTypeError.
RecurrentResult recurrent_layer(RecurrentKind kind, const Tensor& x, const LSTMState& state,
                                const RecurrentWeights& weights, bool reverse = false);

}  // namespace detail
}  // namespace tern
