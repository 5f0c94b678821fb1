// What the factorisations share, see linalg.h, and the kernel for triangular systems.
#include "tern/backends/cpu/kernels/linalg.h"

#include <cstdint>

#include "tern/device/launch.h"
#include "tern/kernels/linalg.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Products up to which the blocked product's preparations take longer.
constexpr int64_t kPlainProducts = 2048;
/// Triangles up to which a system is solved row by row, and right sides that this is done for at once.
constexpr int64_t kTriangle = 32, kSides = 64;

template <class T>
void multiply_plainly(Strided<T> c, int64_t m, int64_t n, int64_t k, Strided<T> a, Strided<T> b, T alpha,
                      bool adds) {
  if (k == 0 && !adds) {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) c(i, j) = 0;
    return;
  }
  for (int64_t i = 0; i < m; ++i) {
    T* row = &c(i, 0);
    for (int64_t p = 0; p < k; ++p) {
      const T factor = alpha * a(i, p);
      const T* from = &b(p, 0);
      const int64_t stride = b.col_stride;
      if (p == 0 && !adds)
        for (int64_t j = 0; j < n; ++j) row[j] = factor * from[j * stride];
      else
        for (int64_t j = 0; j < n; ++j) row[j] += factor * from[j * stride];
    }
  }
}

}  // namespace

template <class T>
void multiply_into(Strided<T> c, int64_t m, int64_t n, int64_t k, Strided<T> a, Strided<T> b, T alpha,
                   bool adds) {
  if (m == 0 || n == 0 || (k == 0 && adds)) return;
  if (c.col_stride != 1 && n > 1) {
    std::swap(m, n);
    const Strided<T> left = a;
    a = b.transposed();
    b = left.transposed();
    c = c.transposed();
  }
  if (m * n * k <= kPlainProducts) return multiply_plainly(c, m, n, k, a, b, alpha, adds);
  Gemm<T> g{.m = m,
            .n = n,
            .k = k,
            .a = a.data,
            .a_row_stride = a.row_stride,
            .a_col_stride = a.col_stride,
            .b = b.data,
            .b_row_stride = b.row_stride,
            .b_col_stride = b.col_stride,
            .c = c.data,
            .c_row_stride = c.row_stride,
            .epilogue = {.alpha = alpha}};
  if (g.n == 1 && g.m > 1 && g.c_row_stride == 1) {  // a column is a row of the transposed product
    std::swap(g.m, g.n);
    std::swap(g.a, g.b);
    std::swap(g.a_row_stride, g.b_col_stride);
    std::swap(g.a_col_stride, g.b_row_stride);
    g.c_row_stride = g.n;
  }
  if (adds) {
    g.epilogue.addend = g.c;
    g.epilogue.addend_row_stride = g.c_row_stride;
  }
  gemm(g);
}

namespace {

/// The same for a small triangle, in place.
template <class T, class Size>
[[gnu::always_inline]] inline void solve_rows(Strided<T> a, bool upper, bool unit, Size n, T* rows,
                                              int64_t step, Size count) {
  for (int64_t line = 0; line < n; ++line) {
    const int64_t i = upper ? n - 1 - line : line;
    T* const __restrict row = rows + i * step;
    for (int64_t before = 0; before < line; ++before) {
      const int64_t p = upper ? n - 1 - before : before;
      const T factor = a(i, p);
      const T* const __restrict solved = rows + p * step;
      for (int64_t j = 0; j < count; ++j) row[j] -= factor * solved[j];
    }
    if (unit) continue;
    const T diagonal = a(i, i);
    for (int64_t j = 0; j < count; ++j) row[j] /= diagonal;
  }
}

/// The same, where right sides are brought into rows.
template <class T>
void solve_small_triangle(Strided<T> a, bool upper, bool unit, int64_t n, Strided<T> x, int64_t k) {
  T sides[kTriangle * kSides];
  for (int64_t first = 0; first < k; first += kSides) {
    const int64_t count = std::min(kSides, k - first);
    // Rows that are far apart would meet in the same places of the cache.
    const bool in_place = x.col_stride == 1 && (n <= 8 || std::abs(x.row_stride) <= 2 * kSides);
    T* const rows = in_place ? &x(0, first) : sides;
    const int64_t step = in_place ? x.row_stride : count;
    if (!in_place)
      for (int64_t j = 0; j < count; ++j)
        for (int64_t i = 0; i < n; ++i) rows[i * step + j] = x(i, first + j);
    solve_rows(a, upper, unit, n, rows, step, count);
    if (!in_place)
      for (int64_t j = 0; j < count; ++j)
        for (int64_t i = 0; i < n; ++i) x(i, first + j) = rows[i * step + j];
  }
}

}  // namespace

