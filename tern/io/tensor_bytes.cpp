// Element bytes of tensors on the host.
#include "tern/io/tensor_bytes.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/core/recording.h"

namespace tern::io {

namespace {
constexpr size_t kStagingBytes = size_t{4} << 20;
}  // namespace

std::vector<std::byte> host_bytes(size_t count) {
  try {
    return std::vector<std::byte>(count);
  } catch (const std::bad_alloc&) {
    TERN_THROW(OutOfMemoryError, "the host has no memory for {} bytes", count);
  }
}

void check_has_data(const StorageImpl& storage) {
  TERN_CHECK(storage.data() || storage.nbytes() == 0, ValueError,
             "the tensor was loaded with skip_data: its numbers are still in the file");
}

void visit_bytes(const StorageImpl& storage, size_t offset, size_t nbytes,
                 const std::function<void(std::span<const std::byte>)>& visit) {
  detail::host_reads("saving");
  check_has_data(storage);
  if (storage.device().is_cpu()) {
    visit({static_cast<const std::byte*>(storage.data()) + offset, nbytes});
    return;
  }
  std::vector<std::byte> staging(std::min(nbytes, kStagingBytes));
  while (nbytes > 0) {
    size_t count = std::min(nbytes, staging.size());
    copy_to_host(staging.data(), storage, offset, count);
    visit(std::span<const std::byte>(staging).first(count));
    offset += count;
    nbytes -= count;
  }
}

void visit_elements(const Tensor& tensor, const std::function<void(std::span<const std::byte>)>& visit) {
  const TensorImpl& impl = tensor.impl();
  if (impl.contiguous) {
    const size_t first = static_cast<size_t>(impl.offset) * itemsize(impl.dtype);
    return visit_bytes(*impl.storage, first, tensor.nbytes(), visit);
  }
  detail::host_reads("saving");
  visit(element_bytes(tensor));
}

std::vector<std::byte> element_bytes(const Tensor& tensor) {
  const TensorImpl& impl = tensor.impl();
  size_t width = itemsize(impl.dtype);
  std::vector<std::byte> result = host_bytes(tensor.nbytes());
  if (result.empty()) return result;
  check_has_data(*impl.storage);
  size_t first = static_cast<size_t>(impl.offset) * width;
  if (impl.contiguous) {
    copy_to_host(result.data(), *impl.storage, first, result.size());
    return result;
  }
  int64_t last = 0;
  for (size_t d = 0; d < impl.shape.size(); ++d) last += (impl.shape[d] - 1) * impl.strides[d];
  std::vector<std::byte> copy;
  const std::byte* source = static_cast<const std::byte*>(impl.storage->data()) + first;
  if (!impl.storage->device().is_cpu()) {
    copy = host_bytes((static_cast<size_t>(last) + 1) * width);
    copy_to_host(copy.data(), *impl.storage, first, copy.size());
    source = copy.data();
  }
  // Rows of the last dimension, with a counter over the others.
  size_t rank = impl.shape.size();
  int64_t row = impl.shape[rank - 1];
  size_t step = static_cast<size_t>(impl.strides[rank - 1]) * width;
  Shape position(rank);
  std::byte* out = result.data();
  for (int64_t rows = impl.numel / row; rows > 0; --rows) {
    size_t at = 0;
    for (size_t d = 0; d + 1 < rank; ++d) at += static_cast<size_t>(position[d] * impl.strides[d]) * width;
    for (int64_t i = 0; i < row; ++i, out += width)
      std::memcpy(out, source + at + static_cast<size_t>(i) * step, width);
    for (size_t d = rank - 1; d-- > 0;) {
      if (++position[d] < impl.shape[d]) break;
      position[d] = 0;
    }
  }
  return result;
}

Tensor tensor_from_bytes(std::span<const std::byte> bytes, DType dtype, IntArrayRef shape, Device device) {
  size_t needed = static_cast<size_t>(checked_numel(shape)) * itemsize(dtype);
  TERN_CHECK(bytes.size() == needed, ValueError,
             "a tensor of shape {} and dtype {} has {} bytes; {} are given", to_string(shape), name(dtype),
             needed, bytes.size());
  Storage storage = allocate_storage(needed, device);
  copy_from_host(*storage, 0, bytes.data(), needed);
  return Tensor::from_storage(std::move(storage), dtype, shape);
}

}  // namespace tern::io
