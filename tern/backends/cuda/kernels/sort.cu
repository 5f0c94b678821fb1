// Sorting of rows that no block can hold: keys that order like the elements are sorted for all rows at once,
// with the number of the row above the key where 64 bits have room for both, else in two passes, by key, then
// by row.
#include "tern/kernels/sort.h"

#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/sort.cuh"
#include "tern/backends/cuda/kernels/sort_rows.cuh"

namespace tern::cuda_backend {
namespace {

/// Division of numbers of the type that counts elements.
template <class Place>
struct Quotient {
  int64_t by;
  __device__ __forceinline__ int64_t operator()(int64_t n) const { return n / by; }
};
template <>
struct Quotient<uint32_t> {
  Divider by;
  explicit Quotient(int64_t by_) : by(by_) {}
  __device__ __forceinline__ int64_t operator()(int64_t n) const {
    return by.divide(static_cast<uint32_t>(n));
  }
};

/// The rows of a launch. Element e is position e % size of row e / size; row r is [r / inner, :, r % inner].
template <class Key, class Place>
struct SortedRows {
  SortArgs args;
  KeyOrder order;
  Quotient<Place> by_size, by_inner, by_written;
  int64_t written;

  explicit SortedRows(const SortArgs& a)
      : args(a),
        order(a),
        by_size{a.size},
        by_inner{a.inner},
        by_written{a.only_last ? 1 : a.count},
        written(a.only_last ? 1 : a.count) {}
  __device__ __forceinline__ Key key_at(int64_t i) const {
    if constexpr (sizeof(Key) == 8)
      if (order.nbytes == 8) return order.key(static_cast<const uint64_t*>(args.in)[i]);
    uint32_t bits;
    visit_raw<uint32_t>(order, args.in, [&](const auto* from) { bits = from[i]; });
    return order.key(bits);
  }
};

/// `row_bit`: where the number of the row begins in a key, or 64 when it is not in there.
template <class Key, class Place>
__global__ void make_row_keys(SortedRows<Key, Place> rows, int64_t numel, int row_bit, Key* keys,
                              Place* places) {
  const int64_t e = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (e >= numel) return;
  const SortArgs& args = rows.args;
  const int64_t row = rows.by_size(e), o = rows.by_inner(row), at = e - row * args.size;
  const Key key = rows.key_at((o * args.size + at) * args.inner + (row - o * args.inner));
  keys[e] = row_bit < 64 ? static_cast<Key>(static_cast<uint64_t>(row) << row_bit | key) : key;
  places[e] = static_cast<Place>(e);
}

template <class Key, class Place>
__global__ void make_row_numbers(SortedRows<Key, Place> rows, const Place* places, Key* keys, int64_t numel) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i < numel) keys[i] = static_cast<Key>(rows.by_size(places[i]));
}

template <class Key, class Place>
__global__ void write_sorted(SortedRows<Key, Place> rows, int64_t results, const Place* sorted) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= results) return;
  const SortArgs& args = rows.args;
  // Neighbouring threads write neighbouring elements.
  const int64_t column = rows.by_inner(i), k = i - column * args.inner, o = rows.by_written(column);
  const int64_t first = (o * args.inner + k) * args.size;  // element of the row
  const auto place = [&](int64_t rank) { return int64_t{sorted[first + rank]} - first; };
  const auto address = [&](int64_t at) { return (o * args.size + at) * args.inner + k; };
  const int64_t rank =
      args.only_last
          ? last_rank(args, [&](int64_t at) { return rows.order.is_nan(rows.key_at(address(place(at)))); })
          : column - o * rows.written;
  const int64_t at = place(rank);
  const auto write = [&]<class T>(const T* from) { static_cast<T*>(args.values)[i] = from[address(at)]; };
  if (rows.order.nbytes == 8)
    visit_raw<uint64_t>(rows.order, args.in, write);
  else
    visit_raw<uint32_t>(rows.order, args.in, write);
  args.indices[i] = at;
}

/// All rows at once.
template <class Key, class Place>
void sort_all(const LaunchContext& context, const SortArgs& args) {
  const SortedRows<Key, Place> rows(args);
  const int64_t count = args.outer * args.inner, numel = count * args.size;
  const int key_bits = rows.order.nbytes * 8, row_bits = bits_below(count);
  const bool together = key_bits + row_bits <= static_cast<int>(sizeof(Key)) * 8;
  const auto make = [&](size_t itemsize) {
    return workspace(context, static_cast<size_t>(numel) * itemsize);
  };
  const Storage a = make(sizeof(Key)), b = make(sizeof(Key)), c = make(sizeof(Place)),
                d = make(sizeof(Place));
  auto *keys = static_cast<Key*>(a->data()), *sorted_keys = static_cast<Key*>(b->data());
  auto *places = static_cast<Place*>(c->data()), *sorted = static_cast<Place*>(d->data());
  const unsigned grid = blocks(ceil_div(numel, kBlock));
  start(context, grid, kBlock, 0, make_row_keys<Key, Place>, rows, numel,
        together && count > 1 ? key_bits : 64, keys, places);
  sort_pairs(context, keys, sorted_keys, places, sorted, numel, together ? key_bits + row_bits : key_bits);
  if (!together) {
    start(context, grid, kBlock, 0, make_row_numbers<Key, Place>, rows, sorted, keys, numel);
    sort_pairs(context, keys, sorted_keys, sorted, places, numel, row_bits);
    std::swap(sorted, places);
  }
  const int64_t results = count * rows.written;
  start(context, blocks(ceil_div(results, kBlock)), kBlock, 0, write_sorted<Key, Place>, rows, results,
        sorted);
}

}  // namespace

void sort(const LaunchContext& context, const SortArgs& args) {
  if (!is_computable(args.dtype)) throw_not_computable(args.dtype);
  if (sort_in_blocks(context, args)) return;
  const int64_t read = args.size * args.inner, written = (args.only_last ? 1 : args.count) * args.inner;
  const int64_t at_once = std::max<int64_t>(1, kMostSorted / read);
  for (int64_t o = 0; o < args.outer; o += at_once) {
    SortArgs piece = args;
    piece.outer = std::min(at_once, args.outer - o);
    piece.in = moved(args.in, o * read, args.dtype);
    piece.values = moved(args.values, o * written, args.dtype);
    piece.indices = moved(args.indices, o * written);
    const int64_t rows = piece.outer * piece.inner;
    if (rows * piece.size > kMostElements)
      sort_all<uint64_t, int64_t>(context, piece);
    else if (static_cast<int>(itemsize(args.dtype)) * 8 + bits_below(rows) > 32)
      sort_all<uint64_t, uint32_t>(context, piece);
    else
      sort_all<uint32_t, uint32_t>(context, piece);
  }
}

}  // namespace tern::cuda_backend
