// What operators look up in the calling thread, for threads that work on its behalf: the workers of a
// DataLoader, replicas that meet.
#pragma once

#include <array>
#include <cstdint>

#include "tern/autograd/grad_mode.h"
#include "tern/base/parallel.h"
#include "tern/core/memory.h"
#include "tern/device/stream.h"
#include "tern/ops/autocast.h"

namespace tern {

/// The settings of the thread that makes it: grad mode, autocast, default device, current GPU and streams,
/// number of threads.
class ThreadSettings {
 public:
  ThreadSettings();
  /// Makes them those of the calling thread.
  void apply() const;

 private:
  bool grad_enabled_ = is_grad_enabled();
  detail::AutocastSettings autocast_ = detail::autocast_settings();
  Device default_device_ = get_default_device();
  int threads_ = num_threads();
  int gpu_ = detail::current_gpu;
  std::array<uint16_t, kMaxGpus> streams_ = std::to_array(detail::current_streams);
};

}  // namespace tern
