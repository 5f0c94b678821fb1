// Copies of bytes between storages on any devices: the one place that stages and orders them.
// Copies of elements with strides and conversions are a kernel (kernels/pointwise.h).
#pragma once

#include <cstddef>

#include "tern/core/storage.h"

namespace tern {

/// Copies `nbytes` from one storage to another, after the work that the current streams of both devices have
/// been given. Within the host, from a device to pageable host memory, and without `non_blocking` also from
/// or to pinned memory, the copy is done on return. From pageable host memory it goes through pinned staging:
/// the source may be changed on return. Between GPUs it never blocks. Throws IndexError outside a storage,
/// DeviceError when a device failed.
void copy_bytes(StorageImpl& to, size_t to_offset, const StorageImpl& from, size_t from_offset, size_t nbytes,
                bool non_blocking = false);

namespace detail {
/// The same for host memory that is not a storage; `Memory::copy_to_host` and its kin of every backend whose
/// devices are asynchronous.
void copy_to_host_blocking(void* host, const StorageImpl& from, size_t offset, size_t nbytes);
void copy_from_host_staged(StorageImpl& to, size_t offset, const void* host, size_t nbytes);
}  // namespace detail

}  // namespace tern
