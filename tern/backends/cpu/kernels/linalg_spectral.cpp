// Eigenvalues of symmetric matrices and singular values. Matrices are brought to two diagonals by
// reflections, whose products are delayed and done by panels (J. Dongarra, D. Sorensen, S. Hammarling, "Block
// reduction of matrices to condensed forms", 1989); those iterate in float64 (implicit QL and
// QR of LAPACK's dsteqr, the bidiagonal QR of LINPACK's dsvdc), and the rotations reach the vectors many at a
// time.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tern/backends/cpu/kernels/linalg.h"
#include "tern/device/launch.h"
#include "tern/kernels/linalg.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t kPanel = 32;
/// Orders up to which reflections are applied one by one.
constexpr int64_t kSmall = 96;
constexpr int kMostSweeps = 80;

template <class T>
T dot_of(const T* a, const T* b, int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
/// y += factor * x
template <class T>
void add_multiple(T* y, T factor, const T* x, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}
/// y -= a @ (b^T @ x) for `count` columns of a and b, each [n].
template <class T>
void subtract_product(T* y, Strided<T> a, int64_t y_length, Strided<T> b, const T* x, int64_t x_length,
                      int64_t count) {
  for (int64_t i = 0; i < count; ++i) add_multiple(y, -dot_of(&b(0, i), x, x_length), &a(0, i), y_length);
}

/// The largest magnitude; NaN or infinity where there is one.
template <class T>
T largest_of(const T* x, int64_t count) {
  T largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const T size = std::abs(x[i]);
    largest = size > largest || size != size ? size : largest;
    if (largest != largest) break;
  }
  return largest;
}
/// A power of two by which matrices are multiplied whose squares would be lost; else 1.
template <class T>
T scale_for(T largest) {
  constexpr int kMost = std::numeric_limits<T>::max_exponent / 3;
  if (largest == 0) return 1;
  const int exponent = std::ilogb(largest);
  return exponent > kMost || exponent < -kMost
             ? std::ldexp(T(1), std::clamp(-exponent, -3 * kMost + 2, 3 * kMost - 2))
             : T(1);
}
template <class T>
void multiply_by(T* x, int64_t count, T factor) {
  for (int64_t i = 0; i < count; ++i) x[i] *= factor;
}

/// Divides finite values by a power of two, which it returns, so that the largest is of the order of 1.
double divide_by_order(double* x, int64_t count) {
  const double largest = largest_of(x, count), order = largest == 0 ? 1 : std::ldexp(1, std::ilogb(largest));
  multiply_by(x, count, 1 / order);
  return order;
}
/// Beside values of the order of 1, what is 0; squares of what is above do not vanish.
constexpr double kTiny = 0x1p-400;

/// The deflation threshold of what becomes a T.
template <class T>
constexpr double threshold() {
  return sizeof(T) == 8 ? 0x1p-52 : 0x1p-30;
}

/// From reflections that begin a row below the diagonal to their product; see form_q().
template <class T>
void form_shifted_q(Strided<T> a, int64_t n, const T* tau) {
  if (n > 1) form_q(a.at(1, 0), n - 1, n - 1, n - 1, tau);
  for (int64_t j = n - 1; j > 0; --j) {
    a(0, j) = 0;
    std::copy_n(&a(0, j - 1) + 1, n - 1, &a(0, j) + 1);
  }
  std::fill_n(&a(0, 0), n, T(0));
  a(0, 0) = 1;
}

