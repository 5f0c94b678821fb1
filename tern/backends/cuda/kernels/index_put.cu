// Elements written by index, without atomics: addresses are sorted (stably, so that equal ones keep their
// order), and one thread does everything that concerns one element of the target, in the order of the CPU. A
// few addresses are walked by every thread instead; sums for few targets are kept in shared memory.
#include "tern/backends/cuda/kernels/bits.cuh"
#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/index.cuh"
#include "tern/backends/cuda/kernels/sort.cuh"

namespace tern::cuda_backend {
namespace {

/// The last value of a run of equal addresses counts.
template <class T>
struct SetElements {
  T value;
  T current{};
  bool any = false;
  __device__ T read(const void* source, DType, int64_t i) const {
    return source ? static_cast<const T*>(source)[i] : value;
  }
  __device__ void take(T x) {
    current = x;
    any = true;
  }
  __device__ void finish(void* out, DType, int64_t i) const {
    if (any) static_cast<T*>(out)[i] = current;
  }
};

/// Integers wrap.
struct WrappingSum {
  template <class C>
  __device__ __forceinline__ C operator()(C a, C b) const {
    return functors::wrap_add(a, b);
  }
};

/// Sums in C: float, double or int64.
template <class C>
struct AddElements {
  C value;
  C sum = C(0);
  __device__ C read(const void* source, DType dtype, int64_t i) const {
    return source ? load<C>(dtype, source, i) : value;
  }
  __device__ void take(C x) { sum = WrappingSum()(sum, x); }
  __device__ void finish(void* out, DType dtype, int64_t i) const {
    store<C>(dtype, out, i, WrappingSum()(load<C>(dtype, out, i), sum));
  }
};

template <int N>
struct Put {
  DType dtype;
  void* out;
  const void* source;
  IndexedDims dims;
  uint32_t free_count, addressed_count;
  Offsets<2 + N> free, addressed;
  Fault* fault;
  int64_t unit = 1;  ///< of addresses, in elements of the target

  /// Makes addresses the places that a single index tensor names.
  void count_places() {
    unit = dims.stride[0];
    dims.stride[0] = 1;
  }
};

/// Every thread has one free element and walks all addresses in order.
template <int N, class Mode>
__global__ void put_walking(Put<N> p, Mode mode) {
  const uint32_t f = blockIdx.x * kBlock + threadIdx.x;
  if (f >= p.free_count) return;
  int64_t base[2 + N];
  p.free.at(f, base);
  for (uint32_t a = 0; a < p.addressed_count; ++a) {
    int64_t at[2 + N];
    p.addressed.at(a, at);
    for (int j = 0; j < N; ++j) at[2 + j] += base[2 + j];
    const int64_t to = address<N>(p.dims, at + 2, p.fault);
    if (to < 0) continue;
    Mode one = mode;
    one.take(one.read(p.source, p.dtype, base[1] + at[1]));
    one.finish(p.out, p.dtype, base[0] + to);
  }
}

/// The address of element e: of `addressed`, or with `all` of free * addressed (number f * addressed_count +
/// a).
template <int N, class Key>
__global__ void make_addresses(Put<N> p, bool all, Key last, Key* keys, uint32_t* elements, uint32_t count) {
  const uint32_t e = blockIdx.x * kBlock + threadIdx.x;
  if (e >= count) return;
  int64_t base[2 + N] = {}, at[2 + N];
  if (all) p.free.at(e / p.addressed_count, base);
  p.addressed.at(e % p.addressed_count, at);
  for (int j = 0; j < N; ++j) at[2 + j] += base[2 + j];
  const int64_t to = address<N>(p.dims, at + 2, p.fault);
  keys[e] = to < 0 ? last : static_cast<Key>(base[0] + to);
  elements[e] = e;
}

/// A thread for each sorted address (and, unless `all`, each free element): the first of a run does the whole
/// run, and reads several of its elements before it takes the first.
template <int N, class Mode, class Key>
__global__ void put_runs(Put<N> p, bool all, Key last, const Key* keys, const uint32_t* elements,
                         uint32_t count, Mode mode) {
  const int64_t t = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  const uint32_t width = all ? 1 : p.free_count;
  // A division of 32 bits, wherever that is enough, costs a fraction.
  const int64_t s = t <= UINT32_MAX ? static_cast<uint32_t>(t) / width : t / width;
  if (s >= count) return;
  const Key key = keys[s];
  if (key == last || (s > 0 && keys[s - 1] == key)) return;
  int64_t base[2 + N] = {};
  if (!all) p.free.at(static_cast<uint32_t>(t - s * width), base);
  constexpr uint32_t kAtOnce = 4;
  bool same[kAtOnce] = {};
  for (auto i = static_cast<uint32_t>(s); i == s || same[kAtOnce - 1]; i += kAtOnce) {
    uint32_t e[kAtOnce] = {};
    decltype(mode.read(p.source, p.dtype, 0)) values[kAtOnce];
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k) {
      same[k] = i + k < count && keys[i + k] == key;
      if (i + k < count) e[k] = elements[i + k];
    }
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k) {
      if (!same[k]) break;
      int64_t from[2 + N] = {}, at[2 + N];
      if (all) p.free.at(e[k] / p.addressed_count, from);
      p.addressed.at(e[k] % p.addressed_count, at);
      values[k] = mode.read(p.source, p.dtype, (all ? from[1] : base[1]) + at[1]);
    }
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k)
      if (same[k]) mode.take(values[k]);
  }
  mode.finish(p.out, p.dtype, base[0] + static_cast<int64_t>(key) * p.unit);
}

