// How a kernel tells the host of a fault in its data.
#pragma once

#include "tern/backends/cuda/fault.h"

namespace tern::cuda_backend {

__device__ inline void report(Fault* fault, FaultKind kind, const char* op, int64_t value = 0,
                              int64_t size = 0, int64_t dim = 0) {
  // A look first: of many faulty threads few then meet at one address of the host.
  if (*static_cast<volatile int*>(&fault->kind) != 0) return;
  if (atomicCAS_system(&fault->kind, 0, kFaultBeingWritten) != 0) return;
  fault->op = op;
  fault->value = value;
  fault->size = size;
  fault->dim = dim;
  __threadfence_system();  // the host may look when it sees the kind
  *static_cast<volatile int*>(&fault->kind) = static_cast<int>(kind);
}

}  // namespace tern::cuda_backend