/// y = a @ x of a symmetric matrix whose lower triangle is read, column by column and once.
template <class T>
void multiply_symmetric(T* y, Strided<T> a, const T* x, int64_t n) {
  constexpr int64_t kColumns = 4;
  std::fill_n(y, n, T(0));
  int64_t j = 0;
  for (; j + kColumns <= n; j += kColumns) {
    for (int64_t c = 0; c < kColumns; ++c)
      for (int64_t i = c; i < kColumns; ++i) {
        y[j + i] += a(j + i, j + c) * x[j + c];
        if (i != c) y[j + c] += a(j + i, j + c) * x[j + i];
      }
    const T *const a0 = &a(0, j), *const a1 = &a(0, j + 1), *const a2 = &a(0, j + 2),
                   *const a3 = &a(0, j + 3);
    const T x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
    T s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (int64_t i = j + kColumns; i < n; ++i) {
      const T v = x[i];
      y[i] += (a0[i] * x0 + a1[i] * x1) + (a2[i] * x2 + a3[i] * x3);
      s0 += a0[i] * v;
      s1 += a1[i] * v;
      s2 += a2[i] * v;
      s3 += a3[i] * v;
    }
    y[j] += s0;
    y[j + 1] += s1;
    y[j + 2] += s2;
    y[j + 3] += s3;
  }
  for (int64_t c = j; c < n; ++c)
    for (int64_t i = c; i < n; ++i) {
      y[i] += a(i, c) * x[c];
      if (i != c) y[c] += a(i, c) * x[i];
    }
}

/// A small symmetric matrix, whose lower triangle is read, with each reflection applied at once.
template <class T>
void to_tridiagonal_small(Strided<T> a, int64_t n, double* d, double* e, T* tau) {
  T w[kSmall];
  for (int64_t k = 0; k < n; ++k) {
    d[k] = static_cast<double>(a(k, k));
    const int64_t rest = n - k - 1;
    if (rest == 0) break;
    T* const v = &a(k + 1, k);
    tau[k] = make_reflection(rest, v, /*stride=*/1);
    e[k] = static_cast<double>(v[0]);
    if (tau[k] == 0) continue;
    v[0] = 1;  // what stands there is not read again
    multiply_symmetric(w, a.at(k + 1, k + 1), v, rest);
    multiply_by(w, rest, tau[k]);
    add_multiple(w, -tau[k] / 2 * dot_of(w, v, rest), v, rest);
    for (int64_t j = 0; j < rest; ++j) {
      T* const column = &a(k + 1, k + 1 + j);
      const T of_v = w[j], of_w = v[j];
#pragma GCC ivdep
      for (int64_t i = j; i < rest; ++i) column[i] -= of_v * v[i] + of_w * w[i];
    }
  }
}

/// Symmetric `a`, whose lower triangle is read, to d and e = the two diagonals; the reflections stay below.
template <class T>
void to_tridiagonal(Strided<T> a, int64_t n, double* d, double* e, T* tau) {
  if (n <= kSmall) return to_tridiagonal_small(a, n, d, e, tau);
  constexpr int64_t panel = kPanel;
  const Scratch<T> memory(2 * n * panel);
  const Strided<T> vs = column_major(memory.get(), n), ws = column_major(memory.get() + n * panel, n);
  for (int64_t first = 0; first < n; first += panel) {
    const int64_t width = std::min(panel, n - first);
    for (int64_t j = 0; j < width; ++j) {
      const int64_t k = first + j, rest = n - k - 1;
      T* const column = &a(k, k);
      for (int64_t i = 0; i < j; ++i) {
        add_multiple(column, -ws(k, i), &vs(k, i), rest + 1);
        add_multiple(column, -vs(k, i), &ws(k, i), rest + 1);
      }
      d[k] = static_cast<double>(column[0]);
      if (rest == 0) break;
      tau[k] = make_reflection(rest, column + 1, /*stride=*/1);
      e[k] = static_cast<double>(column[1]);
      T *const v = &vs(k + 1, j), *const w = &ws(k + 1, j);
      v[-1] = w[-1] = 0;
      std::copy_n(column + 1, rest, v);
      v[0] = 1;
      if (tau[k] == 0) {
        std::fill_n(w, rest, T(0));
        continue;
      }
      multiply_symmetric(w, a.at(k + 1, k + 1), v, rest);
      subtract_product(w, vs.at(k + 1, 0), rest, ws.at(k + 1, 0), v, rest, j);
      subtract_product(w, ws.at(k + 1, 0), rest, vs.at(k + 1, 0), v, rest, j);
      multiply_by(w, rest, tau[k]);
      add_multiple(w, -tau[k] / 2 * dot_of(w, v, rest), v, rest);
    }
    const int64_t next = first + width;
    if (next >= n) break;
    constexpr int64_t kColumns = 128;  // at once, so that little is computed above the diagonal
    for (int64_t j = next; j < n; j += kColumns) {
      const int64_t columns = std::min(kColumns, n - j), rows = n - j;
      const Strided<T> part = a.at(j, j), v = vs.at(j, 0), w = ws.at(j, 0);
      multiply_into(part, rows, columns, width, v, w.transposed(), T(-1), /*adds=*/true);
      multiply_into(part, rows, columns, width, w, v.transposed(), T(-1), /*adds=*/true);
    }
  }
}

