// Factorisations without iterations: Cholesky, LU, QR.
#include <numeric>

#include "tern/backends/cpu/kernels/linalg.h"
#include "tern/device/launch.h"
#include "tern/kernels/linalg.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Orders up to which factors are computed column by column.
constexpr int64_t kCholeskyBlock = 32, kLuColumns = 8;

/// Of a row-major matrix; column by column, each brought into a row.
template <class T>
int32_t factor_cholesky_small(Strided<T> a, int64_t n) {
  T column[kCholeskyBlock];
  for (int64_t j = 0; j < n; ++j) {
    const T pivot = a(j, j);
    if (!(pivot > 0)) return static_cast<int32_t>(j + 1);
    const T root = std::sqrt(pivot);
    a(j, j) = root;
    for (int64_t i = j + 1; i < n; ++i) column[i] = a(i, j) /= root;
    for (int64_t i = j + 1; i < n; ++i) {
      const T factor = column[i];
      T* const row = &a(i, 0);
#pragma GCC ivdep
      for (int64_t p = j + 1; p <= i; ++p) row[p] -= factor * column[p];
    }
  }
  return 0;
}

/// Halves, whose products are those of the rows below the first half with themselves: in blocks of rows, so
/// that little is computed above the diagonal.
template <class T>
int32_t factor_cholesky(Strided<T> a, int64_t n) {
  if (n <= kCholeskyBlock) return factor_cholesky_small(a, n);
  const int64_t half = (n / 2 + kCholeskyBlock - 1) / kCholeskyBlock * kCholeskyBlock, rest = n - half;
  if (const int32_t info = factor_cholesky(a, half)) return info;
  const Strided<T> below = a.at(half, 0), last = a.at(half, half);
  solve_triangle(a, /*upper=*/false, /*unit=*/false, half, below.transposed(), rest);
  constexpr int64_t kRows = 128;
  for (int64_t i = 0; i < rest; i += kRows) {
    const int64_t rows = std::min(kRows, rest - i);
    multiply_into(last.at(i, 0), rows, i + rows, half, below.at(i, 0), below.transposed(), T(-1),
                  /*adds=*/true);
  }
  const int32_t info = factor_cholesky(last, rest);
  return info == 0 ? 0 : info + static_cast<int32_t>(half);
}

/// Rows `first` to `last` of some columns change places as the pivots tell.
template <class T>
void exchange_rows(Strided<T> a, int64_t columns, const int32_t* pivots, int64_t first, int64_t last) {
  for (int64_t j = 0; j < columns; ++j) {
    T* const column = &a(0, j);
    for (int64_t i = first; i < last; ++i) std::swap(column[i], column[pivots[i] - 1]);
  }
}

/// Of few columns; pivots are counted from `a`'s first row.
template <class T, class Size>
[[gnu::always_inline]] inline int32_t factor_lu_small(Strided<T> a, Size m, Size n, int32_t* pivots) {
  int32_t info = 0;
  for (int64_t j = 0; j < std::min<int64_t>(m, n); ++j) {
    T* const column = &a(0, j);
    int64_t pivot = j;
    for (int64_t i = j + 1; i < m; ++i)
      if (std::abs(column[i]) > std::abs(column[pivot])) pivot = i;
    pivots[j] = static_cast<int32_t>(pivot + 1);
    if (column[pivot] == 0) {
      if (info == 0) info = static_cast<int32_t>(j + 1);
      continue;
    }
    if (pivot != j)
      for (int64_t c = 0; c < n; ++c) std::swap(a(j, c), a(pivot, c));
    const T divisor = column[j], factor = 1 / divisor;
    if (std::isfinite(factor))
      for (int64_t i = j + 1; i < m; ++i) column[i] *= factor;
    else
      for (int64_t i = j + 1; i < m; ++i) column[i] /= divisor;
    for (int64_t c = j + 1; c < n; ++c) {
      T* const __restrict other = &a(0, c);
      const T times = other[j];
      for (int64_t i = j + 1; i < m; ++i) other[i] -= times * column[i];
    }
  }
  return info;
}

