// The parts of the matrix product: small ones in matmul_small.cu, cuBLASLt in matmul.cpp, a plain kernel for
// everything else in matmul_plain.cu.
#pragma once

#include "tern/device/backend.h"
#include "tern/kernels/linear.h"
#include "tern/kernels/matmul.h"
#include "tern/kernels/pointwise.h"
#include "tern/kernels/reduce.h"

namespace tern::cuda_backend {

/// Whether [m, k] @ [k, n] of full float32 is small enough for the kernels of its own.
bool matmul_suits_small(DType dtype, int64_t m, int64_t n, int64_t k);
/// One product, not a batch.
void matmul_small(const LaunchContext& context, const MatmulArgs& args);
/// Both of whose products are small.
void linear_backward_small(const LaunchContext& context, const LinearBackwardArgs& args);

/// One product of 16-bit floats without an addend, which also writes the sums of a's rows, [m], contiguous.
/// False where cuBLASLt does not do both in one call, as for other dtypes: nothing but args.out has changed.
bool matmul_with_row_sums(const LaunchContext& context, const MatmulArgs& args, void* row_sums);

/// While one lives this thread's products of float32 do not use TF32, whatever set_float32_matmul_precision()
/// allows.
class FullFloat32 {
 public:
  FullFloat32() noexcept;
  ~FullFloat32();
  FullFloat32(const FullFloat32&) = delete;
  FullFloat32& operator=(const FullFloat32&) = delete;

 private:
  bool outer_;
};

/// Every dtype and every stride, at no particular speed: integers, and products of no columns.
void matmul_plain(const LaunchContext& context, const MatmulArgs& args);

// Kernels of the table that others use as well.
void binary(const LaunchContext& context, const BinaryArgs& args);
void copy(const LaunchContext& context, const CopyArgs& args);
void matmul(const LaunchContext& context, const MatmulArgs& args);
void reduce(const LaunchContext& context, const ReduceArgs& args);
void unary(const LaunchContext& context, const UnaryArgs& args);

}  // namespace tern::cuda_backend
