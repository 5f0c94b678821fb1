// Operands whose innermost dimension is short: many of their rows are gathered into one dense piece, so that
// a vectorised loop has something to run over.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tern/kernels/strides.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// Rows of fewer elements than this are not worth a call of a loop each,
inline constexpr int64_t kShortRow = 128;
/// where they must be gathered first,
inline constexpr int64_t kShortGatheredRow = 40;
/// where they would have to be gathered but for loops that take evenly spaced rows,
inline constexpr int64_t kShortSpacedRow = 16;
/// and where they run across the result.
inline constexpr int64_t kShortRowAcross = 20;

/// One operand of a walk: sizes and strides are those of its Geometry.
struct Rows {
  int ndim;
  const int64_t* sizes;
  const int64_t* strides;
  size_t item;

  int64_t columns() const { return sizes[ndim - 1]; }
  /// All rows lie one behind the other.
  bool dense() const;
  /// All rows are the same one.
  bool repeated() const;
};

template <int N>
Rows rows_of(const Geometry<N>& g, int operand, size_t item) {
  return {g.ndim, g.sizes, g.strides[operand], item};
}

/// Copies the rows [first, first + count) of the operand at `from` into dense rows at `to`.
void gather_rows(const Rows& rows, const void* from, int64_t first, int64_t count, void* to);
/// The other way round.
void scatter_rows(const Rows& rows, void* to, int64_t first, int64_t count, const void* from);

}  // namespace tern::cpu::TERN_CPU_VARIANT
