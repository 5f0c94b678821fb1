// Rows of so few elements that a loop over one is not worth it: many are turned together, so that loops run
// across them.
#pragma once

#include <cstdint>

#include "tern/backends/cpu/kernels/transpose.h"
#include "tern/backends/cpu/kernels/widen.h"
#include "tern/base/parallel.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// Rows that are turned together, and the most elements of such a row.
inline constexpr int64_t kTurnedRows = 128, kMostTurned = 16;
inline constexpr int64_t kTurned = kTurnedRows * kMostTurned;

/// to[j * kTurnedRows + i] = from[i * size + j] for rows of `size` elements; A is the compute type, or wider.
template <class T, class A>
void turn_rows(const T* from, int64_t rows, int64_t size, A* to) {
  A buffer[kTurned];
  const A* elements = buffer;
  if constexpr (std::is_same_v<A, Compute<T>>)
    elements = to_compute(from, rows * size, buffer);
  else
    for (int64_t i = 0; i < rows * size; ++i) buffer[i] = static_cast<A>(static_cast<Compute<T>>(from[i]));
  transpose_elements(sizeof(A), elements, size, rows, size, to, kTurnedRows);
}
/// The other way.
template <class T>
void turn_back(const Compute<T>* from, int64_t rows, int64_t size, T* to) {
  if constexpr (kWidened<T>) {
    Compute<T> buffer[kTurned];
    transpose_elements(sizeof(Compute<T>), from, kTurnedRows, size, rows, buffer, size);
    from_compute(to, buffer, rows * size);
  } else {
    transpose_elements(sizeof(T), from, kTurnedRows, size, rows, to, size);
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
