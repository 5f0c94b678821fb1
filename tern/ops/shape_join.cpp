// Joining tensors, repeating elements, and changing their order: operators that make copies.
#include <algorithm>

#include "tern/autograd/arithmetic.h"
#include "tern/base/parallel.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

void check_list(const char* op, const std::vector<Tensor>& tensors) {
  TERN_CHECK(!tensors.empty(), ValueError, "{}: expected a non-empty list of Tensors", op);
  for (size_t i = 1; i < tensors.size(); ++i)
    if (tensors[i].device() != tensors[0].device())
      throw_device_mismatch(
          op, {{"tensors[0]", tensors[0]}, {fmt::format("tensors[{}]", i).c_str(), tensors[i]}});
}

DType common_dtype(const std::vector<Tensor>& tensors) {
  DType dtype = tensors[0].dtype();
  for (const Tensor& x : tensors) dtype = promote_types(dtype, x.dtype());
  return dtype;
}

/// The elements from `start` on along `d`; no history.
Tensor piece_of(const Tensor& x, size_t d, int64_t start, int64_t length) {
  Shape shape = x.shape();
  shape[d] = length;
  return Tensor::view_of(x.storage(), x.dtype(), std::move(shape), x.strides(),
                         x.storage_offset() + start * x.strides()[d]);
}

/// How many rows of a fresh result all tensors are copied to before the next ones. On the CPU a large result
/// of short pieces is written while a cache holds it, else each of its lines would be fetched for every
/// tensor again.
int64_t rows_at_once(const Tensor& out, size_t d) {
  constexpr int64_t kCached = int64_t{512} << 10, kLongPiece = 2048;
  const int64_t rows = out.shape()[0], itemsize = static_cast<int64_t>(tern::itemsize(out.dtype()));
  if (d == 0 || !out.device().is_cpu() || out.numel() * itemsize < 4 * kCached) return rows;
  const int64_t row_bytes = out.numel() / rows * itemsize;
  if (out.shape()[d] * out.strides()[d] * itemsize >= kLongPiece) return rows;
  return std::max<int64_t>(1, kCached * num_threads() / row_bytes);
}

/// Calls f(rows_of) for those parts, where rows_of(x) are its rows of x.
template <class F>
void for_each_rows(const Tensor& out, size_t d, const F& f) {
  if (out.numel() == 0) return;
  const int64_t rows = out.shape()[0], at_once = rows_at_once(out, d);
  for (int64_t row = 0; row < rows; row += at_once) {
    const int64_t count = std::min(at_once, rows - row);
    f([&](const Tensor& x) { return count == rows ? x : piece_of(x, 0, row, count); });
  }
}

bool is_skipped(const Tensor& x) { return x.dim() == 1 && x.size(0) == 0; }

Tensor cat_as(const char* op, const std::vector<Tensor>& tensors, int64_t dim) {
  check_list(op, tensors);
  const Tensor* first = nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) {
    TERN_CHECK(tensors[i].dim() != 0, ShapeError,
               "{}: zero-dimensional tensor (at position {}) cannot be concatenated: use stack", op, i);
    if (first == nullptr && !is_skipped(tensors[i])) first = &tensors[i];
  }
  if (first == nullptr) first = &tensors[0];
  const size_t d = static_cast<size_t>(wrap_dim(dim, first->dim(), op));
  Shape shape = first->shape();
  shape[d] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& x = tensors[i];
    if (is_skipped(x)) continue;
    TERN_CHECK(x.dim() == first->dim(), ShapeError,
               "{}: Tensors must have same number of dimensions: got {} and {} (shapes {} and {})", op,
               first->dim(), x.dim(), to_string(first->shape()), to_string(x.shape()));
    for (size_t k = 0; k < shape.size(); ++k)
      TERN_CHECK(k == d || x.shape()[k] == first->shape()[k], ShapeError,
                 "{}: Sizes of tensors must match except in dimension {}. Expected size {} but got size {} "
                 "for tensor number {} in the list "
                 "(shapes {} and {})",
                 op, d, first->shape()[k], x.shape()[k], i, to_string(first->shape()), to_string(x.shape()));
    TERN_CHECK(!__builtin_add_overflow(shape[d], x.shape()[d], &shape[d]), ShapeError,
               "{}: the sizes in dimension {} add up to more than a size can be", op, d);
  }
  DType dtype = common_dtype(tensors);
  int64_t numel = with_context(op, [&] { return checked_numel(shape); });
  Tensor y = empty_contiguous(std::move(shape), numel, dtype, tensors[0].device());
  for_each_rows(y, d, [&](const auto& rows_of) {
    int64_t start = 0;
    for (const Tensor& x : tensors) {
      if (is_skipped(x)) continue;
      if (x.numel() != 0) copy_elements(rows_of(piece_of(y, d, start, x.shape()[d])), rows_of(x));
      start += x.shape()[d];
    }
  });
  if (!tracks_grad(tensors)) return y;
  struct Part {
    Shape shape;
    DType dtype;
  };
  std::vector<Part> parts;
  for (const Tensor& x : tensors) parts.push_back({x.shape(), x.dtype()});
  record(op, y, tensors, [d, parts = std::move(parts)](GradContext& c, const Tensor& g) {
    std::vector<Tensor> grads(parts.size());
    int64_t at = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool skipped = parts[i].shape.size() == 1 && parts[i].shape[0] == 0;
      int64_t length = skipped ? 0 : parts[i].shape[d];
      if (c.needs(i)) {
        Tensor part = narrow(g, static_cast<int64_t>(d), at, length);
        grads[i] = to(skipped ? reshape(part, {-1}) : part, parts[i].dtype);
      }
      at += length;
    }
    return grads;
  });
  return y;
}

}  // namespace

