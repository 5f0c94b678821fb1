// What a real GPU must do, beside the CPU. Without one every test is skipped and says why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tern/tern.h"
#include "tests/support/emulated.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

class Gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::is_available()) GTEST_SKIP() << "there is no GPU: " << cuda::unavailable_reason();
    if (cuda::get_device_properties("cuda:0").simulated) GTEST_SKIP() << "the GPUs are simulated";
  }
  void TearDown() override {
    if (cuda::is_available()) cuda::synchronize();
  }

  /// `f` gives on the GPU what it gives on the CPU.
  template <class F>
  static void expect_same(F&& f, std::initializer_list<Tensor> inputs, double rtol = 1e-5,
                          double atol = 1e-6) {
    const std::vector<Tensor> here(inputs);
    std::vector<Tensor> there;
    for (const Tensor& x : here) there.push_back(x.to("cuda:0"));
    const Tensor expected = f(here), actual = f(there);
    EXPECT_TRUE(actual.device().is_cuda());
    EXPECT_EQ(actual.shape(), expected.shape());
    EXPECT_TRUE(allclose(actual.cpu(), expected, rtol, atol, /*equal_nan=*/true));
  }
};

using Inputs = const std::vector<Tensor>&;

TEST_F(Gpu, HasProperties) {
  const DeviceProperties properties = cuda::get_device_properties("cuda:0");
  EXPECT_FALSE(properties.name.empty());
  EXPECT_GT(properties.total_memory, uint64_t{1} << 30);
  EXPECT_GT(properties.processors, 0);
  EXPECT_GE(properties.major, 7);
  EXPECT_EQ(properties.uuid.size(), 40u);
  EXPECT_EQ(properties.pci_bus_id.size(), 12u);
}

TEST_F(Gpu, CopiesBytes) {
  const Tensor x = randn({1000, 333});
  EXPECT_TRUE(equal(x.to("cuda:0").cpu(), x));
  const Tensor pinned = x.pin_memory();
  EXPECT_TRUE(equal(pinned.to("cuda:0").cpu(), x));
  for (DType dtype : {float16, bfloat16, float64, int64, int32, uint8})
    EXPECT_TRUE(equal(x.to("cuda:0").to(dtype).cpu(), x.to(dtype))) << name(dtype);
}

TEST_F(Gpu, Pointwise) {
  const Tensor a = randn({37, 129}), b = randn({37, 129}), row = randn({129});
  expect_same([](Inputs x) { return x[0] + x[1]; }, {a, b});
  expect_same([](Inputs x) { return x[0] * x[1]; }, {a, row});
  expect_same([](Inputs x) { return transpose(x[0], 0, 1) - 2; }, {a});
  expect_same([](Inputs x) { return exp(x[0]) + tanh(x[0]); }, {a});
  expect_same([](Inputs x) { return where(x[0] > 0, x[0], x[1]); }, {a, b});
  expect_same([](Inputs x) { return contiguous(transpose(x[0], 0, 1)); }, {a}, 0, 0);
}

TEST_F(Gpu, BroadcastsRowsAndColumns) {
  for (DType dtype : {float32, bfloat16, float64}) {
    const Tensor x = randn({6, 40, 32}).to(dtype), row = randn({32}).to(dtype),
                 column = randn({40, 1}).to(dtype), outer = randn({6, 1, 32}).to(dtype),
                 wide = randn({6, 40, 33}).to(dtype);
    for (const Tensor& y : {row, column, outer, row.view({32}).slice(0, 0, 1)}) {
      expect_same([](Inputs t) { return t[0] + t[1]; }, {x, y}, 0, 0);
      expect_same([](Inputs t) { return t[1] / t[0]; }, {x, y}, 1e-6, 0);
    }
    // Rows that are not aligned to packs.
    expect_same([](Inputs t) { return t[0] * t[1].slice(2, 1, 33); }, {x, wide}, 0, 0);
    expect_same([](Inputs t) { return t[0].slice(2, 0, 30) - t[1].slice(0, 1, 31); }, {x, row}, 0, 0);
  }
}

