// Stands in for the room autograd, which reading files does not need but for the flag of parameters: with it
// the fuzzers would contain all kernels.
#include "tern/core/tensor.h"

namespace tern {

const Tensor& Tensor::requires_grad_(bool) const { return *this; }
bool Tensor::view_requires_grad() const { return false; }

}  // namespace tern
