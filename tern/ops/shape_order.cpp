// Stacks, turns and combinations that are made of other rearrangements.
#include <algorithm>

#include "tern/core/recording.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/creation_checks.h"
#include "tern/ops/index.h"
#include "tern/ops/shape.h"

namespace tern {

Tensor ravel(const Tensor& x) { return reshape(x, {-1}); }

Tensor atleast_1d(const Tensor& x) { return x.dim() < 1 ? unsqueeze(x, 0) : x; }
Tensor atleast_2d(const Tensor& x) { return x.dim() < 2 ? unsqueeze(atleast_1d(x), 0) : x; }
Tensor atleast_3d(const Tensor& x) { return x.dim() < 3 ? unsqueeze(atleast_2d(x), 2) : x; }

namespace {

std::vector<Tensor> each_one(const std::vector<Tensor>& tensors, Tensor (*function)(const Tensor&)) {
  std::vector<Tensor> all;
  all.reserve(tensors.size());
  for (const Tensor& x : tensors) all.push_back(function(x));
  return all;
}

}  // namespace

std::vector<Tensor> atleast_1d(const std::vector<Tensor>& tensors) { return each_one(tensors, atleast_1d); }
std::vector<Tensor> atleast_2d(const std::vector<Tensor>& tensors) { return each_one(tensors, atleast_2d); }
std::vector<Tensor> atleast_3d(const std::vector<Tensor>& tensors) { return each_one(tensors, atleast_3d); }

Tensor dstack(const std::vector<Tensor>& tensors) {
  return with_context("dstack", [&] { return cat(atleast_3d(tensors), 2); });
}

Tensor column_stack(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> columns;
  for (const Tensor& x : tensors) columns.push_back(x.dim() < 2 ? reshape(x, {x.numel(), 1}) : x);
  return with_context("column_stack", [&] { return hstack(columns); });
}

Tensor cartesian_prod(const std::vector<Tensor>& tensors) {
  for (const Tensor& x : tensors)
    TERN_CHECK(x.dim() == 1, ShapeError, "cartesian_prod: expects 1D vectors, but got shape {}",
               to_string(x.shape()));
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> columns;
  for (const Tensor& grid : meshgrid(tensors, "ij")) columns.push_back(reshape(grid, {-1}));
  return stack(columns, 1);
}

namespace {

/// n over r; INT64_MAX for more than that.
int64_t count_combinations(int64_t n, int64_t r) {
  if (r > n) return 0;
  __extension__ unsigned __int128 count = 1;
  for (int64_t i = 0; i < std::min(r, n - r); ++i) {
    count = count * static_cast<uint64_t>(n - i) / static_cast<uint64_t>(i + 1);
    if (count > INT64_MAX) return INT64_MAX;
  }
  return static_cast<int64_t>(count);
}

/// Rows of r of the places 0, ..., n - 1.
void write_combinations(int64_t n, int64_t r, bool with_replacement, int64_t* out, int64_t count) {
  const int64_t step = with_replacement ? 0 : 1;
  for (int64_t i = 0; i < r; ++i) out[i] = step * i;
  // The last place that may still grow does, and those after it follow as closely as they may.
  for (int64_t row = 1; row < count; ++row, out += r) {
    int64_t grows = r - 1;
    while (out[grows] >= n - 1 - step * (r - 1 - grows)) --grows;
    int64_t* next = std::copy_n(out, grows, out + r);
    *next++ = out[grows] + 1;
    for (int64_t i = grows + 1; i < r; ++i, ++next) *next = next[-1] + step;
  }
}

}  // namespace

Tensor combinations(const Tensor& x, int64_t r, bool with_replacement) {
  TERN_CHECK(x.dim() == 1, ShapeError, "combinations: expects a 1D vector, but got shape {}",
             to_string(x.shape()));
  TERN_CHECK(r >= 0, ValueError, "combinations: expects a non-negative number, but got {}", r);
  if (r == 0) return empty({0}, {.dtype = x.dtype(), .device = x.device()});
  const int64_t n = x.numel();
  int64_t places_of = n;  // choices without replacement that are as many
  TERN_CHECK(!with_replacement || !__builtin_add_overflow(n, r - 1, &places_of), ValueError,
             "combinations: r = {} is too large", r);
  const int64_t count = count_combinations(places_of, r);
  Tensor places = detail::make("combinations", {count, r}, DType::Int64, kCPU);
  if (count > 0) {
    write_combinations(n, r, with_replacement, static_cast<int64_t*>(places.data_ptr()), count);
    detail::host_wrote(places.storage());
  }
  return reshape(index_select(x, 0, reshape(to(places, x.device()), {-1})), {count, r});
}

Tensor flipud(const Tensor& x) {
  TERN_CHECK(x.dim() >= 1, ShapeError, "flipud: Input must be >= 1-d.");
  return flip(x, {0});
}
Tensor fliplr(const Tensor& x) {
  TERN_CHECK(x.dim() >= 2, ShapeError, "fliplr: Input must be >= 2-d, got shape {}", to_string(x.shape()));
  return flip(x, {1});
}

Tensor rot90(const Tensor& x, int64_t k, IntArrayRef dims) {
  const char* op = "rot90";
  TERN_CHECK(dims.size() == 2, ShapeError, "{}: expected total rotation dims == 2, but got dims = {}", op,
             dims.size());
  TERN_CHECK(x.dim() >= 2, ShapeError, "{}: expected total dims >= 2, but got total dims = {}", op, x.dim());
  const int64_t a = wrap_dim(dims[0], x.dim(), op), b = wrap_dim(dims[1], x.dim(), op);
  TERN_CHECK(a != b, ShapeError, "{}: expected rotation dims to be different, but got {} and {}", op, dims[0],
             dims[1]);
  switch ((k % 4 + 4) % 4) {
    case 1:
      return transpose(flip(x, {b}), a, b);
    case 2:
      return flip(x, {a, b});
    case 3:
      return transpose(flip(x, {a}), a, b);
    default:
      return x.clone();
  }
}

}  // namespace tern
