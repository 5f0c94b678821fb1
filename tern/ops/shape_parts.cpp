// Views of parts of a tensor. The gradient of a part is put into zeros of the base's shape, which is an
// operator too, so that it can be differentiated again.
#include <algorithm>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// Zeros of the shape `base` with g in the part that `part(zeros)` shows; parts without two elements in one
/// place.
template <class Part>
Tensor embed(const Tensor& g, const Shape& base, const Part& part) {
  Tensor y = filled(base, g.dtype(), g.device(), 0);
  {
    NoGradGuard no_grad;
    copy_elements(part(y), g);
  }
  if (tracks_grad(g))
    record("slice_backward", y, {g}, [part](GradContext&, const Tensor& gg) { return part(gg); });
  return y;
}

/// Records `y` as the part that `part(x)` shows.
template <class Part>
Tensor record_part(const char* op, Tensor y, const Tensor& x, const Part& part) {
  record_view(op, y, x,
              [base = x.shape(), part](GradContext&, const Tensor& g) { return embed(g, base, part); });
  return y;
}

/// Where the elements with this index in dimension `d` begin; without elements, strides say nothing.
int64_t offset_of(const Tensor& x, size_t d, int64_t index) {
  return x.storage_offset() + (x.numel() == 0 ? 0 : index * x.strides()[d]);
}

/// The stride of every step-th element. One that is too large for 64 bits leads to no second element.
int64_t stepped(int64_t stride, int64_t step) {
  int64_t result = 0;
  return __builtin_mul_overflow(stride, step, &result) ? stride : result;
}

/// Every step-th of the elements from `start` on of dimension `d`, `count` in all.
Tensor strided_part(const char* op, const Tensor& x, size_t d, int64_t start, int64_t count, int64_t step) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  int64_t offset = offset_of(x, d, count == 0 ? 0 : start);
  shape[d] = count;
  strides[d] = stepped(strides[d], step);
  Tensor y = Tensor::view_of(x.storage(), x.dtype(), std::move(shape), std::move(strides), offset);
  return record_part(op, std::move(y), x, [d, start, count, step](const Tensor& base) {
    return strided_part("slice", base, d, start, count, step);
  });
}

Tensor selected(const char* op, const Tensor& x, size_t d, int64_t index) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  int64_t offset = offset_of(x, d, index);
  shape.erase(d);
  strides.erase(d);
  Tensor y = Tensor::view_of(x.storage(), x.dtype(), std::move(shape), std::move(strides), offset);
  return record_part(op, std::move(y), x,
                     [d, index](const Tensor& base) { return selected("select", base, d, index); });
}

size_t checked_dim(const char* op, const Tensor& x, int64_t dim) {
  TERN_CHECK(x.dim() != 0, ShapeError, "{}: cannot be applied to a 0-dim tensor", op);
  return static_cast<size_t>(wrap_dim(dim, x.dim(), op));
}

/// An empty list with room for so many parts. A number that comes from nowhere must not fill the memory with
/// empty tensors.
std::vector<Tensor> list_of_parts(const char* op, int64_t count) {
  constexpr int64_t kMaxParts = int64_t{1} << 24;
  TERN_CHECK(count <= kMaxParts, ValueError, "{}: gives at most {} tensors, not {}", op, kMaxParts, count);
  std::vector<Tensor> parts;
  parts.reserve(static_cast<size_t>(count));
  return parts;
}

std::vector<Tensor> split_by(const char* op, const Tensor& x, int64_t split_size, int64_t pieces, size_t d) {
  std::vector<Tensor> result = list_of_parts(op, pieces);
  for (int64_t i = 0; i < pieces; ++i) {
    int64_t start = i * split_size;
    result.push_back(strided_part(op, x, d, start, std::min(split_size, x.shape()[d] - start), 1));
  }
  return result;
}

}  // namespace

Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  size_t d = checked_dim("narrow", x, dim);
  int64_t size = x.shape()[d];
  TERN_CHECK(length >= 0, ShapeError, "narrow: length must be non-negative, got {}", length);
  TERN_CHECK(start >= -size && start <= size, IndexError,
             "narrow: start out of range (expected to be in range of [{}, {}], but got {})", -size, size,
             start);
  int64_t first = start < 0 ? start + size : start;
  TERN_CHECK(length <= size - first, ShapeError,
             "narrow: start ({}) + length ({}) exceeds dimension size ({}) of dimension {} of shape {}",
             first, length, size, d, to_string(x.shape()));
  return strided_part("slice", x, d, first, length, 1);
}