template <int N>
bool is_fixed(const IndexGeometry& free, const IndexedDims& dims) {
  for (int j = 0; j < std::min(N, dims.count); ++j)
    for (int d = 0; d < free.ndim; ++d)
      if (free.strides[2 + j][d] != 0 && free.sizes[d] > 1) return false;
  return true;
}

constexpr int64_t kFewAddresses = 16;

/// Addresses below `last`, which stands for none.
template <int N, class Key, class Mode>
void put_sorted(const LaunchContext& context, const Put<N>& put, bool all, uint64_t last, const Mode& mode) {
  const int64_t count = int64_t{put.addressed_count} * (all ? put.free_count : 1);
  const auto n = static_cast<size_t>(count);
  const Storage a = workspace(context, n * sizeof(Key)), b = workspace(context, n * sizeof(Key)),
                c = workspace(context, n * 4), d = workspace(context, n * 4);
  auto *keys = static_cast<Key*>(a->data()), *sorted_keys = static_cast<Key*>(b->data());
  auto *elements = static_cast<uint32_t*>(c->data()), *sorted = static_cast<uint32_t*>(d->data());
  start(context, blocks(ceil_div(count, kBlock)), kBlock, 0, make_addresses<N, Key>, put, all,
        static_cast<Key>(last), keys, elements, static_cast<uint32_t>(count));
  sort_pairs<Key, uint32_t>(context, keys, sorted_keys, elements, sorted, count,
                            bits_below(static_cast<int64_t>(last) + 1));
  start(context, blocks(ceil_div(all ? count : count * put.free_count, kBlock)), kBlock, 0,
        put_runs<N, Mode, Key>, put, all, static_cast<Key>(last), static_cast<const Key*>(sorted_keys),
        static_cast<const uint32_t*>(sorted), static_cast<uint32_t>(count), mode);
}

/// The elements of two pieces of the geometries.
template <int N, class Mode>
void put_piece(const LaunchContext& context, Put<N> put, const Geometry<2 + N>& free, bool all,
               const Mode& mode) {
  if (put.addressed_count <= kFewAddresses)
    return start(context, blocks(ceil_div(free.numel, kBlock)), kBlock, 0, put_walking<N, Mode>, put, mode);
  if (N == 1 && !all) put.count_places();  // smaller numbers are sorted in fewer passes
  uint64_t last = 1;
  for (int j = 0; j < std::min(N, put.dims.count); ++j)
    last += static_cast<uint64_t>((put.dims.size[j] - 1) * put.dims.stride[j]);
  if (all)
    for (int d = 0; d < free.ndim; ++d)
      last += static_cast<uint64_t>((free.sizes[d] - 1) * free.strides[0][d]);
  if (last <= UINT32_MAX)
    put_sorted<N, uint32_t>(context, put, all, last, mode);
  else
    put_sorted<N, uint64_t>(context, put, all, last, mode);
}

template <int N, class Mode>
void run(const LaunchContext& context, const IndexPutArgs& args, const Mode& mode) {
  if (args.free.numel == 0 || args.addressed.numel == 0) return;
  // Index tensors that are the same for all free elements are sorted once for all of them.
  const bool all = !is_fixed<N>(args.free, args.dims);
  const int64_t most_addressed = std::min(kMostSorted, args.addressed.numel);
  const int64_t most_free =
      all && most_addressed > kFewAddresses ? kMostSorted / most_addressed : kMostElements;
  using Offset = const int64_t(&)[2 + N];
  // What comes later in `addressed` may meet the same element again; what is free never does.
  for_pieces(operands<N>(args.addressed), most_addressed, [&](const Geometry<2 + N>& addressed, Offset by) {
    for_pieces(operands<N>(args.free), most_free, [&](const Geometry<2 + N>& free, Offset more) {
      Put<N> put{args.dtype,
                 moved(args.out, by[0] + more[0], args.dtype),
                 moved(args.source, by[1] + more[1], args.dtype),
                 args.dims,
                 static_cast<uint32_t>(free.numel),
                 static_cast<uint32_t>(addressed.numel),
                 Offsets<2 + N>(free),
                 Offsets<2 + N>(addressed),
                 stream_of(context.stream).fault()};
      for (int j = 0; j < std::min(N, args.dims.count); ++j) put.dims.index[j] += by[2 + j] + more[2 + j];
      put_piece(context, put, free, all, mode);
    });
  });
}

