// What the kernels do that compute each element alone: pointwise operators, ranges and triangles, random
// numbers.
#include "tern/kernels/work_describe.h"

namespace tern::kernels {
namespace {

double count_of(int64_t numel) { return static_cast<double>(std::max<int64_t>(numel, 0)); }

size_t result_size(ResultKind kind, DType dtype) {
  return kind == ResultKind::Bool ? sizeof(bool) : itemsize(dtype);
}

/// Elements with column - row <= diagonal of one matrix.
double kept_below(int64_t rows, int64_t cols, int64_t diagonal) {
  const int64_t first = std::clamp<int64_t>(-diagonal, 0, rows);               // the first row with any
  const int64_t full = std::clamp<int64_t>(cols - diagonal - 1, first, rows);  // the first row that is whole
  const double partial = static_cast<double>(full - first);
  const double ends = static_cast<double>(first + full + 1 + 2 * diagonal);
  return partial * ends / 2 + static_cast<double>(rows - full) * static_cast<double>(cols);
}

}  // namespace

void describe(const RangeArgs& args, Work& work) {
  work.flops = count_of(args.count);
  writes(work, args.out, itemsize(args.dtype), args.count);
}

void describe(const TriangleArgs& args, Work& work) {
  work.op = args.upper ? "triu" : "tril";
  const int64_t numel = args.batch * args.rows * args.cols;
  if (numel == 0) return;
  // Diagonals far outside the matrix are clamped before a sum can overflow.
  const int64_t diagonal = std::clamp(args.diagonal, -args.rows - 1, args.cols + 1);
  const double matrix = static_cast<double>(args.rows) * static_cast<double>(args.cols);
  const double kept = args.upper ? matrix - kept_below(args.rows, args.cols, diagonal - 1)
                                 : kept_below(args.rows, args.cols, diagonal);
  writes(work, args.out, itemsize(args.dtype), numel);
  reads(work, args.in, itemsize(args.dtype), Span(numel).touched(static_cast<double>(args.batch) * kept));
}

void describe(const RandomArgs& args, Work& work) {
  constexpr std::string_view names[] = {"uniform", "normal", "exponential", "random", "bernoulli"};
  work.op = names[static_cast<int>(args.distribution)];
  work.flops = count_of(args.numel);
  writes(work, args.out, itemsize(args.dtype), args.numel);
}

void describe(const DropoutArgs& args, Work& work) {
  work.flops = count_of(args.numel);
  writes(work, args.out, itemsize(args.dtype), args.numel);
  reads(work, args.in, itemsize(args.dtype), args.numel);
}

void describe(const PermutationArgs& args, Work& work) {
  work.op = "randperm";
  writes(work, args.out, sizeof(int64_t), args.count);
}

void describe(const MultinomialArgs& args, Work& work) {
  work.flops = count_of(args.rows * args.categories);
  writes(work, args.out, sizeof(int64_t), args.rows * args.samples);
  writes(work, args.fault, sizeof(int64_t), 1);
  reads(work, args.weights, sizeof(double), args.rows * args.categories);
}

void describe(const VariatesArgs& args, Work& work) {
  constexpr std::string_view names[] = {"poisson", "standard_gamma", "binomial"};
  work.op = names[static_cast<int>(args.variate)];
  work.flops = count_of(args.numel);
  writes(work, args.out, itemsize(args.dtype), args.numel);
  reads(work, args.a, itemsize(args.dtype), args.numel);
  reads(work, args.b, itemsize(args.dtype), args.numel);
}

void describe(const FillArgs& args, Work& work) {
  writes(work, args.out, itemsize(args.dtype), Span().walk(args.geometry, 0));
}

void describe(const CopyArgs& args, Work& work) {
  writes(work, args.out, itemsize(args.out_dtype), Span().walk(args.geometry, 0));
  reads(work, args.in, itemsize(args.in_dtype), Span().walk(args.geometry, 1));
}

void describe(const UnaryArgs& args, Work& work) {
  work.op = name(args.op);
  work.flops = count_of(args.geometry.numel);
  writes(work, args.out, result_size(result_kind(args.op), args.dtype), Span().walk(args.geometry, 0));
  reads(work, args.in, itemsize(args.dtype), Span().walk(args.geometry, 1));
}

void describe(const BinaryArgs& args, Work& work) {
  work.op = name(args.op);
  work.flops = count_of(args.geometry.numel);
  writes(work, args.out, result_size(result_kind(args.op), args.dtype), Span().walk(args.geometry, 0));
  reads(work, args.a, itemsize(args.dtype), Span().walk(args.geometry, 1));
  reads(work, args.b, itemsize(args.dtype), Span().walk(args.geometry, 2));
}

void describe(const TernaryArgs& args, Work& work) {
  const size_t item = itemsize(args.dtype);
  work.op = name(args.op);
  work.flops = count_of(args.geometry.numel);
  writes(work, args.out, item, Span().walk(args.geometry, 0));
  reads(work, args.a, item, Span().walk(args.geometry, 1));
  reads(work, args.b, item, Span().walk(args.geometry, 2));
  reads(work, args.c, item, Span().walk(args.geometry, 3));
}

void describe(const WhereArgs& args, Work& work) {
  const size_t item = itemsize(args.dtype);
  work.flops = count_of(args.geometry.numel);
  writes(work, args.out, item, Span().walk(args.geometry, 0));
  reads(work, args.condition, sizeof(bool), Span().walk(args.geometry, 1));
  reads(work, args.a, item, Span().walk(args.geometry, 2));
  reads(work, args.b, item, Span().walk(args.geometry, 3));
}

void describe(const ComplexUnaryArgs& args, Work& work) {
  work.op = name(args.op);
  const size_t item = itemsize(args.dtype);
  work.flops = 2 * count_of(args.geometry.numel);
  writes(work, args.out, gives_real(args.op) ? item / 2 : item, Span().walk(args.geometry, 0));
  reads(work, args.in, item, Span().walk(args.geometry, 1));
}

void describe(const ComplexBinaryArgs& args, Work& work) {
  work.op = name(args.op);
  const size_t item = itemsize(args.dtype);
  work.flops = 6 * count_of(args.geometry.numel);
  writes(work, args.out, item, Span().walk(args.geometry, 0));
  reads(work, args.a, item, Span().walk(args.geometry, 1));
  reads(work, args.b, item, Span().walk(args.geometry, 2));
}

}  // namespace tern::kernels
