// A loop of one's own that saves all it needs to go on, and goes on: model, optimizer, schedule, epoch and
// random state. train::fit does the same by itself. Usage: train_and_resume [FOLDER]
#include <tern/tern.h>

#include <cstdio>
#include <filesystem>

using namespace tern;

struct MLP : nn::Module {
  nn::Linear hidden{2, 64};
  nn::Dropout dropout{0.1};
  nn::Linear output{64, 2};
  TERN_MODULE(hidden, dropout, output)
  Tensor forward(const Tensor& x) { return output(dropout(relu(hidden(x)))); }
};

/// Points in a square, and whether each is in the circle in its middle.
data::TensorDataset circle(int64_t points) {
  Tensor x = rand({points, 2}) * 2 - 1;
  return data::TensorDataset(x, lt((x * x).sum(1), 0.6).to(int64));
}

/// Trains until `epochs` are done, from where the last call with this file stopped.
StateDict train_until(int64_t epochs, const std::filesystem::path& file) {
  manual_seed(0);
  Device device = try_gpu();
  MLP net;
  net.to(device);
  optim::AdamW optimizer(net.parameters(), {.lr = 0.02});
  optim::StepLR schedule(optimizer, {.step_size = 2, .gamma = 0.5});
  data::DataLoader loader(circle(2000), {.batch_size = 50, .shuffle = true, .seed = 1, .device = device});

  int64_t epoch = 0;
  if (std::filesystem::exists(file)) {
    Value saved = load(file, {.map_location = "cpu"});  // what is loaded goes to the parameters' device
    net.load_state_dict(saved["model"].as_state_dict());
    optimizer.load_state_dict(saved["optimizer"]);
    schedule.load_state_dict(saved["schedule"]);
    set_rng_state(saved["random"].as_tensor());
    epoch = saved["epoch"].as_int();
    loader.set_epoch(epoch);
    std::printf("goes on after epoch %d\n", static_cast<int>(epoch));
  }
  while (epoch < epochs) {
    double right = 0;
    for (auto& [x, y] : loader) {
      optimizer.zero_grad();
      Tensor scores = net(x);
      nn::cross_entropy(scores, y).backward();
      optimizer.step();
      right += eq(argmax(scores, 1), y).sum().item<double>();
    }
    std::printf("epoch %d: lr %g, %.1f %% right\n", static_cast<int>(++epoch), optimizer.lr(), right / 20);
    schedule.step();
    save({{"model", net.state_dict()},
          {"optimizer", optimizer.state_dict()},
          {"schedule", schedule.state_dict()},
          {"random", get_rng_state()},
          {"epoch", epoch}},
         file);
  }
  return net.state_dict();
}

int main(int argc, char** argv) {
  const std::filesystem::path folder = argc > 1 ? argv[1] : ".";
  std::filesystem::create_directories(folder);
  for (const char* name : {"whole.pt", "paused.pt"}) std::filesystem::remove(folder / name);

  StateDict whole = train_until(4, folder / "whole.pt");
  std::printf("\nthe same with a pause\n");
  train_until(2, folder / "paused.pt");
  StateDict paused = train_until(4, folder / "paused.pt");

  bool same = true;
  for (const auto& [name, weight] : whole) same = same && equal(weight, paused[name]);
  std::printf("the weights are %s\n", same ? "the same to the bit" : "different");
}
