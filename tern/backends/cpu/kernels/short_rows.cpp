// Gathering and scattering of short rows, by item size alone.
#include "tern/backends/cpu/kernels/short_rows.h"

#include <algorithm>

#include "tern/backends/cpu/kernels/bits.h"
#include "tern/backends/cpu/kernels/transpose.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// to[i * to_row + j * to_step] = from[i * from_row + j * from_step], with the columns unrolled.
template <int columns, class T>
void copy_columns(T* to, int64_t to_row, int64_t to_step, const T* from, int64_t from_row, int64_t from_step,
                  int64_t rows) {
  for (int64_t i = 0; i < rows; ++i)
    TERN_UNROLL for (int j = 0; j < columns; ++j) to[i * to_row + j * to_step] =
        from[i * from_row + j * from_step];
}

/// to[i * to_row + j] = from[i * from_row], for rows of more than 4 elements; n is that of visit_ends.
template <int n, class T>
void fill_rows_of(T* to, int64_t to_row, const T* from, int64_t from_row, int64_t rows, int64_t columns) {
  constexpr int kLine = n > 0 && n < kVectorBytes ? n : kVectorBytes;
  if constexpr (kLine > static_cast<int>(sizeof(T)) && sizeof(T) <= 8) {
    typedef T Line __attribute__((vector_size(kLine), aligned(alignof(T)), may_alias));
    constexpr int64_t kLanes = kLine / static_cast<int64_t>(sizeof(T));
    for (int64_t i = 0; i < rows; ++i, to += to_row, from += from_row) {
      const Line line = Line{} + *from;
      if constexpr (n == kLine) {
        *reinterpret_cast<Line*>(to) = line;
        *reinterpret_cast<Line*>(to + columns - kLanes) = line;
      } else {
        for (int64_t j = 0; j < columns; j += kLanes)
          *reinterpret_cast<Line*>(to + std::min(j, columns - kLanes)) = line;
      }
    }
  } else {
    for (int64_t i = 0; i < rows; ++i) std::fill_n(to + i * to_row, columns, from[i * from_row]);
  }
}
template <class T>
void fill_rows(T* to, int64_t to_row, const T* from, int64_t from_row, int64_t rows, int64_t columns) {
  visit_ends(columns * static_cast<int64_t>(sizeof(T)),
             [&]<int n>() { fill_rows_of<n>(to, to_row, from, from_row, rows, columns); });
}

/// to[i * to_row + j] = from[i * from_row + j].
template <class T>
void copy_rows(T* to, int64_t to_row, const T* from, int64_t from_row, int64_t rows, int64_t columns) {
  const int64_t nbytes = columns * static_cast<int64_t>(sizeof(T));
  visit_ends(nbytes, [&]<int n>() {
    for (int64_t i = 0; i < rows; ++i) copy_row_bytes<n>(to + i * to_row, from + i * from_row, nbytes);
  });
}

/// The same as copy_columns for any number of columns.
template <class T>
void copy_rectangle(T* to, int64_t to_row, int64_t to_step, const T* from, int64_t from_row,
                    int64_t from_step, int64_t rows, int64_t columns) {
  if (to_step == 1 && from_step == 0 && columns > 4)
    return fill_rows(to, to_row, from, from_row, rows, columns);
  if constexpr (sizeof(T) <= 8) {
    if (to_step == 1 && from_row == 1 && from_step != 1)
      return transpose_elements(sizeof(T), from, from_step, columns, rows, to, to_row);
    if (to_row == 1 && to_step != 1 && from_step == 1)
      return transpose_elements(sizeof(T), from, from_row, rows, columns, to, to_step);
  }
  switch (columns) {
    case 1:
      return copy_columns<1>(to, to_row, to_step, from, from_row, from_step, rows);
    case 2:
      return copy_columns<2>(to, to_row, to_step, from, from_row, from_step, rows);
    case 3:
      return copy_columns<3>(to, to_row, to_step, from, from_row, from_step, rows);
    case 4:
      return copy_columns<4>(to, to_row, to_step, from, from_row, from_step, rows);
    default:
      break;
  }
  if (to_step == 1 && from_step == 1) return copy_rows(to, to_row, from, from_row, rows, columns);
  for (int64_t i = 0; i < rows; ++i, to += to_row, from += from_row) {
    if (to_step == 1 && from_step == -1)
      for (int64_t j = 0; j < columns; ++j) to[j] = from[-j];
    else
      for (int64_t j = 0; j < columns; ++j) to[j * to_step] = from[j * from_step];
  }
}

/// Calls body(offset, row_step, count) for the pieces of [first, first + count) whose rows are evenly spaced.
template <class Body>
void for_even_rows(const Rows& rows, int64_t first, int64_t count, Body&& body) {
  const int row_dim = rows.ndim - 2;
  if (row_dim < 0) return body(int64_t{0}, int64_t{0}, count);
  int64_t index[kMaxDims], offset = 0, rest = first;
  for (int d = row_dim; d >= 0; --d) {
    index[d] = rest % rows.sizes[d];
    rest /= rows.sizes[d];
    offset += index[d] * rows.strides[d];
  }
  while (count > 0) {
    const int64_t step = rows.strides[row_dim], n = std::min(count, rows.sizes[row_dim] - index[row_dim]);
    body(offset, step, n);
    count -= n;
    offset -= index[row_dim] * step;
    index[row_dim] = 0;
    for (int d = row_dim - 1; d >= 0; --d) {
      offset += rows.strides[d];
      if (++index[d] < rows.sizes[d]) break;
      offset -= rows.sizes[d] * rows.strides[d];
      index[d] = 0;
    }
  }
}

}  // namespace

bool Rows::dense() const {
  int64_t expected = 1;
  for (int d = ndim - 1; d >= 0; expected *= sizes[d--])
    if (strides[d] != expected) return false;
  return true;
}

bool Rows::repeated() const {
  return std::all_of(strides, strides + ndim - 1, [](int64_t stride) { return stride == 0; });
}

void gather_rows(const Rows& rows, const void* from, int64_t first, int64_t count, void* to) {
  const int64_t columns = rows.columns(), step = rows.strides[rows.ndim - 1];
  auto gather = [&]<class T>() {
    auto* target = static_cast<T*>(to);
    for_even_rows(rows, first, count, [&](int64_t offset, int64_t row_step, int64_t n) {
      copy_rectangle(target, columns, 1, static_cast<const T*>(from) + offset, row_step, step, n, columns);
      target += n * columns;
    });
  };
  if (!visit_item(rows.item, gather)) gather.template operator()<Wide>();
}

void scatter_rows(const Rows& rows, void* to, int64_t first, int64_t count, const void* from) {
  const int64_t columns = rows.columns(), step = rows.strides[rows.ndim - 1];
  auto scatter = [&]<class T>() {
    auto* source = static_cast<const T*>(from);
    for_even_rows(rows, first, count, [&](int64_t offset, int64_t row_step, int64_t n) {
      copy_rectangle(static_cast<T*>(to) + offset, row_step, step, source, columns, 1, n, columns);
      source += n * columns;
    });
  };
  if (!visit_item(rows.item, scatter)) scatter.template operator()<Wide>();
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
