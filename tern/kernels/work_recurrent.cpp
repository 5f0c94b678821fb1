// What the cells of recurrent layers do.
#include "tern/kernels/work_describe.h"

namespace tern::kernels {

void describe(const LstmCellArgs& args, Work& work) {
  const size_t item = itemsize(args.dtype);
  const int64_t numel = args.rows * args.hidden;
  work.flops = 9 * static_cast<double>(numel);
  updates(work, args.gates, item, 4 * numel);
  reads(work, args.c_prev, item, numel);
  writes(work, args.c, item, numel);
  writes(work, args.h, item, numel);
}

void describe(const LstmCellBackwardArgs& args, Work& work) {
  const size_t item = itemsize(args.dtype);
  const int64_t numel = args.rows * args.hidden;
  work.flops = 24 * static_cast<double>(numel);
  reads(work, args.grad_output, item, numel);
  reads(work, args.grad_h, item, numel);
  updates(work, args.grad_c, item, numel);
  reads(work, args.gates, item, 4 * numel);
  reads(work, args.c_prev, item, numel);
  reads(work, args.c, item, numel);
  writes(work, args.grad_gates, item, 4 * numel);
}

void describe(const GruCellArgs& args, Work& work) {
  const size_t item = itemsize(args.dtype);
  const int64_t numel = args.rows * args.hidden;
  work.flops = 10 * static_cast<double>(numel);
  updates(work, args.gates, item, 3 * numel);
  reads(work, args.h_gates, item, 3 * numel);
  reads(work, args.h_prev, item, numel);
  writes(work, args.h, item, numel);
  writes(work, args.h_n, item, numel);
}

void describe(const GruCellBackwardArgs& args, Work& work) {
  const size_t item = itemsize(args.dtype);
  const int64_t numel = args.rows * args.hidden;
  work.flops = 19 * static_cast<double>(numel);
  reads(work, args.grad_output, item, numel);
  updates(work, args.grad_h, item, numel);
  reads(work, args.gates, item, 3 * numel);
  reads(work, args.h_n, item, numel);
  reads(work, args.h_prev, item, numel);
  writes(work, args.grad_gates, item, 3 * numel);
  writes(work, args.grad_h_gates, item, 3 * numel);
}

}  // namespace tern::kernels
