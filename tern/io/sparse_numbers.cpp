// Sums and first elements of sparse tensors. The layouts are those of PyTorch's sparse tensors: COO with
// dense dimensions; CSR, CSC, BSR and BSC with batch and dense dimensions. Loading checks what is used here
// (tensor_kinds.h); it is checked again, so that none of it is trusted.
#include "tern/io/sparse_numbers.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "tern/io/tensor_bytes.h"
#include "tern/io/tensor_kinds.h"

namespace tern::io {

namespace {

constexpr int64_t kFirst = 4;

/// Whole numbers of 32 or 64 bits; empty for others.
std::vector<int64_t> whole_numbers(const Tensor& tensor) {
  std::vector<int64_t> result;
  if (tensor.dtype() != DType::Int64 && tensor.dtype() != DType::Int32) return result;
  check_backed(tensor);
  const std::vector<std::byte> bytes = element_bytes(tensor);
  result.resize(static_cast<size_t>(tensor.numel()));
  if (tensor.dtype() == DType::Int64) {
    if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
  for (size_t i = 0; i < result.size(); ++i) {
    int32_t value;
    std::memcpy(&value, bytes.data() + i * sizeof(value), sizeof(value));
    result[i] = value;
  }
  return result;
}

/// a * b + c of numbers that are not negative; the largest number where it overflows.
int64_t capped(int64_t a, int64_t b, int64_t c) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) || __builtin_add_overflow(result, c, &result)
             ? std::numeric_limits<int64_t>::max()
             : result;
}
int64_t product(const int64_t* begin, const int64_t* end) {
  return std::accumulate(begin, end, int64_t{1}, [](int64_t a, int64_t b) { return capped(a, b, 0); });
}

/// Position in the storage of an element, which is given by its position in row-major order.
int64_t storage_position(const Tensor& tensor, int64_t element) {
  int64_t position = tensor.storage_offset();
  for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
    position += element % tensor.size(d) * tensor.stride(d);
    element /= tensor.size(d);
  }
  return position;
}

/// The first elements of the dense tensor, to which stored values are added.
class FirstElements {
 public:
  FirstElements(const Tensor& values, int64_t count) : values_(values) {
    const std::vector<std::byte> zero(itemsize(values.dtype()));
    numbers_.assign(static_cast<size_t>(count),
                    summarize_numbers(tensor_from_bytes(zero, values.dtype(), {})).first.at(0));
  }

  int64_t count() const { return static_cast<int64_t>(numbers_.size()); }
  /// Adds the value at `element` of the values in row-major order to the dense element `place`.
  void add(int64_t place, int64_t element) {
    const Tensor one =
        Tensor::view_of(values_.storage(), values_.dtype(), {}, {}, storage_position(values_, element));
    const Number number = summarize_numbers(one).first.at(0);
    std::visit([&](auto& sum) { merge(sum, std::get<std::decay_t<decltype(sum)>>(number)); },
               numbers_[static_cast<size_t>(place)]);
  }
  std::vector<Number> take() { return std::move(numbers_); }

 private:
  /// Bits of 64 that a number of the dtype leaves free.
  int spare_bits() const { return 64 - 8 * static_cast<int>(itemsize(values_.dtype())); }
  void merge(bool& sum, bool value) const { sum = sum || value; }
  // Whole numbers wrap around at the width of their dtype.
  void merge(uint64_t& sum, uint64_t value) const { sum = (sum + value) << spare_bits() >> spare_bits(); }
  void merge(int64_t& sum, int64_t value) const {
    const uint64_t bits = static_cast<uint64_t>(sum) + static_cast<uint64_t>(value);
    sum = static_cast<int64_t>(bits << spare_bits()) >> spare_bits();
  }
  template <class T>
  void merge(T& sum, T value) const {
    sum += value;
  }

  const Tensor& values_;
  std::vector<Number> numbers_;
};

