// Resizing of rows: the band matrix of an axis, sums of whole rows with its weights, and sums along a row,
// which read lanes out of order. Rules of the axes are in tern/kernels/resize_window.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "tern/backends/cpu/kernels/gemm_vec.h"
#include "tern/backends/cpu/kernels/widen.h"
#include "tern/kernels/resize_window.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// result[i] = sum of weights[i * most + k] * input[first[i] + k] over k < count[i].
template <class C>
struct Band {
  int64_t rows = 0, most = 1;
  std::vector<int64_t> first, count;
  std::vector<C> weights;

  explicit Band(int64_t rows_) : rows(rows_), first(rows), count(rows) {}

  static Band of(const ResizeAxis& axis) {
    const ResizeRule<C> rule(axis);
    Band band(axis.out);
    band.most = rule.most();
    band.weights.resize(static_cast<size_t>(band.rows * band.most));
    for (int64_t i = 0; i < band.rows; ++i) {
      const ResizeWindow window = rule.window(i, band.weights.data() + i * band.most);
      band.first[i] = window.first;
      band.count[i] = window.count;
    }
    return band;
  }
  /// With `rows` and the columns exchanged. Windows are in order, so that the outputs of an input are
  /// neighbours.
  Band transposed(int64_t columns) const {
    Band band(columns);
    for (int64_t i = rows - 1; i >= 0; --i) {
      for (int64_t k = 0; k < count[i]; ++k) {
        band.first[first[i] + k] = i;
        ++band.count[first[i] + k];
      }
    }
    band.most = std::max<int64_t>(1, *std::max_element(band.count.begin(), band.count.end()));
    band.weights.resize(static_cast<size_t>(columns * band.most));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t k = 0; k < count[i]; ++k) {
        const int64_t to = first[i] + k;
        band.weights[to * band.most + i - band.first[to]] = weights[i * most + k];
      }
    }
    return band;
  }
  int64_t terms() const {
    int64_t sum = 0;
    for (const int64_t n : count) sum += n;
    return sum;
  }
};

// ---- sums of rows

/// `n` lanes of a register from a row of In: kWideLanes at a time for the 16-bit floats.
template <class C, class In>
[[gnu::always_inline]] inline Vec<C> load_as(const In* p) {
  if constexpr (std::is_same_v<C, In>) {
    return load(p);
  } else if constexpr (kLanes<C> == kWideLanes) {
    alignas(64) C wide[kWideLanes];
    widen_lanes(wide, p);
    return load(wide);
  } else {
    Vec<C> v;
    for (int i = 0; i < kLanes<C>; ++i) v[i] = static_cast<C>(p[i]);
    return v;
  }
}
template <class C, class Out>
[[gnu::always_inline]] inline void store_as(Out* p, Vec<C> v) {
  if constexpr (std::is_same_v<C, Out>) {
    store(p, v);
  } else if constexpr (kLanes<C> == kWideLanes) {
    alignas(64) C wide[kWideLanes];
    store(wide, v);
    narrow_lanes(p, wide);
  } else {
    for (int i = 0; i < kLanes<C>; ++i) p[i] = static_cast<Out>(v[i]);
  }
}

template <int kRegisters, class C, class In, class Out>
[[gnu::always_inline]] inline void sum_registers(Out* to, const In* const* rows, const C* weights,
                                                 int64_t count, int64_t at) {
  Vec<C> sum[kRegisters] = {};
  if (count > 0) {  // no sum with 0, which would lose the sign of -0
    const Vec<C> w = splat(weights[0]);
    TERN_UNROLL for (int r = 0; r < kRegisters; ++r) sum[r] = w * load_as<C>(rows[0] + at + r * kLanes<C>);
  }
  for (int64_t k = 1; k < count; ++k) {
    const Vec<C> w = splat(weights[k]);
    TERN_UNROLL for (int r = 0; r < kRegisters; ++r) sum[r] += w * load_as<C>(rows[k] + at + r * kLanes<C>);
  }
  TERN_UNROLL for (int r = 0; r < kRegisters; ++r) store_as<C>(to + at + r * kLanes<C>, sum[r]);
}

