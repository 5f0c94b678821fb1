// The error of a walk that needs too many dimensions.
#include "tern/kernels/strides.h"

#include "tern/base/check.h"

namespace tern {

void throw_too_many_dims(IntArrayRef shape) {
  TERN_THROW(NotImplementedError,
             "an operand of shape {} can not be walked in {} dimensions: make it contiguous() or merge "
             "dimensions with reshape()",
             to_string(shape), kMaxDims);
}

}  // namespace tern
