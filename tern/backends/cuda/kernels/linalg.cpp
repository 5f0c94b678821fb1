// Linear algebra on GPUs: small matrices by kernels of the backend's own, triangular systems by them and
// matrix products, everything else by cuSOLVER, a matrix at a time.
#include "tern/backends/cuda/kernels/linalg.h"

#include <algorithm>
#include <limits>

#include "tern/backends/cuda/check.h"
#include "tern/backends/cuda/cusolver.h"
#include "tern/backends/cuda/device.h"
#include "tern/backends/cuda/kernels/matmul.h"
#include "tern/kernels/real_types.h"

namespace tern::cuda_backend {
namespace {

/// cuSOLVER's functions of one dtype.
template <class T>
struct Solver;
#define TERN_SOLVER(T, letter)                                                          \
  template <>                                                                           \
  struct Solver<T> {                                                                    \
    static constexpr auto potrf_size = &Cusolver::cusolverDn##letter##potrf_bufferSize; \
    static constexpr auto potrf = &Cusolver::cusolverDn##letter##potrf;                 \
    static constexpr auto getrf_size = &Cusolver::cusolverDn##letter##getrf_bufferSize; \
    static constexpr auto getrf = &Cusolver::cusolverDn##letter##getrf;                 \
    static constexpr auto geqrf_size = &Cusolver::cusolverDn##letter##geqrf_bufferSize; \
    static constexpr auto geqrf = &Cusolver::cusolverDn##letter##geqrf;                 \
    static constexpr auto orgqr_size = &Cusolver::cusolverDn##letter##orgqr_bufferSize; \
    static constexpr auto orgqr = &Cusolver::cusolverDn##letter##orgqr;                 \
    static constexpr auto syevd_size = &Cusolver::cusolverDn##letter##syevd_bufferSize; \
    static constexpr auto syevd = &Cusolver::cusolverDn##letter##syevd;                 \
    static constexpr auto gesvd_size = &Cusolver::cusolverDn##letter##gesvd_bufferSize; \
    static constexpr auto gesvd = &Cusolver::cusolverDn##letter##gesvd;                 \
  };
TERN_SOLVER(float, S)
TERN_SOLVER(double, D)
#undef TERN_SOLVER

/// A call of the function that a member of Cusolver points to.
template <class Member, class... Args>
void call(const char* name, Member member, const Args&... args) {
  check_cusolver((cusolver().*member)(args...), name);
}

/// cuSOLVER's sizes are ints.
int size_of(int64_t size) {
  if (size > std::numeric_limits<int>::max()) throw_not_on_gpus("a matrix of 2^31 rows or columns");
  return static_cast<int>(size);
}

/// Working memory of `count` elements; never null.
template <class T>
Storage elements(const LaunchContext& context, int count) {
  return workspace(context, sizeof(T) * static_cast<size_t>(std::max(count, 1)));
}

/// x -= a @ b for a batch of matrices, in full float32.
struct Update {
  const TriangularSolveArgs& args;
  int64_t row, column, height, width;  ///< of the part of `a`

