// Splitting, joining and collective copies: sizes, structures, gradients, errors.
#include "tern/parallel/scatter_gather.h"

#include <gtest/gtest.h>

#include "tern/parallel/comm.h"
#include "tern/parallel/data_parallel.h"
#include "tests/parallel/parallel_testing.h"

namespace tern::parallel {
namespace {

class ScatterGatherTest : public ParallelTest {};

TEST_F(ScatterGatherTest, SizesAreThoseOfTorchChunk) {
  struct Row {
    int64_t size;
    size_t devices;
    std::vector<int64_t> sizes;
  };
  const Row rows[] = {
      {30, 2, {15, 15}},
      {10, 2, {5, 5}},
      {30, 3, {10, 10, 10}},
      {30, 4, {8, 8, 8, 6}},
      {1, 4, {1}},
      {2, 4, {1, 1}},
      {3, 2, {2, 1}},
      {5, 4, {2, 2, 1}},
      {6, 4, {2, 2, 2}},
      {7, 4, {2, 2, 2, 1}},
      {9, 4, {3, 3, 3}},
      {4, 4, {1, 1, 1, 1}},
      {0, 3, {0, 0, 0}},
      {100, 1, {100}},
      {17, 3, {6, 6, 5}},
      {16, 5, {4, 4, 4, 4}},
      {10, 8, {2, 2, 2, 2, 2}},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(chunk_sizes(row.size, row.devices), row.sizes) << row.size << " on " << row.devices;
    std::vector<int64_t> chunks;
    for (const Tensor& chunk : zeros({row.size}).chunk(static_cast<int64_t>(row.devices)))
      chunks.push_back(chunk.size(0));
    EXPECT_EQ(chunks, row.sizes);
  }
}

TEST_F(ScatterGatherTest, ThereAndBackWithGradients) {
  for (const Device home : {kCPU, Device("cuda:0"), Device("cuda:3")})
    for (int64_t dim : {0, 1, -1}) {
      const Tensor x = randn({6, 7, 3}).to(home), weight = randn({6, 7, 3}).to(home);
      const auto plain = scatter(x, first_gpus(3), dim);
      for (int d = 0; d < 3; ++d) EXPECT_EQ(plain[static_cast<size_t>(d)].device(), Device(d));
      expect_equal_bits({gather(plain, home, dim)}, {x});
      const Tensor leaf = x.clone().requires_grad_();
      const auto parts = scatter(leaf, first_gpus(3), dim);
      EXPECT_EQ(parts[1].grad_fn_name(), "scatter");
      (gather(parts, home, dim) * weight).sum().backward();
      expect_equal_bits({leaf.grad()}, {weight});
      // One part alone: zeros elsewhere.
      leaf.set_grad({});
      scatter(leaf, first_gpus(3), dim)[1].sum().backward();
      EXPECT_EQ(leaf.grad().sum().item<int64_t>(), parts[1].numel());
    }
}

TEST_F(ScatterGatherTest, StridedAndSharedInputs) {
  const Tensor x = randn({4, 6}).to("cuda:0").t();  // not row-major
  const auto parts = scatter(x, first_gpus(2));
  EXPECT_EQ(parts[0].storage(), x.storage());  // on its own device a part is a view
  expect_equal_bits({gather(parts, kCPU)}, {x});
  expect_equal_bits({gather({x, x.to("cuda:1")}, "cuda:2", 1)}, {cat({x, x}, 1)});
  const Tensor leaf = randn({4, 2}).to("cuda:0").requires_grad_();
  auto changed = scatter(leaf, first_gpus(2));
  changed[0].mul_(2.0);  // a part of its own: the leaf does not change
  (changed[0].sum() + changed[1].sum().to("cuda:0")).backward();
  expect_close(leaf.grad().cpu(), tensor({2.f, 2.f, 2.f, 2.f, 1.f, 1.f, 1.f, 1.f}).view({4, 2}));
}

TEST_F(ScatterGatherTest, SecondDerivatives) {
  const Tensor x = randn({5}, {.dtype = float64}).requires_grad_();
  const auto run = [&](const Tensor& y) {
    const Tensor g = grad({(y * y * y).sum()}, {x}, {}, {.create_graph = true})[0];
    return grad({(g * g).sum()}, {x})[0];
  };
  const Tensor expected = run(x), got = run(gather(scatter(x, first_gpus(3)), kCPU));
  expect_close(got, expected, 1e-12);
  const auto copies = broadcast_coalesced({x.to("cuda:0")}, first_gpus(3));
  const Tensor sum = copies[0][0].cpu() + copies[1][0].cpu() + copies[2][0].cpu();
  expect_close(run(sum), run(x * 3.0), 1e-12);
}

TEST_F(ScatterGatherTest, CollectiveCopies) {
  const Tensor a = randn({3}).to("cuda:1").requires_grad_(), b = randn({2, 2}).to("cuda:1").requires_grad_(),
               n = arange(4).to(int64).to("cuda:1");
  const auto one = broadcast(a, first_gpus(3));
  EXPECT_TRUE(one[1].is_same(a));
  for (int d = 0; d < 3; ++d) EXPECT_EQ(one[static_cast<size_t>(d)].device(), Device(d));
  (one[0].sum() + one[2].sum().to("cuda:0") * 3).backward();
  expect_close(a.grad(), full({3}, 4.0, {.device = "cuda:1"}));
  a.set_grad({});

  std::vector<std::vector<Tensor>> many;
  EXPECT_EQ(count_copies([&] { many = broadcast_coalesced({a, n, b}, first_gpus(4)); }), 6);  // two dtypes
  EXPECT_TRUE(many[1][0].is_same(a));
  expect_equal_bits(many[3], {a, n, b});
  EXPECT_EQ(many[0][0].storage(), many[0][2].storage());
  Tensor loss = zeros({}, {.device = "cuda:0"});
  for (double d : {0, 2, 3})
    loss = loss + (many[static_cast<size_t>(d)][0].sum() * (d + 1)).to("cuda:0") +
           many[static_cast<size_t>(d)][2].square().sum().to("cuda:0");
  EXPECT_EQ(count_copies([&] { loss.backward(); }), 3 + 4);  // the packed gradients; those of loss
  expect_close(a.grad(), full({3}, 1.0 + 3 + 4, {.device = "cuda:1"}));
  expect_close(b.grad(), b.detach() * 6);

  const Tensor x = randn({4}), y = randn({4}), z = randn({4});
  expect_equal_bits({reduce_add({x.to("cuda:0"), y.to("cuda:1"), z.to("cuda:2")}, "cuda:1")}, {x + y + z});
  const auto sums = reduce_add_coalesced({{x.to("cuda:0"), n.to("cuda:0")}, {y.to("cuda:1"), n}}, "cuda:3");
  expect_equal_bits(sums, {x + y, n * 2});
  EXPECT_EQ(sums[0].device(), Device("cuda:3"));
}

TEST_F(ScatterGatherTest, LargeTensorsTravelInSeveralCopies) {
  const int64_t half = int64_t{16} << 18;  // elements of 16 MiB
  std::vector<Tensor> tensors;
  for (double value : {1, 2, 3})
    tensors.push_back(full({half}, value, {.dtype = float32, .device = "cuda:0"}).requires_grad_());
  std::vector<std::vector<Tensor>> copies;
  EXPECT_EQ(count_copies([&] { copies = broadcast_coalesced(tensors, first_gpus(2)); }), 2);
  for (size_t i = 0; i < 3; ++i) expect_close(copies[1][i].mean(), tensors[i].mean());
  EXPECT_FALSE(copies[1][2].storage() == copies[1][0].storage());
  const Tensor loss = copies[1][0].sum() + copies[1][1].sum() * 2.0 + copies[1][2].sum() * 3.0;
  EXPECT_EQ(count_copies([&] { loss.backward(); }), 2);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(tensors[i].grad().mean().item<double>(), static_cast<double>(i + 1));
  // One tensor alone needs no packing, and a sum does not change it.
  const Tensor one = ones({4}, {.device = "cuda:0"});
  const auto sums = reduce_add_coalesced({{one}, {one.to("cuda:1")}}, "cuda:0");
  EXPECT_EQ(one.sum().item<double>(), 4);
  EXPECT_EQ(sums[0].sum().item<double>(), 8);
}

TEST_F(ScatterGatherTest, NestedValues) {
  const Tensor x = randn({4, 2}), y = arange(4).to(int64);
  const Nested value = Nested::dict({{"x", x},
                                     {"more", Nested::list({y, 3, Nested::dict({{"deep", x}})})},
                                     {"flag", true},
                                     {"rate", 0.5},
                                     {"name", "abc"},
                                     {"none", Nested()}});
  EXPECT_EQ(number_of_parts(3, 0, value, 7), 2u);
  const auto parts = scatter(value, first_gpus(2));
  for (size_t d = 0; d < 2; ++d) {
    EXPECT_EQ(parts[d]["x"].as_tensor().shape(), (Shape{2, 2}));
    EXPECT_EQ(parts[d]["more"][0].as_tensor().device(), Device(static_cast<int>(d)));
    EXPECT_EQ(parts[d]["more"][1].as_int(), 3);
    EXPECT_TRUE(parts[d]["flag"].as_bool());
    EXPECT_EQ(parts[d]["rate"].as_double(), 0.5);
    EXPECT_EQ(parts[d]["name"].as_string(), "abc");
    EXPECT_TRUE(parts[d]["none"].is_none());
  }
  const Nested tensors = Nested::list({x, Nested::dict({{"y", y}})});
  const Nested back = gather(scatter(tensors, first_gpus(2)), kCPU);
  expect_equal_bits({back[0].as_tensor(), back[1]["y"].as_tensor()}, {x, y});

  using Typed = std::map<std::string, std::tuple<Tensor, std::vector<Tensor>, std::optional<Tensor>, int>>;
  const Typed typed = {{"a", {x, {y, y}, std::nullopt, 5}}, {"b", {x, {}, x, 6}}};
  const auto typed_parts = scatter(typed, first_gpus(2));
  EXPECT_EQ(std::get<3>(typed_parts[1].at("b")), 6);
  EXPECT_EQ(std::get<1>(typed_parts[1].at("a"))[1].device(), Device(1));
  EXPECT_FALSE(std::get<2>(typed_parts[1].at("a")).has_value());
  EXPECT_TRUE(std::get<2>(typed_parts[0].at("b")).has_value());
}

/// Takes and gives structures.
struct Structured : nn::Module {
  nn::Linear linear{3, 2};
  TERN_MODULE(linear)
  using Output = std::map<std::string, std::pair<Tensor, std::vector<Tensor>>>;
  Output forward(const std::pair<Tensor, Tensor>& pair, const std::vector<Tensor>& list,
                 const std::string& key, std::optional<double> scale) {
    Tensor y = linear(pair.first) + pair.second;
    if (scale) y = y * *scale;
    return {{key, {y, {list[0] * 2.0, y.sum()}}}};
  }
};

TEST_F(ScatterGatherTest, StructuresThroughDataParallel) {
  Structured net;
  net.to("cuda:0");
  DataParallel model(net, {.device_ids = {0, 1}});
  const Tensor a = randn({4, 3}), b = randn({4, 2}), c = randn({4});
  const auto out = model(std::pair(a, b), std::vector<Tensor>{c}, std::string("out"), std::optional(2.0));
  const auto& [y, list] = out.at("out");
  expect_close(y, (net.linear(a.to("cuda:0")) + b.to("cuda:0")) * 2.0);
  expect_close(list[0].cpu(), c * 2.0);
  EXPECT_EQ(list[1].shape(), (Shape{2}));
}

/// The same with a structure that is known at run time only.
struct Loose : nn::Module {
  nn::Linear linear{3, 2};
  TERN_MODULE(linear)
  Nested forward(const Nested& input) {
    const Tensor y = linear(input["x"].as_tensor()) * input["scale"].as_double();
    if (input["bad"].as_bool()) return Nested::list({y, 1});
    return Nested::dict({{"y", y}, {"all", Nested::list({y, y})}});
  }
};

TEST_F(ScatterGatherTest, NestedThroughDataParallel) {
  Loose net;
  net.to("cuda:0");
  DataParallel model(net, {.device_ids = {0, 1}});
  const Tensor x = randn({4, 3});
  const Nested out = model(Nested::dict({{"x", x}, {"scale", 3.0}, {"bad", false}}));
  expect_close(out["all"][1].as_tensor(), net.linear(x.to("cuda:0")) * 3.0);
  expect_error<TypeError>(
      [&] {
        model(Nested::dict({{"x", x}, {"scale", 3.0}, {"bad", true}}));
      },
      "gather: outputs of kind int can not be joined");
}

TEST_F(ScatterGatherTest, ReplicateAndApply) {
  nn::Linear net(3, 2);
  net.to("cuda:0");
  auto replicas = replicate(net, first_gpus(3));
  EXPECT_TRUE(replicas[0].weight.is_same(net.weight));
  EXPECT_EQ(replicas[2].weight.device(), Device(2));
  const Tensor x = randn({6, 3});
  const auto outputs = parallel_apply(replicas, scatter(x, first_gpus(3)), first_gpus(3));
  const Tensor y = gather(outputs, "cuda:0");
  expect_close(y, net(x.to("cuda:0")));
  y.sum().backward();
  expect_close(net.bias.grad(), full({2}, 6.0, {.device = "cuda:0"}));
  expect_error<ValueError>(
      [&] { parallel_apply(replicas, scatter(x, first_gpus(2)), first_gpus(3)); },
      "parallel_apply: expected as many replicas, inputs and devices, at least one of each: got "
      "3, 2 and 3");
}

TEST_F(ScatterGatherTest, Errors) {
  const Tensor x = randn({4, 2});
  const auto devices = first_gpus(2);
  expect_error<ShapeError>([&] { scatter(ones({}), devices); },
                           "chunk expects at least a 1-dimensional tensor");
  expect_error<IndexError>([&] { scatter(x, devices, 2); }, "scatter: ");
  expect_error<ValueError>([&] { scatter(x, {}); }, "scatter: expected at least one device");
  expect_error<DeviceError>([&] { scatter(x, {Device(7)}); }, "cuda:7");
  expect_error<ShapeError>(
      [&] {
        number_of_parts(4, 0, x, ones({1, 2}));
      },
      "different numbers of parts along dimension 0: one of shape [4, 2] into 4, one of shape "
      "[1, 2] into 1");
  expect_error<ValueError>([&] { gather(std::vector<Tensor>{}, kCPU); }, "gather: expected a non-empty list");
  expect_error<ShapeError>(
      [&] {
        gather({x, ones({4, 3})}, kCPU);
      },
      "sizes of outputs must match except in dimension 0: [4, 2] from replica 0, [4, 3] from "
      "replica 1");
  expect_error<ShapeError>([&] { gather({x, ones({})}, kCPU); }, "same number of dimensions");
  expect_error<DTypeError>(
      [&] {
        gather({x, x.to(int64)}, kCPU);
      },
      "float32 from replica 0, int64 from replica 1");
  expect_error<ValueError>([&] { gather({x, Tensor()}, kCPU); }, "the output of replica 1 is undefined");
  expect_error<ValueError>(
      [&] {
        gather(std::vector<std::vector<Tensor>>{{x}, {x, x}}, kCPU);
      },
      "All lists must have the same number of elements: 1 from replica 0, 2 from replica 1");
  using Dict = std::map<std::string, Tensor>;
  expect_error<ValueError>(
      [&] {
        gather(std::vector<Dict>{{{"a", x}}, {{"b", x}}}, kCPU);
      },
      "All dicts must have the same keys: 'a' is missing from replica 1");
  expect_error<ValueError>(
      [&] {
        gather(std::vector<Nested>{x, Nested::list({x})}, kCPU);
      },
      "a tensor from replica 0, a list from replica 1");
  expect_error<ValueError>([&] { Nested::dict({{"a", 1}, {"a", 2}}); }, "the key 'a' occurs twice");
  expect_error<TypeError>([&] { (void)Nested(3).as_tensor(); }, "expected a tensor, it holds a int");
  expect_error<IndexError>([&] { (void)Nested::list({3})[2]; }, "index 2 is out of range for a list of 1");
  expect_error<DeviceError>(
      [&] {
        broadcast_coalesced({x, x.to("cuda:1")}, devices);
      },
      "tensor 0 is on cpu, tensor 1 on cuda:1");
  expect_error<ShapeError>([&] { reduce_add({x, ones({2})}, kCPU); }, "input 0 is [4, 2], input 1 is [2]");
  expect_error<ValueError>([&] { reduce_add_coalesced({{x}, {}}, kCPU); }, "got 1 and 0");
}

}  // namespace
}  // namespace tern::parallel
