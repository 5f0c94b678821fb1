// The allow-list's rows for NumPy arrays, scalars and dtypes (numpy/core/src/multiarray: array_reduce,
// array_setstate). Arrays of numbers become objects that stand for a tensor; arrays of other things stay as
// their parts.
#include <algorithm>
#include <cstring>

#include "tern/base/check.h"
#include "tern/io/byte_order.h"
#include "tern/io/numpy_types.h"
#include "tern/io/pickle_globals.h"
#include "tern/io/tensor_bytes.h"
#include "tern/io/value_nodes.h"

namespace tern::io {

using detail::describe;

namespace {

constexpr std::pair<std::string_view, DType> kCodes[] = {
    {"b1", DType::Bool},    {"?", DType::Bool},       {"i1", DType::Int8},       {"u1", DType::UInt8},
    {"i2", DType::Int16},   {"u2", DType::UInt16},    {"i4", DType::Int32},      {"u4", DType::UInt32},
    {"i8", DType::Int64},   {"u8", DType::UInt64},    {"f2", DType::Float16},    {"f4", DType::Float32},
    {"f8", DType::Float64}, {"c8", DType::Complex64}, {"c16", DType::Complex128}};

[[noreturn]] void fail(const std::string& what) { throw CheckpointError("NumPy: " + what); }

/// What numpy.dtype('f8') and its state say about an element.
struct ArrayType {
  std::optional<DType> dtype;  ///< none for what is_opaque_numpy_code names, records, texts of any length
  bool big_endian = false;
};

/// numpy.dtypes.StringDType, which is made by a function of its own.
bool is_string_dtype(const Value& value) {
  if (!value.is_object() || value.as_object().callee.kind() != ValueKind::Global) return false;
  const GlobalName& callee = value.as_object().callee.as_global();
  return callee.name == "_convert_to_stringdtype_kwargs" &&
         (callee.module == "numpy._core._internal" || callee.module == "numpy.core._internal");
}

ArrayType array_type(const Value& value) {
  if (is_string_dtype(value)) return {};
  const GlobalRow* row = value.is_object() ? row_of(value.as_object().callee) : nullptr;
  if (!row || row->name != "dtype") fail(fmt::format("an array's dtype is {}", describe(value)));
  const ValueObject& object = value.as_object();
  const std::vector<Value>& args = object.args.as_tuple();
  // numpy.record, or a class of another package: the name of a type stands for it.
  if (!args.empty() && args[0].kind() == ValueKind::Global) return {};
  if (!args.empty() && args[0].is_dict()) return {};  // of a structure's fields
  if (args.empty() || !args[0].is_str()) fail("a dtype has no code");
  std::string_view code = args[0].as_str();
  ArrayType type;
  type.big_endian = code.starts_with('>');
  code = without_byte_order(code);
  if (object.state.is_tuple() && object.state.length() >= 2 && object.state.as_tuple()[1].is_str())
    type.big_endian = object.state.as_tuple()[1].as_str() == ">";
  type.dtype = dtype_of_numpy_code(code);
  if (!type.dtype && !is_opaque_numpy_code(code))
    fail(fmt::format("the dtype code '{}' is unknown", code.substr(0, 40)));
  return type;
}

/// bytes, or the str that Python 2 used for them.
const std::string& raw_bytes(const Value& value) {
  if (value.is_str()) return value.as_str();
  if (value.kind() != ValueKind::Bytes && value.kind() != ValueKind::ByteArray)
    fail(fmt::format("the numbers of an array are {}, not bytes", describe(value)));
  return value.as_bytes();
}

Tensor make_tensor(PickleHost& host, const ArrayType& type, const std::string& data, const Shape& shape,
                   bool column_major) {
  size_t width = itemsize(*type.dtype);
  auto numel = static_cast<uint64_t>(checked_numel(shape));
  uint64_t needed = 0;
  if (__builtin_mul_overflow(numel, width, &needed) || needed != data.size())
    fail(fmt::format("an array of shape {} and dtype {} has {} bytes", to_string(shape), name(*type.dtype),
                     data.size()));
  host.count_copy(data.size());
  std::string swapped;
  const std::string* bytes = &data;
  if (type.big_endian) {
    swapped = data;
    swap_bytes(reinterpret_cast<std::byte*>(swapped.data()), swapped.size(),
               is_complex(*type.dtype) ? width / 2 : width);
    bytes = &swapped;
  }
  if (*type.dtype == DType::Bool) {
    swapped = *bytes;
    for (char& c : swapped) c = c != 0;
    bytes = &swapped;
  }
  Shape order = shape;
  if (column_major) std::reverse(order.begin(), order.end());
  Tensor tensor =
      tensor_from_bytes(std::as_bytes(std::span(bytes->data(), bytes->size())), *type.dtype, order);
  if (!column_major) return tensor;
  Strides strides = tensor.strides();
  std::reverse(strides.begin(), strides.end());
  return Tensor::from_storage(tensor.storage(), *type.dtype, shape, strides);
}

Shape shape_of(const Value& value) {
  if (value.kind() == ValueKind::Int) return Shape{value.as_int()};
  if (!value.is_tuple() && !value.is_list()) fail(fmt::format("an array's shape is {}", describe(value)));
  Shape shape;
  for (const Value& item : value.as_sequence()) {
    if (item.kind() != ValueKind::Int || item.as_int() < 0)
      fail(fmt::format("an array's shape {} is wrong", value.str(200)));
    if (shape.size() == kMaxRank) fail("an array has too many dimensions");
    shape.push_back(item.as_int());
  }
  return shape;
}

/// numpy.core.multiarray._reconstruct(numpy.ndarray, (0,), b'b'): an empty array, which a state follows.
Value reconstruct(PickleHost&, const Value& callee, const CallArgs& args) {
  if (args.size() != 3 || args[0].kind() != ValueKind::Global) fail("_reconstruct has wrong arguments");
  return make_object(callee, args);
}

/// (version, shape, dtype, column major, bytes or a list of objects).
void set_array_state(PickleHost& host, ValueObject& object, const Value& state) {
  if (!state.is_tuple() || state.length() < 4 || state.length() > 5)
    fail(fmt::format("an array's state is {}", describe(state)));
  const std::vector<Value>& items = state.as_tuple();
  size_t first = items.size() - 4;  // the oldest have no version
  Shape shape = shape_of(items[first]);
  ArrayType type = array_type(items[first + 1]);
  const Value& column_major = items[first + 2];
  if (!column_major.is_bool() && column_major.kind() != ValueKind::Int) fail("an array's order is no bool");
  if (type.dtype)
    object.payload = make_tensor(host, type, raw_bytes(items[first + 3]), shape, column_major.as_int() != 0);
  object.state = state;
  object.has_state = true;
}

/// numpy.ma: what an array has, its mask as one byte for each element, and the value for masked ones.
void set_masked_state(PickleHost& host, ValueObject& object, const Value& state) {
  if (!state.is_tuple() || state.length() != 7)
    fail(fmt::format("a masked array's state is {}", describe(state)));
  const std::vector<Value>& items = state.as_tuple();
  set_array_state(host, object, Value::tuple(std::vector<Value>(items.begin(), items.begin() + 5)));
  const auto numel = static_cast<uint64_t>(checked_numel(shape_of(items[1])));
  if (const size_t size = raw_bytes(items[5]).size(); object.payload.is_tensor() && size != numel)
    fail(fmt::format("the mask of an array of shape {} has {} bytes", items[1].str(200), size));
  object.state = state;
}

/// numpy.ma.core._mareconstruct(MaskedArray, numpy.ndarray, (0,), b'b').
Value reconstruct_masked(PickleHost&, const Value& callee, const CallArgs& args) {
  if (args.size() != 4 || args[0].kind() != ValueKind::Global) fail("_mareconstruct has wrong arguments");
  return make_object(callee, args);
}

/// numpy.dtype('f8', align, copy).
Value call_dtype(PickleHost&, const Value& callee, const CallArgs& args) {
  if (args.empty() || args.size() > 3) fail("a dtype has wrong arguments");
  return make_object(callee, args);
}

/// numpy.core.multiarray.scalar(dtype, bytes).
Value call_scalar(PickleHost& host, const Value& callee, const CallArgs& args) {
  if (args.size() != 2) fail("a scalar has wrong arguments");
  ArrayType type = array_type(args[0]);
  Value object = make_object(callee, args);
  if (!type.dtype) return object;
  Tensor tensor = make_tensor(host, type, raw_bytes(args[1]), {}, /*column_major=*/false);
  const std::byte* p = static_cast<const std::byte*>(tensor.data_ptr());
  Value& payload = object.as_object().payload;
  switch (*type.dtype) {
    case DType::Bool:
      payload = *p != std::byte{0};
      break;
    case DType::UInt8:
      payload = load_le<uint8_t>(p);
      break;
    case DType::Int8:
      payload = load_le<int8_t>(p);
      break;
    case DType::Int16:
      payload = load_le<int16_t>(p);
      break;
    case DType::UInt16:
      payload = load_le<uint16_t>(p);
      break;
    case DType::Int32:
      payload = load_le<int32_t>(p);
      break;
    case DType::UInt32:
      payload = load_le<uint32_t>(p);
      break;
    case DType::Int64:
      payload = load_le<int64_t>(p);
      break;
    case DType::UInt64:
      payload = load_le<uint64_t>(p);
      break;
    case DType::Complex64: {
      float parts[2];
      std::memcpy(parts, p, sizeof(parts));
      payload = std::complex<double>(parts[0], parts[1]);
      break;
    }
    case DType::Complex128: {
      double parts[2];
      std::memcpy(parts, p, sizeof(parts));
      payload = std::complex<double>(parts[0], parts[1]);
      break;
    }
    default:
      payload = Value(tensor).as_float();
  }
  return object;
}

/// What transpose(axes) does to an array's sizes or strides.
template <class Sizes>
Sizes permuted(const Sizes& sizes, const std::vector<size_t>& axes) {
  Sizes result = sizes;
  for (size_t i = 0; i < axes.size(); ++i) result[i] = sizes[axes[i]];
  return result;
}

/// The last argument of _frombuffer: each axis of an array of `rank` dimensions, once.
std::vector<size_t> axis_order(const Value& value, size_t rank) {
  if (!value.is_tuple() && !value.is_list())
    fail(fmt::format("an array's axis order is {}", describe(value)));
  std::vector<size_t> axes;
  std::vector<bool> seen(rank);
  for (const Value& item : value.as_sequence()) {
    const int64_t axis = item.kind() == ValueKind::Int ? item.as_int() : -1;
    if (axis < 0 || static_cast<uint64_t>(axis) >= rank || seen[static_cast<size_t>(axis)])
      fail(fmt::format("an array's axis order {} is no permutation of its {} axes", value.str(200), rank));
    seen[static_cast<size_t>(axis)] = true;
    axes.push_back(static_cast<size_t>(axis));
  }
  if (axes.size() != rank)
    fail(fmt::format("an array's axis order {} is no permutation of its {} axes", value.str(200), rank));
  return axes;
}

/// The elements of a row-major array of `shape` as those of its transpose(axes), row-major too.
std::string transposed_bytes(const std::string& data, const Shape& shape, const std::vector<size_t>& axes) {
  if (data.empty()) return data;
  const size_t width = data.size() / static_cast<size_t>(checked_numel(shape));
  const Shape sizes = permuted(shape, axes);
  const Strides strides = permuted(contiguous_strides(shape), axes);
  std::string result;
  result.reserve(data.size());
  std::vector<int64_t> index(sizes.size());
  int64_t from = 0;
  while (result.size() < data.size()) {
    result.append(data, static_cast<size_t>(from) * width, width);
    for (size_t axis = sizes.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < sizes[axis]) break;
      from -= strides[axis] * sizes[axis];
      index[axis] = 0;
    }
  }
  return result;
}

/// numpy.core.numeric._frombuffer(bytes, dtype, shape, order), from protocol 5 on: the order is 'C', 'F' or,
/// since NumPy 2.3, 'K' with the order of axes in a fifth argument. An array without numbers becomes what the
/// older protocols have for it.
Value from_buffer(PickleHost& host, const Value& callee, const CallArgs& args) {
  if (args.size() < 4 || args.size() > 5 || !args[3].is_str()) fail("_frombuffer has wrong arguments");
  const ArrayType type = array_type(args[1]);
  const std::string& data = raw_bytes(args[0]);
  const Shape shape = shape_of(args[2]);
  const std::string& order = args[3].as_str();
  std::vector<size_t> axes;
  if (order == "K" && args.size() == 5)
    axes = axis_order(args[4], shape.size());
  else if ((order != "C" && order != "F") || (args.size() == 5 && !args[4].is_none()))
    fail(fmt::format("the order '{}' of an array is unknown", order.substr(0, 40)));
  if (type.dtype) {
    Value object = make_object(callee, args);
    Tensor tensor = make_tensor(host, type, data, shape, /*column_major=*/order == "F");
    if (order == "K")
      tensor = Tensor::from_storage(tensor.storage(), *type.dtype, permuted(shape, axes),
                                    permuted(tensor.strides(), axes));
    object.as_object().payload = tensor;
    return object;
  }
  const auto numel = static_cast<size_t>(checked_numel(shape));
  if (numel == 0 ? !data.empty() : data.size() % numel != 0)
    fail(fmt::format("an array of shape {} has {} bytes", to_string(shape), data.size()));
  if (order == "K" || args[0].kind() == ValueKind::ByteArray) host.count_copy(data.size());
  if (order == "K")
    return opaque_array(args[1], permuted(shape, axes), /*column_major=*/false,
                        Value::bytes(transposed_bytes(data, shape, axes)));
  return opaque_array(args[1], shape, /*column_major=*/order == "F",
                      args[0].kind() == ValueKind::ByteArray ? Value::bytes(data) : args[0]);
}

constexpr GlobalRow kNumpyRows[] = {
    {"numpy", "ndarray", reconstruct, set_array_state},
    {"numpy", "dtype", call_dtype},
    {"numpy.core.multiarray", "_reconstruct", reconstruct, set_array_state},
    {"numpy.core.multiarray", "scalar", call_scalar},
    {"numpy.core.numeric", "_frombuffer", from_buffer},
    {"numpy.ma.core", "_mareconstruct", reconstruct_masked, set_masked_state},
    {"numpy.ma.core", "MaskedArray"},
    {"numpy.ma", "MaskedArray"},
};

}  // namespace

