// Folders that several processes write and read together.
#include <gtest/gtest.h>

#include "tern/autograd/grad_mode.h"
#include "tern/core/generator.h"
#include "tern/io/distributed_writer.h"
#include "tern/io/serialize.h"
#include "tern/nn/containers.h"
#include "tern/nn/functional.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tern/optim/adam.h"
#include "tern/parallel/full_state.h"
#include "tern/parallel/fully_shard.h"
#include "tern/train/distributed_checkpoint.h"
#include "tests/support/each_process.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace tern::train {
namespace {

using dist::on_each;

struct Net : nn::Module {
  nn::Linear first{5, 7}, second{7, 3};
  nn::BatchNorm1d norm{7};
  nn::Parameter scale{ones({})};
  TERN_MODULE(first, second, norm, scale)
  Tensor forward(const Tensor& x) { return second(norm(first(x)) * scale); }
};

void step_of(Net& net, optim::Adam& optimizer) {
  optimizer.zero_grad();
  net(arange(20).view({4, 5}).to(float32)).square().mean().backward();
  optimizer.step();
}

void expect_same(const StateDict& got, const StateDict& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, tensor] : expected) EXPECT_TRUE(equal(got.at(name), tensor)) << name;
}

StateDict copy_of(const nn::Module& net) {
  StateDict dict = dist::full_state_dict(net);
  for (const auto& [name, tensor] : dict) dict.insert(name, tensor.clone());
  return dict;
}

void divide(Net& net, const dist::ProcessGroup& group) {
  dist::fully_shard(net.first, group);
  dist::fully_shard(net, group);
}

TEST(DistributedCheckpoint, IsWrittenByAnyNumberOfProcessesAndReadByAnyOther) {
  for (const int writers : {1, 2, 3, 5}) {
    const TemporaryFolder folder;
    StateDict expected, after;
    optim::OptimizerState expected_optimizer;
    on_each(writers, [&](const dist::ProcessGroup& group) {
      manual_seed(1);
      Net net;
      divide(net, group);
      optim::Adam optimizer(net.parameters(), {.lr = 0.1});
      for (int i = 0; i < 2; ++i) step_of(net, optimizer);
      save_distributed(folder.path(), group, net, &optimizer, {{"epoch", 3}});
      const StateDict now = copy_of(net);
      const auto optimizer_now = dist::full_optimizer_state_dict(net, optimizer);
      step_of(net, optimizer);
      const StateDict then = copy_of(net);
      if (group.rank() != 0) return;
      expected = now;
      expected_optimizer = optimizer_now;
      after = then;
    });
    expect_same(load(folder.path())["model"].as_state_dict(), expected);
    const Value saved = load(folder.path())["optimizer"];
    EXPECT_TRUE(equal(saved["state"]["first.weight"]["exp_avg"].as_tensor(),
                      *expected_optimizer.state[1].second.tensor("exp_avg")));
    EXPECT_EQ(saved["param_groups"][0]["params"][1].as_str(), "first.weight");
    for (const int readers : {0, 1, 3, 4})
      on_each(std::max(readers, 1), [&](const dist::ProcessGroup& group) {
        Net net;
        if (readers > 0) divide(net, group);
        optim::Adam optimizer(net.parameters());
        const Value extra = load_distributed(folder.path(), net, &optimizer);
        EXPECT_EQ(extra["epoch"].as_int(), 3);
        EXPECT_EQ(optimizer.lr(), 0.1);
        expect_same(dist::full_state_dict(net), expected);
        step_of(net, optimizer);
        for (const auto& [name, tensor] : dist::full_state_dict(net))
          EXPECT_TRUE(allclose(tensor, after.at(name), 1e-4, 1e-6)) << name;  // means of other numbers
      });
  }
}

