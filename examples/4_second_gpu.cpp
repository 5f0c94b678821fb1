// 4. Tensors on two GPUs: copy, add, and what happens when the copy is forgotten. With one GPU the CPU is the
// second device, with none there is one device only. TERN_SIM_GPUS=2 ./4_second_gpu
#include <tern/tern.h>

#include <iostream>

using namespace tern;

int main() {
  manual_seed(0);
  Tensor X = ones({2, 3}, {.device = try_gpu()});   // X = torch.ones(2, 3, device=try_gpu())
  Tensor Y = rand({2, 3}, {.device = try_gpu(1)});  // Y = torch.rand(2, 3, device=try_gpu(1))
  std::cout << "X = " << X << "\nY = " << Y << '\n';

  // Operators compute where their operands are, so both must be on one device.
  try {
    X + Y;
    std::cout << "X and Y are on the same device, " << X.device() << '\n';
  } catch (const DeviceError& error) {
    std::cout << "error: " << error.what() << '\n';
  }

  // Z is X copied to where Y is; with two GPUs one may also write X.cuda(1).
  Tensor Z = X.to(Y.device());  // Z = X.cuda(1)
  std::cout << "Z = " << Z << '\n';
  std::cout << "Y + Z = " << Y + Z << '\n';

  // A tensor that is there already is returned as it is: no copy, no memory.
  std::cout << std::boolalpha;
  std::cout << "X.to(Y.device()) is X: " << Z.is_same(X) << '\n';
  if (cuda::device_count() > 1) {
    auto before = cuda::memory_allocated(1);  // torch.cuda.memory_allocated(1)
    Tensor same = Z.cuda(1);
    std::cout << "Z.cuda(1) is Z: " << same.is_same(Z) << '\n';  // Z.cuda(1) is Z
    std::cout << "memory it took: " << cuda::memory_allocated(1) - before << " bytes\n";
    Tensor copy = Z.to("cuda:1", {.copy = true});
    std::cout << "a copy of it: " << cuda::memory_allocated(1) - before << " bytes\n";
  }
  std::cout << "Z.to(Y.device()) is Z: " << Z.to(Y.device()).is_same(Z) << '\n';
}
