// 10. ResNet-18 on all GPUs. Its layers are lazy: the sizes of their inputs come from the first batch, in
// DataParallel from the first GPU's part of it. TERN_SIM_GPUS=2 ./10_resnet_on_many [FOLDER]
#include <tern/parallel/data_parallel.h>
#include <tern/tern.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>

using namespace tern;

struct Residual : nn::Module {
  explicit Residual(int64_t channels, int64_t stride = 1)
      : conv1(channels, 3, {.stride = stride, .padding = 1}), conv2(channels, 3, {.padding = 1}) {
    if (stride != 1) conv3.emplace(channels, 1, nn::Conv2dOptions{.stride = stride});
  }

  nn::LazyConv2d conv1;                 // nn.LazyConv2d(channels, kernel_size=3, padding=1, stride=stride)
  nn::LazyConv2d conv2;                 // nn.LazyConv2d(channels, kernel_size=3, padding=1)
  std::optional<nn::LazyConv2d> conv3;  // where the shape changes
  nn::LazyBatchNorm2d bn1, bn2;
  TERN_MODULE(conv1, conv2, conv3, bn1, bn2)

  Tensor forward(const Tensor& x) {
    Tensor y = bn2(conv2(relu(bn1(conv1(x)))));
    return relu(y + (conv3 ? (*conv3)(x) : x));
  }
};

/// `channels` after the first layer: 64 in the paper.
nn::Sequential resnet18(int64_t classes, int64_t channels) {
  nn::Sequential net{nn::LazyConv2d(channels, 3, {.padding = 1}), nn::LazyBatchNorm2d(), nn::ReLU()};
  for (int part = 0; part < 4; ++part) {
    nn::Sequential block{Residual(channels << part, part == 0 ? 1 : 2), Residual(channels << part)};
    net.push_back("resnet_block" + std::to_string(part + 1), block);
  }
  net.push_back("global_avg_pool", nn::AdaptiveAvgPool2d(1));
  net.push_back("fc", nn::Sequential{nn::Flatten(), nn::LazyLinear(classes)});
  return net;
}

int main(int argc, char** argv) try {
  const std::filesystem::path folder = argc > 1 ? argv[1] : ".";
  std::filesystem::create_directories(folder);
  manual_seed(0);

  Device device = try_gpu();
  nn::Sequential net = resnet18(/*classes=*/10, /*channels=*/8);
  net.to(device);                                       // remembered until there is something to move
  parallel::DataParallel model(net);                    // nn.DataParallel(net)
  optim::SGD trainer(model.parameters(), {.lr = 0.1});  // holds the parameters that are to come
  std::cout << "Training on";
  for (Device each : try_all_gpus()) std::cout << ' ' << each;
  std::cout << '\n' << net["fc"].as<nn::Sequential>()[1].get() << '\n';

  data::DataLoader loader(data::Digits({.size = 320}), {.batch_size = 32, .shuffle = true});
  for (int epoch = 1; epoch <= 2; ++epoch) {
    int64_t right = 0;
    for (auto& [x, y] : loader) {
      trainer.zero_grad();
      Tensor scores = model(x), target = y.to(device);  // each GPU gets its part of x from the host
      nn::cross_entropy(scores, target).backward();
      trainer.step();
      right += eq(scores.argmax(1), target).sum().item<int64_t>();
    }
    std::printf("epoch %d: %.1f %% right\n", epoch, 100.0 * static_cast<double>(right) / 320);
  }
  std::cout << net["fc"].as<nn::Sequential>()[1].get() << '\n';

  // A file gives the sizes too: to a network on the CPU, which has seen no input.
  save(net.state_dict(), folder / "resnet.params");
  nn::Sequential other = resnet18(10, 8);
  std::cout << other.load_state_dict(load(folder / "resnet.params", {.map_location = "cpu"}).as_state_dict())
            << '\n';
  net.eval();
  other.eval();
  Tensor X = rand({4, 1, 28, 28});
  std::cout << std::boolalpha
            << "The same answers on the CPU: " << allclose(other(X), net(X.to(device)).cpu(), 1e-4, 1e-5)
            << '\n';
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
