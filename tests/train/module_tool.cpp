// A helper of the test of whole models against PyTorch (module_roundtrip.py):
//   module_tool make MODEL DATA        saves a model of every layer, and what it gives
//   module_tool own MODEL DATA         the same for a class that is registered
//   module_tool mixture MODEL DATA     the same for one with parameters in containers
//   module_tool run MODEL DATA OUT     loads a model, saves what it gives for DATA's "x", and the model again
//   in OUT.pt
//   module_tool copy MODEL OUT         loads a model and saves it again
// With TERN_TEST_DEVICE=cuda:0 models and tensors are on that device.
#include <cstdio>
#include <exception>
#include <string>

#include "tern/base/env.h"
#include "tern/tern.h"
#include "tern/train/module_file.h"

namespace {

using namespace tern;

struct MLP : nn::Module {
  nn::Linear hidden{6, 8};
  nn::BatchNorm1d norm{8};
  nn::Linear output{8, 6, {.bias = false}};
  std::vector<nn::Linear> more{nn::Linear(6, 6), nn::Linear(6, 6)};
  TERN_MODULE(hidden, norm, output, more)
  MLP() { more[1].weight = more[0].weight; }
  Tensor forward(const Tensor& x) const {
    Tensor y = output(relu(norm(hidden(x))));
    for (const nn::Linear& layer : more) y = layer(y);
    return y;
  }
};
TERN_REGISTER_MODULE("__main__.MLP", MLP);

/// Parameters in containers, and maxima that go back to their places.
struct Mixture : nn::Module {
  nn::ParameterList weights{nn::Parameter(ones({6, 4})), nn::Parameter(zeros({4}))};
  nn::ParameterDict scales{{"left", nn::Parameter(ones({4}))}, {"right", nn::Parameter(ones({1}))}};
  nn::MaxPool1d pool{2, {.return_indices = true}};
  nn::MaxUnpool1d unpool{2};
  TERN_MODULE(weights, scales, pool, unpool)
  Tensor forward(const Tensor& x) const {
    const Tensor y = matmul(x, weights[0]) + weights[1];
    const auto [largest, places] = pool.forward_with_indices(y);
    return (unpool(largest, places) + y) * scales["left"] * scales["right"];
  }
};
TERN_REGISTER_MODULE("__main__.Mixture", Mixture);

nn::Sequential every_layer() {
  nn::Sequential net{
      {{"conv", nn::Conv2d(3, 8, {3, 2}, {.stride = 2, .padding = {1, 2}, .groups = 1})},
       {"norm", nn::BatchNorm2d(8, {.momentum = 0.2})},
       {"relu", nn::ReLU()},
       {"same", nn::Conv2d(8, 8, 3, {.padding = "same", .dilation = 2, .groups = 4, .bias = false})},
       {"group", nn::GroupNorm(2, 8)},
       {"up", nn::ConvTranspose2d(8, 4, 3, {.stride = 2, .padding = 1, .output_padding = 1})},
       {"silu", nn::SiLU()},
       {"max", nn::MaxPool2d(3, {.stride = 2, .padding = 1})},
       {"mean", nn::AvgPool2d(2, {.stride = 1, .count_include_pad = false})},
       {"size", nn::AdaptiveAvgPool2d({2, 4})},
       {"flat", nn::Flatten()},
       {"unflat", nn::Unflatten(1, {4, 8})},
       {"sequence", nn::Conv1d(4, 2, 3, {.padding = 1})},
       {"batch", nn::BatchNorm1d(2, {.affine = false})},
       {"pool", nn::MaxPool1d(2)},
       {"mean1", nn::AvgPool1d(2, {.stride = 1})},
       {"flatten", nn::Flatten(1, 2)},
       {"tanh", nn::Tanh()},
       {"to8", nn::Linear(6, 8)},
       {"layer", nn::LayerNorm(8)},
       {"encoder", nn::TransformerEncoder(nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 12}), 1,
                                          nn::LayerNorm(8))},
       {"sigmoid", nn::Sigmoid()},
       {"drop", nn::Dropout(0.3)},
       {"id", nn::Identity()},
       {"tail", nn::Sequential{nn::Linear(8, 6), nn::LeakyReLU(0.2), nn::ELU(0.5), nn::GELU("tanh"),
                               nn::Softplus(2, 10), nn::LogSigmoid(), nn::Softmax(1), nn::LogSoftmax(-1),
                               nn::Softmin()}},
       {"more", nn::Sequential{nn::Hardtanh(-2, 2.5), nn::ReLU6(true), nn::Hardswish(), nn::Hardsigmoid(),
                               nn::Mish(), nn::SELU(), nn::CELU(0.5), nn::Softsign(), nn::Tanhshrink(),
                               nn::Hardshrink(0.01), nn::Softshrink(0.01), nn::Threshold(0.1, -0.5),
                               nn::PReLU(6, {.init = 0.1}), nn::GLU(1)}}}};
  return net;
}

/// Of layers that no Sequential takes, the first of what they give.
Tensor output_of(nn::AnyModule& net, const Tensor& x) {
  if (auto* lstm = net->as<nn::LSTM>()) return (*lstm)(x).first;
  if (auto* gru = net->as<nn::GRU>()) return (*gru)(x).first;
  if (auto* rnn = net->as<nn::RNN>()) return (*rnn)(x).first;
  if (auto* classes = net->as<nn::AdaptiveLogSoftmaxWithLoss>()) return classes->log_prob(x);
  if (auto* cell = net->as<nn::LSTMCell>()) return (*cell)(x).h;
  return net(x);
}

Value outputs(nn::AnyModule& net, const Tensor& x) {
  NoGradGuard no_grad;
  return {{"y", output_of(net, x)}, {"text", net->str()}, {"state", net->state_dict()}};
}

int run(const std::string& mode, int argc, char** argv) {
  if (mode == "make" && argc == 4) {
    manual_seed(3);
    nn::AnyModule net(every_layer());
    Tensor x = randn({4, 3, 9, 14});
    net(x);  // moves the running statistics
    net->eval();
    save_module(*net, argv[2]);
    Value data = outputs(net, x);
    data["x"] = x;
    save(data, argv[3]);
    return 0;
  }
  if ((mode == "own" || mode == "mixture") && argc == 4) {
    manual_seed(4);
    nn::AnyModule net = mode == "own" ? nn::AnyModule(MLP()) : nn::AnyModule(Mixture());
    net->eval();
    Tensor x = randn({5, 6});
    save_module(*net, argv[2]);
    Value data = outputs(net, x);
    data["x"] = x;
    save(data, argv[3]);
    return 0;
  }
  if (mode == "run" && argc == 5) {
    const LoadOptions here{.map_location = get_default_device()};
    nn::AnyModule net = load_module(argv[2], here);
    save(outputs(net, load(argv[3], here)["x"].as_tensor()), argv[4]);
    save_module(*net, std::string(argv[4]) + ".pt");
    return 0;
  }
  if (mode == "copy" && argc == 4) {
    save_module(*load_module(argv[2], {.map_location = get_default_device()}), argv[3]);
    return 0;
  }
  std::fprintf(
      stderr,
      "usage: module_tool make|own|mixture MODEL DATA, module_tool run MODEL DATA OUT, module_tool copy "
      "MODEL OUT\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (const auto device = env_text("TERN_TEST_DEVICE")) set_default_device(*device);
    return run(argc > 1 ? argv[1] : "", argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
