// Arguments of the matrix product kernel, shared by every backend.
// Shape rules, broadcasting and gradients are in tern/ops/matmul.cpp; the CPU kernel in
// backends/cpu/kernels/matmul.cpp.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern {

/// What becomes of each element v of a product before it is stored. Gelu and its gradient are the
/// approximation by tanh, for one product of floats whose matrices of m x n are contiguous.
enum class MatmulEpilogue : uint8_t {
  None,
  Relu,          ///< relu(v)
  Gelu,          ///< gelu(v), and v itself to `gelu_input` unless that is null
  GeluGradient,  ///< v times the slope of gelu at `gelu_input`
};

/// out = epilogue(alpha * a @ b + beta * addend) for a batch of matrices.
///
/// All strides are in elements and may be anything, 0 included, for what is read: a transposed operand is one
/// whose two strides are swapped. `out` has rows `out_row_stride` elements apart and adjacent columns; it
/// must not overlap `a` or `b`, and may overlap `addend` only where it is the same matrix (`addend == out`,
/// equal strides: accumulation). All operands have the type `dtype`. float16 and bfloat16 accumulate in
/// float32 and round once, though gelu may see what was rounded before; integers wrap. k == 0 gives
/// epilogue(beta * addend).
struct MatmulArgs {
  static constexpr int kMaxBatchDims = 6;

  DType dtype{};
  MatmulEpilogue epilogue = MatmulEpilogue::None;
  int batch_dims = 0;  ///< how many entries of the batch arrays count; 0: one product

  std::int64_t m = 0;  ///< rows of a and out
  std::int64_t n = 0;  ///< columns of b and out
  std::int64_t k = 0;  ///< columns of a, rows of b

  const void* a = nullptr;  ///< [m, k]
  std::int64_t a_row_stride = 0;
  std::int64_t a_col_stride = 0;

  const void* b = nullptr;  ///< [k, n]
  std::int64_t b_row_stride = 0;
  std::int64_t b_col_stride = 0;

  /// [m, n], or null: nothing is added. A bias of length n has row stride 0.
  const void* addend = nullptr;
  std::int64_t addend_row_stride = 0;
  std::int64_t addend_col_stride = 0;

  void* out = nullptr;  ///< [m, n]
  std::int64_t out_row_stride = 0;

  void* gelu_input = nullptr;  ///< [m, n], written or read, or null; see MatmulEpilogue

  double alpha = 1.0;
  double beta = 1.0;  ///< not used when addend is null

  /// Batch dimensions, outermost first; stride 0 broadcasts.
  std::int64_t batch_sizes[kMaxBatchDims] = {};
  std::int64_t a_batch_strides[kMaxBatchDims] = {};
  std::int64_t b_batch_strides[kMaxBatchDims] = {};
  std::int64_t addend_batch_strides[kMaxBatchDims] = {};
  std::int64_t out_batch_strides[kMaxBatchDims] = {};

  /// Number of products in the batch.
  std::int64_t batch_count() const {
    std::int64_t count = 1;
    for (int d = 0; d < batch_dims; ++d) count *= batch_sizes[d];
    return count;
  }

  /// Floating-point operations, multiply and add counted separately.
  double flops() const {
    return 2.0 * static_cast<double>(batch_count()) * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }
};

/// Rows and columns of a result, and the length of its sums.
struct ProductSizes {
  std::int64_t m, n, k;
};
/// A matrix that is read, with its strides in elements.
struct ProductOperand {
  const void* data;
  std::int64_t row_stride, col_stride;
};

/// out = a @ b, one product into contiguous memory.
inline MatmulArgs plain_product(DType dtype, const ProductSizes& sizes, const ProductOperand& a,
                                const ProductOperand& b, void* out) {
  MatmulArgs product;
  product.dtype = dtype;
  product.m = sizes.m;
  product.n = sizes.n;
  product.k = sizes.k;
  product.a = a.data;
  product.a_row_stride = a.row_stride;
  product.a_col_stride = a.col_stride;
  product.b = b.data;
  product.b_row_stride = b.row_stride;
  product.b_col_stride = b.col_stride;
  product.out = out;
  product.out_row_stride = sizes.n;
  return product;
}

}  // namespace tern

/// X(kernel, argument struct) for kernels/list.h.
#define TERN_MATMUL_KERNELS(X) X(matmul, MatmulArgs)
