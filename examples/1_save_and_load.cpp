// 1. Tensors, lists and dicts to files and back: PyTorch's lines stand beside Tern's. Every file that this
// program writes opens in PyTorch: torch.load("mydict", weights_only=True). The parameters of a network are
// in 2_mlp_parameters.cpp. Usage: 1_save_and_load [FOLDER]
#include <tern/tern.h>

#include <exception>
#include <filesystem>
#include <iostream>

using namespace tern;

int main(int argc, char** argv) try {
  const std::filesystem::path folder = argc > 1 ? argv[1] : ".";
  std::filesystem::create_directories(folder);

  // A tensor. A file may hold anything, so what it is to be is said when it is read.
  Tensor x = arange(4);                             // x = torch.arange(4)
  save(x, folder / "x-file");                       // torch.save(x, 'x-file')
  Tensor x2 = load(folder / "x-file").as_tensor();  // x2 = torch.load('x-file')
  std::cout << x2 << "\n\n";

  // A list of tensors.
  Tensor y = zeros({4});                                    // y = torch.zeros(4)
  save(Value::list({x, y}), folder / "x-files");            // torch.save([x, y], 'x-files')
  const auto tensors = load(folder / "x-files").as_list();  // x2, y2 = torch.load('x-files')
  x2 = tensors[0].as_tensor();
  Tensor y2 = tensors[1].as_tensor();
  std::cout << x2 << '\n' << y2 << "\n\n";

  // A dict from names to tensors.
  save({{"x", x}, {"y", y}}, folder / "mydict");           // torch.save({'x': x, 'y': y}, 'mydict')
  const auto mydict2 = load(folder / "mydict").as_dict();  // mydict2 = torch.load('mydict')
  for (const auto& [key, value] : mydict2) std::cout << key.as_str() << ": " << value.as_tensor() << '\n';
  std::cout << '\n';

  // Lists and dicts may hold numbers, texts and each other.
  Value classes = Value::list({"cat", "dog"});
  save({{"epoch", 3}, {"lr", 0.1}, {"classes", classes}, {"x", x}}, folder / "checkpoint");
  Value checkpoint = load(folder / "checkpoint");
  std::cout << "epoch " << checkpoint["epoch"].as_int() << ", lr " << checkpoint["lr"].as_float()
            << ", second class " << checkpoint["classes"][1].as_str() << '\n';
  // Tensors are shown by what they are.
  std::cout << checkpoint.str() << "\n\n";

  // Whoever asks for something that is not there is told where.
  try {
    checkpoint["classes"][2].as_str();
  } catch (const Error& error) {
    std::cout << "error: " << error.what() << '\n';
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
