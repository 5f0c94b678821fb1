// DataParallel against one device: outputs, gradients and training; what is sent when; the shapes of inputs
// and outputs that it takes; its errors.
#include "tern/parallel/data_parallel.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tern/nn/containers.h"
#include "tern/nn/dropout.h"
#include "tests/parallel/parallel_testing.h"
#include "tests/support/emulated.h"

namespace tern::parallel {
namespace {

struct Small : nn::Module {
  nn::Linear hidden{5, 7}, output{7, 3};
  TERN_MODULE(hidden, output)
  Tensor forward(const Tensor& x) { return output(relu(hidden(x))); }
};

/// Says what it is given.
struct Recorder : nn::Module {
  nn::Linear linear{5, 2};
  std::shared_ptr<std::vector<std::string>> seen = std::make_shared<std::vector<std::string>>();
  TERN_MODULE(linear)
  Tensor forward(const Tensor& x) {
    seen->push_back(to_string(x.shape()) + " on " + x.device().str());
    return linear(x);
  }
};

class DataParallelTest : public ParallelTest {};

TEST_F(DataParallelTest, SplitsTheBatchAsPyTorch) {
  Recorder net;
  net.to("cuda:0");
  auto run = [&](std::vector<Device> devices, int64_t rows) {
    net.seen->clear();
    DataParallel model(net, {.device_ids = devices});
    EXPECT_EQ(model(randn({rows, 5})).shape(), (Shape{rows, 2}));
    return *net.seen;
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(run({0, 1}, 30), (List{"[15, 5] on cuda:0", "[15, 5] on cuda:1"}));
  EXPECT_EQ(run({0, 1}, 10), (List{"[5, 5] on cuda:0", "[5, 5] on cuda:1"}));
  EXPECT_EQ(run({0, 1, 2}, 30), (List{"[10, 5] on cuda:0", "[10, 5] on cuda:1", "[10, 5] on cuda:2"}));
  EXPECT_EQ(run({0, 1, 2, 3}, 2), (List{"[1, 5] on cuda:0", "[1, 5] on cuda:1"}));
  EXPECT_EQ(run({0, 1, 2, 3}, 6), (List{"[2, 5] on cuda:0", "[2, 5] on cuda:1", "[2, 5] on cuda:2"}));
  EXPECT_EQ(run({0}, 30), (List{"[30, 5] on cuda:0"}));
  EXPECT_EQ(run({}, 4).size(), 4u);
  EXPECT_EQ(run({0, 1}, 0), (List{"[0, 5] on cuda:0", "[0, 5] on cuda:1"}));
}

TEST_F(DataParallelTest, EqualsOneDevice) {
  for (int devices : {2, 3, 4}) {
    SCOPED_TRACE(devices);
    Small one;
    one.to("cuda:0");
    Small many = nn::clone(one);
    DataParallel model(many, {.device_ids = first_gpus(devices)});
    const Tensor x = randn({30, 5}), y = randn({30, 3}).to("cuda:0");
    const Tensor expected = nn::mse_loss(one(x.to("cuda:0")), y), loss = nn::mse_loss(model(x), y);
    expect_close(loss, expected);
    expected.backward();
    loss.backward();
    expect_close_gradients(many, one);
  }
}

struct Lazy : nn::Module {
  nn::LazyLinear hidden{7}, output{3};
  TERN_MODULE(hidden, output)
  Tensor forward(const Tensor& x) { return output(relu(hidden(x))); }
};

TEST_F(DataParallelTest, LazyLayersTakeTheirSizesFromTheFirstPart) {
  Lazy net;
  net.to("cuda:0");
  expect_error<ValueError>([&] { replicate(net, first_gpus(2)); },
                           "DataParallel: 'hidden.weight' is uninitialized: LazyLinear");
  Lazy single;
  single.to("cuda:0");
  DataParallel wrong(single, {.device_ids = first_gpus(2)});
  expect_error<DTypeError>(
      [&] {
        wrong(randn({4, 5}, {.dtype = float64}));
      },
      "in replica 0 on device cuda:0: ");
  DataParallel model(net, {.device_ids = first_gpus(3)});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});  // before there are sizes
  const Tensor x = randn({30, 5}), y = model(x);
  Small one;
  one.to("cuda:0");
  one.load_state_dict(net.state_dict());
  expect_close(y, one(x.to("cuda:0")));
  y.square().sum().backward();
  one(x.to("cuda:0")).square().sum().backward();
  expect_close_gradients(net, one);
  const Tensor before = net.hidden.weight.detach().clone();
  optimizer.step();
  expect_close(net.hidden.weight, before - net.hidden.weight.grad() * 0.1);
}

TEST_F(DataParallelTest, GradientsOfInputsComeBackToWhereTheyAre) {
  Small one;
  Small many = nn::clone(one);
  many.to("cuda:0");
  DataParallel model(many, {.device_ids = {0, 1, 2}});
  const Tensor x = randn({8, 5}), x1 = x.clone();
  x.requires_grad_();
  x1.requires_grad_();
  one(x).square().sum().backward();
  model(x1).square().sum().backward();
  ASSERT_TRUE(x1.grad().defined());
  EXPECT_EQ(x1.grad().device(), kCPU);
  expect_close(x1.grad(), x.grad());
}

/// Losses and parameters after some steps of training.
template <class Optimizer, class Net, class Options>
std::vector<Tensor> train(Net net, const Options& options, int devices, int steps, int64_t batch) {
  net.to("cuda:0");
  DataParallel model(net, {.device_ids = first_gpus(devices)});
  Optimizer optimizer(model.parameters(), options);
  Generator generator(7);
  std::vector<Tensor> results;
  for (int step = 0; step < steps; ++step) {
    const Tensor x = randn({batch, 1, 28, 28}, {}, generator).to(net.parameters()[0].dtype());
    const Tensor y = remainder(arange(batch).to(int64) + Scalar(step), 10);
    optimizer.zero_grad();
    const Tensor loss = nn::cross_entropy(model(x), y.to("cuda:0"));
    loss.backward();
    optimizer.step();
    results.push_back(loss.detach().cpu());
  }
  for (const Tensor& parameter : model.parameters()) results.push_back(parameter.detach().cpu());
  return results;
}

/// Where every thread of a kernel is a call, a few tell as much.
int many_steps() { return testing::is_emulated(Device("cuda:0")) ? 4 : 20; }

TEST_F(DataParallelTest, ManyStepsOfSgdEqualOneDevice) {
  const nn::LeNet net;
  const auto run = [&](int devices) {
    return train<optim::SGD>(nn::clone(net), optim::SGDOptions{.lr = 0.05, .momentum = 0.9}, devices,
                             many_steps(), 30);
  };
  const auto expected = run(1), two = run(2), four = run(4);
  for (size_t i = 0; i < expected.size(); ++i) {
    expect_close(two[i], expected[i]);
    expect_close(four[i], expected[i]);
  }
  expect_equal_bits(run(2), two);
}

TEST_F(DataParallelTest, ManyStepsOfAdamEqualOneDevice) {
  // Adam divides gradients by their size, so that the rounding of the tiniest ones shows. In float64 it is
  // far away.
  nn::LeNet net;
  net.to(float64);
  const auto run = [&](int devices) {
    return train<optim::Adam>(nn::clone(net), optim::AdamOptions{.lr = 1e-3}, devices, many_steps(), 30);
  };
  const auto expected = run(1), two = run(2), four = run(4);
  for (size_t i = 0; i < expected.size(); ++i) {
    expect_close(two[i], expected[i], /*relative=*/1e-10);
    expect_close(four[i], expected[i], /*relative=*/1e-10);
  }
  expect_equal_bits(run(2), two);
}

TEST_F(DataParallelTest, TheSameBitsWithJitterAndOtherStreams) {
  const nn::LeNet net;
  const auto run = [&] { return train<optim::SGD>(nn::clone(net), optim::SGDOptions{.lr = 0.05}, 3, 3, 10); };
  const auto expected = run();
  for (uint64_t seed : {1, 2, 3}) {
    simulate_gpus({.gpus = 4, .jitter = seed, .delay = 50e-6, .check_races = true});
    expect_equal_bits(run(), expected);
    std::vector<std::unique_ptr<StreamGuard>> guards;
    for (int i = 0; i < 3; ++i)
      guards.push_back(std::make_unique<StreamGuard>(new_stream(Device(DeviceType::CUDA, i))));
    expect_equal_bits(run(), expected);
    for (int i = 0; i < 4; ++i) synchronize(Device(DeviceType::CUDA, i));
  }
}

TEST_F(DataParallelTest, AccumulatesOverBackwardsAndThroughRetainedGraphs) {
  Small one;
  one.to("cuda:0");
  Small many = nn::clone(one);
  DataParallel model(many, {.device_ids = {0, 1, 2}});
  const Tensor x = randn({9, 5}).to("cuda:0"), z = randn({7, 5}).to("cuda:0");
  // Twice in one graph, the graph twice, and another graph on top.
  const Tensor expected = one(x).square().sum() + one(z).sum() * 2;
  const Tensor loss = model(x).square().sum() + model(z).sum() * 2;
  for (int i = 0; i < 2; ++i) {
    expected.backward({}, /*retain_graph=*/true);
    loss.backward({}, /*retain_graph=*/true);
  }
  one(x).sum().backward();
  model(x).sum().backward();
  expect_close_gradients(many, one);
}

TEST_F(DataParallelTest, GradOfSomeParametersAndOfGradients) {
  Small one;
  one.to("cuda:0");
  one.to(float64);
  Small many = nn::clone(one);
  DataParallel model(many, {.device_ids = {0, 1, 2}});
  const Tensor x = randn({6, 5}, {.dtype = float64, .device = "cuda:0"});
  const auto twice = [](auto& net, Small& owner, const Tensor& input) {
    const std::vector<Tensor> inputs = {owner.output.weight, owner.hidden.bias};
    const auto first = grad({net(input).square().sum()}, inputs, {}, {.create_graph = true});
    const auto second =
        grad({(first[0] * first[0]).sum() + (first[1] * first[1]).sum()}, {owner.hidden.weight});
    return std::vector<Tensor>{first[0].detach(), first[1].detach(), second[0]};
  };
  const auto expected = twice(one, one, x), got = twice(model, many, x);
  for (size_t i = 0; i < expected.size(); ++i) expect_close(got[i], expected[i], 1e-12);
  EXPECT_FALSE(many.hidden.weight.grad().defined());
}

TEST_F(DataParallelTest, UnusedAndFrozenParametersHaveNoGradient) {
  Small many;
  many.to("cuda:0");
  many.hidden.weight.requires_grad_(false);
  DataParallel model(many, {.device_ids = {0, 1}});
  model(randn({4, 5})).sum().backward();
  EXPECT_FALSE(many.hidden.weight.grad().defined());
  EXPECT_TRUE(many.hidden.bias.grad().defined());
}

/// Uses its second layer for parts of more than one row only.
struct Sometimes : nn::Module {
  nn::Linear first{2, 2}, second{2, 2}, never{2, 2};
  TERN_MODULE(first, second, never)
  Tensor forward(const Tensor& x) { return x.size(0) > 1 ? second(first(x)) : first(x); }
};

TEST_F(DataParallelTest, ParametersThatOnlySomeReplicasUse) {
  Sometimes net;
  net.to("cuda:0");
  DataParallel model(net, {.device_ids = {0, 1}});
  model(ones({3, 2})).sum().backward();  // 2 rows and 1 row
  const Tensor both = net.first.bias.grad().cpu();
  EXPECT_TRUE(both.defined());
  EXPECT_TRUE(net.second.bias.grad().defined());
  EXPECT_FALSE(net.never.bias.grad().defined());
  const Tensor expected = net.second.weight.detach().cpu().sum(0) * 2 + Scalar(1);
  expect_close(both, expected);
}

TEST_F(DataParallelTest, AFailedBackwardLeavesNothingBehind) {
  Small one;
  one.to("cuda:0");
  Small many = nn::clone(one);
  DataParallel model(many, {.device_ids = {0, 1}});
  const Tensor x = randn({4, 5}).to("cuda:0");
  const Tensor loss = model(x).square().sum();
  const int64_t hook = many.output.weight.register_hook(
      [](const Tensor&) -> Tensor { throw std::runtime_error("a hook that fails"); });
  EXPECT_THROW(loss.backward({}, /*retain_graph=*/true), std::runtime_error);
  many.output.weight.remove_hook(hook);
  many.zero_grad();
  loss.backward();
  one(x).square().sum().backward();
  expect_close_gradients(many, one);
}

TEST_F(DataParallelTest, SendsParametersOnlyWhenTheyChanged) {
  nn::LeNet net;
  net.to("cuda:0");
  DataParallel model(net, {.device_ids = {0, 1}});
  const Tensor x = randn({4, 1, 28, 28}).to("cuda:0");
  const auto copies = [&] {
    return count_copies([&] {
      NoGradGuard no_grad;
      model(x);
    });
  };
  EXPECT_EQ(copies(), 3);  // the part of x, all parameters, the output
  EXPECT_EQ(copies(), 2);
  {
    NoGradGuard no_grad;
    net.fc1.bias.add_(1.0);
  }
  EXPECT_EQ(copies(), 3);
  EXPECT_EQ(copies(), 2);
  net.load_state_dict(nn::LeNet().state_dict());
  EXPECT_EQ(copies(), 3);
  model.to(float64).to(float32);
  EXPECT_EQ(copies(), 3);
  EXPECT_EQ(copies(), 2);
}

TEST_F(DataParallelTest, ATrainingStepHasFewCopies) {
  nn::LeNet net;
  net.to("cuda:0");
  DataParallel model(net, {.device_ids = {0, 1}});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  const Tensor x = randn({4, 1, 28, 28}), y = zeros({4}, {.dtype = int64, .device = "cuda:0"});
  const auto step = [&] {
    optimizer.zero_grad();
    nn::cross_entropy(model(x), y).backward();
    optimizer.step();
  };
  step();
  // Two parts of x, the parameters, the output; its gradient, the gradients of all parameters.
  EXPECT_EQ(count_copies(step), 6);
}

TEST_F(DataParallelTest, AFrozenPartIsSentOnce) {
  Small net;
  net.to("cuda:0");
  net.hidden.requires_grad_(false);
  DataParallel model(net, {.device_ids = {0, 1}});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  const Tensor x = randn({4, 5}).to("cuda:0");
  const auto step = [&] {
    optimizer.zero_grad();
    model(x).sum().backward();
    optimizer.step();
  };
  EXPECT_EQ(count_copies(step), 6);
  EXPECT_EQ(count_copies(step), 5);
}

struct Normalised : nn::Module {
  nn::Linear linear{4, 4};
  nn::BatchNorm1d norm{4};
  TERN_MODULE(linear, norm)
  Tensor forward(const Tensor& x) { return norm(linear(x)); }
};

TEST_F(DataParallelTest, BuffersFollowTheFirstDevice) {
  Normalised net;
  Normalised alone = nn::clone(net);
  net.to("cuda:0");
  DataParallel model(net, {.device_ids = {0, 1}});
  const Tensor x = randn({8, 4});
  for (int i = 0; i < 3; ++i) {
    model(x).sum().backward();
    alone(x.narrow(0, 0, 4));  // what the first device sees
  }
  expect_close(net.norm.running_mean, alone.norm.running_mean);
  expect_close(net.norm.running_var, alone.norm.running_var);
  EXPECT_EQ(net.norm.num_batches_tracked.item<int64_t>(), 3);
  // In evaluation mode all replicas use the statistics of the first device.
  model.eval();
  alone.eval();
  expect_close(model(x), alone(x));
  EXPECT_EQ(count_copies([&] { model(x.to("cuda:0")); }), 3);  // x, part, output
}

/// Keeps a buffer for backward beside one that changes.
struct Masked : nn::Module {
  nn::Buffer mask{ones({4})};
  nn::Linear linear{4, 4};
  nn::BatchNorm1d norm{4};
  TERN_MODULE(mask, linear, norm)
  Tensor forward(const Tensor& x) { return norm(linear(x) * mask); }
};

TEST_F(DataParallelTest, BuffersThatChangeDoNotDisturbBackward) {
  Masked net;
  net.to("cuda:0");
  DataParallel model(net, {.device_ids = {0, 1}});
  const Tensor x = randn({8, 4});
  const Tensor first = model(x), second = model(x);
  (first.square().sum() + second.sum()).backward();
  EXPECT_TRUE(net.linear.weight.grad().defined());
}

TEST_F(DataParallelTest, ModesHooksAndFieldsFollowTheModule) {
  struct Probe {
    static int& evaluations() {
      static int count = 0;
      return count;
    }
  };
  Small net;
  net.to("cuda:0");
  net.hidden.register_forward_hook([](const nn::Module& module, const Tensor&, const Tensor&) -> Tensor {
    if (!module.is_training()) ++Probe::evaluations();
    return {};
  });
  DataParallel model(net, {.device_ids = {0, 1}});
  model(randn({4, 5}));
  EXPECT_EQ(Probe::evaluations(), 0);
  model.eval();
  model(randn({4, 5}));
  EXPECT_EQ(Probe::evaluations(), 2);
}

TEST_F(DataParallelTest, NamesAndText) {
  Small net;
  net.to("cuda:0");
  DataParallel model(net, {.device_ids = {0, 1}});
  std::vector<std::string> names;
  for (const auto& [name, tensor] : model.state_dict()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"module.hidden.weight", "module.hidden.bias",
                                             "module.output.weight", "module.output.bias"}));
  EXPECT_EQ(model.str(),
            "DataParallel(\n  (module): Small(\n"
            "    (hidden): Linear(in_features=5, out_features=7, bias=True)\n"
            "    (output): Linear(in_features=7, out_features=3, bias=True)\n  )\n)");
  Small other;
  other.load_state_dict(model.module.state_dict());
  expect_close(other.hidden.weight, net.hidden.weight);
  EXPECT_TRUE(model.parameters()[0].is_same(net.hidden.weight));
  DataParallel any(nn::AnyModule(net), {.device_ids = {0, 1}});
  expect_close(any(ones({4, 5})), net(ones({4, 5}).to("cuda:0")));
  EXPECT_EQ(any.state_dict().begin()->first, "module.hidden.weight");
  // A copy has replicas of its own.
  auto copy = model;
  expect_close(copy(ones({4, 5})), net(ones({4, 5}).to("cuda:0")));
}

