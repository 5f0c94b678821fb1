// Rows that a warp or a block sorts in registers, and the first few of longer rows. The network is bitonic
// (Batcher, 1968), in the form whose comparisons all have one direction. Places in the row take part in
// comparisons, so that no two elements are equal and the order is the stable one.
#include "tern/backends/cuda/kernels/sort_rows.cuh"

#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"

namespace tern::cuda_backend {
namespace {

/// A key and the place of its element in the row. The last of all stands where a row has no element.
template <class Key>
struct Item;
template <>
struct Item<uint32_t> {
  uint64_t both;

  static __device__ __forceinline__ Item of(uint32_t key, uint32_t at) { return {uint64_t{key} << 32 | at}; }
  static __device__ __forceinline__ Item last() { return {~uint64_t{0}}; }
  __device__ __forceinline__ uint32_t key() const { return static_cast<uint32_t>(both >> 32); }
  __device__ __forceinline__ uint32_t at() const { return static_cast<uint32_t>(both); }
  __device__ __forceinline__ bool before(const Item& other) const { return both < other.both; }
};
template <>
struct Item<uint64_t> {
  uint32_t high, low, place;

  static __device__ __forceinline__ Item of(uint64_t key, uint32_t at) {
    return {static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key), at};
  }
  static __device__ __forceinline__ Item last() { return {~0u, ~0u, ~0u}; }
  __device__ __forceinline__ uint64_t key() const { return uint64_t{high} << 32 | low; }
  __device__ __forceinline__ uint32_t at() const { return place; }
  __device__ __forceinline__ bool before(const Item& other) const {
    return key() < other.key() || (key() == other.key() && place < other.place);
  }
};

template <class X>
__device__ __forceinline__ void put_in_order(X& a, X& b) {
  const bool swapped = b.before(a);
  const X first = swapped ? b : a;
  b = swapped ? a : b;
  a = first;
}

/// The item that stays here of it and its partner's.
template <class X>
__device__ __forceinline__ X kept(const X& mine, const X& other, bool lower) {
  return other.before(mine) == lower ? other : mine;
}

template <class X>
__device__ __forceinline__ X shuffle(const X& x, int lane) {
  if constexpr (sizeof(X) == 8)
    return {__shfl_sync(kAllLanes, x.both, lane)};
  else
    return {__shfl_sync(kAllLanes, x.high, lane), __shfl_sync(kAllLanes, x.low, lane),
            __shfl_sync(kAllLanes, x.place, lane)};
}

// In all of these, item k of thread t is number t * K + k of the row.

/// The last steps of a merge, within threads.
template <class X, int K>
__device__ __forceinline__ void merge_thread(X (&x)[K]) {
#pragma unroll
  for (int half = K / 2; half > 0; half /= 2)
#pragma unroll
    for (int k = 0; k < K; ++k)
      if ((k & half) == 0) put_in_order(x[k], x[k | half]);
}

/// The steps of a merge from `half` lanes on.
template <class X, int K>
__device__ __forceinline__ void merge_lanes(X (&x)[K], int half) {
#pragma unroll 1
  for (; half > 0; half /= 2) {
    const bool lower = (threadIdx.x & half) == 0;
#pragma unroll
    for (int k = 0; k < K; ++k) x[k] = kept(x[k], shuffle_xor(x[k], half), lower);
  }
  merge_thread(x);
}

/// The items of the thread whose number differs by `mask`, the last one first.
template <class X, int K>
__device__ __forceinline__ void read_mirrored(const X (&x)[K], int mask, X (&other)[K]) {
#pragma unroll
  for (int k = 0; k < K; ++k) other[k] = shuffle_xor(x[K - 1 - k], mask);
}

template <class X, int K>
__device__ __forceinline__ void sort_warp(X (&x)[K]) {
#pragma unroll
  for (int size = 2; size <= K; size *= 2) {
#pragma unroll
    for (int k = 0; k < K; ++k)
      if ((k & size / 2) == 0) put_in_order(x[k], x[k ^ (size - 1)]);
#pragma unroll
    for (int half = size / 4; half > 0; half /= 2)
#pragma unroll
      for (int k = 0; k < K; ++k)
        if ((k & half) == 0) put_in_order(x[k], x[k | half]);
  }
#pragma unroll 1
  for (int half = 1; half < 32; half *= 2) {
    const bool lower = (threadIdx.x & half) == 0;
    X other[K];
    read_mirrored(x, 2 * half - 1, other);
#pragma unroll
    for (int k = 0; k < K; ++k) x[k] = kept(x[k], other[k], lower);
    merge_lanes(x, half / 2);
  }
}

/// A step between warps, through shared memory.
template <class X, int K>
__device__ __forceinline__ void exchange(X (&x)[K], int mask, bool mirrored, bool lower, X* shared) {
  const int threads = static_cast<int>(blockDim.x), t = static_cast<int>(threadIdx.x);
  __syncthreads();  // an earlier step may still be read
#pragma unroll
  for (int k = 0; k < K; ++k) shared[k * threads + t] = x[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < K; ++k)
    x[k] = kept(x[k], shared[(mirrored ? K - 1 - k : k) * threads + (t ^ mask)], lower);
}

/// A row for the threads along x, whole warps.
template <class X, int K>
__device__ __forceinline__ void sort_threads(X (&x)[K], X* shared) {
  sort_warp(x);
#pragma unroll 1
  for (int size = 64; size <= static_cast<int>(blockDim.x); size *= 2) {
#pragma unroll 1
    for (int half = size / 2; half >= 32; half /= 2) {
      const bool first = half == size / 2;
      exchange(x, first ? size - 1 : half, first, (threadIdx.x & half) == 0, shared);
    }
    merge_lanes(x, 16);
  }
}

/// Where the elements of row number r lie, which is [r / inner, :, r % inner].
struct Row {
  int64_t base, step;

