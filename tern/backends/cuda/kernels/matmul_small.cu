// Products of small float32 matrices, whatever their strides, and both products of a fully connected layer's
// gradients at once: a library takes as long for them as for ten times larger ones, since its tiles leave
// most of the GPU idle. Which sizes are taken: matmul_suits_small().
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/matmul.h"

namespace tern::cuda_backend {
namespace {

constexpr int kTile = 16;               // rows and columns of the result that a block computes
constexpr int kGroups = 4;              // of threads that share k between them
constexpr int kStep = kGroups * kTile;  // of k that is in shared memory at once
constexpr int kGroup = kBlock / kGroups;
constexpr int kRow = kTile + 2;  // floats from k to k in shared memory: pairs stay aligned, banks differ
constexpr int kReads = kTile * kStep / kBlock;

/// out = a @ b + addend as in MatmulArgs, in float32 and without a batch.
struct Product {
  const float *a, *b;
  const float* relu_output;  ///< see LinearBackwardArgs, for a; or null
  const float* addend;       ///< or null
  float* out;                ///< null without columns: the sums alone
  float* row_sums;           ///< [m], of a; or null
  int64_t a_row, a_col, b_row, b_col, relu_row, relu_col, addend_row, addend_col, out_row;  ///< strides
  float alpha, beta;
  bool relu;
  int m, n, k;