std::optional<DType> dtype_of_numpy_code(std::string_view code) {
  for (const auto& [text, dtype] : kCodes)
    if (text == code) return dtype;
  return std::nullopt;
}

std::string_view numpy_code(DType dtype) noexcept {
  for (const auto& [text, known] : kCodes)
    if (known == dtype) return text;
  return {};
}

std::string_view without_byte_order(std::string_view code) noexcept {
  if (!code.empty() && std::string_view("<>|=").find(code[0]) != std::string_view::npos)
    code.remove_prefix(1);
  return code;
}

bool is_opaque_numpy_code(std::string_view code) noexcept {
  for (std::string_view wide : {"f12", "f16", "c24", "c32"})
    if (code == wide) return true;
  if (code.empty() || std::string_view("USMmOVa").find(code[0]) == std::string_view::npos) return false;
  const bool dated = code[0] == 'M' || code[0] == 'm';
  code.remove_prefix(1);
  while (!code.empty() && code[0] >= '0' && code[0] <= '9') code.remove_prefix(1);
  if (code.empty()) return true;
  // The unit of a date: [ns], [25us].
  return dated && code.size() > 2 && code.front() == '[' && code.back() == ']' &&
         std::all_of(code.begin() + 1, code.end() - 1, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/';
         });
}

Value opaque_array(Value dtype, const Shape& shape, bool column_major, Value data) {
  if (!dtype.is_object()) dtype = make_object(find_global("numpy", "dtype"), {std::move(dtype), false, true});
  std::vector<Value> sizes(shape.begin(), shape.end());
  Value object =
      make_object(find_global("numpy.core.multiarray", "_reconstruct"),
                  {find_global("numpy", "ndarray"), Value::tuple({int64_t{0}}), Value::bytes("b")});
  ValueObject& array = object.as_object();
  array.state = Value::tuple(
      {int64_t{1}, Value::tuple(std::move(sizes)), std::move(dtype), column_major, std::move(data)});
  array.has_state = true;
  return object;
}

std::span<const GlobalRow> numpy_globals() { return kNumpyRows; }

}  // namespace tern::io
