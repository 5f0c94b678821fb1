// Recurrent layers and cells for operator_list.cpp: which arguments are what.
#pragma once

#include <vector>

#include "tern/base/check.h"
#include "tern/ops/recurrent.h"
#include "tests/ops/operator_arguments.h"

namespace tern::testing {

/// Of a cell: x, h, c (which LSTM alone has) and the four parameters.
inline Operator recurrent_cell(decltype(&gru_cell) f) {
  return [f](const Arguments& a) {
    return f(a.tensor(0), a.tensor(1), a.tensor(3), a.tensor(4), a.tensor(5), a.tensor(6));
  };
}

inline std::vector<Tensor> run_lstm_cell(const Arguments& a) {
  const LSTMState next =
      lstm_cell(a.tensor(0), {a.tensor(1), a.tensor(2)}, a.tensor(3), a.tensor(4), a.tensor(5), a.tensor(6));
  return {next.h, next.c};
}

/// The kind, x, h, c and the four parameters, and whether it goes backwards.
inline std::vector<Tensor> run_recurrent_layer(const Arguments& a) {
  using detail::RecurrentKind;
  for (const RecurrentKind kind :
       {RecurrentKind::Tanh, RecurrentKind::Relu, RecurrentKind::Lstm, RecurrentKind::Gru}) {
    if (a.text(0) != detail::name(kind)) continue;
    const auto [output, state] =
        recurrent_layer(kind, a.tensor(1), {a.tensor(2), a.tensor(3)},
                        {a.tensor(4), a.tensor(5), a.tensor(6), a.tensor(7)}, a.flag(8));
    if (!state.c.defined()) return {output, state.h};
    return {output, state.h, state.c};
  }
  TERN_THROW(ValueError, "no kind {}", a.text(0));
}

}  // namespace tern::testing