TEST_F(DataParallelTest, OutputDeviceAndDimension) {
  Small net;
  net.to("cuda:0");
  const Tensor x = randn({6, 5});
  DataParallel to_second(net, {.device_ids = {0, 1}, .output_device = "cuda:1"});
  EXPECT_EQ(to_second(x).device(), Device("cuda:1"));
  DataParallel to_host(net, {.device_ids = {0, 1}, .output_device = kCPU});
  EXPECT_EQ(to_host(x).device(), kCPU);
  EXPECT_EQ(to_host(x.narrow(0, 0, 1)).device(), kCPU);
  DataParallel along(net, {.device_ids = {0, 1}, .dim = 1});
  const Tensor wide = randn({2, 6, 5}).requires_grad_();
  const Tensor y = along(wide);
  EXPECT_EQ(y.shape(), (Shape{2, 6, 3}));
  expect_close(y, net(wide.to("cuda:0")));
  y.square().sum().backward();
  const Tensor g = wide.grad();
  wide.set_grad({});
  net(wide.to("cuda:0")).square().sum().backward();
  expect_close(g, wide.grad());
}

struct ScalarLoss : nn::Module {
  nn::Linear linear{5, 1};
  TERN_MODULE(linear)
  Tensor forward(const Tensor& x, double scale) { return linear(x).mean() * scale; }
};

