// A libFuzzer program for the target TERN_FUZZ_TARGET; built once for each. scripts/fuzz runs them.
#include <algorithm>
#include <cstdint>

#include "targets.h"
#include "tern/base/parallel.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tern::set_num_threads(1);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto target =
      std::ranges::find(tern::fuzz::targets(), TERN_FUZZ_TARGET, &tern::fuzz::Target::name);
  target->run(std::as_bytes(std::span(data, size)));
  return 0;
}
