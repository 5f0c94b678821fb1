// What the files of linalg share: checks, launches without gradients, errors from `info`. For operators only;
// the public functions are in ops/linalg.h.
#pragma once

#include <optional>
#include <string>
#include <tuple>

#include "tern/ops/common.h"

namespace tern::linalg::detail {

/// Throws unless a is a batch of float32 or float64 matrices, square ones with `square`.
void check_matrices(const char* op, const Tensor& a, bool square = false);
/// Throws unless both have one dtype and lie on one device.
void check_pair(const char* op, const char* a_name, const Tensor& a, const char* b_name, const Tensor& b);
/// And unless a @ x = b, or x @ a = b, may be asked for: a is square, and b has its size.
void check_system(const char* op, const Tensor& a, const Tensor& b, bool left);

/// How many matrices there are, with sizes [m, n].
struct Batch {
  int64_t count, m, n;
};
Batch batch_of(const Tensor& a);
/// The shape of a's batch followed by these sizes.
Shape with_sizes(const Tensor& a, std::initializer_list<int64_t> sizes);
/// An uninitialised tensor of that shape.
Tensor made(const Tensor& a, std::initializer_list<int64_t> sizes);
Tensor made(const Tensor& a, std::initializer_list<int64_t> sizes, DType dtype);

/// The batch that two batches of matrices share by broadcasting, and a matrix of x expanded to it.
Shape shared_batch(const char* op, const Tensor& a, const Tensor& b);
Tensor expanded(const Tensor& x, const Shape& batch);

/// The difference between 1 and the next number of float32 or float64.
double eps_of(DType dtype);

/// Throws LinAlgError where info is not 0: "op: (Batch element 3): " and what `reason` makes of the number.
void check_info(const char* op, const Tensor& info, std::string (*reason)(int64_t));

/// New memory with the matrices column by column: the tensor is [..., n, m].
Tensor columns_of(const Tensor& a);

/// P @ a = L @ U without history: LU (a view of columns), pivots, info, and the order of the rows of P @ a.
struct LuFactors {
  Tensor lu, pivots, info, rows;
};
LuFactors factor(const Tensor& a);
/// The order of rows that exchanges make.
Tensor rows_of(const Tensor& pivots, int64_t m);
/// x = a^-1 @ x in place, for contiguous x; a as it is.
void solve_in_place(const Tensor& a, bool upper, bool unit, const Tensor& x);
/// A new tensor, a^-1 @ b or a^-T @ b of the factors of a; the batches are the same, or the factors' may be
/// broadcast.
Tensor solve_with(const Tensor& lu, const Tensor& rows, const Tensor& b, bool transposed);
/// (P, L, U) of what lu_factor() gives; L and U are recorded.
std::tuple<Tensor, Tensor, Tensor> unpack_lu(const Tensor& lu, const Tensor& pivots);
/// a^-1 from the factors of a.
Tensor inverse_with(const Tensor& lu, const Tensor& rows);

}  // namespace tern::linalg::detail
