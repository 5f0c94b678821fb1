// 9. Train with several processes, on one machine or on many servers: each has the network and a part of the
// data, and their gradients meet. The same program runs alone.
// ./9_many_servers [FOLDER], or tern launch -n 3 ./9_many_servers [FOLDER]
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

/// Points of a square, and whether each lies in the circle in its middle: the same in every process.
data::TensorDataset points(int64_t count) {
  manual_seed(0);
  Tensor x = 2 * rand({count, 2}) - 1;
  Tensor inside = lt(x.square().sum(/*dim=*/1), 0.6);
  return data::TensorDataset(x, inside.to(int64));
}

int main(int argc, char** argv) try {
  const std::filesystem::path folder = argc > 1 ? argv[1] : ".";

  // Who the others are, and which device this process has: the GPU of its number on its machine, or the CPU.
  dist::ProcessGroup group = dist::ProcessGroup::start();  // dist.init_process_group()
  const bool is_first = group.rank() == 0;
  const Device device = group.device();
  const data::TensorDataset set = points(2000);

  // Every process takes its part of each epoch: with 3 of them 667 points, of which one occurs twice.
  data::DistributedSampler sampler(set.size(), {.num_replicas = group.size(), .rank = group.rank()});
  data::DataLoader loader(set, {.batch_size = 100 / group.size(), .sampler = sampler, .device = device});

  // All start from the parameters of rank 0, whatever they had.
  Net net;
  net.to(device);
  dist::DistributedDataParallel model(net, group);
  optim::Adam optimizer(model.parameters(), {.lr = 0.01});
  if (is_first) std::cout << "Processes: " << group.size() << ", points for each: " << sampler.size() << '\n';
  for (int epoch = 1; epoch <= 5; ++epoch) {
    Tensor right = zeros({2}, {.device = device});  // how many, of how many
    for (auto& [x, y] : loader) {
      optimizer.zero_grad();
      Tensor scores = model(x);
      nn::cross_entropy(scores, y).backward();  // gradients are the means over all processes
      optimizer.step();
      right += stack({eq(scores.argmax(1), y).sum().to(float32), full({}, y.size(0), {.device = device})}, 0);
    }
    group.all_reduce(right);
    const double share = right[0].item<double>() / right[1].item<double>();
    if (is_first) std::printf("epoch %d: %.1f %% right\n", epoch, 100 * share);
  }

  // What they have learned is the same to the bit.
  bool is_same = true;
  for (const Tensor& other : group.all_gather(net.output.weight)) is_same &= equal(other, net.output.weight);
  if (is_first) std::cout << std::boolalpha << "The same weights in all: " << is_same << '\n';

  // One process saves; without the prefix "module.", since what is saved is the network in the wrapper.
  if (is_first) {
    std::filesystem::create_directories(folder);
    save(model.module.state_dict(), folder / "net.pt");
  }
  group.barrier();  // the file is there for all
  Net loaded;
  loaded.load_state_dict(load(folder / "net.pt", {.map_location = "cpu"}).as_state_dict());
  const Tensor X = rand({4, 2});
  const bool is_loaded = allclose(loaded(X), model.module(X.to(device)).cpu());
  if (is_first) std::cout << "Loaded, the same answers: " << is_loaded << '\n';
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
