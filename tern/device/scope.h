// Scope: where in a program a thread is, for whoever observes launches: in the forward of which module, in
// the backward of which operator. It is kept only while somebody follows launches.
#pragma once

#include <atomic>
#include <string>

#include "tern/device/launch.h"

namespace tern {

/// Of the calling thread.
struct Scope {
  const char* backward_of = nullptr;         ///< an operator's name, or null outside backward
  const std::string* module_path = nullptr;  ///< "LeNet.conv1", or null outside modules
};

namespace detail {

extern constinit thread_local Scope scope;

/// True while somebody observes or records launches.
inline bool observing() noexcept { return launch_followers.load(std::memory_order_relaxed) != 0; }

}  // namespace detail

/// The calling thread is in `inner` while it lives.
class ScopeGuard {
 public:
  explicit ScopeGuard(Scope inner) noexcept : outer_(detail::scope) { detail::scope = inner; }
  ~ScopeGuard() { detail::scope = outer_; }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Scope outer_;
};

}  // namespace tern