TEST_F(DataParallelTest, ScalarsBecomeAVector) {
  ScalarLoss net;
  net.to("cuda:0");
  std::vector<std::string> warnings;
  DataParallel model(
      net, {.device_ids = {0, 1}, .on_warning = [&](const std::string& text) { warnings.push_back(text); }});
  const Tensor x = randn({4, 5});
  const Tensor losses = model(x, 2.0);
  EXPECT_EQ(losses.shape(), (Shape{2}));
  model(x, 1.0);
  EXPECT_EQ(warnings, std::vector<std::string>{kScalarGatherWarning});
  expect_close(losses.mean(), net(x.to("cuda:0"), 2.0));
  losses.mean().backward();
  EXPECT_TRUE(net.linear.bias.grad().defined());
  EXPECT_EQ(DataParallel(net, {.device_ids = {0}})(x, 1.0).dim(), 0);
}

TEST_F(DataParallelTest, WithoutAGpuItIsAPlainCall) {
  simulate_gpus({.gpus = 0});
  Small net;
  DataParallel model(net);
  EXPECT_TRUE(model.device_ids().empty());
  const Tensor x = randn({4, 5});
  expect_close(model(x), net(x));
}

TEST_F(DataParallelTest, RandomNumbersRepeat) {
  nn::Sequential net{nn::Linear(5, 8), nn::Dropout(0.5)};
  net.to("cuda:0");
  DataParallel model(net, {.device_ids = {0, 1}});
  const Tensor x = ones({4, 5});
  manual_seed(3);
  const Tensor first = model(x);
  manual_seed(3);
  expect_equal_bits({first.cpu()}, {model(x).cpu()});
}

