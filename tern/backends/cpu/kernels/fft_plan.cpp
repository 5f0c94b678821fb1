// The passes of Fourier transforms, and what they need to know of a length.
#include "tern/backends/cpu/kernels/fft_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>

#include "tern/backends/cpu/kernels/scratch.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// A pass of this radix takes radix^2 products; beyond it a convolution is faster.
constexpr int kLargestRadix = 64;
constexpr size_t kPlansKept = 64;

template <bool forward, class T>
[[gnu::always_inline]] inline ComplexLanes<T> turned(const ComplexLanes<T>& z, T re, T im) {
  if constexpr (forward) return {z.re * re - z.im * im, z.re * im + z.im * re};
  return {z.re * re + z.im * im, z.im * re - z.re * im};
}
/// Times -i, backwards times i.
template <bool forward, class T>
[[gnu::always_inline]] inline ComplexLanes<T> quarter_turn(const ComplexLanes<T>& z) {
  if constexpr (forward) return {z.im, -z.re};
  return {-z.im, z.re};
}
template <class T>
[[gnu::always_inline]] inline ComplexLanes<T> operator+(const ComplexLanes<T>& a, const ComplexLanes<T>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
[[gnu::always_inline]] inline ComplexLanes<T> operator-(const ComplexLanes<T>& a, const ComplexLanes<T>& b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
[[gnu::always_inline]] inline ComplexLanes<T> scaled(const ComplexLanes<T>& a, T by) {
  return {a.re * by, a.im * by};
}

template <bool forward, class T>
[[gnu::always_inline]] inline void dft4(ComplexLanes<T>& a, ComplexLanes<T>& b, ComplexLanes<T>& c,
                                        ComplexLanes<T>& d) {
  const ComplexLanes<T> even = a + c, odd = a - c, sum = b + d, turn = quarter_turn<forward>(b - d);
  a = even + sum;
  b = odd + turn;
  c = even - sum;
  d = odd - turn;
}

/// The transform of r numbers, in their place.
template <int r, bool forward, class T>
[[gnu::always_inline]] inline void dft(ComplexLanes<T> (&a)[r]) {
  using Z = ComplexLanes<T>;
  if constexpr (r == 2) {
    const Z difference = a[0] - a[1];
    a[0] = a[0] + a[1];
    a[1] = difference;
  } else if constexpr (r == 3) {
    constexpr T kSin = T(0.86602540378443864676);
    const Z sum = a[1] + a[2], base = a[0] - scaled(sum, T(0.5));
    const Z turn = scaled(quarter_turn<forward>(a[1] - a[2]), kSin);
    a[0] = a[0] + sum;
    a[1] = base + turn;
    a[2] = base - turn;
  } else if constexpr (r == 4) {
    dft4<forward>(a[0], a[1], a[2], a[3]);
  } else if constexpr (r == 5) {
    constexpr T c1 = T(0.30901699437494742410), c2 = T(-0.80901699437494742410);
    constexpr T s1 = T(0.95105651629515357212), s2 = T(0.58778525229247312917);
    const Z p = a[1] + a[4], q = a[2] + a[3];
    const Z u = quarter_turn<forward>(a[1] - a[4]), v = quarter_turn<forward>(a[2] - a[3]);
    const Z first = a[0] + scaled(p, c1) + scaled(q, c2), second = a[0] + scaled(p, c2) + scaled(q, c1);
    const Z first_turn = scaled(u, s1) + scaled(v, s2), second_turn = scaled(u, s2) - scaled(v, s1);
    a[0] = a[0] + p + q;
    a[1] = first + first_turn;
    a[2] = second + second_turn;
    a[3] = second - second_turn;
    a[4] = first - first_turn;
  } else {
    static_assert(r == 8);
    constexpr T kHalf = T(0.70710678118654752440);
    dft4<forward>(a[0], a[2], a[4], a[6]);
    dft4<forward>(a[1], a[3], a[5], a[7]);
    const Z odd[4] = {a[1], turned<forward>(a[3], kHalf, -kHalf), quarter_turn<forward>(a[5]),
                      turned<forward>(a[7], -kHalf, -kHalf)};
    const Z even[4] = {a[0], a[2], a[4], a[6]};
    TERN_UNROLL for (int k = 0; k < 4; ++k) {
      a[k] = even[k] + odd[k];
      a[k + 4] = even[k] - odd[k];
    }
  }
}

/// The butterflies of all `before` places of one p.
template <int r, bool forward, bool turns, class T>
[[gnu::always_inline]] inline void butterflies(const FftStage<T>& stage, int64_t p, const ComplexLanes<T>* x,
                                               ComplexLanes<T>* y) {
  const int64_t s = stage.before, apart = stage.rest * s;
  const T* const w = stage.turns.data() + p * (r - 1) * 2;
  const ComplexLanes<T>* from = x + p * s;
  ComplexLanes<T>* to = y + p * r * s;
  for (int64_t q = 0; q < s; ++q) {
    ComplexLanes<T> a[r];
    TERN_UNROLL for (int k = 0; k < r; ++k) a[k] = from[q + k * apart];
    dft<r, forward>(a);
    to[q] = a[0];
    TERN_UNROLL for (int k = 1; k < r; ++k) {
      to[q + k * s] = turns ? turned<forward>(a[k], w[2 * k - 2], w[2 * k - 1]) : a[k];
    }
  }
}

template <int r, bool forward, class T>
[[gnu::noinline]] void pass(const FftStage<T>& stage, const ComplexLanes<T>* x, ComplexLanes<T>* y) {
  butterflies<r, forward, false>(stage, 0, x, y);
  for (int64_t p = 1; p < stage.rest; ++p) butterflies<r, forward, true>(stage, p, x, y);
}

/// The same for any radix.
template <bool forward, class T>
[[gnu::noinline]] void pass_of_any(const FftStage<T>& stage, const ComplexLanes<T>* x, ComplexLanes<T>* y) {
  const int64_t r = stage.radix, s = stage.before;
  ComplexLanes<T> a[kLargestRadix];
  for (int64_t p = 0; p < stage.rest; ++p) {
    const T* const w = stage.turns.data() + p * (r - 1) * 2;
    for (int64_t q = 0; q < s; ++q) {
      for (int64_t j = 0; j < r; ++j) a[j] = x[(p + j * stage.rest) * s + q];
      for (int64_t k = 0; k < r; ++k) {
        ComplexLanes<T> sum = a[0];
        for (int64_t j = 1, at = k; j < r; ++j, at = at + k < r ? at + k : at + k - r)
          sum = sum + turned<forward>(a[j], stage.roots[static_cast<size_t>(2 * at)],
                                      stage.roots[static_cast<size_t>(2 * at + 1)]);
        y[(p * r + k) * s + q] = k == 0 ? sum : turned<forward>(sum, w[2 * k - 2], w[2 * k - 1]);
      }
    }
  }
}

/// Appends exp(-2 pi i k / n).
template <class T>
void append_root(std::vector<T>& to, int64_t k, int64_t n) {
  const UnitRoot root = unit_root(k % n, n);
  to.push_back(static_cast<T>(root.re));
  to.push_back(static_cast<T>(root.im));
}

}  // namespace

UnitRoot unit_root(int64_t k, int64_t n) {
  // By the octant in which it lies: sines and cosines of small angles are exact to the last bit.
  if (8 * k > 4 * n) {
    const UnitRoot mirrored = unit_root(n - k, n);
    return {mirrored.re, -mirrored.im};
  }
  if (8 * k > 2 * n) {  // beyond a quarter: exp(-i (pi / 2 + t)) = -i exp(-i t), in 4ths of n
    const double angle = std::numbers::pi * static_cast<double>(4 * k - n) / static_cast<double>(2 * n);
    return {-std::sin(angle), -std::cos(angle)};
  }
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

template <class T>
std::vector<T> chirp_of(int64_t n) {
  std::vector<T> chirp;
  for (int64_t j = 0, square = 0; j < n; square = (square + 2 * j + 1) % (2 * n), ++j)
    append_root(chirp, square, 2 * n);  // exact, where the angle of j^2 is not
  return chirp;
}
template std::vector<float> chirp_of(int64_t);
template std::vector<double> chirp_of(int64_t);

template <class T>
std::shared_ptr<const FftPlan<T>> FftPlan<T>::of(int64_t n) {
  static std::mutex mutex;
  static std::map<int64_t, std::shared_ptr<const FftPlan<T>>> plans;
  {
    const std::scoped_lock lock(mutex);
    if (const auto found = plans.find(n); found != plans.end()) return found->second;
  }
  auto plan = std::make_shared<const FftPlan<T>>(n);  // outside the lock: it may need another plan
  const std::scoped_lock lock(mutex);
  if (plans.size() >= kPlansKept) plans.clear();
  return plans.try_emplace(n, std::move(plan)).first->second;
}

template <class T>
FftPlan<T>::FftPlan(int64_t n) : n_(n) {
  int64_t left = n;
  std::vector<int> radices;
  for (const int radix : {8, 4, 2, 3, 5})
    for (; left % radix == 0; left /= radix) radices.push_back(radix);
  for (int radix = 7; radix <= kLargestRadix && left > 1; radix += 2)
    for (; left % radix == 0; left /= radix) radices.push_back(radix);
  if (left > 1) {
    prepare_convolution();
    return;
  }
  int64_t rest = n, before = 1;
  for (const int radix : radices) add_stage(radix, rest, before);
}

template <class T>
void FftPlan<T>::add_stage(int radix, int64_t& rest, int64_t& before) {
  FftStage<T> stage{.radix = radix, .rest = rest / radix, .before = before, .turns = {}, .roots = {}};
  for (int64_t p = 0; p < stage.rest; ++p)
    for (int k = 1; k < radix; ++k) append_root(stage.turns, p * k, rest);
  if (radix > 5 && radix != 8)
    for (int k = 0; k < radix; ++k) append_root(stage.roots, k, radix);
  rest = stage.rest;
  before *= radix;
  stages_.push_back(std::move(stage));
}

template <class T>
void FftPlan<T>::prepare_convolution() {
  const auto length = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n_ - 1)));
  convolution_ = of(length);
  chirp_ = chirp_of<T>(n_);
  const Scratch<ComplexLanes<T>> buffers(2 * length);
  ComplexLanes<T>* const x = buffers.get();
  std::fill_n(x, length, ComplexLanes<T>{});
  for (int64_t j = 0; j < n_; ++j) {
    const T re = chirp_[static_cast<size_t>(2 * j)], im = -chirp_[static_cast<size_t>(2 * j + 1)];
    for (const int64_t at : {j, (length - j) % length}) {
      x[at].re[0] = re;
      x[at].im[0] = im;
    }
  }
  const ComplexLanes<T>* const y = convolution_->run(x, x + length, /*forward=*/true);
  const T scale = T(1) / static_cast<T>(length);
  for (int64_t k = 0; k < length; ++k) {
    spectrum_.push_back(y[k].re[0] * scale);
    spectrum_.push_back(y[k].im[0] * scale);
  }
}

