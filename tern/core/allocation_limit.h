// AllocationLimit: how much memory new tensors of a thread may take while it follows sizes from outside, such
// as those in a file.
#pragma once

#include <cstddef>

#include "tern/base/error.h"
#include "tern/core/dtype.h"
#include "tern/core/shape.h"

namespace tern {

/// A tensor of more bytes than there can be, or than an AllocationLimit leaves: no freed memory would help.
struct TooLargeError : OutOfMemoryError {
  using OutOfMemoryError::OutOfMemoryError;
};

/// While it lives, the tensors that the calling thread makes may take `nbytes` in all, on any device and
/// counting those that are gone again. The one that would be too much is refused with TooLargeError, which
/// names its shape, before any memory is asked for. What is made in a limit counts for those around it too.
class AllocationLimit {
 public:
  explicit AllocationLimit(size_t nbytes) noexcept;
  ~AllocationLimit();
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;

  /// Counts a tensor that is about to be made, or throws TooLargeError.
  void take(size_t nbytes, IntArrayRef shape, DType dtype);

 private:
  size_t left_;
  AllocationLimit* outer_;
};

namespace detail {
/// The innermost limit of the calling thread; null where there is none.
extern constinit thread_local AllocationLimit* allocation_limit;
}  // namespace detail

}  // namespace tern
