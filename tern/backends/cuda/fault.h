// Faults: what a kernel finds wrong with its data (an index out of range, a zero divisor). It tells the host
// through a mailbox of its stream in pinned memory, goes on without touching memory that is not its own, and
// the host throws at the next wait. Unlike an assertion on the device this leaves the GPU usable.
#pragma once

#include <cstdint>

namespace tern::cuda_backend {

enum class FaultKind : int32_t {
  None,
  Index,           ///< `value` is outside dimension `dim` of size `size`
  TargetClass,     ///< target `value` is none of `size` classes; `dim` is ignore_index
  ZeroDivisor,     ///< an integer divisor is 0
  NotProbability,  ///< an element of binary cross entropy's input (`value` 0) or target (1) outside [0, 1]
  Label,           ///< target `value` is none of `size` classes
  Offset,          ///< bag `dim` begins at `value`, out of order or beyond `size` numbers
};

inline constexpr int kFaultBeingWritten = -1;

/// The mailbox. A kernel writes the first fault that it finds (kernels/report.cuh); the host reads after a
/// wait.
struct Fault {
  int kind;        ///< FaultKind; kFaultBeingWritten
  const char* op;  ///< a literal of the host's, never read on the device; one in device code lies in the
                   ///< GPU's memory, where the host may not read: scripts/check_includes looks for such
  int64_t value, size, dim;
};

/// Throws what the mailbox says and empties it; nothing where it is empty, or where it is being written.
void deliver(Fault& fault);

}  // namespace tern::cuda_backend
