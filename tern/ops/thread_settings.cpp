// Taking over the settings of another thread.
#include "tern/ops/thread_settings.h"

#include <algorithm>

namespace tern {

ThreadSettings::ThreadSettings() = default;

void ThreadSettings::apply() const {
  detail::grad_enabled = grad_enabled_;
  detail::set_autocast_settings(autocast_);
  set_default_device(default_device_);
  set_thread_local_num_threads(threads_);
  detail::current_gpu = gpu_;
  std::copy(streams_.begin(), streams_.end(), detail::current_streams);
}

}  // namespace tern
