// Tern's side of bench/checkpoints.py: loads a file and prints what it took as one line of JSON.
//   checkpoint_peer load|mmap FILE
// The memory is the peak of the process beyond what it had before.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>

#include "tern/io/serialize.h"
#include "tern/tern.h"

namespace {

/// The most memory that the process has had. (getrusage would count the process that started it.)
long peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stol(line.substr(6));
  return 0;
}

int run(const char* mode, const char* path) {
  using namespace tern;
  zeros({1});  // the backend and its threads are there, as PyTorch's are after `import torch`
  const long before = peak_kib();
  const auto start = std::chrono::steady_clock::now();
  const Value file = load(path, {.map_location = "cpu", .mmap = std::strcmp(mode, "mmap") == 0});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("{\"seconds\": %.6f, \"peak_mib\": %.1f, \"entries\": %zu}\n", seconds.count(),
              static_cast<double>(peak_kib() - before) / 1024, file.length());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: checkpoint_peer load|mmap FILE\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