TEST_F(DataParallelTest, ASingleDeviceTakesTheModule) {
  const Tensor x = randn({4, 5});
  Small net;
  DataParallel model(net, {.device_ids = {1}});
  EXPECT_EQ(net.parameters().front().device().str(), "cuda:1");  // the tensors are the net's own
  EXPECT_EQ(model(x).device().str(), "cuda:1");
}

TEST_F(DataParallelTest, Errors) {
  Small net;
  const Tensor x = randn({4, 5});
  DataParallel away(net, {.device_ids = {0, 1}});
  expect_error<DeviceError>(
      [&] { away(x); },
      "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found "
      "one of them on device: cpu: move it there with to(\"cuda:0\")");
  net.to("cuda:0");
  DataParallel model(net, {.device_ids = {0, 1}});
  expect_error<ValueError>(
      [&] {
        DataParallel(net, {.device_ids = {0, 1, 0}});
      },
      "DataParallel: device_ids has cuda:0 twice");
  expect_error<DeviceError>([&] { DataParallel(net, {.device_ids = {0, 9}}); }, "DataParallel: device_ids: ");
  expect_error<DeviceError>([&] { DataParallel(net, {.device_ids = {kCPU}}); },
                            "device_ids must be GPUs, got cpu");
  expect_error<ShapeError>(
      [&] {
        model(randn({4, 6}));
      },
      "in replica 0 on device cuda:0: Small.hidden (Linear): ");
  expect_error<ShapeError>([&] { model(ones({})); }, "a 0-d tensor can not be split over 2 devices");
}

