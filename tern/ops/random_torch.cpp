// Distributions of a Mersenne Twister's words, as PyTorch makes them.
#include "tern/ops/random_torch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "tern/autograd/arithmetic.h"
#include "tern/base/parallel.h"
#include "tern/core/mersenne_twister.h"
#include "tern/core/recording.h"
#include "tern/kernels/variates.h"
#include "tern/ops/common.h"

namespace tern::detail {
namespace {

/// In which PyTorch computes a dtype's numbers.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

constexpr int64_t kBlock = 512;  // numbers that are made of words at a time
constexpr int64_t kPairs = 8, kNormals = 2 * kPairs;

template <class W>
W unit(const uint32_t* words) {
  if constexpr (std::is_same_v<W, double>)
    return static_cast<double>((uint64_t{words[0]} << 32 | words[1]) & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
  else
    return static_cast<float>(static_cast<int32_t>(words[0] & 0xffffff)) * 0x1p-24f;
}

/// Calls `take(i, words of number i)` for i in [0, count).
template <int kWordsEach, class Take>
void each_number(MersenneTwister& twister, int64_t count, const Take& take) {
  std::array<uint32_t, kBlock * kWordsEach> words;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t block = std::min(kBlock, count - begin);
    twister.fill({words.data(), static_cast<size_t>(block * kWordsEach)});
    for (int64_t i = 0; i < block; ++i) take(begin + i, words.data() + i * kWordsEach);
  }
}

/// Calls `take(i, word number i)` with words of 64 bits, or of 32.
template <class Take>
void each_word(MersenneTwister& twister, int64_t count, bool wide, const Take& take) {
  if (wide)
    each_number<2>(twister, count,
                   [&](int64_t i, const uint32_t* words) { take(i, uint64_t{words[0]} << 32 | words[1]); });
  else
    each_number<1>(twister, count, [&](int64_t i, const uint32_t* words) { take(i, words[0]); });
}

/// The same with numbers in [0, 1).
template <class W, class Take>
void each_unit(MersenneTwister& twister, int64_t count, const Take& take) {
  each_number<sizeof(W) / sizeof(uint32_t)>(
      twister, count, [&](int64_t i, const uint32_t* words) { take(i, unit<W>(words)); });
}

template <class T, class N>
T narrowed(N number) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return T(static_cast<float>(number));
  else
    return static_cast<T>(number);
}

template <class T>
void uniform(T* out, int64_t count, double low, double high, MersenneTwister& twister) {
  using W = Wide<T>;
  const W from = static_cast<W>(low), width = static_cast<W>(high) - from;
  const W first = static_cast<W>(narrowed<T>(low)), end = static_cast<W>(narrowed<T>(high));
  if (std::is_same_v<T, W> && from == 0 && width == 1)
    return each_unit<W>(twister, count, [&](int64_t i, W u) { out[i] = narrowed<T>(u); });
  each_unit<W>(twister, count, [&](int64_t i, W u) {
    const T value = narrowed<T>(std::fma(u, width, from));
    out[i] = static_cast<W>(value) == end ? narrowed<T>(first) : value;
  });
}

/// Box and Muller (1958), on groups of 8 pairs of numbers in [0, 1) that lie 8 apart.
void normal_of_units(double* x, int64_t groups, double mean, double std) {
  for (int64_t group = 0; group < groups; ++group, x += kNormals) {
    for (int64_t i = 0; i < kPairs; ++i) {
      const double radius = std::sqrt(-2 * std::log(1 - x[i]));
      const double angle = 2 * std::numbers::pi * x[i + kPairs];
      x[i] = std::fma(radius * std::cos(angle), std, mean);
      x[i + kPairs] = std::fma(radius * std::sin(angle), std, mean);
    }
  }
}

/// The same of `groups` groups by the kernels' polynomials, which take the numbers as the upper bits of
/// words, the first of a pair counted down from 1.
[[gnu::always_inline]] inline void normal_of_floats(float* x, int64_t groups, float mean, float std) {
  for (int64_t group = 0; group < groups; ++group, x += kNormals) {
    for (int64_t i = 0; i < kPairs; ++i) {
      const uint32_t radius_bits = static_cast<uint32_t>(static_cast<int32_t>((1 - x[i]) * 0x1p24f) - 1) << 8;
      const uint32_t angle_bits = static_cast<uint32_t>(static_cast<int32_t>(x[i + kPairs] * 0x1p24f)) << 8;
      const random::Pair pair = random::normal(radius_bits, angle_bits);
      x[i] = pair.first * std + mean;
      x[i + kPairs] = pair.second * std + mean;
    }
  }
}
#if defined(__x86_64__)
/// With instructions for sums of products, without which each of them is a call.
[[gnu::target("avx2,fma")]] void normal_of_floats_fma(float* x, int64_t groups, float mean, float std) {
  normal_of_floats(x, groups, mean, std);
}
#endif
void normal_of_units(float* x, int64_t groups, float mean, float std) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return normal_of_floats_fma(x, groups, mean, std);
#endif
  normal_of_floats(x, groups, mean, std);
}

