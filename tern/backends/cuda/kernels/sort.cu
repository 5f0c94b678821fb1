// Sorting of rows: keys that order like the elements are sorted for all rows at once, with the number of the
// row above a key of 32 bits, or in two passes (by key, then by row) where keys have 64.
#include "tern/backends/cuda/kernels/sort.cuh"

#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/kernels/sort.h"

namespace tern::cuda_backend {
namespace {

/// An unsigned number of the element's order: NaN above everything, -0 equal to 0.
__device__ uint64_t order_key(DType dtype, const void* in, int64_t i, bool& nan) {
  nan = false;
  if (dtype == DType::Float64) {
    const double x = static_cast<const double*>(in)[i];
    nan = x != x;
    const auto bits = static_cast<uint64_t>(__double_as_longlong(x + 0.0));
    return nan ? ~uint64_t{0} : bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
  }
  if (is_floating_point(dtype)) {
    const float x = load<float>(dtype, in, i);
    nan = x != x;
    const uint32_t bits = __float_as_uint(x + 0.0f);
    return nan ? ~uint32_t{0} : bits >> 31 ? ~bits : bits | uint32_t{1} << 31;
  }
  const int64_t x = load<int64_t>(dtype, in, i);
  if (dtype == DType::Int64) return static_cast<uint64_t>(x) ^ uint64_t { 1 } << 63;
  return static_cast<uint32_t>(x) ^ uint32_t { 1 } << 31;
}

bool has_wide_keys(DType dtype) { return itemsize(dtype) == 8; }

/// Element e is position e % size of row e / size; row r is [r / inner, :, r % inner].
__global__ void make_keys(SortArgs args, bool wide, uint64_t* keys, int64_t* elements) {
  const int64_t e = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (e >= args.outer * args.inner * args.size) return;
  const int64_t row = e / args.size, at = e % args.size;
  bool nan;
  uint64_t key = order_key(args.dtype, args.in,
                           (row / args.inner * args.size + at) * args.inner + row % args.inner, nan);
  if (args.descending) key = wide ? ~key : static_cast<uint32_t>(~key);
  keys[e] = wide ? key : static_cast<uint64_t>(row) << 32 | key;
  elements[e] = e;
}

__global__ void rows_of(const int64_t* elements, uint64_t* rows, int64_t count, int64_t size) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i < count) rows[i] = static_cast<uint64_t>(elements[i] / size);
}

template <class T>
__global__ void write_sorted(SortArgs args, const int64_t* sorted) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  const int64_t written = args.only_last ? 1 : args.count;
  if (i >= args.outer * args.inner * written) return;
  // Neighbouring threads write neighbouring elements.
  const int64_t k = i % args.inner, place = i / args.inner % written, o = i / args.inner / written;
  const int64_t row = o * args.inner + k;
  const int64_t* mine = sorted + row * args.size;
  const auto address = [&](int64_t at) { return (o * args.size + at) * args.inner + k; };
  const auto is_nan = [&](int64_t rank) {
    bool nan;
    order_key(args.dtype, args.in, address(mine[rank] % args.size), nan);
    return nan;
  };
  int64_t rank = args.only_last ? args.count - 1 : place;
  if (args.only_last && is_floating_point(args.dtype)) {
    if (args.descending) {
      if (is_nan(0)) rank = 0;
    } else if (is_nan(args.size - 1)) {
      int64_t low = 0, high = args.size - 1;  // the first NaN is in [low, high]
      while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (is_nan(middle))
          high = middle;
        else
          low = middle + 1;
      }
      rank = low;
    }
  }
  const int64_t at = mine[rank] % args.size;
  static_cast<T*>(args.values)[i] = static_cast<const T*>(args.in)[address(at)];
  args.indices[i] = at;
}

/// All rows at once.
void sort_rows(const LaunchContext& context, const SortArgs& args) {
  const int64_t rows = args.outer * args.inner, numel = rows * args.size;
  if (numel == 0 || args.count == 0) return;
  // Numbers of rows beyond 32 bits do not fit above a key.
  const bool wide = has_wide_keys(args.dtype) || rows > int64_t{0xffffffff};
  const auto nbytes = static_cast<size_t>(numel) * 8;
  const Storage a = workspace(context, nbytes), b = workspace(context, nbytes),
                c = workspace(context, nbytes), d = workspace(context, nbytes);
  auto *keys = static_cast<uint64_t*>(a->data()), *sorted_keys = static_cast<uint64_t*>(b->data());
  auto *elements = static_cast<int64_t*>(c->data()), *sorted = static_cast<int64_t*>(d->data());
  start(context, blocks(ceil_div(numel, kBlock)), kBlock, 0, make_keys, args, wide, keys, elements);
  const int row_bits = bits_below(rows);
  sort_pairs(context, keys, sorted_keys, elements, sorted, numel, wide ? 64 : 32 + row_bits);
  if (wide && rows > 1) {
    start(context, blocks(ceil_div(numel, kBlock)), kBlock, 0, rows_of, static_cast<const int64_t*>(sorted),
          keys, numel, args.size);
    sort_pairs(context, keys, sorted_keys, sorted, elements, numel, row_bits);
    std::swap(sorted, elements);
  }
  const int64_t written = rows * (args.only_last ? 1 : args.count);
  const auto write = [&]<class T>() {
    start(context, blocks(ceil_div(written, kBlock)), kBlock, 0, write_sorted<T>, args,
          static_cast<const int64_t*>(sorted));
  };
  switch (itemsize(args.dtype)) {
    case 1:
      return write.template operator()<uint8_t>();
    case 2:
      return write.template operator()<uint16_t>();
    case 4:
      return write.template operator()<uint32_t>();
    default:
      return write.template operator()<uint64_t>();
  }
}

}  // namespace

void sort(const LaunchContext& context, const SortArgs& args) {
  if (!is_computable(args.dtype)) throw_not_computable(args.dtype);
  const int64_t read = args.size * args.inner, written = (args.only_last ? 1 : args.count) * args.inner;
  const int64_t at_once = std::max<int64_t>(1, kMostSorted / std::max<int64_t>(read, 1));
  for (int64_t o = 0; o < args.outer; o += at_once) {
    SortArgs piece = args;
    piece.outer = std::min(at_once, args.outer - o);
    piece.in = moved(args.in, o * read, args.dtype);
    piece.values = moved(args.values, o * written, args.dtype);
    piece.indices = moved(args.indices, o * written);
    sort_rows(context, piece);
  }
}

}  // namespace tern::cuda_backend
