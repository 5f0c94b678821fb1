// What the groups of distributed_test.cpp do, between processes: `mpirun -n 3 test_parallel
// --gtest_filter=BetweenProcesses.*` or `tern launch -n 3 ...`, with TERN_TEST_PROCESSES=3, so that a start
// that finds nobody fails.
#include <fmt/format.h>

#include <thread>

#include "tern/base/env.h"
#include "tern/nn/models.h"
#include "tern/parallel/distributed_data_parallel.h"
#include "tests/parallel/parallel_testing.h"

namespace tern::dist {
namespace {

using parallel::expect_close;

TEST(BetweenProcesses, TrainTogether) {
  const auto processes = env_int("TERN_TEST_PROCESSES", 2, 64);
  if (!processes) GTEST_SKIP() << "not started as one of several, with TERN_TEST_PROCESSES";
  const ProcessGroup group = ProcessGroup::start({.timeout = std::chrono::seconds(100)});
  const int n = group.size(), r = group.rank();
  ASSERT_EQ(n, *processes);
  EXPECT_EQ(group.local_rank(), r);
  if (env_text("OMPI_COMM_WORLD_SIZE")) {
    EXPECT_THROW(ProcessGroup::start(), DistributedError);  // with MPI once in a process
  } else {
    EXPECT_EQ(ProcessGroup::start().size(), n);
  }

  const Tensor large = full({3'000'001}, r + 1.0);
  group.all_reduce(large);
  EXPECT_TRUE(equal(large, full({3'000'001}, n * (n + 1) / 2.0)));
  const Tensor word = full({2}, r);
  group.broadcast(word, n - 1);
  EXPECT_TRUE(equal(word, full({2}, n - 1)));
  const auto texts = group.all_gather(std::string(static_cast<size_t>(r), 'x'));
  for (int each = 0; each < n; ++each)
    EXPECT_EQ(texts[static_cast<size_t>(each)].size(), static_cast<size_t>(each));

  manual_seed(3);
  // In float64: in float32 two nearly equal pixels of a pooling window may change places with the size of the
  // batch.
  nn::LeNet alone;
  alone.to(DType::Float64);
  nn::LeNet net = nn::clone(alone);
  const Tensor images = randn({n * 4, 1, 28, 28}, {.dtype = DType::Float64}),
               labels = randint(0, 10, {n * 4});
  manual_seed(static_cast<uint64_t>(r));
  if (r != 0) {
    net = nn::LeNet();
    net.to(DType::Float64);
  }
  optim::SGD sgd(alone.parameters(), {.lr = 0.05, .momentum = 0.9});
  DistributedDataParallel model(net, group, {.bucket_cap_mb = 0.05});
  optim::SGD together(model.parameters(), {.lr = 0.05, .momentum = 0.9});
  for (int i = 0; i < 3; ++i) {
    sgd.zero_grad();
    nn::cross_entropy(alone(images), labels).backward();
    sgd.step();
    together.zero_grad();
    nn::cross_entropy(model(images.narrow(0, 4 * r, 4)), labels.narrow(0, 4 * r, 4)).backward();
    together.step();
  }
  for (size_t i = 0; i < alone.parameters().size(); ++i) {
    expect_close(net.parameters()[i], alone.parameters()[i], 1e-12);
    for (const Tensor& other : group.all_gather(net.parameters()[i]))
      EXPECT_TRUE(equal(other, net.parameters()[i]));
  }
  EXPECT_THROW(r == 0 ? group.barrier() : group.all_reduce(large), DistributedError);

  // Messages, which arrive while their senders do something else; and groups of some.
  Tensor wide = zeros({3'000'001});
  auto received = group.irecv(wide, (r + n - 1) % n);
  group.send(full({3'000'001}, r, {.dtype = float32}), (r + 1) % n);
  if (r == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  received.get();
  EXPECT_TRUE(equal(wide, full({3'000'001}, (r + n - 1) % n)));
  const auto ends = group.new_group({0, n - 1});
  EXPECT_EQ(ends.has_value(), r == 0 || r == n - 1);
  if (ends) {
    ends->all_reduce(wide.fill_(r));
    EXPECT_TRUE(equal(wide, full({3'000'001}, n - 1)));
  }
  EXPECT_EQ(group.gather(full({2}, r), 1).size(), r == 1 ? static_cast<size_t>(n) : 0);
  const Tensor product = full({5}, r + 1);
  group.reduce(product, n - 1, ReduceOp::Max);
  EXPECT_TRUE(equal(product, full({5}, r == n - 1 ? n : r + 1)));

  // The first leaves; the others are told, and all end without an error.
  if (r == 0) return;
  expect_error<DistributedError>([&] { group.barrier(); },
                                 fmt::format("rank 0 has left the group, rank {} calls barrier", r));
  expect_error<DistributedError>([&] { group.all_reduce(large); },
                                 "this group does not work any more: rank 0 has left the group");
}

}  // namespace
}  // namespace tern::dist
