// Elements read by index, and the search in sorted rows. Writing is in index_put.cu.
#include "tern/backends/cuda/kernels/index.cuh"

namespace tern::cuda_backend {
namespace {

/// Elements of a thread, kBlock apart: it reads all indices, then all elements, then writes.
template <int N>
inline constexpr int kGetItems = N == 1 ? 4 : 1;

template <class T, int N>
__global__ void get(T* out, const T* in, IndexedDims dims, uint32_t n, Offsets<2 + N> offsets, Fault* fault) {
  const uint32_t first = blockIdx.x * (kBlock * kGetItems<N>)+threadIdx.x;
  int64_t at[kGetItems<N>][2 + N], indices[kGetItems<N>][N];
  T values[kGetItems<N>] = {};
#pragma unroll
  for (int k = 0; k < kGetItems<N>; ++k) {
    if (first + k * kBlock >= n) break;
    offsets.at(first + k * kBlock, at[k]);
    read_indices(dims, at[k] + 2, indices[k]);
  }
#pragma unroll
  for (int k = 0; k < kGetItems<N>; ++k) {
    if (first + k * kBlock >= n) break;
    const int64_t from = address(dims, indices[k], fault);
    if (from >= 0) values[k] = in[at[k][1] + from];
  }
#pragma unroll
  for (int k = 0; k < kGetItems<N>; ++k)
    if (first + k * kBlock < n) out[at[k][0]] = values[k];
}

template <class T, int N>
void get_all(const LaunchContext& context, const IndexGetArgs& args) {
  for_pieces(operands<N>(args.geometry), [&](const Geometry<2 + N>& g, const int64_t(&by)[2 + N]) {
    IndexedDims dims = args.dims;
    for (int j = 0; j < std::min(N, dims.count); ++j) dims.index[j] += by[2 + j];
    start(context, blocks(ceil_div(g.numel, kBlock * kGetItems<N>)), kBlock, 0, get<T, N>,
          static_cast<T*>(args.out) + by[0], static_cast<const T*>(args.in) + by[1], dims,
          static_cast<uint32_t>(g.numel), Offsets<2 + N>(g), stream_of(context.stream).fault());
  });
}

/// Neighbouring elements become one of 16 bytes; false where an index does not name whole rows of such.
bool join_elements(IndexGetArgs& args) {
  const auto n = static_cast<int64_t>(16 / itemsize(args.dtype));
  IndexGeometry& g = args.geometry;
  const int row = g.ndim - 1;
  bool joins = g.strides[0][row] == 1 && g.strides[1][row] == 1 && g.sizes[row] % n == 0 &&
               is_aligned(args.out, 16) && is_aligned(args.in, 16);
  for (int d = 0; d < row; ++d) joins = joins && g.strides[0][d] % n == 0 && g.strides[1][d] % n == 0;
  for (int j = 0; j < args.dims.count; ++j)
    joins = joins && g.strides[2 + j][row] == 0 && args.dims.stride[j] % n == 0;
  if (!joins) return false;
  g.numel /= n;
  g.sizes[row] /= n;
  for (int d = 0; d < row; ++d)
    for (int i : {0, 1}) g.strides[i][d] /= n;
  for (int j = 0; j < args.dims.count; ++j) args.dims.stride[j] /= n;
  return true;
}

template <class C>
__global__ void search(SearchSortedArgs args) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= args.rows * args.row_values) return;
  const int64_t row = i / args.row_values * args.sorted_row_stride;
  const C value = load<C>(args.dtype, args.values, i);
  args.out[i] = first_place(args.length, [&](int64_t at) {
    const C x = load<C>(args.dtype, args.sorted, row + at);
    return args.right ? x > value : x >= value;
  });
}

}  // namespace

void index_get(const LaunchContext& context, const IndexGetArgs& given) {
  IndexGetArgs args = given;
  const bool joined = join_elements(args);
  visit_count(args.dims, [&]<int N>() {
    if (joined) return get_all<Pack<uint32_t, 4>, N>(context, args);
    visit_bits(args.dtype, [&]<class T>() { get_all<T, N>(context, args); });
  });
}

void searchsorted(const LaunchContext& context, const SearchSortedArgs& args) {
  visit_compute(args.dtype, [&]<class C>() {
    start(context, blocks(ceil_div(args.rows * args.row_values, kBlock)), kBlock, 0, search<C>, args);
  });
}

}  // namespace tern::cuda_backend