Tensor slice(const Tensor& x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
             int64_t step) {
  size_t d = checked_dim("slice", x, dim);
  TERN_CHECK(step > 0, ValueError, "slice: step must be positive, got {}: use flip for the reverse order",
             step);
  int64_t size = x.shape()[d];
  auto clip = [size](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  int64_t first = start ? clip(*start) : 0;
  int64_t last = std::max(first, end ? clip(*end) : size);
  return strided_part("slice", x, d, first, (last - first) / step + ((last - first) % step != 0), step);
}

Tensor select(const Tensor& x, int64_t dim, int64_t index) {
  size_t d = checked_dim("select", x, dim);
  int64_t size = x.shape()[d];
  TERN_CHECK(index >= -size && index < size, IndexError,
             "select: index {} out of range for tensor of size {} at dimension {}", index,
             to_string(x.shape()), d);
  return selected("select", x, d, index < 0 ? index + size : index);
}

std::vector<Tensor> unbind(const Tensor& x, int64_t dim) {
  size_t d = checked_dim("unbind", x, dim);
  std::vector<Tensor> result = list_of_parts("unbind", x.shape()[d]);
  for (int64_t i = 0; i < x.shape()[d]; ++i) result.push_back(selected("unbind", x, d, i));
  return result;
}

std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  size_t d = checked_dim("chunk", x, dim);
  TERN_CHECK(chunks > 0, ValueError, "chunk: expects `chunks` to be greater than 0, got: {}", chunks);
  int64_t size = x.shape()[d];
  if (size == 0) return split_by("split", x, 0, chunks, d);
  int64_t piece = size / chunks + (size % chunks != 0);
  return split_by("split", x, piece, size / piece + (size % piece != 0), d);
}

std::vector<Tensor> Tensor::split_evenly(int64_t split_size, int64_t dim) const {
  const Tensor& x = *this;
  size_t d = checked_dim("split", x, dim);
  int64_t size = x.shape()[d];
  TERN_CHECK(split_size >= 0, ValueError, "split: expects split_size be non-negative, but got split_size={}",
             split_size);
  TERN_CHECK(split_size > 0 || size == 0, ValueError,
             "split: split_size can only be 0 if dimension size is 0, but got dimension size of {}", size);
  return split_by("split", x, split_size, size == 0 ? 1 : size / split_size + (size % split_size != 0), d);
}

std::vector<Tensor> split(const Tensor& x, IntArrayRef split_sizes, int64_t dim) {
  size_t d = checked_dim("split", x, dim);
  int64_t total = 0;
  bool valid = true;
  for (int64_t size : split_sizes) valid = valid && size >= 0 && !__builtin_add_overflow(total, size, &total);
  TERN_CHECK(valid && total == x.shape()[d], ShapeError,
             "split: expects split_sizes to be non-negative and to sum exactly to {} (input tensor's size at "
             "dimension {}), but got "
             "split_sizes={}",
             x.shape()[d], d, to_string(split_sizes));
  std::vector<Tensor> result;
  int64_t start = 0;
  for (int64_t size : split_sizes) {
    result.push_back(strided_part("split_with_sizes", x, d, start, size, 1));
    start += size;
  }
  return result;
}

std::vector<Tensor> detail::tensor_split(const Tensor& x, int64_t sections, int64_t dim) {
  const char* op = "tensor_split";
  TERN_CHECK(x.dim() > 0, ShapeError, "{}: expected at least a 1-dimensional tensor, but got 0-d", op);
  const int64_t d = wrap_dim(dim, x.dim(), op);
  TERN_CHECK(sections > 0, ValueError, "{}: number of sections must be larger than 0, got {}", op, sections);
  std::vector<Tensor> parts = list_of_parts(op, sections);
  int64_t start = 0;
  for (int64_t i = 0; i < sections; ++i) {
    const int64_t length = x.size(d) / sections + (i < x.size(d) % sections ? 1 : 0);
    parts.push_back(narrow(x, d, start, length));
    start += length;
  }
  return parts;
}

std::vector<Tensor> tensor_split(const Tensor& x, IntArrayRef indices, int64_t dim) {
  TERN_CHECK(x.dim() > 0, ShapeError, "tensor_split: expected at least a 1-dimensional tensor, but got 0-d");
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const int64_t index : indices) {
    parts.push_back(slice(x, dim, start, index));
    start = index;
  }
  parts.push_back(slice(x, dim, start));
  return parts;
}