template <class T>
void solve_triangle(Strided<T> a, bool upper, bool unit, int64_t n, Strided<T> x, int64_t k) {
  if (n == 0 || k == 0) return;
  if (n <= kTriangle) return solve_small_triangle(a, upper, unit, n, x, k);
  const int64_t half = (n / 2 + kTriangle - 1) / kTriangle * kTriangle, rest = n - half;
  if (upper) {
    solve_triangle(a.at(half, half), upper, unit, rest, x.at(half, 0), k);
    multiply_into(x, half, k, rest, a.at(0, half), x.at(half, 0), T(-1), /*adds=*/true);
    solve_triangle(a, upper, unit, half, x, k);
  } else {
    solve_triangle(a, upper, unit, half, x, k);
    multiply_into(x.at(half, 0), rest, k, half, a.at(half, 0), x, T(-1), /*adds=*/true);
    solve_triangle(a.at(half, half), upper, unit, rest, x.at(half, 0), k);
  }
}

template <class T>
T make_reflection(int64_t n, T* x, int64_t stride) {
  // In double, scaled where squares would be lost.
  const auto sum_of_squares = [&](double factor) {
    double sum = 0;
    if (stride == 1) {
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 1; i < n; ++i) sum += factor * x[i] * (factor * x[i]);
    } else {
      for (int64_t i = 1; i < n; ++i) sum += factor * x[i * stride] * (factor * x[i * stride]);
    }
    return sum;
  };
  double scale = 1, sum = sum_of_squares(1);
  if (sum < 0x1p-900 || std::isinf(sum)) {
    double largest = 0;
    for (int64_t i = 1; i < n; ++i) largest = std::max(largest, std::abs(static_cast<double>(x[i * stride])));
    if (largest == 0) return 0;
    scale = std::ldexp(1, std::clamp(std::ilogb(largest), -1000, 1000));
    sum = sum_of_squares(1 / scale);
  }
  const double alpha = static_cast<double>(x[0]) / scale;
  const double square = alpha * alpha + sum;
  const bool is_safe = square > 0x1p-900 && square < 0x1p+900;
  const double beta = -std::copysign(is_safe ? std::sqrt(square) : std::hypot(alpha, std::sqrt(sum)), alpha);
  const T factor = static_cast<T>(1 / (alpha - beta));
  if (scale == 1 && std::isfinite(factor) && factor != 0) {
    for (int64_t i = 1; i < n; ++i) x[i * stride] *= factor;
  } else {
    for (int64_t i = 1; i < n; ++i)
      x[i * stride] = static_cast<T>(static_cast<double>(x[i * stride]) / scale / (alpha - beta));
  }
  x[0] = static_cast<T>(beta * scale);
  return static_cast<T>((beta - alpha) / beta);
}

template <class T>
Reflections<T> join_reflections(Strided<T> a, const T* tau, int64_t m, int64_t count, T* v_data, T* t) {
  const Strided<T> v = column_major(v_data, m);
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t i = 0; i < j; ++i) v(i, j) = 0;
    v(j, j) = 1;
    for (int64_t i = j + 1; i < m; ++i) v(i, j) = a(i, j);
  }
  // t[0:j, j] = -tau[j] * t[0:j, 0:j] @ (v[:, 0:j]^T @ v[:, j])
  for (int64_t j = 0; j < count; ++j) {
    T products[kReflections];
    for (int64_t i = 0; i < j; ++i) {
      T sum = 0;
      const T *left = &v(0, i), *right = &v(0, j);
#pragma omp simd reduction(+ : sum)
      for (int64_t p = j; p < m; ++p) sum += left[p] * right[p];
      products[i] = -tau[j] * sum;
    }
    for (int64_t i = 0; i < j; ++i) {
      T sum = 0;
      for (int64_t p = i; p < j; ++p) sum += t[i * count + p] * products[p];
      t[i * count + j] = sum;
    }
    for (int64_t i = j + 1; i < count; ++i) t[i * count + j] = 0;
    t[j * count + j] = tau[j];
  }
  return {v, t, m, count};
}

