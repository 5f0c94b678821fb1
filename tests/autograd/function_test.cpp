// Functions with gradients of one's own: arguments and results of all kinds, second derivatives, what is
// kept, and what is refused.
#include <optional>
#include <string>
#include <thread>
#include <tuple>

#include "autograd_testing.h"
#include "tern/autograd/function.h"
#include "tern/autograd/gradcheck.h"
#include "tern/nn/parameter.h"

namespace tern {
namespace {

/// factor x^3; its factor is a field, its argument a saved tensor.
struct Cube : autograd::Function<Cube> {
  double factor = 1;
  Tensor forward(autograd::FunctionContext& context, const Tensor& x, double times) {
    EXPECT_FALSE(is_grad_enabled());
    factor = times;
    context.save_for_backward({x});
    return times * x * x * x;
  }
  Tensor backward(autograd::FunctionContext& context, const Tensor& grad) {
    const Tensor x = context.saved_tensors()[0];
    return 3 * factor * x * x * grad;
  }
};

/// e^x, which keeps its result; written as PyTorch's are, with static functions.
struct Exponential : autograd::Function<Exponential> {
  static Tensor forward(autograd::FunctionContext& context, const Tensor& x) {
    const Tensor y = exp(x);
    context.save_for_backward({y});
    return y;
  }
  static std::vector<Tensor> backward(const autograd::FunctionContext& context,
                                      const std::vector<Tensor>& grads) {
    return {grads[0] * context.saved_tensors()[0]};
  }
};

/// Sum and product of two tensors, both kept, and a result that is no function of them.
struct SumAndProduct : autograd::Function<SumAndProduct> {
  static std::tuple<Tensor, Tensor, Tensor> forward(autograd::FunctionContext& context, const Tensor& a,
                                                    const Tensor& b) {
    const Tensor sum = a + b, product = a * b;
    context.save_for_backward({a, b, product});
    return {sum, product, argmax(a)};
  }
  static std::array<Tensor, 2> backward(autograd::FunctionContext& context,
                                        const std::vector<Tensor>& grads) {
    const std::vector<Tensor> saved = context.saved_tensors();
    EXPECT_EQ(saved.size(), 3u);
    return {grads[0] + grads[1] * saved[1], grads[0] + grads[1] * saved[0]};
  }
};

TEST(Function, GivesTheGradientThatItComputes) {
  const Tensor x = leaf({1, 2});
  const Tensor y = Cube::apply(x, 2.0);
  EXPECT_EQ(values(y), (Floats{2, 16}));
  EXPECT_EQ(y.grad_fn_name(), "Cube");
  y.sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{6, 24}));
}

TEST(Function, HasSecondDerivatives) {
  const TensorOptions wanted{.dtype = DType::Float64, .requires_grad = true};
  const std::vector<Tensor> x = {tensor({0.5, -1.0, 2.0}, wanted)},
                            two = {x[0], tensor({1.0, 3.0, -0.5}, wanted)};
  gradgradcheck([](const std::vector<Tensor>& in) { return Cube::apply(in[0], 2.0); }, x);
  gradgradcheck([](const std::vector<Tensor>& in) { return Exponential::apply(in[0]); }, x);
  gradgradcheck(
      [](const std::vector<Tensor>& in) {
        const auto [sum, product, place] = SumAndProduct::apply(in[0], in[1]);
        return sum * sum * product;
      },
      two);
}

/// Its gradient is made of its second result alone, which it keeps: nobody else needs to hold that.
struct SquareByPower : autograd::Function<SquareByPower> {
  static std::pair<Tensor, Tensor> forward(autograd::FunctionContext& context, const Tensor& x) {
    const Tensor y = x * 1;
    context.save_for_backward({y});
    return {x * x, y};
  }
  static Tensor backward(autograd::FunctionContext& context, const std::vector<Tensor>& grads) {
    return 2 * context.saved_tensors()[0] * grads[0] + grads[1];
  }
};

TEST(Function, KeepsAResultThatNobodyUses) {
  const Tensor x = leaf({3});
  const Tensor y = SquareByPower::apply(x).first;
  const Tensor first = grad({y}, {x}, {}, {.create_graph = true})[0];
  EXPECT_EQ(values(first), (Floats{6}));
  EXPECT_EQ(values(grad({first}, {x})[0]), (Floats{2}));
}

