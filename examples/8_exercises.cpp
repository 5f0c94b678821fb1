// 8. The exercises on GPUs, with their times: large and small products on the CPU and on a GPU, results
// logged one by one or kept on the device, two GPUs at once or one after the other.
//   TERN_SIM_GPUS=2 ./8_exercises
// Simulated GPUs compute on the CPU's cores, so that they are not faster than it.
#include <tern/tern.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>
#include <vector>

using namespace tern;

/// Milliseconds that `work` takes on `devices`, the best of three runs. A GPU works while the program goes
/// on, so the clock is read only when everything that it was given is done: torch.cuda.synchronize().
double time_ms(const std::vector<Device>& devices, const std::function<void()>& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 3; ++run) {
    auto start = std::chrono::steady_clock::now();
    work();
    for (Device device : devices) synchronize(device);
    std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count());
  }
  return best;
}

/// `count` products of two matrices of size x size.
double products_ms(Device device, int64_t size, int count) {
  Tensor A = randn({size, size}, {.device = device});
  Tensor B = randn({size, size}, {.device = device});
  return time_ms({device}, [&] {
    for (int i = 0; i < count; ++i) A.mm(B);
  });
}

/// 1. A large computation on the CPU and on a GPU, and one with a small number of calculations: what a GPU
/// gains in a product of large matrices it loses in the start of many small ones.
void large_and_small(const std::vector<Device>& devices) {
  std::printf("1. Products of matrices\n");
  for (Device device : devices) {
    std::printf("  %s: one of 1024 x 1024: %.2f ms\n", device.str().c_str(), products_ms(device, 1024, 1));
    std::printf("  %s: 1000 of 4 x 4: %.2f ms\n", device.str().c_str(), products_ms(device, 4, 1000));
  }
}

/// 2. 1000 products of 100 x 100, and the Frobenius norm of each result. item() waits for the GPU and fetches
/// one number; a log on the device is fetched once, and the GPU never stands still.
void log_of_norms(Device device) {
  constexpr int kProducts = 1000;
  std::printf("2. Norms of %d products of 100 x 100 on %s\n", kProducts, device.str().c_str());
  Tensor A = randn({100, 100}, {.device = device});
  Tensor B = randn({100, 100}, {.device = device});

  std::vector<double> log;
  double one_by_one = time_ms({device}, [&] {
    log.clear();
    for (int i = 0; i < kProducts; ++i) log.push_back(A.mm(B).norm().item<double>());
  });

  std::vector<double> fetched;
  double at_the_end = time_ms({device}, [&] {
    TensorList norms;
    for (int i = 0; i < kProducts; ++i) norms.push_back(A.mm(B).norm());
    fetched = stack(norms).to_vector<double>();
  });

  std::printf("  logged one by one: %.2f ms\n", one_by_one);
  std::printf("  kept on the device, fetched at the end: %.2f ms\n", at_the_end);
  std::printf("  both logs are equal: %s\n", log == fetched ? "True" : "False");
}

/// 3. Two products on two GPUs at the same time, and in sequence on one. No thread is needed for it: the
/// first GPU is still computing when the second gets its work.
void two_at_once(Device first, Device second) {
  std::printf("3. Two products of 1024 x 1024 on %s and %s\n", first.str().c_str(), second.str().c_str());
  Tensor A = randn({1024, 1024}, {.device = first});
  Tensor B = A.to(second);

  Tensor C, D;
  double at_once = time_ms({first, second}, [&] {
    C = A.mm(A);
    D = B.mm(B);
  });
  double in_sequence = time_ms({first}, [&] {
    C = A.mm(A);
    C = A.mm(A);
  });

  std::printf("  at once, one on each: %.2f ms\n", at_once);
  std::printf("  in sequence on %s: %.2f ms\n", first.str().c_str(), in_sequence);
  std::printf("  the results are equal: %s\n", equal(C, D.to(first)) ? "True" : "False");
}

int main() {
  manual_seed(0);
  std::vector<Device> devices = {"cpu"};
  if (cuda::is_available())
    devices.push_back(try_gpu());
  else
    std::printf("There is no GPU: the CPU alone is timed.\n");

  large_and_small(devices);
  log_of_norms(try_gpu());
  if (cuda::device_count() > 1)
    two_at_once("cuda:0", "cuda:1");
  else
    std::printf("3. Two GPUs at once: there are not two of them here\n");
}