/// Indices [sparse dims, stored] and values [stored, dense dims...].
class Coo {
 public:
  explicit Coo(const FoundTensor& sparse) : shape_(sparse.shape) {
    if (sparse.parts.size() != 2 || sparse.parts[0].dim() != 2 || sparse.parts[1].dim() < 1) return;
    const Tensor &indices = sparse.parts[0], &values = sparse.parts[1];
    dims_ = static_cast<size_t>(indices.size(0));
    stored_ = indices.size(1);
    const size_t dense_dims = static_cast<size_t>(values.dim()) - 1;
    if (dims_ > shape_.size() || dims_ + dense_dims != shape_.size() || values.size(0) != stored_) return;
    if (!std::equal(shape_.begin() + static_cast<ptrdiff_t>(dims_), shape_.end(), values.shape().begin() + 1))
      return;
    dense_ = product(shape_.data() + dims_, shape_.data() + shape_.size());
    indices_ = whole_numbers(indices);
    if (indices_.size() != static_cast<size_t>(indices.numel())) return;
    for (size_t i = 0; i < indices_.size(); ++i)
      if (indices_[i] < 0 || indices_[i] >= shape_[i / static_cast<size_t>(stored_)]) return;
    valid_ = true;
  }

  bool valid() const { return valid_; }

  void add_to(FirstElements& first) const {
    for (int64_t i = 0; i < stored_; ++i) {
      int64_t place = 0;
      for (size_t d = 0; d < dims_; ++d) place = capped(place, shape_[d], index(d, i));
      place = capped(place, dense_, 0);
      for (int64_t e = 0; e < dense_ && e < first.count() - place; ++e) first.add(place + e, i * dense_ + e);
    }
  }

  /// How many elements of a tensor of bools are true.
  int64_t count_true(const Tensor& values) const {
    std::vector<int64_t> order;  // by places; of a tensor without sparse dimensions all have the same
    if (dims_ > 0) {
      order.resize(static_cast<size_t>(stored_));
      std::iota(order.begin(), order.end(), int64_t{0});
      std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
    }
    auto at = [&](int64_t i) { return order.empty() ? i : order[static_cast<size_t>(i)]; };
    const auto* bools = static_cast<const std::byte*>(values.storage()->data());
    int64_t count = 0;
    for (int64_t begin = 0, end = 0; begin < stored_; begin = end) {
      for (end = begin + 1; end < stored_ && compare(at(begin), at(end)) == 0;) ++end;
      for (int64_t e = 0; e < dense_; ++e) {
        bool any = false;
        for (int64_t i = begin; i < end && !any; ++i)
          any = bools[storage_position(values, at(i) * dense_ + e)] != std::byte{0};
        count += any;
      }
    }
    return count;
  }

 private:
  int64_t index(size_t dim, int64_t i) const {
    return indices_[dim * static_cast<size_t>(stored_) + static_cast<size_t>(i)];
  }
  int compare(int64_t a, int64_t b) const {
    for (size_t d = 0; d < dims_; ++d)
      if (index(d, a) != index(d, b)) return index(d, a) < index(d, b) ? -1 : 1;
    return 0;
  }

  const std::vector<int64_t>& shape_;
  std::vector<int64_t> indices_;
  size_t dims_ = 0;
  int64_t stored_ = 0, dense_ = 1;
  bool valid_ = false;
};

