// 3. Devices: the CPU and the GPUs, which there are, and where a tensor lies. Runs anywhere; a machine
// without GPUs simulates some when asked: TERN_SIM_GPUS=2 ./3_devices
#include <tern/tern.h>

#include <iostream>

using namespace tern;

int main() {
  // A device is a value. "cuda" is the current GPU, by default the first; Device(1) is "cuda:1".
  std::cout << Device("cpu") << ", " << Device("cuda") << ", " << Device("cuda:1") << ", " << Device(1)
            << '\n';

  // Which GPUs there are: torch.cuda.is_available(), torch.cuda.device_count().
  std::cout << "GPUs: " << cuda::device_count() << '\n';
  for (int i = 0; i < cuda::device_count(); ++i)
    std::cout << "  " << Device(i) << ": " << cuda::get_device_name(i) << '\n';
  if (!cuda::is_available()) std::cout << "  (none: the CPU takes their place below)\n";

  // The i-th GPU if it is there, else the CPU; all GPUs, or the CPU alone.
  std::cout << "try_gpu(): " << try_gpu() << '\n';
  std::cout << "try_gpu(10): " << try_gpu(10) << '\n';
  std::cout << "try_all_gpus():";
  for (Device device : try_all_gpus()) std::cout << ' ' << device;
  std::cout << '\n';

  // Tensors are made on the CPU unless another device is given.
  Tensor x = tensor({1, 2, 3});                    // x = torch.tensor([1, 2, 3])
  std::cout << "x is on " << x.device() << '\n';   // x.device
  Tensor X = ones({2, 3}, {.device = try_gpu()});  // X = torch.ones(2, 3, device=try_gpu())
  std::cout << "X is on " << X.device() << '\n' << X << '\n';

  // A device that nobody has, and text that names none.
  try {
    zeros({1}, {.device = "cuda:63"});
  } catch (const DeviceError& error) {
    std::cout << "error: " << error.what() << '\n';
  }
  try {
    Device device("gpu");
  } catch (const DeviceError& error) {
    std::cout << "error: " << error.what() << '\n';
  }
}
