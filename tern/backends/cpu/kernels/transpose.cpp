// The transposition of rectangles of elements of any size: squares in registers, narrow ones, and what
// is left over.
#include "tern/backends/cpu/kernels/transpose.h"

#include "tern/backends/cpu/kernels/bits.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// In squares of `side`, then of its half, down to what fills a register of 16 bytes.
template <int side, class T>
void transpose_part(const T* from, int64_t from_stride, int64_t rows, int64_t columns, T* to,
                    int64_t to_stride) {
  const int64_t whole_rows = rows / side * side, whole_columns = columns / side * side;
  for (int64_t i = 0; i < whole_rows; i += side)
    for (int64_t j = 0; j < whole_columns; j += side)
      transpose_square<side>(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
  auto rest = [&](int64_t i, int64_t j, int64_t i_count, int64_t j_count) {
    const T* source = from + i * from_stride + j;
    T* target = to + j * to_stride + i;
    if constexpr (side * sizeof(T) > 16)
      transpose_part<side / 2>(source, from_stride, i_count, j_count, target, to_stride);
    else
      for (j = 0; j < j_count; ++j)
        for (i = 0; i < i_count; ++i) target[j * to_stride + i] = source[i * from_stride + j];
  };
  if (whole_rows < rows) rest(whole_rows, 0, rows - whole_rows, whole_columns);
  if (whole_columns < columns) rest(0, whole_columns, rows, columns - whole_columns);
}

/// Rows of n elements, one behind the other, to columns. The compiler vectorises it for a constant n.
template <int n, class T>
void split_rows(const T* from, int64_t rows, T* to, int64_t to_stride) {
#pragma GCC ivdep
  for (int64_t i = 0; i < rows; ++i)
    TERN_UNROLL for (int j = 0; j < n; ++j) to[j * to_stride + i] = from[i * n + j];
}
/// The other way round.
template <int n, class T>
void join_columns(const T* from, int64_t from_stride, int64_t rows, T* to) {
#pragma GCC ivdep
  for (int64_t i = 0; i < rows; ++i)
    TERN_UNROLL for (int j = 0; j < n; ++j) to[i * n + j] = from[j * from_stride + i];
}

template <int n, class T>
bool transpose_narrow(const T* from, int64_t from_stride, int64_t rows, int64_t columns, T* to,
                      int64_t to_stride) {
  if (columns == n && from_stride == n)
    split_rows<n>(from, rows, to, to_stride);
  else if (rows == n && to_stride == n)
    join_columns<n>(from, from_stride, columns, to);
  else
    return false;
  return true;
}

}  // namespace

void transpose_elements(size_t item, const void* from, int64_t from_stride, int64_t rows, int64_t columns,
                        void* to, int64_t to_stride) {
  visit_item(item, [&]<class T>() {
    auto* source = static_cast<const T*>(from);
    auto* target = static_cast<T*>(to);
    if (transpose_narrow<2>(source, from_stride, rows, columns, target, to_stride) ||
        transpose_narrow<3>(source, from_stride, rows, columns, target, to_stride) ||
        transpose_narrow<4>(source, from_stride, rows, columns, target, to_stride))
      return;
    transpose_part<kTransposeTile<T>>(source, from_stride, rows, columns, target, to_stride);
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
