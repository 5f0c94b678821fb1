// Arithmetic on shapes and strides.
#include "tern/core/shape.h"

#include <algorithm>

#include "tern/base/check.h"

namespace tern {

bool operator==(IntArrayRef a, IntArrayRef b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string to_string(IntArrayRef list) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(list[i]);
  }
  return text + "]";
}

int64_t checked_numel(IntArrayRef shape) {
  TERN_CHECK(shape.size() <= kMaxRank, ShapeError, "a tensor has at most {} dimensions, got {}", kMaxRank,
             shape.size());
  // A size of 0 counts as 1 at first, so that no product of some of the sizes overflows elsewhere: neither
  // strides nor the elements of a sum over the empty dimension. PyTorch refuses most such shapes too.
  bool has_zero = false;
  int64_t numel = 1;
  for (int64_t size : shape) {
    TERN_CHECK(size >= 0, ShapeError, "a size can not be negative: {}", to_string(shape));
    has_zero |= size == 0;
    TERN_CHECK(!__builtin_mul_overflow(numel, std::max<int64_t>(size, 1), &numel), ShapeError,
               "too many elements for 64 bits, where a size of 0 counts as 1: {}", to_string(shape));
  }
  return has_zero ? 0 : numel;
}

Strides contiguous_strides(IntArrayRef shape) {
  Strides strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    TERN_CHECK(!__builtin_mul_overflow(step, std::max<int64_t>(shape[i], 1), &step) || i == 0, ShapeError,
               "Stride calculation overflowed for shape {}", to_string(shape));
  }
  return strides;
}

bool is_contiguous(IntArrayRef shape, IntArrayRef strides) noexcept {
  int64_t step = 1;
  bool dense = true;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 0) return true;
    if (shape[i] == 1) continue;
    dense &= strides[i] == step;
    step *= shape[i];
  }
  return dense;
}

int64_t wrap_dim(int64_t dim, int64_t rank, const char* op) {
  int64_t limit = std::max<int64_t>(rank, 1);
  TERN_CHECK(dim >= -limit && dim < limit, IndexError,
             "{}: Dimension out of range (expected to be in range of [{}, {}], but got {})", op, -limit,
             limit - 1, dim);
  return dim < 0 ? dim + limit : dim;
}

bool broadcasts(IntArrayRef a, IntArrayRef b) {
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const int64_t x = a[a.size() - i], y = b[b.size() - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

Shape broadcast_shapes(IntArrayRef a, IntArrayRef b, const char* op) {
  if (a == b) return a.to_shape();
  IntArrayRef longer = a.size() >= b.size() ? a : b;
  IntArrayRef shorter = a.size() >= b.size() ? b : a;
  Shape result = longer.to_shape();
  size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t x = longer[offset + i];
    int64_t y = shorter[i];
    TERN_CHECK(
        x == y || x == 1 || y == 1, ShapeError,
        "{}: shapes {} and {} do not broadcast: the sizes at dimension {} differ ({} vs {}) and neither is 1",
        op, to_string(a), to_string(b), offset + i, a.size() >= b.size() ? x : y,
        a.size() >= b.size() ? y : x);
    result[offset + i] = x == 1 ? y : x;
  }
  return result;
}

bool view_strides(IntArrayRef shape, IntArrayRef strides, IntArrayRef target, Strides& result) {
  result = contiguous_strides(target);
  if (is_contiguous(shape, strides)) return true;
  // Runs of dimensions that are dense with respect to each other may be cut anew; boundaries between runs
  // must stay.
  size_t t = target.size();
  size_t d = shape.size();
  while (d-- > 0) {
    int64_t run = shape[d];
    int64_t base = strides[d];
    while (d > 0 && (shape[d - 1] == 1 || strides[d - 1] == base * run)) {
      --d;
      run *= shape[d];
    }
    int64_t cut = 1;
    while (t > 0 && (cut < run || target[t - 1] == 1)) {
      --t;
      result[t] = base * cut;
      cut *= target[t];
    }
    if (cut != run) return false;
  }
  return t == 0;
}

}  // namespace tern