  __device__ __forceinline__ Row(int64_t r, int64_t size, int64_t inner)
      : base(r / inner * (size * inner) + r % inner), step(inner) {}
  __device__ __forceinline__ int64_t at(int64_t i) const { return base + i * step; }
};

template <class Key, int K>
__global__ void __launch_bounds__(kBlock) sort_rows(SortArgs args, KeyOrder order) {
  using X = Item<Key>;
  TERN_DYNAMIC_SHARED(uint64_t, block_shared);
  const int threads = static_cast<int>(blockDim.x), t = static_cast<int>(threadIdx.x);
  X* shared = reinterpret_cast<X*>(block_shared) + static_cast<int>(threadIdx.y) * threads * (K + 1);
  const int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const bool is_row = row < args.outer * args.inner;
  const int size = is_row ? static_cast<int>(args.size) : 0;
  const Row in(row, args.size, args.inner);
  X x[K];
  visit_raw<Key>(order, args.in, [&]<class T>(const T* from) {
    T bits[K];  // all are read before the first is looked at
#pragma unroll
    for (int k = 0; k < K; ++k) bits[k] = k * threads + t < size ? from[in.at(k * threads + t)] : T{};
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const int i = k * threads + t;
      x[k] = i < size ? X::of(order.key<Key>(bits[k]), i) : X::last();
    }
  });
  sort_threads(x, shared);
  __syncthreads();
  // A word is left out after each thread's, for the banks.
#pragma unroll
  for (int k = 0; k < K; ++k) shared[t * (K + 1) + k] = x[k];
  __syncthreads();
  if (!is_row) return;
  const auto sorted = [&](int64_t rank) -> const X& { return shared[rank + rank / K]; };
  const Row out(row, args.only_last ? 1 : args.count, args.inner);
  visit_raw<Key>(order, args.in, [&]<class T>(const T* from) {
    const auto write = [&](int64_t i, uint32_t at, T value) {
      static_cast<T*>(args.values)[out.at(i)] = value;
      args.indices[out.at(i)] = at;
    };
    if (args.only_last) {
      if (t != 0) return;
      const uint32_t at =
          sorted(last_rank(args, [&](int64_t rank) { return order.is_nan(sorted(rank).key()); })).at();
      return write(0, at, from[in.at(at)]);
    }
    struct Result {
      uint32_t at;
      T value;
    };
    read_ahead<8>(
        t, static_cast<int>(args.count), threads,
        [&](int i) {
          const uint32_t at = sorted(i).at();
          return Result{at, from[in.at(at)]};
        },
        [&](int i, const Result& result) { write(i, result.at, result.value); });
  });
}

/// What a thread reads at once.
constexpr int kReadAhead = 8;

