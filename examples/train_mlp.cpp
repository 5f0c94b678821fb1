// Training from the first line to the last: a network, a data set made here, a loader, an optimizer.
#include <tern/tern.h>

#include <cstdio>

using namespace tern;

struct MLP : nn::Module {
  nn::Linear hidden{2, 64};
  nn::Linear output{64, 3};
  TERN_MODULE(hidden, output)
  Tensor forward(const Tensor& x) { return output(relu(hidden(x))); }
};

/// Points on three arms of a spiral, and which arm each is on.
data::TensorDataset spiral(int64_t points) {
  Tensor arm = randint(0, 3, {points});
  Tensor radius = rand({points});
  Tensor angle = 4 * radius + arm.to(float32) * 2.0944 + 0.1 * randn({points});
  return data::TensorDataset(stack({radius * sin(angle), radius * cos(angle)}, /*dim=*/1), arm);
}

int main() {
  manual_seed(0);
  Device device = try_gpu();  // cuda:0 if there is one, else cpu
  MLP net;
  net.to(device);
  optim::SGD optimizer(net.parameters(), {.lr = 0.3, .momentum = 0.9});
  data::DataLoader loader(spiral(3000), {.batch_size = 64, .shuffle = true, .device = device});
  for (int epoch = 1; epoch <= 10; ++epoch) {
    double right = 0, count = 0;
    for (auto& [x, y] : loader) {
      optimizer.zero_grad();
      Tensor scores = net(x);
      nn::cross_entropy(scores, y).backward();
      optimizer.step();
      right += eq(argmax(scores, 1), y).sum().item<double>();
      count += static_cast<double>(y.size(0));
    }
    std::printf("epoch %2d: %.1f %% right\n", epoch, 100 * right / count);
  }
  save(net.state_dict(), "spiral.params");
}
