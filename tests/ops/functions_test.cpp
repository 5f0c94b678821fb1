// Elementary functions of float32 and float64 against a wider type, in steps of the last place; their limits
// and ends are those of PyTorch, which operator_table.py compares.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tern/core/memory.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"

namespace tern {
namespace {

struct FunctionRow {
  const char* name;
  Tensor (*function)(const Tensor&);
  long double (*exact)(long double);
  double low, high;
  double float_steps, double_steps;
};

/// Steps of T's last place between a result and what it should be.
template <class T>
double steps_off(T result, long double exact) {
  const T rounded = static_cast<T>(exact);
  if (result == rounded) return 0;
  if (!std::isfinite(result) || !std::isfinite(rounded)) return INFINITY;
  const T size = std::abs(rounded), step = std::nextafter(size, static_cast<T>(INFINITY)) - size;
  return static_cast<double>(std::abs(static_cast<long double>(result) - exact) / step);
}

template <class T>
void expect_steps(const FunctionRow& row, const Tensor& x, double most) {
  const std::vector<T> in = x.to_vector<T>(), out = row.function(x).template to_vector<T>();
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const double off = steps_off(out[i], row.exact(in[i]));
    if (off > worst) worst = off, at = i;
  }
  EXPECT_LE(worst, most) << row.name << " of " << in[at] << " is " << out[at] << " in " << sizeof(T) * 8
                         << " bits";
}

TEST(Functions, AreExactToFewSteps) {
  const FunctionRow rows[] = {
      {"asin", asin, asinl, -1, 1, 3, 3},
      {"acos", acos, acosl, -1, 1, 3, 3},
      {"atan", atan, atanl, -20, 20, 3, 3},
      {"sinh", sinh, sinhl, -15, 15, 4, 4},
      {"cosh", cosh, coshl, -15, 15, 4, 4},
      {"asinh", asinh, asinhl, -50, 50, 4, 4},
      {"acosh", acosh, acoshl, 1, 50, 4, 4},
      {"acosh near 1", acosh, acoshl, 1, 1.01, 4, 4},
      {"atanh", atanh, atanhl, -1, 1, 4, 4},
      {"erfc", erfc, erfcl, -4, 9, 7, 9},
      {"exp2", exp2, exp2l, -30, 30, 3, 3},
      {"exp2 below", exp2, exp2l, -140, -126, 3, 3},
      {"sinh near 0", sinh, sinhl, -1e-3, 1e-3, 3, 3},
      {"asinh near 0", asinh, asinhl, -1e-3, 1e-3, 4, 4},
  };
  // GPUs' own functions are as exact, but for a few.
  const double slack = get_default_device().is_cpu() ? 1 : 2;
  for (const FunctionRow& row : rows) {
    const Tensor x = linspace(row.low, row.high, 20001, {.dtype = float64});
    expect_steps<float>(row, x.to(float32), row.float_steps * slack);
    expect_steps<double>(row, x, row.double_steps * slack);
  }
}

TEST(Functions, AtTheirEnds) {
  const auto value = [](Tensor (*f)(const Tensor&), double x, DType dtype) {
    return f(full({1}, x, {.dtype = dtype})).item<double>();
  };
  for (const DType dtype : {float32, float64}) {
    EXPECT_EQ(value(exp2, 10, dtype), 1024);
    EXPECT_EQ(value(exp2, -3, dtype), 0.125);
    EXPECT_EQ(value(erfc, 0, dtype), 1);
    EXPECT_EQ(value(acosh, 1, dtype), 0);
    EXPECT_EQ(value(sinc, 0, dtype), 1);
    EXPECT_EQ(value(cosh, -INFINITY, dtype), INFINITY);
    EXPECT_EQ(value(sinh, -INFINITY, dtype), -INFINITY);
    EXPECT_EQ(value(atanh, -1, dtype), -INFINITY);
    EXPECT_EQ(value(erfc, INFINITY, dtype), 0);
    EXPECT_EQ(value(erfc, -INFINITY, dtype), 2);
    for (auto f : {asin, atan, sinh, asinh, atanh}) EXPECT_TRUE(std::signbit(value(f, -0.0, dtype)));
    for (auto f : {asin, acos, atanh}) EXPECT_TRUE(std::isnan(value(f, 1.5, dtype)));
    for (double x : {0.5, -1e10, static_cast<double>(-INFINITY)})
      EXPECT_TRUE(std::isnan(value(acosh, x, dtype)));
    EXPECT_NEAR(
        value(sinh, dtype == float32 ? 89.4 : 710.4, dtype) / (dtype == float32 ? 3.34886e38 : 1.66636e308),
        1, 1e-3)
        << "beyond where e^x overflows";
  }
  EXPECT_FLOAT_EQ(hypot(full({1}, 3e30), full({1}, 4e30)).item<float>(), 5e30f);
  EXPECT_FLOAT_EQ(logaddexp(full({1}, -1000.0), full({1}, -1000.0)).item<float>(), -999.306853f);
  EXPECT_EQ(lerp(full({1}, 1e8), full({1}, 1.0), 1.0).item<float>(), 1.f);
}

}  // namespace
}  // namespace tern