namespace {

/// The dimension along which hsplit, vsplit and dsplit, which need 1, 2 and 3 dimensions, split x.
int64_t split_axis(const char* op, const Tensor& x, int64_t least_dims) {
  TERN_CHECK(x.dim() >= least_dims, ShapeError,
             "{}: requires a tensor with at least {} dimension{}, but got shape {}", op, least_dims,
             least_dims == 1 ? "" : "s", to_string(x.shape()));
  if (least_dims == 1) return x.dim() == 1 ? 0 : 1;
  return least_dims == 2 ? 0 : 2;
}

}  // namespace

std::vector<Tensor> detail::equal_parts(const char* op, const Tensor& x, int64_t sections,
                                        int64_t least_dims) {
  const int64_t d = split_axis(op, x, least_dims);
  TERN_CHECK(
      sections > 0 && x.size(d) % sections == 0, ValueError,
      "{}: attempted to split along dimension {}, but the size {} of the dimension is not divisible by "
      "the number of sections {}: tensor_split gives unequal parts",
      op, d, x.size(d), sections);
  return detail::tensor_split(x, sections, d);
}

std::vector<Tensor> hsplit(const Tensor& x, IntArrayRef indices) {
  return tensor_split(x, indices, split_axis("hsplit", x, 1));
}
std::vector<Tensor> vsplit(const Tensor& x, IntArrayRef indices) {
  return tensor_split(x, indices, split_axis("vsplit", x, 2));
}
std::vector<Tensor> dsplit(const Tensor& x, IntArrayRef indices) {
  return tensor_split(x, indices, split_axis("dsplit", x, 3));
}

namespace {

/// A copy of x with src in the place of the part that `part(copy)` shows.
template <class Part>
Tensor with_part(const char* op, const Tensor& x, const Tensor& src, Part part) {
  check_same_device(op, {{"x", x}, {"src", src}});
  Tensor y = clone(x);
  Tensor place = with_context(op, [&] { return part(y); });
  TERN_CHECK(src.shape() == place.shape(), ShapeError,
             "{}: expected src to have the shape of the part that it replaces: src is {}, the part is {}", op,
             to_string(src.shape()), to_string(place.shape()));
  place.copy_(src);
  return y;
}

}  // namespace

Tensor select_scatter(const Tensor& x, const Tensor& src, int64_t dim, int64_t index) {
  return with_part("select_scatter", x, src, [&](const Tensor& y) { return select(y, dim, index); });
}
Tensor slice_scatter(const Tensor& x, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                     std::optional<int64_t> end, int64_t step) {
  return with_part("slice_scatter", x, src, [&](const Tensor& y) { return slice(y, dim, start, end, step); });
}
Tensor diagonal_scatter(const Tensor& x, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
  return with_part("diagonal_scatter", x, src,
                   [&](const Tensor& y) { return diagonal(y, offset, dim1, dim2); });
}

Tensor diagonal(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  size_t a = checked_dim("diagonal", x, dim1), b = static_cast<size_t>(wrap_dim(dim2, x.dim(), "diagonal"));
  TERN_CHECK(a != b, ShapeError, "diagonal: dimensions cannot be identical {}, {} (shape {})", dim1, dim2,
             to_string(x.shape()));
  int64_t rows = x.shape()[a], cols = x.shape()[b];
  int64_t row = offset < 0 ? std::min(-std::max(offset, -rows), rows) : 0,
          col = offset > 0 ? std::min(offset, cols) : 0;
  int64_t length = std::min(rows - row, cols - col);
  Shape shape;
  Strides strides;
  for (size_t d = 0; d < x.shape().size(); ++d) {
    if (d == a || d == b) continue;
    shape.push_back(x.shape()[d]);
    strides.push_back(x.strides()[d]);
  }
  shape.push_back(length);
  int64_t stride = 0;  // one that is too large leads to no second element
  if (__builtin_add_overflow(x.strides()[a], x.strides()[b], &stride)) stride = 0;
  strides.push_back(stride);
  const bool is_empty = length == 0 || x.numel() == 0;
  int64_t start = x.storage_offset() + (is_empty ? 0 : row * x.strides()[a] + col * x.strides()[b]);
  Tensor y = Tensor::view_of(x.storage(), x.dtype(), std::move(shape), std::move(strides), start);
  return record_part("diagonal", std::move(y), x,
                     [offset, dim1, dim2](const Tensor& base) { return diagonal(base, offset, dim1, dim2); });
}

