// Operators whose operands may lie on two devices: numbers on the CPU with tensors elsewhere. Where tests run
// on the CPU there is one device only, and the rows say that nothing else changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tern/autograd/gradcheck.h"
#include "tern/core/memory.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

struct DeviceRow {
  const char* name;
  std::function<Tensor(const Tensor& x, const Tensor& number)> function;
  double tolerance = 0;  ///< relative, where each device has a function of its own; else the same bits
};

const DeviceRow kRows[] = {
    {"add", [](const Tensor& x, const Tensor& n) { return add(x, n, 3); }},
    {"add the other way", [](const Tensor& x, const Tensor& n) { return add(n, x, 3); }},
    {"sub", [](const Tensor& x, const Tensor& n) { return sub(x, n); }},
    {"mul", [](const Tensor& x, const Tensor& n) { return mul(x, n); }},
    {"div", [](const Tensor& x, const Tensor& n) { return div(x, n); }},
    {"div the other way", [](const Tensor& x, const Tensor& n) { return div(n, x); }},
    {"pow", [](const Tensor& x, const Tensor& n) { return pow(x, n); }, 1e-14},
    {"pow the other way", [](const Tensor& x, const Tensor& n) { return pow(n, x); }, 1e-14},
    {"atan2", [](const Tensor& x, const Tensor& n) { return atan2(x, n); }, 1e-14},
    {"maximum", [](const Tensor& x, const Tensor& n) { return maximum(x, n); }},
    {"remainder", [](const Tensor& x, const Tensor& n) { return remainder(x, n); }},
    {"where", [](const Tensor& x, const Tensor& n) { return where(x > 2, x, n); }},
    {"where of a number", [](const Tensor& x, const Tensor& n) { return where(n > 2, x, n); }},
    {"masked_fill", [](const Tensor& x, const Tensor& n) { return masked_fill(x, x > 2, n); }},
    {"index_put",
     [](const Tensor& x, const Tensor& n) {
       return index_put(x, {tensor({0, 2}, {.device = kCPU})}, n);
     }},
    {"add_", [](const Tensor& x, const Tensor& n) { return clone(x).add_(n, 2); }},
    {"mul_", [](const Tensor& x, const Tensor& n) { return clone(x).mul_(n); }},
    {"div_", [](const Tensor& x, const Tensor& n) { return clone(x).div_(n); }},
};

TEST(Devices, NumbersOnTheCpuMeetTensorsAnywhere) {
  for (const DeviceRow& row : kRows) {
    SCOPED_TRACE(row.name);
    const Tensor x = tensor({0.7, 1.9, 3.3}, {.dtype = float64, .device = {}, .requires_grad = true});
    const Tensor number = tensor(2.25, {.dtype = float64, .device = kCPU, .requires_grad = true});
    const Tensor y = row.function(x, number);
    EXPECT_EQ(y.device(), get_default_device());
    EXPECT_TRUE(
        allclose(y.detach().cpu(), row.function(x.detach().cpu(), number.detach()), row.tolerance, 0));
    mul(y, y).sum().backward();
    EXPECT_EQ(x.grad().device(), get_default_device());
    EXPECT_EQ(number.grad().device(), kCPU);
    const auto function = [&](const std::vector<Tensor>& v) { return row.function(v[0], v[1]); };
    EXPECT_NO_THROW(gradcheck(function, {x.detach().requires_grad_(), number.detach().requires_grad_()}));
    EXPECT_NO_THROW(gradgradcheck(function, {x.detach().requires_grad_(), number.detach().requires_grad_()}));
  }
}

TEST(Devices, EmptyViewsMove) {
  const Tensor x = zeros({2, 0, 3}), end = arange(4).slice(0, 4, 4);
  EXPECT_EQ(x.narrow(0, 1, 1).cpu().shape(), (Shape{1, 0, 3}));
  EXPECT_EQ(end.cpu().numel(), 0);
  EXPECT_EQ(end.cpu().to(get_default_device()).device(), get_default_device());
}

}  // namespace
}  // namespace tern
