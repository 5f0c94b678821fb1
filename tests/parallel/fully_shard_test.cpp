// Divided modules do what whole ones do, keep their part alone, and give and take whole states.
#include <gmock/gmock.h>

#include "tern/nn/checkpoint.h"
#include "tern/nn/containers.h"
#include "tern/nn/embedding.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/nn/utils.h"
#include "tern/ops/activation.h"
#include "tern/optim/lbfgs.h"
#include "tern/optim/sgd.h"
#include "tern/parallel/distributed_data_parallel.h"
#include "tern/parallel/full_state.h"
#include "tern/parallel/fully_shard.h"
#include "tests/parallel/parallel_testing.h"
#include "tests/support/each_process.h"

namespace tern::dist {
namespace {

using parallel::expect_close;
using parallel::expect_equal_bits;

struct Block : nn::Module {
  nn::Linear wide{8, 19}, narrow{19, 8};
  nn::LayerNorm norm{8};
  TERN_MODULE(wide, narrow, norm)
  Tensor forward(const Tensor& x) { return x + norm(narrow(relu(wide(x)))); }
};

struct Stack : nn::Module {
  nn::Embedding embedding{11, 8};
  std::vector<Block> blocks = std::vector<Block>(3);
  nn::BatchNorm1d norm{8};
  nn::Linear head{8, 11};
  bool again = false;                     ///< blocks are computed again in backward
  std::vector<size_t> order = {0, 1, 2};  ///< of the blocks
  TERN_MODULE(embedding, blocks, norm, head)
  Stack() { head.weight = embedding.weight; }
  Tensor forward(const Tensor& indices) {
    Tensor x = embedding(indices);
    for (const size_t i : order) {
      Block& block = blocks.at(i);
      x = again ? nn::utils::checkpoint([&](const Tensor& y) { return block(y); }, x) : block(x);
    }
    return head(norm(x));
  }
};

/// A stack that starts like all others, with parameters that all steps count for.
Stack make_stack() {
  manual_seed(3);
  Stack stack;
  stack.blocks[1].wide.weight.requires_grad_(false);
  return stack;
}

void divide(Stack& stack, const ProcessGroup& group, const FullyShardOptions& options = {}) {
  for (Block& block : stack.blocks) fully_shard(block, group, options);
  fully_shard(stack, group, options);
}

std::vector<Tensor> tensors_of(const StateDict& dict) {
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : dict) tensors.push_back(tensor);
  return tensors;
}

const Tensor kIndices = (arange(60) * 7 % 11).view({10, 6});

/// The loss of a process' part of the batch in one step.
template <class Net>
Tensor loss_of(Net& net, const ProcessGroup& group, int step = 0) {
  const Tensor x = kIndices[(group.rank() + 3 * step) % 10], y = kIndices[(group.rank() + step + 5) % 10];
  return nn::cross_entropy(net(x), y);
}

class FullyShardDistributedTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, FullyShardDistributedTest, ::testing::Values(1, 2, 3, 5));

TEST_P(FullyShardDistributedTest, TrainsAsWholeModulesDoToTheBit) {
  const struct {
    FullyShardOptions options;
    bool again = false;
  } rows[] = {{}, {{.reshard_after_forward = true}}, {{.reshard_after_forward = false}}, {{}, true}};
  const Stack start = make_stack();
  on_each(GetParam(), [&](const ProcessGroup& group) {
    Stack whole = nn::clone(start);
    DistributedDataParallel model(whole, group, {.broadcast_buffers = false});
    optim::AdamW expected(whole.parameters(), {.lr = 0.01});
    for (int step = 0; step < 3; ++step) {
      expected.zero_grad();
      loss_of(model, group, step).backward();
      expected.step();
    }
    for (const auto& row : rows) {
      Stack net = nn::clone(start);
      net.again = row.again;
      optim::AdamW before(net.parameters(), {.lr = 0.01});
      divide(net, group, row.options);
      for (int step = 0; step < 3; ++step) {
        before.zero_grad();
        loss_of(net, group, step).backward();
        before.step();
      }
      expect_equal_bits(tensors_of(full_state_dict(net)), tensors_of(whole.state_dict()));
      const optim::OptimizerState got = full_optimizer_state_dict(net, before), want = expected.state_dict();
      ASSERT_EQ(got.state.size(), want.state.size());
      for (size_t i = 0; i < got.state.size(); ++i)
        for (const char* name : {"exp_avg", "exp_avg_sq"})
          expect_equal_bits({*got.state[i].second.tensor(name)}, {*want.state[i].second.tensor(name)});
      net.eval();
      whole.eval();
      const NoGradGuard no_grad;
      expect_equal_bits({net(kIndices[0])}, {whole(kIndices[0])});
    }
  });
}