TEST(Function, OfSeveralResults) {
  const Tensor a = leaf({1, 5}), b = leaf({3, 4});
  const auto [sum, product, place] = SumAndProduct::apply(a, b);
  EXPECT_FALSE(place.requires_grad());
  Floats seen;
  product.register_hook([&](const Tensor& g) { seen = values(g); });
  backward({sum, product}, {ones({2}), full({2}, 10.0)});
  EXPECT_EQ(seen, (Floats{10, 10}));
  EXPECT_EQ(grad_of(a), (Floats{31, 41}));
  EXPECT_EQ(grad_of(b), (Floats{11, 51}));
}

TEST(Function, GivesZerosForResultsThatNothingDependsOn) {
  const Tensor a = leaf({1, 5}), b = leaf({3, 4});
  std::get<1>(SumAndProduct::apply(a, b)).sum().backward();
  EXPECT_EQ(grad_of(a), (Floats{3, 4}));
}

/// What it is given for a result without gradient depends on set_materialize_grads.
struct Pair : autograd::Function<Pair> {
  bool zeros = true;
  std::vector<Tensor> forward(autograd::FunctionContext& context, const std::vector<Tensor>& x,
                              bool with_zeros) {
    zeros = with_zeros;
    context.set_materialize_grads(with_zeros);
    EXPECT_EQ(context.needs_input_grad(0), x[0].requires_grad());
    EXPECT_EQ(context.needs_input_grad(1), x[1].requires_grad());
    return {x[0] * 2, x[1] * 3};
  }
  std::vector<Tensor> backward(autograd::FunctionContext& context, const std::vector<Tensor>& grads) {
    EXPECT_TRUE(context.needs_input_grad(0));
    EXPECT_FALSE(context.needs_input_grad(1));
    EXPECT_EQ(grads[1].defined(), zeros);
    return {grads[0] * 2, {}, {}};
  }
};

TEST(Function, OfListsOfTensors) {
  for (const bool zeros : {true, false}) {
    const Tensor x = leaf({1});
    const std::vector<Tensor> y = Pair::apply(std::vector{x, ones({1})}, zeros);
    y[0].sum().backward();
    EXPECT_EQ(grad_of(x), (Floats{2})) << zeros;
  }
}

/// Passes its argument on as it is, and a constant.
struct PassOn : autograd::Function<PassOn> {
  static std::pair<Tensor, Tensor> forward(autograd::FunctionContext& context, const Tensor& x) {
    const Tensor rounded = round(x);
    context.mark_non_differentiable({rounded});
    return {x, rounded};
  }
  static Tensor backward(autograd::FunctionContext&, const std::vector<Tensor>& grads) {
    return grads[0] * 10;
  }
};

TEST(Function, MayReturnItsArgument) {
  const Tensor x = leaf({1.25});
  const auto [y, rounded] = PassOn::apply(x);
  EXPECT_FALSE(rounded.requires_grad());
  EXPECT_TRUE(x.is_leaf());
  (y * y).sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{25}));
}

/// Of whatever holds tensors, with what holds none between.
struct Scaled : autograd::Function<Scaled> {
  double by = 1;
  std::tuple<Tensor, int64_t, std::optional<Tensor>> forward(autograd::FunctionContext&, const std::string&,
                                                             const std::optional<Tensor>& x,
                                                             const std::vector<int64_t>& factor,
                                                             const std::pair<Tensor, double>& y) {
    by = static_cast<double>(factor[0]);
    return {(x ? *x : y.first) * by, factor[0], y.first * by};
  }
  std::vector<Tensor> backward(autograd::FunctionContext&, const std::vector<Tensor>& grads) {
    EXPECT_EQ(grads.size(), 2u);
    return {{}, grads[0] * by, {}, grads[1] * by, {}};
  }
};

TEST(Function, OfWhateverHoldsTensors) {
  const Tensor y = leaf({1});
  nn::Parameter x(tensor({2.f}));
  const auto [first, number, second] = Scaled::apply(std::string("name"), std::optional<Tensor>(x),
                                                     std::vector<int64_t>{3}, std::pair{y, 1.5});
  EXPECT_EQ(number, 3);
  backward({first, *second});
  EXPECT_EQ(grad_of(x), (Floats{3}));
  EXPECT_EQ(grad_of(y), (Floats{3}));
  Cube::apply(x, 1.0).sum().backward();  // a parameter is a tensor
  EXPECT_EQ(grad_of(x), (Floats{15}));
}

