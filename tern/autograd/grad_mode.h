// Whether operators record gradients on this thread.
#pragma once

#include <utility>

namespace tern {

namespace detail {
extern thread_local bool grad_enabled;
}  // namespace detail

/// True when operators called from this thread record what backward needs. True at first.
inline bool is_grad_enabled() noexcept { return detail::grad_enabled; }

/// Sets the mode and puts the old one back at the end of the scope.
class GradModeGuard {
 public:
  explicit GradModeGuard(bool enabled) noexcept : before_(std::exchange(detail::grad_enabled, enabled)) {}
  ~GradModeGuard() { detail::grad_enabled = before_; }
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  bool before_;
};

/// Nothing is recorded in the scope of this guard: `NoGradGuard no_grad;`.
struct NoGradGuard : GradModeGuard {
  NoGradGuard() noexcept : GradModeGuard(false) {}
};

/// Records in its scope even inside a NoGradGuard.
struct EnableGradGuard : GradModeGuard {
  EnableGradGuard() noexcept : GradModeGuard(true) {}
};

/// `auto y = no_grad([&] { return net(x); });`
template <class Body>
decltype(auto) no_grad(Body&& body) {
  NoGradGuard guard;
  return std::forward<Body>(body)();
}

}  // namespace tern
