// Functions with stacks of their own, which take turns on one thread of the host.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace emulator {

class Fiber {
 public:
  /// The stack of whoever makes it: to come back to.
  Fiber() : entered_(true) {}
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Goes on with `next` until something switches back.
  void switch_to(Fiber& next);

 private:
  static void enter(unsigned high, unsigned low);
  void arrived();

  jmp_buf place_{};  ///< where it was left
  ucontext_t context_{};
  bool entered_ = false;
  std::function<void()> body_;
  void* stack_ = nullptr;
  const void* bottom_ = nullptr;  ///< of the stack, for AddressSanitizer
  size_t nbytes_ = 0;
  void* shadow_ = nullptr;
};

}  // namespace emulator
