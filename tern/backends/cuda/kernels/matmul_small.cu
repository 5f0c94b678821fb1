// Products of small float32 matrices, whatever their strides, and both products of a fully connected layer's
// gradients at once: a library takes as long for them as for ten times larger ones, since its tiles leave
// most of the GPU idle. Which sizes are taken: matmul_suits_small().
#include <algorithm>

#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/matmul.h"

namespace tern::cuda_backend {
namespace {

constexpr int kSide = 4;                 // rows and columns of the result that a thread sums
constexpr int kReads = 4;                // elements of an operand that a thread has at once
constexpr int kSmall = 16, kLarge = 32;  // rows and columns of the result that a block computes
constexpr int64_t kProcessors = 132;     // that large tiles should keep busy

/// How a block computes kTile by kTile results: in groups of threads, which share k between them.
template <int kTile>
struct Tile {
  static constexpr int kAcross = kTile / kSide;  // threads of a group side by side
  static constexpr int kGroup = kAcross * kAcross;
  static constexpr int kGroups = kBlock / kGroup;
  static constexpr int kApart = kBlock / kTile;  // of k, from a thread's element to its next
  static constexpr int kStep = kReads * kApart;  // of k that is in shared memory at once
  static constexpr int kRow = kTile + 4;         // floats from k to k there: packs stay aligned, banks differ
  static constexpr int kResults = kTile * kTile;
  /// Of shared memory: what the groups add at last is more than a step of both operands.
  static constexpr int kFloats = kGroups * kResults + kBlock;
  static_assert(2 * kStep * kRow <= kFloats);
};

/// out = a @ b + addend as in MatmulArgs, in float32 and without a batch.
struct Product {
  const float *a, *b;
  const float* relu_output;  ///< see LinearBackwardArgs, for a; or null
  const float* addend;       ///< or null
  float* out;                ///< or null: the sums alone
  float* row_sums;           ///< [m], of a; or null
  int64_t a_row, a_col, b_row, b_col, relu_row, relu_col, addend_row, addend_col, out_row;  ///< strides
  float alpha, beta;
  bool relu;
  uint32_t m, n, k;

  int64_t tiles(int tile) const { return ceil_div(m, tile) * ceil_div(n, tile); }
  /// A large tile takes almost as long as three small ones. Chosen by the shape alone, and so is the order of
  /// sums.
  int tile() const { return tiles(kSmall) > 3 * std::max(tiles(kLarge), kProcessors) ? kLarge : kSmall; }
  int64_t tiles_across() const { return out != nullptr ? ceil_div(n, tile()) : 1; }
  int64_t blocks() const { return ceil_div(m, tile()) * tiles_across(); }
};

/// Where a thread's elements of kTile by kStep of an operand lie: in one row of a or column of b, the first
/// at `k`, the others kApart apart. Neighbouring threads have what lies side by side.
template <int kTile>
struct Place {
  uint32_t side, k;

  __device__ __forceinline__ explicit Place(int64_t k_stride) {
    constexpr uint32_t kApart = Tile<kTile>::kApart;
    const uint32_t thread = threadIdx.x;
    side = k_stride == 1 ? thread / kApart : thread % kTile;
    k = k_stride == 1 ? thread % kApart : thread / kTile;
  }
};

/// What a thread reads of an operand, one step of k after the other. Elements beyond k are 0; those of a row
/// or column beyond the last one are the last one's, and what becomes of them is not kept.
template <int kTile>
struct Elements {
  const float* next;
  int64_t apart;  ///< in bytes, so that an address is one addition
  int left;       ///< of k, from the next element on

  __device__ __forceinline__ Elements(const float* data, int64_t side_stride, int64_t k_stride,
                                      const Place<kTile>& place, uint32_t first_side, uint32_t sides,
                                      uint32_t k)
      : next(data + min(first_side + place.side, sides - 1) * side_stride + place.k * k_stride),
        apart(k_stride * (Tile<kTile>::kApart * static_cast<int>(sizeof(float)))),
        left(static_cast<int>(k - place.k)) {}