TEST_F(Gpu, Reductions) {
  const Tensor x = randn({65, 1030});
  expect_same([](Inputs t) { return t[0].sum(); }, {x}, 1e-4, 1e-3);
  expect_same([](Inputs t) { return sum(t[0], {0}); }, {x}, 1e-5, 1e-4);
  expect_same([](Inputs t) { return sum(t[0], {1}); }, {x}, 1e-5, 1e-4);
  expect_same([](Inputs t) { return argmax(t[0], 1); }, {x}, 0, 0);
  const Tensor there = x.to("cuda:0");
  EXPECT_TRUE(equal(there.sum().cpu(), there.sum().cpu()));
}

TEST_F(Gpu, RandomNumbersAreTheCpus) {
  for (DType dtype : {float32, float64}) {
    manual_seed(7);
    const Tensor here = rand({1001}, {.dtype = dtype});
    manual_seed(7);
    const Tensor there = rand({1001}, {.dtype = dtype, .device = "cuda:0"});
    EXPECT_TRUE(equal(there.cpu(), here)) << name(dtype);
  }
  manual_seed(8);
  const Tensor here = randperm(5000);
  manual_seed(8);
  EXPECT_TRUE(equal(randperm(5000, {.device = "cuda:0"}).cpu(), here));
}

TEST_F(Gpu, Products) {
  const Tensor a = randn({33, 70}), b = randn({70, 45}), batch = randn({5, 33, 70});
  expect_same([](Inputs x) { return matmul(x[0], x[1]); }, {a, b}, 1e-4, 1e-4);
  expect_same([](Inputs x) { return matmul(x[0], x[1]); }, {batch, b}, 1e-4, 1e-4);
  expect_same([](Inputs x) { return matmul(transpose(x[1], 0, 1), transpose(x[0], 0, 1)); }, {a, b}, 1e-4,
              1e-4);
  const Tensor image = randn({2, 3, 20, 20}), weight = randn({6, 3, 5, 5}), bias = randn({6});
  expect_same([](Inputs x) { return conv2d(x[0], x[1], x[2]); }, {image, weight, bias}, 1e-4, 1e-4);
}

TEST_F(Gpu, ProductsOfRowsThatAreVeryFarApart) {
  if (testing::is_emulated("cuda:0")) GTEST_SKIP() << "more memory than the emulator's";
  const int64_t apart = (int64_t{1} << 31) + 8;
  const Tensor memory = empty({apart + 64}, {.dtype = bfloat16, .device = "cuda:0"});
  Tensor rows = as_strided(memory, {2, 64}, {apart, 1});
  const Tensor dense = randn({2, 64}).to(bfloat16).to("cuda:0"),
               b = randn({64, 16}).to(bfloat16).to("cuda:0");
  rows.copy_(dense);
  EXPECT_TRUE(equal(matmul(rows, b), matmul(dense, b)));
}

TEST_F(Gpu, ProductsOfFloat32AreAsExactAsThePrecisionAsksFor) {
  const Tensor a = rand({256, 256}), b = rand({256, 256});
  const Tensor exact = matmul(a.to(float64), b.to(float64)), x = a.to("cuda:0"), y = b.to("cuda:0");
  const auto error = [&](const Tensor& product) {
    return max(abs(product.cpu().to(float64) - exact) / exact).item<double>();
  };
  const double highest = error(matmul(x, y));
  EXPECT_LT(highest, 1e-5);
  set_float32_matmul_precision("high");
  const double high = error(matmul(x, y));
  set_float32_matmul_precision("medium");
  const double medium = error(matmul(x, y));
  set_float32_matmul_precision("highest");
  EXPECT_LT(high, 2e-3);
  EXPECT_EQ(medium, high) << "as in PyTorch";
  EXPECT_EQ(error(matmul(x, y)), highest);
  if (cuda::get_device_properties("cuda:0").major >= 8) {
    EXPECT_GT(high, highest);
  }
}

TEST_F(Gpu, ConvolutionsOfFloat32AreExactUnlessTf32IsAllowed) {
  const Tensor image = rand({4, 64, 32, 32}), weight = rand({64, 64, 3, 3});
  const Tensor exact = conv2d(image.to(float64), weight.to(float64)), x = image.to("cuda:0"),
               w = weight.to("cuda:0");
  const auto error = [&](const Tensor& y) {
    return max(abs(y.cpu().to(float64) - exact) / exact).item<double>();
  };
  const double full = error(conv2d(x, w));
  EXPECT_LT(full, 1e-5);
  set_cudnn_allow_tf32(true);
  EXPECT_LT(error(conv2d(x, w)), 2e-3);
  set_cudnn_allow_tf32(false);
  EXPECT_EQ(error(conv2d(x, w)), full);
}