TEST_P(FullyShardDistributedTest, GoesOnInOtherOrdersAndAfterErrors) {
  const Stack start = make_stack();
  on_each(GetParam(), [&](const ProcessGroup& group) {
    Stack whole = nn::clone(start), net = nn::clone(start);
    DistributedDataParallel model(whole, group, {.broadcast_buffers = false});
    divide(net, group);
    const auto train = [&](auto& called, Stack& stack) {
      optim::SGD optimizer(stack.parameters(), {.lr = 0.1});
      for (const std::vector<size_t>& order : std::vector<std::vector<size_t>>{
               {0, 1, 2}, {2, 0, 1}, {1}, {0, 0, 2, 0}, {}, {2, 1, 0}, {0, 1, 2}}) {
        stack.order = order;
        optimizer.zero_grad();
        loss_of(called, group).backward();
        optimizer.step();
      }
    };
    // Units that run several times add up several means: not to the bit.
    const auto expect_same = [&] {
      const StateDict dict = full_state_dict(net);
      for (const auto& [name, parameter] : model.module.named_parameters()) {
        SCOPED_TRACE(name);
        expect_close(dict.at(name), parameter, 1e-4);
      }
    };
    train(net, net);
    train(model, model.module);
    expect_same();
    net.order = {0, 1, 7};
    EXPECT_THROW(loss_of(net, group), std::out_of_range);
    net.order = {0, 1, 2};
    const Tensor loss = loss_of(net, group);
    const int64_t hook = net.blocks[1].narrow.bias.register_hook(
        [](const Tensor&) -> Tensor { throw ValueError("a hook that fails"); });
    EXPECT_THROW(loss.backward(), ValueError);
    net.blocks[1].narrow.bias.remove_hook(hook);
    train(net, net);
    train(model, model.module);
    expect_same();
  });
}

TEST_P(FullyShardDistributedTest, KeepsItsPartAlone) {
  on_each(GetParam(), [](const ProcessGroup& group) {
    nn::Sequential net(nn::Linear(100, 100), nn::Linear(100, 100), nn::Linear(100, 10));
    const auto numel_of = [&] {
      int64_t numel = 0;
      for (const Tensor& x : net.parameters()) numel += x.numel();
      return numel;
    };
    const int64_t whole = numel_of();
    const std::string text = net.str();
    const Tensor first = net.parameters()[0];
    for (nn::Module* layer : net.children()) fully_shard(*layer, group);
    fully_shard(net, group);
    EXPECT_TRUE(is_fully_sharded(net));
    EXPECT_EQ(net.str(), text);
    EXPECT_LE(numel_of(), whole / group.size() + 3 * 64);
    EXPECT_TRUE(net.parameters()[0].is_same(first));
    net(ones({2, 100})).sum().backward();
    for (const Tensor& x : net.parameters()) {
      EXPECT_EQ(x.dim(), 1);
      ASSERT_TRUE(x.grad().defined());
      EXPECT_EQ(x.grad().shape(), x.shape());
    }
    net.to(DType::Float64);  // into memory of its own
    EXPECT_EQ(net(ones({2, 100}, {.dtype = float64})).dtype(), float64);
    EXPECT_EQ(full_state_dict(net).at("0.weight").shape(), (Shape{100, 100}));
  });
}

TEST_P(FullyShardDistributedTest, GathersGradientsOfSeveralBackwards) {
  const Stack start = make_stack();
  on_each(GetParam(), [&](const ProcessGroup& group) {
    Stack net = nn::clone(start), expected = nn::clone(start);
    divide(net, group);
    divide(expected, group);
    set_requires_gradient_sync(net, false);
    loss_of(net, group, 0).backward();
    for (const Tensor& x : net.parameters()) EXPECT_FALSE(x.grad().defined());
    set_requires_gradient_sync(net, true);
    loss_of(net, group, 1).backward();
    for (const int step : {0, 1}) loss_of(expected, group, step).backward();
    const auto got = net.parameters(), want = expected.parameters();
    for (size_t i = 0; i < got.size(); ++i)
      if (got[i].requires_grad()) expect_close(got[i].grad(), want[i].grad());
  });
}

