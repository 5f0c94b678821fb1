// 7. Train on all GPUs, then use the result on one device. A network in DataParallel has "module." before the
// names of its parameters: how to save without it, and how to load a file that has it.
// TERN_SIM_GPUS=2 ./7_train_on_many [FOLDER]
#include <tern/parallel/data_parallel.h>
#include <tern/tern.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>

using namespace tern;

struct Net : nn::Module {
  nn::Linear hidden{2, 64};
  nn::Linear output{64, 2};
  TERN_MODULE(hidden, output)
  Tensor forward(const Tensor& x) { return output(relu(hidden(x))); }
};

/// Points of a square, and whether each lies in the circle in its middle.
data::TensorDataset points(int64_t count) {
  Tensor x = 2 * rand({count, 2}) - 1;
  Tensor inside = lt(x.square().sum(/*dim=*/1), 0.6);
  return data::TensorDataset(x, inside.to(int64));
}

int main(int argc, char** argv) try {
  const std::filesystem::path folder = argc > 1 ? argv[1] : ".";
  std::filesystem::create_directories(folder);
  manual_seed(0);

  // The batches and the network go to the first GPU; DataParallel sends each GPU its part.
  Device device = try_gpu();
  data::DataLoader loader(points(2000), {.batch_size = 100, .shuffle = true, .device = device});
  parallel::DataParallel model{Net()};  // model = nn.DataParallel(Net())
  model.to(device);
  optim::Adam optimizer(model.parameters(), {.lr = 0.01});
  std::cout << "Training on";
  for (Device each : try_all_gpus()) std::cout << ' ' << each;
  std::cout << '\n';
  for (int epoch = 1; epoch <= 5; ++epoch) {
    int64_t right = 0;
    for (auto& [x, y] : loader) {
      optimizer.zero_grad();
      Tensor scores = model(x);  // joined on the first GPU, where y is
      nn::cross_entropy(scores, y).backward();
      optimizer.step();
      right += eq(scores.argmax(1), y).sum().item<int64_t>();
    }
    std::printf("epoch %d: %.1f %% right\n", epoch, 100.0 * static_cast<double>(right) / 2000);
  }

  // Without the prefix: what is saved is the network in the wrapper.
  save(model.module.state_dict(), folder / "net.pt");  // torch.save(model.module.state_dict(), 'net.pt')

  // A file remembers the devices of its tensors; map_location brings them to one that is there.
  Net net;
  net.load_state_dict(load(folder / "net.pt", {.map_location = "cpu"}).as_state_dict());
  Tensor X = rand({4, 2});
  Tensor expected = model(X.to(device)).cpu();
  std::cout << std::boolalpha;
  std::cout << "One device, the same answers: " << allclose(net(X), expected) << '\n';

  // With the prefix: what is saved is the wrapper.
  save(model.state_dict(), folder / "parallel.pt");  // torch.save(model.state_dict(), 'parallel.pt')
  StateDict state = load(folder / "parallel.pt", {.map_location = "cpu"}).as_state_dict();
  std::cout << "Names in parallel.pt:";
  for (const auto& [name, tensor] : state) std::cout << ' ' << name;
  std::cout << '\n';

  // It does not fit the network itself: nothing is loaded, and the error lists the names.
  try {
    net.load_state_dict(state);
  } catch (const CheckpointError& error) {
    std::cout << "error: " << error.what() << '\n';
  }

  // It fits another wrapper, on whatever devices that has, and the network once the prefix is taken off.
  parallel::DataParallel wrapped{Net()};
  std::cout << "In a wrapper: " << wrapped.load_state_dict(state).str() << '\n';
  nn::consume_prefix_in_state_dict_if_present(state, "module.");
  Net other;
  std::cout << "Without the prefix: " << other.load_state_dict(state).str() << '\n';
  std::cout << "One device, the same answers: " << allclose(other(X), expected) << '\n';
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
