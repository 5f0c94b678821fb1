// Random choices: permutations by sorting keys, multinomial samples. Plain draws are in random.cu.
#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/sort.cuh"
#include "tern/kernels/random.h"

namespace tern::cuda_backend {
namespace {

__global__ void make_keys(PermutationArgs args, uint64_t* keys, int64_t* indices) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= args.count) return;
  const PhiloxState start = start_of(args);
  const auto w = philox(start.seed, start.position + static_cast<uint64_t>(i) / 2);
  keys[i] = i % 2 == 0 ? uint64_t{w[0]} << 32 | w[1] : uint64_t{w[2]} << 32 | w[3];
  indices[i] = i;
}

__device__ double uniform_at(const MultinomialArgs& args, int64_t number) {
  const PhiloxState start = start_of(args);
  const auto w = philox(start.seed, start.position + static_cast<uint64_t>(number) / 2);
  return number % 2 == 0 ? uniform_double(w[0], w[1]) : uniform_double(w[2], w[3]);
}

__device__ bool is_weight(double w) { return w >= 0 && w < __longlong_as_double(0x7ff0000000000000); }

/// A thread for each row: running sums in the order of the CPU's, so that samples are the same, and what is
/// wrong with the weights. `last` is the last category that can be drawn.
__global__ void add_up(MultinomialArgs args, double* sums, int64_t* last, int* faults) {
  const int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= args.rows) return;
  const double* weights = args.weights + row * args.categories;
  double total = 0;
  int64_t positive = 0, end = 0;
  WeightFault fault = WeightFault::None;
  constexpr int kAhead = 16;  // weights that are read before the first is added
  for (int64_t first = 0; first < args.categories && fault == WeightFault::None; first += kAhead) {
    double ahead[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) ahead[k] = first + k < args.categories ? weights[first + k] : 0;
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (first + k >= args.categories) break;
      const double w = ahead[k];
      if (!is_weight(w)) {
        fault = WeightFault::NotFinite;
        break;
      }
      if (w > 0) {
        ++positive;
        end = first + k;
      }
      total += w;
      if (sums) sums[row * args.categories + first + k] = total;
    }
  }
  if (fault == WeightFault::None) {
    if (positive == 0 || (args.replacement && total == 0))
      fault = WeightFault::Zero;
    else if (args.replacement && !is_weight(total))
      fault = WeightFault::NotFinite;
    else if (!args.replacement && positive < args.samples)
      fault = WeightFault::TooFew;
  }
  last[row] = end;
  faults[row] = static_cast<int>(fault);
}

/// By one block.
__global__ void __launch_bounds__(kBlock) first_fault(MultinomialArgs args, const int* faults) {
  int64_t first = args.rows;
  for (int64_t row = threadIdx.x; row < args.rows && first == args.rows; row += kBlock)
    if (faults[row] != 0) first = row;
  first = block_reduce(first, Smaller());
  if (threadIdx.x == 0) *args.fault = first < args.rows ? faults[first] : 0;
}

__global__ void look_up(MultinomialArgs args, const double* sums, const int64_t* last) {
  const int64_t s = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (s >= args.rows * args.samples) return;
  const int64_t row = s / args.samples;
  const double* mine = sums + row * args.categories;
  const double target = uniform_at(args, s) * mine[args.categories - 1];
  const int64_t place = first_place(args.categories, [&](int64_t at) { return mine[at] > target; });
  args.out[s] = place < last[row] ? place : last[row];
}

/// Waiting times as keys: numbers that are not negative order like their bits.
__global__ void make_waits(MultinomialArgs args, uint64_t* keys, int64_t* elements) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= args.rows * args.categories) return;
  const double weight = args.weights[i];
  const double wait = -::log(1.0 - uniform_at(args, i));
  const double time = weight > 0 ? wait / weight : __longlong_as_double(0x7ff0000000000000);
  keys[i] = static_cast<uint64_t>(__double_as_longlong(time + 0.0));
  elements[i] = i;
}

__global__ void rows_of(const int64_t* elements, uint64_t* rows, int64_t count, int64_t categories) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i < count) rows[i] = static_cast<uint64_t>(elements[i] / categories);
}

__global__ void take_first(MultinomialArgs args, const int64_t* sorted) {
  const int64_t s = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (s >= args.rows * args.samples) return;
  const int64_t row = s / args.samples;
  args.out[s] = sorted[row * args.categories + s % args.samples] % args.categories;
}

}  // namespace

void permutation(const LaunchContext& context, const PermutationArgs& args) {
  if (args.count == 0) return;
  const auto nbytes = static_cast<size_t>(args.count) * 8;
  const Storage a = workspace(context, nbytes), b = workspace(context, nbytes),
                c = workspace(context, nbytes);
  auto* keys = static_cast<uint64_t*>(a->data());
  auto* indices = static_cast<int64_t*>(c->data());
  start(context, blocks(ceil_div(args.count, kBlock)), kBlock, 0, make_keys, args, keys, indices);
  sort_pairs(context, keys, static_cast<uint64_t*>(b->data()), indices, args.out, args.count, 64);
}

void multinomial(const LaunchContext& context, const MultinomialArgs& args) {
  const int64_t count = args.rows * args.categories;
  if (args.rows == 0 || args.samples == 0 || count == 0) {
    TERN_CUDA_CALL(cudaMemsetAsync(args.fault, 0, sizeof *args.fault, stream_of(context.stream).handle()));
    return;
  }
  const Storage lasts = workspace(context, static_cast<size_t>(args.rows) * 8);
  const Storage faults = workspace(context, static_cast<size_t>(args.rows) * sizeof(int));
  const Storage a = workspace(context, static_cast<size_t>(count) * 8);
  auto* last = static_cast<int64_t*>(lasts->data());
  auto* fault = static_cast<int*>(faults->data());
  start(context, blocks(ceil_div(args.rows, 32)), 32, 0, add_up, args,
        args.replacement ? static_cast<double*>(a->data()) : nullptr, last, fault);
  start(context, 1, kBlock, 0, first_fault, args, static_cast<const int*>(fault));
  const unsigned samples = blocks(ceil_div(args.rows * args.samples, kBlock));
  if (args.replacement)
    return start(context, samples, kBlock, 0, look_up, args, static_cast<const double*>(a->data()),
                 static_cast<const int64_t*>(last));
  const Storage b = workspace(context, static_cast<size_t>(count) * 8),
                c = workspace(context, static_cast<size_t>(count) * 8),
                d = workspace(context, static_cast<size_t>(count) * 8);
  auto *keys = static_cast<uint64_t*>(a->data()), *sorted_keys = static_cast<uint64_t*>(b->data());
  auto *elements = static_cast<int64_t*>(c->data()), *sorted = static_cast<int64_t*>(d->data());
  const unsigned grid = blocks(ceil_div(count, kBlock));
  start(context, grid, kBlock, 0, make_waits, args, keys, elements);
  sort_pairs(context, keys, sorted_keys, elements, sorted, count, 64);
  if (args.rows > 1) {
    start(context, grid, kBlock, 0, rows_of, static_cast<const int64_t*>(sorted), keys, count,
          args.categories);
    sort_pairs(context, keys, sorted_keys, sorted, elements, count, bits_below(args.rows));
    std::swap(sorted, elements);
  }
  start(context, samples, kBlock, 0, take_first, args, static_cast<const int64_t*>(sorted));
}

}  // namespace tern::cuda_backend
