// Averages of weights against PyTorch's numbers, and the statistics of batch norm layers.
#include "tern/optim/swa_utils.h"

#include <gmock/gmock.h>

#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/optim/sgd.h"
#include "tests/optim/support.h"
#include "tests/support/expect_error.h"

namespace tern::optim {
namespace {

using ::testing::ElementsAre;
using namespace tern::testing;

struct NormedNet : nn::Module {
  nn::Linear linear{2, 2};
  nn::BatchNorm1d norm{2};
  TERN_MODULE(linear, norm)
  Tensor forward(const Tensor& x) { return norm(linear(x)); }
};

/// Weights, statistics and the count of batches become `value`.
void fill(NormedNet& net, double value) {
  const NoGradGuard no_grad;
  for (Tensor p : net.parameters()) p.detach().fill_(value);
  for (Tensor b : net.buffers()) b.fill_(value);
}

struct AverageCase {
  const char* name;
  AveragedModelOptions options;
  double weight, running_mean;
  int64_t batches;
};

// PyTorch 2.15, of models full of 1, 2, 4 and 9.
const std::vector<AverageCase> kAverages = {
    {"equal", {}, 4, 9, 9},
    {"equal_buffers", {.use_buffers = true}, 4, 4, 3},
    {"ema", {.multi_avg_fn = get_ema_multi_avg_fn(0.75)}, 3.703125, 9, 9},
    {"ema_buffers", {.multi_avg_fn = get_ema_multi_avg_fn(0.75), .use_buffers = true}, 3.703125, 3.703125, 3},
};

TEST(AveragedModel, GivesPyTorchsAverages) {
  for (const AverageCase& each : kAverages) {
    SCOPED_TRACE(each.name);
    NormedNet net;
    fill(net, 7);
    AveragedModel average(net, each.options);
    for (double value : {1, 2, 4, 9}) {
      fill(net, value);
      average.update_parameters(net);
    }
    EXPECT_EQ(average.n_averaged.item<int64_t>(), 4);
    expect_near(average.module.linear.weight.detach().to_vector<double>(),
                std::vector<double>(4, each.weight), 1e-6, 0);
    expect_near(average.module.norm.running_mean.to_vector<double>(), {each.running_mean, each.running_mean},
                1e-6, 0);
    EXPECT_EQ(average.module.norm.num_batches_tracked.item<int64_t>(), each.batches);
    EXPECT_EQ(net.linear.weight.detach().to_vector<float>(), (std::vector<float>(4, 9)));
  }
}

TEST(AveragedModel, NamesAndForwardAreTheModels) {
  NormedNet net;
  fill(net, 1);
  AveragedModel average(net);
  average.update_parameters(net);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : average.state_dict()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("n_averaged", "module.linear.weight", "module.linear.bias",
                                 "module.norm.weight", "module.norm.bias", "module.norm.running_mean",
                                 "module.norm.running_var", "module.norm.num_batches_tracked"));
  const Tensor x = ones({3, 2});
  net.eval();
  average.eval();
  EXPECT_EQ(average(x).detach().to_vector<float>(), net(x).detach().to_vector<float>());
  AveragedModel other(net);
  other.load_state_dict(average.state_dict());
  EXPECT_EQ(other.n_averaged.item<int64_t>(), 1);
}

TEST(AveragedModel, RefusesOtherModelsAndDecays) {
  NormedNet net;
  AveragedModel average(net);
  nn::Linear other(2, 2);
  expect_error<ValueError>([&] { average.update_parameters(other); },
                           "the model has 2 parameters, the averaged one 4");
  NormedNet wide;
  wide.linear = nn::Linear(3, 2);
  expect_error<ValueError>([&] { average.update_parameters(wide); },
                           "number 0 of the parameters has shape [2, 3], in the averaged model [2, 2]");
  for (double decay : {-0.1, 1.1, std::nan("")})
    expect_error<ValueError>([&] { get_ema_multi_avg_fn(decay); }, "Invalid decay value");
}

TEST(UpdateBn, AveragesOverAllBatchesAndLeavesTheModel) {
  NormedNet net;
  fill(net, 1);
  net.train(false);
  net.linear.train();
  const std::vector<Tensor> batches = {parameter({0, 0, 2, 2}, {2, 2}).detach(),
                                       parameter({4, 4, 6, 6}, {2, 2}).detach()};
  update_bn(batches, net);
  // Of x W^T + 1 with ones for W: 1, 5 and then 9, 13.
  EXPECT_EQ(net.norm.running_mean.to_vector<float>(), (std::vector<float>{7, 7}));
  EXPECT_EQ(net.norm.running_var.to_vector<float>(), (std::vector<float>{8, 8}));
  EXPECT_EQ(net.norm.num_batches_tracked.item<int64_t>(), 2);
  EXPECT_EQ(net.norm.momentum(), 0.1);
  EXPECT_FALSE(net.is_training());
  EXPECT_FALSE(net.norm.is_training());
  EXPECT_TRUE(net.linear.is_training());
  const std::vector<Tensor> wrong = {parameter({1, 2, 3}, {1, 3}).detach()};
  EXPECT_THROW(update_bn(wrong, net), ShapeError);
  EXPECT_EQ(net.norm.momentum(), 0.1);
  EXPECT_FALSE(net.is_training());
  nn::Linear plain(2, 2);
  update_bn(batches, plain);
}

}  // namespace
}  // namespace tern::optim