/// 16 or more numbers: in groups of 16, of which the last one is drawn anew where it overlaps the one before.
template <class T>
void normal_in_groups(T* out, int64_t count, Wide<T> mean, Wide<T> std, MersenneTwister& twister) {
  using W = Wide<T>;
  const int64_t whole = count / kNormals * kNormals;
  if constexpr (std::is_same_v<T, W>) {
    each_unit<W>(twister, count, [&](int64_t i, W u) { out[i] = u; });
    parallel_for(whole / kNormals, /*grain=*/64, [&](int64_t begin, int64_t end) {
      normal_of_units(out + begin * kNormals, end - begin, mean, std);
    });
  }
  std::array<W, kNormals> group;
  const auto draw_group = [&](int64_t at) {
    each_unit<W>(twister, kNormals, [&](int64_t i, W u) { group[static_cast<size_t>(i)] = u; });
    normal_of_units(group.data(), 1, mean, std);
    std::transform(group.begin(), group.end(), out + at, narrowed<T, W>);
  };
  if constexpr (!std::is_same_v<T, W>)
    for (int64_t at = 0; at < whole; at += kNormals) draw_group(at);
  if (whole != count) draw_group(count - kNormals);
}

double next_normal(MersenneTwister& twister) {
  if (twister.next_normal) {
    const double kept = *twister.next_normal;
    twister.next_normal.reset();
    return kept;
  }
  std::array<uint32_t, 4> words;
  twister.fill(words);
  const double radius = std::sqrt(-2 * std::log1p(-unit<double>(words.data() + 2)));
  const double angle = 2 * std::numbers::pi * unit<double>(words.data());
  twister.next_normal = radius * std::sin(angle);
  return radius * std::cos(angle);
}

/// What kernels/variates.h draws from.
struct TwisterSource {
  MersenneTwister& twister;
  double uniform() {
    std::array<uint32_t, 2> words;
    twister.fill(words);
    return unit<double>(words.data());
  }
  double normal() { return next_normal(twister); }
};

template <class T>
void integers(T* out, int64_t count, const TorchDraw& draw, MersenneTwister& twister) {
  const bool wide = draw.all_integers ? sizeof(T) == 8 : draw.range >= uint64_t{1} << 28;
  each_word(twister, count, wide, [&]<class Word>(int64_t i, Word bits) {
    const uint64_t offset = bits % static_cast<Word>(draw.range);
    out[i] = narrowed<T>(static_cast<int64_t>(offset + static_cast<uint64_t>(draw.low)));
  });
}

template <class T>
void draw_numbers(T* out, int64_t count, const TorchDraw& draw, bool contiguous, MersenneTwister& twister) {
  switch (draw.distribution) {
    case Distribution::Integer:
      return integers(out, count, draw, twister);
    case Distribution::Bernoulli:
      return each_unit<double>(twister, count,
                               [&](int64_t i, double u) { out[i] = narrowed<T>(u < draw.a ? 1 : 0); });
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    throw_not_computable(dtype_of<T>());  // the operators have refused them
  } else if (draw.distribution == Distribution::Uniform) {
    uniform(out, count, draw.a, draw.b, twister);
  } else if (draw.distribution == Distribution::Exponential) {
    each_unit<double>(twister, count,
                      [&](int64_t i, double u) { out[i] = narrowed<T>(-1 / draw.a * std::log(1 - u)); });
  } else if (contiguous && count >= kNormals) {
    normal_in_groups(out, count, static_cast<Wide<T>>(draw.a), static_cast<Wide<T>>(draw.b), twister);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = narrowed<T>(next_normal(twister) * draw.b + draw.a);
  }
}

/// Now, and at every replay of a step that is being recorded.
void run_on_host(std::function<void()> action) {
  if (step_recorder)
    step_recorder->call(std::move(action));
  else
    action();
}

/// The dimensions from the largest stride to the smallest.
Shape order_of_memory(const Tensor& x) {
  Shape dims;
  for (int64_t i = 0; i < x.dim(); ++i) dims.push_back(i);
  std::stable_sort(dims.begin(), dims.end(), [&](int64_t i, int64_t j) { return x.stride(i) > x.stride(j); });
  return dims;
}

