// Changes in place: of tensors that backward needs, through views, of bases. Values are PyTorch's.
#include "autograd_testing.h"

namespace tern {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Floats kFour = {1, 2, 3, 4};

TEST(Versions, CountChanges) {
  Tensor x = ones({2, 2});
  EXPECT_EQ(x.version(), 0u);
  x.add_(1);
  x[0].mul_(2);
  EXPECT_EQ(x.version(), 2u) << "a view counts for its base";
  no_grad([&] { x.zero_(); });
  EXPECT_EQ(x.version(), 3u);
  EXPECT_EQ((x + 1).version(), 0u);
}

TEST(Versions, AnErrorNamesTheOperator) {
  struct Row {
    const char* name;
    std::function<Tensor(const Tensor&)> use;
  };
  const Row rows[] = {
      {"exp", [](const Tensor& y) { return exp(y); }},
      {"mul", [](const Tensor& y) { return y * y; }},
      {"log", [](const Tensor& y) { return log(y); }},
      {"matmul", [](const Tensor& y) { return matmul(y, y); }},
      {"softmax", [](const Tensor& y) { return y.softmax(0); }},
      {"sigmoid", [](const Tensor& y) { return sigmoid(y); }},
  };
  for (const Row& row : rows) {
    Tensor y = leaf({1, 2}) * 1;
    Tensor z = row.use(y);
    const bool keeps_result =
        std::string(row.name) != "mul" && std::string(row.name) != "log" && std::string(row.name) != "matmul";
    (keeps_result ? z : y).add_(1);
    EXPECT_THAT(
        autograd_error([&] { z.sum().backward(); }),
        AllOf(HasSubstr(std::string(row.name) + ": one of the variables needed for gradient computation"),
              HasSubstr("version 1; expected version 0"),
              HasSubstr(keeps_result ? "the result of" : "the input of")))
        << row.name;
  }
}

/// Masks and indices too, those among an operator's results as well.
TEST(Versions, OfMasksAndIndices) {
  using Both = std::pair<Tensor, Tensor>;  // a result with a gradient, and what its gradient needs
  struct Row {
    const char* name;
    std::function<Both(Tensor)> use;
  };
  const Row rows[] = {
      {"masked_fill_",
       [](Tensor y) {
         const Tensor mask = gt(y, 2);
         return Both(y.masked_fill_(mask, 0), mask);
       }},
      {"max", [](Tensor y) { return y.max(1); }},
      {"min", [](Tensor y) { return y.min(1); }},
      {"sort", [](Tensor y) { return sort(y, 1); }},
      {"topk", [](Tensor y) { return topk(y, 1); }},
      {"median", [](Tensor y) { return median(y, 1); }},
  };
  for (const Row& row : rows) {
    Both both = row.use(leaf(kFour).view({2, 2}) * 1);
    both.second.zero_();
    EXPECT_THAT(autograd_error([&] { both.first.sum().backward(); }),
                HasSubstr(std::string(row.name) + ": one of the variables needed for gradient computation"));
  }
}

TEST(Versions, WhatIsNotNeededMayChange) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 2;
  const Tensor z = y.sum();
  y.add_(5);
  z.backward();
  EXPECT_EQ(grad_of(x), (Floats{2, 2}));
}

TEST(Versions, AChangeOfAnotherPartIsNoticedToo) {
  const Tensor x = leaf(kFour);
  Tensor y = x * 1;
  const Tensor z = exp(y[0]);
  const Tensor w = (y.slice(0, 0, 2) * y.slice(0, 0, 2)).sum();
  y[3].mul_(2);
  EXPECT_NO_THROW(z.backward({}, /*retain_graph=*/true)) << "exp keeps its result, which has its own storage";
  EXPECT_THROW(w.backward(), AutogradError);
}

TEST(InPlace, ChainOfChanges) {
  const Tensor x = leaf({0.5, 2});
  Tensor y = x * 1;
  y.mul_(3).add_(1).exp_();
  y.sum().backward();
  EXPECT_NEAR(grad_of(x)[0], 36.547481536865234, 1e-4);
  EXPECT_NEAR(grad_of(x)[1], 3289.8994140625, 1e-2);
}

TEST(InPlace, OverwritingCutsTheHistory) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 2;
  y.zero_();
  y.add_(x);
  y.sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{1, 1}));
}

TEST(InPlace, GivesAPlainTensorAHistory) {
  const Tensor w = leaf({2, 3});
  Tensor y = ones({2});
  y.mul_(w);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_FALSE(y.is_leaf());
  y.sum().backward();
  EXPECT_EQ(grad_of(w), (Floats{1, 1}));
}

TEST(InPlace, LeavesAreProtectedUnlessNothingIsRecorded) {
  Tensor x = leaf({1, 2});
  EXPECT_THAT(autograd_error([&] { x.add_(1); }), HasSubstr("add_: a leaf Variable that requires grad"));
  EXPECT_THAT(autograd_error([&] { x[0].add_(1); }), HasSubstr("add_: a view of a leaf Variable"));
  EXPECT_EQ(values(x), (Floats{1, 2})) << "nothing has changed";
  EXPECT_EQ(x.version(), 0u);
  no_grad([&] { x.add_(1); });
  no_grad([&] { x[0].mul_(5); });
  EXPECT_EQ(values(x), (Floats{10, 3}));
  EXPECT_TRUE(x.is_leaf());
  (x * 2).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{2, 2}));
}

TEST(InPlace, IndexAdd) {
  const Tensor x = leaf({1, 2, 3}), w = leaf({10, 20});
  Tensor y = x * x;
  y.index_add_(0, tensor({2, 0}), w);
  (y * tensor({1.0, 2.0, 3.0})).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{2, 8, 18}));
  EXPECT_EQ(grad_of(w), (Floats{3, 1}));
}