TEST(Function, RefusesChangesOfAnArgumentThatItReturned) {
  const Tensor x = leaf({1.25});
  Tensor y = PassOn::apply(x * 1).first;
  EXPECT_THAT(autograd_error([&] { y.mul_(2); }), testing::HasSubstr("an argument that a Function returned"));
}

struct TakesOne : autograd::Function<TakesOne> {
  static std::pair<Tensor, Tensor> forward(autograd::FunctionContext&, const Tensor& x) {
    return {x * 2, x * 3};
  }
  static Tensor backward(autograd::FunctionContext&, const Tensor& grad) { return grad; }
};

TEST(Function, BackwardTakesTheGradientsOfAllResults) {
  EXPECT_EQ(
      autograd_error([] { TakesOne::apply(leaf({1})).first.sum().backward(); }),
      "TakesOne: backward() takes one gradient, and forward() has 2 results: take a std::vector<Tensor>");
}

TEST(Function, RecordsNothingWhereNothingIsRecorded) {
  EXPECT_FALSE(Cube::apply(ones({2}), 1.0).requires_grad());
  EXPECT_FALSE(no_grad([] { return Cube::apply(leaf({1}), 1.0); }).requires_grad());
}

TEST(Function, KeepsItsTensorsAsOperatorsDo) {
  const Tensor x = leaf({1, 2});
  const Tensor again = Cube::apply(x, 1.0);
  again.sum().backward({}, /*retain_graph=*/true);
  again.sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{6, 24}));
  EXPECT_THAT(autograd_error([&] { again.sum().backward(); }),
              testing::HasSubstr("Cube: Trying to backward through the graph a second time"));

  Tensor y = Exponential::apply(x);
  y.add_(1);
  EXPECT_THAT(autograd_error([&] { y.sum().backward(); }),
              testing::HasSubstr("Exponential: one of the variables needed for gradient computation has been "
                                 "modified by an inplace operation"));
}

struct Wrong : autograd::Function<Wrong> {
  int kind = 0;
  Tensor forward(autograd::FunctionContext& context, const Tensor& x, const Tensor&, int which) {
    kind = which;
    if (kind == 0) Tensor(x).mul_(2);
    if (kind == 1) context.saved_tensors();
    return x + 1;
  }
  std::vector<Tensor> backward(autograd::FunctionContext&, const Tensor& grad) {
    if (kind == 2) return {grad};
    if (kind == 3) return {grad, grad, grad};
    if (kind == 4) return {grad, grad, {}, {}};
    if (kind == 5) return {grad.sum(), grad};
    return {grad.to(DType::Float64), {}};
  }
};

TEST(Function, Errors) {
  const auto run = [](int kind) {
    const Tensor x = leaf({1, 2}), y = leaf({1, 2});
    Wrong::apply(x, y, kind).sum().backward();
    EXPECT_EQ(grad_of(x), (Floats{1, 1}));
    EXPECT_FALSE(y.grad().defined());
  };
  const std::pair<int, const char*> rows[] = {
      {0, "Wrong: forward() changed argument 0 in place: change a clone() of it"},
      {1, "saved_tensors: they are there in backward() only"},
      {2,
       "Wrong: backward() returned an incorrect number of gradients: expected 3, one for each argument of "
       "forward(), got 1"},
      {3, "Wrong: backward() returned a gradient for argument 2, which is no tensor"},
      {4,
       "Wrong: backward() returned an incorrect number of gradients: expected 3, one for each argument of "
       "forward(), got 4"},
  };
  for (const auto& [kind, text] : rows) {
    const int which = kind;
    EXPECT_EQ(autograd_error([&] { run(which); }), text);
  }
  EXPECT_THROW(run(5), ShapeError);
  run(6);  // another dtype is converted
}

TEST(Function, OneGraphInTwoThreads) {
  const Tensor a = leaf({1, 5}), b = leaf({3, 4});
  const auto results = SumAndProduct::apply(a, b);
  const Tensor y = std::get<0>(results) * std::get<1>(results);
  std::vector<Floats> found(8);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < found.size(); ++t)
    threads.emplace_back([&, t] { found[t] = values(grad({y.sum()}, {a}, {}, {.retain_graph = true})[0]); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(found, testing::Each(Floats{15, 56}));
}

}  // namespace
}  // namespace tern