TEST_F(Gpu, TheFastestConvolutionIsFoundWhereAskedFor) {
  const Tensor image = rand({2, 40, 12, 12}), weight = rand({40, 40, 3, 3});
  const Tensor exact = conv2d(image.to(float64), weight.to(float64)).to(float32);
  const Tensor x = image.to("cuda:0"), w = weight.to("cuda:0").requires_grad_();
  const Tensor advised = conv2d(x, w);
  EXPECT_TRUE(allclose(advised.cpu(), exact, 1e-5, 1e-5));
  set_cudnn_benchmark(true);
  Tensor recorded;
  CapturedStep step = capture([&] { recorded = conv2d(x, w); }, {.warmup = 0});
  step.replay();
  EXPECT_TRUE(equal(recorded, advised)) << "nothing is measured while a step is recorded";
  const Tensor fastest = conv2d(x, w);
  EXPECT_TRUE(allclose(fastest.cpu(), exact, 1e-5, 1e-5));
  EXPECT_TRUE(equal(conv2d(x, w), fastest)) << "measured once";
  if (testing::is_emulated("cuda:0")) {
    EXPECT_TRUE(equal(fastest.cpu(), exact));  // its slow way, which is the advised one, is less exact
    EXPECT_FALSE(equal(advised.cpu(), exact));
  }
  step = capture([&] { recorded = conv2d(x, w); });
  step.replay();
  EXPECT_TRUE(equal(recorded, fastest)) << "what was measured before";
  fastest.sum().backward();
  set_cudnn_benchmark(false);
  EXPECT_TRUE(equal(conv2d(x, w), advised));
  const Tensor w_here = weight.detach().requires_grad_();
  conv2d(image, w_here).sum().backward();
  EXPECT_TRUE(allclose(w.grad().cpu(), w_here.grad(), 1e-5, 1e-4));
}

TEST_F(Gpu, TheFastestProductIsFoundWhereAskedFor) {
  const Tensor a = rand({40, 1200}), b = rand({1200, 48}), bias = rand({48});
  const Tensor x = a.to("cuda:0"), y = b.to("cuda:0"), c = bias.to("cuda:0");
  const Tensor exact = addmm(bias.to(float64), a.to(float64), b.to(float64)).to(float32);
  const Tensor advised = addmm(c, x, y);
  EXPECT_TRUE(allclose(advised.cpu(), exact, 1e-5, 1e-5));
  set_matmul_benchmark(true);
  Tensor recorded;
  CapturedStep step = capture([&] { recorded = addmm(c, x, y); }, {.warmup = 0});
  step.replay();
  EXPECT_TRUE(equal(recorded, advised)) << "nothing is measured while a step is recorded";
  const Tensor fastest = addmm(c, x, y);
  EXPECT_TRUE(allclose(fastest.cpu(), exact, 1e-5, 1e-5));
  EXPECT_TRUE(equal(addmm(c, x, y), fastest)) << "measured once";
  if (testing::is_emulated("cuda:0")) {
    EXPECT_TRUE(equal(fastest.cpu(), exact));  // its slow way, which is the advised one, is less exact
    EXPECT_FALSE(equal(advised.cpu(), exact));
  }
  step = capture([&] { recorded = addmm(c, x, y); });
  step.replay();
  EXPECT_TRUE(equal(recorded, fastest)) << "what was measured before";
  const Tensor ones_added = addmm(ones({40, 1}).to("cuda:0"), x, y);  // copied to where the product is added
  EXPECT_TRUE(allclose(ones_added.cpu(), addmm(ones({40, 1}), a, b), 1e-5, 1e-5)) << "added once";
  set_matmul_benchmark(false);
  EXPECT_TRUE(equal(addmm(c, x, y), advised));
}