/// Compressed indices [batch..., n + 1], plain indices [batch..., stored] and values [batch..., stored,
/// (block rows, block columns,) dense dims...]. False when they do not fit each other.
bool add_compressed(const FoundTensor& sparse, const std::string& layout, FirstElements& first) {
  const bool by_row = layout == "torch.sparse_csr" || layout == "torch.sparse_bsr";
  const bool blocked = layout == "torch.sparse_bsr" || layout == "torch.sparse_bsc";
  if (!by_row && !blocked && layout != "torch.sparse_csc") return false;
  if (sparse.parts.size() != 3 || sparse.parts[1].dim() < 1) return false;
  const Tensor &compressed = sparse.parts[0], &plain = sparse.parts[1], &values = sparse.parts[2];
  const std::vector<int64_t>& shape = sparse.shape;
  const auto batch_dims = static_cast<size_t>(plain.dim()) - 1;
  const size_t matrix = batch_dims + 2, in_values = batch_dims + (blocked ? 3 : 1);
  if (compressed.dim() != plain.dim() || shape.size() < matrix ||
      static_cast<size_t>(values.dim()) != in_values + shape.size() - matrix)
    return false;
  for (size_t d = 0; d < batch_dims; ++d)
    for (const Tensor* part : {&compressed, &plain, &values})
      if (part->shape()[d] != shape[d]) return false;
  for (size_t d = matrix; d < shape.size(); ++d)
    if (values.shape()[in_values + d - matrix] != shape[d]) return false;
  const int64_t rows = shape[batch_dims], columns = shape[batch_dims + 1];
  const int64_t block_rows = blocked ? values.shape()[batch_dims + 1] : 1;
  const int64_t block_columns = blocked ? values.shape()[batch_dims + 2] : 1;
  if (block_rows < 1 || block_columns < 1 || rows % block_rows != 0 || columns % block_columns != 0)
    return false;
  const int64_t lines = by_row ? rows / block_rows : columns / block_columns;
  const int64_t positions = by_row ? columns / block_columns : rows / block_rows;
  const int64_t stored = plain.shape()[batch_dims];
  if (compressed.shape()[batch_dims] - 1 != lines || values.shape()[batch_dims] != stored) return false;
  const std::vector<int64_t> starts = whole_numbers(compressed), places = whole_numbers(plain);
  if (starts.size() != static_cast<size_t>(compressed.numel()) ||
      places.size() != static_cast<size_t>(plain.numel()))
    return false;

  const int64_t dense = product(shape.data() + matrix, shape.data() + shape.size());
  const int64_t row_step = capped(columns, dense, 0);
  // Adds what is among the first elements of the block stored at `i`, which begins at `place`, one of them.
  auto add_block = [&](int64_t place, int64_t i) {
    const int64_t left = first.count() - place;
    auto reached = [left](int64_t size, int64_t step) { return std::min(size, (left - 1) / step + 1); };
    for (int64_t r = 0; r < reached(block_rows, row_step); ++r)
      for (int64_t c = 0; c < reached(block_columns, dense); ++c)
        for (int64_t e = 0; e < std::min(dense, left); ++e)
          if (const int64_t at = r * row_step + c * dense + e; at < left)
            first.add(place + at, ((i * block_rows + r) * block_columns + c) * dense + e);
  };
  const int64_t batches = product(shape.data(), shape.data() + batch_dims);
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t line = 0; line < lines; ++line) {
      const auto start = static_cast<size_t>(b * (lines + 1) + line);
      if (starts[start] < 0 || starts[start] > starts[start + 1] || starts[start + 1] > stored) return false;
      for (int64_t i = b * stored + starts[start]; i < b * stored + starts[start + 1]; ++i) {
        const int64_t position = places[static_cast<size_t>(i)];
        if (position < 0 || position >= positions) return false;
        const int64_t row = (by_row ? line : position) * block_rows;
        const int64_t column = (by_row ? position : line) * block_columns;
        const int64_t place = capped(capped(capped(b, rows, row), columns, column), dense, 0);
        if (place < first.count()) add_block(place, i);
      }
    }
  return true;
}

}  // namespace

std::optional<NumberSummary> summarize_sparse(const FoundTensor& sparse) {
  if (sparse.parts.empty() || !std::all_of(sparse.parts.begin(), sparse.parts.end(), has_numbers))
    return std::nullopt;
  const Tensor& values = sparse.parts.back();
  NumberSummary summary = summarize_numbers(values);
  summary.first.clear();
  if (std::any_of(sparse.shape.begin(), sparse.shape.end(), [](int64_t size) { return size < 0; }))
    return summary;
  const int64_t count =
      std::min(kFirst, product(sparse.shape.data(), sparse.shape.data() + sparse.shape.size()));
  if (count == 0) return summary;
  const Value& layout = sparse.value.as_object().args.as_tuple().at(0);
  if (layout.kind() != ValueKind::Layout) return summary;
  FirstElements first(values, count);
  if (layout.as_layout() == "torch.sparse_coo") {
    const Coo coo(sparse);
    if (!coo.valid()) return summary;
    coo.add_to(first);
    if (values.dtype() == DType::Bool) summary.sum = static_cast<double>(coo.count_true(values));
  } else if (!add_compressed(sparse, layout.as_layout(), first)) {
    return summary;
  }
  summary.first = first.take();
  return summary;
}

}  // namespace tern::io