// ---- sums in shared memory
// -----------------------------------------------------------------------------------------------------------

constexpr uint32_t kMostLines = 4;     // of a block: 32 bytes of neighbouring indices
constexpr int64_t kLineBlocks = 1600;  // about as many fill a GPU with blocks of one warp and 16 KiB
// A warp waits for itself at every step, so that many must share a processor: with 32 KiB for each, an H100
// took longer than by sorting.
constexpr int64_t kMostLineBytes = 20 << 10, kMostWideBytes = 8 << 10;
constexpr int64_t kFewestChunk = 512;

/// A line are the elements that one free element's addresses may name. A block of one warp adds a chunk of
/// the addresses to `width` lines, side by side in its memory.
struct SumLines {
  uint32_t size, width, chunk, chunks;

  /// Of one free element's addresses that the warp takes at once.
  __device__ __forceinline__ uint32_t rows() const { return 32 / width; }
  __device__ __forceinline__ uint32_t slots() const { return size * width; }
};

/// What changes nothing that it is added to, not even -0.
template <class C>
__device__ __forceinline__ C nothing() {
  return C(-0.0);
}

/// How many lanes before this one have the same number, which is below 2^bits.
__device__ __forceinline__ int equals_before(uint32_t number, int bits) {
  constexpr int kAtOnce = 4;
  unsigned equal = kAllLanes;
#pragma unroll 1
  for (int bit = 0; bit < bits; bit += kAtOnce) {
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const bool set = (number >> (bit + k) & 1) != 0;
      const unsigned votes = __ballot_sync(kAllLanes, set);
      equal &= set ? votes : ~votes;
    }
  }
  return __popc(equal & ((1u << threadIdx.x) - 1));
}

