// Complex numbers in C++: as numbers of the language, in promotion, in place and under autograd. Values
// against PyTorch are in operator_table.py.
#include "tern/ops/complex.h"

#include <gtest/gtest.h>

#include <complex>
#include <functional>

#include "tern/autograd/engine.h"
#include "tern/autograd/grad_mode.h"
#include "tern/core/memory.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/fft.h"
#include "tern/ops/index.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/print.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tern/ops/stft.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using Z = std::complex<double>;
using Zf = std::complex<float>;
using Numbers = std::vector<Z>;

TEST(Complex, NumbersOfTheLanguage) {
  const Tensor x = tensor(std::vector<Zf>{{1, 2}, {3, 0}});
  EXPECT_EQ(x.dtype(), complex64);
  EXPECT_EQ(x.to_vector<Zf>(), (std::vector<Zf>{{1, 2}, {3, 0}}));
  EXPECT_EQ(tensor({{Z(0, 1)}, {2.0}}).to_vector<Z>(), (Numbers{{0, 1}, {2, 0}}));
  EXPECT_EQ(x[0].item<Z>(), Z(1, 2));
  EXPECT_EQ(x[1].item<double>(), 3);
  expect_error<ValueError>([&] { x[0].item<double>(); }, "imaginary part");
  EXPECT_EQ(full({}, Z(1, -1), {.dtype = complex128}).item<Z>(), Z(1, -1));
  EXPECT_EQ((x * Z(0, 2)).to_vector<Z>(), (Numbers{{-4, 2}, {0, 6}}));
  EXPECT_EQ((Z(0, 1) / x.real()).dtype(), complex64);
  EXPECT_EQ(to_string(x.cpu()), "tensor([1.+2.j, 3.+0.j])");
}

TEST(Complex, Promotion) {
  const Tensor half = ones({2}, {.dtype = float16}), wide = ones({2}, {.dtype = float64}),
               z = ones({2}, {.dtype = complex64}), number = full({}, Z(0, 1), {.dtype = complex128});
  EXPECT_EQ((z + half).dtype(), complex64);
  EXPECT_EQ((z + wide).dtype(), complex128);
  EXPECT_EQ((z + ones({2}, {.dtype = int64})).dtype(), complex64);
  EXPECT_EQ((ones({2}) * number).dtype(), complex64);
  EXPECT_EQ((wide * Z(0, 1)).dtype(), complex128);
  EXPECT_EQ((ones({2}, {.dtype = int64}) * Z(0, 1)).dtype(), complex64);
  expect_error<DTypeError>([&] { ones({2}).add_(z); }, "can't be cast");
  expect_error<DTypeError>([&] { max(z); }, "complex64");
  expect_error<DTypeError>([&] { lt(z, z); }, "not implemented for complex64");
  expect_error<DTypeError>([&] { clone(z).relu_(); }, "");
}

TEST(Complex, PartsAreViews) {
  Tensor x = zeros({2, 3}, {.dtype = complex64});
  x.real().fill_(2);
  select(x.imag(), 0, 1).fill_(-1);
  EXPECT_EQ(x.to_vector<Z>(), (Numbers{2, 2, 2, {2, -1}, {2, -1}, {2, -1}}));
  EXPECT_EQ(view_as_complex(view_as_real(x)).storage(), x.storage());
  expect_error<ShapeError>([&] { view_as_complex(transpose(zeros({2, 4}), 0, 1)); }, "stride 1");
  x[0] = full({3}, Z(0, 5));
  EXPECT_EQ(x[0][2].item<Z>(), Z(0, 5));
}

