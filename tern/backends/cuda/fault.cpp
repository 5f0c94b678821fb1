// The errors that faults become: the words of the CPU's kernels.
#include "tern/backends/cuda/fault.h"

#include <atomic>

#include "tern/base/check.h"
#include "tern/kernels/index.h"

namespace tern::cuda_backend {

void deliver(Fault& fault) {
  const std::atomic_ref kind(fault.kind);
  if (kind.load(std::memory_order_acquire) <= 0) return;  // a kernel may be about to write
  const Fault found = fault;
  kind.store(0, std::memory_order_release);
  const char* op = found.op ? found.op : "kernel";
  switch (static_cast<FaultKind>(found.kind)) {
    case FaultKind::None:
      return;
    case FaultKind::Index:
      TERN_THROW(IndexError, "{}: index {} is out of bounds for dimension {} with size {}", op, found.value,
                 found.dim, found.size);
    case FaultKind::TargetClass:
      TERN_THROW(IndexError, "{}: Target {} is out of bounds. There are {} classes, and ignore_index is {}",
                 op, found.value, found.size, found.dim);
    case FaultKind::ZeroDivisor:
      TERN_THROW(ValueError,
                 "{}: ZeroDivisionError: an integer divisor is 0: use floats, or clamp the divisor", op);
    case FaultKind::NotProbability:
      TERN_THROW(ValueError,
                 "binary_cross_entropy: all elements of {} should be between 0 and 1: apply sigmoid, or use "
                 "binary_cross_entropy_with_logits",
                 found.value == 0 ? "input" : "target");
    case FaultKind::Label:
      TERN_THROW(IndexError, "{}: target {} is none of the {} classes", op, found.value, found.size);
    case FaultKind::Offset:
      throw_bag_out_of_order(op, found.dim, found.value, found.size);
  }
}

}  // namespace tern::cuda_backend
