// What the factorisations share: strided matrices, their products, triangular systems, reflections.
// Blocked algorithms are those of LAPACK (E. Anderson et al., "LAPACK Users' Guide", 1999), on the library's
// own matrix product.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "tern/backends/cpu/kernels/gemm.h"
#include "tern/backends/cpu/kernels/gemm_vec.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/base/parallel.h"
#include "tern/kernels/real_types.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// Element (i, j) is at data[i * row_stride + j * col_stride].
template <class T>
struct Strided {
  T* data;
  int64_t row_stride, col_stride;

  T& operator()(int64_t i, int64_t j) const { return data[i * row_stride + j * col_stride]; }
  /// The matrix from (i, j) on.
  Strided at(int64_t i, int64_t j) const { return {&(*this)(i, j), row_stride, col_stride}; }
  Strided transposed() const { return {data, col_stride, row_stride}; }
};
template <class T>
Strided<T> column_major(T* data, int64_t rows) {
  return {data, 1, rows};
}

/// c[m, n] = alpha * a[m, k] @ b[k, n] + (adds ? c : 0). One stride of c is 1; it overlaps neither a nor b.
template <class T>
void multiply_into(Strided<T> c, int64_t m, int64_t n, int64_t k, Strided<T> a, Strided<T> b, T alpha,
                   bool adds);

/// x[n, k] = a^-1 @ x, of whose triangle alone `a` is read. One stride of x is 1.
template <class T>
void solve_triangle(Strided<T> a, bool upper, bool unit, int64_t n, Strided<T> x, int64_t k);

/// What a reflection I - tau * v @ v^T, v[0] = 1, that takes x to (beta, 0, ...) is made of: x is overwritten
/// with (beta, v[1], ...). tau is 0 where x is (beta, 0, ...) already.
template <class T>
T make_reflection(int64_t n, T* x, int64_t stride);

/// `count` reflections as I - v @ t @ v^T: v [m, count], column-major with all zeros and ones, t [count,
/// count], upper triangular.
template <class T>
struct Reflections {
  Strided<T> v;
  T* t;
  int64_t m, count;
};
/// The vectors below the diagonal of `a`, copied to `v`, and t from them and tau.
template <class T>
Reflections<T> join_reflections(Strided<T> a, const T* tau, int64_t m, int64_t count, T* v, T* t);
/// c [m, n] = (I - v @ t @ v^T) @ c, or with t^T. `work` holds 2 * count * n elements; one stride of c is 1.
template <class T>
void reflect(const Reflections<T>& r, bool transposed, Strided<T> c, int64_t n, T* work);

/// How many reflections are joined.
inline constexpr int64_t kReflections = 32;

/// QR in place of a column-major matrix; see QrArgs.
template <class T>
void factor_qr(Strided<T> a, int64_t m, int64_t n, T* tau);
/// The first n columns of the product of reflections in place; see HouseholderProductArgs.
template <class T>
void form_q(Strided<T> a, int64_t m, int64_t n, int64_t count, const T* tau);

/// Rotations of neighbouring columns of a column-major matrix, kept until there are many: then every few rows
/// go through all of them while they are in the cache.
template <class T>
class Rotations {
 public:
  Rotations(Strided<T> columns, int64_t rows) : columns_(columns), rows_(rows) {}
  /// (column a, column b) = (c * a + s * b, c * b - s * a).
  void add(int64_t a, int64_t b, double c, double s) {
    if (count_ == kMost) apply();
    list_[count_++] = {static_cast<int32_t>(a), static_cast<int32_t>(b), static_cast<T>(c),
                       static_cast<T>(s)};
  }
  void apply();

 private:
  struct Rotation {
    int32_t a, b;
    T c, s;
  };
  static constexpr int64_t kMost = 8192;
  Strided<T> columns_;
  int64_t rows_;
  int64_t count_ = 0;
  Scratch<Rotation> memory_{kMost};
  Rotation* list_ = memory_.get();
};

/// Calls body(i) for every matrix of a batch, several at once where each has `work` multiplications; a large
/// one uses several cores by itself.
template <class Body>
void each_matrix(int64_t batch, double work, const Body& body) {
  if (batch == 1 || (work > 4e6 && batch < num_threads())) {
    for (int64_t i = 0; i < batch; ++i) body(i);
    return;
  }
  const auto grain = static_cast<int64_t>(std::clamp(100e3 / std::max(work, 1.0), 1.0, 1e9));
  parallel_for(batch, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

/// Calls body(n), for the smallest orders with a type that knows n, so that loops are unrolled.
template <class Body>
decltype(auto) with_order(int64_t n, const Body& body) {
  switch (n) {
    case 2:
      return body(std::integral_constant<int64_t, 2>{});
    case 3:
      return body(std::integral_constant<int64_t, 3>{});
    case 4:
      return body(std::integral_constant<int64_t, 4>{});
    default:
      return body(n);
  }
}

/// n^3 as a number of multiplications.
inline double cube(int64_t n) {
  return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