/// Eigenvalues of the tridiagonal matrix, not in order; d and e are of the order of 1. False where they do
/// not converge. As in LAPACK's dsteqr, a block is swept towards its end of smaller values: where those of
/// rounding stand beside large ones, sweeps in the other direction stall.
bool iterate_tridiagonal(int64_t n, double* d, double* e, double eps, auto&& rotate) {
  const auto splits = [&](int64_t i) {
    return std::abs(e[i]) <= kTiny + eps * (std::abs(d[i]) + std::abs(d[i + 1]));
  };
  int64_t sweeps = kMostSweeps * n;
  for (int64_t last = n - 1; last > 0;) {
    if (splits(last - 1)) {
      --last;
      continue;
    }
    if (sweeps-- == 0) return false;
    int64_t first = last - 1;
    while (first > 0 && !splits(first - 1)) --first;
    // Of the block, in an order in which its value of index 0 converges.
    const bool is_reversed = std::abs(d[last]) < std::abs(d[first]);
    const int64_t count = last - first;
    const auto at = [&](int64_t i) { return is_reversed ? last - i : first + i; };
    const auto value = [&](int64_t i) -> double& { return d[at(i)]; };
    const auto beside = [&](int64_t i) -> double& { return e[is_reversed ? last - 1 - i : first + i]; };
    const double slope = (value(1) - value(0)) / (2 * beside(0));
    double g = value(count) - value(0) + beside(0) / (slope + std::copysign(std::hypot(slope, 1.0), slope));
    double s = 1, c = 1, p = 0;
    int64_t i = count - 1;
    for (; i >= 0; --i) {
      const double f = s * beside(i), b = c * beside(i), length = std::sqrt(f * f + g * g);
      if (i + 1 < count) beside(i + 1) = length;
      if (length == 0) break;
      s = f / length;
      c = g / length;
      g = value(i + 1) - p;
      const double r = (value(i) - g) * s + 2 * c * b;
      p = s * r;
      value(i + 1) = g + p;
      g = c * r - b;
      rotate(at(i + 1), at(i), c, s);
    }
    value(i + 1) -= p;
    if (i < 0) beside(0) = g;
  }
  return true;
}

/// Puts values in order, and columns of matrices with them.
template <class Before, class Swap>
void sort_values(int64_t n, double* values, const Before& before, const Swap& swap) {
  for (int64_t i = 0; i < n; ++i) {
    int64_t first = i;
    for (int64_t j = i + 1; j < n; ++j)
      if (before(values[j], values[first])) first = j;
    if (first == i) continue;
    std::swap(values[i], values[first]);
    swap(i, first);
  }
}

template <class T>
void swap_columns(Strided<T> a, int64_t rows, int64_t i, int64_t j) {
  std::swap_ranges(&a(0, i), &a(0, i) + rows, &a(0, j));
}

