// Tensors out of bytes, and rows gathered from tensors: what datasets and collate share. Not public.
#pragma once

#include <vector>

#include "tern/core/tensor.h"
#include "tern/data/bytes.h"

namespace tern::data::detail {

/// An uninitialised tensor on the CPU.
Tensor make_tensor(IntArrayRef shape, DType dtype);
/// A uint8 tensor that takes over the bytes, of which there are as many as the shape says.
Tensor tensor_from_bytes(Bytes&& bytes, IntArrayRef shape);
/// A 1-d int64 tensor.
Tensor tensor_from_list(const std::vector<int64_t>& values);

/// True if the tensor's bytes can be copied as they are: on the CPU, contiguous, without gradient.
bool is_plain(const Tensor& tensor);

/// Rows of `source` along dimension 0 as a new tensor. The indices must be in range.
Tensor gather_rows(const Tensor& source, IntArrayRef indices);

}  // namespace tern::data::detail
