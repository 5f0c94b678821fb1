// Sums by index in shared memory, without atomics on numbers: a line are the elements that one free element's
// addresses may name. A warp adds to short lines; a block to long ones.
#include "tern/backends/cuda/kernels/index_put.cuh"

#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/sort.cuh"

namespace tern::cuda_backend {
namespace {

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

/// The lanes that have the same number, which is below 2^bits.
__device__ __forceinline__ unsigned equal_lanes(uint32_t number, int bits) {
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
  return equal;
}

__device__ __forceinline__ unsigned lanes_before() { return (1u << threadIdx.x % 32) - 1; }

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
        const int before = __popc(equal_lanes(slot, bits) & lanes_before()), turn = target < 0 ? -1 : before;
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

// ---- long lines
// -----------------------------------------------------------------------------------------------------------

constexpr uint32_t kLongBlock = 512;  // threads for a long line
constexpr uint32_t kClaims = 2048;    // targets that share one only take more turns
constexpr int64_t kMostLongBytes = 40 << 10;
constexpr int64_t kFewestLongLines = 128;
/// A turn has a number of 32 bits, less those of a thread's, and a tile of kLongBlock addresses needs below
/// 100 turns.
constexpr int64_t kMostLongAddresses = 1 << 24;

/// A block has a line, and takes its addresses in tiles. Threads that want to add to the same target take
/// turns, the first one first, after those of a warp have put their values together: the order of a sum is
/// always the same.
template <class C>
__global__ void __launch_bounds__(kLongBlock) sum_long_lines(Put<1> p, uint32_t size, int bits, C value) {
  TERN_DYNAMIC_SHARED(float4, shared);
  auto* claims = reinterpret_cast<uint32_t*>(shared);  // who comes first
  C* sums = reinterpret_cast<C*>(claims + kClaims);
  for (uint32_t i = threadIdx.x; i < kClaims; i += kLongBlock) claims[i] = UINT32_MAX;
  for (uint32_t i = threadIdx.x; i < size; i += kLongBlock) sums[i] = nothing<C>();
  int64_t base[3];
  p.free.at(blockIdx.x, base);
  struct Entry {
    int64_t index[1];
    C value;
  };
  uint32_t claim = UINT32_MAX - kLongBlock + threadIdx.x;  // smaller in every turn
  read_ahead<4>(
      0u, p.addressed_count, kLongBlock,
      [&](uint32_t first) {
        Entry entry{{}, value};
        if (first + threadIdx.x >= p.addressed_count) return entry;
        int64_t at[3];
        p.addressed.at(first + threadIdx.x, at);
        entry.index[0] = p.dims.index[0][base[2] + at[2]];
        if (p.source) entry.value = load<C>(p.dtype, p.source, base[1] + at[1]);
        return entry;
      },
      [&](uint32_t first, const Entry& entry) {
        const int64_t target =
            first + threadIdx.x < p.addressed_count ? address(p.dims, entry.index, p.fault) : -1;
        const uint32_t slot = target < 0 ? size : static_cast<uint32_t>(target);
        const unsigned equal = equal_lanes(slot, bits);
        bool waits = target >= 0 && (equal & lanes_before()) == 0;
        unsigned others = waits ? equal & (equal - 1) : 0;
        C sum = entry.value;
        while (__ballot_sync(kAllLanes, others != 0) != 0) {
          const int next = others != 0 ? __ffs(static_cast<int>(others)) - 1 : 0;
          const C more = __shfl_sync(kAllLanes, sum, next);
          if (others != 0) sum = WrappingSum()(sum, more);
          others &= others - 1;
        }
        while (__syncthreads_count(waits) != 0) {
          uint32_t* const first_one = claims + slot % kClaims;
          if (waits) atomicMin(first_one, claim);
          __syncthreads();
          if (waits && *first_one == claim) {
            sums[slot] = WrappingSum()(sums[slot], sum);
            waits = false;
          }
          claim -= kLongBlock;
        }
      });
  const auto place = [&](uint32_t target) { return base[0] + target * p.unit; };
  read_ahead<8>(
      threadIdx.x, size, kLongBlock, [&](uint32_t target) { return load<C>(p.dtype, p.out, place(target)); },
      [&](uint32_t target, C old) {
        store<C>(p.dtype, p.out, place(target), WrappingSum()(old, sums[target]));
      });
}

/// What a piece of the free elements writes, whose pointers move by `by`.
Put<1> put_of(const LaunchContext& context, const IndexPutArgs& args, const Geometry<3>& free,
              const int64_t (&by)[3]) {
  Put<1> put{
      args.dtype,       moved(args.out, by[0], args.dtype),      moved(args.source, by[1], args.dtype),
      args.dims,        static_cast<uint32_t>(free.numel),       static_cast<uint32_t>(args.addressed.numel),
      Offsets<3>(free), Offsets<3>(operands<1>(args.addressed)), stream_of(context.stream).fault()};
  put.dims.index[0] += by[2];
  put.count_places();
  return put;
}

template <class C>
void add_short(const LaunchContext& context, const IndexPutArgs& args) {
  const int64_t size = args.dims.size[0], addresses = args.addressed.numel;
  const IndexGeometry& addressed = args.addressed;
  const bool reads_along = addresses >= 32 && addressed.strides[2][addressed.ndim - 1] == 1;
  for_pieces(operands<1>(args.free), [&](const Geometry<3>& free, const int64_t(&by)[3]) {
    const Put<1> put = put_of(context, args, free, by);
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

template <class C>
void add_long(const LaunchContext& context, const IndexPutArgs& args) {
  const int64_t size = args.dims.size[0];
  for_pieces(operands<1>(args.free), [&](const Geometry<3>& free, const int64_t(&by)[3]) {
    start(context, blocks(free.numel), kLongBlock,
          kClaims * sizeof(uint32_t) + static_cast<size_t>(size) * sizeof(C), sum_long_lines<C>,
          put_of(context, args, free, by), static_cast<uint32_t>(size), bits_below(size + 1),
          functors::from_param<C>(args.value));
  });
}

}  // namespace

template <class C>
bool add_lines(const LaunchContext& context, const IndexPutArgs& args) {
  const int64_t size = args.dims.size[0], addresses = args.addressed.numel, lines = args.free.numel;
  const int64_t nbytes = size * int64_t{sizeof(C)};
  const bool shared_index = is_fixed<1>(args.free, args.dims);
  if (size == 0 || addresses <= kFewAddresses || addresses > kMostElements || addresses < size / 4)
    return false;
  if (nbytes <= kMostLineBytes && (!shared_index || lines <= kMostLines)) {
    add_short<C>(context, args);
    return true;
  }
  if (nbytes <= kMostLongBytes && !shared_index && lines >= kFewestLongLines &&
      addresses <= kMostLongAddresses) {
    add_long<C>(context, args);
    return true;
  }
  return false;
}

template bool add_lines<float>(const LaunchContext&, const IndexPutArgs&);
template bool add_lines<double>(const LaunchContext&, const IndexPutArgs&);
template bool add_lines<int64_t>(const LaunchContext&, const IndexPutArgs&);

}  // namespace tern::cuda_backend
