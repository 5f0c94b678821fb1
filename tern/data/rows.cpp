// Tensors out of bytes, and rows gathered from tensors.
#include "tern/data/rows.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "tern/base/parallel.h"
#include "tern/core/memory.h"

namespace tern::data::detail {

Tensor make_tensor(IntArrayRef shape, DType dtype) {
  return empty_contiguous(shape.to_shape(), checked_numel(shape), dtype, kCPU);
}

Tensor tensor_from_bytes(Bytes&& bytes, IntArrayRef shape) {
  auto owner = std::make_shared<Bytes>(std::move(bytes));
  Storage storage = storage_from_blob(owner->data(), owner->size(), [owner] {});
  return Tensor::from_storage(std::move(storage), DType::UInt8, shape);
}

Tensor tensor_from_list(const std::vector<int64_t>& values) {
  Tensor tensor = make_tensor({static_cast<int64_t>(values.size())}, DType::Int64);
  std::copy(values.begin(), values.end(), tensor.data<int64_t>());
  return tensor;
}

bool is_plain(const Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.is_contiguous() && !tensor.requires_grad();
}

Tensor gather_rows(const Tensor& source, IntArrayRef indices) {
  if (!is_plain(source)) return source[tensor_from_list({indices.begin(), indices.end()})];
  Shape shape = source.shape();
  shape[0] = static_cast<int64_t>(indices.size());
  Tensor rows = make_tensor(shape, source.dtype());
  const size_t row_bytes = source.size(0) == 0 ? 0 : source.nbytes() / static_cast<size_t>(source.size(0));
  if (row_bytes == 0) return rows;
  const char* from = static_cast<const char*>(source.data_ptr());
  char* to = static_cast<char*>(rows.data_ptr());
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 22) / static_cast<int64_t>(row_bytes));
  parallel_for(shape[0], grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const size_t row = static_cast<size_t>(indices[static_cast<size_t>(i)]);
      std::memcpy(to + static_cast<size_t>(i) * row_bytes, from + row * row_bytes, row_bytes);
    }
  });
  return rows;
}

}  // namespace tern::data::detail
