// The switch that operators ask whether autocast may concern them. It lies here because backward runs with it
// off. Autocast itself is in ops/autocast.h.
#pragma once

#include <utility>

namespace tern {

namespace detail {
/// True while autocast is on for some kind of device on this thread, and neither an operator that has cast
/// its arguments nor backward runs.
extern constinit thread_local bool autocasting;
}  // namespace detail

/// Operators take their arguments as they are in the scope of this guard.
class AutocastPause {
 public:
  AutocastPause() noexcept : before_(std::exchange(detail::autocasting, false)) {}
  ~AutocastPause() { detail::autocasting = before_; }
  AutocastPause(const AutocastPause&) = delete;
  AutocastPause& operator=(const AutocastPause&) = delete;

 private:
  bool before_;
};

}  // namespace tern
