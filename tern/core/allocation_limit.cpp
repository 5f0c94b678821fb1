// Limits on what new tensors of a thread may take.
#include "tern/core/allocation_limit.h"

#include <utility>

#include "tern/base/check.h"

namespace tern {

constinit thread_local AllocationLimit* detail::allocation_limit = nullptr;

AllocationLimit::AllocationLimit(size_t nbytes) noexcept
    : left_(nbytes), outer_(std::exchange(detail::allocation_limit, this)) {}

AllocationLimit::~AllocationLimit() { detail::allocation_limit = outer_; }

void AllocationLimit::take(size_t nbytes, IntArrayRef shape, DType dtype) {
  TERN_CHECK(nbytes <= left_, TooLargeError,
             "a tensor of shape {} and dtype {} needs {} bytes, where only {} are allowed", to_string(shape),
             name(dtype), nbytes, left_);
  if (outer_) outer_->take(nbytes, shape, dtype);
  left_ -= nbytes;
}

}  // namespace tern
