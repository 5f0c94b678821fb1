// Groups of processes: here threads that take their parts, which is what MPI's processes see too
// (processes_test.cpp).
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <thread>

#include "tern/device/capture.h"
#include "tern/nn/containers.h"
#include "tern/nn/conv.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/ops/activation.h"
#include "tern/parallel/distributed_data_parallel.h"
#include "tern/parallel/sync_batch_norm.h"
#include "tern/parallel/transport.h"
#include "tests/parallel/parallel_testing.h"
#include "tests/support/each_process.h"

namespace tern::dist {
namespace {

using parallel::expect_close;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DistributedTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, DistributedTest, ::testing::Values(1, 2, 3, 5));

TEST_P(DistributedTest, Reduces) {
  const int n = GetParam();
  on_each(n, [n](const ProcessGroup& group) {
    ASSERT_EQ(group.size(), n);
    const double own = group.rank() + 1, sum = n * (n + 1) / 2.0;
    double product = 1;
    for (int r = 1; r <= n; ++r) product *= r;
    const struct {
      ReduceOp op;
      double expected;
    } rows[] = {{ReduceOp::Sum, sum},
                {ReduceOp::Avg, sum / n},
                {ReduceOp::Product, product},
                {ReduceOp::Min, 1},
                {ReduceOp::Max, static_cast<double>(n)}};
    for (const auto& row : rows)
      for (DType dtype : {float32, float64, bfloat16, float16, int64, uint8}) {
        if (row.op == ReduceOp::Avg && !is_floating_point(dtype)) {
          EXPECT_THROW(group.all_reduce(ones({2}, {.dtype = dtype}), row.op), DTypeError);
          continue;
        }
        for (const Shape& shape : {Shape{}, Shape{0}, Shape{7}, Shape{3, 5}}) {
          const Tensor x = full(shape, own, {.dtype = dtype});
          group.all_reduce(x, row.op);
          EXPECT_TRUE(equal(x, full(shape, row.expected, {.dtype = dtype}))) << x.str();
        }
      }
  });
}

TEST_P(DistributedTest, ReducesLargeAndStridedTensorsToTheSameBits) {
  const int n = GetParam();
  std::vector<Tensor> parts;
  Tensor expected;
  for (int r = 0; r < n; ++r) {
    parts.push_back(randn({3'000'001}));
    expected = r == 0 ? parts[0].clone() : expected + parts.back();
  }
  on_each(n, [&](const ProcessGroup& group) {
    const Tensor mine = parts[static_cast<size_t>(group.rank())].clone(), wide = zeros({40, 50});
    group.all_reduce(mine);
    EXPECT_TRUE(equal(mine, expected));
    const Tensor column = wide.select(1, 7);
    group.all_reduce(ones({40}).copy_(column) + 1);
    group.broadcast(column);
    Tensor strided = column;
    strided.fill_(group.rank());
    group.all_reduce(strided, ReduceOp::Max);
    EXPECT_EQ(wide.sum().item<double>(), 40.0 * (n - 1));
  });
}

TEST_P(DistributedTest, BroadcastsAndGathers) {
  on_each(GetParam(), [](const ProcessGroup& group) {
    const int last = group.size() - 1;
    const Tensor x = full({3}, group.rank());
    const uint32_t version = x.version();
    group.broadcast(x, last);
    EXPECT_TRUE(equal(x, full({3}, last)));
    EXPECT_GT(x.version(), version);
    const auto all = group.all_gather(full({2, 2}, group.rank(), {.dtype = int64}));
    const auto texts = group.all_gather(std::string(static_cast<size_t>(group.rank()) * 3, 'x'));
    ASSERT_EQ(all.size(), static_cast<size_t>(group.size()));
    for (int r = 0; r <= last; ++r) {
      EXPECT_TRUE(equal(all[static_cast<size_t>(r)], full({2, 2}, r, {.dtype = int64})));
      EXPECT_EQ(texts[static_cast<size_t>(r)].size(), static_cast<size_t>(r) * 3);
    }
    EXPECT_EQ(group.broadcast(std::string(static_cast<size_t>(group.rank()) * 3, 'x'), last),
              std::string(static_cast<size_t>(last) * 3, 'x'));
    EXPECT_EQ(group.broadcast(group.rank() == 0 ? "" : "text"), "");
    group.barrier();
    EXPECT_THROW(group.broadcast(x, last + 1), ValueError);
  });
}

TEST_P(DistributedTest, SumsHaveGradients) {
  const int n = GetParam();
  on_each(n, [n](const ProcessGroup& group) {
    Tensor x = full({3}, group.rank() + 1.0, {.requires_grad = true});
    const Tensor sum = all_reduce(x * x, group);
    EXPECT_TRUE(equal(sum.detach(), full({3}, n * (n + 1) * (2 * n + 1) / 6.0)));
    (sum.sum() * (group.rank() + 1)).backward();
    EXPECT_TRUE(equal(x.grad(), x.detach() * n * (n + 1)));
    EXPECT_TRUE(equal(x.detach(), full({3}, group.rank() + 1.0)));
  });
}

struct Normalised : nn::Module {
  nn::Conv2d conv{1, 4, 3};
  nn::BatchNorm2d first{4};
  nn::Sequential rest{nn::Linear(4 * 6 * 6, 5), nn::BatchNorm1d(5), nn::Linear(5, 3)};
  TERN_MODULE(conv, first, rest)
  Tensor forward(const Tensor& x) { return rest(relu(first(conv(x))).flatten(1)); }
};

TEST_P(DistributedTest, SynchronisedLayersSeeTheWholeBatch) {
  const int n = GetParam();
  manual_seed(4);
  Normalised one;
  const Normalised start = nn::clone(one);
  const Tensor x = randn({4 * n + 3, 1, 8, 8}), y = randn({4 * n + 3, 3});
  const auto loss_of = [&](auto& net, int64_t begin, int64_t size) {
    return nn::mse_loss(net(x.narrow(0, begin, size)), y.narrow(0, begin, size), Reduction::Sum);
  };
  for (int step = 0; step < 2; ++step) loss_of(one, 0, x.size(0)).backward();
  on_each(n, [&](const ProcessGroup& group) {
    Normalised net = nn::clone(start);
    parallel::convert_sync_batchnorm_(net);
    DistributedDataParallel model(net, group);
    // The first has three rows more than the others.
    const int64_t begin = group.rank() == 0 ? 0 : 4 * group.rank() + 3, size = group.rank() == 0 ? 7 : 4;
    for (int step = 0; step < 2; ++step) (loss_of(model, begin, size) * n).backward();
    const auto wanted = one.named_parameters(), own = net.named_parameters();
    for (size_t i = 0; i < own.size(); ++i) {
      SCOPED_TRACE(own[i].first);
      // The bias before a batch norm has the gradient 0: rounding is all that is there.
      if (own[i].first == "conv.bias" || own[i].first == "rest.0.bias") continue;
      expect_close(own[i].second.grad(), wanted[i].second.grad(), 1e-5);
    }
    const auto buffers = net.buffers(), expected = one.buffers();
    for (size_t i = 0; i < buffers.size(); ++i) expect_close(buffers[i], expected[i], 1e-5);
    net.eval();
    net(x.narrow(0, 0, group.rank() + 1));  // nobody waits
  });
}

TEST(Distributed, FindsOutWhetherItIsAlone) {
  const struct {
    std::vector<std::pair<const char*, const char*>> variables;
    const char* refusal;  ///< null: it is alone
  } rows[] = {
      {{}, nullptr},
      {{{"WORLD_SIZE", "1"}}, nullptr},
      {{{"WORLD_SIZE", "4"}}, "start the program with `tern launch -n 4 program` or `mpirun -n 4 program`"},
      {{{"RANK", "0"}}, "the number of processes is not known: set WORLD_SIZE"},
      {{{"WORLD_SIZE", "4"}, {"MASTER_ADDR", "localhost"}},
       "the rank of this process is not known: set RANK"},
      {{{"OMPI_COMM_WORLD_SIZE", "1"}}, nullptr},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}}, "cannot be opened"},
      {{{"PMI_SIZE", "3"}}, "cannot be opened"},
      {{{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}, nullptr},
      {{{"PMIX_RANK", "0"}}, "cannot be opened"}};
  const auto forget = [] {
    for (const char* name : {"WORLD_SIZE", "RANK", "MASTER_ADDR", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                             "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "TERN_MPI_PLUGIN"})
      ::unsetenv(name);
  };
  for (const auto& row : rows) {
    forget();
    ::setenv("TERN_MPI_PLUGIN", "/nowhere/libtern_mpi.so", 1);
    for (const auto& [name, text] : row.variables) ::setenv(name, text, 1);
    if (row.refusal)
      expect_error<DistributedError>([] { open_transport({.timeout = milliseconds(10)}); }, row.refusal);
    else
      EXPECT_EQ(open_transport({.timeout = milliseconds(10)}), nullptr);
  }
  forget();
}

TEST(Distributed, ProcessesThatDoNotDoTheSameAreTold) {
  const struct {
    std::function<void(const ProcessGroup&)> first, second;
    std::vector<std::string> words;
  } rows[] = {
      {[](const auto& g) { g.all_reduce(ones({3})); },
       [](const auto& g) { g.barrier(); },
       {"rank 0 calls all_reduce (sum) of 3 float32", "rank 1 barrier"}},
      {[](const auto& g) { g.all_reduce(ones({3})); },
       [](const auto& g) { g.all_reduce(ones({4})); },
       {"of 3 float32", "of 4 float32"}},
      {[](const auto& g) {
         g.all_reduce(ones({2, 3}));
       },
       [](const auto& g) {
         g.all_reduce(ones({3, 2}));
       },
       {"another shape"}},
      {[](const auto& g) { g.broadcast(ones({1})); },
       [](const auto& g) { g.broadcast(ones({1}), 1); },
       {"from rank 0", "from rank 1"}},
  };
  for (const auto& row : rows)
    on_each(2, [&](const ProcessGroup& group) {
      try {
        (group.rank() == 0 ? row.first : row.second)(group);
        ADD_FAILURE() << "no error";
      } catch (const DistributedError& error) {
        for (const std::string& words : row.words) EXPECT_THAT(error.what(), HasSubstr(words));
      }
      group.barrier();  // all were told, and go on
    });
}

TEST(Distributed, NobodyWaitsForProcessesThatEnded) {
  EXPECT_THROW(on_each(3,
                       [](const ProcessGroup& group) {
                         if (group.rank() == 1) throw ValueError("no data");
                         try {
                           group.barrier();
                           ADD_FAILURE() << "no error";
                         } catch (const DistributedError& error) {
                           EXPECT_THAT(error.what(), HasSubstr("rank 1 has ended"));
                         }
                       }),
               ValueError);
}

TEST(Distributed, ThoseThatStillCallAreToldWhoHasLeft) {
  const struct {
    std::function<void(const ProcessGroup&)> call;
    std::string name;
  } rows[] = {
      {[](const auto& g) { g.barrier(); }, "barrier"},
      {[](const auto& g) { g.all_reduce(ones({3})); }, "all_reduce (sum) of 3 float32"},
      {[](const auto& g) { g.all_reduce_async(ones({3}), ReduceOp::Avg).get(); },
       "all_reduce (avg) of 3 float32"},
      {[](const auto& g) { g.broadcast(ones({2}), 1); }, "broadcast from rank 1 of 2 float32"},
      {[](const auto& g) { g.all_gather(ones({4})); }, "all_gather of 4 float32"},
      {[](const auto& g) { g.all_gather("text"); }, "all_gather of texts"},
  };
  for (const auto& row : rows)
    on_each(3, [&](const ProcessGroup& group) {
      group.barrier();
      if (group.rank() == 1) return;
      expect_error<DistributedError>(
          [&] { row.call(group); },
          fmt::format("rank 1 has left the group, rank {} calls {}: ", group.rank(), row.name));
      expect_error<DistributedError>([&] { group.barrier(); },
                                     "this group does not work any more: rank 1 has left the group");
    });
}

TEST(Distributed, OneThreadMayEndThemAll) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<ProcessGroup> groups = ProcessGroup::simulate(3);
  std::vector<std::thread> threads;
  for (ProcessGroup& group : groups) threads.emplace_back([&group] { group.barrier(); });
  for (std::thread& thread : threads) thread.join();
  groups.clear();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(Distributed, NobodyWaitsForThoseThatWereTold) {
  const auto start = std::chrono::steady_clock::now();
  for (const bool others_catch : {false, true}) {
    const auto run = [&] {
      on_each(3, [&](const ProcessGroup& group) {
        if (group.rank() == 0) return;
        if (group.rank() == 1 || !others_catch)
          return group.barrier();  // the exception takes the group along
        EXPECT_THROW(group.barrier(), DistributedError);
      });
    };
    expect_error<DistributedError>(run, "rank 0 has left the group, rank 1 calls barrier");
  }
  on_each(3, [](const ProcessGroup& group) {
    try {
      if (group.rank() == 0) throw ValueError("no data");
    } catch (const ValueError&) {
      return;  // which leaves as if nothing had been
    }
    EXPECT_THROW(group.barrier(), DistributedError);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));  // half of what a wait takes
}

TEST(Distributed, WaitsEnd) {
  on_each(2,
          [](const ProcessGroup& group) {
            static std::atomic<bool> told;
            told = false;
            group.barrier();
            if (group.rank() == 1) {
              while (!told) std::this_thread::yield();
              return;
            }
            try {
              group.barrier();
              ADD_FAILURE() << "no error";
            } catch (const DistributedError& error) {
              EXPECT_THAT(error.what(), HasSubstr("rank 0 of 2 has waited 50 ms"));
            }
            told = true;
          },
          {.timeout = milliseconds(50)});
}

TEST(Distributed, AloneItIsAGroupOfOne) {
  const ProcessGroup group = ProcessGroup::start();
  EXPECT_EQ(group.size(), 1);
  EXPECT_EQ(group.rank(), 0);
  const Tensor x = ones({2});
  group.all_reduce(x, ReduceOp::Avg);
  EXPECT_TRUE(equal(x, ones({2})));
  EXPECT_EQ(group.all_gather("text"), std::vector<std::string>{"text"});
}

class DistributedOnGpus : public parallel::ParallelTest {};

TEST_F(DistributedOnGpus, EachProcessHasItsOwn) {
  manual_seed(2);
  const Tensor images = randn({8, 1, 28, 28}), labels = randint(0, 10, {8});
  nn::LeNet alone, start = nn::clone(alone);
  nn::cross_entropy(alone(images), labels).backward();
  std::vector<nn::LeNet> nets{start, nn::LeNet()};
  on_each(2, [&](const ProcessGroup& group) {
    const int r = group.rank();
    EXPECT_EQ(group.device(), Device(DeviceType::CUDA, r));
    nn::LeNet& net = nets[static_cast<size_t>(r)];
    net.to(group.device());
    DistributedDataParallel model(net, group, {.bucket_cap_mb = 0.05});
    for (int i = 0; i < 3; ++i) {
      for (const Tensor& parameter : net.parameters()) parameter.set_grad({});
      nn::cross_entropy(model(images.narrow(0, 4 * r, 4).to(group.device())),
                        labels.narrow(0, 4 * r, 4).to(group.device()))
          .backward();
    }
    const Tensor there = full({3}, r, {.device = group.device()});
    group.all_reduce(there);
    EXPECT_TRUE(equal(there.cpu(), full({3}, 1)));
  });
  for (size_t i = 0; i < alone.parameters().size(); ++i) {
    expect_close(nets[0].parameters()[i].grad().cpu(), alone.parameters()[i].grad(), 1e-5);
    EXPECT_TRUE(equal(nets[0].parameters()[i].grad().cpu(), nets[1].parameters()[i].grad().cpu()));
  }
}

/// What gpu_route() says of processes that compute on the first GPUs.
std::string expected_route() {
  const auto first = cuda::get_device_properties(0), second = cuda::get_device_properties(1);
  if (first.simulated) return "host memory: rank 0: nothing links sim GPUs";
  if (first.uuid == second.uuid) return "host memory: ranks 0 and 1 share the GPU " + first.uuid;
  return "NCCL ";
}

TEST_F(DistributedOnGpus, TensorsTravel) {
  constexpr int kSize = 3;
  std::vector<Tensor> parts;
  Tensor expected;
  for (int r = 0; r < kSize; ++r) {
    parts.push_back(randn({100, 1001}));
    expected = r == 0 ? parts[0].clone() : expected + parts.back();
  }
  on_each(kSize, [&](const ProcessGroup& group) {
    const int r = group.rank();
    const Device device = group.device();
    EXPECT_EQ(group.gpu_route(), "");
    const Tensor mine = parts[static_cast<size_t>(r)].to(device);
    Tensor sum = mine.clone();
    group.all_reduce(sum);
    EXPECT_THAT(group.gpu_route(), ::testing::StartsWith(expected_route()));
    EXPECT_TRUE(equal(sum.cpu(), expected));  // in the order of ranks, to the bit
    const Tensor columns = mine.narrow(1, r, 5);
    group.all_reduce(columns, ReduceOp::Max);  // strided, in place
    Tensor largest = parts[0].narrow(1, 0, 5);
    for (int other = 1; other < kSize; ++other)
      largest = maximum(largest, parts[static_cast<size_t>(other)].narrow(1, other, 5));
    EXPECT_TRUE(equal(mine.narrow(1, r, 5).cpu(), largest));
    for (DType dtype : {float16, bfloat16, float64, int64, uint8}) {
      Tensor small = full({7}, r + 1, {.dtype = dtype, .device = device});
      group.all_reduce(small);
      EXPECT_TRUE(equal(small.cpu(), full({7}, 6, {.dtype = dtype}))) << small.str();
      group.broadcast(small.fill_(r), 1);
      EXPECT_TRUE(equal(small.cpu(), full({7}, 1, {.dtype = dtype})));
    }
    const auto all = group.all_gather(full({2, 2}, r, {.device = device}));
    for (int each = 0; each < kSize; ++each) {
      EXPECT_EQ(all[static_cast<size_t>(each)].device(), device);
      EXPECT_TRUE(equal(all[static_cast<size_t>(each)].cpu(), full({2, 2}, each)));
    }
    group.all_reduce(empty({0}, {.device = device}));
    // Where a tensor lies is each process' own affair.
    const Tensor anywhere = ones({3}, {.device = r == 1 ? kCPU : device});
    group.all_reduce(anywhere);
    EXPECT_TRUE(equal(anywhere.cpu(), full({3}, kSize)));
  });
}

/// Two layers, of which the one that is named first is used last.
struct NamedBackwards : nn::Module {
  nn::Linear second{4, 2, {.bias = false}}, first{3, 4, {.bias = false}};
  TERN_MODULE(second, first)
  Tensor forward(const Tensor& x) { return second(first(x)); }
};

TEST_F(DistributedOnGpus, GradientsTravelInTheOrderInWhichTheyCome) {
  struct Counter final : LaunchObserver {
    std::atomic<int> marks{0};  // which go beside each bucket
    uint64_t started(const Activity& activity) noexcept override {
      marks += activity.kind == Activity::Kind::Copy && activity.nbytes == sizeof(float);
      return 0;
    }
    void ran(uint64_t, Clock::time_point, Clock::time_point) noexcept override {}
  } counter;
  LaunchObserver* const before = set_launch_observer(&counter);
  on_each(2, [&](const ProcessGroup& group) {
    NamedBackwards net;
    net.to(group.device());
    DistributedDataParallel model(net, group, {.bucket_cap_mb = 1e-6});
    const Tensor x = ones({1, 3}, {.device = group.device()});
    for (const bool is_known : {false, true}) {
      group.barrier();
      counter.marks = 0;
      group.barrier();
      const int64_t hook = net.first.weight.register_hook([&](const Tensor&) -> Tensor {
        EXPECT_EQ(counter.marks > 0, is_known);
        group.barrier();  // of what is sent nothing has come back
        return {};
      });
      model(x).sum().backward();
      net.first.weight.remove_hook(hook);
    }
  });
  for (const Device device : parallel::first_gpus(4)) synchronize(device);  // which tells what was observed
  set_launch_observer(before);
}

TEST_F(DistributedOnGpus, ProcessesMayShareOne) {
  on_each(2, [](const ProcessGroup& group) {
    const Tensor x = full({5}, group.rank() + 1, {.device = Device("cuda:0")});
    group.all_reduce(x);
    EXPECT_TRUE(equal(x.cpu(), full({5}, 3)));
    EXPECT_THAT(group.gpu_route(), ::testing::StartsWith("host memory: "));
  });
}

TEST_F(DistributedOnGpus, NobodyWaitsForProcessesThatEnded) {
  EXPECT_THROW(on_each(2,
                       [](const ProcessGroup& group) {
                         const Tensor x = ones({5}, {.device = group.device()});
                         group.all_reduce(x);
                         if (group.rank() == 1) throw ValueError("no data");
                         EXPECT_THROW(group.all_reduce(x), DistributedError);
                         EXPECT_THROW(group.barrier(), DistributedError);
                       }),
               ValueError);
}

TEST_F(DistributedOnGpus, ThoseThatStillCallAreToldWhoHasLeft) {
  on_each(2, [](const ProcessGroup& group) {
    const Tensor x = ones({5}, {.device = group.device()});
    group.all_reduce(x);
    EXPECT_TRUE(equal(x.cpu(), full({5}, 2)));
    if (group.rank() == 0) return;
    expect_error<DistributedError>([&] { group.all_reduce(x); }, "rank 0 has left the group");
    EXPECT_TRUE(equal(x.cpu(), full({5}, 2)));
  });
}

}  // namespace
}  // namespace tern::dist
