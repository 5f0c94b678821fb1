// How the emulator behaves, from the environment: TERN_EMULATOR="gpus=2,memory=4096,seed=1,lazy=1,
// real_cudnn=0".
#pragma once

#include <cstddef>
#include <cstdint>

namespace emulator {

struct Settings {
  int gpus = 2;
  size_t memory = size_t{4} << 30;  ///< of a GPU, in bytes; `memory` in the environment is in MiB
  uint64_t seed = 1;                ///< of the order of threads, blocks and streams
  /// Work waits in its stream until somebody asks for it; else it is done when it is given.
  bool lazy = true;
  bool real_cudnn = false;  ///< the real cuDNN is asked whether it has plans
};

const Settings& settings();

}  // namespace emulator