template <class T>
bool solve_eigen(const EighArgs& args, T* data, T* values) {
  const int64_t n = args.n;
  const Strided<T> a = column_major(data, n);
  if (args.upper)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = j + 1; i < n; ++i) a(i, j) = a(j, i);
  T largest = 0;
  for (int64_t j = 0; j < n && std::isfinite(largest); ++j) {
    const T of_column = largest_of(&a(j, j), n - j);
    largest = of_column > largest || of_column != of_column ? of_column : largest;
  }
  if (!std::isfinite(largest)) return false;
  const T scale = scale_for(largest);
  if (scale != 1)
    for (int64_t j = 0; j < n; ++j) multiply_by(&a(j, j), n - j, scale);
  const Scratch<double> diagonals(2 * n);
  const Scratch<T> taus(n);
  double *const d = diagonals.get(), *const e = d + n;
  to_tridiagonal(a, n, d, e, taus.get());
  const double unit = divide_by_order(d, 2 * n - 1);
  bool converged = false;
  if (args.vectors) {
    form_shifted_q(a, n, taus.get());
    Rotations<T> rotations(a, n);
    converged = iterate_tridiagonal(n, d, e, threshold<T>(), [&](int64_t i, int64_t j, double c, double s) {
      rotations.add(i, j, c, s);
    });
    rotations.apply();
    sort_values(n, d, std::less<>(), [&](int64_t i, int64_t j) { swap_columns(a, n, i, j); });
  } else {
    converged = iterate_tridiagonal(n, d, e, threshold<T>(), [](int64_t, int64_t, double, double) {});
    std::sort(d, d + n);
  }
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<T>(d[i] * unit / static_cast<double>(scale));
  return converged;
}

/// The same as to_bidiagonal() for a small matrix, with each reflection applied at once.
template <class T>
void to_bidiagonal_small(Strided<T> a, int64_t n, double* d, double* e, T* tau_left, Strided<T> right,
                         T* tau_right) {
  T x[kSmall];
  for (int64_t k = 0; k < n; ++k) {
    const int64_t rest = n - k - 1;
    T* const v = &a(k, k);
    tau_left[k] = make_reflection(rest + 1, v, /*stride=*/1);
    d[k] = static_cast<double>(v[0]);
    if (rest == 0) break;
    v[0] = 1;  // what stands there is not read again
    for (int64_t j = 0; j < rest; ++j) {
      T* const column = &a(k, k + 1 + j);
      add_multiple(column, -tau_left[k] * dot_of(column, v, rest + 1), v, rest + 1);
    }
    T* const u = &right(k + 1, k);
    for (int64_t j = 0; j < rest; ++j) u[j] = a(k, k + 1 + j);
    tau_right[k] = make_reflection(rest, u, /*stride=*/1);
    e[k] = static_cast<double>(u[0]);
    if (tau_right[k] == 0) continue;
    u[0] = 1;
    std::fill_n(x, rest, T(0));
    for (int64_t j = 0; j < rest; ++j) add_multiple(x, u[j], &a(k + 1, k + 1 + j), rest);
    for (int64_t j = 0; j < rest; ++j) add_multiple(&a(k + 1, k + 1 + j), -tau_right[k] * u[j], x, rest);
  }
}