/// Each warp finds the first args.count, at most 32 * K, of a piece of a row, which consists of `size`
/// elements, or of candidates where those are not null. It writes them as candidates for the next pass, or
/// where `selected` is null as results.
template <class Key, int K>
__global__ void __launch_bounds__(kBlock)
    select_pieces(SortArgs args, KeyOrder order, const Item<Key>* candidates, int64_t size, int64_t piece,
                  Item<Key>* selected) {
  using X = Item<Key>;
  const int64_t pieces = (size + piece - 1) / piece;
  const int64_t number = int64_t{blockIdx.x} * blockDim.y + threadIdx.y, row = number / pieces;
  if (row >= args.outer * args.inner) return;
  const int lane = static_cast<int>(threadIdx.x), last = static_cast<int>(args.count) - 1;
  const int64_t first = (number - row * pieces) * piece, end = min(first + piece, size);
  const Row in(row, args.size, args.inner);
  X best[K], limit = X::last();  // the last one of those that count
#pragma unroll
  for (int k = 0; k < K; ++k) best[k] = X::last();
  const auto take = [&](X(&x)[K]) {
    bool any = false;
#pragma unroll
    for (int k = 0; k < K; ++k) any = any || x[k].before(limit);
    if (__ballot_sync(kAllLanes, any) == 0) return;
    sort_warp(x);
    X other[K];
    read_mirrored(x, 31, other);
#pragma unroll
    for (int k = 0; k < K; ++k) best[k] = kept(best[k], other[k], true);
    merge_lanes(best, 16);
    limit = best[0];
#pragma unroll
    for (int k = 1; k < K; ++k)
      if (k == last % K) limit = best[k];
    limit = shuffle(limit, last / K);
  };
#pragma unroll 1
  for (int64_t base = first + lane; base - lane < end; base += 32 * kReadAhead) {
    X x[kReadAhead / K][K];
    if (candidates) {
#pragma unroll
      for (int j = 0; j < kReadAhead; ++j)
        x[j / K][j % K] = base + j * 32 < end ? candidates[row * size + base + j * 32] : X::last();
    } else {
      visit_raw<Key>(order, args.in, [&]<class T>(const T* from) {
        T bits[kReadAhead];
#pragma unroll
        for (int j = 0; j < kReadAhead; ++j) bits[j] = base + j * 32 < end ? from[in.at(base + j * 32)] : T{};
#pragma unroll
        for (int j = 0; j < kReadAhead; ++j)
          x[j / K][j % K] = base + j * 32 < end
                                ? X::of(order.key<Key>(bits[j]), static_cast<uint32_t>(base + j * 32))
                                : X::last();
      });
    }
#pragma unroll
    for (auto& batch : x) take(batch);
  }
  const Row out(row, args.count, args.inner);
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const int rank = lane * K + k;
    if (selected) {
      selected[number * (32 * K) + rank] = best[k];
    } else if (rank <= last) {
      const int64_t at = best[k].at();
      visit_raw<Key>(order, args.in, [&]<class T>(const T* from) {
        static_cast<T*>(args.values)[out.at(rank)] = from[in.at(at)];
      });
      args.indices[out.at(rank)] = at;
    }
  }
}

/// Pieces of this size are read by a warp each, or larger ones where there would be very many.
constexpr int64_t kRowPiece = 2048, kMostRowPieces = 8192;

template <class Key, int K>
void select_first(const LaunchContext& context, const SortArgs& args, const KeyOrder& order) {
  const int64_t rows = args.outer * args.inner;
  constexpr unsigned kWarps = kBlock / 32;
  Storage candidates;
  for (int64_t size = args.size;;) {
    const int64_t piece = std::max(kRowPiece, ceil_div(rows * size, kMostRowPieces)),
                  pieces = ceil_div(size, piece);
    Storage selected;
    if (pieces > 1)
      selected = workspace(context, static_cast<size_t>(rows * pieces * 32 * K) * sizeof(Item<Key>));
    const auto items = [](const Storage& s) { return s ? static_cast<Item<Key>*>(s->data()) : nullptr; };
    start(context, blocks(ceil_div(rows * pieces, kWarps)), dim3(32, kWarps), 0, select_pieces<Key, K>, args,
          order, items(candidates), size, piece, items(selected));
    if (pieces == 1) return;
    candidates = std::move(selected);
    size = pieces * 32 * K;
  }
}

/// The longest rows that a block sorts, of 16 items a thread.
template <class Key>
constexpr int64_t kLongestSorted = sizeof(Key) == 8 ? 2048 : 4096;

template <class Key, int K>
void sort_with(const LaunchContext& context, const SortArgs& args, const KeyOrder& order, unsigned least) {
  unsigned threads = 32;
  while (threads * K < args.size) threads *= 2;
  const dim3 block(threads, std::max(1u, least / threads));
  start(context, blocks(ceil_div(args.outer * args.inner, block.y)), block,
        block.x * block.y * (K + 1) * sizeof(Item<Key>), sort_rows<Key, K>, args, order);
}

template <class Key>
bool try_blocks(const LaunchContext& context, const SortArgs& args, const KeyOrder& order) {
  if (!args.only_last && args.count <= args.size / 2 && args.size <= kMostElements) {
    if (args.count <= 32) return select_first<Key, 1>(context, args, order), true;
    if (args.count <= 128) return select_first<Key, 4>(context, args, order), true;
  }
  if (args.size > kLongestSorted<Key>) return false;
  if (args.size <= 128)
    sort_with<Key, 4>(context, args, order, kBlock);
  else
    sort_with<Key, 16>(context, args, order, kBlock / 2);
  return true;
}

}  // namespace

bool sort_in_blocks(const LaunchContext& context, const SortArgs& args) {
  if (args.outer * args.inner == 0 || args.count == 0) return true;
  const KeyOrder order(args);
  return order.nbytes == 8 ? try_blocks<uint64_t>(context, args, order)
                           : try_blocks<uint32_t>(context, args, order);
}

}  // namespace tern::cuda_backend