/// Fisher and Yates (1938). What a number is swapped with is known, and fetched, some swaps ahead.
void shuffle(uint32_t* numbers, int64_t count, MersenneTwister& twister) {
  constexpr int64_t kAhead = 32;
  std::array<uint32_t*, kAhead> others;
  const auto swap = [&](int64_t i) { std::swap(numbers[i], *others[static_cast<size_t>(i % kAhead)]); };
  const int64_t swaps = count - 1;
  const bool wide = count >= std::numeric_limits<uint32_t>::max() / 20;
  each_word(twister, swaps, wide, [&]<class Word>(int64_t i, Word bits) {
    if (i >= kAhead) swap(i - kAhead);
    uint32_t* const other = numbers + i + static_cast<int64_t>(bits % static_cast<Word>(count - i));
    __builtin_prefetch(other, 1);
    others[static_cast<size_t>(i % kAhead)] = other;
  });
  for (int64_t i = std::max<int64_t>(0, swaps - kAhead); i < swaps; ++i) swap(i);
}

}  // namespace

bool draws_as_torch(const Generator& generator, Device device) {
  return device.is_cpu() && generator.engine() == RandomEngine::MersenneTwister;
}

Tensor empty_in_order_of(const Tensor& x, DType dtype) {
  const Shape order = order_of_memory(x);
  Shape shape, back(order.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    shape.push_back(x.size(order[i]));
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return empty_contiguous(shape, x.numel(), dtype, kCPU).permute(back);
}

void draw_as_torch(const Tensor& x, const TorchDraw& draw, Generator generator) {
  if (x.numel() == 0) return;
  run_on_host([x = x.detach(), draw, generator]() mutable {
    const bool contiguous = x.is_contiguous();
    const Tensor in_order = contiguous ? x : x.permute(order_of_memory(x));
    const Tensor dense =
        contiguous ? x : empty_contiguous(in_order.shape(), x.numel(), x.dtype(), x.device());
    generator.with_twister([&](MersenneTwister& twister) {
      visit_dtype(x.dtype(), [&]<class T>() {
        draw_numbers(static_cast<T*>(dense.data_ptr()), x.numel(), draw, contiguous, twister);
      });
    });
    if (!contiguous) copy_elements(in_order, dense);
  });
}

void draw_variates_as_torch(Variate variate, const Tensor& out, const Tensor& a, const Tensor& b,
                            Generator generator) {
  run_on_host([=]() mutable {
    generator.with_twister([&](MersenneTwister& twister) {
      TwisterSource source{twister};
      visit_floating(out.dtype(), [&]<class T>() {
        const auto element = [](const Tensor& x, int64_t i) {
          return x.defined()
                     ? static_cast<double>(static_cast<Wide<T>>(static_cast<const T*>(x.data_ptr())[i]))
                     : 0;
        };
        for (int64_t i = 0; i < out.numel(); ++i)
          static_cast<T*>(out.data_ptr())[i] =
              narrowed<T>(random::drawn<T>(variate, element(a, i), element(b, i), source));
      });
    });
  });
}

void choose_as_torch(const Tensor& out, const Tensor& weights, Generator generator) {
  const int64_t rows = weights.size(0), categories = weights.size(1), samples = out.size(1);
  generator.with_twister([&](MersenneTwister& twister) {
    visit_floating(weights.dtype(), [&]<class T>() {
      std::vector<Wide<T>> sums(static_cast<size_t>(categories));
      for (int64_t row = 0; row < rows; ++row) {
        const T* const each = static_cast<const T*>(weights.data_ptr()) + row * categories;
        Wide<T> sum = 0;
        for (size_t i = 0; i < sums.size(); ++i) sums[i] = sum += static_cast<Wide<T>>(each[i]);
        for (Wide<T>& share : sums) share /= sum;
        sums.back() = 1;
        auto* const chosen = static_cast<int64_t*>(out.data_ptr()) + row * samples;
        each_unit<double>(twister, samples, [&](int64_t i, double u) {
          chosen[i] = std::lower_bound(sums.begin(), sums.end(), u) - sums.begin();
        });
      }
    });
  });
}

void permute_as_torch(const Tensor& x, Generator generator) {
  run_on_host([x = x.detach(), generator]() mutable {
    auto* const order = static_cast<int64_t*>(x.data_ptr());
    const int64_t count = x.numel();
    // Numbers half as large stay in the caches longer: they stand in the second half of the result.
    auto* const numbers = reinterpret_cast<uint32_t*>(order) + count;
    std::iota(numbers, numbers + count, uint32_t{0});
    generator.with_twister([&](MersenneTwister& twister) { shuffle(numbers, count, twister); });
    for (int64_t i = 0; i < count; ++i) {
      uint32_t number;
      std::memcpy(&number, numbers + i, sizeof number);
      order[i] = number;
    }
  });
}

}  // namespace tern::detail
