// Sums and first elements of sparse tensors.
#include "tern/io/sparse_numbers.h"

#include <algorithm>
#include <cstring>

#include "tern/io/tensor_bytes.h"

namespace tern::io {

namespace {

/// Whole numbers of 32 or 64 bits; empty for others.
std::vector<int64_t> whole_numbers(const Tensor& tensor) {
  std::vector<int64_t> result;
  const std::vector<std::byte> bytes = element_bytes(tensor);
  auto copy = [&]<class T>(T) {
    for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
      T value;
      std::memcpy(&value, bytes.data() + at, sizeof(T));
      result.push_back(value);
    }
  };
  if (tensor.dtype() == DType::Int64) copy(int64_t{});
  if (tensor.dtype() == DType::Int32) copy(int32_t{});
  return result;
}

/// The place of each stored value in row-major order of the dense tensor, or -1 beyond the first `count`.
std::vector<int64_t> places_of(const FoundTensor& sparse, const std::string& layout, int64_t count) {
  std::vector<int64_t> places;
  const std::vector<int64_t>& shape = sparse.shape;
  if (layout == "torch.sparse_coo" && sparse.parts.size() == 2 && sparse.parts[1].dim() == 1 &&
      sparse.parts[0].dim() == 2) {
    const std::vector<int64_t> indices = whole_numbers(sparse.parts[0]);
    const auto stored = static_cast<size_t>(sparse.parts[0].size(1));
    if (indices.size() != shape.size() * stored) return {};
    for (size_t i = 0; i < stored; ++i) {
      int64_t place = 0;
      for (size_t d = 0; d < shape.size(); ++d)
        place = place < 0 || __builtin_mul_overflow(place, shape[d], &place) ||
                        __builtin_add_overflow(place, indices[d * stored + i], &place)
                    ? -1
                    : place;
      places.push_back(place < count ? place : -1);
    }
  } else if ((layout == "torch.sparse_csr" || layout == "torch.sparse_csc") && sparse.parts.size() == 3 &&
             shape.size() == 2 && sparse.parts[2].dim() == 1) {
    const std::vector<int64_t> starts = whole_numbers(sparse.parts[0]),
                               positions = whole_numbers(sparse.parts[1]);
    size_t line = 0;
    for (size_t i = 0; i < positions.size(); ++i) {
      while (line + 1 < starts.size() && starts[line + 1] <= static_cast<int64_t>(i)) ++line;
      const bool by_row = layout == "torch.sparse_csr";
      const int64_t row = by_row ? static_cast<int64_t>(line) : positions[i];
      const int64_t column = by_row ? positions[i] : static_cast<int64_t>(line);
      int64_t place = 0;
      const bool far =
          __builtin_mul_overflow(row, shape[1], &place) || __builtin_add_overflow(place, column, &place);
      places.push_back(!far && place < count ? place : -1);
    }
  }
  return places;
}

}  // namespace

std::optional<NumberSummary> summarize_sparse(const FoundTensor& sparse) {
  if (sparse.parts.empty() || !has_numbers(sparse.parts.back())) return std::nullopt;
  const Tensor& values = sparse.parts.back();
  NumberSummary summary = summarize_numbers(values);
  summary.first.clear();
  int64_t count = 4;
  for (int64_t size : sparse.shape) count = size == 0 ? 0 : count;
  int64_t numel = 1;
  for (int64_t size : sparse.shape) numel = numel >= 4 ? numel : numel * std::min<int64_t>(size, 4);
  count = std::min(count, numel);
  const Value& layout = sparse.value.as_object().args.as_tuple()[0];
  const std::vector<int64_t> places =
      places_of(sparse, layout.kind() == ValueKind::Layout ? layout.as_layout() : "", count);
  if (places.size() != static_cast<size_t>(values.numel())) return summary;
  std::vector<std::complex<double>> dense(static_cast<size_t>(count));
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0) continue;
    // Equal places of a COO tensor add up.
    const Tensor one = Tensor::view_of(values.storage(), values.dtype(), {}, {},
                                       values.storage_offset() + static_cast<int64_t>(i) * values.stride(0));
    dense[static_cast<size_t>(places[i])] += summarize_numbers(one).sum;
  }
  for (const std::complex<double>& number : dense)
    if (is_complex(values.dtype()))
      summary.first.emplace_back(number);
    else
      summary.first.emplace_back(number.real());
  return summary;
}

}  // namespace tern::io
