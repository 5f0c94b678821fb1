// A Mersenne Twister gives PyTorch's numbers on the CPU: those of PyTorch 2.15, written down here, also where
// the one that random_in_torch.py compares with is older.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tern/autograd/engine.h"
#include "tern/base/parallel.h"
#include "tern/device/capture.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

TensorOptions on_cpu(DType dtype) { return {.dtype = dtype, .device = kCPU}; }

Generator torch_generator(uint64_t seed) { return Generator(seed, RandomEngine::MersenneTwister); }

TEST(RandomTorch, KnownNumbers) {
  Generator g = torch_generator(0);
  EXPECT_THAT(rand({3}, on_cpu(float32), g).to_vector<double>(),
              ElementsAre(0x1.fc2ab0p-2, 0x1.89545ep-1, 0x1.6a6750p-4));
  const std::vector<float> z = randn({2}, on_cpu(float32), g).to_vector<float>();
  EXPECT_THAT(z, ::testing::Pointwise(::testing::FloatEq(), {0.3643381893634796f, 0.13439632952213287f}));
  EXPECT_THAT(randint(0, 100, {4}, on_cpu(int64), g).to_vector<int64_t>(), ElementsAre(3, 97, 83, 1));
  EXPECT_THAT(randperm(8, on_cpu(int64), g).to_vector<int64_t>(), ElementsAre(2, 0, 5, 6, 4, 1, 3, 7));

  g.manual_seed(0);
  EXPECT_THAT(randint(0, 1 << 28, {2}, on_cpu(int64), g).to_vector<int64_t>(),
              ElementsAre(130329135, 136432832));
  EXPECT_THAT(randint(-(1 << 30), 1 << 30, {2}, on_cpu(int32), g).to_vector<int64_t>(),
              ElementsAre(463622907, 417693031));
  Tensor i = empty({2}, on_cpu(int32)), l = empty({2}, on_cpu(int64));
  EXPECT_THAT(random_(i, g).to_vector<int64_t>(), ElementsAre(1819583497, 530702035));
  EXPECT_THAT(random_(l, g).to_vector<int64_t>(), ElementsAre(2691271404617651954, 8072059273656089175));
}

TEST(RandomTorch, KnownNumbersOf16Bits) {
  struct Row {
    DType dtype;
    std::vector<double> uniform, bounded, normal;
  };
  for (const Row& row : {Row{float16,
                             {0.496337890625, 0.76806640625, 0.0885009765625, 0.132080078125},
                             {0.0229644775390625, 0.1536865234375, 0.09600830078125, 0.258544921875},
                             {-0.356201171875, -0.84130859375, -2.31640625}},
                         Row{bfloat16,
                             {0.49609375, 0.76953125, 0.08837890625, 0.1318359375},
                             {0.02294921875, 0.1533203125, 0.09619140625, 0.2578125},
                             {-0.35546875, -0.83984375, -2.3125}}}) {
    Generator g = torch_generator(0);
    EXPECT_THAT(rand({4}, on_cpu(row.dtype), g).to_vector<double>(), ElementsAreArray(row.uniform));
    Tensor x = empty({4}, on_cpu(row.dtype));
    EXPECT_THAT(uniform_(x, -0.1, 0.3, g).to_vector<double>(), ElementsAreArray(row.bounded));
    const std::vector<double> z = randn({17}, on_cpu(row.dtype), g).to_vector<double>();
    EXPECT_THAT((std::vector<double>{z[0], z[15], z[16]}), ElementsAreArray(row.normal));
  }
  // What would round up to the upper bound becomes the lower one.
  EXPECT_EQ(rand({1292}, on_cpu(float16), torch_generator(5)).to_vector<double>()[1291], 0);
}

TEST(RandomTorch, DropoutKeepsWhatPyTorchKeeps) {
  Tensor x = ones({6}, {.dtype = float32, .device = kCPU, .requires_grad = true});
  Tensor y = dropout(x, 0.5, /*training=*/true, torch_generator(0));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(0, 0, 2, 0, 0, 0));
  sum(y).backward();
  EXPECT_THAT(x.grad().to_vector<float>(), ElementsAre(0, 0, 2, 0, 0, 0));
  EXPECT_THAT(dropout(x, 1, /*training=*/true, torch_generator(0)).to_vector<float>(),
              ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(RandomTorch, ThreadsMakeNoDifference) {
  const Tensor expected = randn({100003}, on_cpu(float32), torch_generator(3));
  set_thread_local_num_threads(1);
  const Tensor found = randn({100003}, on_cpu(float32), torch_generator(3));
  set_thread_local_num_threads(0);
  EXPECT_EQ(found.to_vector<float>(), expected.to_vector<float>());
}

TEST(RandomTorch, StatesAreTensors) {
  Generator g = torch_generator(9);
  rand({5}, on_cpu(float32), g);
  const Tensor state = get_rng_state(g);
  EXPECT_EQ(state.dtype(), uint8);
  EXPECT_EQ(state.numel(), 5056);
  const std::vector<float> next = rand({5}, on_cpu(float32), g).to_vector<float>();
  Generator philox(1);
  set_rng_state(state, philox);
  EXPECT_EQ(philox.engine(), RandomEngine::MersenneTwister);
  EXPECT_EQ(rand({5}, on_cpu(float32), philox).to_vector<float>(), next);
  EXPECT_EQ(get_rng_state(Generator(1)).numel(), 16);
  expect_error<ValueError>([&] { set_rng_state(zeros({7}, on_cpu(uint8)), g); }, "5056");
  expect_error<DTypeError>([&] { set_rng_state(zeros({16}, on_cpu(float32)), g); }, "uint8");
  EXPECT_EQ(rand({5}, on_cpu(float32), g).numel(), 5);
}

TEST(RandomTorch, AnEmptyDrawTakesNothing) {
  Generator g = torch_generator(9);
  rand({0}, on_cpu(float32), g);
  randperm(0, on_cpu(int64), g);
  EXPECT_EQ(g.bytes(), torch_generator(9).bytes());
}

TEST(RandomTorch, AStepDrawsAnewAtEachReplay) {
  Generator eager = torch_generator(4), recorded = torch_generator(4);
  Tensor x = zeros({20}, on_cpu(float32)), order;
  auto step = capture(
      [&] {
        uniform_(x, 0, 1, recorded);
        order = randperm(5, on_cpu(int64), recorded);
      },
      {.warmup = 0});
  for (int i = 0; i < 3; ++i) {
    if (i > 0) step.replay();
    EXPECT_EQ(x.to_vector<float>(), rand({20}, on_cpu(float32), eager).to_vector<float>()) << i;
    EXPECT_EQ(order.to_vector<int64_t>(), randperm(5, on_cpu(int64), eager).to_vector<int64_t>()) << i;
  }
}

}  // namespace
}  // namespace tern
