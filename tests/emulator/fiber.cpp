// Switching by Boost.Context. Nothing that runs on a fiber is checked by AddressSanitizer, which would have
// to be told.
#include "tests/emulator/fiber.h"

#include <boost/context/fixedsize_stack.hpp>
#include <utility>

namespace emulator {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;

}  // namespace

Fiber::Fiber(std::function<void()> body)
    : inside_(std::allocator_arg, boost::context::fixedsize_stack(kStackBytes),
              [this, body = std::move(body)](boost::context::fiber&& from) {
                outside_ = std::move(from);
                body();
                return std::move(outside_);
              }) {}

void Fiber::resume() { inside_ = std::move(inside_).resume(); }

void Fiber::leave() { outside_ = std::move(outside_).resume(); }

}  // namespace emulator