/// Uses of two matrices [12, 12] that give a third, with many kernels.
using Use = Tensor (*)(const Tensor& a, const Tensor& b);
const Use kUses[] = {
    [](const Tensor& a, const Tensor& b) { return a + b; },
    [](const Tensor& a, const Tensor& b) { return a * b.t(); },
    [](const Tensor& a, const Tensor& b) { return matmul(a, b); },
    [](const Tensor& a, const Tensor& b) { return matmul(a.to(bfloat16), b.to(bfloat16)).to(float32); },
    [](const Tensor& a, const Tensor& b) { return addmm(a[0], a, b.t()); },
    [](const Tensor& a, const Tensor& b) { return a + norm(b) / 10; },
    [](const Tensor& a, const Tensor& b) { return a - b.sum(0) / 10; },
    [](const Tensor& a, const Tensor& b) { return a * amax(b, 1, /*keepdim=*/true); },
    [](const Tensor& a, const Tensor& b) { return a + b.var(0); },
    [](const Tensor& a, const Tensor& b) { return softmax(a, 1) + log_softmax(b, 0) / 10; },
    [](const Tensor& a, const Tensor& b) { return cumsum(a, 0) / 4 + cumsum(b, 1) / 4; },
    [](const Tensor& a, const Tensor& b) { return sort(a, 1).first - b; },
    [](const Tensor& a, const Tensor& b) { return index_select(a, 0, argsort(b[0])); },
    [](const Tensor& a, const Tensor& b) { return gather(a, 1, argsort(b, 1)); },
    [](const Tensor& a, const Tensor& b) { return where(a > b, a, b * 2); },
    [](const Tensor& a, const Tensor& b) {
      return cat({a.slice(0, 0, 5), b.slice(0, 5, 12)}, 0);
    },
    [](const Tensor& a, const Tensor& b) { return layer_norm(a, {12}, b[0], b[1]); },
    [](const Tensor& a, const Tensor& b) {
      Tensor changed = a.clone();
      changed.slice(0, 2, 7).add_(b.slice(0, 3, 8));
      changed.t().slice(0, 0, 3).mul_(2);
      return changed;
    },
    [](const Tensor& a, const Tensor& b) { return zeros_like(a).index_add_(0, argsort(b[3]), a); },
    [](const Tensor& a, const Tensor& b) {
      return conv2d(a.view({1, 1, 12, 12}), b.slice(0, 0, 3).slice(1, 0, 3).contiguous().view({1, 1, 3, 3}),
                    {}, {.padding = 1})
          .view({12, 12});
    },
    [](const Tensor& a, const Tensor& b) {
      return conv2d(a.view({1, 12, 12, 1}), b.view({12, 12, 1, 1})).view({12, 12}).t().contiguous();
    },
    [](const Tensor& a, const Tensor& b) {
      Tensor x = a.detach().clone().requires_grad_(), w = b.detach().clone().requires_grad_();
      const GradModeGuard recorded(true);
      nn::cross_entropy(relu(linear(x, w)), argsort(b[2])).backward();
      return x.grad() + w.grad();
    },
    [](const Tensor& a, const Tensor& b) {
      Tensor x = a.detach().clone().requires_grad_(), w = b[5].detach().clone().requires_grad_();
      const GradModeGuard recorded(true);
      const Tensor mean = x.mean(0);
      (layer_norm(x, {12}, w) * gelu(x) + prod(x, 1) + mean).sum().backward();
      return x.grad() * w.grad();
    },
};

TEST_F(Gpu, KernelsOfAStepWaitForWhatTheyNeed) {
  // On the emulator nothing but the edges of the graph orders its kernels.
  for (unsigned seed = 0; seed < 20; ++seed) {
    const NoGradGuard no_grad;
    std::vector<Tensor> inputs;
    for (int i = 0; i < 6; ++i) inputs.push_back(zeros({12, 12}, {.device = "cuda:0"}));
    const auto step = [&] {
      std::minstd_rand random(seed + 1);
      std::vector<Tensor> values(inputs);
      const auto any = [&]() -> Tensor& { return values[random() % values.size()]; };
      for (int i = 0; i < 40; ++i) {
        const Use use = kUses[random() % std::size(kUses)];
        const Tensor &a = any(), &b = any();
        any() = tanh(use(a, b));
      }
      return stack(values);
    };
    step();  // what is made once for a shape
    Tensor result;
    CapturedStep recorded = capture([&] { result = step(); }, {.warmup = 0});
    for (int round = 0; round < 3; ++round) {
      for (Tensor& input : inputs) input.copy_(randn({12, 12}));
      const Tensor expected = step();
      recorded.replay();
      EXPECT_TRUE(equal(result, expected)) << "seed " << seed << ", round " << round;
    }
  }
}

