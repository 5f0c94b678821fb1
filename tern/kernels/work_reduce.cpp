// What the kernels do that work along dimensions: reductions, softmax, scans.
#include "tern/kernels/work_describe.h"

namespace tern::kernels {
namespace {

/// Elements that a reduction reads.
double elements(const Geometry<1>& kept, const Geometry<1>& reduced) {
  return static_cast<double>(kept.numel) * static_cast<double>(reduced.numel);
}

Span input_span(const Geometry<1>& kept, const Geometry<1>& reduced) {
  return Span().walk(kept, 0).walk(reduced, 0);
}

std::string_view reduce_name(const ReduceArgs& args) {
  switch (args.op) {
    case ReduceOp::Sum:
      return args.param == 1 ? "sum" : "mean";
    case ReduceOp::Prod:
      return "prod";
    case ReduceOp::Max:
      return "amax";
    case ReduceOp::Min:
      return "amin";
    case ReduceOp::Any:
      return "any";
    case ReduceOp::All:
      return "all";
    case ReduceOp::CountNonzero:
      return "count_nonzero";
    default:
      return "norm";
  }
}

double flops_per_element(ReduceOp op) { return op >= ReduceOp::Norm1 && op <= ReduceOp::NormP ? 2 : 1; }

}  // namespace

void describe(const ReduceArgs& args, Work& work) {
  work.op = reduce_name(args);
  work.flops = flops_per_element(args.op) * elements(args.kept, args.reduced);
  writes(work, args.out, itemsize(reduce_result_dtype(args.op, args.dtype)), args.kept.numel);
  reads(work, args.in, itemsize(args.dtype), input_span(args.kept, args.reduced));
}

void describe(const ReduceIndexArgs& args, Work& work) {
  const bool values = args.values != nullptr;
  work.op = args.largest ? (values ? "max" : "argmax") : (values ? "min" : "argmin");
  work.flops = elements(args.kept, args.reduced);
  writes(work, args.values, itemsize(args.dtype), args.kept.numel);
  writes(work, args.indices, sizeof(int64_t), args.kept.numel);
  reads(work, args.in, itemsize(args.dtype), input_span(args.kept, args.reduced));
}

void describe(const MomentsArgs& args, Work& work) {
  const bool mean = args.mean != nullptr;
  work.op = args.sqrt ? (mean ? "std_mean" : "std") : (mean ? "var_mean" : "var");
  work.flops = 4 * elements(args.kept, args.reduced);
  writes(work, args.out, itemsize(args.dtype), args.kept.numel);
  writes(work, args.mean, itemsize(args.dtype), args.kept.numel);
  reads(work, args.in, itemsize(args.dtype), input_span(args.kept, args.reduced));
}

void describe(const SoftmaxArgs& args, Work& work) {
  constexpr std::string_view names[] = {"softmax", "log_softmax", "logsumexp"};
  work.op = names[static_cast<int>(args.op)];
  const SoftmaxShape& s = args.shape;
  const int64_t rows = s.outer * s.inner, numel = rows * s.size;
  const bool reduces = args.op == SoftmaxOp::LogSumExp;
  work.flops = (reduces ? 4 : 5) * static_cast<double>(numel);
  writes(work, args.out, itemsize(args.dtype), reduces ? rows : numel);
  reads(work, args.in, itemsize(args.dtype), numel);
}

void describe(const SoftmaxBackwardArgs& args, Work& work) {
  work.op = args.op == SoftmaxOp::LogSoftmax ? "log_softmax_backward" : "softmax_backward";
  const int64_t numel = args.shape.outer * args.shape.size * args.shape.inner;
  work.flops = 4 * static_cast<double>(numel);
  writes(work, args.grad_in, itemsize(args.dtype), numel);
  reads(work, args.grad_out, itemsize(args.dtype), numel);
  reads(work, args.out, itemsize(args.dtype), numel);
}

void describe(const ScanArgs& args, Work& work) {
  constexpr std::string_view names[] = {"cumsum", "cumprod", "logcumsumexp"};
  work.op = names[static_cast<int>(args.op)];
  const int64_t numel = args.outer * args.size * args.inner;
  work.flops = (args.op == ScanOp::LogSumExp ? 4 : 1) * static_cast<double>(numel);
  writes(work, args.out, is_floating_point(args.dtype) ? itemsize(args.dtype) : sizeof(int64_t), numel);
  reads(work, args.in, itemsize(args.dtype), numel);
}

void describe(const ScanExtremeArgs& args, Work& work) {
  work.op = args.largest ? "cummax" : "cummin";
  const int64_t numel = args.outer * args.size * args.inner;
  work.flops = static_cast<double>(numel);
  writes(work, args.values, itemsize(args.dtype), numel);
  writes(work, args.indices, sizeof(int64_t), numel);
  reads(work, args.in, itemsize(args.dtype), numel);
}

void describe(const ProdBackwardArgs& args, Work& work) {
  work.op = args.cumulative ? "cumprod_backward" : "prod_backward";
  const int64_t rows = args.outer * args.inner, numel = rows * args.size;
  if (numel == 0) return;
  work.flops = 4 * static_cast<double>(numel);
  writes(work, args.grad_in, itemsize(args.dtype), numel);
  reads(work, args.grad_out, itemsize(args.dtype), args.cumulative ? numel : rows);
  reads(work, args.in, itemsize(args.dtype), numel);
}

}  // namespace tern::kernels
