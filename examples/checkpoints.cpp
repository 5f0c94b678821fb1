// Saving and loading, line by line as in PyTorch's tutorials: a tensor, a list, a dict, the parameters of a
// network. Every file that this writes opens with torch.load(file, weights_only=True). Usage: checkpoints
// [FOLDER]
#include <tern/tern.h>

#include <filesystem>
#include <iostream>

using namespace tern;

struct MLP : nn::Module {
  nn::Linear hidden{20, 256};
  nn::Linear output{256, 10};
  TERN_MODULE(hidden, output)
  Tensor forward(const Tensor& x) { return output(relu(hidden(x))); }
};

int main(int argc, char** argv) try {
  const std::filesystem::path folder = argc > 1 ? argv[1] : ".";
  std::filesystem::create_directories(folder);

  Tensor x = arange(4);
  save(x, folder / "x-file");
  std::cout << load(folder / "x-file").as_tensor() << '\n';

  Tensor y = zeros({4});
  save(Value::list({x, y}), folder / "x-files");
  for (const Value& tensor : load(folder / "x-files").as_list()) std::cout << tensor.as_tensor() << '\n';

  save({{"x", x}, {"y", y}}, folder / "mydict");
  std::cout << load(folder / "mydict")["y"].as_tensor() << '\n';

  MLP net;
  Tensor X = randn({2, 20});
  Tensor Y = net(X);
  save(net.state_dict(), folder / "mlp.params");

  MLP clone;
  clone.load_state_dict(load(folder / "mlp.params").as_state_dict());
  clone.eval();
  std::cout << eq(clone(X), Y) << '\n';
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
