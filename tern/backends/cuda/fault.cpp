// The errors that faults become: the words of the CPU's kernels.
#include "tern/backends/cuda/fault.h"

#include <utility>

#include "tern/base/check.h"

namespace tern::cuda_backend {

void deliver(Fault& fault) {
  const Fault found = std::exchange(fault, Fault{});
  const char* op = found.op ? found.op : "kernel";
  switch (static_cast<FaultKind>(found.kind)) {
    case FaultKind::None:
      return;
    case FaultKind::Index:
      TERN_THROW(IndexError, "{}: index {} is out of bounds for dimension {} with size {}", op, found.value,
                 found.dim, found.size);
    case FaultKind::TargetClass:
      TERN_THROW(IndexError, "{}: target {} is out of bounds: there are {} classes, numbered from 0", op,
                 found.value, found.size);
    case FaultKind::ZeroDivisor:
      TERN_THROW(ValueError,
                 "{}: ZeroDivisionError: an integer divisor is 0: use floats, or clamp the divisor", op);
    case FaultKind::NotProbability:
      TERN_THROW(ValueError,
                 "{}: the input must be in [0, 1]: apply sigmoid, or use the loss that takes logits", op);
    case FaultKind::PoolIndex:
      TERN_THROW(IndexError, "{}: index {} is outside a plane of {} elements", op, found.value, found.size);
  }
}

}  // namespace tern::cuda_backend
