// 12. A network that is larger than one process has room for, as in PyTorch's "Getting Started with Fully
// Sharded Data Parallel": each process keeps a part of all parameters, gradients and of the optimizer's
// state. Checkpoints are written by all together, and read by any number of processes, or by one without
// them. Alone, three threads take the parts of processes.
// ./12_divided_network, or tern launch -n 4 ./12_divided_network
#include <tern/tern.h>

#include <exception>
#include <filesystem>
#include <iostream>
#include <thread>
#include <vector>

using namespace tern;

struct Block : nn::Module {
  nn::Linear in{64, 256}, out{256, 64};
  nn::LayerNorm norm{64};
  TERN_MODULE(in, out, norm)
  Tensor forward(const Tensor& x) { return x + out(relu(in(norm(x)))); }
};

struct Net : nn::Module {
  nn::Linear embed{784, 64}, head{64, 10};
  std::vector<Block> blocks = std::vector<Block>(4);
  TERN_MODULE(embed, head, blocks)
  Tensor forward(const Tensor& pictures) {
    Tensor x = embed(pictures.flatten(1));
    for (Block& block : blocks) x = block(x);
    return head(x);
  }
};

int64_t numel_of(const nn::Module& net) {
  int64_t numel = 0;
  for (const Tensor& parameter : net.parameters()) numel += parameter.numel();
  return numel;
}

void run(const dist::ProcessGroup& group, const std::filesystem::path& folder) {
  Net net;
  net.to(group.device());
  const int64_t whole = numel_of(net);
  for (Block& block : net.blocks) dist::fully_shard(block, group);  // from the inside out
  dist::fully_shard(net, group);                                    // and what is left
  if (group.rank() == 0)
    std::cout << whole << " parameters, of which each of " << group.size() << " processes keeps "
              << numel_of(net) << '\n';

  optim::AdamW optimizer(net.parameters(), {.lr = 1e-3});
  const data::Digits digits;
  data::DistributedSampler sampler(digits.size(), {.num_replicas = group.size(), .rank = group.rank()});
  data::DataLoader loader(digits, {.batch_size = 64, .sampler = sampler, .device = group.device()});
  double first = 0, last = 0;
  int step = 0;
  for (auto& [x, y] : loader) {
    optimizer.zero_grad();
    const Tensor loss = nn::cross_entropy(net(x), y);
    loss.backward();
    dist::clip_grad_norm_(net.parameters(), 1.0);  // of all processes' pieces
    optimizer.step();
    last = loss.item<double>();
    if (step++ == 0) first = last;
    if (step == 40) break;
  }
  if (group.rank() == 0) std::cout << "the loss fell: " << (last < first / 2 ? "yes" : "no") << '\n';

  // Nobody gathers anything: each process writes its pieces.
  train::save_distributed(folder / "divided", group, net, &optimizer, {{"step", step}});
  // The whole, on the first process alone, in a file like any other.
  const StateDict state = dist::full_state_dict(net, {.cpu_offload = true});
  if (group.rank() == 0) save(state, folder / "net.pt");
  group.barrier();

  if (group.rank() != 0) return;
  Net alone, again;
  alone.load_state_dict(load(folder / "net.pt").as_state_dict());
  const Value extra = train::load_distributed(folder / "divided", again);
  std::cout << "read by one process: the same numbers "
            << (equal(alone.head.weight, again.head.weight) ? "yes" : "no") << ", step "
            << extra["step"].as_int() << '\n';
}

int main() {
  const std::filesystem::path folder = "divided_network";
  std::filesystem::create_directories(folder);
  try {
    {
      const dist::ProcessGroup group = dist::ProcessGroup::start();
      if (group.size() > 1) return run(group, folder), 0;
    }
    std::vector<std::thread> threads;
    for (dist::ProcessGroup& group : dist::ProcessGroup::simulate(3))
      threads.emplace_back([&folder, group] { run(group, folder); });
    for (std::thread& thread : threads) thread.join();
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
