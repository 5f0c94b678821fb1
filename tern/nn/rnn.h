// Recurrent layers and cells. The operators are in ops/recurrent.h; sequences of several lengths in one batch
// are packed by nn/packed_sequence.h.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tern/nn/module.h"
#include "tern/nn/packed_sequence.h"
#include "tern/ops/recurrent.h"

namespace tern::nn {

struct RecurrentOptions {
  int64_t num_layers = 1;  ///< each but the first takes the output of the one before
  bool bias = true;
  bool batch_first = false;  ///< [N, T, C] in place of [T, N, C]; states stay as they are
  double dropout = 0;        ///< between layers, in training; does nothing with one layer
  bool bidirectional = false;
  /// Of an LSTM: the size of its hidden states, which are projections of the cells' then; 0: none.
  int64_t proj_size = 0;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

struct RNNOptions {
  int64_t num_layers = 1;
  std::string nonlinearity = "tanh";  ///< or "relu"
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// The parameters of one layer in one direction; in a state dict weight_ih_l0, ..., weight_ih_l0_reverse,
/// .... Rows are those of the gates one after the other: i, f, g, o of LSTM; r, z, n of GRU. H stands for
/// hidden_size, S for the size of hidden states: proj_size where it is not 0, else hidden_size.
struct RecurrentParameters {
  Parameter weight_ih;  ///< [gates * H, input_size or, after the first layer, directions * S]
  Parameter weight_hh;  ///< [gates * H, S]
  Parameter bias_ih;    ///< [gates * H], or absent
  Parameter bias_hh;    ///< [gates * H], or absent
  Parameter weight_hr;  ///< [S, H] with projections, else absent
};

/// What LSTM, GRU and RNN share.
class RecurrentBase : public Module {
 public:
  /// Of each layer and direction, in PyTorch's order: the two directions of a layer are neighbours.
  std::vector<RecurrentParameters> layers;

  void collect_fields(Fields& fields) override;
  /// Draws the initial numbers again: all uniform within 1 / sqrt(hidden_size).
  void reset_parameters();

  int64_t input_size() const noexcept { return input_size_; }
  int64_t hidden_size() const noexcept { return hidden_size_; }
  /// Of h: proj_size where it is not 0, else hidden_size.
  int64_t state_size() const noexcept { return options_.proj_size > 0 ? options_.proj_size : hidden_size_; }
  const RecurrentOptions& options() const noexcept { return options_; }
  int64_t num_directions() const noexcept { return options_.bidirectional ? 2 : 1; }
  std::string extra_repr() const override;

 protected:
  RecurrentBase(tern::detail::RecurrentKind kind, int64_t input_size, int64_t hidden_size,
                const RecurrentOptions& options);

  tern::detail::RecurrentKind kind() const noexcept { return kind_; }
  /// The output and the last states of all layers and directions; `c` is undefined but for LSTM.
  std::pair<Tensor, LSTMState> run(const Tensor& x, const LSTMState& state) const;
  std::pair<PackedSequence, LSTMState> run(const PackedSequence& x, const LSTMState& state) const;

 private:
  void check(const Tensor& x, const LSTMState& state) const;
  void check_input(const Tensor& x) const;
  void check_sizes(const LSTMState& state, std::optional<int64_t> batch) const;
  /// Of x [T, N, C], or of the packed rows of `batch_sizes`.
  std::pair<Tensor, LSTMState> run_layers(Tensor x, const std::vector<int64_t>* batch_sizes,
                                          const LSTMState& state) const;

  tern::detail::RecurrentKind kind_;
  int64_t input_size_, hidden_size_;
  RecurrentOptions options_;
};

/// Layers of long short-term memory; the cell is that of lstm_cell.
class LSTM final : public RecurrentBase {
 public:
  /// Throws ValueError for sizes and numbers of layers below 1, a dropout outside [0, 1], or a proj_size that
  /// is not below hidden_size.
  LSTM(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {});