/// Square `a` to d and e = the diagonal and the one above; the reflections of columns stay in `a`, those of
/// rows, as columns, in `right`.
template <class T>
void to_bidiagonal(Strided<T> a, int64_t n, double* d, double* e, T* tau_left, Strided<T> right,
                   T* tau_right) {
  if (n <= kSmall) return to_bidiagonal_small(a, n, d, e, tau_left, right, tau_right);
  constexpr int64_t panel = kPanel;
  const Scratch<T> memory(4 * n * panel + n);
  T* const start = memory.get();
  const Strided<T> vs = column_major(start, n), us = column_major(start + n * panel, n),
                   xs = column_major(start + 2 * n * panel, n), ys = column_major(start + 3 * n * panel, n);
  T* const row = start + 4 * n * panel;
  for (int64_t first = 0; first < n; first += panel) {
    const int64_t width = std::min(panel, n - first);
    for (int64_t j = 0; j < width; ++j) {
      const int64_t k = first + j, rest = n - k - 1;
      T* const column = &a(k, k);
      for (int64_t i = 0; i < j; ++i) {
        add_multiple(column, -ys(k, i), &vs(k, i), rest + 1);
        add_multiple(column, -us(k, i), &xs(k, i), rest + 1);
      }
      tau_left[k] = make_reflection(rest + 1, column, /*stride=*/1);
      d[k] = static_cast<double>(column[0]);
      T* const v = &vs(k, j);
      std::copy_n(column, rest + 1, v);
      v[0] = 1;
      xs(k, j) = us(k, j) = ys(k, j) = 0;
      if (rest == 0) break;
      T *const y = &ys(k + 1, j), *const u = &us(k + 1, j), *const x = &xs(k + 1, j);
      multiply_into({y, rest, 1}, 1, rest, rest + 1, {v, rest + 1, 1}, a.at(k, k + 1), T(1), /*adds=*/false);
      subtract_product(y, ys.at(k + 1, 0), rest, vs.at(k, 0), v, rest + 1, j);
      subtract_product(y, us.at(k + 1, 0), rest, xs.at(k, 0), v, rest + 1, j);
      multiply_by(y, rest, tau_left[k]);

      for (int64_t c = 0; c < rest; ++c) row[c] = a(k, k + 1 + c);
      for (int64_t i = 0; i <= j; ++i) add_multiple(row, -vs(k, i), &ys(k + 1, i), rest);
      for (int64_t i = 0; i < j; ++i) add_multiple(row, -xs(k, i), &us(k + 1, i), rest);
      tau_right[k] = make_reflection(rest, row, /*stride=*/1);
      e[k] = static_cast<double>(row[0]);
      std::copy_n(row, rest, u);
      u[0] = 1;
      std::copy_n(row, rest, &right(k + 1, k));
      multiply_into({x, 1, rest}, rest, 1, rest, a.at(k + 1, k + 1), {u, 1, rest}, T(1), /*adds=*/false);
      subtract_product(x, vs.at(k + 1, 0), rest, ys.at(k + 1, 0), u, rest, j + 1);
      subtract_product(x, xs.at(k + 1, 0), rest, us.at(k + 1, 0), u, rest, j);
      multiply_by(x, rest, tau_right[k]);
    }
    const int64_t next = first + width;
    if (next >= n) break;
    const Strided<T> trailing = a.at(next, next);
    multiply_into(trailing, n - next, n - next, width, vs.at(next, 0), ys.at(next, 0).transposed(), T(-1),
                  /*adds=*/true);
    multiply_into(trailing, n - next, n - next, width, xs.at(next, 0), us.at(next, 0).transposed(), T(-1),
                  /*adds=*/true);
  }
}

struct Turn {
  double c = 1, s = 0, length = 0;
};
Turn turn_of(double f, double g) {
  const double length = std::sqrt(f * f + g * g);
  return length == 0 ? Turn{} : Turn{f / length, g / length, length};
}

