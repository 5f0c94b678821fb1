// Tern's side of bench/checkpoint_saves.py: saves a state dict and syncs, as often as asked, and prints the
// seconds as JSON.
//   checkpoint_save_peer large MIB FILE ROUNDS | checkpoint_save_peer many COUNT FILE ROUNDS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "tern/tern.h"

namespace {

int run(const std::string& kind, int64_t count, const char* path, int rounds) {
  using namespace tern;
  StateDict state;
  const bool many = kind == "many";
  for (int64_t i = 0; i < (many ? count : count / 16); ++i)
    state.insert("layers." + std::to_string(i) + ".weight", randn(many ? Shape{16} : Shape{2048, 2048}));
  std::printf("[");
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    save(state, path);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%s%.6f", round ? ", " : "", seconds.count());
  }
  std::printf("]\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: checkpoint_save_peer large|many COUNT FILE ROUNDS\n");
    return 2;
  }
  try {
    return run(argv[1], std::atoll(argv[2]), argv[3], std::atoi(argv[4]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
