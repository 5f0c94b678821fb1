// Reading of the settings.
#include "tests/emulator/settings.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace emulator {
namespace {

Settings read() {
  Settings made;
  const char* text = std::getenv("TERN_EMULATOR");
  std::istringstream parts(text ? text : "");
  for (std::string part; std::getline(parts, part, ',');) {
    const auto equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const auto number =
        std::strtoull(equals == std::string::npos ? "" : part.c_str() + equals + 1, nullptr, 10);
    if (name == "gpus") {
      made.gpus = static_cast<int>(number);
    } else if (name == "memory") {
      made.memory = static_cast<size_t>(number) << 20;
    } else if (name == "seed") {
      made.seed = number;
    } else if (name == "lazy") {
      made.lazy = number != 0;
    } else if (name == "real_cudnn") {
      made.real_cudnn = number != 0;
    } else {
      std::fprintf(stderr, "CUDA emulator: TERN_EMULATOR has no '%s'\n", name.c_str());
      std::abort();
    }
  }
  return made;
}

}  // namespace

const Settings& settings() {
  static const Settings once = read();
  return once;
}

}  // namespace emulator
