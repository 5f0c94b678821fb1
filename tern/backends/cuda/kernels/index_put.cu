// Elements written by index, in the order of the CPU: addresses are sorted (stably, so that equal ones keep
// their order), and one thread does everything that concerns one element of the target. A few addresses are
// walked by every thread instead, and where the last write counts, the elements of the target name it; sums
// for few targets are in index_put_lines.cu.
#include "tern/backends/cuda/kernels/index_put.cuh"

#include "tern/backends/cuda/kernels/bits.cuh"
#include "tern/backends/cuda/kernels/sort.cuh"

namespace tern::cuda_backend {
namespace {

/// The last value of a run of equal addresses counts.
template <class T>
struct SetElements {
  static constexpr bool kLastCounts = true;
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

/// Element e of `addressed`, or with `all` of free * addressed (number f * addressed_count + a): where it is
/// written, -1 after a report, and what from.
template <int N>
__device__ __forceinline__ int64_t address_of(const Put<N>& p, bool all, uint32_t e, int64_t& from) {
  int64_t base[2 + N] = {}, at[2 + N];
  if (all) p.free.at(e / p.addressed_count, base);
  p.addressed.at(e % p.addressed_count, at);
  for (int j = 0; j < N; ++j) at[2 + j] += base[2 + j];
  const int64_t to = address<N>(p.dims, at + 2, p.fault);
  from = base[1] + at[1];
  return to < 0 ? to : base[0] + to;
}

/// Elements of the target keep the smallest claim, which is the last element's.
__device__ __forceinline__ uint32_t claim_of(uint32_t e) { return UINT32_MAX - 1 - e; }

template <int N>
__global__ void claim_elements(Put<N> p, uint32_t* claims, uint32_t count) {
  const uint32_t e = blockIdx.x * kBlock + threadIdx.x;
  if (e >= count) return;
  int64_t from;
  const int64_t to = address_of(p, /*all=*/true, e, from);
  if (to >= 0) atomicMin(claims + to, claim_of(e));
}

template <int N, class T>
__global__ void put_claimed(Put<N> p, const uint32_t* claims, uint32_t count, SetElements<T> mode) {
  const uint32_t e = blockIdx.x * kBlock + threadIdx.x;
  if (e >= count) return;
  int64_t from;
  const int64_t to = address_of(p, /*all=*/true, e, from);
  if (to < 0 || claims[to] != claim_of(e)) return;
  static_cast<T*>(p.out)[to] = mode.read(p.source, p.dtype, from);
}

/// Addresses below `last`.
template <int N, class T>
void put_last(const LaunchContext& context, const Put<N>& put, uint64_t last, const SetElements<T>& mode) {
  const uint32_t count = put.addressed_count * put.free_count;
  const Storage scratch = workspace(context, last * sizeof(uint32_t));
  auto* claims = static_cast<uint32_t*>(scratch->data());
  TERN_CUDA_CALL(cudaMemsetAsync(claims, 0xff, last * sizeof(uint32_t), stream_of(context.stream).handle()));
  start(context, blocks(ceil_div(count, kBlock)), kBlock, 0, claim_elements<N>, put, claims, count);
  start(context, blocks(ceil_div(count, kBlock)), kBlock, 0, put_claimed<N, T>, put,
        static_cast<const uint32_t*>(claims), count, mode);
}

template <int N, class Key>
__global__ void make_addresses(Put<N> p, bool all, Key last, Key* keys, uint32_t* elements, uint32_t count) {
  const uint32_t e = blockIdx.x * kBlock + threadIdx.x;
  if (e >= count) return;
  int64_t from;
  const int64_t to = address_of(p, all, e, from);
  keys[e] = to < 0 ? last : static_cast<Key>(to);
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
  if constexpr (Mode::kLastCounts) {
    constexpr uint64_t kMostClaims = 4;  // for each element
    if (all && last <= kMostClaims * put.addressed_count * put.free_count)
      return put_last(context, put, last, mode);
  }
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

}  // namespace

void index_put(const LaunchContext& context, const IndexPutArgs& args) {
  visit_count(args.dims, [&]<int N>() {
    if (args.mode != IndexPutMode::Set)
      visit_compute(args.dtype, [&]<class C>() {
        const C value = functors::from_param<C>(args.value);
        if constexpr (N == 1) {
          const auto joined = [&]<template <class> class Functor>() {
            run<N>(context, args, JoinElements<C, Functor<C>>{value, Functor<C>(nullptr)});
          };
          if (args.mode == IndexPutMode::Prod) return joined.template operator()<functors::Mul>();
          if (args.mode == IndexPutMode::Max) return joined.template operator()<functors::Maximum>();
          if (args.mode == IndexPutMode::Min) return joined.template operator()<functors::Minimum>();
          if (add_lines<C>(context, args)) return;
        }
        run<N>(context, args, AddElements<C>{value});
      });
    else
      visit_bits(args.dtype, [&]<class T>() {
        const uint64_t bits = args.source ? 0 : bits_of(args.dtype, args.value);
        run<N>(context, args, SetElements<T>{static_cast<T>(bits)});
      });
  });
}

}  // namespace tern::cuda_backend
