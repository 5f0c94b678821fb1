// Elements read by index, and the search in sorted rows. Writing is in index_put.cu.
#include "tern/backends/cuda/kernels/index.cuh"

namespace tern::cuda_backend {
namespace {

template <class T, int N>
__global__ void get(T* out, const T* in, IndexedDims dims, uint32_t n, Offsets<2 + N> offsets, Fault* fault) {
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= n) return;
  int64_t at[2 + N];
  offsets.at(i, at);
  const int64_t from = address<N>(dims, at + 2, fault);
  out[at[0]] = from < 0 ? T(0) : in[at[1] + from];
}

/// The order of torch.sort: NaN above everything.
template <class C>
__device__ __forceinline__ bool below(C a, C b) {
  return a < b || (b != b && a == a);
}

template <class C>
__global__ void search(SearchSortedArgs args) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= args.rows * args.row_values) return;
  const int64_t row = i / args.row_values * args.sorted_row_stride;
  const C value = load<C>(args.dtype, args.values, i);
  int64_t low = 0, high = args.length;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    const C x = load<C>(args.dtype, args.sorted, row + middle);
    if (args.right ? !below(value, x) : below(x, value))
      low = middle + 1;
    else
      high = middle;
  }
  args.out[i] = low;
}

}  // namespace

void index_get(const LaunchContext& context, const IndexGetArgs& args) {
  visit_count(args.dims, [&]<int N>() {
    visit_bits(args.dtype, [&]<class T>() {
      for_pieces(operands<N>(args.geometry), [&](const Geometry<2 + N>& g, const int64_t(&by)[2 + N]) {
        IndexedDims dims = args.dims;
        for (int j = 0; j < std::min(N, dims.count); ++j) dims.index[j] += by[2 + j];
        start(context, blocks(ceil_div(g.numel, kBlock)), kBlock, 0, get<T, N>,
              static_cast<T*>(args.out) + by[0], static_cast<const T*>(args.in) + by[1], dims,
              static_cast<uint32_t>(g.numel), Offsets<2 + N>(g), stream_of(context.stream).fault());
      });
    });
  });
}

void searchsorted(const LaunchContext& context, const SearchSortedArgs& args) {
  visit_compute(args.dtype, [&]<class C>() {
    start(context, blocks(ceil_div(args.rows * args.row_values, kBlock)), kBlock, 0, search<C>, args);
  });
}

}  // namespace tern::cuda_backend
