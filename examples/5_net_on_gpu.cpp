// 5. A network on a GPU: where its parameters are, and what happens when the input is left behind. Runs on
// the CPU when there is no GPU. TERN_SIM_GPUS=1 ./5_net_on_gpu
#include <tern/tern.h>

#include <cstdio>
#include <iostream>

using namespace tern;

int main() {
  manual_seed(0);
  Device device = try_gpu();

  nn::Sequential net{nn::Linear(3, 1)};  // net = nn.Sequential(nn.Linear(3, 1))
  net.to(device);                        // net = net.to(device=try_gpu())

  Tensor X = ones({2, 3}, {.device = device});
  std::cout << net(X) << '\n';

  // The parameters are where the network was sent. net[0] may be a layer of any kind, so its kind is said.
  std::cout << net[0].as<nn::Linear>().weight.device() << '\n';  // net[0].weight.data.device
  for (const auto& [name, parameter] : net.named_parameters())
    std::cout << name << ' ' << parameter.sizes() << " on " << parameter.device() << '\n';

  // The input has to be there too. The error names the layer in which the two met.
  Tensor left_behind = ones({2, 3});
  try {
    net(left_behind);
    std::cout << "no GPU: network and input are both on " << device << '\n';
  } catch (const DeviceError& error) {
    std::cout << "error: " << error.what() << '\n';
  }

  // A step of training happens on the device from beginning to end; item() brings the loss to the host.
  optim::SGD optimizer(net.parameters(), {.lr = 0.1});
  Tensor target = zeros({2, 1}, {.device = device});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    Tensor loss = nn::mse_loss(net(X), target);
    loss.backward();
    optimizer.step();
    std::printf("step %d: loss %.4f\n", step, loss.item<double>());
  }
  std::cout << "gradient on " << net[0].as<nn::Linear>().weight.grad().device() << '\n';
}
