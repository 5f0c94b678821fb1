// What the kernels of linear algebra do. Operations are the textbook's counts (Golub and Van Loan).
#include "tern/kernels/work_describe.h"

namespace tern::kernels {
namespace {

double real(int64_t count) { return static_cast<double>(count); }

}  // namespace

void describe(const CholeskyArgs& args, Work& work) {
  work.op = "cholesky";
  const double n = real(args.n);
  work.flops = real(args.batch) * n * n * n / 3;
  updates(work, args.a, itemsize(args.dtype), args.batch * args.n * args.n);
  writes(work, args.info, sizeof(int32_t), args.batch);
}

void describe(const LuFactorArgs& args, Work& work) {
  work.op = "lu_factor";
  const int64_t k = std::min(args.m, args.n);
  const double m = real(args.m), n = real(args.n), r = real(k);
  work.flops = real(args.batch) * (2 * m * n * r - (m + n) * r * r + 2 * r * r * r / 3);
  updates(work, args.a, itemsize(args.dtype), args.batch * args.m * args.n);
  writes(work, args.pivots, sizeof(int32_t), args.batch * k);
  writes(work, args.info, sizeof(int32_t), args.batch);
}

void describe(const LuPermutationArgs& args, Work& work) {
  work.op = "lu_permutation";
  reads(work, args.pivots, sizeof(int32_t), args.batch * args.count);
  writes(work, args.permutation, sizeof(int64_t), args.batch * args.m);
}

void describe(const TriangularSolveArgs& args, Work& work) {
  work.op = "solve_triangular";
  work.flops = real(args.batch) * real(args.n) * real(args.n) * real(args.k);
  const Span x = Span()
                     .walk(args.batch, args.x_batch_stride)
                     .walk(args.n, args.x_row_stride)
                     .walk(args.k, args.x_col_stride);
  if (!x.empty())
    reads(work, args.a, itemsize(args.dtype),
          Span()
              .walk(args.batch, args.a_batch_stride)
              .walk(args.n, args.a_row_stride)
              .walk(args.n, args.a_col_stride));
  add_operand(work, Access::ReadWrite, args.x, itemsize(args.dtype), x);
}

void describe(const QrArgs& args, Work& work) {
  work.op = "qr";
  const int64_t k = std::min(args.m, args.n);
  const double m = real(args.m), n = real(args.n), r = real(k);
  work.flops = real(args.batch) * (4 * m * n * r - 2 * (m + n) * r * r + 4 * r * r * r / 3);
  updates(work, args.a, itemsize(args.dtype), args.batch * args.m * args.n);
  writes(work, args.tau, itemsize(args.dtype), args.batch * k);
}

void describe(const HouseholderProductArgs& args, Work& work) {
  work.op = "householder_product";
  const double m = real(args.m), n = real(args.n), r = real(args.count);
  work.flops = real(args.batch) * (4 * m * n * r - 2 * (m + n) * r * r + 4 * r * r * r / 3);
  updates(work, args.a, itemsize(args.dtype), args.batch * args.m * args.n);
  reads(work, args.tau, itemsize(args.dtype), args.batch * args.count);
}

void describe(const EighArgs& args, Work& work) {
  work.op = args.vectors ? "eigh" : "eigvalsh";
  const double n = real(args.n);
  work.flops = real(args.batch) * n * n * n * (args.vectors ? 9 : 4.0 / 3);
  updates(work, args.a, itemsize(args.dtype), args.batch * args.n * args.n);
  writes(work, args.values, itemsize(args.dtype), args.batch * args.n);
  writes(work, args.info, sizeof(int32_t), args.batch);
}

void describe(const SvdArgs& args, Work& work) {
  work.op = args.vectors ? "svd" : "svdvals";
  const double m = real(args.m), n = real(args.n);
  work.flops = real(args.batch) * n * n * (args.vectors ? 14 * m + 8 * n : 4 * m - 4 * n / 3);
  const size_t item = itemsize(args.dtype);
  updates(work, args.a, item, args.batch * args.m * args.n);
  writes(work, args.u, item, args.batch * args.m * args.columns);
  writes(work, args.s, item, args.batch * args.n);
  writes(work, args.vh, item, args.batch * args.n * args.n);
  writes(work, args.info, sizeof(int32_t), args.batch);
}

}  // namespace tern::kernels
