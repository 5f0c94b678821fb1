// Arguments of the cells of recurrent layers: what follows the products of one time step, with the gradients.
// Shape rules, the products and the walk over the steps are in ops/recurrent.cpp. The plain cell is made of
// unary and binary kernels.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern {

/// One step of an LSTM (Hochreiter and Schmidhuber, "Long short-term memory", 1997), without peepholes, as
/// torch.nn.LSTM has it. All are contiguous.
struct LstmCellArgs {
  DType dtype;
  int64_t rows, hidden;
  /// [rows, 4 * hidden]: sums of products and biases, which become i = sigmoid, f = sigmoid, g = tanh,
  /// o = sigmoid of themselves.
  void* gates;
  const void* c_prev;  ///< [rows, hidden]
  void* c;             ///< [rows, hidden] = f * c_prev + i * g; may be c_prev
  void* h;             ///< [rows, hidden] = o * tanh(c)
};

/// Its gradients, from what it left. All are contiguous.
struct LstmCellBackwardArgs {
  DType dtype;
  int64_t rows, hidden;
  const void* grad_output;  ///< [rows, hidden]: of h, from above
  const void* grad_h;       ///< [rows, hidden]: of h, from the next step
  void* grad_c;             ///< [rows, hidden]: of c from the next step; becomes that of c_prev
  const void* gates;        ///< [rows, 4 * hidden]
  const void* c_prev;       ///< [rows, hidden]
  const void* c;            ///< [rows, hidden]
  void* grad_gates;         ///< [rows, 4 * hidden]: of the sums
};

/// One step of a GRU (Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014), with
/// the reset gate after the product, as torch.nn.GRU has it. All are contiguous.
struct GruCellArgs {
  DType dtype;
  int64_t rows, hidden;
  /// [rows, 3 * hidden]: the input's part of the sums, which becomes r = sigmoid(x_r + h_r),
  /// z = sigmoid(x_z + h_z), n = tanh(x_n + r * h_n).
  void* gates;
  const void* h_gates;  ///< [rows, 3 * hidden]: the hidden state's part of the sums
  const void* h_prev;   ///< [rows, hidden]
  void* h;              ///< [rows, hidden] = n + z * (h_prev - n)
  void* h_n;            ///< [rows, hidden]: the last third of h_gates, kept for backward; or null
};

/// Its gradients, from what it left. All are contiguous.
struct GruCellBackwardArgs {
  DType dtype;
  int64_t rows, hidden;
  const void* grad_output;  ///< [rows, hidden]: of h, from above
  void* grad_h;  ///< [rows, hidden]: of h from the next step; becomes that of h_prev, without h_gates' share
  const void* gates;   ///< [rows, 3 * hidden]
  const void* h_n;     ///< [rows, hidden]
  const void* h_prev;  ///< [rows, hidden]
  void* grad_gates;    ///< [rows, 3 * hidden]: of the input's part of the sums
  void* grad_h_gates;  ///< [rows, 3 * hidden]: of the hidden state's part
};

#define TERN_RECURRENT_KERNELS(X)             \
  X(lstm_cell, LstmCellArgs)                  \
  X(lstm_cell_backward, LstmCellBackwardArgs) \
  X(gru_cell, GruCellArgs)                    \
  X(gru_cell_backward, GruCellBackwardArgs)

}  // namespace tern
