// Descriptions of the launches of recurrent layers; work_test.cpp has the others.
#include "tern/kernels/recurrent.h"
#include "tests/kernels/work_testing.h"

namespace tern::work_testing {
namespace {

TEST(Work, RecurrentCells) {
  const LstmCellArgs lstm{
      .dtype = float32, .rows = 2, .hidden = 5, .gates = kA, .c_prev = kB, .c = kOut, .h = kOut + 1000};
  expect_work(kernels::lstm_cell, lstm, "lstm_cell", 90, 320 + 120,
              {{kA, 160, "rw"}, {kB, 40, "r"}, {kOut, 40, "w"}, {kOut + 1000, 40, "w"}});
  const LstmCellBackwardArgs lstm_back{.dtype = bfloat16,
                                       .rows = 2,
                                       .hidden = 5,
                                       .grad_output = kA,
                                       .grad_h = kA + 1000,
                                       .grad_c = kB,
                                       .gates = kC,
                                       .c_prev = kD,
                                       .c = kD + 1000,
                                       .grad_gates = kOut};
  expect_work(kernels::lstm_cell_backward, lstm_back, "lstm_cell_backward", 240, 160 + 120,
              {{kA, 20, "r"},
               {kA + 1000, 20, "r"},
               {kB, 20, "rw"},
               {kC, 80, "r"},
               {kD, 20, "r"},
               {kD + 1000, 20, "r"},
               {kOut, 80, "w"}});
  GruCellArgs gru{.dtype = float32,
                  .rows = 2,
                  .hidden = 5,
                  .gates = kA,
                  .h_gates = kB,
                  .h_prev = kC,
                  .h = kOut,
                  .h_n = nullptr};
  expect_work(kernels::gru_cell, gru, "gru_cell", 100, 240 + 120 + 80,
              {{kA, 120, "rw"}, {kB, 120, "r"}, {kC, 40, "r"}, {kOut, 40, "w"}});
  gru.h_n = kD;
  expect_work(kernels::gru_cell, gru, "gru_cell", 100, 240 + 120 + 120,
              {{kA, 120, "rw"}, {kB, 120, "r"}, {kC, 40, "r"}, {kOut, 40, "w"}, {kD, 40, "w"}});
  const GruCellBackwardArgs gru_back{.dtype = float32,
                                     .rows = 2,
                                     .hidden = 5,
                                     .grad_output = kA,
                                     .grad_h = kB,
                                     .gates = kC,
                                     .h_n = kD,
                                     .h_prev = kD + 1000,
                                     .grad_gates = kOut,
                                     .grad_h_gates = kOut + 1000};
  expect_work(kernels::gru_cell_backward, gru_back, "gru_cell_backward", 190, 360 + 200,
              {{kA, 40, "r"},
               {kB, 40, "rw"},
               {kC, 120, "r"},
               {kD, 40, "r"},
               {kD + 1000, 40, "r"},
               {kOut, 120, "w"},
               {kOut + 1000, 120, "w"}});
}

}  // namespace
}  // namespace tern::work_testing
