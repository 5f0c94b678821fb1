// Arguments of the kernels that read, add and write elements named by index tensors,
// that find non-zero elements, and that search sorted rows. Which operator uses
// which, and the gradients, are in tern/ops/index.cpp and embedding.cpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/core/dtype.h"
#include "tern/kernels/pointwise.h"
#include "tern/kernels/strides.h"
#include "tern/kernels/target.h"

namespace tern {

/// Index tensors that one kernel can combine.
inline constexpr int kMaxIndexTensors = 6;

/// The dimensions of a tensor that are addressed through int64 index tensors.
struct IndexedDims {
  const char* op = "";  ///< a literal, for errors
  int count = 0;        ///< index tensors in use, at least 1
  bool wrap = false;    ///< negative indices count from the end
  const int64_t* index[kMaxIndexTensors] = {};
  int64_t size[kMaxIndexTensors] = {};    ///< of the dimension that index i addresses
  int64_t stride[kMaxIndexTensors] = {};  ///< of that dimension in the addressed tensor, in elements
  int64_t dim[kMaxIndexTensors] = {};     ///< its number, for errors
};

/// Throws IndexError: "op: index 5 is out of bounds for dimension 0 with size
/// 3".
[[noreturn]] void throw_index_out_of_bounds(const IndexedDims& dims, int which, int64_t index);

/// Operands of an index kernel: the result or target, the source, then the
/// index tensors (stride 0 when not in use).
using IndexGeometry = Geometry<2 + kMaxIndexTensors>;

/// The same of N index tensors.
template <int N>
Geometry<2 + N> operands(const IndexGeometry& all) {
  Geometry<2 + N> g;
  g.ndim = all.ndim;
  g.numel = all.numel;
  std::copy_n(all.sizes, kMaxDims, g.sizes);
  for (int i = 0; i < 2 + N; ++i) std::copy_n(all.strides[i], kMaxDims, g.strides[i]);
  return g;
}

/// Calls `f` with, as its template argument, a number of index tensors that is enough: one is by far the most
/// common, and is compiled apart.
template <class F>
void visit_count(const IndexedDims& dims, F&& f) {
  if (dims.count == 1)
    f.template operator()<1>();
  else
    f.template operator()<kMaxIndexTensors>();
}

/// out[...] = in[... + sum of index_i[...] * stride_i]. Geometry: out, in
/// (stride 0 along addressed dimensions), index tensors. Throws IndexError
/// before or after part of `out` was written.
struct IndexGetArgs {
  DType dtype;
  void* out;
  const void* in;
  IndexedDims dims;
  IndexGeometry geometry;
};

enum class IndexPutMode : uint8_t { Set, Add, Prod, Max, Min };

/// out[... + sum of index_i[...] * stride_i] = source[...], or += , and, with one index tensor, *= , max= or
/// min= (NaN wins). A null `source` stands for `value`. The walked elements are the product of two
/// geometries, each of out, source, index tensors: along `free`, elements of `out` are distinct, so it is cut
/// into parallel pieces; along `addressed` (out has stride 0) the same element may be met again, so it is
/// walked in order: the last one wins, and sums have one order whatever the number of threads.
struct IndexPutArgs {
  DType dtype;
  IndexPutMode mode;
  void* out;
  const void* source;
  Param value;
  IndexedDims dims;
  IndexGeometry free;
  IndexGeometry addressed;
};

/// Elements, in row-major order, whose non-zero ones are counted together.
inline constexpr int64_t kNonzeroSection = 4096;
constexpr int64_t nonzero_sections(int64_t numel) { return (numel + kNonzeroSection - 1) / kNonzeroSection; }

/// starts[s] = number of elements of `in` before section s that are not zero (NaN is not zero); after the
/// last section, that of all.
struct NonzeroCountArgs {
  DType dtype;
  const void* in;
  int64_t* starts;
  Geometry<1> geometry;
};

/// out[n * row_stride + d * column_stride] = coordinate d of the n-th non-zero
/// element in row-major order of `sizes`; `rank` may be 1 for positions in the
/// flattened tensor. `starts` are those of NonzeroCountArgs, and `count` the last of them: no more is
/// written.
struct NonzeroArgs {
  DType dtype;
  int rank;
  const void* in;
  const int64_t* starts;
  int64_t* out;
  int64_t count;
  int64_t row_stride;
  int64_t column_stride;
  int64_t sizes[kMaxDims];
  Geometry<1> geometry;
};

/// out[r, i] = the first position p in row r of `sorted` with values[r, i] <=
/// sorted[p] (< when `right`); `length` when there is none. Everything is
/// contiguous; `sorted_row_stride` 0 shares one row.
struct SearchSortedArgs {
  DType dtype;
  bool right;
  const void* sorted;
  const void* values;
  int64_t* out;
  int64_t rows;
  int64_t row_values;
  int64_t length;
  int64_t sorted_row_stride;
};

/// Throws ValueError: "op: offset 9 of bag 1: offsets rise from 0 to the input's length, 8".
[[noreturn]] void throw_bag_out_of_order(const char* op, int64_t bag, int64_t offset, int64_t length);

/// out[b] = the sum or mean of the rows of a table that the numbers of bag b name, [bags, width] contiguous.
/// Throws IndexError as index_get, ValueError for bags out of order.
struct EmbeddingBagArgs {
  DType dtype;
  bool means;  ///< of the numbers that count
  void* out;
  const void* table;
  IndexedDims dims;  ///< the numbers, one index tensor, and the rows that they name
  int64_t column_stride, width;
  int64_t length, bags;
  const int64_t* begins;  ///< where each bag begins among the numbers; null: all have length / bags
  const void* factors;    ///< of each row that is added, or null
  int64_t padding;        ///< the number that does not count; -1: there is none

  TERN_FN int64_t bag_begin(int64_t bag) const {
    if (begins == nullptr) return length / bags * bag;
    const int64_t begin = bag < bags ? begins[bag] : length;
    return begin < 0 ? 0 : begin < length ? begin : length;
  }
  TERN_FN bool is_in_order(int64_t bag) const {
    return begins == nullptr ||
           (bag == 0 ? begins[0] == 0 : begins[bag] >= begins[bag - 1] && begins[bag] <= length);
  }
};

#define TERN_INDEX_KERNELS(X)        \
  X(index_get, IndexGetArgs)         \
  X(index_put, IndexPutArgs)         \
  X(embedding_bag, EmbeddingBagArgs) \
  X(nonzero_count, NonzeroCountArgs) \
  X(nonzero, NonzeroArgs)            \
  X(searchsorted, SearchSortedArgs)

}  // namespace tern
