// Distances between the rows of matrices, and their gradient. Argument structs are in
// tern/kernels/distance.h.
#include "tern/kernels/distance.h"

#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/kernels/distance_terms.h"
#include "tern/kernels/real_types.h"

namespace tern::cuda_backend {
namespace {

constexpr int kDistanceTile = 32;   // rows of a and of b whose distances a block finds
constexpr int kDistanceStep = 16;   // coordinates that it reads at a time
constexpr int kDistanceSide = 16;   // threads along each side of the tile; each has four of the distances
constexpr int kSlopesOfBlock = 32;  // gradients that a block sums
constexpr int kSlopeShares = 8;     // threads that share one of these sums

struct DevicePowers {
  template <class C>
  TERN_FN static C of(C x, C exponent) {
    return static_cast<C>(::pow(x, exponent));
  }
};

/// Coordinates [first, first + kDistanceStep) of kDistanceTile rows, turned; those outside are 0.
template <class C>
__device__ void load_turned(const C* rows, int64_t row, int64_t count, int64_t size, int64_t first,
                            C (&to)[kDistanceStep][kDistanceTile + 1]) {
  for (int i = threadIdx.x; i < kDistanceTile * kDistanceStep; i += kDistanceSide * kDistanceSide) {
    const int r = i / kDistanceStep, f = i % kDistanceStep;
    const bool inside = row + r < count && first + f < size;
    to[f][r] = inside ? rows[(row + r) * size + first + f] : C(0);
  }
}

template <class C, class Terms>
__global__ void __launch_bounds__(kDistanceSide* kDistanceSide)
    distances(DistanceArgs args, Terms terms, int64_t row_tiles, int64_t other_tiles) {
  __shared__ C a[kDistanceStep][kDistanceTile + 1], b[kDistanceStep][kDistanceTile + 1];
  const DistanceProblem& p = args.problem;
  const int64_t tile = blockIdx.x, n = tile / (row_tiles * other_tiles);
  const int64_t row = tile / other_tiles % row_tiles * kDistanceTile,
                other = tile % other_tiles * kDistanceTile;
  const int x = threadIdx.x % kDistanceSide, y = threadIdx.x / kDistanceSide;
  C sums[2][2] = {};
  for (int64_t first = 0; first < p.size; first += kDistanceStep) {
    load_turned(static_cast<const C*>(p.a) + n * p.rows * p.size, row, p.rows, p.size, first, a);
    load_turned(static_cast<const C*>(p.b) + n * p.others * p.size, other, p.others, p.size, first, b);
    __syncthreads();
#pragma unroll
    for (int f = 0; f < kDistanceStep; ++f)
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j)
          sums[i][j] = terms.add(sums[i][j], a[f][y + i * kDistanceSide] - b[f][x + j * kDistanceSide]);
    __syncthreads();
  }
  C* output = static_cast<C*>(args.output) + n * p.rows * p.others;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      const int64_t r = row + y + i * kDistanceSide, o = other + x + j * kDistanceSide;
      if (r < p.rows && o < p.others) output[r * p.others + o] = terms.distance(sums[i][j]);
    }
}

/// kSlopesOfBlock neighbouring gradients of all: each is the sum of what kSlopeShares threads find, in their
/// order.
template <class C, class Terms>
__global__ void __launch_bounds__(kSlopesOfBlock* kSlopeShares)
    distance_slopes(DistanceBackwardArgs args, Terms terms) {
  __shared__ C shares[kSlopeShares][kSlopesOfBlock];
  const DistanceProblem& p = args.problem;
  const int result = threadIdx.x % kSlopesOfBlock, share = threadIdx.x / kSlopesOfBlock;
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kSlopesOfBlock + result;
  C sum = C(0);
  if (k < p.batch * p.rows * p.size) {
    const int64_t row = k / p.size, f = k % p.size, n = row / p.rows;
    const C x = static_cast<const C*>(p.a)[k];
    const C* others = static_cast<const C*>(p.b) + n * p.others * p.size + f;
    const C* distance = static_cast<const C*>(args.output) + row * p.others;
    const C* grad = static_cast<const C*>(args.grad_output) + row * p.others;
    for (int64_t j = share; j < p.others; j += kSlopeShares)
      sum += terms.slope(x - others[j * p.size], distance[j]) * grad[j];
  }
  shares[share][result] = sum;
  __syncthreads();
  if (share != 0 || k >= p.batch * p.rows * p.size) return;
  for (int s = 1; s < kSlopeShares; ++s) sum += shares[s][result];
  static_cast<C*>(args.grad_a)[k] = sum;
}

}  // namespace

void distance(const LaunchContext& context, const DistanceArgs& args) {
  const DistanceProblem& p = args.problem;
  const int64_t row_tiles = ceil_div(p.rows, kDistanceTile), other_tiles = ceil_div(p.others, kDistanceTile);
  visit_real(p.dtype, [&]<class C>() {
    distance_terms::visit<C, DevicePowers>(p.p, [&]<class Terms>(const Terms& terms) {
      start(context, blocks(p.batch * row_tiles * other_tiles), kDistanceSide * kDistanceSide, 0,
            distances<C, Terms>, args, terms, row_tiles, other_tiles);
    });
  });
}

void distance_backward(const LaunchContext& context, const DistanceBackwardArgs& args) {
  const DistanceProblem& p = args.problem;
  visit_real(p.dtype, [&]<class C>() {
    distance_terms::visit<C, DevicePowers>(p.p, [&]<class Terms>(const Terms& terms) {
      start(context, blocks(ceil_div(p.batch * p.rows * p.size, kSlopesOfBlock)),
            kSlopesOfBlock * kSlopeShares, 0, distance_slopes<C, Terms>, args, terms);
    });
  });
}

}  // namespace tern::cuda_backend