Tensor cat(const std::vector<Tensor>& tensors, int64_t dim) { return cat_as("cat", tensors, dim); }

Tensor stack(const std::vector<Tensor>& tensors, int64_t dim) {
  check_list("stack", tensors);
  const size_t d = static_cast<size_t>(wrap_dim(dim, tensors[0].dim() + 1, "stack"));
  for (size_t i = 1; i < tensors.size(); ++i)
    TERN_CHECK(tensors[i].shape() == tensors[0].shape(), ShapeError,
               "stack: expects each tensor to be equal size, but got {} at entry 0 and {} at entry {}",
               to_string(tensors[0].shape()), to_string(tensors[i].shape()), i);
  Shape shape = tensors[0].shape();
  shape.insert(d, static_cast<int64_t>(tensors.size()));
  int64_t numel = with_context("stack", [&] { return checked_numel(shape); });
  Tensor y = empty_contiguous(std::move(shape), numel, common_dtype(tensors), tensors[0].device());
  for_each_rows(y, d, [&](const auto& rows_of) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      Tensor place = rows_of(piece_of(y, d, static_cast<int64_t>(i), 1));
      Shape inner = place.shape();
      Strides strides = place.strides();
      inner.erase(d);
      strides.erase(d);
      copy_elements(Tensor::view_of(y.storage(), y.dtype(), std::move(inner), std::move(strides),
                                    place.storage_offset()),
                    rows_of(tensors[i]));
    }
  });
  if (!tracks_grad(tensors)) return y;
  std::vector<DType> dtypes;
  for (const Tensor& x : tensors) dtypes.push_back(x.dtype());
  record("stack", y, tensors, [d, dtypes = std::move(dtypes)](GradContext& c, const Tensor& g) {
    std::vector<Tensor> grads(dtypes.size());
    for (size_t i = 0; i < dtypes.size(); ++i)
      if (c.needs(i)) grads[i] = to(select(g, static_cast<int64_t>(d), static_cast<int64_t>(i)), dtypes[i]);
    return grads;
  });
  return y;
}

Tensor hstack(const std::vector<Tensor>& tensors) {
  const std::vector<Tensor> rows = atleast_1d(tensors);
  return cat_as("hstack", rows, !rows.empty() && rows[0].dim() == 1 ? 0 : 1);
}

Tensor vstack(const std::vector<Tensor>& tensors) { return cat_as("vstack", atleast_2d(tensors), 0); }

namespace {

/// x repeated `repeats[d]` times along each of its dimensions: a copy.
Tensor repeated(const Tensor& x, const Shape& repeats) {
  // Each repeated dimension becomes two, of which the first is expanded; the others stay one.
  Shape split, spread, result;
  for (size_t d = 0; d < repeats.size(); ++d) {
    if (repeats[d] != 1) {
      split.push_back(1);
      spread.push_back(repeats[d]);
    }
    split.push_back(x.shape()[d]);
    spread.push_back(x.shape()[d]);
    int64_t size = 0;
    TERN_CHECK(!__builtin_mul_overflow(x.shape()[d], repeats[d], &size), ShapeError,
               "repeat: {} repetitions of shape {} are too many", to_string(repeats), to_string(x.shape()));
    result.push_back(size);
  }
  return reshape(clone(expand(reshape(x, split), spread)), result);
}

}  // namespace