TEST_F(Gpu, IndependentKernelsOfAStep) {
  const Tensor a = randn({20, 20}).to("cuda:0"), rows = randn({60, 300}).to("cuda:0");
  Tensor sum = zeros({}, {.device = "cuda:0"});
  std::vector<Tensor> sorted;
  const auto step = [&] {
    sum.zero_();
    for (int i = 0; i < 100; ++i) sum.add_(norm(matmul(a, a + i)));
    sorted.clear();
    for (int i = 0; i < 60; ++i) {  // sorts share nothing but the memory that they work in
      auto [values, indices] = sort(rows[i]);
      sorted.insert(sorted.end(), {values, indices.to(float32)});
    }
  };
  step();
  const Tensor expected = sum.clone(), expected_rows = stack(sorted);
  CapturedStep recorded = capture(step);
  EXPECT_LE(recorded.num_bytes(), size_t{8} << 20) << "memory is used again";
  for (int round = 0; round < 3; ++round) {
    recorded.replay();
    EXPECT_TRUE(equal(sum, expected));
    EXPECT_TRUE(equal(stack(sorted), expected_rows));
  }
}

TEST_F(Gpu, AStepWithRandomNumbersIsOneGraph) {
  const Tensor ones_there = ones({50}, {.device = "cuda:0"}), before = dropout(ones_there, 0.5);
  Generator own(9);
  std::vector<Tensor> drawn;
  const auto step = [&] {
    Tensor x = ones_there.detach().requires_grad_();
    dropout(x * 2, 0.5).sum().backward();
    drawn = {rand({30}, {.device = "cuda:0"}),          x.grad(),
             randn({7}, {.device = "cuda:0"}, own),     randperm(20, {.device = "cuda:0"}),
             randint(0, 9, {10}, {.device = "cuda:0"}), before + 1};
  };
  const auto numbers = [&] {
    std::vector<double> all;
    for (const Tensor& each : drawn)
      for (double number : each.cpu().to(float64).to_vector<double>()) all.push_back(number);
    return all;
  };
  const auto restart = [&] {
    manual_seed(4);
    own.manual_seed(uint64_t{5} << 60);
  };
  restart();
  std::vector<std::vector<double>> expected;
  for (int i = 0; i < 4; ++i) {
    step();
    expected.push_back(numbers());
  }
  EXPECT_NE(expected[0], expected[1]);
  restart();
  CapturedStep recorded = capture(step, {.warmup = 0});
  EXPECT_EQ(numbers(), expected[0]);
  for (size_t i = 1; i < 4; ++i) {
    Profiler profiler;
    profiler.start();
    recorded.replay();
    profiler.stop();
    EXPECT_EQ(numbers(), expected[i]);
    ASSERT_EQ(profiler.events().size(), 1u);
    EXPECT_EQ(profiler.events()[0].name, "graph");
  }
}

TEST_F(Gpu, RandomNumbersOfAStepComeAfterManySmallTensors) {
  const Tensor small = arange(60, {.dtype = float32}).to("cuda:0");
  Tensor sum, drawn;
  const auto step = [&] {
    sum = zeros({60}, {.device = "cuda:0"});
    for (int i = 0; i < 100; ++i) sum.add_(small + i);  // memory that is used again and again
    drawn = rand({30}, {.device = "cuda:0"});
  };
  manual_seed(4);
  std::vector<Tensor> expected;
  for (int i = 0; i < 3; ++i) {
    step();
    expected.push_back(drawn.cpu());
  }
  manual_seed(4);
  CapturedStep recorded = capture(step, {.warmup = 0});
  for (int i = 0; i < 3; ++i) {
    if (i > 0) recorded.replay();
    EXPECT_TRUE(equal(drawn.cpu(), expected[static_cast<size_t>(i)])) << i;
    EXPECT_TRUE(equal(sum.cpu(), small.cpu() * 100 + 4950));
  }
}

TEST_F(Gpu, AStepMayEndTheLifeOfAnotherOne) {
  const Tensor x = ones({100}, {.device = "cuda:0"});
  Tensor y;
  auto older = std::make_unique<CapturedStep>(capture([&] { y = x * 2; }));
  older->replay();
  CapturedStep step = capture(
      [&] {
        y = x + 1;
        older.reset();
        y = y + 1;
      },
      {.warmup = 0});
  y.zero_();
  step.replay();
  EXPECT_TRUE(equal(y.cpu(), full({100}, 3)));
}

