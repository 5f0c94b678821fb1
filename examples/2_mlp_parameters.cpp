// 2. The parameters of a network to a file, and into another network: PyTorch's lines stand beside Tern's.
// The file opens in PyTorch, as a state_dict with PyTorch's names. Usage: 2_mlp_parameters [FOLDER]
#include <tern/tern.h>

#include <exception>
#include <filesystem>
#include <iostream>

using namespace tern;

// A network is a struct; TERN_MODULE names its fields once, as they will be called in the file.
struct MLP : nn::Module {
  nn::Linear hidden{20, 256};
  nn::Linear output{256, 10};
  TERN_MODULE(hidden, output)
  Tensor forward(const Tensor& x) { return output(relu(hidden(x))); }
};

// The same without the sizes of the inputs: the first input gives them, or the file.
struct LazyMLP : nn::Module {
  nn::LazyLinear hidden{256};
  nn::LazyLinear output{10};
  TERN_MODULE(hidden, output)
  Tensor forward(const Tensor& x) { return output(relu(hidden(x))); }
};

int main(int argc, char** argv) try {
  const std::filesystem::path folder = argc > 1 ? argv[1] : ".";
  std::filesystem::create_directories(folder);
  manual_seed(0);  // torch.manual_seed(0)

  MLP net;
  Tensor X = randn({2, 20});  // X = torch.randn(size=(2, 20))
  Tensor Y = net(X);

  // What is saved is the numbers and their names; the class of the network is not in the file.
  for (const auto& [name, tensor] : net.state_dict()) std::cout << name << ' ' << tensor.sizes() << '\n';
  save(net.state_dict(), folder / "mlp.params");  // torch.save(net.state_dict(), 'mlp.params')

  // So the clone is made first, with random numbers of its own, which loading replaces.
  MLP clone;
  auto loaded = clone.load_state_dict(load(folder / "mlp.params").as_state_dict());
  std::cout << loaded.str() << '\n';  // clone.load_state_dict(torch.load('mlp.params'))
  std::cout << clone.eval() << '\n';  // clone.eval()

  Tensor Y_clone = clone(X);
  std::cout << eq(Y_clone, Y) << '\n';  // Y_clone == Y

  LazyMLP lazy;
  std::cout << lazy << '\n';
  lazy.load_state_dict(load(folder / "mlp.params").as_state_dict());
  std::cout << lazy << '\n';
  std::cout << all(eq(lazy(X), Y)) << '\n';
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