  __device__ __forceinline__ void read(float (&to)[kReads]) {
#pragma unroll
    for (int j = 0; j < kReads; ++j) {
      to[j] = j * Tile<kTile>::kApart < left ? *next : 0.0f;
      next = reinterpret_cast<const float*>(reinterpret_cast<const char*>(next) + apart);
    }
    left -= Tile<kTile>::kStep;
  }
};

/// A thread's rows or columns of one k, from shared memory.
__device__ __forceinline__ void read_side(float (&to)[kSide], const float* from) {
  const float4 pack = *reinterpret_cast<const float4*>(from);
  to[0] = pack.x, to[1] = pack.y, to[2] = pack.z, to[3] = pack.w;
}

/// `shared` is Tile<kTile>::kFloats, aligned to packs.
template <int kTile>
__device__ __forceinline__ void multiply_tile(const Product& p, uint32_t tile_row, uint32_t tile_col,
                                              float* shared) {
  using T = Tile<kTile>;
  float *const shared_a = shared, *const shared_b = shared + T::kStep * T::kRow;
  const uint32_t first_row = tile_row * kTile, first_col = tile_col * kTile;
  const uint32_t thread = threadIdx.x, group = thread / T::kGroup, in_group = thread % T::kGroup;
  const uint32_t y = in_group / T::kAcross * kSide, x = in_group % T::kAcross * kSide;  // of its first result
  const Place<kTile> a_place(p.a_col), b_place(p.b_row);
  Elements<kTile> a_elements(p.a, p.a_row, p.a_col, a_place, first_row, p.m, p.k);
  Elements<kTile> b_elements(p.b, p.b_col, p.b_row, b_place, first_col, p.n, p.k);
  Elements<kTile> relu_elements(p.relu_output, p.relu_row, p.relu_col, a_place, first_row, p.m, p.k);
  float a[kReads], b[kReads], relu[kReads];
  const auto read = [&] {
    a_elements.read(a);
    b_elements.read(b);
    if (p.relu_output != nullptr) relu_elements.read(relu);
  };
  float sums[kSide][kSide] = {}, row_sum = 0;
  read();
  for (uint32_t begin = 0; begin < p.k; begin += T::kStep) {
    if (p.relu_output != nullptr) {
#pragma unroll
      for (int j = 0; j < kReads; ++j)
        if (relu[j] <= 0) a[j] = 0;
    }
    __syncthreads();  // the step before may still be read
#pragma unroll
    for (int j = 0; j < kReads; ++j) {
      row_sum += a[j];
      shared_a[(a_place.k + j * T::kApart) * T::kRow + a_place.side] = a[j];
      shared_b[(b_place.k + j * T::kApart) * T::kRow + b_place.side] = b[j];
    }
    __syncthreads();
    if (begin + T::kStep < p.k) read();  // while this step is computed
#pragma unroll
    for (int i = 0; i < T::kStep / T::kGroups; ++i) {
      const uint32_t k = group * (T::kStep / T::kGroups) + i;
      float rows[kSide], cols[kSide];
      read_side(rows, shared_a + k * T::kRow + y);
      read_side(cols, shared_b + k * T::kRow + x);
#pragma unroll
      for (int r = 0; r < kSide; ++r)
#pragma unroll
        for (int c = 0; c < kSide; ++c) sums[r][c] += rows[r] * cols[c];
    }
  }
  // What the groups have is added in their order, and then the parts of the sums of rows.
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kSide; ++r)
    reinterpret_cast<float4*>(shared)[(group * kSide + r) * T::kGroup + in_group] =
        make_float4(sums[r][0], sums[r][1], sums[r][2], sums[r][3]);
  float* const shared_sums = shared + T::kGroups * T::kResults;
  shared_sums[a_place.k * kTile + a_place.side] = row_sum;
  __syncthreads();
#pragma unroll
  for (int j = 0; j < T::kResults / kBlock; ++j) {
    const uint32_t i = j * kBlock + thread, owner = i / kSide % T::kGroup;  // of result i of each group
    const uint32_t row = first_row + owner / T::kAcross * kSide + i / (kSide * T::kGroup);
    const uint32_t col = first_col + owner % T::kAcross * kSide + i % kSide;
    if (row >= p.m || col >= p.n || p.out == nullptr) continue;
    float sum = 0;
#pragma unroll
    for (int g = 0; g < T::kGroups; ++g) sum += shared[g * T::kResults + i];
    float value = p.alpha * sum;
    if (p.addend) value += p.beta * p.addend[row * p.addend_row + col * p.addend_col];
    p.out[row * p.out_row + col] = p.relu && value < 0 ? 0.0f : value;
  }
  if (p.row_sums != nullptr && first_col == 0 && thread < kTile && first_row + thread < p.m) {
    float sum = 0;
#pragma unroll
    for (int part = 0; part < T::kApart; ++part) sum += shared_sums[part * kTile + thread];
    p.row_sums[first_row + thread] = sum;
  }
}

/// A product and its part of a grid.
struct Part {
  Product product;
  uint32_t first_block;
  bool large;
  Divider tiles_across;
};
struct Parts {
  Part part[2];
};

/// Blocks below the second part's first one compute the first product, the others the second one.
__global__ void __launch_bounds__(kBlock) multiply(const Parts parts) {
  alignas(16) __shared__ float shared[std::max(Tile<kSmall>::kFloats, Tile<kLarge>::kFloats)];
  const Part& part = parts.part[blockIdx.x >= parts.part[1].first_block ? 1 : 0];
  const uint32_t tile = blockIdx.x - part.first_block, row = part.tiles_across.divide(tile);
  const uint32_t col = tile - row * part.tiles_across.divisor;
  if (part.large)
    multiply_tile<kLarge>(part.product, row, col, shared);
  else
    multiply_tile<kSmall>(part.product, row, col, shared);
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
          .m = static_cast<uint32_t>(args.m),
          .n = static_cast<uint32_t>(args.n),
          .k = static_cast<uint32_t>(args.k)};
}

