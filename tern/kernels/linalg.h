// Arguments of the kernels of linear algebra: factorisations, triangular systems, eigenvalues, singular
// values. All take batches of float32 or float64 matrices; shape rules, errors and gradients are in
// ops/linalg*.cpp.
//
// A *column-major* matrix [m, n] has element (i, j) at i + j * m. Batches of matrices follow each other
// without gaps. `info` has a number for each matrix, 0 where all went well.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern {

/// a = L @ L^T in place. `info` is the order of the first leading minor that is not positive definite; the
/// matrix is then of no use.
struct CholeskyArgs {
  DType dtype;
  int64_t batch, n;
  void* a;  ///< [batch, n, n], row-major: the lower triangle is read; L, with zeros above
  int32_t* info;
};

/// P @ a = L @ U in place, by rows of the largest element. `info` is the number of the first column, from 1
/// on, whose U has 0 on the diagonal.
struct LuFactorArgs {
  DType dtype;
  int64_t batch, m, n;
  void* a;          ///< [batch, m, n], column-major: L below the diagonal, whose own is 1, and U
  int32_t* pivots;  ///< [batch, min(m, n)]: row i was exchanged with row pivots[i], counted from 1
  int32_t* info;
};

/// What exchanges of rows make of the numbers 0 to m - 1: row i of the result was row permutation[i].
struct LuPermutationArgs {
  int64_t batch, m, count;
  const int32_t* pivots;  ///< [batch, count], from 1 on
  int64_t* permutation;   ///< [batch, m]
};

/// x = a^-1 @ x in place. Only one triangle of `a` is read, and not its diagonal when it is all 1. Strides
/// are in elements; those of `a` may be anything, and one of `x_row_stride` and `x_col_stride` is 1.
struct TriangularSolveArgs {
  DType dtype;
  bool upper, unit;
  int64_t batch, n, k;
  const void* a;  ///< [batch, n, n]
  int64_t a_batch_stride, a_row_stride, a_col_stride;
  void* x;  ///< [batch, n, k]
  int64_t x_batch_stride, x_row_stride, x_col_stride;
};

/// a = Q @ R in place, Q as a product of reflections I - tau * v @ v^T.
struct QrArgs {
  DType dtype;
  int64_t batch, m, n;
  void* a;    ///< [batch, m, n], column-major: R, and below its diagonal column i's v from element i + 1 on
  void* tau;  ///< [batch, min(m, n)]
};

/// The first n columns of the product of `count` reflections, in place.
struct HouseholderProductArgs {
  DType dtype;
  int64_t batch, m, n, count;  ///< count <= n <= m
  void* a;                     ///< [batch, m, n], column-major: as QrArgs leaves it; Q
  const void* tau;             ///< [batch, count]
};

/// Of symmetric matrices the eigenvalues, ascending, and eigenvectors. `info` is not 0 where they were not
/// found, for example for NaN; values and vectors are then of no use.
struct EighArgs {
  DType dtype;
  bool upper;    ///< which triangle is read
  bool vectors;  ///< whether they are wanted
  int64_t batch, n;
  void* a;       ///< [batch, n, n], column-major; becomes the vectors, one for each column
  void* values;  ///< [batch, n]
  int32_t* info;
};

/// a = U @ diag(s) @ Vh for matrices that are not wider than tall; s descends. `info` as for EighArgs.
struct SvdArgs {
  DType dtype;
  bool vectors;         ///< else u and vh are null
  int64_t batch, m, n;  ///< m >= n
  int64_t columns;      ///< of u: n, or m for a basis of everything
  void* a;              ///< [batch, m, n], column-major; destroyed
  void* u;              ///< [batch, m, columns], column-major
  void* s;              ///< [batch, n]
  void* vh;             ///< [batch, n, n], row-major
  int32_t* info;
};

/// X(kernel, argument struct) for kernels/list.h.
#define TERN_LINALG_KERNELS(X)                   \
  X(cholesky, CholeskyArgs)                      \
  X(lu_factor, LuFactorArgs)                     \
  X(lu_permutation, LuPermutationArgs)           \
  X(triangular_solve, TriangularSolveArgs)       \
  X(qr, QrArgs)                                  \
  X(householder_product, HouseholderProductArgs) \
  X(eigh, EighArgs)                              \
  X(svd, SvdArgs)

}  // namespace tern