namespace {

/// The sum of the windows of g in the places that unfold took them from.
Tensor fold_windows(const Tensor& g, const Shape& base, size_t d, int64_t size, int64_t step) {
  Tensor y = filled(base, g.dtype(), g.device(), 0);
  {
    // Elements k of all windows lie `step` apart: no two in one place.
    NoGradGuard no_grad;
    int64_t windows = g.shape()[d];
    for (int64_t k = 0; k < size && windows > 0; ++k)
      accumulate_into(strided_part("slice", y, d, k, windows, step), select(g, -1, k));
  }
  if (tracks_grad(g))
    record("unfold_backward", y, {g}, [d, size, step](GradContext&, const Tensor& gg) {
      return unfold(gg, static_cast<int64_t>(d), size, step);
    });
  return y;
}

}  // namespace

Tensor unfold(const Tensor& x, int64_t dimension, int64_t size, int64_t step) {
  size_t d = static_cast<size_t>(wrap_dim(dimension, x.dim(), "unfold"));
  int64_t available = x.dim() == 0 ? 1 : x.shape()[d];
  TERN_CHECK(size >= 0 && size <= available, ShapeError,
             "unfold: size must be in [0, {}] (the size of dimension {} of shape {}), but is {}", available,
             d, to_string(x.shape()), size);
  TERN_CHECK(step > 0, ValueError, "unfold: step is {} but must be > 0", step);
  if (x.dim() == 0) return unfold(reshape(x, {1}), 0, size, step).select(0, 0);
  Shape shape = x.shape();
  Strides strides = x.strides();
  shape[d] = (available - size) / step + 1;
  shape.push_back(size);
  strides.push_back(strides[d]);
  strides[d] = stepped(strides[d], step);
  Tensor y =
      Tensor::view_of(x.storage(), x.dtype(), std::move(shape), std::move(strides), x.storage_offset());
  record_view("unfold", y, x, [base = x.shape(), d, size, step](GradContext&, const Tensor& g) {
    return fold_windows(g, base, d, size, step);
  });
  return y;
}

namespace {

struct Layout {
  Shape shape;
  Strides strides;
  int64_t offset = 0;

  /// One past the last element, from the start of the storage.
  int64_t end() const {
    int64_t last = offset;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 0) return offset;
      last += (shape[d] - 1) * strides[d];
    }
    return last + 1;
  }
  Tensor of(const Tensor& flat) const { return as_strided(flat, shape, strides, offset); }
  /// Whether two elements may lie in one place.
  bool may_overlap() const {
    std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d] > 1) dims.emplace_back(strides[d], shape[d]);
    std::sort(dims.begin(), dims.end());
    int64_t reach = 0;
    for (auto [stride, size] : dims) {
      if (stride <= reach) return true;
      reach += (size - 1) * stride;
    }
    return false;
  }
};

/// What a tensor of layout `from` receives when g belongs to the layout `to` over the same memory: g is
/// summed into memory, from which the elements of `from` are read; elements in one place share its sum
/// evenly, as in PyTorch.
Tensor relayout(const Tensor& g, const Layout& to, const Layout& from) {
  int64_t low = std::min(to.offset, from.offset), high = std::max(to.end(), from.end());
  Layout target{to.shape, to.strides, to.offset - low}, source{from.shape, from.strides, from.offset - low};
  Tensor zeros = filled({high - low}, g.dtype(), g.device(), 0);
  Tensor numbers = arange(high - low, {.dtype = int64, .device = g.device(), .requires_grad = false});
  Tensor result = source.of(index_add(zeros, 0, reshape(target.of(numbers), {-1}), reshape(g, {-1})));
  if (!source.may_overlap()) return result;
  Tensor ones = filled({checked_numel(from.shape)}, g.dtype(), g.device(), 1);
  return div(result, source.of(index_add(zeros, 0, reshape(source.of(numbers), {-1}), ones)));
}

}  // namespace

Tensor as_strided(const Tensor& x, IntArrayRef shape, IntArrayRef strides,
                  std::optional<int64_t> storage_offset) {
  Tensor y = with_context("as_strided", [&] {
    return Tensor::from_storage(x.storage(), x.dtype(), shape, strides,
                                storage_offset.value_or(x.storage_offset()));
  });
  record_view("as_strided", y, x,
              [to = Layout{y.shape(), y.strides(), y.storage_offset()},
               from = Layout{x.shape(), x.strides(), x.storage_offset()}](GradContext&, const Tensor& g) {
                return relayout(g, to, from);
              });
  return y;
}

}  // namespace tern