struct FailsOnTheSecond : nn::Module {
  nn::Linear linear{5, 2};
  TERN_MODULE(linear)
  Tensor forward(const Tensor& x) {
    if (x.device() == Device("cuda:1")) throw IndexError("something is missing");
    return linear(x);
  }
};

TEST_F(DataParallelTest, ErrorsNameTheReplica) {
  FailsOnTheSecond net;
  net.to("cuda:0");
  DataParallel model(net, {.device_ids = {0, 1}});
  expect_error<IndexError>([&] { model(randn({4, 5})); }, "in replica 1 on device cuda:1: ");
  expect_error<IndexError>([&] { model(randn({4, 5})); }, "something is missing");
}

TEST_F(DataParallelTest, GoesOnAfterAFailedDevice) {
  const Small start;
  const Tensor x = randn({6, 5});
  const auto steps = [&](DataParallel<Small>& model, int count) {
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    for (int i = 0; i < count; ++i) {
      optimizer.zero_grad();
      model(x).square().mean().backward();
      optimizer.step();
      for (const Device& device : model.device_ids()) synchronize(device);
    }
    return model.parameters()[0].detach().cpu();
  };
  const auto on = [&](std::vector<Device> devices) {
    Small net = nn::clone(start);
    net.to(devices[0]);
    return DataParallel(net, {.device_ids = devices});
  };
  Tensor expected;
  {
    auto model = on({0, 1});
    expected = steps(model, 3);
  }
  using Kind = SimulatedFault::Kind;
  int all_failures = 0;
  for (const Kind kind : {Kind::Copy, Kind::Launch})
    for (const uint64_t number : {1, 2, 3, 8})
      for (const int device : {0, 1}) {
        SCOPED_TRACE(::testing::Message() << "fault " << number << " on " << device);
        simulate_gpus({.gpus = 2, .faults = {{.kind = kind, .number = number, .device = device}}});
        std::optional<DataParallel<Small>> model;
        int failures = 0;
        for (int attempt = 0; attempt < 2; ++attempt) try {
            if (!model) model.emplace(on({0, 1}));
            model->module.load_state_dict(start.state_dict());
            expect_equal_bits({steps(*model, 3)}, {expected});
            break;
          } catch (const DeviceError&) {
            ++failures;
          }
        EXPECT_LE(failures, 1);
        all_failures += failures;
      }
  EXPECT_GT(all_failures, 10);
  simulate_gpus({.gpus = 2, .faults = {{.kind = Kind::Lost, .number = 9, .device = 1}}});
  {
    auto model = on({0, 1});
    EXPECT_THROW(steps(model, 5), DeviceError);
    EXPECT_THROW(steps(model, 1), DeviceError);
  }
  auto alone = on({0});
  expect_close(steps(alone, 3), expected);
}

}  // namespace
}  // namespace tern::parallel