template <class T>
void reflect(const Reflections<T>& r, bool transposed, Strided<T> c, int64_t n, T* work) {
  if (n == 0) return;
  const Strided<T> first{work, n, 1}, second{work + r.count * n, n, 1};
  Strided<T> t{r.t, r.count, 1};
  if (transposed) t = t.transposed();
  multiply_into(first, r.count, n, r.m, r.v.transposed(), c, T(1), /*adds=*/false);
  multiply_into(second, r.count, n, r.count, t, first, T(1), /*adds=*/false);
  multiply_into(c, r.m, n, r.count, r.v, second, T(-1), /*adds=*/true);
}

template <class T>
void Rotations<T>::apply() {
  constexpr int64_t L = kLanes<T>, kVectors = 8, kRows = kVectors * L;
  int32_t first = INT32_MAX, last = -1;
  for (int64_t r = 0; r < count_; ++r) {
    first = std::min({first, list_[r].a, list_[r].b});
    last = std::max({last, list_[r].a, list_[r].b});
  }
  const int64_t count = last - first + 1;
  const auto some_rows = [&](int64_t begin, int64_t end) {
    const Scratch<T> memory(count * kRows);  // the rows of a column side by side
    for (int64_t block = begin; block < end; ++block) {
      const int64_t row = block * kRows, rows = std::min(kRows, rows_ - row);
      const auto packed = [&](int64_t column) { return memory.get() + (column - first) * kRows; };
      for (int64_t j = first; j <= last; ++j) {
        std::copy_n(&columns_(row, j), rows, packed(j));
        std::fill(packed(j) + rows, packed(j) + kRows, T(0));
      }
      Vec<T> carried[kVectors] = {};
      T* holds = nullptr;
      const auto put_back = [&] {
#pragma GCC unroll 8
        for (int64_t v = 0; v < kVectors; ++v) store(holds + v * L, carried[v]);
      };
      for (int64_t r = 0; r < count_; ++r) {
        const Rotation& rotation = list_[r];
        T *const a = packed(rotation.a), *const b = packed(rotation.b);
        if (a != holds) {
          if (holds != nullptr) put_back();
#pragma GCC unroll 8
          for (int64_t v = 0; v < kVectors; ++v) carried[v] = load(a + v * L);
        }
        const Vec<T> c = splat(rotation.c), s = splat(rotation.s);
#pragma GCC unroll 8
        for (int64_t v = 0; v < kVectors; ++v) {
          const Vec<T> left = carried[v], right = load(b + v * L);
          store(a + v * L, c * left + s * right);
          carried[v] = c * right - s * left;
        }
        holds = b;
      }
      put_back();
      for (int64_t j = first; j <= last; ++j) std::copy_n(packed(j), rows, &columns_(row, j));
    }
  };
  if (count_ > 0)
    parallel_for((rows_ + kRows - 1) / kRows, std::max<int64_t>(1, 65536 / (count_ * kRows) + 1), some_rows);
  count_ = 0;
}

#define TERN_SHARED(T)                                                                                 \
  template void multiply_into(Strided<T>, int64_t, int64_t, int64_t, Strided<T>, Strided<T>, T, bool); \
  template void solve_triangle(Strided<T>, bool, bool, int64_t, Strided<T>, int64_t);                  \
  template T make_reflection(int64_t, T*, int64_t);                                                    \
  template Reflections<T> join_reflections(Strided<T>, const T*, int64_t, int64_t, T*, T*);            \
  template void reflect(const Reflections<T>&, bool, Strided<T>, int64_t, T*);                         \
  template class Rotations<T>;
TERN_SHARED(float)
TERN_SHARED(double)
#undef TERN_SHARED

void triangular_solve(const LaunchContext&, const TriangularSolveArgs& args) {
  visit_real(args.dtype, [&]<class T>() {
    const double work =
        static_cast<double>(args.n) * static_cast<double>(args.n) * static_cast<double>(args.k);
    each_matrix(args.batch, work, [&](int64_t i) {
      const Strided<T> a{const_cast<T*>(static_cast<const T*>(args.a)) + i * args.a_batch_stride,
                         args.a_row_stride, args.a_col_stride};
      const Strided<T> x{static_cast<T*>(args.x) + i * args.x_batch_stride, args.x_row_stride,
                         args.x_col_stride};
      with_order(args.n == args.k && args.x_col_stride == 1 ? args.n : 0, [&](auto order) {
        if constexpr (std::is_same_v<decltype(order), int64_t>)
          solve_triangle(a, args.upper, args.unit, args.n, x, args.k);
        else
          solve_rows(a, args.upper, args.unit, order, x.data, x.row_stride, order);
      });
    });
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
