// What the order-free reductions do with an element and with two partial results; see reduce_vector.h for the
// concept.
#pragma once

#include <cmath>
#include <limits>

#include "tern/backends/cpu/kernels/reduce_loops.h"
#include "tern/kernels/math_double.h"

namespace tern::cpu::TERN_CPU_VARIANT::wide {

/// Integers are added and multiplied modulo 2^64.
template <class T>
using SumAcc = std::conditional_t<std::is_integral_v<Compute<T>>, uint64_t, Compute<T>>;

template <class T>
struct Sum {
  using Acc = SumAcc<T>;
  Acc identity() const { return Acc(0); }
  template <class V>
  [[gnu::always_inline]] void map(V&, int64_t) const {}
  template <class V>
  [[gnu::always_inline]] void combine(V& a, const V& b) const {
    a += b;
  }
};

template <class T>
struct Prod {
  using Acc = SumAcc<T>;
  Acc identity() const { return Acc(1); }
  template <class V>
  [[gnu::always_inline]] void map(V&, int64_t) const {}
  template <class V>
  [[gnu::always_inline]] void combine(V& a, const V& b) const {
    a *= b;
  }
};

/// a = the larger (else the smaller) of both; NaN wins.
template <bool largest, class C, class V>
[[gnu::always_inline]] inline void take_extreme(V& a, const V& b) {
  // Two or three instructions, for which compilers take four: max(b, a) is a where either is NaN.
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<V, Register<float>>) {
    const __m512 x = (__m512)a, y = (__m512)b;
    const __mmask16 number = _mm512_cmp_ps_mask(y, y, _CMP_ORD_Q);
    a = (V)(largest ? _mm512_mask_max_ps(y, number, y, x) : _mm512_mask_min_ps(y, number, y, x));
  } else
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<V, Register<float>>) {
    const __m256 x = (__m256)a, y = (__m256)b, extreme = largest ? _mm256_max_ps(y, x) : _mm256_min_ps(y, x);
    a = (V)_mm256_blendv_ps(extreme, y, _mm256_cmp_ps(y, y, _CMP_UNORD_Q));
  } else
#endif
      if constexpr (std::is_floating_point_v<C>) {
    if constexpr (largest)
      a = ((b > a) | (b != b)) ? b : a;
    else
      a = ((b < a) | (b != b)) ? b : a;
  } else {
    if constexpr (largest)
      a = b > a ? b : a;
    else
      a = b < a ? b : a;
  }
}

template <bool largest, class T>
struct Extreme {
  using Acc = Compute<T>;
  using Limits = std::numeric_limits<Acc>;
  Acc identity() const {
    if constexpr (Limits::has_infinity)
      return largest ? -Limits::infinity() : Limits::infinity();
    else
      return largest ? Limits::lowest() : Limits::max();
  }
  template <class V>
  [[gnu::always_inline]] void map(V&, int64_t) const {}
  template <class V>
  [[gnu::always_inline]] void combine(V& a, const V& b) const {
    take_extreme<largest, Acc>(a, b);
  }
};
template <class T>
using Max = Extreme<true, T>;
template <class T>
using Min = Extreme<false, T>;

/// The value bits of an element as an unsigned integer of its width: 0 for zeros of both signs.
template <class U>
constexpr U value_bits(bool floating) {
  return static_cast<U>(floating ? std::numeric_limits<U>::max() >> 1 : std::numeric_limits<U>::max());
}

/// Nonzero when any element has one of the bits.
template <class U>
struct AnyBits {
  using Acc = U;
  U bits;
  Acc identity() const { return 0; }
  template <class V>
  [[gnu::always_inline]] void map(V& v, int64_t) const {
    v &= bits;
  }
  template <class V>
  [[gnu::always_inline]] void combine(V& a, const V& b) const {
    a |= b;
  }
};