/// Singular values of the bidiagonal matrix, which may be negative and are in no order; s and e are of the
/// order of 1. False where they do not converge.
bool iterate_bidiagonal(int64_t n, double* s, double* e, double eps, auto&& rotate_left,
                        auto&& rotate_right) {
  if (n > 0) e[n - 1] = 0;
  int sweep = 0;
  for (int64_t p = n; p > 0;) {
    int64_t k = p - 2;
    while (k >= 0 && std::abs(e[k]) > kTiny + eps * (std::abs(s[k]) + std::abs(s[k + 1]))) --k;
    if (k >= 0) e[k] = 0;
    if (k == p - 2) {
      --p;
      sweep = 0;
      continue;
    }
    int64_t zero = p - 1;
    for (; zero > k; --zero) {
      const double beside =
          (zero != p - 1 ? std::abs(e[zero]) : 0) + (zero != k + 1 ? std::abs(e[zero - 1]) : 0);
      if (std::abs(s[zero]) <= kTiny + eps * beside) break;
    }
    if (zero > k) s[zero] = 0;
    ++k;
    if (zero == p - 1) {  // the last value is 0: its column loses what is above
      double f = std::exchange(e[p - 2], 0);
      for (int64_t j = p - 2; j >= k; --j) {
        const Turn t = turn_of(s[j], f);
        s[j] = t.length;
        if (j != k) {
          f = -t.s * e[j - 1];
          e[j - 1] *= t.c;
        }
        rotate_right(j, p - 1, t.c, t.s);
      }
    } else if (zero >= k) {  // one in the middle is 0: its row loses what is beside it
      double f = std::exchange(e[zero], 0);
      for (int64_t j = zero + 1; j < p; ++j) {
        const Turn t = turn_of(s[j], f);
        s[j] = t.length;
        f = -t.s * e[j];
        e[j] *= t.c;
        rotate_left(j, zero, t.c, t.s);
      }
    } else {
      if (++sweep > kMostSweeps) return false;
      const double scale = std::max(
          {std::abs(s[p - 1]), std::abs(s[p - 2]), std::abs(e[p - 2]), std::abs(s[k]), std::abs(e[k])});
      const double sp = s[p - 1] / scale, before = s[p - 2] / scale, ep = e[p - 2] / scale, sk = s[k] / scale,
                   ek = e[k] / scale;
      const double b = ((before + sp) * (before - sp) + ep * ep) / 2, c = sp * ep * (sp * ep);
      double shift = 0;
      if (b != 0 || c != 0) shift = c / (b + std::copysign(std::sqrt(b * b + c), b));
      double f = (sk + sp) * (sk - sp) + shift, g = sk * ek;
      for (int64_t j = k; j < p - 1; ++j) {
        Turn t = turn_of(f, g);
        if (j != k) e[j - 1] = t.length;
        f = t.c * s[j] + t.s * e[j];
        e[j] = t.c * e[j] - t.s * s[j];
        g = t.s * s[j + 1];
        s[j + 1] *= t.c;
        rotate_right(j, j + 1, t.c, t.s);
        t = turn_of(f, g);
        s[j] = t.length;
        f = t.c * e[j] + t.s * s[j + 1];
        s[j + 1] = t.c * s[j + 1] - t.s * e[j];
        g = t.s * e[j + 1];
        e[j + 1] *= t.c;
        rotate_left(j, j + 1, t.c, t.s);
      }
      e[p - 2] = f;
    }
  }
  return true;
}

/// Of a square matrix in `a`, which is u afterwards; v, column-major. Without vectors v is scratch.
template <class T>
bool solve_singular(Strided<T> a, int64_t n, bool vectors, T* values, Strided<T> v) {
  const Scratch<double> diagonals(2 * n);
  const Scratch<T> taus(2 * n);
  double *const d = diagonals.get(), *const e = d + n;
  T *const tau_left = taus.get(), *const tau_right = tau_left + n;
  to_bidiagonal(a, n, d, e, tau_left, v, tau_right);
  const double unit = divide_by_order(d, 2 * n - 1);
  const auto nothing = [](int64_t, int64_t, double, double) {};
  bool converged = false;
  if (vectors) {
    form_q(a, n, n, n, tau_left);
    form_shifted_q(v, n, tau_right);
    Rotations<T> left(a, n), right(v, n);
    converged = iterate_bidiagonal(
        n, d, e, threshold<T>(), [&](int64_t i, int64_t j, double c, double s) { left.add(i, j, c, s); },
        [&](int64_t i, int64_t j, double c, double s) { right.add(i, j, c, s); });
    left.apply();
    right.apply();
  } else {
    converged = iterate_bidiagonal(n, d, e, threshold<T>(), nothing, nothing);
  }
  for (int64_t i = 0; i < n; ++i) {
    if (!(d[i] < 0)) continue;
    d[i] = -d[i];
    if (vectors) multiply_by(&v(0, i), n, T(-1));
  }
  sort_values(n, d, std::greater<>(), [&](int64_t i, int64_t j) {
    if (!vectors) return;
    swap_columns(a, n, i, j);
    swap_columns(v, n, i, j);
  });
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<T>(d[i] * unit);
  return converged;
}

