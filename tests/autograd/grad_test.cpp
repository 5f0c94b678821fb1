// backward() and grad(): accumulation, several outputs, unused inputs, higher derivatives, wrong calls.
// Values are PyTorch's.
#include "autograd_testing.h"

namespace tern {
namespace {

using ::testing::HasSubstr;

TEST(Backward, AddsToWhatIsThere) {
  const Tensor x = leaf({1, 2});
  for (int i = 0; i < 3; ++i) (x * x).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{6, 12}));
  x.set_grad({});
  (x * x).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{2, 4}));
}

/// The gradient that is there is changed in place: an optimizer's handle to it stays good.
TEST(Backward, KeepsTheGradientTensor) {
  const Tensor x = leaf({1, 2});
  (x * 1).sum().backward();
  const Tensor before = x.grad();
  (x * 1).sum().backward();
  EXPECT_TRUE(x.grad().is_same(before));
  EXPECT_EQ(values(before), (Floats{2, 2}));
}

TEST(Backward, GradientsAreNotShared) {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4});
  (a + b).sum().backward();
  Tensor of_a = a.grad();
  of_a.add_(10);
  EXPECT_EQ(grad_of(b), (Floats{1, 1}));
  const Tensor given = ones({2});
  (a * 1).backward(given);
  EXPECT_EQ(grad_of(a), (Floats{12, 12}));
  EXPECT_EQ(values(given), (Floats{1, 1}));
}

/// The user's own gradient tensor is changed in place, which an expanded one cannot be.
TEST(Backward, RefusesToAddToAGradientThatSharesMemory) {
  const Tensor x = leaf({1, 2, 3});
  x.set_grad(zeros({1}).expand({3}));
  EXPECT_THROW((x * 2).sum().backward(), ShapeError);
  (x * 2).sum().backward({}, /*retain_graph=*/false, /*create_graph=*/true);
  EXPECT_EQ(grad_of(x), (Floats{2, 2, 2})) << "a recorded sum is a new tensor";
}

TEST(Backward, WithAGradient) {
  const Tensor x = leaf({1, 2});
  (x * x).backward(tensor({1.0, 10.0}));
  EXPECT_EQ(grad_of(x), (Floats{2, 40}));
}

TEST(Backward, ConvertsTheGradientThatIsGiven) {
  for (DType dtype : {float64, float16, int64, uint8, bool_}) {
    const Tensor x = leaf({1, 2}), given = ones({2}).to(dtype);
    (x * x).backward(given);
    EXPECT_EQ(x.grad().dtype(), float32) << name(dtype);
    EXPECT_EQ(grad_of(x), (Floats{2, 4})) << name(dtype);
    EXPECT_EQ(values(grad({x * x}, {x}, {given})[0]), (Floats{2, 4})) << name(dtype);
  }
  const Tensor x = leaf({3}), w = ones({1}, {.dtype = float64, .requires_grad = true});
  const Tensor slope = grad({x * x}, {x}, {w}, {.create_graph = true})[0];
  slope.sum().backward();
  EXPECT_EQ(w.grad().dtype(), float64);
  EXPECT_EQ(w.grad().item<double>(), 6);
}

TEST(Backward, OfSeveralOutputs) {
  const Tensor x = leaf({1, 2});
  backward({(x * 2).sum(), (x * x).sum()});
  EXPECT_EQ(grad_of(x), (Floats{4, 6}));
  const std::vector<Tensor> g = grad({x * 2, x * x}, {x}, {ones({2}), tensor({1.0, 10.0})});
  EXPECT_EQ(values(g[0]), (Floats{4, 42}));
}

TEST(Backward, OfAnOutputAndWhatItIsMadeOf) {
  const Tensor x = leaf({3});
  const Tensor y = x * x, z = y * 2;
  backward({z.sum(), y.sum()});
  EXPECT_EQ(grad_of(x), (Floats{18}));
}

TEST(Backward, OfALeaf) {
  const Tensor x = leaf({3});
  x.backward();
  EXPECT_EQ(grad_of(x), (Floats{1}));
}

TEST(Backward, BroadcastGradientsAreSummed) {
  const Tensor row = leaf({1, 2, 3}), number = tensor(2.0, {.requires_grad = true});
  const Tensor column = reshape(leaf({1, 2}), {2, 1});
  column.retain_grad();
  (row * column * number).sum().backward();
  EXPECT_EQ(grad_of(row), (Floats{6, 6, 6}));
  EXPECT_EQ(grad_of(column), (Floats{12, 12}));
  EXPECT_EQ(grad_of(number), (Floats{18}));
}

