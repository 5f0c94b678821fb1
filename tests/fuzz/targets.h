// What the fuzzers run: each target reads bytes as one format, the way `load` and `tern inspect` do, and
// looks at all that comes of it. An error of Tern's is an answer; any other exception, a report of a
// sanitizer, much time or memory is a defect. corpus_test.cpp runs them over the kept corpus in every build.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tern::fuzz {

struct Target {
  std::string_view name;  ///< of the program (`fuzz_zip`) and of its folder in corpus/
  void (*run)(std::span<const std::byte> bytes);
};

/// pickle, zip, legacy, tar, safetensors, npy.
std::span<const Target> targets();

}  // namespace tern::fuzz