/// The sums of a block go to `out`, or where there are several chunks to `partial`.
template <class C>
__global__ void __launch_bounds__(32) sum_lines(Put<1> p, SumLines lines, int bits, C value, C* partial) {
  TERN_DYNAMIC_SHARED(float4, shared);
  C* sums = reinterpret_cast<C*>(shared);
  const uint32_t column = threadIdx.x % lines.width, row = threadIdx.x / lines.width;
  for (uint32_t i = threadIdx.x; i < lines.slots(); i += 32) sums[i] = nothing<C>();
  const uint32_t f = blockIdx.x * lines.width + column;
  const bool used = f < p.free_count;
  int64_t base[3] = {};
  if (used) p.free.at(f, base);
  const uint32_t begin = blockIdx.y * lines.chunk, end = min(begin + lines.chunk, p.addressed_count);
  struct Entry {
    bool valid;
    int64_t index[1];
    C value;
  };
  __syncthreads();
  read_ahead<sizeof(C) == 4 ? 8 : 4>(
      begin, end, lines.rows(),
      [&](uint32_t first) {
        Entry entry{used && first + row < end, {}, value};
        if (!entry.valid) return entry;
        int64_t at[3];
        p.addressed.at(first + row, at);
        entry.index[0] = p.dims.index[0][base[2] + at[2]];
        if (p.source) entry.value = load<C>(p.dtype, p.source, base[1] + at[1]);
        return entry;
      },
      [&](uint32_t, const Entry& entry) {
        const int64_t target = entry.valid ? address(p.dims, entry.index, p.fault) : -1;
        const uint32_t slot =
            target < 0 ? lines.slots() : static_cast<uint32_t>(target) * lines.width + column;
        // Lanes that meet in one slot take turns, so that its sum has one order.
        const int before = equals_before(slot, bits), turn = target < 0 ? -1 : before;
        for (int t = 0; __ballot_sync(kAllLanes, turn >= t) != 0; ++t) {
          if (turn == t) sums[slot] = WrappingSum()(sums[slot], entry.value);
          __syncthreads();
        }
      });
  if (partial) {
    partial += (int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * lines.slots();
    for (uint32_t i = threadIdx.x; i < lines.slots(); i += 32) partial[i] = sums[i];
  } else if (used) {
    const auto place = [&](uint32_t target) { return base[0] + target * p.unit; };
    read_ahead<8>(
        row, lines.size, lines.rows(),
        [&](uint32_t target) { return load<C>(p.dtype, p.out, place(target)); },
        [&](uint32_t target, C old) {
          store<C>(p.dtype, p.out, place(target), WrappingSum()(old, sums[target * lines.width + column]));
        });
  }
}

/// Adds the chunks' sums to `out`. Threads along x have a slot of all blocks' each, those along y share it.
template <class C>
__global__ void join_chunks(Put<1> p, SumLines lines, uint32_t slots, const C* partial) {
  const uint32_t s = blockIdx.x * blockDim.x + threadIdx.x;
  C sum = nothing<C>();
  if (s < slots)
    for (uint32_t c = threadIdx.y; c < lines.chunks; c += blockDim.y)
      sum = WrappingSum()(sum, partial[int64_t{c} * slots + s]);
  sum = column_reduce(sum, WrappingSum());
  const uint32_t block = s / lines.slots(), slot = s - block * lines.slots();
  const uint32_t target = slot / lines.width, f = block * lines.width + slot % lines.width;
  if (threadIdx.y > 0 || s >= slots || f >= p.free_count) return;
  int64_t base[3];
  p.free.at(f, base);
  AddElements<C>{C(0), sum}.finish(p.out, p.dtype, base[0] + target * p.unit);
}

/// Whether lines are short enough, and the addresses worth a walk over all of them.
template <class C>
bool fits_lines(const IndexPutArgs& args) {
  const int64_t size = args.dims.size[0], addresses = args.addressed.numel;
  const bool shared_index = is_fixed<1>(args.free, args.dims);
  return (!shared_index || args.free.numel <= kMostLines) && addresses > kFewAddresses &&
         addresses <= kMostElements && addresses >= size / 4 && size > 0 &&
         size * int64_t{sizeof(C)} <= kMostLineBytes;
}

template <class C>
void add_lines(const LaunchContext& context, const IndexPutArgs& args) {
  const int64_t size = args.dims.size[0], addresses = args.addressed.numel;
  const Geometry<3> addressed = operands<1>(args.addressed);
  const bool reads_along = addresses >= 32 && addressed.strides[2][addressed.ndim - 1] == 1;
  for_pieces(operands<1>(args.free), [&](const Geometry<3>& free, const int64_t(&by)[3]) {
    Put<1> put{args.dtype,
               moved(args.out, by[0], args.dtype),
               moved(args.source, by[1], args.dtype),
               args.dims,
               static_cast<uint32_t>(free.numel),
               static_cast<uint32_t>(addresses),
               Offsets<3>(free),
               Offsets<3>(addressed),
               stream_of(context.stream).fault()};
    put.dims.index[0] += by[2];
    put.count_places();
    int64_t width = 1;
    while (!reads_along && width < std::min<int64_t>(kMostLines, free.numel) &&
           2 * width * size * int64_t{sizeof(C)} <= kMostWideBytes)
      width *= 2;
    const int64_t groups = ceil_div(free.numel, width), slots = size * width;
    const int64_t chunk = ceil_div(
        addresses, std::clamp<int64_t>(kLineBlocks / groups, 1,
                                       std::max<int64_t>(addresses / std::max(size, kFewestChunk), 1)));
    const int64_t chunks = ceil_div(addresses, chunk);
    const SumLines lines{static_cast<uint32_t>(size), static_cast<uint32_t>(width),
                         static_cast<uint32_t>(chunk), static_cast<uint32_t>(chunks)};
    Storage sums;
    if (chunks > 1) sums = workspace(context, static_cast<size_t>(chunks * groups * slots) * sizeof(C));
    C* partial = sums ? static_cast<C*>(sums->data()) : nullptr;
    start(context, dim3(blocks(groups), static_cast<unsigned>(chunks)), 32,
          static_cast<size_t>(slots) * sizeof(C), sum_lines<C>, put, lines, bits_below(slots + 1),
          functors::from_param<C>(args.value), partial);
    if (!partial) return;
    const dim3 block = column_block(groups * slots, chunks);
    start(context, blocks(ceil_div(groups * slots, block.x)), block, 0, join_chunks<C>, put, lines,
          static_cast<uint32_t>(groups * slots), static_cast<const C*>(partial));
  });
}

}  // namespace

void index_put(const LaunchContext& context, const IndexPutArgs& args) {
  visit_count(args.dims, [&]<int N>() {
    if (args.mode == IndexPutMode::Add)
      visit_compute(args.dtype, [&]<class C>() {
        if constexpr (N == 1)
          if (fits_lines<C>(args)) return add_lines<C>(context, args);
        run<N>(context, args, AddElements<C>{functors::from_param<C>(args.value)});
      });
    else
      visit_bits(args.dtype, [&]<class T>() {
        const uint64_t bits = args.source ? 0 : bits_of(args.dtype, args.value);
        run<N>(context, args, SetElements<T>{static_cast<T>(bits)});
      });
  });
}

}  // namespace tern::cuda_backend