/// Of two products those that are wanted, at once.
void run(const LaunchContext& context, const Product& a, bool wants_a, const Product& b, bool wants_b) {
  const int64_t a_blocks = wants_a ? a.blocks() : 0, b_blocks = wants_b ? b.blocks() : 0;
  const auto part = [](const Product& product, int64_t first_block) {
    return Part{product, static_cast<uint32_t>(first_block), product.tile() == kLarge,
                Divider(product.tiles_across())};
  };
  start(context, blocks(a_blocks + b_blocks), kBlock, 0, multiply, Parts{{part(a, 0), part(b, a_blocks)}});
}

}  // namespace

void matmul_small(const LaunchContext& context, const MatmulArgs& args) {
  const Product product = product_of(args);
  run(context, product, true, product, false);
}

void linear_backward_small(const LaunchContext& context, const LinearBackwardArgs& args) {
  Product input = product_of(input_product(args)), weight = product_of(weight_product(args));
  if (args.relu_output != nullptr) {
    input.relu_output = weight.relu_output = static_cast<const float*>(args.relu_output);
    input.relu_row = weight.relu_col = args.out_features;
    input.relu_col = weight.relu_row = 1;
  }
  weight.row_sums = static_cast<float*>(args.grad_bias);
  if (args.grad_weight == nullptr) {  // the input may be null: a row of a stands in for each column of b
    weight.b = weight.a;
    weight.b_row = weight.a_col;
    weight.b_col = 0;
  }
  run(context, weight, args.grad_weight != nullptr || args.grad_bias != nullptr, input,
      args.grad_input != nullptr);
}

}  // namespace tern::cuda_backend
