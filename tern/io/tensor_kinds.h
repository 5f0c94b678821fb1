// Kinds of tensors that are kept as their parts (sparse, quantized), and the strided tensor that all are made
// of.
#pragma once

#include <optional>

#include "tern/io/pickle_globals.h"

namespace tern::io {

/// A view of a storage value from pickled numbers, all of them checked. Throws CheckpointError or ShapeError.
Tensor strided_tensor(const Value& storage, const Value& offset, const Value& size, const Value& stride,
                      std::optional<DType> dtype = {});

/// Throws CheckpointError when a tensor repeats its elements (by a stride of 0) so that a copy of it would
/// need more memory than its storage has. To be called before copies of what a file describes.
void check_backed(const Tensor& tensor);

/// torch._utils._rebuild_sparse_tensor and _rebuild_sparse_csr_tensor.
Value rebuild_sparse(PickleHost& host, const Value& callee, const CallArgs& args);
/// How many numbers lie in one byte of the storage of a quantized tensor: 1, 2 or 4.
int64_t numbers_per_byte(const Value& storage);

/// torch._utils._rebuild_qtensor.
Value rebuild_quantized(PickleHost& host, const Value& callee, const CallArgs& args);

}  // namespace tern::io
