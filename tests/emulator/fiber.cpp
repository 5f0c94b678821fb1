// Switching by Boost.Context; AddressSanitizer is told.
#include "tests/emulator/fiber.h"

#include <boost/context/fixedsize_stack.hpp>
#include <utility>

#include "tests/emulator/sanitizer.h"

#if defined(TERN_UNDER_ASAN)
#include <sanitizer/common_interface_defs.h>
#else
inline void __sanitizer_start_switch_fiber(void**, const void*, size_t) {}
inline void __sanitizer_finish_switch_fiber(void*, const void**, size_t*) {}
#endif

namespace emulator {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;

}  // namespace

Fiber::Fiber(std::function<void()> body) {
  boost::context::fixedsize_stack stacks(kStackBytes);
  stack_ = stacks.allocate();
  const boost::context::preallocated place(stack_.sp, stack_.size, stack_);
  inside_ =
      boost::context::fiber(std::allocator_arg, place, stacks, [this, body](boost::context::fiber&& from) {
        outside_ = std::move(from);
        entered();
        body();
        return std::move(outside_);
      });
}

void Fiber::resume() {
  __sanitizer_start_switch_fiber(&outer_shadow_, static_cast<const char*>(stack_.sp) - stack_.size,
                                 stack_.size);
  inside_ = std::move(inside_).resume();
  __sanitizer_finish_switch_fiber(outer_shadow_, nullptr, nullptr);
}

void Fiber::leave() {
  __sanitizer_start_switch_fiber(&inner_shadow_, outer_bottom_, outer_nbytes_);
  outside_ = std::move(outside_).resume();
  entered();
}

void Fiber::entered() { __sanitizer_finish_switch_fiber(inner_shadow_, &outer_bottom_, &outer_nbytes_); }

}  // namespace emulator