/// to[i] = sum of weights[k] * rows[k][i] over k < count, for i < n.
template <class C, class In, class Out>
[[gnu::noinline]] void sum_rows(Out* to, const In* const* rows, const C* weights, int64_t count, int64_t n) {
  constexpr int64_t L = kLanes<C>;
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) sum_registers<4>(to, rows, weights, count, i);
  for (; i + L <= n; i += L) sum_registers<1>(to, rows, weights, count, i);
  for (; i < n; ++i) {
    C sum = count > 0 ? weights[0] * static_cast<C>(rows[0][i]) : C(0);
    for (int64_t k = 1; k < count; ++k) sum += weights[k] * static_cast<C>(rows[k][i]);
    to[i] = static_cast<Out>(sum);
  }
}

// ---- sums along a row

/// A band over the pixels of a row, each of `inner` channels: to[j * inner + c] is the sum of
/// weights[j, k] * from[(first[j] + k) * inner + c].
template <class C>
class Columns {
 public:
  Columns(const Band<C>& band, int64_t inner, int64_t from_size)
      : band_(band), inner_(inner), size_(band.rows * inner), from_size_(from_size * inner) {
    if constexpr (kHasBlocks) {
      has_blocks_ = !by_pixel() && from_size_ <= std::numeric_limits<int32_t>::max();
      if (has_blocks_) make_blocks();
    }
  }

  /// Whether pixels are summed as rows of channels.
  bool by_pixel() const { return inner_ >= kLanes<C>; }

  template <class Out>
  void run(Out* to, const C* from) const {
    if (by_pixel()) return run_pixels(to, from);
    if constexpr (kHasBlocks)
      if (has_blocks_) return run_blocks(to, from);
    for (int64_t j = 0; j < band_.rows; ++j) {
      const C* weights = band_.weights.data() + j * band_.most;
      for (int64_t c = 0; c < inner_; ++c) {
        const C* p = from + band_.first[j] * inner_ + c;
        C sum = band_.count[j] > 0 ? weights[0] * p[0] : C(0);
        for (int64_t k = 1; k < band_.count[j]; ++k) sum += weights[k] * p[k * inner_];
        to[j * inner_ + c] = static_cast<Out>(sum);
      }
    }
  }
  /// The same from pixels of In as they are, where `by_pixel()`.
  template <class In, class Out>
  void run_pixels(Out* to, const In* from) const {
    std::vector<const In*> pixels(static_cast<size_t>(band_.most));
    for (int64_t j = 0; j < band_.rows; ++j) {
      for (int64_t k = 0; k < band_.count[j]; ++k) pixels[k] = from + (band_.first[j] + k) * inner_;
      sum_rows(to + j * inner_, pixels.data(), band_.weights.data() + j * band_.most, band_.count[j], inner_);
    }
  }

 private:
#if defined(__AVX2__)
  static constexpr bool kHasBlocks = std::is_same_v<C, float>;
#else
  static constexpr bool kHasBlocks = false;
#endif
  static constexpr int L = kLanes<C>;

  /// Neighbouring results of one register.
  struct Block {
    alignas(64) int32_t first[L];  ///< from `base` on
    alignas(64) int32_t count[L];
    int64_t base;
    int64_t weights;  ///< where those of the first term begin
    int32_t most;
    int32_t loads;  ///< 1 or 2: everything lies in so many registers from `base` on; else 0
  };

  void make_blocks() {
    for (int64_t begin = 0; begin < size_; begin += L) {
      const int64_t lanes = std::min<int64_t>(L, size_ - begin);
      Block block{};
      int64_t low = from_size_, high = 0, most = 0;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const int64_t j = (begin + lane) / inner_, c = (begin + lane) % inner_;
        if (band_.count[j] == 0) continue;
        low = std::min(low, band_.first[j] * inner_ + c);
        high = std::max(high, (band_.first[j] + band_.count[j] - 1) * inner_ + c);
        most = std::max(most, band_.count[j]);
      }
      block.base = std::min(low, high);
      for (const int loads : {2, 1}) {
        const int64_t base = std::max<int64_t>(0, std::min(block.base, from_size_ - loads * L));
        if (high - base < loads * L && base + loads * L <= from_size_) {
          block.loads = loads;
          if (loads == 1) block.base = base;
        }
      }
      if (block.loads == 2) block.base = std::max<int64_t>(0, std::min(block.base, from_size_ - 2 * L));
      block.most = static_cast<int32_t>(most);
      block.weights = static_cast<int64_t>(weights_.size());
      weights_.resize(weights_.size() + static_cast<size_t>(most * L));
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const int64_t j = (begin + lane) / inner_, c = (begin + lane) % inner_;
        block.count[lane] = static_cast<int32_t>(band_.count[j]);
        if (band_.count[j] == 0) continue;
        block.first[lane] = static_cast<int32_t>(band_.first[j] * inner_ + c - block.base);
        for (int64_t k = 0; k < band_.count[j]; ++k)
          weights_[block.weights + k * L + lane] = band_.weights[j * band_.most + k];
      }
      blocks_.push_back(block);
    }
  }