TEST(Backward, TwiceNeedsARetainedGraph) {
  const Tensor x = leaf({1, 2});
  const Tensor y = exp(x).sum();
  y.backward();
  EXPECT_THAT(autograd_error([&] { y.backward(); }),
              ::testing::AllOf(HasSubstr("exp: Trying to backward through the graph a second time"),
                               HasSubstr("retain_graph=true")));
  const Tensor z = (x * x).sum();
  z.backward({}, /*retain_graph=*/true);
  EXPECT_NO_THROW(z.backward());
  EXPECT_THROW(z.backward(), AutogradError);
}

/// Nodes that save nothing can be walked again, as in PyTorch.
TEST(Backward, TwiceThroughNodesThatSaveNothing) {
  const Tensor x = leaf({1, 2});
  const Tensor y = (x + 1).sum();
  y.backward();
  y.backward();
  EXPECT_EQ(grad_of(x), (Floats{2, 2}));
}

TEST(Backward, OfManyElementsNeedsAGradient) {
  EXPECT_THAT(autograd_error([] {
                (leaf({1, 2}) * 2).backward();
              }),
              ::testing::AllOf(HasSubstr("only for scalar outputs"), HasSubstr("[2]")));
  EXPECT_NO_THROW((leaf({1}) * 2).backward()) << "one element in one dimension is enough";
}

TEST(Backward, AfterAFailureTheGraphIsStillThere) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * x;
  EXPECT_THROW(y.backward(), AutogradError);
  EXPECT_THROW(y.backward(ones({3})), ShapeError);
  y.backward(ones({2}));
  EXPECT_EQ(grad_of(x), (Floats{2, 4}));
}

TEST(Grad, TouchesNoGradient) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const std::vector<Tensor> g = grad({(x * w).sum()}, {w, x});
  EXPECT_EQ(values(g[0]), (Floats{1, 2}));
  EXPECT_EQ(values(g[1]), (Floats{3, 4}));
  EXPECT_EQ(grad_of(x), Floats());
  EXPECT_EQ(grad_of(w), Floats());
  EXPECT_FALSE(g[0].requires_grad());
}

TEST(Grad, OfIntermediateTensors) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 3, z = (y * y).sum();
  EXPECT_EQ(values(grad({z}, {y})[0]), (Floats{6, 12}));
  EXPECT_EQ(values(grad({(y * y).sum()}, {x})[0]), (Floats{18, 36}));
  EXPECT_EQ(values(grad({y}, {y}, {ones({2})})[0]), (Floats{1, 1}));
}

TEST(Grad, OfTheSameInputTwice) {
  const Tensor x = leaf({3});
  const std::vector<Tensor> g = grad({(x * x).sum()}, {x, x});
  EXPECT_EQ(values(g[0]), (Floats{6}));
  EXPECT_EQ(values(g[1]), (Floats{6}));
}

TEST(Grad, AllowUnused) {
  const Tensor x = leaf({1}), unused = leaf({1});
  EXPECT_THAT(autograd_error([&] {
                grad({(x * 2).sum()}, {x, unused});
              }),
              ::testing::AllOf(HasSubstr("input 1"), HasSubstr("allow_unused=true")));
  const std::vector<Tensor> g = grad({(x * 2).sum()}, {x, unused, unused}, {}, {.allow_unused = true});
  EXPECT_EQ(values(g[0]), (Floats{2}));
  EXPECT_FALSE(g[1].defined());
  EXPECT_FALSE(g[2].defined());
}

/// Only what leads to the inputs is walked: the saved tensors of the rest stay.
TEST(Grad, LeavesTheRestOfTheGraph) {
  const Tensor x = leaf({1}), w = leaf({2});
  const Tensor left = exp(x), right = exp(w);
  const Tensor y = (left + right).sum();
  grad({y}, {x}, {}, {.retain_graph = false});
  EXPECT_NO_THROW(right.sum().backward());
  EXPECT_THROW(left.sum().backward(), AutogradError);
}

