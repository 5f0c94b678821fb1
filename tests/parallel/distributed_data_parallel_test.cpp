// DistributedDataParallel: training by several processes, here threads that take their parts.
#include <gmock/gmock.h>

#include "tern/device/capture.h"
#include "tern/nn/containers.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/ops/activation.h"
#include "tern/parallel/distributed_data_parallel.h"
#include "tests/parallel/parallel_testing.h"
#include "tests/support/each_process.h"

namespace tern::dist {
namespace {

using parallel::expect_close;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DistributedTrainingTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, DistributedTrainingTest, ::testing::Values(1, 2, 3, 5));

/// Two layers and one that is used on request.
struct Net : nn::Module {
  nn::Linear first{4, 6};
  nn::BatchNorm1d norm{6};
  nn::Linear second{6, 3}, spare{6, 3};
  TERN_MODULE(first, norm, second, spare)
  Tensor forward(const Tensor& x, bool use_spare = false) {
    const Tensor y = relu(norm(first(x)));
    return use_spare ? spare(y) : second(y);
  }
};

/// As one process with all rows does it. BatchNorm is left out: its statistics are those of each part.
TEST_P(DistributedTrainingTest, TrainsAsOneProcessWithTheWholeBatch) {
  const int n = GetParam();
  manual_seed(3);
  const Tensor x = randn({n * 4, 4}), y = randint(0, 3, {n * 4});
  nn::LeNet alone;
  const Tensor images = randn({n * 4, 1, 28, 28}), labels = randint(0, 10, {n * 4});
  nn::LeNet start = nn::clone(alone);
  optim::SGD sgd(alone.parameters(), {.lr = 0.05, .momentum = 0.9});
  for (int i = 0; i < 3; ++i) {
    sgd.zero_grad();
    nn::cross_entropy(alone(images), labels).backward();
    sgd.step();
  }
  std::vector<nn::LeNet> nets;  // of rank 0 as above, of others as they come
  for (int r = 0; r < n; ++r) nets.push_back(r == 0 ? start : nn::LeNet());
  std::vector<std::vector<Tensor>> results(static_cast<size_t>(n));
  on_each(n, [&](const ProcessGroup& group) {
    const int r = group.rank();
    DistributedDataParallel model(nets[static_cast<size_t>(r)], group, {.bucket_cap_mb = 0.05});
    optim::SGD optimizer(model.parameters(), {.lr = 0.05, .momentum = 0.9});
    for (int i = 0; i < 3; ++i) {
      optimizer.zero_grad();
      nn::cross_entropy(model(images.narrow(0, 4 * r, 4)), labels.narrow(0, 4 * r, 4)).backward();
      optimizer.step();
    }
    results[static_cast<size_t>(r)] = model.parameters();
    EXPECT_EQ(model.state_dict().begin()->first, "module.conv1.weight");
  });
  for (size_t i = 0; i < alone.parameters().size(); ++i) {
    expect_close(results[0][i], alone.parameters()[i], 1e-5);
    for (int r = 1; r < n; ++r) EXPECT_TRUE(equal(results[static_cast<size_t>(r)][i], results[0][i]));
  }
}

TEST(DistributedDataParallel, GradientsOfWhatSomeProcessesUse) {
  std::vector<Net> nets(2);
  const Tensor x = randn({5, 4});
  on_each(2, [&](const ProcessGroup& group) {
    Net& net = nets[static_cast<size_t>(group.rank())];
    DistributedDataParallel model(net, group);
    model(x, /*use_spare=*/group.rank() == 1).sum().backward();
    EXPECT_TRUE(equal(net.spare.bias.grad(), full({3}, 2.5)));  // of 5 rows, on one of two processes
    EXPECT_TRUE(equal(net.second.bias.grad(), full({3}, 2.5)));
    for (const Tensor& parameter : net.parameters()) parameter.set_grad({});
    model(x).sum().backward();
    EXPECT_FALSE(net.spare.bias.grad().defined());
    EXPECT_TRUE(equal(net.second.bias.grad(), full({3}, 5)));
  });
}

TEST(DistributedDataParallel, AccumulatesWithoutSync) {
  on_each(3, [](const ProcessGroup& group) {
    DistributedDataParallel model(nn::Linear(2, 1), group);
    const Tensor x = full({1, 2}, group.rank() + 1.0);
    {
      const auto pause = model.no_sync();
      model(x).sum().backward();
    }
    EXPECT_TRUE(equal(model.module.weight.grad(), full({1, 2}, group.rank() + 1)));
    model(x * 10).sum().backward();
    EXPECT_TRUE(equal(model.module.weight.grad(), full({1, 2}, 22)));
    model(x).sum().backward();  // onto what is there
    EXPECT_TRUE(equal(model.module.weight.grad(), full({1, 2}, 24)));
  });
}

TEST(DistributedDataParallel, TakesTheMeansOfWhatOnlyEarlierBackwardsUsed) {
  std::vector<Net> nets(2);
  const Tensor x = randn({5, 4});
  on_each(2, [&](const ProcessGroup& group) {
    Net& net = nets[static_cast<size_t>(group.rank())];
    DistributedDataParallel model(net, group);
    {
      const auto pause = model.no_sync();
      model(x, /*use_spare=*/group.rank() == 1).sum().backward();
    }
    model(x).sum().backward();
    EXPECT_TRUE(equal(net.spare.bias.grad(), full({3}, 2.5)));
    EXPECT_TRUE(equal(net.second.bias.grad(), full({3}, 7.5)));
    model(x, /*use_spare=*/group.rank() == 1).sum().backward();  // onto the means, which both have
    EXPECT_TRUE(equal(net.spare.bias.grad(), full({3}, 5)));
    EXPECT_TRUE(equal(net.second.bias.grad(), full({3}, 10)));
  });
}

TEST(DistributedDataParallel, BuffersAreThoseOfTheFirst) {
  std::vector<Net> nets(2);
  on_each(2, [&](const ProcessGroup& group) {
    Net& net = nets[static_cast<size_t>(group.rank())];
    DistributedDataParallel model(net, group);
    for (int i = 0; i < 2; ++i) model(randn({6, 4})).sum().backward();
    model(ones({2, 4}));
    const auto all = group.all_gather(net.norm.num_batches_tracked);
    EXPECT_EQ(all[1].item<int64_t>(), 3);
  });
  // The last forward's own statistics came after the last broadcast, of one input on both.
  expect_close(nets[0].norm.running_mean, nets[1].norm.running_mean);
}

TEST(DistributedDataParallel, DifferentModulesAreNamed) {
  on_each(2, [](const ProcessGroup& group) {
    try {
      DistributedDataParallel model(nn::Linear(3, 2 + group.rank()), group);
      ADD_FAILURE() << "no error";
    } catch (const DistributedError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 0 has parameter 'weight' float32 [2, 3]"),
                                      HasSubstr("rank 1 has parameter 'weight' float32 [3, 3]")));
    }
  });
}

