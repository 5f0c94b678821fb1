// Sums and means of the rows of a table that bags of numbers name: a block for some columns of a bag.
#include "tern/backends/cuda/kernels/index.cuh"

namespace tern::cuda_backend {
namespace {

constexpr int kBagColumns = 32, kBagRows = kBlock / kBagColumns;  // that a block adds at a time

template <class T>
__global__ void __launch_bounds__(kBlock) sum_bags(EmbeddingBagArgs args, int64_t tiles, Fault* fault) {
  using C = Compute<T>;
  __shared__ C sums[kBagRows][kBagColumns];
  __shared__ int64_t counts[kBagRows];
  const int64_t bag = blockIdx.x / tiles, column = blockIdx.x % tiles * kBagColumns + threadIdx.x;
  if (threadIdx.x == 0 && threadIdx.y == 0 && !args.is_in_order(bag))
    report(fault, FaultKind::Offset, args.dims.op, args.begins[bag], args.length, bag);
  const int64_t end = args.bag_begin(bag + 1);
  C sum = 0;
  int64_t count = 0;
  if (column < args.width) {
#pragma unroll 4
    for (int64_t place = args.bag_begin(bag) + threadIdx.y; place < end; place += kBagRows) {
      const int64_t number[] = {args.dims.index[0][place]};
      const int64_t row = address(args.dims, number, fault);
      if (row < 0 || number[0] == args.padding) continue;
      const C x = widen(static_cast<const T*>(args.table)[row + column * args.column_stride]);
      sum += args.factors == nullptr ? x : x * widen(static_cast<const T*>(args.factors)[place]);
      ++count;
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  if (threadIdx.x == 0) counts[threadIdx.y] = count;
  __syncthreads();
  if (threadIdx.y != 0 || column >= args.width) return;
  for (int y = 1; y < kBagRows; ++y) {
    sum += sums[y][threadIdx.x];
    count += counts[y];
  }
  if (args.means && count > 0) sum /= static_cast<C>(count);
  static_cast<T*>(args.out)[bag * args.width + column] = narrow<T>(sum);
}

}  // namespace

void embedding_bag(const LaunchContext& context, const EmbeddingBagArgs& args) {
  const int64_t tiles = ceil_div(args.width, kBagColumns);
  visit_floating(args.dtype, [&]<class T>() {
    start(context, blocks(args.bags * tiles), dim3(kBagColumns, kBagRows), 0, sum_bags<T>, args, tiles,
          stream_of(context.stream).fault());
  });
}

}  // namespace tern::cuda_backend