TEST_F(Gpu, LibrariesWorkInEveryThread) {
  const Tensor x = randn({64, 2048}), w = randn({2048, 600});
  const Tensor there = x.to("cuda:0"), weight = w.to("cuda:0");
  const Tensor first = there.mm(weight);  // memory for the second is cached
  Tensor second;
  std::thread([&] { second = there.mm(weight); }).join();
  EXPECT_TRUE(equal(second, first));
}

TEST_F(Gpu, ConvolutionsGoOnBesideARecordedStep) {
  const Tensor x = randn({2, 64, 9, 9}, {.device = "cuda:0"}),
               w = randn({64, 64, 3, 3}, {.device = "cuda:0"});
  const Stream side = new_stream("cuda:0");
  cuda::synchronize();
  Tensor recorded, beside;
  const auto convolve_beside = [&] {
    const StreamGuard guard(side);
    beside = nn::conv2d(x, w);
  };
  CapturedStep step = capture([&] {
    recorded = nn::conv2d(x, w);
    std::thread(convolve_beside).join();
  });
  recorded.zero_();
  step.replay();
  const Tensor expected = nn::conv2d(x, w);
  EXPECT_TRUE(equal(recorded, expected));
  side.synchronize();
  EXPECT_TRUE(equal(beside, expected));
}

TEST_F(Gpu, SortsAndScans) {
  const Tensor x = randn({7, 3000});
  expect_same([](Inputs t) { return argsort(t[0], -1); }, {x}, 0, 0);
  expect_same([](Inputs t) { return cumsum(t[0], 1); }, {x}, 1e-5, 1e-4);
  expect_same([](Inputs t) { return softmax(t[0], 1); }, {x}, 1e-5, 1e-7);
}

TEST_F(Gpu, ManyElementsAreWrittenByIndexInPieces) {
  // More addresses than are sorted at once, each element met twice: the second value counts.
  const int64_t rows = 2, size = (int64_t{1} << 22) + 3;
  const Tensor index = cat({arange(size), arange(size)}, 0).to("cuda:0").expand({rows, 2 * size});
  const Tensor values = arange(2 * size, {.dtype = int32, .device = "cuda:0"}).expand({rows, 2 * size});
  const Tensor last = arange(size, 2 * size, {.dtype = int32, .device = "cuda:0"});
  Tensor set = zeros({rows, size}, {.dtype = int32, .device = "cuda:0"}), sums = clone(set);
  scatter_(set, 1, index, values);
  EXPECT_TRUE(equal(set, last.expand({rows, size})));
  scatter_add_(sums, 1, index, values);
  EXPECT_TRUE(equal(sums, (last * 2 - size).expand({rows, size})));
}

TEST_F(Gpu, LongSumsOfOneThreadAreMadeOfThoseOfRows) {
  // One after the other, a float stops at 2^24.
  const TensorOptions on_gpu{.device = "cuda:0"};
  const Tensor image = expand(ones({1, 1, 1, 1}, on_gpu), {1, 1, 4100, 4100}).contiguous();
  EXPECT_EQ(nn::adaptive_avg_pool2d(image, 1).item<float>(), 1);
  Tensor bias = zeros({1}, on_gpu).requires_grad_();
  const Tensor rows = expand(ones({1, 1, 1, 1}, on_gpu), {17, 1, 1024, 1024});
  nn::group_norm(rows, 1, ones({1}, on_gpu), bias).backward(rows);
  EXPECT_EQ(bias.grad().item<float>(), 17 << 20);
}

TEST_F(Gpu, ManyRowsAreSortedInPieces) {
  // Of more than 2^24 elements; with ties, whose order stays.
  const int64_t rows = (1 << 24) / 1000 + 5;
  const Tensor x = remainder(arange(rows * 1000, {.dtype = int32, .device = "cuda:0"}) * 7919, 500);
  const Tensor there = x.view({rows, 1000});
  const auto [values, indices] = sort(there, 1);
  EXPECT_TRUE(equal(values, take_along_dim(there, indices, 1)));
  const Tensor steps = values.narrow(1, 1, 999) - values.narrow(1, 0, 999);
  EXPECT_EQ(steps.min().item<int>(), 0);
  const Tensor later = gt(indices.narrow(1, 1, 999), indices.narrow(1, 0, 999));
  EXPECT_TRUE(all(logical_or(later, gt(steps, 0))).item<bool>());
}

