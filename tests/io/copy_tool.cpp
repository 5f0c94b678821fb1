// A helper of the tests against PyTorch: loads a checkpoint and saves it again.
//   copy_tool pt|safetensors|npz|describe IN [OUT]
// With TERN_TEST_DEVICE=cuda:0 all tensors are on that device meanwhile.
#include <cstdio>
#include <exception>
#include <string>

#include "tern/base/env.h"
#include "tern/io/npy.h"
#include "tern/io/serialize.h"

namespace {

int run(const std::string& mode, const char* in, const char* out) {
  tern::LoadOptions options;
  options.weights_only = false;
  if (const auto device = tern::env_text("TERN_TEST_DEVICE")) options.map_location = *device;
  if (mode == "describe") {
    std::puts(tern::load(in, options).str(1 << 20).c_str());
  } else if (mode == "pt") {
    tern::save(tern::load(in, options), out);
  } else if (mode == "legacy") {
    tern::save(tern::load(in, options), out, {.format = tern::SaveFormat::Legacy});
  } else if (mode == "compact") {
    tern::save(tern::load(in, options), out, {.compact = true});
  } else if (mode == "safetensors") {
    tern::save_safetensors(tern::load(in, options).as_state_dict(), out,
                           {{"format", "pt"}, {"note", "a \"b\" \\ \n \xc3\xa4"}});
  } else if (mode == "npz") {
    tern::save_npz(tern::load(in, options).as_state_dict(), out);
  } else {
    std::fprintf(stderr, "unknown mode '%s'\n", mode.c_str());
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || (argc < 4 && std::string(argv[1]) != "describe")) {
    std::fprintf(stderr, "usage: copy_tool pt|safetensors|npz|describe IN [OUT]\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2], argc > 3 ? argv[3] : nullptr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