/// Nonzero when any element has none of the bits.
template <class U>
struct AnyWithoutBits {
  using Acc = U;
  U bits;
  Acc identity() const { return 0; }
  template <class V>
  [[gnu::always_inline]] void map(V& v, int64_t) const {
    v = (V)((v & bits) == 0);
  }
  template <class V>
  [[gnu::always_inline]] void combine(V& a, const V& b) const {
    a |= b;
  }
};

/// How many elements have one of the bits.
template <class U>
struct CountBits {
  using Acc = uint64_t;
  uint64_t bits;
  Acc identity() const { return 0; }
  template <class V>
  [[gnu::always_inline]] void map(V& v, int64_t) const {
    v = (V)((v & bits) != 0) & 1;
  }
  template <class V>
  [[gnu::always_inline]] void combine(V& a, const V& b) const {
    a += b;
  }
};

template <class T>
struct SumNumbers : Sum<T> {
  template <class V>
  [[gnu::always_inline]] void map(V& v, int64_t) const {
    v = v != v ? V{} : v;
  }
};

template <class V>
[[gnu::always_inline]] inline void take_abs(V& v) {
  v = v < 0 ? -v : v + 0;  // of -0 too
}

template <class T>
struct SumAbs : Sum<T> {
  template <class V>
  [[gnu::always_inline]] void map(V& v, int64_t) const {
    take_abs(v);
  }
};

template <class T>
struct SumSquares : Sum<T> {
  template <class V>
  [[gnu::always_inline]] void map(V& v, int64_t) const {
    v *= v;
  }
};

template <class T>
struct MaxAbs : Max<T> {
  Compute<T> identity() const { return 0; }
  template <class V>
  [[gnu::always_inline]] void map(V& v, int64_t) const {
    take_abs(v);
  }
};

template <class T>
struct MinAbs : Min<T> {
  template <class V>
  [[gnu::always_inline]] void map(V& v, int64_t) const {
    take_abs(v);
  }
};

template <class T>
struct SumPowers : Sum<T> {
  using C = Compute<T>;
  C exponent;
  explicit SumPowers(C p) : exponent(p) {}
  [[gnu::noinline]] void map(C& v, int64_t) const { v = math::pow(std::abs(v), exponent); }
  [[gnu::noinline]] void map(Register<C>& v, int64_t) const {
    C lanes[kRegisterLanes<C>];
    std::memcpy(lanes, &v, sizeof v);
    for (C& x : lanes) x = math::pow(std::abs(x), exponent);
    std::memcpy(&v, lanes, sizeof v);
  }
};

/// The same for a small whole exponent, by products.
template <class T>
struct SumWholePowers : Sum<T> {
  int exponent;
  explicit SumWholePowers(int p) : exponent(p) {}
  template <class V>
  [[gnu::always_inline]] void map(V& v, int64_t) const {
    take_abs(v);
    const V base = v;
    for (int i = 1; i < exponent; ++i) v *= base;
  }
};

/// sum(x - shift); `shift` holds the value of each column of the tile.
template <class T>
struct SumDeviations : Sum<T> {
  using C = Compute<T>;
  const Register<C>* shift;
  explicit SumDeviations(const Register<C>* values) : shift(values) {}
  [[gnu::always_inline]] void map(C& v, int64_t) const { v -= shift[0][0]; }
  [[gnu::always_inline]] void map(Register<C>& v, int64_t j) const { v -= shift[j]; }
};

template <class T>
struct SumSquaredDeviations : SumDeviations<T> {
  using C = Compute<T>;
  using SumDeviations<T>::SumDeviations;
  [[gnu::always_inline]] void map(C& v, int64_t) const {
    v -= this->shift[0][0];
    v *= v;
  }
  [[gnu::always_inline]] void map(Register<C>& v, int64_t j) const {
    v -= this->shift[j];
    v *= v;
  }
};

}  // namespace tern::cpu::TERN_CPU_VARIANT::wide
