// Elements written by index, without atomics: addresses are sorted (stably, so that equal ones keep their
// order), and one thread does everything that concerns one element of the target, in the order of the CPU. A
// few addresses are walked by every thread instead.
#include "tern/backends/cuda/kernels/bits.cuh"
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
  __device__ void take(const void* source, DType, int64_t i) {
    current = source ? static_cast<const T*>(source)[i] : value;
    any = true;
  }
  __device__ void finish(void* out, DType, int64_t i) const {
    if (any) static_cast<T*>(out)[i] = current;
  }
};

/// Sums in C: float, double or int64.
template <class C>
struct AddElements {
  C value;
  C sum = C(0);
  __device__ void take(const void* source, DType dtype, int64_t i) {
    const C x = source ? load<C>(dtype, source, i) : value;
    if constexpr (std::is_integral_v<C>)
      sum = static_cast<C>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(x));
    else
      sum += x;
  }
  __device__ void finish(void* out, DType dtype, int64_t i) const {
    const C old = load<C>(dtype, out, i);
    if constexpr (std::is_integral_v<C>)
      store<C>(dtype, out, i, static_cast<C>(static_cast<uint64_t>(old) + static_cast<uint64_t>(sum)));
    else
      store<C>(dtype, out, i, old + sum);
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
    one.take(p.source, p.dtype, base[1] + at[1]);
    one.finish(p.out, p.dtype, base[0] + to);
  }
}

/// The address of element e: of `addressed`, or with `all` of free * addressed (number f * addressed_count +
/// a).
template <int N>
__global__ void make_addresses(Put<N> p, bool all, uint64_t last, uint64_t* keys, int64_t* elements,
                               int64_t count) {
  const int64_t e = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (e >= count) return;
  int64_t base[2 + N] = {}, at[2 + N];
  if (all) p.free.at(static_cast<uint32_t>(e / p.addressed_count), base);
  p.addressed.at(static_cast<uint32_t>(e % p.addressed_count), at);
  for (int j = 0; j < N; ++j) at[2 + j] += base[2 + j];
  const int64_t to = address<N>(p.dims, at + 2, p.fault);
  keys[e] = to < 0 ? last : static_cast<uint64_t>(base[0] + to);
  elements[e] = e;
}

/// A thread for each sorted address (and, unless `all`, each free element): the first of a run does the whole
/// run.
template <int N, class Mode>
__global__ void put_runs(Put<N> p, bool all, uint64_t last, const uint64_t* keys, const int64_t* elements,
                         int64_t count, Mode mode) {
  const int64_t t = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  const int64_t s = all ? t : t / p.free_count;
  if (s >= count) return;
  const uint64_t key = keys[s];
  if (key == last || (s > 0 && keys[s - 1] == key)) return;
  int64_t base[2 + N] = {};
  if (!all) p.free.at(static_cast<uint32_t>(t % p.free_count), base);
  for (int64_t i = s; i < count && keys[i] == key; ++i) {
    const int64_t e = elements[i];
    int64_t from[2 + N] = {}, at[2 + N];
    if (all) p.free.at(static_cast<uint32_t>(e / p.addressed_count), from);
    p.addressed.at(static_cast<uint32_t>(e % p.addressed_count), at);
    mode.take(p.source, p.dtype, (all ? from[1] : base[1]) + at[1]);
  }
  mode.finish(p.out, p.dtype, base[0] + static_cast<int64_t>(key));
}

template <int N>
bool is_fixed(const IndexGeometry& free, const IndexedDims& dims) {
  for (int j = 0; j < std::min(N, dims.count); ++j)
    for (int d = 0; d < free.ndim; ++d)
      if (free.strides[2 + j][d] != 0 && free.sizes[d] > 1) return false;
  return true;
}

constexpr int64_t kFewAddresses = 16;

/// The elements of two pieces of the geometries.
template <int N, class Mode>
void put_piece(const LaunchContext& context, const Put<N>& put, const Geometry<2 + N>& free, bool all,
               const Mode& mode) {
  const int64_t addresses = put.addressed_count;
  if (addresses <= kFewAddresses)
    return start(context, blocks(ceil_div(free.numel, kBlock)), kBlock, 0, put_walking<N, Mode>, put, mode);
  const int64_t count = addresses * (all ? free.numel : 1);
  uint64_t last = 1;
  for (int j = 0; j < std::min(N, put.dims.count); ++j)
    last += static_cast<uint64_t>((put.dims.size[j] - 1) * put.dims.stride[j]);
  if (all)
    for (int d = 0; d < free.ndim; ++d)
      last += static_cast<uint64_t>((free.sizes[d] - 1) * free.strides[0][d]);
  const auto nbytes = static_cast<size_t>(count) * 8;
  const Storage a = workspace(context, nbytes), b = workspace(context, nbytes),
                c = workspace(context, nbytes), d = workspace(context, nbytes);
  auto *keys = static_cast<uint64_t*>(a->data()), *sorted_keys = static_cast<uint64_t*>(b->data());
  auto *elements = static_cast<int64_t*>(c->data()), *sorted = static_cast<int64_t*>(d->data());
  start(context, blocks(ceil_div(count, kBlock)), kBlock, 0, make_addresses<N>, put, all, last, keys,
        elements, count);
  sort_pairs(context, keys, sorted_keys, elements, sorted, count, bits_below(static_cast<int64_t>(last) + 1));
  start(context, blocks(ceil_div(all ? count : count * free.numel, kBlock)), kBlock, 0, put_runs<N, Mode>,
        put, all, last, static_cast<const uint64_t*>(sorted_keys), static_cast<const int64_t*>(sorted), count,
        mode);
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

}  // namespace

void index_put(const LaunchContext& context, const IndexPutArgs& args) {
  visit_count(args.dims, [&]<int N>() {
    if (args.mode == IndexPutMode::Add)
      visit_compute(args.dtype, [&]<class C>() {
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
