// Kinds of tensors that are kept as their parts (sparse, quantized): what they must satisfy. An operator that
// trusts indices or axes from a file reads outside its memory, so they are checked here, once. Rows:
// PyTorch's torch/_utils.py.
#include "tern/io/tensor_kinds.h"

#include <cstring>

#include "tern/base/check.h"
#include "tern/io/tensor_bytes.h"
#include "tern/io/value_nodes.h"

namespace tern::io {

using detail::describe;

namespace {

const std::vector<Value>& tuple_of(const Value& value, const char* what) {
  TERN_CHECK(value.is_tuple() || value.is_list(), CheckpointError, "{} is {}, not a tuple", what,
             describe(value));
  return value.as_sequence();
}

Tensor tensor_of(const Value& value, const char* what) {
  TERN_CHECK(value.is_tensor(), CheckpointError, "the {} of a sparse tensor are {}, not a tensor", what,
             describe(value));
  return value.as_tensor();
}

Shape size_of(const Value& value) {
  bool right = value.is_tuple() || value.is_list() || value.kind() == ValueKind::Size;
  TERN_CHECK(right, CheckpointError, "the size of a sparse tensor is {}", describe(value));
  Shape size;
  for (const Value& item : value.as_sequence()) {
    TERN_CHECK(item.kind() == ValueKind::Int && item.as_int() >= 0, CheckpointError,
               "the size {} of a sparse tensor is wrong", value.str(200));
    size.push_back(item.as_int());
  }
  TERN_CHECK(size.size() <= kMaxRank, CheckpointError, "a sparse tensor has {} dimensions", size.size());
  return size;
}

std::vector<int64_t> indices_of(const Tensor& tensor) {
  check_backed(tensor);
  std::vector<std::byte> bytes = element_bytes(tensor);
  std::vector<int64_t> indices(static_cast<size_t>(tensor.numel()));
  if (tensor.dtype() == DType::Int64) {
    std::memcpy(indices.data(), bytes.data(), bytes.size());
    return indices;
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    int32_t index;
    std::memcpy(&index, bytes.data() + i * sizeof(index), sizeof(index));
    indices[i] = index;
  }
  return indices;
}

void check_index_dtype(const Tensor& tensor) {
  TERN_CHECK(tensor.dtype() == DType::Int64 || tensor.dtype() == DType::Int32, CheckpointError,
             "the indices of a sparse tensor have dtype {}", name(tensor.dtype()));
}

/// (indices [sparse dims, nnz], values [nnz, dense dims...], size).
void check_coo(PickleHost& host, const std::vector<Value>& parts) {
  TERN_CHECK(parts.size() == 3 || parts.size() == 4, CheckpointError, "a COO tensor has {} parts",
             parts.size());
  Tensor indices = tensor_of(parts[0], "indices"), values = tensor_of(parts[1], "values");
  Shape size = size_of(parts[2]);
  check_index_dtype(indices);
  TERN_CHECK(indices.dim() == 2 && values.dim() >= 1 && indices.shape()[1] == values.shape()[0],
             CheckpointError, "a COO tensor has indices of shape {} and values of shape {}",
             to_string(indices.shape()), to_string(values.shape()));
  auto sparse = static_cast<size_t>(indices.shape()[0]), dense = values.shape().size() - 1;
  TERN_CHECK(sparse + dense == size.size() &&
                 std::equal(values.shape().begin() + 1, values.shape().end(), size.begin() + sparse),
             CheckpointError, "a COO tensor of size {} has indices of shape {} and values of shape {}",
             to_string(size), to_string(indices.shape()), to_string(values.shape()));
  host.check_later([=] {
    std::vector<int64_t> numbers = indices_of(indices);
    size_t count = static_cast<size_t>(indices.shape()[1]);
    for (size_t i = 0; i < numbers.size(); ++i)
      TERN_CHECK(numbers[i] >= 0 && numbers[i] < size[i / count], CheckpointError,
                 "a COO tensor of size {} has the index {} in dimension {}", to_string(size), numbers[i],
                 i / count);
  });
}

/// (compressed indices [..., n + 1], plain indices [..., nnz], values, size), for CSR, CSC, BSR and BSC.
void check_compressed(PickleHost& host, const std::string& layout, const std::vector<Value>& parts) {
  TERN_CHECK(parts.size() == 4, CheckpointError, "a {} tensor has {} parts", layout, parts.size());
  Tensor compressed = tensor_of(parts[0], "compressed indices"), plain = tensor_of(parts[1], "plain indices"),
         values = tensor_of(parts[2], "values");
  Shape size = size_of(parts[3]);
  check_index_dtype(compressed);
  check_index_dtype(plain);
  bool by_row = layout == "torch.sparse_csr" || layout == "torch.sparse_bsr";
  bool blocked = layout == "torch.sparse_bsr" || layout == "torch.sparse_bsc";
  int64_t batch = compressed.dim() - 1;
  bool ranks = batch >= 0 && plain.dim() == batch + 1 && values.dim() >= batch + (blocked ? 3 : 1) &&
               static_cast<int64_t>(size.size()) >= batch + 2;
  auto fail = [&] {
    TERN_THROW(CheckpointError,
               "a {} tensor of size {} has indices of shapes {} and {} and values of shape {}", layout,
               to_string(size), to_string(compressed.shape()), to_string(plain.shape()),
               to_string(values.shape()));
  };
  if (!ranks) fail();
  auto b = static_cast<size_t>(batch);
  int64_t rows = size[b], columns = size[b + 1];
  if (blocked) {
    int64_t block_rows = values.shape()[b + 1], block_columns = values.shape()[b + 2];
    if (block_rows <= 0 || block_columns <= 0 || rows % block_rows != 0 || columns % block_columns != 0)
      fail();
    rows /= block_rows;
    columns /= block_columns;
  }
  if (!by_row) std::swap(rows, columns);
  int64_t stored = plain.shape()[b];
  bool sizes = compressed.shape()[b] == rows + 1 && values.shape()[b] == stored;
  for (size_t d = 0; d < b; ++d)
    sizes = sizes && compressed.shape()[d] == size[d] && plain.shape()[d] == size[d] &&
            values.shape()[d] == size[d];
  if (!sizes) fail();
  host.check_later([=] {
    std::vector<int64_t> starts = indices_of(compressed), positions = indices_of(plain);
    auto row = static_cast<size_t>(rows) + 1;
    for (size_t i = 0; i < starts.size(); ++i) {
      bool right = i % row == 0 ? starts[i] == 0 : starts[i] >= starts[i - 1];
      if (i % row == row - 1) right = right && starts[i] == stored;
      TERN_CHECK(right, CheckpointError,
                 "a {} tensor's compressed indices must rise from 0 to {}; number {} is {}", layout, stored,
                 i, starts[i]);
    }
    for (int64_t position : positions)
      TERN_CHECK(position >= 0 && position < columns, CheckpointError,
                 "a {} tensor of size {} has the plain index {}", layout, to_string(size), position);
  });
}

/// The shape of a quantized tensor with several numbers in a byte, in row-major order. No Tensor has this
/// form.
Shape packed_shape(const Value& storage, const Value& offset, const Value& size, int64_t packed) {
  Shape shape = size_of(size);
  int64_t numel = checked_numel(shape), held = storage.as_storage().numel;
  bool inside = offset.kind() == ValueKind::Int && offset.as_int() >= 0 && offset.as_int() / packed <= held &&
                numel / packed + (numel % packed != 0) <= held - offset.as_int() / packed;
  TERN_CHECK(inside, CheckpointError, "a quantized tensor of shape {} leaves its storage of {} bytes",
             to_string(shape), held);
  return shape;
}

}  // namespace

int64_t numbers_per_byte(const Value& storage) {
  if (storage.kind() != ValueKind::RawStorage) return 1;
  DType dtype = storage.as_storage().dtype;
  return dtype == DType::QUInt4x2 ? 2 : dtype == DType::QUInt2x4 ? 4 : 1;
}

/// (layout, parts).
Value rebuild_sparse(PickleHost& host, const Value& callee, const CallArgs& args) {
  TERN_CHECK(args.size() == 2 && args[0].kind() == ValueKind::Layout, CheckpointError,
             "{}: the arguments are wrong", callee.as_global().full());
  const std::string& layout = args[0].as_layout();
  const std::vector<Value>& parts = tuple_of(args[1], "what makes up a sparse tensor");
  TERN_CHECK(layout.starts_with("torch.sparse_"), CheckpointError, "a sparse tensor has the layout {}",
             layout);
  if (layout == "torch.sparse_coo")
    check_coo(host, parts);
  else
    check_compressed(host, layout, parts);
  return make_object(callee, args);
}

/// (storage, offset, size, stride, (scheme, scale, zero point | scales, zero points, axis), requires_grad,
/// hooks).
Value rebuild_quantized(PickleHost&, const Value& callee, const CallArgs& args) {
  TERN_CHECK(args.size() >= 6 && args.size() <= 7, CheckpointError, "{}: {} arguments are given",
             callee.as_global().full(), args.size());
  Tensor integers;
  Shape shape;
  if (int64_t packed = numbers_per_byte(args[0]); packed > 1) {
    shape = packed_shape(args[0], args[1], args[2], packed);
  } else {
    integers = strided_tensor(args[0], args[1], args[2], args[3]);
    shape = integers.shape();
  }
  const std::vector<Value>& scheme = tuple_of(args[4], "the parameters of a quantized tensor");
  TERN_CHECK(!scheme.empty() && scheme[0].kind() == ValueKind::Global, CheckpointError,
             "a quantized tensor has no scheme");
  const std::string& kind = scheme[0].as_global().name;
  if (kind == "per_tensor_affine") {
    TERN_CHECK(scheme.size() == 3 && scheme[1].is_float() && scheme[2].kind() == ValueKind::Int,
               CheckpointError, "a quantized tensor's scale and zero point are wrong");
  } else {
    TERN_CHECK(kind == "per_channel_affine" || kind == "per_channel_affine_float_qparams", CheckpointError,
               "a quantized tensor has the unknown scheme {}", kind);
    TERN_CHECK(scheme.size() == 4 && scheme[3].kind() == ValueKind::Int, CheckpointError,
               "a quantized tensor has no axis");
    int64_t axis = scheme[3].as_int();
    TERN_CHECK(axis >= 0 && axis < static_cast<int64_t>(shape.size()), CheckpointError,
               "a quantized tensor of shape {} has the axis {}", to_string(shape), axis);
    for (size_t part : {size_t{1}, size_t{2}}) {
      const Value& numbers = scheme[part];
      bool is_vector = numbers.is_list() || (numbers.is_tensor() && numbers.as_tensor().dim() == 1);
      int64_t count = !is_vector          ? -1
                      : numbers.is_list() ? static_cast<int64_t>(numbers.length())
                                          : numbers.as_tensor().numel();
      TERN_CHECK(count == shape[static_cast<size_t>(axis)], CheckpointError,
                 "a quantized tensor of shape {} needs a scale and a zero point for each of its channels",
                 to_string(shape));
    }
  }
  Value object = make_object(callee, args);
  if (integers.defined()) object.as_object().payload = integers;
  return object;
}

}  // namespace tern::io