  /// x [T, N, input_size], or [N, T, input_size] with batch_first, or [T, input_size], gives the last layer's
  /// hidden states, [T, N, directions * hidden_size] in the same order, and the last states h and c of all
  /// layers and directions, [num_layers * directions, N, hidden_size] (without N where x has none). `state`
  /// is of those shapes, or zeros when left out. Second derivatives throw NotImplementedError. Throws
  /// ShapeError, DTypeError.
  std::pair<Tensor, LSTMState> forward(const Tensor& x, const LSTMState& state = {}) const {
    return run(x, state);
  }
  /// The same of packed sequences: each step is computed for the sequences that have it, and the last states
  /// are those after each one's own last step, all in the order that the sequences had before packing.
  std::pair<PackedSequence, LSTMState> forward(const PackedSequence& x, const LSTMState& state = {}) const {
    return run(x, state);
  }
  TERN_MODULE_CALL
  std::pair<Tensor, LSTMState> operator()(const Tensor& x, const LSTMState& state) const {
    return detail::call(*this, x, state);
  }
  std::pair<PackedSequence, LSTMState> operator()(const PackedSequence& x, const LSTMState& state) const {
    return detail::call(*this, x, state);
  }
};

/// Layers of gated recurrent units; the cell is that of gru_cell.
class GRU final : public RecurrentBase {
 public:
  /// As LSTM's; ValueError for a proj_size.
  GRU(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {});

  /// As LSTM's, with h alone for a state.
  std::pair<Tensor, Tensor> forward(const Tensor& x, const Tensor& h = {}) const;
  std::pair<PackedSequence, Tensor> forward(const PackedSequence& x, const Tensor& h = {}) const;
  TERN_MODULE_CALL
};

/// Layers of the plain cell of rnn_tanh_cell or rnn_relu_cell.
class RNN final : public RecurrentBase {
 public:
  /// As LSTM's; ValueError for another nonlinearity too.
  RNN(int64_t input_size, int64_t hidden_size, const RNNOptions& options = {});

  /// As LSTM's, with h alone for a state.
  std::pair<Tensor, Tensor> forward(const Tensor& x, const Tensor& h = {}) const;
  std::pair<PackedSequence, Tensor> forward(const PackedSequence& x, const Tensor& h = {}) const;
  TERN_MODULE_CALL
  /// "tanh" or "relu".
  const char* nonlinearity() const;
};

struct RecurrentCellOptions {
  bool bias = true;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

struct RNNCellOptions {
  bool bias = true;
  std::string nonlinearity = "tanh";  ///< or "relu"
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// What LSTMCell, GRUCell and RNNCell share.
class RecurrentCellBase : public Module {
 public:
  Parameter weight_ih;  ///< [gates * hidden_size, input_size]
  Parameter weight_hh;  ///< [gates * hidden_size, hidden_size]
  Parameter bias_ih;    ///< [gates * hidden_size], or absent
  Parameter bias_hh;    ///< [gates * hidden_size], or absent

  void collect_fields(Fields& fields) override;
  /// Draws the initial numbers again: all uniform within 1 / sqrt(hidden_size).
  void reset_parameters();

  int64_t input_size() const { return weight_ih.size(1); }
  int64_t hidden_size() const { return weight_hh.size(1); }
  std::string extra_repr() const override;

 protected:
  RecurrentCellBase(tern::detail::RecurrentKind kind, int64_t input_size, int64_t hidden_size,
                    const RecurrentCellOptions& options);
  void check(const Tensor& x, const LSTMState& state) const;

  tern::detail::RecurrentKind kind_;
};

/// One step of an LSTM: lstm_cell with weights of its own.
class LSTMCell final : public RecurrentCellBase {
 public:
  /// Throws ValueError for negative sizes.
  LSTMCell(int64_t input_size, int64_t hidden_size, const RecurrentCellOptions& options = {});

  /// x [N, input_size] or [input_size], and a state of [N, hidden_size] or [hidden_size] each, or zeros when
  /// left out, give the next state. Throws ShapeError, DTypeError.
  LSTMState forward(const Tensor& x, const LSTMState& state = {}) const;
  TERN_MODULE_CALL
  LSTMState operator()(const Tensor& x, const LSTMState& state) const {
    return detail::call(*this, x, state);
  }
};

/// One step of a GRU: gru_cell with weights of its own.
class GRUCell final : public RecurrentCellBase {
 public:
  /// As LSTMCell's.
  GRUCell(int64_t input_size, int64_t hidden_size, const RecurrentCellOptions& options = {});

  /// As LSTMCell's, with h alone for a state.
  Tensor forward(const Tensor& x, const Tensor& h = {}) const;
  TERN_MODULE_CALL
};

/// One step of the plain layer: rnn_tanh_cell or rnn_relu_cell with weights of its own.
class RNNCell final : public RecurrentCellBase {
 public:
  /// As LSTMCell's; ValueError for another nonlinearity too.
  RNNCell(int64_t input_size, int64_t hidden_size, const RNNCellOptions& options = {});

  /// As LSTMCell's, with h alone for a state.
  Tensor forward(const Tensor& x, const Tensor& h = {}) const;
  TERN_MODULE_CALL
  /// "tanh" or "relu".
  const char* nonlinearity() const;
};

}  // namespace tern::nn
