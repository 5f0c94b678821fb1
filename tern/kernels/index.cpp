// The error of an index out of range.
#include "tern/kernels/index.h"

#include "tern/base/check.h"

namespace tern {

void throw_index_out_of_bounds(const IndexedDims& dims, int which, int64_t index) {
  TERN_THROW(IndexError, "{}: index {} is out of bounds for dimension {} with size {}", dims.op, index,
             dims.dim[which], dims.size[which]);
}

void throw_bag_out_of_order(const char* op, int64_t bag, int64_t offset, int64_t length) {
  TERN_THROW(ValueError, "{}: offset {} of bag {}: offsets rise from 0 to the input's length, {}", op, offset,
             bag, length);
}

}  // namespace tern