TEST(DistributedCheckpoint, StaysReadableUntilTheNextIsWhole) {
  const TemporaryFolder folder;
  const auto names = [&] {
    std::vector<std::string> all;
    for (const auto& file : std::filesystem::directory_iterator(folder.path()))
      all.push_back(file.path().filename().string());
    std::sort(all.begin(), all.end());
    return all;
  };
  const auto save_as = [&](double value, bool fails) {
    on_each(2, [&](const dist::ProcessGroup& group) {
      Net net;
      const NoGradGuard no_grad;
      net.scale.fill_(value);
      if (fails && group.rank() == 1) throw IoError("the disk is full");
      save_distributed(folder.path(), group, net);
    });
  };
  save_as(1, false);
  EXPECT_EQ(names(), (std::vector<std::string>{".metadata", "__0_0.distcp", "__1_0.distcp"}));
  EXPECT_THROW(save_as(2, true), Error);
  EXPECT_EQ(load(folder.path())["model"]["scale"].as_tensor().item<double>(), 1);
  save_as(3, false);
  EXPECT_EQ(load(folder.path())["model"]["scale"].as_tensor().item<double>(), 3);
  EXPECT_EQ(names().size(), 3u);
}

TEST(DistributedCheckpoint, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  on_each(2, [&](const dist::ProcessGroup& group) {
    Net net;
    divide(net, group);
    optim::Adam optimizer(net.parameters());
    save_distributed(folder.path(), group, net);
    expect_error<CheckpointError>([&] { load_distributed(folder.path(), net, &optimizer); },
                                  "has no 'optimizer'");
    nn::Sequential other(nn::Linear(5, 7));
    expect_error<CheckpointError>([&] { load_distributed(folder.path(), other); },
                                  "'model.0.weight': the checkpoint does not have it");
    struct Wide : nn::Module {
      nn::Linear first{5, 8};
      void collect_fields(nn::Fields& fields) override { fields.add("first", first); }
    } wide;
    expect_error<CheckpointError>([&] { load_distributed(folder.path(), wide); }, "has the shape [7, 5]");
    dist::fully_shard(wide, group);
    expect_error<CheckpointError>([&] { load_distributed(folder.path(), wide); },
                                  "it has the shape [7, 5] there, expected [8, 5]");
    optim::Adam foreign(other.parameters());
    expect_error<ValueError>([&] { save_distributed(folder.path(), group, net, &foreign); },
                             "that the module has not");
    expect_error<IoError>([&] { load_distributed(folder.path() / "none", net); }, "none");
  });
  const auto alone = [](const std::string& text) { return std::vector<std::string>{text}; };
  const std::vector<io::DistributedEntry> half{{{"x"}, ones({3}), io::DistributedPiece{{2, 3}, 0}}};
  expect_error<CheckpointError>([&] { io::write_distributed(folder.path(), half, 0, 1, alone); },
                                "'x': the processes have 3 of the 6 elements");
  expect_error<ValueError>([&] { io::distributed_entries(Value::list({1})); }, "is a dict, not");
}

TEST(DistributedCheckpoint, CutsPiecesOfAllShapes) {
  const std::vector<Shape> shapes{{}, {7}, {3, 4}, {2, 3, 5}, {2, 1, 3, 2}, {0, 3}};
  for (const Shape& shape : shapes)
    for (const int processes : {1, 2, 4}) {
      const TemporaryFolder folder;
      const int64_t numel = checked_numel(shape);
      const Tensor whole = arange(numel).to(float64).view(shape);
      on_each(processes, [&](const dist::ProcessGroup& group) {
        const int64_t start = numel * group.rank() / processes, end = numel * (group.rank() + 1) / processes;
        const std::vector<io::DistributedEntry> entries{
            {{"a", "x"}, whole.flatten().narrow(0, start, end - start), io::DistributedPiece{shape, start}},
            {{"a", "y"},
             stack({whole.flatten(), whole.flatten()}, -1).select(-1, 0).narrow(0, start, end - start),
             io::DistributedPiece{shape, start}},
            {{"a", "list", 1}, Value("text")},
            {{"a", "list", 0}, whole}};
        io::write_distributed(
            folder.path(), entries, group.rank(), group.size(),
            [&](const std::string& text) { return group.all_gather(text); }, false);
      });
      const Value read = load(folder.path())["a"];
      EXPECT_TRUE(equal(read["x"].as_tensor(), whole.cpu())) << to_string(shape) << processes;
      EXPECT_TRUE(equal(read["y"].as_tensor(), whole.cpu())) << "not dense";
      EXPECT_TRUE(equal(read["list"][0].as_tensor(), whole.cpu()));
      EXPECT_EQ(read["list"][1].as_str(), "text");
    }
}

}  // namespace
}  // namespace tern::train