/// The left half of the columns, then the right one (S. Toledo, "Locality of reference in LU decomposition
/// with partial pivoting", 1997).
template <class T>
int32_t factor_lu(Strided<T> a, int64_t m, int64_t n, int32_t* pivots) {
  const int64_t count = std::min(m, n);
  if (count <= kLuColumns || m * n <= 1024) return factor_lu_small(a, m, n, pivots);
  const int64_t left = count / 2 >= 32 ? count / 2 / 16 * 16 : count / 2, right = n - left;
  int32_t info = factor_lu(a, m, left, pivots);
  const Strided<T> beside = a.at(0, left), rest = a.at(left, left);
  exchange_rows(beside, right, pivots, 0, left);
  solve_triangle(a, /*upper=*/false, /*unit=*/true, left, beside, right);
  multiply_into(rest, m - left, right, left, a.at(left, 0), beside, T(-1), /*adds=*/true);
  const int32_t more = factor_lu(rest, m - left, right, pivots + left);
  if (info == 0 && more != 0) info = more + static_cast<int32_t>(left);
  for (int64_t i = left; i < count; ++i) pivots[i] += static_cast<int32_t>(left);
  exchange_rows(a, left, pivots, left, count);
  return info;
}

template <class T>
void factor_qr_small(Strided<T> a, int64_t m, int64_t n, T* tau) {
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    T* const column = &a(0, j);
    tau[j] = make_reflection(m - j, column + j, /*stride=*/1);
    if (tau[j] == 0) continue;
    for (int64_t c = j + 1; c < n; ++c) {
      T* const other = &a(0, c);
      T sum = other[j];
#pragma omp simd reduction(+ : sum)
      for (int64_t i = j + 1; i < m; ++i) sum += column[i] * other[i];
      const T factor = tau[j] * sum;
      other[j] -= factor;
#pragma GCC ivdep
      for (int64_t i = j + 1; i < m; ++i) other[i] -= factor * column[i];
    }
  }
}

/// The same as form_q(), a reflection after the other.
template <class T>
void form_q_small(Strided<T> a, int64_t m, int64_t n, int64_t count, const T* tau) {
  for (int64_t c = count; c < n; ++c) {
    std::fill_n(&a(0, c), m, T(0));
    a(c, c) = 1;
  }
  for (int64_t i = count - 1; i >= 0; --i) {
    T* const v = &a(i, i);
    const int64_t rest = m - i;
    v[0] = 1;
    for (int64_t c = i + 1; c < n; ++c) {
      T* const column = &a(i, c);
      T sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t p = 0; p < rest; ++p) sum += v[p] * column[p];
      sum *= tau[i];
#pragma GCC ivdep
      for (int64_t p = 0; p < rest; ++p) column[p] -= sum * v[p];
    }
    for (int64_t p = 1; p < rest; ++p) v[p] *= -tau[i];
    v[0] = 1 - tau[i];
    std::fill_n(&a(0, i), i, T(0));
  }
}

}  // namespace

template <class T>
void factor_qr(Strided<T> a, int64_t m, int64_t n, T* tau) {
  const int64_t count = std::min(m, n);
  if (count <= kReflections) return factor_qr_small(a, m, n, tau);
  const Scratch<T> memory(m * kReflections + kReflections * kReflections + 2 * kReflections * n);
  T *const v = memory.get(), *const t = v + m * kReflections, *const work = t + kReflections * kReflections;
  for (int64_t j = 0; j < count; j += kReflections) {
    const int64_t width = std::min(kReflections, count - j), rest = n - j - width;
    factor_qr_small(a.at(j, j), m - j, width, tau + j);
    if (rest == 0) continue;
    reflect(join_reflections(a.at(j, j), tau + j, m - j, width, v, t), /*transposed=*/true,
            a.at(j, j + width), rest, work);
  }
}