TEST(InPlace, MaskedFill) {
  const Tensor x = leaf({1, 2, 3});
  Tensor y = x * x;
  y.masked_fill_(tensor({true, false, true}), 0);
  y.sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{0, 4, 0}));
}

TEST(Views, AChangeReachesTheBase) {
  const Tensor x = leaf(kFour);
  Tensor y = x * 2, v = y.slice(0, 1, 3);
  v.mul_(10);
  EXPECT_EQ(values(y), (Floats{2, 40, 60, 8}));
  EXPECT_EQ(y.grad_fn_name(), "copy_slices");
  EXPECT_EQ(v.grad_fn_name(), "as_strided");
  (y * y).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{8, 1600, 2400, 32}));
}

TEST(Views, AChangeOfTheBaseReachesThem) {
  const Tensor x = leaf(kFour);
  Tensor y = x * 2;
  const Tensor v = y.slice(0, 1, 3);
  y.mul_(3);
  EXPECT_EQ(values(v), (Floats{12, 18}));
  (v * v).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{0, 144, 216, 0}));
}

TEST(Views, OverlappingOnes) {
  const Tensor x = leaf(kFour);
  Tensor y = x * 1, a = y.slice(0, 0, 2), b = y.slice(0, 1);
  a.mul_(2);
  b.mul_(3);
  EXPECT_EQ(values(a), (Floats{2, 12}));
  EXPECT_EQ(values(b), (Floats{12, 9, 12}));
  (y * tensor({1.0, 10.0, 100.0, 1000.0})).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{2, 60, 300, 3000}));
}

TEST(Views, OfViews) {
  const Tensor x = arange(6, {.dtype = float32}).view({2, 3}).clone().requires_grad_();
  Tensor y = x * 1, row = y[1], element = row[2];
  element.mul_(5);
  (row * tensor({1.0, 2.0, 3.0})).sum().backward({}, /*retain_graph=*/true);
  EXPECT_EQ(grad_of(x), (Floats{0, 0, 0, 1, 2, 15}));
  x.set_grad({});
  (y * y).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{0, 2, 4, 6, 8, 250}));
}

TEST(Views, OfAPlainBaseGetAHistory) {
  const Tensor w = leaf({2, 3});
  Tensor y = ones({4}), v = y.slice(0, 1, 3);
  v.mul_(w);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_FALSE(y.is_leaf());
  (y * tensor({1.0, 2.0, 3.0, 4.0})).sum().backward();
  EXPECT_EQ(grad_of(w), (Floats{2, 3}));
}

TEST(Views, CopyInto) {
  const Tensor w = leaf({2, 3}), x = leaf({1, 1, 1});
  Tensor y = x * 4;
  y.slice(0, 0, 2).copy_(w);
  (y * tensor({1.0, 2.0, 3.0})).sum().backward();
  EXPECT_EQ(grad_of(w), (Floats{1, 2}));
  EXPECT_EQ(grad_of(x), (Floats{0, 0, 12}));
}

TEST(Views, FillOne) {
  const Tensor x = leaf({1, 2, 3});
  Tensor y = x * 2;
  y[0].fill_(7);
  (y * y).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{0, 16, 24}));
}

TEST(Views, Transposed) {
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}}, {.requires_grad = true});
  Tensor y = x * 1;
  y.t()[0].mul_(tensor({10.0, 100.0}));
  EXPECT_EQ(values(y), (Floats{10, 2, 300, 4}));
  (y * y).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{200, 4, 60000, 8}));
}

TEST(Views, OfAnotherShape) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 1;
  const Tensor v = y.view({2, 1});
  y.mul_(2);
  EXPECT_EQ(v.grad_fn_name(), "as_strided");
  (v * v).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{8, 16}));
}

TEST(Views, SecondDerivativesThroughAChange) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * x;
  y[0].mul_(x[1]);  // y = [x0^2 x1, x1^2]
  const Tensor first = grad({y.sum()}, {x}, {}, {.create_graph = true})[0];
  EXPECT_EQ(values(first), (Floats{4, 5}));                        // [2 x0 x1, x0^2 + 2 x1]
  EXPECT_EQ(values(grad({first.sum()}, {x})[0]), (Floats{6, 4}));  // [2 x1 + 2 x0, 2 x0 + 2]
}

TEST(Views, TakenWithoutRecording) {
  const Tensor x = leaf({1, 2});
  Tensor v = no_grad([&] { return x.view({2, 1}).select(0, 0); });
  EXPECT_THAT(autograd_error([&] { v.mul_(2); }), HasSubstr("taken in a NoGradGuard"));
  no_grad([&] { v.mul_(2); });
  EXPECT_EQ(values(x), (Floats{2, 2}));
  Tensor plain = ones({2});
  Tensor of_plain = no_grad([&] { return plain[0]; });
  EXPECT_NO_THROW(of_plain.mul_(2)) << "nothing goes unnoticed";
}

TEST(InPlace, ViewsOfTensorsThatLieTurnedInMemory) {
  for (const bool through_the_view : {false, true}) {
    const Tensor x = tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}, {.requires_grad = true});
    Tensor y = x * 1;
    y.t_();  // its base has strides of 1 and 3
    Tensor row = y[1];
    if (through_the_view)
      row.mul_(2);
    else
      y.mul_(2);
    (row * row).sum().backward();
    EXPECT_EQ(grad_of(x), (Floats{0, 16, 0, 0, 40, 0}));
    EXPECT_EQ(values(grad({y.sum()}, {x})[0]),
              through_the_view ? (Floats{1, 2, 1, 1, 2, 1}) : (Floats{2, 2, 2, 2, 2, 2}));
  }
}

}  // namespace
}  // namespace tern
