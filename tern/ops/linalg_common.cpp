// Checks and launches that the files of linalg share.
#include "tern/ops/linalg_common.h"

#include <limits>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/shape.h"

namespace tern::linalg::detail {
namespace {

/// From one matrix of a batch to the next; nothing where the batch does not lie evenly.
std::optional<int64_t> even_stride(const Tensor& x) {
  std::optional<int64_t> stride;
  int64_t expected = 0;
  for (int64_t d = x.dim() - 3; d >= 0; --d) {
    if (x.size(d) == 1) continue;
    if (stride && x.stride(d) != expected) return {};
    if (!stride) stride = x.stride(d);
    expected = x.stride(d) * x.size(d);
  }
  return stride.value_or(0);
}

}  // namespace

void check_matrices(const char* op, const Tensor& a, bool square) {
  TERN_CHECK(a.defined(), ValueError, "{}: the tensor is undefined", op);
  TERN_CHECK(a.dim() >= 2, ShapeError, "{}: The input tensor must have at least 2 dimensions, got shape {}",
             op, to_string(a.shape()));
  TERN_CHECK(!square || a.size(-1) == a.size(-2), ShapeError,
             "{}: A must be batches of square matrices, but they are {} by {} matrices (shape {})", op,
             a.size(-2), a.size(-1), to_string(a.shape()));
  TERN_CHECK(a.dtype() == DType::Float32 || a.dtype() == DType::Float64, DTypeError,
             "{}: expected float32 or float64, got {}: convert the tensor with to(float32)", op,
             name(a.dtype()));
}

void check_pair(const char* op, const char* a_name, const Tensor& a, const char* b_name, const Tensor& b) {
  check_same_device(op, {{a_name, a}, {b_name, b}});
  TERN_CHECK(a.dtype() == b.dtype(), DTypeError,
             "{}: expected one dtype, but {} is {} and {} is {}: convert one", op, a_name, name(a.dtype()),
             b_name, name(b.dtype()));
}

void check_system(const char* op, const Tensor& a, const Tensor& b, bool left) {
  check_matrices(op, a, /*square=*/true);
  TERN_CHECK(b.defined(), ValueError, "{}: the right side is undefined", op);
  check_pair(op, "A", a, "B", b);
  TERN_CHECK(b.dim() >= 2, ShapeError, "{}: The input tensor B must have at least 2 dimensions, got shape {}",
             op, to_string(b.shape()));
  TERN_CHECK(b.size(left ? -2 : -1) == a.size(-1), ShapeError,
             "{}: Incompatible shapes of A and B for the equation {}: {} and {} ({} vs {})", op,
             left ? "AX = B" : "XA = B", to_string(a.shape()), to_string(b.shape()), a.size(-1),
             b.size(left ? -2 : -1));
}

Batch batch_of(const Tensor& a) {
  int64_t count = 1;
  for (int64_t d = 0; d < a.dim() - 2; ++d) count *= a.size(d);
  return {count, a.size(-2), a.size(-1)};
}

Shape with_sizes(const Tensor& a, std::initializer_list<int64_t> sizes) {
  Shape shape(a.shape().begin(), a.shape().end() - 2);
  for (const int64_t size : sizes) shape.push_back(size);
  return shape;
}

Tensor made(const Tensor& a, std::initializer_list<int64_t> sizes) { return made(a, sizes, a.dtype()); }

Tensor made(const Tensor& a, std::initializer_list<int64_t> sizes, DType dtype) {
  const Shape shape = with_sizes(a, sizes);
  const int64_t numel = checked_numel(shape);
  return empty_contiguous(shape, numel, dtype, a.device());
}

Shape shared_batch(const char* op, const Tensor& a, const Tensor& b) {
  return broadcast_shapes(with_sizes(a, {}), with_sizes(b, {}), op);
}

Tensor expanded(const Tensor& x, const Shape& batch) {
  Shape shape = batch;
  shape.push_back(x.size(-2));
  shape.push_back(x.size(-1));
  return shape == x.shape() ? x : expand(x, shape);
}

double eps_of(DType dtype) {
  return dtype == DType::Float64 ? std::numeric_limits<double>::epsilon()
                                 : double{std::numeric_limits<float>::epsilon()};
}

void check_info(const char* op, const Tensor& info, std::string (*reason)(int64_t)) {
  const Tensor on_host = to(info, kCPU);
  const auto* numbers = static_cast<const int32_t*>(on_host.data_ptr());
  for (int64_t i = 0; i < on_host.numel(); ++i)
    if (numbers[i] != 0)
      TERN_THROW(LinAlgError, "{}: {}{}", op, info.dim() > 0 ? fmt::format("(Batch element {}): ", i) : "",
                 reason(numbers[i]));
}

Tensor columns_of(const Tensor& a) {
  const NoGradGuard no_grad;
  return compact_copy(mT(a.detach()));
}

Tensor rows_of(const Tensor& pivots, int64_t m) {
  const NoGradGuard no_grad;
  const Tensor dense = compact(pivots);
  const int64_t count = pivots.size(-1);
  Shape shape = pivots.shape();
  shape.back() = m;
  const int64_t numel = checked_numel(shape);
  Tensor rows = empty_contiguous(shape, numel, DType::Int64, pivots.device());
  if (numel > 0)
    launch(current_stream(pivots.device()), kernels::lu_permutation,
           {.batch = numel / m,
            .m = m,
            .count = count,
            .pivots = static_cast<const int32_t*>(dense.data_ptr()),
            .permutation = static_cast<int64_t*>(rows.data_ptr())});
  return rows;
}

LuFactors factor(const Tensor& a) {
  const NoGradGuard no_grad;
  const Batch batch = batch_of(a);
  Tensor columns = columns_of(a);
  Tensor pivots = made(a, {std::min(batch.m, batch.n)}, DType::Int32), info = made(a, {}, DType::Int32);
  if (a.numel() == 0)
    fill_elements(info, 0);
  else
    launch(current_stream(a.device()), kernels::lu_factor,
           {.dtype = a.dtype(),
            .batch = batch.count,
            .m = batch.m,
            .n = batch.n,
            .a = columns.data_ptr(),
            .pivots = static_cast<int32_t*>(pivots.data_ptr()),
            .info = static_cast<int32_t*>(info.data_ptr())});
  return {mT(columns), pivots, info, rows_of(pivots, batch.m)};
}

void solve_in_place(const Tensor& a, bool upper, bool unit, const Tensor& x) {
  const Batch batch = batch_of(x);
  if (x.numel() == 0) return;
  const Tensor even = even_stride(a) ? a : compact(a);
  launch(current_stream(x.device()), kernels::triangular_solve,
         {.dtype = x.dtype(),
          .upper = upper,
          .unit = unit,
          .batch = batch.count,
          .n = batch.m,
          .k = batch.n,
          .a = even.data_ptr(),
          .a_batch_stride = *even_stride(even),
          .a_row_stride = even.stride(-2),
          .a_col_stride = even.stride(-1),
          .x = x.data_ptr(),
          .x_batch_stride = even_stride(x).value(),
          .x_row_stride = x.stride(-2),
          .x_col_stride = x.stride(-1)});
}

Tensor solve_with(const Tensor& lu, const Tensor& rows, const Tensor& b, bool transposed) {
  const NoGradGuard no_grad;
  const Tensor places = expand(unsqueeze(rows, -1), b.shape());
  if (!transposed) {
    Tensor x = gather(b.detach(), -2, places);
    solve_in_place(lu, /*upper=*/false, /*unit=*/true, x);
    solve_in_place(lu, /*upper=*/true, /*unit=*/false, x);
    return x;
  }
  Tensor x = compact_copy(b.detach());
  solve_in_place(mT(lu), /*upper=*/false, /*unit=*/false, x);
  solve_in_place(mT(lu), /*upper=*/true, /*unit=*/true, x);
  return scatter(x, -2, places, x);
}

Tensor inverse_with(const Tensor& lu, const Tensor& rows) {
  const NoGradGuard no_grad;
  Tensor x = cast(eq(unsqueeze(rows, -1), arange(rows.size(-1), {.device = rows.device()})), lu.dtype());
  solve_in_place(lu, /*upper=*/false, /*unit=*/true, x);
  solve_in_place(lu, /*upper=*/true, /*unit=*/false, x);
  return x;
}

}  // namespace tern::linalg::detail
