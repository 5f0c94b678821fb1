// Helper of lenet_in_torch.py: writes the test pictures of a data set and the logits that a trained LeNet
// gives them. Usage: logits_tool LENET.pt MNIST_FOLDER|digits OUT.pt
#include <tern/tern.h>

#include <iostream>

using namespace tern;

int main(int argc, char** argv) try {
  if (argc != 4) throw ValueError("usage: logits_tool LENET.pt MNIST_FOLDER|digits OUT.pt");
  nn::LeNet net;
  net.load_state_dict(load(argv[1]).as_state_dict());
  net.eval();
  const std::string source = argv[2];
  auto write = [&](const auto& dataset) {
    NoGradGuard no_grad;
    std::vector<Tensor> pictures, logits;
    for (auto& [x, y] : data::DataLoader(dataset, {.batch_size = 500})) {
      pictures.push_back(x);
      logits.push_back(net(x));
    }
    save(StateDict{{"pictures", cat(pictures, 0)}, {"logits", cat(logits, 0)}}, argv[3]);
  };
  if (source == "digits")
    write(data::Digits({.train = false, .image = {.normalize = true}}));
  else
    write(data::MNIST(source, /*train=*/false, {.normalize = true}));
  return 0;
} catch (const Error& error) {
  std::cerr << "logits_tool: " << error.what() << '\n';
  return 1;
}
