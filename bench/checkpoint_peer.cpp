// Tern's side of bench/checkpoints.py; checkpoint_peer.py is PyTorch's. Does one thing a number of times and
// prints the seconds of each as one line of JSON, with the process's peak of memory beyond what it had
// before.
//   checkpoint_peer load|mmap FILE TIMES
//   checkpoint_peer save large|many COUNT FILE TIMES     large: COUNT MiB in tensors of 16 MiB; many: COUNT
//   small ones
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tern/tern.h"

namespace {

using namespace tern;
using Arguments = std::vector<std::string>;

/// The most memory that the process has had. (getrusage would count the process that started it.)
long peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stol(line.substr(6));
  return 0;
}

/// `step` is timed, `reset` before it is not.
template <class Reset, class Step>
void time(const std::string& times, Reset reset, Step step) {
  const long before = peak_kib();
  std::printf("{\"seconds\": [");
  for (int i = 0; i < std::stoi(times); ++i) {
    reset();
    const auto start = std::chrono::steady_clock::now();
    step();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%s%.6f", i ? ", " : "", seconds.count());
  }
  std::printf("], \"peak_mib\": %.1f", static_cast<double>(peak_kib() - before) / 1024);
}

void time_load(const Arguments& args) {
  std::optional<Value> file;
  time(
      args[2], [&] { file.reset(); },
      [&] { file = load(args[1], {.map_location = "cpu", .mmap = args[0] == "mmap"}); });
  std::printf(", \"entries\": %zu}\n", file->length());
}

void time_save(const Arguments& args) {
  const bool many = args[1] == "many";
  const int64_t count = std::stoll(args[2]) / (many ? 1 : 16);
  StateDict state;
  for (int64_t i = 0; i < count; ++i)
    state.insert("layers." + std::to_string(i) + ".weight", rand(many ? Shape{16} : Shape{2048, 2048}));
  time(
      args[4], [] {}, [&] { save(state, args[3]); });  // save() syncs
  std::printf(", \"entries\": %zu}\n", state.size());
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments args(argv + 1, argv + argc);
  try {
    zeros({1});  // the backend and its threads are there, as PyTorch's are after `import torch`
    if (args.size() == 3 && (args[0] == "load" || args[0] == "mmap"))
      time_load(args);
    else if (args.size() == 5 && args[0] == "save")
      time_save(args);
    else
      throw ValueError("usage: checkpoint_peer load|mmap FILE TIMES | save large|many COUNT FILE TIMES");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
