// Functions with stacks of their own, which take turns with whoever resumes them, on one thread of the host.
#pragma once

#include <boost/context/fiber.hpp>
#include <functional>

namespace emulator {

class Fiber {
 public:
  /// `body` never returns.
  explicit Fiber(std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Goes on with the body until it leaves.
  void resume();
  /// For the body: back to whoever resumed it.
  void leave();

 private:
  boost::context::fiber inside_, outside_;  ///< where the body stands, and whoever resumed it; one is empty
};

}  // namespace emulator
