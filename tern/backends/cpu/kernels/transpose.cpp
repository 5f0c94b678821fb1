// The transposition of rectangles of elements of any size: squares in registers, and what is left over.
#include "tern/backends/cpu/kernels/transpose.h"

#include "tern/backends/cpu/kernels/bits.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

template <class T>
void transpose_part(const T* from, int64_t from_stride, int64_t rows, int64_t columns, T* to,
                    int64_t to_stride) {
  constexpr int64_t kSide = kTransposeTile<T>;
  const int64_t whole_rows = rows / kSide * kSide, whole_columns = columns / kSide * kSide;
  for (int64_t i = 0; i < whole_rows; i += kSide)
    for (int64_t j = 0; j < whole_columns; j += kSide)
      transpose_tile(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i)
      to[j * to_stride + i] = from[i * from_stride + j];
}

}  // namespace

void transpose_elements(size_t item, const void* from, int64_t from_stride, int64_t rows, int64_t columns,
                        void* to, int64_t to_stride) {
  visit_item(item, [&]<class T>() {
    transpose_part(static_cast<const T*>(from), from_stride, rows, columns, static_cast<T*>(to), to_stride);
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
