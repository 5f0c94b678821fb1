// Fourier transforms against the sums that define them, in double: every kind of factor, layout and number of
// sequences.
#include "tern/kernels/fft.h"

#include <fmt/format.h>

#include <complex>
#include <numbers>

#include "tests/backends/cpu/kernel_testing.h"

namespace tern::testing {
namespace {

using Z = std::complex<double>;

/// Sequence (o, i) of [outer, length, inner]; of halves the whole spectrum of real numbers.
template <class T>
std::vector<Z> sequence(const std::vector<T>& from, const FftArgs& s, int64_t o, int64_t i) {
  std::vector<Z> x(static_cast<size_t>(s.size));
  const int64_t length = s.kind == FftKind::ToReal ? s.half() : s.size;
  for (int64_t j = 0; j < s.size; ++j) {
    const bool mirrored = j >= length;
    const auto at = static_cast<size_t>((o * length + (mirrored ? s.size - j : j)) * s.inner + i);
    if (s.kind == FftKind::ToHalf) {
      x[static_cast<size_t>(j)] = from[at];
      continue;
    }
    const bool is_real = s.kind == FftKind::ToReal && (j == 0 || 2 * j == s.size);
    const double im = is_real ? 0 : static_cast<double>(from[2 * at + 1]);
    x[static_cast<size_t>(j)] = Z(from[2 * at], mirrored ? -im : im);
  }
  return x;
}

template <class T>
void check(const Variant& variant, Random& random, FftArgs s) {
  s.dtype = dtype_of<T>();
  const int64_t count = s.outer * s.inner;
  const int64_t in_size =
      s.kind == FftKind::ToHalf ? s.size : 2 * (s.kind == FftKind::ToReal ? s.half() : s.size);
  const int64_t length = s.kind == FftKind::ToHalf ? s.half() : s.size,
                parts = s.kind == FftKind::ToReal ? 1 : 2;
  const std::vector<T> in = random.elements<T>(count * in_size);
  std::vector<T> out(static_cast<size_t>(count * length * parts));
  s.in = in.data();
  s.out = out.data();
  variant.run(kernels::fft, s);
  std::vector<double> expected(out.size());
  // Compared relative to what a sum of so many numbers is.
  const double unit = 1 / std::sqrt(static_cast<double>(s.size));
  std::vector<Z> roots;
  for (int64_t k = 0; k < s.size; ++k)
    roots.push_back(std::polar(
        1.0, (s.forward ? -2 : 2) * std::numbers::pi * static_cast<double>(k) / static_cast<double>(s.size)));
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) {
      const std::vector<Z> x = sequence(in, s, o, i);
      for (int64_t k = 0; k < length; ++k) {
        Z sum = 0;
        for (int64_t j = 0; j < s.size; ++j)
          sum += x[static_cast<size_t>(j)] * roots[static_cast<size_t>(j * k % s.size)];
        const auto at = static_cast<size_t>(((o * length + k) * s.inner + i) * parts);
        expected[at] = sum.real() * s.scale * unit;
        if (parts == 2) expected[at + 1] = sum.imag() * s.scale * unit;
      }
    }
  for (T& value : out) value = static_cast<T>(value * unit);
  expect_near(out, expected,
              fmt::format("{} kind {} [{}, {}, {}] {}", name(s.dtype), static_cast<int>(s.kind), s.outer,
                          s.size, s.inner, s.forward ? "forward" : "back"));
}

TEST(CpuFft, AgreesWithItsDefinition) {
  Random random(5);
  for_each_variant([&](const Variant& variant) {
    for (const FftKind kind : {FftKind::Complex, FftKind::ToHalf, FftKind::ToReal})
      for (const int64_t size :
           {1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 30, 49, 61, 67, 97, 120, 128, 131, 210, 256})
        for (const auto& [outer, inner] :
             {std::pair<int64_t, int64_t>{1, 1}, {3, 1}, {37, 1}, {1, 3}, {2, 9}, {1, 40}}) {
          if (size > 30 && (size + outer + inner) % 3 != 0) continue;
          const FftArgs s{.kind = kind,
                          .forward = kind != FftKind::ToReal && random.coin(),
                          .scale = 0.5,
                          .outer = outer,
                          .size = size,
                          .inner = inner};
          check<float>(variant, random, s);
          check<double>(variant, random, s);
        }
  });
}

// Few and long: the columns and then the rows of a matrix.
TEST(CpuFft, LongSequences) {
  Random random(6);
  for_each_variant([&](const Variant& variant) {
    for (const FftKind kind : {FftKind::Complex, FftKind::ToHalf, FftKind::ToReal})
      for (const auto& [outer, size, inner] : {std::array<int64_t, 3>{1, 1024, 1},
                                               {2, 1000, 1},
                                               {1, 1734, 1},
                                               {1, 600, 2},
                                               {1, 1021, 1},
                                               {1, 2048, 1},
                                               {1, 4099, 1}})
        check<float>(variant, random,
                     {.kind = kind,
                      .forward = kind != FftKind::ToReal,
                      .scale = 1,
                      .outer = outer,
                      .size = size,
                      .inner = inner});
  });
}

TEST(CpuFft, InPlace) {
  for_each_variant([](const Variant& variant) {
    for (const int64_t size : {6, 1024}) {
      Random random(7);
      std::vector<float> x = random.elements<float>(2 * size), y(x.size());
      FftArgs s{.kind = FftKind::Complex,
                .dtype = float32,
                .outer = 1,
                .size = size,
                .inner = 1,
                .in = x.data(),
                .out = y.data()};
      variant.run(kernels::fft, s);
      s.out = x.data();
      variant.run(kernels::fft, s);
      EXPECT_EQ(x, y);
    }
  });
}

}  // namespace
}  // namespace tern::testing