Tensor repeat(const Tensor& x, IntArrayRef repeats) {
  TERN_CHECK(repeats.size() >= x.shape().size(), ShapeError,
             "repeat: number of dimensions of repeat dims can not be smaller than number of dimensions of "
             "tensor: repeats {}, shape {}",
             to_string(repeats), to_string(x.shape()));
  for (int64_t count : repeats)
    TERN_CHECK(count >= 0, ShapeError, "repeat: repeats can not be negative: {}", to_string(repeats));
  Shape shape(repeats.size() - x.shape().size(), 1);
  for (int64_t size : x.shape()) shape.push_back(size);
  return repeated(reshape(x, shape), repeats.to_shape());
}

Tensor tile(const Tensor& x, IntArrayRef repeats) {
  if (repeats.size() >= x.shape().size()) return repeat(x, repeats);
  Shape all(x.shape().size() - repeats.size(), 1);
  for (int64_t count : repeats) all.push_back(count);
  return repeat(x, all);
}

Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim) {
  TERN_CHECK(repeats >= 0, ValueError, "repeat_interleave: repeats must be non-negative, got {}", repeats);
  TERN_CHECK(!dim || x.dim() > 0, IndexError,
             "repeat_interleave: Dimension specified as {} but tensor has no dimensions: leave dim out",
             *dim);
  const Tensor base = dim ? x : reshape(x, {-1});
  size_t d = static_cast<size_t>(wrap_dim(dim.value_or(0), base.dim(), "repeat_interleave"));
  Shape result = base.shape();
  TERN_CHECK(!__builtin_mul_overflow(result[d], repeats, &result[d]), ShapeError,
             "repeat_interleave: {} repetitions of shape {} are too many", repeats, to_string(x.shape()));
  Shape spread = base.shape();
  spread.insert(d + 1, repeats);
  return reshape(clone(expand(unsqueeze(base, static_cast<int64_t>(d) + 1), spread)), result);
}

Tensor roll(const Tensor& x, IntArrayRef shifts, IntArrayRef dims) {
  if (dims.empty()) {
    TERN_CHECK(shifts.size() == 1, ShapeError,
               "roll: `shifts` and `dims` must align: without dims there must be one shift, got {}",
               to_string(shifts));
    return reshape(roll(reshape(x, {-1}), shifts, {0}), x.shape());
  }
  TERN_CHECK(shifts.size() == dims.size(), ShapeError,
             "roll: `shifts` and `dims` must align. shifts: {}, dims: {}", to_string(shifts),
             to_string(dims));
  if (x.numel() == 0) return clone(x);  // whatever the dims: PyTorch does not look at them
  TERN_CHECK(x.dim() > 0, IndexError,
             "roll: Dimension specified as {} but tensor has no dimensions: leave dims out", dims[0]);
  Tensor y = x;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t d = wrap_dim(dims[i], x.dim(), "roll");
    int64_t size = x.size(d);
    int64_t shift = size == 0 ? 0 : (shifts[i] % size + size) % size;
    if (shift != 0) y = cat_as("roll", {narrow(y, d, size - shift, shift), narrow(y, d, 0, size - shift)}, d);
  }
  return y.is_same(x) ? clone(x) : y;
}

Tensor flip(const Tensor& x, IntArrayRef dims) {
  Strides strides = x.strides();
  int64_t offset = x.storage_offset();
  Shape order;
  for (int64_t dim : dims) {
    int64_t d = wrap_dim(dim, x.dim(), "flip");
    TERN_CHECK(std::find(order.begin(), order.end(), d) == order.end(), ShapeError,
               "flip: dim {} appears multiple times in the list of dims {}", d, to_string(dims));
    order.push_back(d);
    if (x.numel() == 0 || x.dim() == 0) continue;
    size_t k = static_cast<size_t>(d);
    offset += (x.shape()[k] - 1) * strides[k];
    strides[k] = -strides[k];
  }
  Tensor y = empty_contiguous(x.shape(), x.numel(), x.dtype(), x.device());
  // The negative strides live only here: the copy kernel walks them, no tensor with them is given out.
  if (x.numel() != 0) copy_elements(y, Tensor::view_of(x.storage(), x.dtype(), x.shape(), strides, offset));
  if (tracks_grad(x))
    record("flip", y, {x}, [order](GradContext&, const Tensor& g) { return flip(g, order); });
  return y;
}

}  // namespace tern