/// Of one matrix [m, n]; a taller one by way of its R.
template <class T>
bool solve_svd(const SvdArgs& args, T* data, T* u, T* values, T* vh) {
  const int64_t m = args.m, n = args.n;
  const Strided<T> a = column_major(data, m);
  const T largest = largest_of(data, m * n), scale = std::isfinite(largest) ? scale_for(largest) : T(1);
  if (!std::isfinite(largest)) return false;
  if (scale != 1) multiply_by(data, m * n, scale);
  const bool tall = m > n;
  const Scratch<T> memory((args.vectors ? 0 : n * n) + (tall ? n * n + n : 0));
  T* free = memory.get();
  T* const v = args.vectors ? vh : std::exchange(free, free + n * n);
  Strided<T> square = a;
  T* const tau = free + (tall ? n * n : 0);
  if (tall) {
    square = column_major(free, n);
    factor_qr(a, m, n, tau);
    for (int64_t j = 0; j < n; ++j) {
      std::copy_n(&a(0, j), j + 1, &square(0, j));
      std::fill(&square(0, j) + j + 1, &square(0, j) + n, T(0));
    }
  }
  const bool converged = solve_singular(square, n, args.vectors, values, column_major(v, n));
  if (scale != 1) multiply_by(values, n, 1 / scale);
  if (!args.vectors) return converged;
  if (!tall) {
    std::copy_n(data, n * n, u);
    return converged;
  }
  const Strided<T> q = column_major(u, m);
  std::copy_n(data, m * n, u);
  form_q(q, m, args.columns, n, tau);
  std::copy_n(u, m * n, data);
  multiply_into(q, m, n, n, a, square, T(1), /*adds=*/false);
  return converged;
}

}  // namespace

void eigh(const LaunchContext&, const EighArgs& args) {
  const int64_t n = args.n;
  visit_real(args.dtype, [&]<class T>() {
    each_matrix(args.batch, 9 * cube(n), [&](int64_t i) {
      T *const a = static_cast<T*>(args.a) + i * n * n, *const values = static_cast<T*>(args.values) + i * n;
      const bool found = solve_eigen(args, a, values);
      args.info[i] = found ? 0 : static_cast<int32_t>(n);
      if (found) return;
      std::fill_n(a, n * n, std::numeric_limits<T>::quiet_NaN());
      std::fill_n(values, n, std::numeric_limits<T>::quiet_NaN());
    });
  });
}

void svd(const LaunchContext&, const SvdArgs& args) {
  const int64_t m = args.m, n = args.n;
  visit_real(args.dtype, [&]<class T>() {
    each_matrix(args.batch,
                20 * cube(n) + static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(n),
                [&](int64_t i) {
                  T* const s = static_cast<T*>(args.s) + i * n;
                  T* const u = args.vectors ? static_cast<T*>(args.u) + i * m * args.columns : nullptr;
                  T* const vh = args.vectors ? static_cast<T*>(args.vh) + i * n * n : nullptr;
                  const bool found = solve_svd(args, static_cast<T*>(args.a) + i * m * n, u, s, vh);
                  args.info[i] = found ? 0 : static_cast<int32_t>(n);
                  if (found) return;
                  constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
                  std::fill_n(s, n, kNaN);
                  if (!args.vectors) return;
                  std::fill_n(u, m * args.columns, kNaN);
                  std::fill_n(vh, n * n, kNaN);
                });
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
