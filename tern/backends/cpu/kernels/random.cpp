// The random kernels: what is made of the words of Philox counters. The formulas are in kernels/random.h, the
// counters in random_blocks.h, the sorting of keys and weights in random_choice.cpp.
#include "tern/kernels/random.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "tern/backends/cpu/kernels/random_blocks.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Elements that a block has where each takes one word.
constexpr int kWords = 4 * kLanes;

/// A draw that needs no input: `numbers(words, T* to)` writes a whole block.
template <int per_counter, class T, class Numbers>
void draw(const RandomArgs& args, const Numbers& numbers) {
  constexpr int64_t kBlock = kLanes * per_counter;
  for_each_counter_block<per_counter>(static_cast<T*>(args.out), args.numel, args.seed, args.position,
                                      [&](const Words& w, T* to, int64_t, int64_t count) {
                                        if (count == kBlock) return numbers(w, to);
                                        alignas(64) T whole[kBlock];
                                        numbers(w, whole);
                                        std::memcpy(static_cast<void*>(to), whole,
                                                    static_cast<size_t>(count) * sizeof(T));
                                      });
}

template <class T>
constexpr int kDigits = std::is_same_v<T, Half>       ? 11
                        : std::is_same_v<T, BFloat16> ? 8
                                                      : 24;

template <class T>
void uniform(const RandomArgs& args) {
  if constexpr (std::is_same_v<T, double>) {
    draw<2, T>(args, [low = args.a, last = args.b, width = args.width](const Words& w, T* to) {
      auto scaled = [=](double u) { return std::min(std::fma(width, u, low), last); };
      for (int i = 0; i < kLanes; ++i) {
        to[2 * i] = scaled(uniform_double(w[0][i], w[1][i]));
        to[2 * i + 1] = scaled(uniform_double(w[2][i], w[3][i]));
      }
    });
  } else {
    const float low = static_cast<float>(args.a), last = static_cast<float>(args.b),
                width = static_cast<float>(args.width);
    draw<4, T>(args, [=](const Words& w, T* to) {
      alignas(64) uint32_t words[kWords];
      alignas(64) float numbers[kWords];
      in_order(w, words);
#pragma GCC ivdep
      for (int i = 0; i < kWords; ++i) {
        const float x = std::fma(width, random::uniform_bits(words[i], kDigits<T>), low);
        numbers[i] = x < last ? x : last;  // `last` is a value of T: rounding does not pass it
      }
      from_compute(to, numbers, kWords);
    });
  }
}

template <class T>
void normal(const RandomArgs& args) {
  if constexpr (std::is_same_v<T, double>) {
    draw<2, T>(args, [mean = args.a, std = args.b](const Words& w, T* to) {
      for (int i = 0; i < kLanes; ++i) {
        random::DoublePair z = random::normal(w[0][i], w[1][i], w[2][i], w[3][i]);
        to[2 * i] = std::fma(std, z.first, mean);
        to[2 * i + 1] = std::fma(std, z.second, mean);
      }
    });
  } else {
    draw<4, T>(args,
               [mean = static_cast<float>(args.a), std = static_cast<float>(args.b)](const Words& w, T* to) {
                 alignas(64) float z[4][kLanes];
#pragma GCC ivdep
                 for (int i = 0; i < kLanes; ++i) {
                   random::Pair p = random::normal(w[0][i], w[1][i]);
                   z[0][i] = p.first;
                   z[1][i] = p.second;
                 }
#pragma GCC ivdep
                 for (int i = 0; i < kLanes; ++i) {
                   random::Pair p = random::normal(w[2][i], w[3][i]);
                   z[2][i] = p.first;
                   z[3][i] = p.second;
                 }
                 alignas(64) float numbers[kWords];
                 in_order(z, numbers);
#pragma GCC ivdep
                 for (int i = 0; i < kWords; ++i) numbers[i] = std::fma(std, numbers[i], mean);
                 from_compute(to, numbers, kWords);
               });
  }
}

