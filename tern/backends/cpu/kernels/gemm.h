// The blocked matrix product of float and double: C = epilogue(A @ B) for any strides, on all cores. Operands
// that are not plain matrices (16-bit types, image patches) come in through packers. The operator's kernel is
// in matmul.cpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/backends/cpu/kernels/gemm_micro.h"
#include "tern/backends/cpu/kernels/gemm_tiles.h"
#include "tern/base/parallel.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// Writes parts of an operand in the order in which the microkernel reads them.
template <class T>
class Packer {
 public:
  /// to[p * width + i] = operand(first + i, k_first + p) for p < k_count, i < width, where the first index of
  /// operand() is the row of A or the column of B.
  virtual void pack(int64_t first, int64_t width, int64_t k_first, int64_t k_count, T* to) const = 0;

 protected:
  ~Packer() = default;
};

/// C[m, n] = relu(alpha * A[m, k] @ B[k, n] + beta * addend + row_bias), see Epilogue.
template <class T>
struct Gemm {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  const T* a = nullptr;
  int64_t a_row_stride = 0;
  int64_t a_col_stride = 0;
  const T* b = nullptr;
  int64_t b_row_stride = 0;
  int64_t b_col_stride = 0;
  T* c = nullptr;
  int64_t c_row_stride = 0;
  const Packer<T>* pack_a = nullptr;  ///< in place of a
  const Packer<T>* pack_b = nullptr;  ///< in place of b; panels start at multiples of kTileColumns
  Epilogue<T> epilogue{};
  int64_t pass_depth = 0;                ///< products of one pass, or 0 for pass_depth()
  Elements elements = Elements::Values;  ///< Pairs come from packers, for processors that has_pairs() tells
};

/// Runs it. The order in which products are summed depends on sizes only, never on the number of threads.
template <class T>
void gemm(const Gemm<T>& g);

/// Special forms that gemm() chooses for few rows; they read A and B where they are.
/// Rows of B contiguous, m <= kWideRows (x W).
template <class T>
void gemm_wide(const Gemm<T>& g);
/// Rows of B contiguous, 1 <= k <= kOuterDepth (a sum of few outer products).
template <class T>
void gemm_outer(const Gemm<T>& g);
/// Rows of A and columns of B contiguous, m <= kDotRows (x W^T).
template <class T>
void gemm_dot(const Gemm<T>& g);
#if defined(__AVX512F__)
inline constexpr int kWideRows = 4;
#else
inline constexpr int kWideRows = 2;
#endif
inline constexpr int64_t kOuterDepth = 4;
inline constexpr int64_t kDotRows = 16;
#if defined(__AVX2__)
inline constexpr bool kHasDot = true;
#else
inline constexpr bool kHasDot = false;
#endif

/// Multiplications for which one core is worth waking, and the number of cores that so much work deserves.
inline constexpr double kWorkPerThread = 150e3;
inline int64_t threads_for(double work) {
  if (work < 2 * kWorkPerThread || tern::detail::in_parallel_region()) return 1;
  return std::min(static_cast<int64_t>(std::min(work / kWorkPerThread, 1e6)),
                  static_cast<int64_t>(num_threads()));
}

/// Products (k) that one pass sums before it adds them to the result: equal parts of at most kMaxDepth.
template <class T>
inline constexpr int64_t kMaxDepth = 2048 / static_cast<int64_t>(sizeof(T));
template <class T>
inline int64_t pass_depth(int64_t k) {
  const int64_t passes = k / kMaxDepth<T> + (k % kMaxDepth<T> != 0);
  return passes == 0 ? 1 : (k + passes - 1) / passes;
}

/// How row tiles and column panels are shared over cores: so that the largest share is smallest, and among
/// equals by rows, since then no core packs what another one packs too.
struct Grid {
  int64_t rows = 1;
  int64_t columns = 1;
};
Grid share_tiles(int64_t threads, int64_t row_tiles, int64_t panels);

/// Estimated cycles that a float product spends on one column and one k.
inline double tile_rows_cost(int64_t m) {
  return static_cast<double>(std::max<int64_t>(m, 2)) / kLanes<float>;
}

/// to[p * width + i] = from[i * index_stride + p * k_stride].
template <class T>
void pack_panel(const T* from, int64_t index_stride, int64_t k_stride, int64_t width, int64_t k_count, T* to);

}  // namespace tern::cpu::TERN_CPU_VARIANT