  int64_t tiles_across() const { return std::max<int64_t>(1, ceil_div(n, kTile)); }
  int64_t tiles() const { return ceil_div(m, kTile) * tiles_across(); }
};

/// Where a thread's elements of a tile of kTile by kStep lie: element j along the tile's side and along k.
/// Neighbouring threads have what lies side by side.
struct Places {
  bool along_k;
  __device__ __forceinline__ explicit Places(int64_t stride_of_k) : along_k(stride_of_k == 1) {}
  __device__ __forceinline__ int side(int j) const {
    return along_k ? static_cast<int>(threadIdx.x) / kStep + j * (kBlock / kStep)
                   : static_cast<int>(threadIdx.x) % kTile;
  }
  __device__ __forceinline__ int k(int j) const {
    return along_k ? static_cast<int>(threadIdx.x) % kStep
                   : static_cast<int>(threadIdx.x) / kTile + j * (kBlock / kTile);
  }
};

__device__ void multiply_tile(const Product p, int tile, int tiles_across) {
  alignas(16) __shared__ float shared_a[kStep * kRow], shared_b[kStep * kRow];
  const int first_row = tile / tiles_across * kTile, first_col = tile % tiles_across * kTile;
  const int group = static_cast<int>(threadIdx.x) / kGroup, in_group = static_cast<int>(threadIdx.x) % kGroup;
  const int y = in_group / (kTile / 2) * 2, x = in_group % (kTile / 2) * 2;  // of this thread's four results
  const Places a_places(p.a_col), b_places(p.b_row);
  float a[kReads], b[kReads], relu[kReads];
  const auto read = [&](int begin) {
#pragma unroll
    for (int j = 0; j < kReads; ++j) {
      const int64_t row = first_row + a_places.side(j), k = begin + a_places.k(j);
      const bool there = row < p.m && k < p.k;
      a[j] = there ? p.a[row * p.a_row + k * p.a_col] : 0.0f;
      relu[j] = there && p.relu_output ? p.relu_output[row * p.relu_row + k * p.relu_col] : 1.0f;
    }
#pragma unroll
    for (int j = 0; j < kReads; ++j) {
      const int64_t col = first_col + b_places.side(j), k = begin + b_places.k(j);
      b[j] = col < p.n && k < p.k ? p.b[k * p.b_row + col * p.b_col] : 0.0f;
    }
  };
  float sums[6] = {};  // four results, and the sums of two rows
  read(0);
  for (int begin = 0; begin < p.k; begin += kStep) {
    __syncthreads();  // the step before may still be read
#pragma unroll
    for (int j = 0; j < kReads; ++j) {
      shared_a[a_places.k(j) * kRow + a_places.side(j)] = relu[j] <= 0 ? 0.0f : a[j];
      shared_b[b_places.k(j) * kRow + b_places.side(j)] = b[j];
    }
    __syncthreads();
    if (begin + kStep < p.k) read(begin + kStep);  // while this step is computed
#pragma unroll
    for (int i = 0; i < kTile; ++i) {
      const int k = group * kTile + i;
      const float2 rows = *reinterpret_cast<const float2*>(shared_a + k * kRow + y);
      const float2 cols = *reinterpret_cast<const float2*>(shared_b + k * kRow + x);
      sums[0] += rows.x * cols.x;
      sums[1] += rows.x * cols.y;
      sums[2] += rows.y * cols.x;
      sums[3] += rows.y * cols.y;
      sums[4] += rows.x;
      sums[5] += rows.y;
    }
  }
  // The first group adds what the others have, in their order.
  static_assert((kGroups - 1) * kGroup * 6 <= kStep * kRow);
  __syncthreads();
#pragma unroll
  for (int s = 0; s < 6; ++s)
    if (group > 0) shared_a[((group - 1) * 6 + s) * kGroup + in_group] = sums[s];
  __syncthreads();
  if (group > 0) return;
#pragma unroll
  for (int s = 0; s < 6; ++s)
    for (int g = 0; g + 1 < kGroups; ++g) sums[s] += shared_a[(g * 6 + s) * kGroup + in_group];
#pragma unroll
  for (int s = 0; s < 4; ++s) {
    const int64_t row = first_row + y + s / 2, col = first_col + x + s % 2;
    if (row >= p.m || col >= p.n) continue;
    float value = p.alpha * sums[s];
    if (p.addend) value += p.beta * p.addend[row * p.addend_row + col * p.addend_col];
    p.out[row * p.out_row + col] = p.relu && value < 0 ? 0.0f : value;
  }
#pragma unroll
  for (int s = 0; s < 2; ++s)
    if (p.row_sums != nullptr && first_col + x == 0 && first_row + y + s < p.m)
      p.row_sums[first_row + y + s] = sums[4 + s];
}

struct Products {
  Product product[2];
  int first_tile[2], tiles_across[2];
};

/// Blocks below the second product's first tile compute the first product, the others the second one.
__global__ void __launch_bounds__(kBlock) multiply(const Products products) {
  const int block = static_cast<int>(blockIdx.x), i = block >= products.first_tile[1] ? 1 : 0;
  multiply_tile(products.product[i], block - products.first_tile[i], products.tiles_across[i]);
}

Product product_of(const MatmulArgs& args) {
  return {.a = static_cast<const float*>(args.a),
          .b = static_cast<const float*>(args.b),
          .relu_output = nullptr,
          .addend = static_cast<const float*>(args.addend),
          .out = static_cast<float*>(args.out),
          .row_sums = nullptr,
          .a_row = args.a_row_stride,
          .a_col = args.a_col_stride,
          .b_row = args.b_row_stride,
          .b_col = args.b_col_stride,
          .relu_row = 0,
          .relu_col = 0,
          .addend_row = args.addend_row_stride,
          .addend_col = args.addend_col_stride,
          .out_row = args.out_row_stride,
          .alpha = static_cast<float>(args.alpha),
          .beta = static_cast<float>(args.beta),
          .relu = args.epilogue == MatmulEpilogue::Relu,
          .m = static_cast<int>(args.m),
          .n = args.out != nullptr ? static_cast<int>(args.n) : 0,
          .k = static_cast<int>(args.k)};
}

void run(const LaunchContext& context, const Product& a, const Product& b, int64_t a_tiles, int64_t b_tiles) {
  start(context, blocks(a_tiles + b_tiles), kBlock, 0, multiply,
        Products{{a, b},
                 {0, static_cast<int>(a_tiles)},
                 {static_cast<int>(a.tiles_across()), static_cast<int>(b.tiles_across())}});
}

}  // namespace

void matmul_small(const LaunchContext& context, const MatmulArgs& args) {
  const Product product = product_of(args);
  run(context, product, product, product.tiles(), 0);
}

void linear_backward_small(const LaunchContext& context, const LinearBackwardArgs& args) {
  Product input = product_of(input_product(args)), weight = product_of(weight_product(args));
  input.relu_output = weight.relu_output = static_cast<const float*>(args.relu_output);
  input.relu_row = weight.relu_col = args.out_features;
  input.relu_col = weight.relu_row = 1;
  weight.row_sums = static_cast<float*>(args.grad_bias);
  const bool sums = args.grad_weight != nullptr || args.grad_bias != nullptr;
  run(context, weight, input, sums ? weight.tiles() : 0, args.grad_input != nullptr ? input.tiles() : 0);
}

}  // namespace tern::cuda_backend