// d|f|^2 by the parts as real leaves, which cannot err about conjugates.
TEST(Complex, GradientsAreThoseOfTheParts) {
  const std::vector<std::pair<const char*, std::function<Tensor(const Tensor&)>>> functions = {
      {"mul", [](const Tensor& z) { return mul(z, z); }},
      {"div", [](const Tensor& z) { return Z(1, 2) / z; }},
      {"exp in place", [](const Tensor& z) { return clone(z).exp_(); }},
      {"mul in place", [](const Tensor& z) { return clone(z).mul_(Z(1, 2)).div_(add(z, 3)); }},
      {"matmul", [](const Tensor& z) { return matmul(z, adjoint(z)); }},
      {"index",
       [](const Tensor& z) {
         return index_select(z, 0, tensor({1, 1, 0}));
       }},
      {"fft", [](const Tensor& z) { return fft::fft(z, 5, 0, "ortho"); }},
      {"irfft", [](const Tensor& z) { return fft::irfft(z, 7, 1); }},
      {"pow", [](const Tensor& z) { return pow(z, Z(1.5, -0.5)); }},
      {"where", [](const Tensor& z) { return where(gt(z.real(), 0), z, mul(z, Z(0, 1))); }},
      {"sum", [](const Tensor& z) { return mul(sum(z, 0), angle(sum(z, 1, /*keepdim=*/true))); }},
  };
  for (const auto& [name, function] : functions) {
    SCOPED_TRACE(name);
    const Tensor parts = randn({3, 3, 2}, {.dtype = float64}, Generator(4));
    const auto loss = [&f = function](const Tensor& z) { return square(abs(f(z))).sum(); };
    Tensor z = clone(view_as_complex(parts)).requires_grad_();
    loss(z).backward();
    const NoGradGuard no_grad;
    for (int64_t i = 0; i < parts.numel(); ++i) {
      const auto at = [&](double step) {
        Tensor moved = clone(parts);
        moved.view({-1})[i].add_(step);
        return loss(view_as_complex(moved)).item<double>();
      };
      const double slope = (at(1e-6) - at(-1e-6)) / 2e-6;
      EXPECT_NEAR(view_as_real(z.grad()).view({-1})[i].item<double>(), slope, 1e-4 * (1 + std::abs(slope)))
          << i;
    }
  }
}

TEST(Complex, SecondDerivatives) {
  const Tensor z = full({}, Z(1, 2), {.dtype = complex128, .requires_grad = true});
  const Tensor y = square(abs(mul(z, z)));  // |z|^4, whose gradient is 4 |z|^2 z
  const Tensor first = grad({y}, {z}, {}, {.create_graph = true})[0];
  EXPECT_NEAR(std::abs(first.item<Z>() - Z(20, 40)), 0, 1e-10);
  const Tensor second = grad({first.real()}, {z})[0];  // d(4 (x^2 + y^2) x) = (12 x^2 + 4 y^2, 8 x y)
  EXPECT_NEAR(std::abs(second.item<Z>() - Z(28, 16)), 0, 1e-10);
}

TEST(Complex, RealLeavesGetRealGradients) {
  const Tensor x = tensor({1.0, 2.0}, {.requires_grad = true});
  abs(mul(x, full({2}, Z(3, 4)))).sum().backward();
  EXPECT_EQ(x.grad().dtype(), float32);
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{5, 5}));
  expect_error<AutogradError>([&] { mul(x, Z(0, 1)).sum().backward(); }, "real scalar outputs");
}

TEST(Complex, NormalNumbersHaveVarianceOne) {
  const Tensor z = randn({20000}, {.dtype = complex64}, Generator(1));
  EXPECT_NEAR(square(abs(z)).mean().item<double>(), 1, 0.05);
  EXPECT_NEAR(var(z).item<double>(), 1, 0.05);
}

TEST(Stft, AndBack) {
  const Tensor x = randn({2, 300}, {}, Generator(2));
  const StftOptions options{.hop_length = 8, .normalized = true};
  EXPECT_TRUE(allclose(istft(stft(x, 32, options), 32, {.hop_length = 8, .normalized = true, .length = 300}),
                       x, 1e-4, 1e-5));
  expect_error<ShapeError>([&] { stft(x, 1000); }, "stft");
  const Tensor open = cat({ones({31}), zeros({1})});
  expect_error<ValueError>(
      [&] { istft(stft(x, 32, {.hop_length = 32, .window = open}), 32, {.hop_length = 32, .window = open}); },
      "gaps");
}

}  // namespace
}  // namespace tern
