// A number that changes with the list of kernels: their names, their order and the sizes of their arguments.
// Library and plugin compare theirs (device/plugin.h).
#pragma once

#include "tern/device/plugin.h"
#include "tern/kernels/list.h"

namespace tern::kernels {

constexpr uint64_t fingerprint() noexcept {
  uint64_t hash = kEmptyFingerprint;
#define TERN_ADD(kernel, Args) hash = add_to_fingerprint(add_to_fingerprint(hash, #kernel), sizeof(Args));
  TERN_KERNELS(TERN_ADD)
#undef TERN_ADD
  return hash;
}

}  // namespace tern::kernels