TEST_F(Gpu, MoreThan2To31ElementsAreWrittenByIndex) {
  if (testing::is_emulated("cuda:0")) GTEST_SKIP() << "takes minutes on the emulator";
  const int64_t size = (int64_t{1} << 31) + 10;
  Tensor x = zeros({2, size}, {.dtype = uint8, .device = "cuda:0"});
  index_fill_(x, 0, tensor({1}, {.dtype = int64, .device = "cuda:0"}), 3);
  EXPECT_EQ(item(sum(x)).to_int(), 3 * size);
  EXPECT_EQ(item(x[1][size - 1]).to_int(), 3);
}

TEST_F(Gpu, AWrongIndexIsAnErrorAndTheGpuGoesOn) {
  const Tensor x = arange(4).to("cuda:0");
  expect_error<IndexError>(
      [&] {
        index_select(x, 0, tensor({1, 9}).to("cuda:0")).cpu();
      },
      "index 9 is out of bounds for dimension 0 with size 4");
  EXPECT_EQ(x.sum().item<int64_t>(), 6);
}

TEST_F(Gpu, NobodyElseTakesAnError) {
  const Stream side = new_stream("cuda:0");
  const Tensor x = arange(4).to("cuda:0"), wrong = tensor({9}).to("cuda:0");
  const auto fail = [&] {
    Tensor used = ones({1 << 20}, {.device = "cuda:0"});
    side.wait_stream(cuda::current_stream());
    const StreamGuard guard(side);
    index_select(x, 0, wrong);
    used.record_stream(side);
  };
  fail();
  cuda::empty_cache();  // waits for the memory that the stream used
  EXPECT_THROW(side.synchronize(), IndexError);
  {
    const CapturedStep step = capture([&] { x + 1; });
    fail();
  }  // its end waits for the GPU
  EXPECT_THROW(side.synchronize(), IndexError);
}

TEST_F(Gpu, EventsAndStreams) {
  Event begin({.enable_timing = true}), end({.enable_timing = true});
  const Tensor a = randn({512, 512}).to("cuda:0");
  begin.record();
  const Tensor b = matmul(a, a);
  end.record();
  end.synchronize();
  EXPECT_GT(begin.elapsed_time(end), 0);
  const Stream side = new_stream("cuda:0");
  side.wait_stream(cuda::current_stream());
  Tensor c;
  {
    const StreamGuard guard(side);
    c = b + 1;
  }
  cuda::current_stream().wait_stream(side);
  EXPECT_TRUE(equal(c.cpu(), b.cpu() + 1));
}

TEST_F(Gpu, ALinkOfOneProcess) {
  LinkMaker* const links = backend_of(DeviceType::CUDA).links();
  ASSERT_NE(links, nullptr);
  std::string meeting;
  try {
    EXPECT_THAT(links->name(), ::testing::StartsWith("NCCL 2."));
    meeting = links->new_meeting();
  } catch (const DeviceError& error) {
    GTEST_SKIP() << error.what();
  }
  const auto link =
      links->open(0, {.meeting = meeting, .rank = 0, .size = 1, .timeout = std::chrono::seconds(60)});
  const Stream stream = current_stream(Device("cuda:0"));
  const Tensor x = arange(100'000, {.dtype = float32}).to("cuda:0"), y = zeros_like(x), z = zeros_like(x);
  link->all_to_all(stream, x.data_ptr(), y.data_ptr(), x.nbytes());
  link->all_gather(stream, y.data_ptr(), z.data_ptr(), x.nbytes());
  link->broadcast(stream, z.data_ptr(), z.nbytes(), 0);
  link->check();
  EXPECT_TRUE(equal(z.cpu(), x.cpu()));
  expect_error<DistributedError>(
      [&] {
        links->open(0, {.meeting = links->new_meeting(),
                        .rank = 0,
                        .size = 2,
                        .timeout = std::chrono::milliseconds(200)});
      },
      "has waited 200 ms for the other processes");
}

TEST_F(Gpu, MemoryIsCounted) {
  cuda::empty_cache();  // no block that is a little too large
  const uint64_t before = cuda::memory_allocated();
  {
    const Tensor x = zeros({1 << 20}, {.device = "cuda:0"});
    EXPECT_EQ(cuda::memory_allocated(), before + (uint64_t{4} << 20));
  }
  EXPECT_EQ(cuda::memory_allocated(), before);
  EXPECT_THROW(zeros({int64_t{1} << 42}, {.device = "cuda:0"}), OutOfMemoryError);
}

}  // namespace
}  // namespace tern
