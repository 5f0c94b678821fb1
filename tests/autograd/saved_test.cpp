// What hooks keep in place of saved tensors, and gradients that are no numbers.
#include "autograd_testing.h"
#include "tern/autograd/anomaly.h"
#include "tern/autograd/gradcheck.h"
#include "tern/autograd/saved_hooks.h"

namespace tern {
namespace {

using autograd::SavedTensorsHooks;

TEST(SavedTensorsHooks, KeepWhatTheyReturn) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  std::vector<Floats> packed;
  int unpacked = 0;
  Tensor y;
  {
    const SavedTensorsHooks hooks([&](const Tensor& saved) {
      EXPECT_FALSE(saved.requires_grad());
      packed.push_back(values(saved));
      return [kept = saved * 10, &unpacked] {
        ++unpacked;
        return kept / 10;  // operators of a hook are not recorded, nor do their tensors come to it
      };
    });
    y = exp(x * w) * w;
  }
  const Tensor outside = y * y;  // keeps y itself
  const Floats product{3, 8}, power = values(exp(tensor(product)));
  EXPECT_EQ(packed, (std::vector<Floats>{power, power}))
      << "leaves that require gradients are kept as they are";
  y.sum().backward();
  EXPECT_EQ(unpacked, 2);
  EXPECT_EQ(grad_of(x), values(exp(tensor(product)) * tensor({9.f, 16.f})));
}

TEST(SavedTensorsHooks, SecondDerivatives) {
  const std::vector<Tensor> x = {tensor({0.5, -1.0}, {.dtype = DType::Float64, .requires_grad = true})};
  gradgradcheck(
      [](const std::vector<Tensor>& in) {
        const SavedTensorsHooks hooks(
            [](const Tensor& saved) { return [copy = saved.clone()] { return copy; }; });
        const Tensor squared = in[0] * in[0];
        return exp(squared) * squared * tanh(squared);
      },
      x);
}

TEST(SavedTensorsHooks, NestAndEnd) {
  const Tensor x = leaf({1, 2}) * 1;
  int outer = 0, inner = 0;
  const auto counting = [](int& count) {
    return [&count](const Tensor& saved) {
      ++count;
      return [saved] { return saved; };
    };
  };
  {
    const SavedTensorsHooks first(counting(outer));
    (void)exp(x);
    {
      const SavedTensorsHooks second(counting(inner));
      (void)exp(x);
      EXPECT_THROW(matmul(x, ones({3})), ShapeError);
    }
    (void)exp(x);
  }
  (void)exp(x);
  EXPECT_EQ(outer, 2);
  EXPECT_EQ(inner, 1);
}

TEST(SavedTensorsHooks, RefuseAnotherTensor) {
  const Tensor x = leaf({1, 2});
  Tensor y;
  {
    const SavedTensorsHooks hooks([](const Tensor&) { return [] { return ones({3}); }; });
    y = exp(x);
  }
  EXPECT_THAT(
      autograd_error([&] { y.sum().backward(); }),
      testing::StartsWith("exp: what a hook kept in place of a saved tensor gave back another one: expected "
                          "float32 of shape [2]"));
}

TEST(DetectAnomaly, NamesTheFirstOperatorWithNaN) {
  const Tensor x = leaf({0, 4});
  const auto run = [&] { (sqrt(x) * 0).sum().backward(); };  // 0 times the slope of infinity
  run();
  EXPECT_THAT(
      autograd_error([&] {
        const autograd::DetectAnomalyGuard guard;
        run();
      }),
      testing::StartsWith("backward of sqrt: 1 of 2 numbers of the gradient of input 0 (float32 of shape "
                          "[2]) are NaN"));
  const autograd::DetectAnomalyGuard silent(/*check_nan=*/false);
  run();
}

}  // namespace
}  // namespace tern