template <class T>
void form_q(Strided<T> a, int64_t m, int64_t n, int64_t count, const T* tau) {
  if (count <= kReflections && m <= 4 * kReflections) return form_q_small(a, m, n, count, tau);
  const Scratch<T> memory(m * kReflections + kReflections * kReflections + 2 * kReflections * n);
  T *const v = memory.get(), *const t = v + m * kReflections, *const work = t + kReflections * kReflections;
  const auto unit_columns = [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      std::fill_n(&a(0, c), m, T(0));
      a(c, c) = 1;
    }
  };
  unit_columns(count, n);
  // Backwards, so that above and left of the block there is nothing yet.
  const int64_t blocks = (count + kReflections - 1) / kReflections;
  for (int64_t block = blocks - 1; block >= 0; --block) {
    const int64_t j = block * kReflections, width = std::min(kReflections, count - j);
    const Reflections<T> joined = join_reflections(a.at(j, j), tau + j, m - j, width, v, t);
    unit_columns(j, j + width);
    reflect(joined, /*transposed=*/false, a.at(j, j), n - j, work);
  }
}

#define TERN_QR(T)                                           \
  template void factor_qr(Strided<T>, int64_t, int64_t, T*); \
  template void form_q(Strided<T>, int64_t, int64_t, int64_t, const T*);
TERN_QR(float)
TERN_QR(double)
#undef TERN_QR

void cholesky(const LaunchContext&, const CholeskyArgs& args) {
  const int64_t n = args.n;
  visit_real(args.dtype, [&]<class T>() {
    each_matrix(args.batch, cube(n) / 6, [&](int64_t i) {
      const Strided<T> a{static_cast<T*>(args.a) + i * n * n, n, 1};
      args.info[i] = factor_cholesky(a, n);
      for (int64_t row = 0; row < n; ++row) std::fill(&a(row, 0) + row + 1, &a(row, 0) + n, T(0));
    });
  });
}

void lu_factor(const LaunchContext&, const LuFactorArgs& args) {
  const int64_t m = args.m, n = args.n, count = std::min(m, n);
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(count) / 3;
  visit_real(args.dtype, [&]<class T>() {
    each_matrix(args.batch, work, [&](int64_t i) {
      T* const a = static_cast<T*>(args.a) + i * m * n;
      int32_t* const pivots = args.pivots + i * count;
      args.info[i] = with_order(m == n ? n : 0, [&](auto order) {
        if constexpr (std::is_same_v<decltype(order), int64_t>)
          return factor_lu(column_major(a, m), m, n, pivots);
        else
          return factor_lu_small(column_major<T>(a, order), order, order, pivots);
      });
    });
  });
}

void lu_permutation(const LaunchContext&, const LuPermutationArgs& args) {
  for (int64_t i = 0; i < args.batch; ++i) {
    int64_t* const rows = args.permutation + i * args.m;
    std::iota(rows, rows + args.m, int64_t{0});
    const int32_t* const pivots = args.pivots + i * args.count;
    for (int64_t k = 0; k < args.count; ++k) std::swap(rows[k], rows[pivots[k] - 1]);
  }
}

void qr(const LaunchContext&, const QrArgs& args) {
  const int64_t m = args.m, n = args.n, count = std::min(m, n);
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(count);
  visit_real(args.dtype, [&]<class T>() {
    each_matrix(args.batch, work, [&](int64_t i) {
      factor_qr(column_major(static_cast<T*>(args.a) + i * m * n, m), m, n,
                static_cast<T*>(args.tau) + i * count);
    });
  });
}

void householder_product(const LaunchContext&, const HouseholderProductArgs& args) {
  const int64_t m = args.m, n = args.n;
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(args.count);
  visit_real(args.dtype, [&]<class T>() {
    each_matrix(args.batch, work, [&](int64_t i) {
      form_q(column_major(static_cast<T*>(args.a) + i * m * n, m), m, n, args.count,
             static_cast<const T*>(args.tau) + i * args.count);
    });
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