TEST_P(FullyShardDistributedTest, ClipsByTheNormOfAll) {
  const Stack start = make_stack();
  on_each(GetParam(), [&](const ProcessGroup& group) {
    for (const double p : {2.0, 1.0, 0.0, 3.5, std::numeric_limits<double>::infinity()}) {
      Stack net = nn::clone(start), whole = nn::clone(start);
      DistributedDataParallel model(whole, group);
      divide(net, group);
      loss_of(net, group).backward();
      loss_of(model, group).backward();
      expect_close(clip_grad_norm_(net.parameters(), 0.5, {.norm_type = p}),
                   optim::clip_grad_norm_(whole.parameters(), 0.5, {.norm_type = p}), 1e-5);
      expect_close(clip_grad_norm_(net.parameters(), 100, {.norm_type = p}),
                   optim::clip_grad_norm_(whole.parameters(), 100, {.norm_type = p}), 1e-5);
    }
  });
}

TEST_P(FullyShardDistributedTest, ComputesInAnotherDtype) {
  const Stack start = make_stack();
  on_each(GetParam(), [&](const ProcessGroup& group) {
    Stack net = nn::clone(start), expected = nn::clone(start);
    for (Block& block : net.blocks)
      fully_shard(block, group, {.param_dtype = bfloat16, .reduce_dtype = float32});
    DType seen{};
    net.blocks[0].wide.register_forward_hook(
        [&](const nn::Module& layer, const Tensor&, const Tensor&) { seen = layer.parameters()[0].dtype(); });
    Tensor x = randn({4, 8});
    group.broadcast(x);
    net.blocks[0](x.to(bfloat16)).sum().backward();
    EXPECT_EQ(seen, bfloat16);
    expected.blocks[0](x).sum().backward();
    EXPECT_EQ(net.blocks[0].narrow.bias.grad().dtype(), float32);
    const nn::Module& block = net.blocks[0];
    EXPECT_EQ(full_state_dict(block).at("narrow.bias").dtype(), float32);
    expect_close(clip_grad_norm_(block.parameters(), 1e9),
                 optim::clip_grad_norm_(expected.blocks[0].parameters(), 1e9), 0.02);
  });
}

TEST(FullyShardDistributedStates, GoFromAnyNumberOfProcessesToAnyOther) {
  StateDict saved;
  optim::OptimizerState saved_optimizer;
  Tensor expected;
  const auto step_of = [](Stack& net, optim::Adam& optimizer, const ProcessGroup& group) {
    optimizer.zero_grad();
    nn::cross_entropy(net(kIndices[group.size()]), kIndices[0]).backward();
    optimizer.step();
  };
  on_each(3, [&](const ProcessGroup& group) {
    Stack net = make_stack();
    divide(net, group);
    optim::Adam optimizer(net.parameters());
    step_of(net, optimizer, group);
    const StateDict on_first = full_state_dict(net, {.cpu_offload = true});
    const auto optimizer_on_first = full_optimizer_state_dict(net, optimizer, {.cpu_offload = true});
    EXPECT_EQ(on_first.empty(), group.rank() != 0);
    EXPECT_EQ(optimizer_on_first.state.empty(), group.rank() != 0);
    if (group.rank() != 0) return;
    saved = on_first;
    saved_optimizer = optimizer_on_first;
  });
  {  // one process that knows nothing of the others
    const ProcessGroup alone = ProcessGroup::simulate(1)[0];
    Stack net = make_stack();
    net.load_state_dict(saved);
    optim::Adam optimizer(net.parameters());
    optimizer.load_state_dict(saved_optimizer);
    for (int i = 0; i < 2; ++i) step_of(net, optimizer, alone);
    const NoGradGuard no_grad;
    net.eval();
    expected = net(kIndices.flatten());
  }
  for (const bool from_first : {false, true})
    on_each(2, [&](const ProcessGroup& group) {
      Stack net;
      divide(net, group);
      const bool has_it = !from_first || group.rank() == 0;
      const auto keys =
          load_full_state_dict(net, has_it ? saved : StateDict(), {.broadcast_from_rank0 = from_first});
      EXPECT_TRUE(keys.empty());
      net.blocks[1].wide.weight.requires_grad_(false);
      optim::Adam optimizer(net.parameters());
      load_full_optimizer_state_dict(net, optimizer, saved_optimizer);
      const ProcessGroup alone = ProcessGroup::simulate(1)[0];
      for (int i = 0; i < 2; ++i) step_of(net, optimizer, alone);
      const NoGradGuard no_grad;
      net.eval();
      expect_close(net(kIndices.flatten()), expected, 1e-6);
      StateDict wrong = saved;
      wrong.insert("blocks.0.wide.bias", ones({20}));
      const StateDict before = full_state_dict(net);
      EXPECT_THROW(load_full_state_dict(net, wrong), CheckpointError);
      expect_equal_bits(tensors_of(full_state_dict(net)), tensors_of(before));
      EXPECT_THROW(net.load_state_dict(saved), CheckpointError);
    });
}

