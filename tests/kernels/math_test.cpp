// The float functions that compilers vectorise, against the C library in double: a sample of all floats.
#include "tern/kernels/math.h"

#include <gtest/gtest.h>

#include "tern/kernels/trigonometry.h"

namespace tern {
namespace {

/// |found - exact| in units of the last place of the exact result as a float.
double ulps(float found, double exact) {
  const auto rounded = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(found) ? 0 : INFINITY;
  if (std::isinf(rounded) || std::isinf(found)) return rounded == found ? 0 : INFINITY;
  if (exact == 0) return found == 0 ? 0 : INFINITY;
  const double unit = std::fmax(std::ldexp(1.0, std::ilogb(exact) - 23), 0x1p-149);
  return std::fabs(static_cast<double>(found) - exact) / unit;
}

struct MathRow {
  const char* name;
  float (*function)(float);
  double (*exact)(double);
  double limit;  ///< ulp
};

class Math : public ::testing::TestWithParam<MathRow> {};

TEST_P(Math, StaysWithinItsBound) {
  const MathRow& row = GetParam();
  double worst = 0;
  float where = 0;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4093) {
    const float x = math::as_float(static_cast<uint32_t>(bits));
    const double error = ulps(row.function(x), row.exact(static_cast<double>(x)));
    if (error > worst) {
      worst = error;
      where = x;
    }
  }
  EXPECT_LE(worst, row.limit) << "at " << where << ": " << row.function(where) << " and "
                              << row.exact(static_cast<double>(where));
}

TEST_P(Math, SpecialValues) {
  const MathRow& row = GetParam();
  for (float x : {0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN, 1e-45f, -1e-45f, 3.4e38f, -3.4e38f}) {
    const float found = row.function(x);
    const auto exact = static_cast<float>(row.exact(static_cast<double>(x)));
    if (std::isnan(exact)) {
      EXPECT_TRUE(std::isnan(found)) << x;
      continue;
    }
    EXPECT_LE(ulps(found, row.exact(static_cast<double>(x))), row.limit) << x;
    if (exact == 0) {
      EXPECT_EQ(std::signbit(found), std::signbit(exact)) << "the sign of zero at " << x;
    }
  }
}

/// Results below 2^-128 become 0, as PyTorch's: e^-x overflows before the result does.
double exact_sigmoid(double x) { return x < -88.7228394 ? 0 : 1 / (1 + std::exp(-x)); }

/// The fast forms where they hold, the C library's beyond, as the kernels choose.
float sine(float x) { return std::fabs(x) <= math::kTrigonometricLimit ? math::sin_near(x) : std::sin(x); }
float cosine(float x) { return std::fabs(x) <= math::kTrigonometricLimit ? math::cos_near(x) : std::cos(x); }
float tangent(float x) { return std::fabs(x) <= math::kTrigonometricLimit ? math::tan_near(x) : std::tan(x); }

const MathRow kRows[] = {{"exp", [](float x) { return math::exp(x); }, std::exp, 2},
                         {"log", [](float x) { return math::log(x); }, std::log, 2},
                         {"expm1", [](float x) { return math::expm1(x); }, std::expm1, 4},
                         {"log1p", [](float x) { return math::log1p(x); }, std::log1p, 2},
                         {"log2", [](float x) { return math::log2(x); }, std::log2, 1},
                         {"log10", [](float x) { return math::log10(x); }, std::log10, 1},
                         {"tanh", [](float x) { return math::tanh(x); }, std::tanh, 2},
                         {"erf", [](float x) { return math::erf(x); }, std::erf, 2},
                         {"sigmoid", [](float x) { return math::sigmoid(x); }, exact_sigmoid, 3},
                         {"sin", sine, std::sin, 2},
                         {"cos", cosine, std::cos, 2},
                         {"tan", tangent, std::tan, 3}};

INSTANTIATE_TEST_SUITE_P(Float, Math, ::testing::ValuesIn(kRows),
                         [](const ::testing::TestParamInfo<MathRow>& row) {
                           return std::string(row.param.name);
                         });

/// For x that are not positive: exp, and 0 in place of numbers below the normal range.
template <class T, class Bits>
void expect_nonpositive_exp(T lowest) {
  Bits bits = 1;
  for (int i = 0; i < 100000; ++i) {
    bits = bits * static_cast<Bits>(6364136223846793005u) + static_cast<Bits>(1442695040888963407u);
    const T x = -std::fabs(std::fmod(std::bit_cast<T>(bits), lowest));
    if (std::isnan(x)) continue;
    const T exact = math::exp(x), found = math::exp_nonpositive(x);
    EXPECT_EQ(found, exact < std::numeric_limits<T>::min() && found == 0 ? 0 : exact) << x;
  }
  const T inf = std::numeric_limits<T>::infinity();
  EXPECT_EQ(math::exp_nonpositive(T(-0.0)), 1);
  EXPECT_EQ(math::exp_nonpositive(lowest), 0);
  EXPECT_EQ(math::exp_nonpositive(-inf), 0);
  EXPECT_TRUE(std::isnan(math::exp_nonpositive(std::numeric_limits<T>::quiet_NaN())));
}
TEST(MathOfNonpositive, Exp) {
  expect_nonpositive_exp<float, uint32_t>(-110.0f);
  expect_nonpositive_exp<double, uint64_t>(-800.0);
}

const float kSpecial[] = {0.0f, 1.0f, 2.0f, 3.0f, 0.5f, 2.5f, 1e30f, 1e-40f, INFINITY, NAN};

/// A function of two floats at all pairs of special values and at a sample of all floats.
void expect_close(float (*function)(float, float), double (*exact)(double, double), double limit) {
  auto expect_at = [&](float x, float y) {
    const float found = function(x, y);
    const double expected = exact(static_cast<double>(x), static_cast<double>(y));
    EXPECT_LE(ulps(found, expected), limit) << x << ", " << y << " give " << found << ", not " << expected;
    if (!std::isnan(expected)) {
      EXPECT_EQ(std::signbit(found), std::signbit(expected)) << x << ", " << y;
    }
  };
  for (float x : kSpecial)
    for (float y : kSpecial)
      for (int signs = 0; signs < 4; ++signs) expect_at(signs & 1 ? -x : x, signs & 2 ? -y : y);
  uint32_t bits = 1;
  for (int i = 0; i < 100000; ++i) {
    const float x = math::as_float(bits = bits * 1664525u + 1013904223u);
    const float y = math::as_float(bits = bits * 1664525u + 1013904223u);
    expect_at(x, y);
    expect_at(std::fmod(x, 4.0f), std::fmod(y, 8.0f));
  }
}

TEST(MathOfTwo, Pow) {
  expect_close([](float x, float y) { return math::pow(x, y); }, std::pow, 1);
}
TEST(MathOfTwo, Atan2) {
  expect_close([](float y, float x) { return math::atan2(y, x); }, std::atan2, 3);
}

/// The fast form where it holds, as the kernels choose; elsewhere the C library's.
template <class T>
T remainder_of(T a, T b) {
  return math::remainder_is_near(a, b) ? math::remainder_near(a, b) : std::fmod(a, b);
}
TEST(MathOfTwo, RemaindersAreExact) {
  expect_close(remainder_of<float>, std::fmod, 0);
  uint64_t bits = 1;
  auto next = [&] {
    return std::bit_cast<double>(bits = bits * 6364136223846793005u + 1442695040888963407u);
  };
  int near = 0;
  for (int i = 0; i < 100000; ++i) {
    // Multiples, their neighbours, and quotients that round to a whole number.
    const double y = std::ldexp(std::fmod(next(), 1.0) + 1.5, static_cast<int>(bits >> 33) % 40 - 20);
    const double x = std::nextafter(y * std::floor(std::ldexp(1.0, static_cast<int>(bits >> 40) % 52)),
                                    i % 2 ? INFINITY : 0);
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    near += math::remainder_is_near(x, y);
    EXPECT_EQ(remainder_of(x, y), std::fmod(x, y)) << x << ", " << y;
    const auto a = static_cast<float>(x), b = static_cast<float>(-y);
    EXPECT_EQ(remainder_of(a, b), std::fmod(a, b)) << a << ", " << b;
  }
  EXPECT_GT(near, 40000);
}

TEST(MathNormal, DistributionAndDensity) {
  for (float x = -13; x < 40; x += 0x1p-10f) {
    const double exact = 0.5 * std::erfc(-x / std::sqrt(2.0)),
                 density = std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
    const auto [cdf, pdf] = math::normal(x);
    EXPECT_NEAR(cdf, exact, 3e-7) << x;
    if (x < 0) {
      EXPECT_NEAR(cdf / exact, 1, 6e-7 * (1 + x * x / 4)) << x;
    }
    EXPECT_NEAR(pdf, density, 3e-7) << x;
  }
  EXPECT_EQ(math::normal(INFINITY).cdf, 1);
  EXPECT_EQ(math::normal(-INFINITY).cdf, 0);
  EXPECT_TRUE(std::isnan(math::normal(NAN).cdf) && std::isnan(math::normal(NAN).pdf));
}

TEST(MathInDouble, Tanh) {
  for (double x = -20; x < 20; x += 0x1p-12) {
    EXPECT_NEAR(math::tanh(x), std::tanh(x), 4.5e-16 * std::fabs(std::tanh(x))) << x;
  }
  EXPECT_EQ(math::tanh(INFINITY), 1);
  EXPECT_EQ(math::tanh(-1e-310), -1e-310);
  EXPECT_TRUE(std::signbit(math::tanh(-0.0)) && std::isnan(math::tanh(NAN)));
}

TEST(MathInDouble, ErfAndNormal) {
  for (double x = -9; x < 9; x += 0x1p-12) {
    const double exact = std::erf(x), cdf = 0.5 * std::erfc(-x / std::sqrt(2.0));
    EXPECT_NEAR(math::erf(x), exact, 5e-16 * std::fabs(exact)) << x;
    EXPECT_NEAR(math::normal(x).cdf, cdf, 3e-16) << x;
    if (x < 0) {
      EXPECT_NEAR(math::normal(x).cdf / cdf, 1, 1e-15 * (1 + x * x)) << x;
    }
    EXPECT_NEAR(math::normal(x).pdf, std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI), 2e-16) << x;
  }
  EXPECT_EQ(math::erf(INFINITY), 1);
  EXPECT_EQ(math::erf(-1e300), -1);
  EXPECT_EQ(math::erf(1e-310), std::erf(1e-310));
  EXPECT_TRUE(std::signbit(math::erf(-0.0)) && std::isnan(math::erf(NAN)));
  EXPECT_EQ(math::normal(double{INFINITY}).cdf, 1);
  EXPECT_EQ(math::normal(-double{INFINITY}).cdf, 0);
  EXPECT_TRUE(std::isnan(math::normal(double{NAN}).cdf) && std::isnan(math::normal(double{NAN}).pdf));
}