TEST(DistributedDataParallel, LazyLayersNeedTheirSizesBefore) {
  on_each(2, [](const ProcessGroup& group) {
    nn::LazyLinear layer(3);
    expect_error<ValueError>([&] { DistributedDataParallel model(layer, group); },
                             "DistributedDataParallel: 'weight' is uninitialized: LazyLinear");
    layer(ones({1, 2}));
    EXPECT_EQ((DistributedDataParallel(layer, group)(ones({1, 2})).shape()), (Shape{1, 3}));
  });
}

TEST(DistributedDataParallel, GoesOnAfterABackwardThatFailed) {
  on_each(2, [](const ProcessGroup& group) {
    DistributedDataParallel model(nn::Sequential{nn::Linear(2, 2), nn::Linear(2, 2)}, group,
                                  {.bucket_cap_mb = 1e-6});
    const Tensor x = ones({1, 2});
    const Tensor weight = model.module.parameters()[0];
    const int64_t hook = weight.register_hook([](const Tensor&) -> Tensor { throw ValueError("no"); });
    EXPECT_THROW(model(x).sum().backward(), ValueError);
    weight.remove_hook(hook);
    for (const Tensor& parameter : model.parameters()) parameter.set_grad({});
    model(x).sum().backward();
    EXPECT_TRUE(equal(model.module.parameters()[3].grad(), ones({2})));
  });
}

TEST(DistributedDataParallel, MoreStepsThanTheOthersAreAnError) {
  on_each(2, [](const ProcessGroup& group) {
    DistributedDataParallel model(nn::Linear(2, 1), group);
    const auto step = [&] { model(ones({1, 2})).sum().backward(); };
    for (int i = 0; i < 2; ++i) step();
    EXPECT_TRUE(equal(model.module.weight.grad(), full({1, 2}, 2)));
    if (group.rank() == 0) return;
    expect_error<DistributedError>(step, "rank 0 has left the group, rank 1 calls all_reduce (avg) of 5");
    expect_error<DistributedError>(step, "this group does not work any more: rank 0 has left the group");
  });
}

TEST(DistributedDataParallel, OneThatLeavesInTheMiddleOfABackward) {
  on_each(2, [](const ProcessGroup& group) {
    DistributedDataParallel model(nn::Sequential{nn::Linear(2, 2), nn::Linear(2, 2)}, group,
                                  {.bucket_cap_mb = 1e-6});
    const auto step = [&] { model(ones({1, 2})).sum().backward(); };
    step();
    if (group.rank() == 0) {  // after the rows of the second layer were sent
      model.module.parameters()[0].register_hook([](const Tensor&) -> Tensor { throw ValueError("no"); });
      EXPECT_THROW(step(), ValueError);
      return;
    }
    expect_error<DistributedError>(step, "rank 0 has left the group, rank 1 calls all_reduce (avg) of");
    expect_error<DistributedError>(step, "this group does not work any more: rank 0 has left the group");
  });
}

TEST(DistributedDataParallel, CannotBeRecorded) {
  on_each(2, [](const ProcessGroup& group) {
    DistributedDataParallel model(nn::Linear(2, 1), group);
    EXPECT_THROW(capture([&] { model(ones({1, 2})).sum().backward(); }, {.warmup = 0}), CaptureError);
  });
}

}  // namespace
}  // namespace tern::dist