template <class T>
void exponential(const RandomArgs& args) {
  if constexpr (std::is_same_v<T, double>) {
    draw<2, T>(args, [rate = args.a](const Words& w, T* to) {
      for (int i = 0; i < kLanes; ++i) {
        to[2 * i] = -std::log(1.0 - uniform_double(w[0][i], w[1][i])) / rate;
        to[2 * i + 1] = -std::log(1.0 - uniform_double(w[2][i], w[3][i])) / rate;
      }
    });
  } else {
    draw<4, T>(args, [rate = static_cast<float>(args.a)](const Words& w, T* to) {
      alignas(64) uint32_t words[kWords];
      alignas(64) float numbers[kWords];
      in_order(w, words);
#pragma GCC ivdep
      for (int i = 0; i < kWords; ++i)
        numbers[i] = -random::log(1.0f - random::uniform_bits(words[i], 24)) / rate;
      from_compute(to, numbers, kWords);
    });
  }
}

template <class T>
T from_integer(uint64_t value) {
  if constexpr (std::is_same_v<T, bool>)
    return value != 0;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(value);
  else
    return static_cast<T>(static_cast<Compute<T>>(static_cast<int64_t>(value)));
}

template <class T>
void integers(const RandomArgs& args) {
  const uint64_t low = static_cast<uint64_t>(args.low), range = args.range;
  auto run = [&](auto below) {
    draw<2, T>(args, [=](const Words& w, T* to) {
      alignas(64) uint32_t words[kWords];
      in_order(w, words);
#pragma GCC ivdep
      for (int i = 0; i < kWords / 2; ++i)
        to[i] = from_integer<T>(low + below(uint64_t{words[2 * i]} << 32 | words[2 * i + 1]));
    });
  };
  if (range == 0)
    run([](uint64_t bits) { return bits; });
  else if (range >> 32 == 0)
    run([r = static_cast<uint32_t>(range)](uint64_t bits) { return random::below(bits, r); });
  else
    run([range](uint64_t bits) { return random::below(bits, range); });
}

/// `word < threshold` for a threshold in [0, 2^32], in 32 bits.
struct Below {
  explicit Below(uint64_t threshold) : last(static_cast<uint32_t>(threshold - 1)), some(threshold != 0) {}
  [[gnu::always_inline]] bool operator()(uint32_t word) const { return (word <= last) & some; }
  uint32_t last;
  bool some;
};

template <class T>
void bernoulli(const RandomArgs& args) {
  draw<4, T>(args, [hit = Below(args.threshold)](const Words& w, T* to) {
    alignas(64) uint32_t words[kWords];
    in_order(w, words);
    for (int i = 0; i < kWords; ++i) to[i] = from_integer<T>(hit(words[i]) ? 1 : 0);
  });
}

template <class T>
void apply_dropout(const DropoutArgs& args) {
  using C = Compute<T>;
  for_each_counter_block<4>(
      static_cast<T*>(args.out), args.numel, args.seed, args.position,
      [in = static_cast<const T*>(args.in), scale = static_cast<C>(args.scale), keep = Below(args.threshold)](
          const Words& w, T* to, int64_t first, int64_t count) {
        alignas(64) uint32_t words[kWords];
        in_order(w, words);
        const C kept = scale;  // a local copy: a conditional load from the closure would not be vectorised
        const Below is_kept = keep;
        const T* x = in + first;
        const auto row = [&](int64_t n) {
          if constexpr (kWidened<T>) {
            C numbers[kWords];
            widen_row(numbers, x, n);
            for (int64_t i = 0; i < n; ++i) numbers[i] = is_kept(words[i]) ? numbers[i] * kept : C(0);
            narrow_row(to, numbers, n);
          } else {
#pragma GCC ivdep
            for (int64_t i = 0; i < n; ++i) to[i] = is_kept(words[i]) ? x[i] * kept : C(0);
          }
        };
        if (count == kWords)
          row(kWords);
        else
          row(count);
      });
}

}  // namespace

void random(const LaunchContext&, const RandomArgs& args) {
  switch (args.distribution) {
    case Distribution::Uniform:
      return visit_floating(args.dtype, [&]<class T>() { uniform<T>(args); });
    case Distribution::Normal:
      return visit_floating(args.dtype, [&]<class T>() { normal<T>(args); });
    case Distribution::Exponential:
      return visit_floating(args.dtype, [&]<class T>() { exponential<T>(args); });
    case Distribution::Integer:
      return visit_dtype(args.dtype, [&]<class T>() { integers<T>(args); });
    case Distribution::Bernoulli:
      return visit_dtype(args.dtype, [&]<class T>() { bernoulli<T>(args); });
  }
}

void dropout(const LaunchContext&, const DropoutArgs& args) {
  visit_floating(args.dtype, [&]<class T>() { apply_dropout<T>(args); });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