TEST(MathInDouble, ExpAndLog) {
  uint64_t bits = 1;
  for (int i = 0; i < 200000; ++i) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    const double x = std::fmod(std::bit_cast<double>(bits), 760.0);
    const double e = math::exp(x), exact = std::exp(x);
    if (exact > 1e-300 && exact < 1e300) {
      EXPECT_NEAR(e / exact, 1, 5e-16) << x;
    }
    if (exact == 0 || std::isinf(exact)) {
      EXPECT_EQ(e, exact) << x;
    }
    const double y = std::fabs(std::bit_cast<double>(bits));
    if (!std::isnan(y)) {
      EXPECT_NEAR(math::log(y), std::log(y), 3e-16 * std::fabs(std::log(y))) << y;
    }
  }
  EXPECT_EQ(math::exp(-INFINITY), 0);
  EXPECT_EQ(math::exp(INFINITY), INFINITY);
  EXPECT_EQ(math::log(0.0), -INFINITY);
  EXPECT_EQ(math::log(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(math::log(-1.0)) && std::isnan(math::log(NAN)) && std::isnan(math::exp(NAN)));
}

TEST(MathInDouble, Logarithms) {
  struct Row {
    const char* name;
    double (*ours)(double);
    long double (*exact)(long double);
    double least, most;  // exponents of two of the arguments; negative arguments too where `sign`
    bool sign;
  };
  const Row rows[] = {{"expm1", [](double x) { return math::expm1(x); },
                       [](long double x) { return expm1l(x); }, -60, 9, true},
                      {"log1p", [](double x) { return math::log1p(x); },
                       [](long double x) { return log1pl(x); }, -60, 60, false},
                      {"log1p", [](double x) { return math::log1p(-x); },
                       [](long double x) { return log1pl(-x); }, -60, -0.01, false},
                      {"log2", [](double x) { return math::log2(x); }, [](long double x) { return log2l(x); },
                       -1070, 1020, false},
                      {"log10", [](double x) { return math::log10(x); },
                       [](long double x) { return log10l(x); }, -1070, 1020, false},
                      {"log2 near 1", [](double x) { return math::log2(x); },
                       [](long double x) { return log2l(x); }, -0.6, 0.6, false},
                      {"log10 near 1", [](double x) { return math::log10(x); },
                       [](long double x) { return log10l(x); }, -0.6, 0.6, false}};
  for (const Row& row : rows)
    for (int i = 0; i < 20000; ++i) {
      double x = std::exp2(row.least + (row.most - row.least) * i / 20000.0);
      if (row.sign && i % 2 == 1) x = -x;
      const long double exact = row.exact(x);
      const double size = std::fabs(static_cast<double>(exact)), ulp = std::nextafter(size, INFINITY) - size;
      ASSERT_LE(std::fabs(static_cast<double>(row.ours(x) - exact)), 2 * ulp) << row.name << " of " << x;
    }
  for (int k = -1074; k < 1024; ++k) ASSERT_EQ(math::log2(std::ldexp(1.0, k)), k);
  double power = 1;
  for (int k = 0; k <= 22; ++k, power *= 10) ASSERT_EQ(math::log10(power), k);
  for (auto* f : {+[](double x) { return math::expm1(x); }, +[](double x) { return math::log1p(x); }}) {
    for (double x : {0.0, -0.0, 5e-324, -1e-320})
      EXPECT_EQ(std::bit_cast<uint64_t>(f(x)), std::bit_cast<uint64_t>(x));
    EXPECT_TRUE(std::isnan(f(NAN)) && f(INFINITY) == INFINITY);
  }
  EXPECT_TRUE(math::expm1(-INFINITY) == -1 && math::expm1(-50.0) == -1 && math::expm1(710.0) == INFINITY);
  EXPECT_TRUE(math::log1p(-1.0) == -INFINITY && std::isnan(math::log1p(-1.5)));
  for (auto* f : {+[](double x) { return math::log2(x); }, +[](double x) { return math::log10(x); }})
    EXPECT_TRUE(f(0.0) == -INFINITY && f(INFINITY) == INFINITY && std::isnan(f(-1.0)) && std::isnan(f(NAN)));
}