TEST(Grad, ThirdDerivatives) {
  const Tensor x = leaf({2, 3});
  const Tensor y = (x * x * x * x).sum();
  const Tensor first = grad({y}, {x}, {}, {.create_graph = true})[0];
  const Tensor second = grad({first.sum()}, {x}, {}, {.create_graph = true})[0];
  const Tensor third = grad({second.sum()}, {x})[0];
  EXPECT_EQ(values(first), (Floats{32, 108}));
  EXPECT_EQ(values(second), (Floats{48, 108}));
  EXPECT_EQ(values(third), (Floats{48, 72}));
  EXPECT_TRUE(second.requires_grad());
  EXPECT_FALSE(third.requires_grad());
}

/// exp(sin(x)) at 0.5.
TEST(Grad, ThirdDerivativeOfAComposition) {
  const Tensor x = tensor({0.5}, {.dtype = float64, .requires_grad = true});
  Tensor d = exp(sin(x));
  const double expected[] = {1.6151462964420837, 1.4174241, 0.4695644, -2.3644416};
  for (int order = 0;; ++order) {
    EXPECT_NEAR(d.item<double>(), expected[order], 2e-7) << order;
    if (order == 3) break;
    d = grad({d.sum()}, {x}, {}, {.create_graph = true})[0];
  }
}

TEST(Grad, MixedDerivative) {
  const Tensor x = tensor({1.0, 2.0}, {.dtype = float64, .requires_grad = true});
  const Tensor a = tensor(3.0, {.dtype = float64, .requires_grad = true});
  const std::vector<Tensor> first = grad({exp(a * x).sum()}, {x, a}, {}, {.create_graph = true});
  EXPECT_NEAR(first[0].to_vector<double>()[0], 60.256610769563004, 1e-10);
  EXPECT_NEAR(first[0].to_vector<double>()[1], 1210.2863804782053, 1e-10);
  EXPECT_NEAR(first[1].item<double>(), 826.9431239086579, 1e-10);
  EXPECT_NEAR(grad({first[0].sum()}, {a})[0].item<double>(), 2904.3437021418963, 1e-9);
}

TEST(Grad, ThroughAGivenGradient) {
  const Tensor x = leaf({1, 2}), v = leaf({1, 1});
  const Tensor g = grad({x * x}, {x}, {v}, {.create_graph = true})[0];  // 2 x v
  EXPECT_EQ(values(grad({g.sum()}, {v})[0]), (Floats{2, 4}));
}

TEST(Grad, KeepsTheGradientsOfRetainedTensors) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor y = x * 3, z = w * 2;
  y.retain_grad();
  z.retain_grad();
  const std::vector<Tensor> g = grad({(y * z).sum()}, {x});
  EXPECT_EQ(values(g[0]), (Floats{18, 24}));
  EXPECT_EQ(grad_of(y), (Floats{6, 8}));
  EXPECT_EQ(grad_of(z), Floats()) << "it does not lead to x";
  EXPECT_EQ(grad_of(x), Floats());
}

TEST(CreateGraph, GradientsAreNotShared) {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4}), given = ones({2});
  (a + b).sum().backward({}, /*retain_graph=*/false, /*create_graph=*/true);
  EXPECT_TRUE(a.grad().is_contiguous());
  (a * tensor({1.0f, 2.0f})).sum().backward();
  EXPECT_EQ(grad_of(a), (Floats{2, 3}));
  EXPECT_EQ(grad_of(b), (Floats{1, 1}));
  const Tensor c = leaf({5, 6});
  (c * 1).backward(given, /*retain_graph=*/false, /*create_graph=*/true);
  (c * 2).sum().backward();
  EXPECT_EQ(grad_of(c), (Floats{3, 3}));
  EXPECT_EQ(values(given), (Floats{1, 1}));
}

TEST(CreateGraph, ACopiedGradientIsRecorded) {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4}), g = leaf({5, 6});
  (a + b).backward(g, /*retain_graph=*/false, /*create_graph=*/true);
  EXPECT_EQ(values(grad({(a.grad() * b.grad()).sum()}, {g})[0]), (Floats{10, 12}));
}

TEST(CreateGraph, LeavesARecordedGradient) {
  const Tensor x = leaf({3});
  (x * x * x).sum().backward({}, /*retain_graph=*/false, /*create_graph=*/true);
  ASSERT_TRUE(x.grad().requires_grad());
  EXPECT_EQ(grad_of(x), (Floats{27}));
  EXPECT_EQ(values(grad({x.grad().sum()}, {x})[0]), (Floats{18}));
  x.set_grad({});  // it holds the graph, which holds x
}

}  // namespace
}  // namespace tern
