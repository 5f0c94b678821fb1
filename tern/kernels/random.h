// Argument structs of the random kernels and the element functions that turn Philox words into numbers.
// Everything here depends on (seed, counter, number of the element) alone, so that every device and every
// number of threads draws the same; normal and exponential doubles but for their last bits, since each device
// has a logarithm of its own for them. The state is in core/generator.h, Philox in core/philox.h; the
// operators are in ops/random.
#pragma once

#include <cmath>
#include <cstdint>

#include "tern/core/dtype.h"
#include "tern/core/philox.h"
#include "tern/kernels/math.h"

namespace tern {

enum class Distribution : uint8_t {
  Uniform,      ///< a: low, b: the largest value below high that the dtype holds
  Normal,       ///< a: mean, b: standard deviation; Box-Muller
  Exponential,  ///< a: rate
  Integer,      ///< low + [0, range)
  Bernoulli,    ///< 1 where a 32-bit word is below `threshold`
};

/// Numbers that one Philox counter gives: element i of a draw comes from counter `position + i / k` and from
/// its words number `i % k` (k = 4) or `2 * (i % k)` and the next (k = 2).
constexpr int64_t numbers_per_counter(Distribution distribution, DType dtype) noexcept {
  bool real = distribution != Distribution::Integer && distribution != Distribution::Bernoulli;
  return distribution == Distribution::Integer || (real && dtype == DType::Float64) ? 2 : 4;
}

/// out[i] = number i of a draw, for i in [0, numel); out is contiguous. Uniform, Normal and Exponential take
/// floating dtypes: 16-bit ones are drawn as float and rounded. Integer and Bernoulli take every dtype.
struct RandomArgs {
  Distribution distribution;
  DType dtype;
  void* out;
  int64_t numel;
  uint64_t seed;
  uint64_t position;
  const PhiloxState* origin = nullptr;  ///< see start_of()
  double a;
  double b;
  double width;        ///< Uniform: high - low
  int64_t low;         ///< Integer
  uint64_t range;      ///< Integer: count of values; 0 means 2^64
  uint64_t threshold;  ///< Bernoulli: p * 2^32
};

/// out[i] = word i of the draw is below `threshold` ? in[i] * scale : 0. Both contiguous, floating, of one
/// dtype; the same args on the gradient give the gradient. out may be in itself. Four elements per counter.
struct DropoutArgs {
  DType dtype;
  void* out;
  const void* in;
  int64_t numel;
  uint64_t seed;
  uint64_t position;
  const PhiloxState* origin = nullptr;  ///< see start_of()
  uint64_t threshold;                   ///< (1 - p) * 2^32
  double scale;                         ///< 1 / (1 - p)
};

/// out (int64, contiguous) = a permutation of [0, count): the indices sorted by a 64-bit key each (two keys
/// per counter), equal keys by index. count is below 2^32.
struct PermutationArgs {
  int64_t* out;
  int64_t count;
  uint64_t seed;
  uint64_t position;
  const PhiloxState* origin = nullptr;  ///< see start_of()
};

/// What a multinomial kernel found wrong with the weights.
enum class WeightFault : int64_t { None, NotFinite, Zero, TooFew };

/// out[r, s] = index drawn with probability weights[r, i] / sum(weights[r]). weights is double, out int64,
/// both contiguous; `fault` is one int64, which the kernel sets (zero at first). With replacement sample s of
/// row r takes uniform number r * samples + s, searched in the running sums; without, the `samples` smallest
/// of -log(1 - u[r * categories + i]) / weights[r, i] in order (Efraimidis and Spirakis, 2006). Two numbers
/// per counter.
struct MultinomialArgs {
  int64_t* out;
  const double* weights;
  int64_t* fault;
  int64_t rows;
  int64_t categories;
  int64_t samples;
  bool replacement;
  uint64_t seed;
  uint64_t position;
  const PhiloxState* origin = nullptr;  ///< see start_of()
};

enum class Variate : uint8_t {
  Poisson,        ///< a: rate
  StandardGamma,  ///< a: shape
  Binomial,       ///< a: count, b: probability
};

/// out[i] = a number of the distribution with the parameters a[i] (and b[i]), all contiguous and of one
/// floating dtype. Element i has a sequence of its own, `i` of the Philox stream; the draws end where the
/// seed's position is one further.
struct VariatesArgs {
  Variate variate;
  DType dtype;
  void* out;
  const void* a;
  const void* b;  ///< null but for Binomial
  int64_t numel;
  uint64_t seed;
  uint64_t position;
  const PhiloxState* origin = nullptr;  ///< see start_of()
};

/// Where the numbers of a launch begin. In a recorded step they may count from an `origin` in the device's
/// memory, since they are others at every replay.
template <class Args>
TERN_FN PhiloxState start_of(const Args& args) {
  if (args.origin == nullptr) return {args.seed, args.position};
  return {args.origin->seed, args.origin->position + args.position};
}

#define TERN_RANDOM_KERNELS(X)    \
  X(random, RandomArgs)           \
  X(dropout, DropoutArgs)         \
  X(permutation, PermutationArgs) \
  X(multinomial, MultinomialArgs) \
  X(variates, VariatesArgs)

namespace random {

struct Pair {
  float first, second;
};
struct DoublePair {
  double first, second;
};

/// Uniform in [0, 1) with as many bits as the dtype's significand has.
TERN_FN float uniform_bits(uint32_t bits, int digits) {
  return static_cast<float>(static_cast<int32_t>(bits >> (32 - digits))) *
         (1.0f / static_cast<float>(1 << digits));
}

/// log(u) of a normal number, within 2 ulp. Each rounding stands here, so that all devices give the same:
/// what the tool chain of a GPU has, or a compiler that joins a product and a sum, would differ in the last
/// bit.
TERN_FN float log(float u) {
  const math::LogParts parts = math::log_parts(u);
  const float m = parts.mantissa, exponent = static_cast<float>(parts.exponent), z = m * m;
  float p = std::fma(7.0376836292e-2f, m, -1.1514610310e-1f);
  p = std::fma(p, m, 1.1676998740e-1f);
  p = std::fma(p, m, -1.2420140846e-1f);
  p = std::fma(p, m, 1.4249322787e-1f);
  p = std::fma(p, m, -1.6668057665e-1f);
  p = std::fma(p, m, 2.0000714765e-1f);
  p = std::fma(p, m, -2.4999993993e-1f);
  p = std::fma(p, m, 3.3333331174e-1f);
  float y = std::fma(m * z, p, exponent * -2.12194440e-4f);
  y = m + std::fma(-0.5f, z, y);
  return std::fma(exponent, 0.693359375f, y);
}

/// (cos, sin) of 2 pi bits / 2^32, within 1e-7. The upper bits choose the octant; polynomials are Cephes'
/// sinf and cosf.
TERN_FN Pair unit_circle(uint32_t bits) {
  uint32_t quadrant = (bits + 0x20000000u) >> 30;
  // The rest, rounded to a multiple of pi / 2, is in [-pi/4, pi/4).
  float x = static_cast<float>(static_cast<int32_t>(bits - (quadrant << 30))) *
            1.46291807926715968e-09f;  // 2 pi / 2^32
  float z = x * x;
  float s = std::fma(-1.9515295891e-4f, z, 8.3321608736e-3f);
  s = std::fma(s, z, -1.6666654611e-1f);
  s = std::fma(s * z, x, x);
  float c = std::fma(2.443315711809948e-5f, z, -1.388731625493765e-3f);
  c = std::fma(c, z, 4.166664568298827e-2f);
  c = std::fma(c * z, z, std::fma(-0.5f, z, 1.0f));
  float cosine = (quadrant & 1) ? s : c;
  float sine = (quadrant & 1) ? c : s;
  cosine = ((quadrant + 1) & 2) ? -cosine : cosine;
  sine = (quadrant & 2) ? -sine : sine;
  return {cosine, sine};
}

/// Two standard normal numbers (Box and Muller, 1958); at most 5.77 in size, since the radius has 24 random
/// bits.
TERN_FN Pair normal(uint32_t radius_bits, uint32_t angle_bits) {
  float u = static_cast<float>(static_cast<int32_t>(radius_bits >> 8) + 1) * 0x1p-24f;  // in (0, 1]
  float radius = std::sqrt(-2.0f * random::log(u));
  Pair p = unit_circle(angle_bits);
  return {radius * p.first, radius * p.second};
}

/// The same in double from four words.
TERN_FN DoublePair normal(uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3) {
  double radius = std::sqrt(-2.0 * std::log(1.0 - uniform_double(w0, w1)));
  double angle = 6.283185307179586477 * uniform_double(w2, w3);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// floor(bits * range / 2^64): every value's share differs from 1 / range by less than 2^-64.
TERN_FN uint64_t below(uint64_t bits, uint64_t range) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(bits, range);
#else
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(static_cast<Wide>(bits) * range >> 64);
#endif
}
/// The same for a range that fits 32 bits.
TERN_FN uint64_t below(uint64_t bits, uint32_t range) {
  return ((bits >> 32) * range + ((bits & 0xffffffffu) * range >> 32)) >> 32;
}

}  // namespace random

}  // namespace tern