template <class T>
template <bool forward>
ComplexLanes<T>* FftPlan<T>::run_stages(ComplexLanes<T>* x, ComplexLanes<T>* y) const {
  for (const FftStage<T>& stage : stages_) {
    switch (stage.radix) {
      case 2:
        pass<2, forward>(stage, x, y);
        break;
      case 3:
        pass<3, forward>(stage, x, y);
        break;
      case 4:
        pass<4, forward>(stage, x, y);
        break;
      case 5:
        pass<5, forward>(stage, x, y);
        break;
      case 8:
        pass<8, forward>(stage, x, y);
        break;
      default:
        pass_of_any<forward>(stage, x, y);
    }
    std::swap(x, y);
  }
  return x;
}

template <class T>
template <bool forward>
ComplexLanes<T>* FftPlan<T>::convolve(ComplexLanes<T>* x, ComplexLanes<T>* y) const {
  const int64_t length = convolution_->size();
  const auto turn_by = [](ComplexLanes<T>* z, const std::vector<T>& by, int64_t count) {
    for (int64_t j = 0; j < count; ++j)
      z[j] = turned<forward>(z[j], by[static_cast<size_t>(2 * j)], by[static_cast<size_t>(2 * j + 1)]);
  };
  turn_by(x, chirp_, n_);
  std::fill(x + n_, x + length, ComplexLanes<T>{});
  ComplexLanes<T>* z = convolution_->run(x, y, /*forward=*/true);
  turn_by(z, spectrum_, length);  // the spectrum of an even sequence: conjugated, that of its conjugate
  z = convolution_->run(z, z == x ? y : x, /*forward=*/false);
  turn_by(z, chirp_, n_);
  return z;
}

template <class T>
ComplexLanes<T>* FftPlan<T>::run(ComplexLanes<T>* x, ComplexLanes<T>* y, bool forward) const {
  if (convolution_) return forward ? convolve<true>(x, y) : convolve<false>(x, y);
  return forward ? run_stages<true>(x, y) : run_stages<false>(x, y);
}

template class FftPlan<float>;
template class FftPlan<double>;

}  // namespace tern::cpu::TERN_CPU_VARIANT
