// Shapes that change in place, where gradients are recorded: histories, views, what was saved. The shapes
// themselves are in operator_table.py.
#include <gtest/gtest.h>

#include "tern/autograd/grad_mode.h"
#include "tern/base/error.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

Tensor matrix() { return arange(6, {.dtype = float64}).reshape({2, 3}).requires_grad_(); }
const std::vector<double> kWeights{1, 2, 3, 4, 5, 6};

/// The gradient that x has when y, which holds its elements transposed, is weighted.
std::vector<double> gradient_through(const Tensor& x, const Tensor& y) {
  EXPECT_EQ(y.shape(), Shape({3, 2}));
  (y * tensor(kWeights, {.dtype = float64}).view({3, 2})).sum().backward();
  return x.grad().to_vector<double>();
}
const std::vector<double> kTransposed{2, 6, 10, 4, 8, 12};  // of 2 x

TEST(ShapesInPlace, AreRecorded) {
  const Tensor x = matrix();
  Tensor y = x * 2;
  y.t_();
  EXPECT_EQ(gradient_through(x, y), kTransposed);
}

TEST(ShapesInPlace, AreRecordedWhereNothingElseIs) {
  const Tensor x = matrix();
  Tensor y = x * 2;
  {
    const NoGradGuard no_grad;
    y.transpose_(0, 1);
  }
  EXPECT_EQ(gradient_through(x, y), kTransposed);
}

TEST(ShapesInPlace, OfAViewWhoseBaseIsChangedAfterwards) {
  const Tensor x = matrix();
  Tensor base = x * 1;
  Tensor view = base.view({2, 3});
  view.t_();
  base.mul_(2);
  EXPECT_EQ(view.to_vector<double>(), std::vector<double>({0, 6, 2, 8, 4, 10}));
  EXPECT_EQ(gradient_through(x, view), kTransposed);
}

TEST(ShapesInPlace, OfABaseWhoseViewIsChangedAfterwards) {
  const Tensor x = matrix();
  Tensor base = x * 1, row = base[0];
  base.unsqueeze_(0);
  row.mul_(5);
  EXPECT_EQ(base.shape(), Shape({1, 2, 3}));
  EXPECT_EQ(base.to_vector<double>(), std::vector<double>({0, 5, 10, 3, 4, 5}));
  base.sum().backward();
  EXPECT_EQ(x.grad().to_vector<double>(), std::vector<double>({5, 5, 5, 1, 1, 1}));
}

TEST(ShapesInPlace, LeaveOlderViewsAsTheyAre) {
  Tensor x = arange(6).reshape({2, 3}), same = x;
  const Tensor row = x[1];
  x.t_();
  EXPECT_EQ(same.shape(), Shape({3, 2}));
  EXPECT_FALSE(same.is_contiguous());
  EXPECT_EQ(row.to_vector<int64_t>(), std::vector<int64_t>({3, 4, 5}));
  EXPECT_EQ(x.to_vector<int64_t>(), std::vector<int64_t>({0, 3, 1, 4, 2, 5}));
}

TEST(ShapesInPlace, CarryAGradientThatIsKept) {
  const Tensor x = matrix();
  Tensor y = x * 2;
  y.retain_grad();
  y.sum().backward(/*gradient=*/{}, /*retain_graph=*/true);
  y.t_();
  EXPECT_EQ(y.grad().shape(), y.shape());
  (y * 2).sum().backward();
  EXPECT_EQ(y.grad().to_vector<double>(), std::vector<double>(6, 3));
}

TEST(ShapesInPlace, CountAVersion) {
  const Tensor x = matrix();
  Tensor y = exp(x);
  y.unsqueeze_(0);
  EXPECT_THROW(y.sum().backward(), AutogradError);
}

TEST(ShapesInPlace, AreRefusedForLeaves) {
  Tensor x = matrix();
  EXPECT_THROW(x.t_(), AutogradError);
  const NoGradGuard no_grad;
  EXPECT_THROW(x.t_(), AutogradError);
  EXPECT_EQ(x.shape(), Shape({2, 3}));
}

}  // namespace
}  // namespace tern