  void run(const LaunchContext& context) const {
    const auto item = static_cast<int64_t>(itemsize(args.dtype));
    MatmulArgs product;
    product.dtype = args.dtype;
    product.batch_dims = 1;
    product.batch_sizes[0] = args.batch;
    product.alpha = -1;
    char* const x = static_cast<char*>(args.x);
    const char* const a =
        static_cast<const char*>(args.a) + (row * args.a_row_stride + column * args.a_col_stride) * item;
    const char* const from = x + column * args.x_row_stride * item;
    char* const to = x + row * args.x_row_stride * item;
    product.k = width;
    product.out = to;
    product.addend = to;
    product.out_batch_strides[0] = product.addend_batch_strides[0] = args.x_batch_stride;
    if (args.x_col_stride == 1) {
      product.m = height;
      product.n = args.k;
      product.a = a;
      product.a_row_stride = args.a_row_stride;
      product.a_col_stride = args.a_col_stride;
      product.a_batch_strides[0] = args.a_batch_stride;
      product.b = from;
      product.b_row_stride = args.x_row_stride;
      product.b_col_stride = 1;
      product.b_batch_strides[0] = args.x_batch_stride;
      product.out_row_stride = args.x_row_stride;
    } else {  // the transposed product
      product.m = args.k;
      product.n = height;
      product.a = from;
      product.a_row_stride = args.x_col_stride;
      product.a_col_stride = args.x_row_stride;
      product.a_batch_strides[0] = args.x_batch_stride;
      product.b = a;
      product.b_row_stride = args.a_col_stride;
      product.b_col_stride = args.a_row_stride;
      product.b_batch_strides[0] = args.a_batch_stride;
      product.out_row_stride = args.x_col_stride;
    }
    product.addend_row_stride = product.out_row_stride;
    product.addend_col_stride = 1;
    matmul(context, product);
  }
};

/// The triangle from (first, first) on of `n` rows.
void solve_triangle(const LaunchContext& context, const TriangularSolveArgs& args, int64_t first, int64_t n) {
  if (n <= kSmallOrder) {
    const auto item = static_cast<int64_t>(itemsize(args.dtype));
    TriangularSolveArgs part = args;
    part.n = n;
    part.a = static_cast<const char*>(args.a) + first * (args.a_row_stride + args.a_col_stride) * item;
    part.x = static_cast<char*>(args.x) + first * args.x_row_stride * item;
    return triangular_solve_small(context, part);
  }
  const int64_t half = (n / 2 + kSmallOrder - 1) / kSmallOrder * kSmallOrder, rest = n - half,
                middle = first + half;
  if (args.upper) {
    solve_triangle(context, args, middle, rest);
    Update{args, first, middle, half, rest}.run(context);
    solve_triangle(context, args, first, half);
  } else {
    solve_triangle(context, args, first, half);
    Update{args, middle, first, rest, half}.run(context);
    solve_triangle(context, args, middle, rest);
  }
}

}  // namespace

void cholesky(const LaunchContext& context, const CholeskyArgs& args) {
  if (args.n <= kSmallOrder) return cholesky_small(context, args);
  visit_real(args.dtype, [&]<class T>() {
    using S = Solver<T>;
    const CusolverHandle handle(context);
    const int n = size_of(args.n);
    T* const a = static_cast<T*>(args.a);
    int count = 0;
    // Rows are cuSOLVER's columns: the lower triangle is its upper one.
    call("cusolverDnXpotrf_bufferSize", S::potrf_size, handle.get(), CUBLAS_FILL_MODE_UPPER, n, a, n, &count);
    const Storage work = elements<T>(context, count);
    for (int64_t i = 0; i < args.batch; ++i)
      call("cusolverDnXpotrf", S::potrf, handle.get(), CUBLAS_FILL_MODE_UPPER, n, a + i * args.n * args.n, n,
           static_cast<T*>(work->data()), count, args.info + i);
  });
  clear_above(context, args);
}

void lu_factor(const LaunchContext& context, const LuFactorArgs& args) {
  if (args.m <= kSmallOrder && args.n <= kSmallOrder) return lu_factor_small(context, args);
  visit_real(args.dtype, [&]<class T>() {
    using S = Solver<T>;
    const CusolverHandle handle(context);
    const int m = size_of(args.m), n = size_of(args.n);
    T* const a = static_cast<T*>(args.a);
    int count = 0;
    call("cusolverDnXgetrf_bufferSize", S::getrf_size, handle.get(), m, n, a, m, &count);
    const Storage work = elements<T>(context, count);
    for (int64_t i = 0; i < args.batch; ++i)
      call("cusolverDnXgetrf", S::getrf, handle.get(), m, n, a + i * args.m * args.n, m,
           static_cast<T*>(work->data()), args.pivots + i * std::min(args.m, args.n), args.info + i);
  });
}

void triangular_solve(const LaunchContext& context, const TriangularSolveArgs& args) {
  if (args.batch == 0 || args.n == 0 || args.k == 0) return;
  const FullFloat32 exact;
  solve_triangle(context, args, 0, args.n);
}

void qr(const LaunchContext& context, const QrArgs& args) {
  visit_real(args.dtype, [&]<class T>() {
    using S = Solver<T>;
    const CusolverHandle handle(context);
    const int m = size_of(args.m), n = size_of(args.n);
    T *const a = static_cast<T*>(args.a), *const tau = static_cast<T*>(args.tau);
    int count = 0;
    call("cusolverDnXgeqrf_bufferSize", S::geqrf_size, handle.get(), m, n, a, m, &count);
    const Storage work = elements<T>(context, count), info = elements<int>(context, 1);
    for (int64_t i = 0; i < args.batch; ++i)
      call("cusolverDnXgeqrf", S::geqrf, handle.get(), m, n, a + i * args.m * args.n, m,
           tau + i * std::min(args.m, args.n), static_cast<T*>(work->data()), count,
           static_cast<int*>(info->data()));
  });
}

void householder_product(const LaunchContext& context, const HouseholderProductArgs& args) {
  visit_real(args.dtype, [&]<class T>() {
    using S = Solver<T>;
    const CusolverHandle handle(context);
    const int m = size_of(args.m), n = size_of(args.n), k = size_of(args.count);
    T* const a = static_cast<T*>(args.a);
    const T* const tau = static_cast<const T*>(args.tau);
    int count = 0;
    call("cusolverDnXorgqr_bufferSize", S::orgqr_size, handle.get(), m, n, k, a, m, tau, &count);
    const Storage work = elements<T>(context, count), info = elements<int>(context, 1);
    for (int64_t i = 0; i < args.batch; ++i)
      call("cusolverDnXorgqr", S::orgqr, handle.get(), m, n, k, a + i * args.m * args.n, m,
           tau + i * args.count, static_cast<T*>(work->data()), count, static_cast<int*>(info->data()));
  });
}

void eigh(const LaunchContext& context, const EighArgs& args) {
  visit_real(args.dtype, [&]<class T>() {
    using S = Solver<T>;
    const CusolverHandle handle(context);
    const int n = size_of(args.n);
    const cusolverEigMode_t mode = args.vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
    const cublasFillMode_t triangle = args.upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    T *const a = static_cast<T*>(args.a), *const values = static_cast<T*>(args.values);
    int count = 0;
    call("cusolverDnXsyevd_bufferSize", S::syevd_size, handle.get(), mode, triangle, n, a, n, values, &count);
    const Storage work = elements<T>(context, count);
    for (int64_t i = 0; i < args.batch; ++i)
      call("cusolverDnXsyevd", S::syevd, handle.get(), mode, triangle, n, a + i * args.n * args.n, n,
           values + i * args.n, static_cast<T*>(work->data()), count, args.info + i);
  });
  report_nan(context, args.dtype, args.values, args.batch, args.n, args.info);
}

void svd(const LaunchContext& context, const SvdArgs& args) {
  visit_real(args.dtype, [&]<class T>() {
    using S = Solver<T>;
    const CusolverHandle handle(context);
    const int m = size_of(args.m), n = size_of(args.n);
    const int64_t square = args.n * args.n;
    T *const a = static_cast<T*>(args.a), *const s = static_cast<T*>(args.s),
             *const u = static_cast<T*>(args.u);
    const signed char job_u = !args.vectors            ? 'N'
                              : args.columns == args.n ? 'S'
                                                       : 'A',
                      job_v = args.vectors ? 'A' : 'N';
    int count = 0;
    call("cusolverDnXgesvd_bufferSize", S::gesvd_size, handle.get(), m, n, &count);
    const Storage work = elements<T>(context, count);
    // Column by column, where the result is row by row.
    const Storage turned =
        args.vectors ? workspace(context, sizeof(T) * static_cast<size_t>(args.batch * square)) : Storage();
    T* const vt = args.vectors ? static_cast<T*>(turned->data()) : nullptr;
    for (int64_t i = 0; i < args.batch; ++i)
      call("cusolverDnXgesvd", S::gesvd, handle.get(), job_u, job_v, m, n, a + i * args.m * args.n, m,
           s + i * args.n, args.vectors ? u + i * args.m * args.columns : nullptr, m,
           args.vectors ? vt + i * square : nullptr, n, static_cast<T*>(work->data()), count,
           static_cast<T*>(nullptr), args.info + i);
    if (!args.vectors) return;
    CopyArgs copy_args{args.dtype, args.dtype, args.vh, vt, {}};
    const int64_t shape[3] = {args.batch, args.n, args.n}, out[3] = {square, args.n, 1},
                  in[3] = {square, 1, args.n};
    const int64_t* const strides[2] = {out, in};
    collapse<2>(copy_args.geometry, IntArrayRef(shape, 3), strides);
    copy(context, copy_args);
  });
  report_nan(context, args.dtype, args.s, args.batch, args.n, args.info);
}

}  // namespace tern::cuda_backend
