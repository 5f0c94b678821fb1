// A fiber is entered by ucontext, once; from then on it is left and met again by setjmp and longjmp, which
// ask nothing of the system. AddressSanitizer is told.
#include "tests/emulator/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/emulator/sanitizer.h"

#if defined(TERN_UNDER_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulator {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;
Fiber* left = nullptr;  // whoever switched last

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), nbytes_(kStackBytes) {
  stack_ =
      mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack_ == MAP_FAILED || getcontext(&context_) != 0) {
    std::fputs("CUDA emulator: no memory for stacks\n", stderr);
    std::abort();
  }
  bottom_ = stack_;
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = kStackBytes;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&context_, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
}

Fiber::~Fiber() {
  if (stack_ != nullptr) munmap(stack_, kStackBytes);
}

void Fiber::enter(unsigned high, unsigned low) {
  auto* self = reinterpret_cast<Fiber*>(static_cast<uintptr_t>(high) << 32 | low);
  self->arrived();
  self->body_();
  std::abort();  // the body never returns: there is nothing to return to
}

void Fiber::switch_to(Fiber& next) {
  left = this;
#if defined(TERN_UNDER_ASAN)
  __sanitizer_start_switch_fiber(&shadow_, next.bottom_, next.nbytes_);
#endif
  if (_setjmp(place_) == 0) {
    if (next.entered_) _longjmp(next.place_, 1);
    next.entered_ = true;
    setcontext(&next.context_);
  }
  arrived();
}

void Fiber::arrived() {
#if defined(TERN_UNDER_ASAN)
  __sanitizer_finish_switch_fiber(shadow_, &left->bottom_, &left->nbytes_);
#endif
}

}  // namespace emulator