#if defined(__AVX512F__)
  template <int kLoads>
  [[gnu::always_inline]] Vec<C> sum_of(const Block& block, const C* from) const {
    const __m512i first = _mm512_load_si512(block.first), count = _mm512_load_si512(block.count);
    const __m512i step = _mm512_set1_epi32(static_cast<int>(inner_));
    const float* p = from + block.base;
    const float* w = weights_.data() + block.weights;
    __m512 a = _mm512_setzero_ps(), b = a, sum = a;
    if constexpr (kLoads >= 1) a = _mm512_loadu_ps(p);
    if constexpr (kLoads >= 2) b = _mm512_loadu_ps(p + L);
    __m512i at = first;
    for (int k = 0; k < block.most; ++k, w += L) {
      const __mmask16 there = _mm512_cmpgt_epi32_mask(count, _mm512_set1_epi32(k));
      __m512 x;
      if constexpr (kLoads == 0)
        x = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), there, at, p, 4);
      else if constexpr (kLoads == 1)
        x = _mm512_maskz_permutexvar_ps(there, at, a);
      else
        x = _mm512_maskz_permutex2var_ps(there, a, at, b);
      sum = k == 0 ? _mm512_loadu_ps(w) * x : _mm512_fmadd_ps(_mm512_loadu_ps(w), x, sum);
      at = _mm512_add_epi32(at, step);
    }
    return (Vec<C>)sum;
  }
#elif defined(__AVX2__)
  template <int kLoads>
  [[gnu::always_inline]] Vec<C> sum_of(const Block& block, const C* from) const {
    const __m256i first = _mm256_load_si256(reinterpret_cast<const __m256i*>(block.first));
    const __m256i count = _mm256_load_si256(reinterpret_cast<const __m256i*>(block.count));
    const __m256i step = _mm256_set1_epi32(static_cast<int>(inner_));
    const float* p = from + block.base;
    const float* w = weights_.data() + block.weights;
    __m256 a = _mm256_setzero_ps(), b = a, sum = a;
    if constexpr (kLoads >= 1) a = _mm256_loadu_ps(p);
    if constexpr (kLoads >= 2) b = _mm256_loadu_ps(p + L);
    __m256i at = first;
    for (int k = 0; k < block.most; ++k, w += L) {
      const __m256 there = _mm256_castsi256_ps(_mm256_cmpgt_epi32(count, _mm256_set1_epi32(k)));
      __m256 x;
      if constexpr (kLoads == 0) {
        x = _mm256_mask_i32gather_ps(_mm256_setzero_ps(), p, at, there, 4);
      } else {
        x = _mm256_permutevar8x32_ps(a, at);
        if constexpr (kLoads == 2) {
          const __m256 later = _mm256_castsi256_ps(_mm256_cmpgt_epi32(at, _mm256_set1_epi32(L - 1)));
          x = _mm256_blendv_ps(x, _mm256_permutevar8x32_ps(b, at), later);
        }
        x = _mm256_and_ps(x, there);
      }
      sum = k == 0 ? _mm256_loadu_ps(w) * x : _mm256_fmadd_ps(_mm256_loadu_ps(w), x, sum);
      at = _mm256_add_epi32(at, step);
    }
    return (Vec<C>)sum;
  }
#endif

  template <class Out>
  void run_blocks(Out* to, const C* from) const {
    int64_t at = 0;
    for (const Block& block : blocks_) {
      const Vec<C> sum = block.loads == 1   ? sum_of<1>(block, from)
                         : block.loads == 2 ? sum_of<2>(block, from)
                                            : sum_of<0>(block, from);
      if (at + L <= size_) {
        store_as<C>(to + at, sum);
      } else {
        alignas(64) C last[L];
        store(last, sum);
        for (int64_t i = at; i < size_; ++i) to[i] = static_cast<Out>(last[i - at]);
      }
      at += L;
    }
  }

  const Band<C>& band_;
  int64_t inner_, size_, from_size_;
  bool has_blocks_ = false;
  std::vector<Block> blocks_;
  std::vector<C> weights_;
};

}  // namespace tern::cpu::TERN_CPU_VARIANT
