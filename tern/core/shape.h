// Shapes and strides: lists of int64 with their arithmetic. No tensor here; walking of strided memory is in
// kernels/.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "tern/base/small_vector.h"

namespace tern {

/// Sizes or strides (in elements) of a tensor; up to six of them need no heap.
using Shape = SmallVector<int64_t, 6>;
using Strides = Shape;

/// A read-only view of int64s, for arguments: takes `{2, 3}`, Shape, vector, span. Does not own what it
/// shows.
class IntArrayRef {
 public:
  constexpr IntArrayRef() = default;
  constexpr IntArrayRef(const int64_t* data, size_t size) : data_(data), size_(size) {}
#pragma GCC diagnostic push
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  constexpr IntArrayRef(std::initializer_list<int64_t> list) : data_(list.begin()), size_(list.size()) {}
#pragma GCC diagnostic pop
  IntArrayRef(const Shape& shape) : data_(shape.data()), size_(shape.size()) {}
  IntArrayRef(const std::vector<int64_t>& list) : data_(list.data()), size_(list.size()) {}
  IntArrayRef(std::span<const int64_t> list) : data_(list.data()), size_(list.size()) {}

  constexpr size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr const int64_t* data() const noexcept { return data_; }
  constexpr const int64_t* begin() const noexcept { return data_; }
  constexpr const int64_t* end() const noexcept { return data_ + size_; }
  constexpr int64_t operator[](size_t i) const noexcept { return data_[i]; }
  Shape to_shape() const { return Shape(begin(), end()); }

 private:
  const int64_t* data_ = nullptr;
  size_t size_ = 0;
};

bool operator==(IntArrayRef a, IntArrayRef b) noexcept;

/// "[2, 3]".
std::string to_string(IntArrayRef list);

/// Highest number of dimensions a tensor may have.
inline constexpr size_t kMaxRank = 64;

/// Product of the sizes. Throws ShapeError for a negative size, a rank over kMaxRank, or an overflow of
/// int64.
int64_t checked_numel(IntArrayRef shape);

/// Row-major strides.
Strides contiguous_strides(IntArrayRef shape);

/// True when the elements lie in row-major order without gaps (sizes of 1 and empty tensors do not matter).
bool is_contiguous(IntArrayRef shape, IntArrayRef strides) noexcept;

/// Turns a dimension counted from the end into one counted from the front. A 0-d tensor takes 0 and -1.
/// Throws IndexError in PyTorch's words, with `op` before them.
int64_t wrap_dim(int64_t dim, int64_t rank, const char* op);

/// A dimension given by itself: an empty list `{}` is none, nor is a bool.
template <class T>
concept Dimension = std::integral<T> && !std::same_as<T, bool>;

/// Whether two shapes broadcast: from the last dimension on, sizes are equal or one of them is 1.
bool broadcasts(IntArrayRef a, IntArrayRef b);
/// Sizes of the result of broadcasting. Throws ShapeError naming `op` and both shapes.
Shape broadcast_shapes(IntArrayRef a, IntArrayRef b, const char* op);

/// The strides that view a tensor of `shape` and `strides` as `target` without a copy; false when there are
/// none. The element counts must be equal.
bool view_strides(IntArrayRef shape, IntArrayRef strides, IntArrayRef target, Strides& result);

}  // namespace tern