class FullyShardOnGpus : public parallel::ParallelTest {};

TEST_F(FullyShardOnGpus, TrainsAsOnTheCpu) {
  const Stack start = make_stack();
  std::vector<StateDict> states(2);
  for (const bool on_gpus : {false, true})
    on_each(2, [&](const ProcessGroup& group) {
      const Device device = on_gpus ? group.device() : kCPU;
      Stack net = nn::clone(start);
      net.to(device);
      divide(net, group);
      optim::SGD optimizer(net.parameters(), {.lr = 0.1, .momentum = 0.9});
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        const int64_t row = (group.rank() + 3 * step) % 10;
        nn::cross_entropy(net(kIndices[row].to(device)), kIndices[9 - row].to(device)).backward();
        clip_grad_norm_(net.parameters(), 0.1);
        optimizer.step();
      }
      const StateDict state = full_state_dict(net, {.cpu_offload = true});
      if (group.rank() == 0) states[on_gpus] = state;
    });
  for (const auto& [name, tensor] : states[0])
    expect_close(states[1].at(name).to(float64), tensor.to(float64), 1e-4);
}

TEST(FullyShardDistributedErrors, SayWhatIsWrong) {
  on_each(2, [](const ProcessGroup& group) {
    Stack net = make_stack();
    divide(net, group);
    const auto inside_out = [&] {
      Stack other = make_stack();
      fully_shard(other, group);
      fully_shard(other.blocks[0], group);
      other(kIndices[0]);
    };
    const auto tied = [&] {
      Stack other = make_stack();
      fully_shard(other.head, group);
      fully_shard(other, group);
    };
    const auto copied = [&] { nn::clone(net)(kIndices[0]); };
    const auto twice = [&] {
      const Tensor first = grad({nn::cross_entropy(net(kIndices[0]), kIndices[1])}, {net.norm.weight}, {},
                                {.create_graph = true})[0];
    };
    const auto changed = [&] {
      const Tensor loss = nn::cross_entropy(net(kIndices[0]), kIndices[1]);
      {
        const NoGradGuard no_grad;
        for (Tensor x : net.parameters()) x.mul_(2);
      }
      loss.backward();
    };
    const auto partial = [&] {
      Stack other = make_stack();
      fully_shard(other.blocks[0], group);
      clip_grad_norm_(other.parameters(), 1);
    };
    const auto different = [&] {
      nn::Linear layer(3, group.rank() + 2);
      fully_shard(layer, group);
    };
    const auto integers = [&] {
      nn::Linear layer(3, 2);
      fully_shard(layer, group, {.param_dtype = int64});
    };
    expect_error<ValueError>([&] { fully_shard(net, group); }, "is divided already");
    expect_error<ValueError>(inside_out, "'wide.weight' is divided already");
    expect_error<ValueError>(tied, "'embedding.weight' is divided already");
    expect_error<ValueError>(copied, "it is a copy");
    expect_error<AutogradError>(twice, "gradients of gradients");
    expect_error<AutogradError>(changed, "were changed since the forward");
    expect_error<ValueError>(partial, "are not: call fully_shard");
    expect_error<DistributedError>(different, "the processes have different modules: rank 0 has parameter");
    expect_error<DTypeError>(integers, "int64");
    optim::LBFGS optimizer(net.parameters());
    expect_error<ValueError>([&] { full_optimizer_state_dict(net, optimizer); }, "LBFGS");
    net(kIndices[0]).sum().backward();  // goes on
  });
}

}  // namespace
}  // namespace tern::dist
