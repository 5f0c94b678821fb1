// Diagonals with their gradients, which are diagonals again.
#include "tern/ops/diagonal.h"

#include <algorithm>

#include "tern/autograd/arithmetic.h"
#include "tern/core/recording.h"
#include "tern/device/registry.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/creation_checks.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {

Tensor diag(const Tensor& x, int64_t diagonal) {
  TERN_CHECK(x.dim() == 1 || x.dim() == 2, ShapeError, "diag: Supports 1D or 2D tensors. Got {}D (shape {})",
             x.dim(), to_string(x.shape()));
  return x.dim() == 1 ? diag_embed(x, diagonal) : clone(tern::diagonal(x, diagonal));
}

Tensor diagflat(const Tensor& x, int64_t offset) { return diag_embed(reshape(x, {-1}), offset); }

Tensor diag_embed(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  const char* op = "diag_embed";
  TERN_CHECK(x.dim() > 0, ShapeError, "{}: needs at least one dimension: use diagflat", op);
  const int64_t rank = x.dim() + 1;
  const int64_t a = wrap_dim(dim1, rank, op), b = wrap_dim(dim2, rank, op);
  TERN_CHECK(a != b, ShapeError, "{}: diagonal dimensions cannot be identical {}, {}", op, dim1, dim2);
  int64_t size = 0;
  TERN_CHECK(offset > INT64_MIN && !__builtin_add_overflow(x.size(-1), std::abs(offset), &size), ShapeError,
             "{}: offset {} is too large", op, offset);
  Shape shape = x.shape();
  shape.pop_back();
  shape.insert(static_cast<size_t>(std::min(a, b)), size);
  shape.insert(static_cast<size_t>(std::max(a, b)), size);
  with_context(op, [&] { return checked_numel(shape); });
  Tensor y = filled(shape, x.dtype(), x.device(), 0);
  if (x.numel() != 0) {
    const NoGradGuard no_grad;
    copy_elements(diagonal(y, offset, a, b), x);
  }
  if (tracks_grad(x))
    record(op, y, {x}, [offset, a, b](GradContext&, const Tensor& g) { return diagonal(g, offset, a, b); });
  return y;
}

Tensor trace(const Tensor& x) {
  if (autocasts_on_cpu(x)) [[unlikely]]
    return autocast_float32(trace, x);
  TERN_CHECK(x.dim() == 2, ShapeError, "trace: expected a matrix, but got tensor with dim {} (shape {})",
             x.dim(), to_string(x.shape()));
  return sum(diagonal(x));
}

Tensor block_diag(const std::vector<Tensor>& tensors) {
  if (tensors.empty()) return empty({1, 0});
  std::vector<Tensor> blocks;
  int64_t width = 0;
  DType dtype = tensors[0].dtype();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& x = tensors[i];
    TERN_CHECK(x.dim() <= 2, ShapeError,
               "block_diag: Input tensors must have 2 or fewer dimensions. Input {} has {} dimensions", i,
               x.dim());
    blocks.push_back(x.dim() == 2 ? x : reshape(x, {1, x.numel()}));
    width += blocks.back().size(1);
    dtype = promote_types(dtype, x.dtype());
  }
  std::vector<Tensor> rows;
  int64_t left = 0;
  for (const Tensor& x : blocks) {
    const auto zeros = [&](int64_t columns) { return filled({x.size(0), columns}, dtype, x.device(), 0); };
    rows.push_back(cat({zeros(left), to(x, dtype), zeros(width - left - x.size(1))}, 1));
    left += x.size(1);
  }
  return cat(rows, 0);
}

namespace {

/// Elements of a matrix on the diagonal number `offset` and below it.
int64_t count_below(int64_t rows, int64_t cols, int64_t offset) {
  const int64_t first = std::clamp<int64_t>(-offset, 0, rows);           // the first row with any
  const int64_t full = std::clamp<int64_t>(cols - offset, first, rows);  // the first after those that grow
  __extension__ using Wide = __int128;
  const Wide growing = static_cast<Wide>(full - first) * (first + offset + 1 + full + offset) / 2;
  const Wide count = growing + static_cast<Wide>(rows - full) * cols;
  TERN_CHECK(count < INT64_MAX, ShapeError, "a triangle of [{}, {}] has too many elements", rows, cols);
  return static_cast<int64_t>(count);
}

Tensor triangle_places(const char* op, int64_t rows, int64_t cols, int64_t offset, bool upper,
                       const TensorOptions& options) {
  TERN_CHECK(rows >= 0 && cols >= 0, ValueError, "{}: row and col must be non-negative, got {} and {}", op,
             rows, cols);
  constexpr int64_t kLimit = int64_t{1} << 60;  // sums of such numbers are below INT64_MAX
  TERN_CHECK(rows < kLimit && cols < kLimit, ShapeError,
             "{}: a triangle of [{}, {}] has too many elements: row and col must be below 2^60", op, rows,
             cols);
  const DType dtype = options.dtype.value_or(DType::Int64);
  TERN_CHECK(dtype == DType::Int64 || dtype == DType::Int32, DTypeError,
             "{}: gives int64 or int32, but got {}", op, name(dtype));
  const int64_t shift = std::clamp(offset, -rows - 1, cols + 1);  // what is beyond changes nothing
  const int64_t below = count_below(rows, cols, upper ? shift - 1 : shift);
  const int64_t count = upper ? with_context(op, [&] { return checked_numel({rows, cols}); }) - below : below;
  Tensor host = detail::make(op, {2, count}, DType::Int64, kCPU);
  auto* out = static_cast<int64_t*>(host.data_ptr());
  detail::host_wrote(host.storage());
  for (int64_t r = upper ? 0 : std::max<int64_t>(0, -shift), i = 0; i < count; ++r) {
    const int64_t first = upper ? std::max<int64_t>(r + shift, 0) : 0;
    const int64_t end = upper ? cols : std::min(r + shift + 1, cols);
    for (int64_t c = first; c < end; ++c, ++i) {
      out[i] = r;
      out[count + i] = c;
    }
  }
  const Device device = options.device ? with_context(op, [&] { return resolve_device(*options.device); })
                                       : get_default_device();
  return detail::finish(cast(to(host, device), dtype), options);
}

}  // namespace

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, const TensorOptions& options) {
  return triangle_places("tril_indices", row, col, offset, /*upper=*/false, options);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, const TensorOptions& options) {
  return triangle_places("triu_indices", row, col, offset, /*upper=*/true, options);
}

}  // namespace tern
