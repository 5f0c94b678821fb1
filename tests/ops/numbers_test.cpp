// Tensors that meet numbers: divisors that their dtype takes for 0, and 16-bit floats, whose rules are
// PyTorch's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tern/ops/activation.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tests/ops/reduce_testing.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using namespace tern::testing;

TEST(Numbers, DivisorsThatTheDtypeTakesForZero) {
  struct Row {
    DType dtype;
    int64_t divisor;
  };
  for (const Row& row :
       {Row{int8, 256}, Row{int16, 65536}, Row{int32, int64_t{1} << 32}, Row{uint8, -256}, Row{int64, 0}}) {
    const Tensor x = tensor({1, 44}).to(row.dtype);
    const std::function<Tensor()> uses[] = {[&] { return floor_divide(x, row.divisor); },
                                            [&] { return remainder(x, row.divisor); },
                                            [&] { return fmod(x, row.divisor); }};
    for (const auto& use : uses)
      if (x.is_cpu()) expect_error<ValueError>([&] { use(); }, "ZeroDivisionError");
  }
}

TEST(Numbers, SixteenBitFloatsTimesANumberInATensor) {
  const Tensor x = tensor({1.0, 1e-3, 60000.0}).to(float16);
  const Tensor scale = tensor(65536.0, {.device = kCPU});
  EXPECT_TRUE(equal(mul(x, scale), mul(x, 65536.0)));
  EXPECT_TRUE(equal(div(x, scale), div(x, 65536.0)));
  Tensor y = x.clone();
  y.mul_(scale);
  EXPECT_TRUE(equal(y, mul(x, 65536.0)));
  EXPECT_EQ(y.dtype(), float16);
  EXPECT_NEAR(y.to(float32).to_vector<float>()[1], 65.5625, 1e-3);
}

TEST(Numbers, SixteenBitFloatsAreComparedWithWhatTheirDtypeHas) {
  const Tensor half = tensor({0.1}).to(float16), low = tensor({0.1}).to(bfloat16);
  const std::pair<const char*, Tensor> rows[] = {
      {"==", eq(half, 0.1)},
      {"not <", logical_not(lt(half, 0.1))},
      {"bf16 ==", eq(low, 0.1)},
      {"bf16 not >", logical_not(gt(low, 0.1))},
      {"<=", le(full_like(low, 1), 0.999)},
      {"257", eq(full_like(low, 256), 257)},
  };
  for (const auto& [what, result] : rows) EXPECT_TRUE(result.item<bool>()) << what;
  EXPECT_NEAR(remainder(tensor({3.0}).to(float16), 0.1).item<float>(), 0.00073, 1e-5);
}

TEST(Numbers, WhatDoesNotFitIsNotWritten) {
  const auto refused = [](DType dtype, const Scalar& value) {
    Tensor x = zeros({2}, {.dtype = dtype});
    const Tensor index = tensor({0}), mask = tensor({true, false});
    const std::function<void()> uses[] = {
        [&] { x.fill_(value); },
        [&] { full({2}, value, {.dtype = dtype}); },
        [&] { scatter(x, 0, index, value); },
        [&] { scatter_(x, 0, index, value); },
        [&] { index_fill(x, 0, index, value); },
        [&] { index_fill_(x, 0, index, value); },
        [&] { masked_fill(x, mask, value); },
    };
    for (const auto& use : uses) expect_error<ValueError>(use, "without overflow");
    EXPECT_TRUE(equal(x, zeros_like(x)));
  };
  refused(int8, 300);
  refused(int8, 128);
  refused(int64, kNan);
  refused(int32, 1e10);
  refused(float16, 1e6);
  refused(float32, 1e300);
  EXPECT_EQ(full({}, -1, {.dtype = uint8}).item<int>(), 255) << "wraps around, as in PyTorch";
}

TEST(Numbers, GradientsNearZeroAreThoseOfPyTorch) {
  const auto gradients = [](double a, double b, DType dtype, const auto& f) {
    const Tensor x = full({1}, a, {.dtype = dtype}).requires_grad_();
    const Tensor y = full({1}, b, {.dtype = dtype}).requires_grad_();
    f(x, y).backward();
    return std::pair(x.grad().item<double>(), y.grad().item<double>());
  };
  const auto ratio = [](const Tensor& x, const Tensor& y) { return div(x, y); };
  const auto angle = [](const Tensor& x, const Tensor& y) { return atan2(x, y); };
  EXPECT_EQ(gradients(0, 1e-5, DType::Float16, ratio).second, 0);
  EXPECT_EQ(gradients(0, 0, DType::Float32, angle), std::pair(0.0, 0.0));
  EXPECT_EQ(gradients(1e-30, 1e-30, DType::Float32, angle), std::pair(0.0, 0.0));
  const auto beyond = [](const Tensor& x, const Tensor& y) { return add(softplus(x, 10, 1), y); };
  EXPECT_EQ(gradients(0.10009765625, 0, DType::BFloat16, beyond).first, 1);
  const Tensor x = tensor({3e-6, 4e-6}, {.dtype = DType::Float16}).requires_grad_();
  norm(x).backward();
  EXPECT_NEAR(x.grad()[0].item<double>(), 0.6, 0.01);
  EXPECT_NEAR(x.grad()[1].item<double>(), 0.8, 0.01);
}

}  // namespace
}  // namespace tern