TEST(MathInDouble, Trigonometry) {
  const auto ulps = [](double ours, long double exact) {
    const double size = std::fabs(static_cast<double>(exact));
    return std::fabs(static_cast<double>(ours - exact)) / (std::nextafter(size, INFINITY) - size);
  };
  for (int i = 0; i < 60000; ++i) {
    const double size = std::exp2(-40 + 60 * i / 60000.0);
    if (size > double{math::kTrigonometricLimit}) break;
    // Next to multiples of pi/2 too, where most digits cancel.
    const double x = (i % 2 ? -1 : 1) * (i % 3 ? size : std::round(size / M_PI_2) * M_PI_2);
    ASSERT_LE(ulps(math::sin_near(x), sinl(x)), 2) << x;
    ASSERT_LE(ulps(math::cos_near(x), cosl(x)), 2) << x;
    ASSERT_LE(ulps(math::tan_near(x), tanl(x)), 3) << x;
    const double y = std::exp2(30 * std::sin(i)) * (i % 5 ? 1 : -1);
    ASSERT_LE(ulps(math::atan2(y, x), atan2l(y, x)), 3) << y << ", " << x;
  }
  for (double x : {0.0, -0.0, 5e-324, -1e-310}) {
    EXPECT_EQ(std::bit_cast<uint64_t>(math::sin_near(x)), std::bit_cast<uint64_t>(x));
    EXPECT_EQ(std::bit_cast<uint64_t>(math::tan_near(x)), std::bit_cast<uint64_t>(x));
  }
  const double ends[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, 1e308, -1e-310, NAN};
  for (double y : ends)
    for (double x : ends) {
      const double ours = math::atan2(y, x), exact = std::atan2(y, x);
      if (std::isnan(exact))
        EXPECT_TRUE(std::isnan(ours)) << y << ", " << x;
      else
        EXPECT_TRUE(ulps(ours, atan2l(y, x)) <= 3 && std::signbit(ours) == std::signbit(exact))
            << y << ", " << x << ": " << ours;
    }
}

}  // namespace
}  // namespace tern
