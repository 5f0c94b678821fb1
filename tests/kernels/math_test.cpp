// The float functions that compilers vectorise, against the C library in double: a sample of all floats.
#include "tern/kernels/math.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

/// |found - exact| in units of the last place of the exact result as a float.
double ulps(float found, double exact) {
  const auto rounded = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(found) ? 0 : INFINITY;
  if (std::isinf(rounded) || std::isinf(found)) return rounded == found ? 0 : INFINITY;
  const double unit = std::fmax(std::ldexp(1.0, std::ilogb(exact) - 23), 0x1p-149);
  return exact == 0 ? (found == 0 ? 0 : INFINITY) : std::fabs(static_cast<double>(found) - exact) / unit;
}

struct Row {
  const char* name;
  float (*function)(float);
  double (*exact)(double);
  double limit;  ///< ulp
};

class Math : public ::testing::TestWithParam<Row> {};

TEST_P(Math, StaysWithinItsBound) {
  const Row& row = GetParam();
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
  const Row& row = GetParam();
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

const Row kRows[] = {{"exp", [](float x) { return math::exp(x); }, std::exp, 2},
                     {"log", [](float x) { return math::log(x); }, std::log, 2},
                     {"expm1", [](float x) { return math::expm1(x); }, std::expm1, 4},
                     {"log1p", [](float x) { return math::log1p(x); }, std::log1p, 2},
                     {"tanh", [](float x) { return math::tanh(x); }, std::tanh, 2},
                     {"erf", [](float x) { return math::erf(x); }, std::erf, 2},
                     {"sigmoid", [](float x) { return math::sigmoid(x); }, exact_sigmoid, 3}};

INSTANTIATE_TEST_SUITE_P(Float, Math, ::testing::ValuesIn(kRows),
                         [](const ::testing::TestParamInfo<Row>& row) {
                           return std::string(row.param.name);
                         });

}  // namespace
}  // namespace tern
