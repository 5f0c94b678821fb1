// Element bytes of tensors on the host, whatever device and strides they have: for the writers of formats and
// for checks.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::io {

/// So many zero bytes. Throws OutOfMemoryError.
std::vector<std::byte> host_bytes(size_t count);

/// Throws ValueError for a storage whose numbers were left in the file (LoadOptions::skip_data).
void check_has_data(const StorageImpl& storage);

/// For writers: calls `visit` with the bytes [offset, offset + nbytes) of a storage in pieces, in order. Host
/// memory is shown where it is; that of a device is copied piece by piece. Throws CaptureError inside a
/// captured step.
void visit_bytes(const StorageImpl& storage, size_t offset, size_t nbytes,
                 const std::function<void(std::span<const std::byte>)>& visit);

/// The same for the elements of a tensor in row-major order, whatever its strides.
void visit_elements(const Tensor& tensor, const std::function<void(std::span<const std::byte>)>& visit);

/// The elements in row-major order. Throws OutOfMemoryError.
std::vector<std::byte> element_bytes(const Tensor& tensor);

/// A tensor that holds a copy of `bytes` on `device`.
Tensor tensor_from_bytes(std::span<const std::byte> bytes, DType dtype, IntArrayRef shape,
                         Device device = kCPU);

}  // namespace tern::io
