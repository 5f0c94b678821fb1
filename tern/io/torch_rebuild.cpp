// The allow-list's rows for PyTorch: storage and tensor classes, the functions that rebuild tensors
// (torch/_utils.py), and its value types. All make plain data; the checks that PyTorch leaves out are here.
#include <algorithm>

#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/io/pickle_globals.h"
#include "tern/io/tensor_bytes.h"
#include "tern/io/tensor_kinds.h"
#include "tern/io/value_nodes.h"

namespace tern::io {

using detail::describe;

namespace {

void check_count(const Value& callee, const CallArgs& args, size_t least, size_t most) {
  TERN_CHECK(args.size() >= least && args.size() <= most, CheckpointError,
             "{}: {} arguments are given, {} to {} are possible", callee.as_global().full(), args.size(),
             least, most);
}

int64_t int_argument(const Value& value, const char* what) {
  TERN_CHECK(value.kind() == ValueKind::Int, CheckpointError, "the {} is {}, not an int of at most 64 bits",
             what, describe(value));
  return value.as_int();
}

bool flag_argument(const Value& value, const char* what) {
  if (value.kind() == ValueKind::Int && (value.as_int() == 0 || value.as_int() == 1))
    return value.as_int() == 1;
  TERN_CHECK(value.is_bool(), CheckpointError, "{} is {}, not a bool", what, describe(value));
  return value.as_bool();
}

Shape sizes_argument(const Value& value, const char* what) {
  bool right = value.is_tuple() || value.is_list() || value.kind() == ValueKind::Size;
  TERN_CHECK(right, CheckpointError, "the {} is {}, not a tuple of ints", what, describe(value));
  const std::vector<Value>& items = value.as_sequence();
  TERN_CHECK(items.size() <= kMaxRank, CheckpointError, "the {} has {} dimensions; at most {} are possible",
             what, items.size(), kMaxRank);
  Shape sizes;
  for (const Value& item : items) {
    int64_t size = int_argument(item, what);
    TERN_CHECK(size >= 0, CheckpointError, "the {} {} has a negative number", what, value.str(200));
    sizes.push_back(size);
  }
  return sizes;
}

DType dtype_argument(const Value& value) {
  if (value.kind() == ValueKind::Global)
    TERN_THROW(CheckpointError, "dtype {} is not supported", value.as_global().full());
  TERN_CHECK(value.kind() == ValueKind::DType, CheckpointError, "the dtype is {}", describe(value));
  return value.as_dtype();
}

/// requires_grad on a fresh tensor.
Tensor with_grad(Tensor tensor, bool requires_grad) {
  try {
    tensor.requires_grad_(requires_grad);
  } catch (const DTypeError&) {
    TERN_THROW(CheckpointError, "requires_grad is set on a tensor of dtype {}", name(tensor.dtype()));
  }
  return tensor;
}

/// Conjugates or negates the numbers in `bytes`. The sign of a floating-point number is its top bit; of a
/// complex one the second half is the imaginary part.
void change_signs(std::span<std::byte> bytes, DType dtype, bool conj, bool neg) {
  const bool complex = is_complex(dtype), integer = !complex && !is_floating_point(dtype);
  const size_t width = itemsize(dtype) / (complex ? 2 : 1);
  for (size_t i = 0; (i + 1) * width <= bytes.size(); ++i) {
    std::span<std::byte> number = bytes.subspan(i * width, width);
    if (integer) {
      bool carry = true;
      for (std::byte& byte : number) {
        byte = ~byte;
        if (carry) byte = static_cast<std::byte>(static_cast<uint8_t>(byte) + 1);
        carry = carry && byte == std::byte{0};
      }
    } else if (neg != (conj && i % 2 == 1)) {
      number.back() ^= std::byte{0x80};
    }
  }
}

/// The same elements of a storage whose numbers are conjugated or negated once they are there: PyTorch keeps
/// these as bits of the tensor. Tensors that share a storage and have the same bits share the new one.
Tensor resolve_bits(PickleHost& host, const Tensor& tensor, bool conj, bool neg) {
  const DType dtype = tensor.dtype();
  const Storage& given = tensor.storage();
  if ((!conj && !neg) || given->data() == nullptr) return tensor;
  TERN_CHECK(dtype != DType::Bool && (is_complex(dtype) || !conj), CheckpointError,
             "a tensor of dtype {} has the {} bit", name(dtype), conj ? "conj" : "neg");
  Storage& resolved = host.resolved_storage(given, dtype, conj, neg);
  const auto count = static_cast<int64_t>(given->nbytes() / itemsize(dtype));
  if (!resolved) {
    resolved = empty_contiguous({count}, count, dtype, tensor.device()).storage();
    host.check_later([=, from = Tensor::from_storage(given, dtype, {count}, {1}, 0), to = resolved] {
      std::vector<std::byte> bytes = element_bytes(from);
      change_signs(bytes, dtype, conj, neg);
      copy_from_host(*to, 0, bytes.data(), bytes.size());
    });
  }
  return Tensor::from_storage(resolved, dtype, tensor.shape(), tensor.strides(), tensor.storage_offset());
}

Tensor apply_metadata(PickleHost& host, const Tensor& tensor, const Value& metadata) {
  if (metadata.is_none()) return tensor;
  TERN_CHECK(metadata.is_dict(), CheckpointError, "a tensor's metadata is {}, not a dict",
             describe(metadata));
  bool conj = false, neg = false;
  for (const auto& [key, value] : metadata.as_dict()) {
    if (key == Value("conj"))
      conj = flag_argument(value, "conj");
    else if (key == Value("neg"))
      neg = flag_argument(value, "neg");
  }
  return resolve_bits(host, tensor, conj, neg);
}

/// (storage, offset, size, stride[, requires_grad, hooks[, metadata]]).
Value rebuild_tensor(PickleHost& host, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 4, 7);
  Tensor tensor = strided_tensor(args[0], args[1], args[2], args[3]);
  if (args.size() > 6) tensor = apply_metadata(host, tensor, args[6]);
  return with_grad(tensor, args.size() > 4 && flag_argument(args[4], "requires_grad"));
}

/// (untyped storage, offset, size, stride, requires_grad, hooks, dtype[, metadata]).
Value rebuild_tensor_v3(PickleHost& host, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 7, 8);
  Tensor tensor = strided_tensor(args[0], args[1], args[2], args[3], dtype_argument(args[6]));
  if (args.size() > 7) tensor = apply_metadata(host, tensor, args[7]);
  return with_grad(tensor, flag_argument(args[4], "requires_grad"));
}

Value make_parameter(const Value& callee, const CallArgs& args, bool requires_grad) {
  const Value& data = args[0];
  if (data.is_object()) return make_object(callee, args);  // of a quantized or sparse tensor
  TERN_CHECK(data.is_tensor(), CheckpointError, "the data of a parameter is {}, not a tensor",
             describe(data));
  return with_grad(data.as_tensor().detach(), requires_grad);
}

/// (tensor, requires_grad, hooks).
Value rebuild_parameter(PickleHost&, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 3, 3);
  return make_parameter(callee, args, flag_argument(args[1], "requires_grad"));
}

/// (tensor, requires_grad, hooks, state): a parameter with attributes of its own.
Value rebuild_parameter_with_state(PickleHost&, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 4, 4);
  Value object = make_object(callee, args);
  if (!args[0].is_object())
    object.as_object().payload = make_parameter(callee, args, flag_argument(args[1], "requires_grad"));
  object.as_object().state = args[3];
  return object;
}

/// torch.nn.parameter.Parameter(tensor, requires_grad), before torch 0.4.
Value call_parameter(PickleHost&, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 0, 2);
  if (args.empty()) return make_object(callee, args, ValueObject::Made::New);
  return make_parameter(callee, args, args.size() < 2 || flag_argument(args[1], "requires_grad"));
}

/// (function, class, its arguments, state): a tensor of a subclass or with attributes of its own.
Value rebuild_from_type(PickleHost& host, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 4, 4);
  const GlobalRow* row = row_of(args[0]);
  TERN_CHECK(args[0].kind() == ValueKind::Global, CheckpointError,
             "the function that rebuilds a tensor is {}", describe(args[0]));
  TERN_CHECK(args[2].is_tuple(), CheckpointError, "the arguments that rebuild a tensor are {}, not a tuple",
             describe(args[2]));
  Value object = make_object(callee, args);
  if (row && row->call) object.as_object().payload = row->call(host, args[0], args[2].as_tuple());
  object.as_object().state = args[3];
  return object;
}

/// (array, dtype, device, requires_grad): tensors of devices without storages, XLA among them.
Value rebuild_device_tensor(PickleHost& host, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 4, 4);
  bool is_array = args[0].is_tensor() || (args[0].is_object() && args[0].as_object().payload.is_tensor());
  TERN_CHECK(is_array, CheckpointError, "{}: the values are {}", callee.as_global().full(),
             describe(args[0]));
  TERN_CHECK(args[2].is_str(), CheckpointError, "{}: the device is {}, not a str", callee.as_global().full(),
             describe(args[2]));
  Tensor values = args[0].as_tensor();
  check_backed(values);
  DType dtype = dtype_argument(args[1]);
  Device device = host.device_for(args[2].as_str());
  bool requires_grad = flag_argument(args[3], "requires_grad");
  host.count_copy(values.nbytes());
  if (values.dtype() == dtype) {
    Tensor tensor = empty_contiguous(values.shape(), values.numel(), dtype, device);
    host.check_later([=] {
      std::vector<std::byte> bytes = element_bytes(values);
      copy_from_host(*tensor.storage(), 0, bytes.data(), bytes.size());
    });
    return with_grad(tensor, requires_grad);
  }
  // NumPy has no bfloat16, so float32 stands for it.
  TERN_CHECK(values.dtype() == DType::Float32 && dtype == DType::BFloat16, CheckpointError,
             "{}: values of {} stand for {}", callee.as_global().full(), name(values.dtype()), name(dtype));
  Tensor tensor = empty_contiguous(values.shape(), values.numel(), dtype, device);
  host.check_later([=] {
    std::vector<std::byte> bytes = element_bytes(values);
    std::vector<BFloat16> converted(bytes.size() / sizeof(float));
    for (size_t i = 0; i < converted.size(); ++i) {
      float value;
      std::memcpy(&value, bytes.data() + i * sizeof(float), sizeof(float));
      converted[i] = BFloat16(value);
    }
    copy_from_host(*tensor.storage(), 0, converted.data(), converted.size() * sizeof(BFloat16));
  });
  return with_grad(tensor, requires_grad);
}

/// (dtype, size, stride, requires_grad): a shape without numbers.
Value rebuild_meta(PickleHost&, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 4, 4);
  Shape size = sizes_argument(args[1], "size");
  checked_numel(size);
  Shape stride = sizes_argument(args[2], "stride");
  TERN_CHECK(size.size() == stride.size(), CheckpointError,
             "a meta tensor's size and stride have {} and {} dimensions", size.size(), stride.size());
  return make_object(callee, args);
}

/// Kinds of tensors that stay as their parts: the arguments are checked where they are used.
Value call_object(PickleHost&, const Value& callee, const CallArgs& args) {
  return make_object(callee, args);
}

/// torch.FloatTensor(), which a state (storage, offset, size, stride) follows; torch 0.1 to 0.3.
Value call_tensor_class(PickleHost&, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 0, 0);
  return make_object(callee, args);
}

void set_object_state(PickleHost&, ValueObject& object, const Value& state) {
  TERN_CHECK(state.is_tuple() && (state.length() == 4 || state.length() == 5), CheckpointError,
             "the state of a tensor is {}, not a tuple of 4 or 5 items", describe(state));
  const std::vector<Value>& items = state.as_tuple();
  if (items.size() == 4) {
    object.payload = strided_tensor(items[0], items[1], items[2], items[3]);
  } else {  // a Variable: (data, -, hooks, requires_grad, volatile)
    bool is_tensor =
        items[0].is_tensor() || (items[0].is_object() && items[0].as_object().payload.is_tensor());
    TERN_CHECK(is_tensor, CheckpointError, "the data of a variable is {}, not a tensor", describe(items[0]));
    object.payload = with_grad(items[0].as_tensor().detach(), flag_argument(items[3], "requires_grad"));
  }
}

Value call_size(PickleHost&, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 0, 1);
  if (args.empty()) return Value::size({});
  Shape sizes = sizes_argument(args[0], "torch.Size");
  return Value::size(std::vector<int64_t>(sizes.begin(), sizes.end()));
}

/// torch.device('cuda', 1) or ('cpu',). Kinds of device that are unknown here stay objects.
Value call_device(PickleHost&, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 1, 2);
  TERN_CHECK(args[0].is_str(), CheckpointError, "the kind of a device is {}, not a str", describe(args[0]));
  const std::string& kind = args[0].as_str();
  int64_t index = args.size() == 2 && !args[1].is_none() ? int_argument(args[1], "device number") : -1;
  if (kind == "cpu") return kCPU;
  if (kind == "cuda" && index >= -1 && index <= INT16_MAX)
    return Device(DeviceType::CUDA, static_cast<int>(index));
  return make_object(callee, args);
}

Value call_layout(PickleHost&, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 1, 1);
  static constexpr std::string_view kLayouts[] = {"torch.strided",    "torch.sparse_coo", "torch.sparse_csr",
                                                  "torch.sparse_csc", "torch.sparse_bsr", "torch.sparse_bsc",
                                                  "torch._mkldnn",    "torch.jagged"};
  TERN_CHECK(args[0].is_str() &&
                 std::find(std::begin(kLayouts), std::end(kLayouts), args[0].as_str()) != std::end(kLayouts),
             CheckpointError, "{} is no layout of a tensor", args[0].str(100));
  return Value::layout(args[0].as_str());
}

/// A complete checkpoint inside a pickle, which pickle.dump makes of a storage.
Value call_load_from_bytes(PickleHost& host, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 1, 1);
  bool is_bytes = args[0].kind() == ValueKind::Bytes || args[0].kind() == ValueKind::ByteArray;
  TERN_CHECK(is_bytes || args[0].is_str(), CheckpointError, "{}: the argument is {}, not bytes",
             callee.as_global().full(), describe(args[0]));
  return host.load_nested(is_bytes ? args[0].as_bytes() : args[0].as_str());
}

/// torch.jit._pickle.build_intlist([...]) and the like, restore_type_tag([...], 'List[int]'): the list
/// itself.
Value call_first_argument(PickleHost&, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 1, 2);
  return args[0];
}

constexpr GlobalRow storage_row(std::string_view module, std::string_view name, DType dtype) {
  return {module, name, nullptr, nullptr, dtype, /*typed=*/true};
}
constexpr GlobalRow tensor_row(std::string_view module, std::string_view name) {
  return {module, name, call_tensor_class, set_object_state};
}

#define TERN_STORAGE_AND_TENSOR(prefix, dtype)                                                         \
  storage_row("torch", prefix "Storage", DType::dtype),                                                \
      storage_row("torch.cuda", prefix "Storage", DType::dtype), tensor_row("torch", prefix "Tensor"), \
      tensor_row("torch.cuda", prefix "Tensor")

constexpr GlobalRow kTorchRows[] = {
    TERN_STORAGE_AND_TENSOR("Double", Float64),
    TERN_STORAGE_AND_TENSOR("Float", Float32),
    TERN_STORAGE_AND_TENSOR("Half", Float16),
    TERN_STORAGE_AND_TENSOR("BFloat16", BFloat16),
    TERN_STORAGE_AND_TENSOR("Long", Int64),
    TERN_STORAGE_AND_TENSOR("Int", Int32),
    TERN_STORAGE_AND_TENSOR("Short", Int16),
    TERN_STORAGE_AND_TENSOR("Char", Int8),
    TERN_STORAGE_AND_TENSOR("Byte", UInt8),
    TERN_STORAGE_AND_TENSOR("Bool", Bool),
    TERN_STORAGE_AND_TENSOR("ComplexFloat", Complex64),
    TERN_STORAGE_AND_TENSOR("ComplexDouble", Complex128),
    // Untyped: the size counts bytes.
    storage_row("torch", "UntypedStorage", DType::UInt8),
    storage_row("torch.storage", "UntypedStorage", DType::UInt8),
    storage_row("torch.storage", "_UntypedStorage", DType::UInt8),
    storage_row("torch", "QUInt8Storage", DType::QUInt8),
    storage_row("torch", "QInt8Storage", DType::QInt8),
    storage_row("torch", "QInt32Storage", DType::QInt32),
    storage_row("torch", "QUInt4x2Storage", DType::QUInt4x2),
    storage_row("torch", "QUInt2x4Storage", DType::QUInt2x4),

    tensor_row("torch", "Tensor"),
    tensor_row("torch._tensor", "Tensor"),
    tensor_row("torch.autograd.variable", "Variable"),
    {"torch.nn.parameter", "Parameter", call_parameter, set_object_state},
    {"torch.nn.parameter", "UninitializedParameter", call_object},
    {"torch.nn.parameter", "Buffer", call_parameter},

    {"torch._utils", "_rebuild_tensor", rebuild_tensor},
    {"torch._utils", "_rebuild_tensor_v2", rebuild_tensor},
    {"torch._utils", "_rebuild_tensor_v3", rebuild_tensor_v3},
    {"torch._utils", "_rebuild_parameter", rebuild_parameter},
    {"torch._utils", "_rebuild_parameter_with_state", rebuild_parameter_with_state},
    {"torch._utils", "_rebuild_qtensor", rebuild_quantized},
    {"torch._utils", "_rebuild_sparse_tensor", rebuild_sparse},
    {"torch._utils", "_rebuild_sparse_csr_tensor", rebuild_sparse},
    {"torch._utils", "_rebuild_device_tensor_from_numpy", rebuild_device_tensor},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", rebuild_device_tensor},
    {"torch._utils", "_rebuild_xla_tensor", rebuild_device_tensor},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", rebuild_meta},
    {"torch._utils", "_rebuild_nested_tensor", call_object},
    {"torch._utils", "_rebuild_wrapper_subclass", call_object},
    {"torch._tensor", "_rebuild_from_type_v2", rebuild_from_type},
    {"torch._tensor", "_rebuild_from_type", rebuild_from_type},
    {"torch.tensor", "_rebuild_from_type_v2", rebuild_from_type},
    {"torch.tensor", "_rebuild_from_type", rebuild_from_type},
    {"torch.storage", "_load_from_bytes", call_load_from_bytes},

    {"torch.jit._pickle", "build_intlist", call_first_argument},
    {"torch.jit._pickle", "build_doublelist", call_first_argument},
    {"torch.jit._pickle", "build_boollist", call_first_argument},
    {"torch.jit._pickle", "build_tensorlist", call_first_argument},
    {"torch.jit._pickle", "restore_type_tag", call_first_argument},

    {"torch", "Size", call_size},
    {"torch", "device", call_device},
    {"torch.serialization", "_get_layout", call_layout},
    {"torch", "per_tensor_affine"},
    {"torch", "per_tensor_symmetric"},
    {"torch", "per_channel_affine"},
    {"torch", "per_channel_symmetric"},
    {"torch", "per_channel_affine_float_qparams"},
    {"torch", "contiguous_format"},
    {"torch", "channels_last"},
    {"torch", "channels_last_3d"},
    {"torch", "preserve_format"},
};

#undef TERN_STORAGE_AND_TENSOR

}  // namespace

Tensor strided_tensor(const Value& storage, const Value& offset, const Value& size, const Value& stride,
                      std::optional<DType> dtype) {
  TERN_CHECK(storage.kind() == ValueKind::RawStorage, CheckpointError, "a tensor's storage is {}",
             describe(storage));
  const StorageValue& held = storage.as_storage();
  Shape sizes = sizes_argument(size, "size"), strides = sizes_argument(stride, "stride");
  int64_t first = int_argument(offset, "storage offset");
  // PyTorch lets an empty tensor begin anywhere.
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) first = std::min(first, held.numel);
  if (held.offset == 0)
    return Tensor::from_storage(held.storage, dtype.value_or(held.dtype), sizes, strides, first);
  // A part of a storage: the tensor may not leave the part either.
  TERN_CHECK(first >= 0 && first <= held.numel && !dtype, CheckpointError,
             "a tensor begins at element {} of {}", first, held.numel);
  Tensor tensor = Tensor::from_storage(held.storage, held.dtype, sizes, strides, held.offset + first);
  int64_t last = first;
  for (size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
  TERN_CHECK(tensor.numel() == 0 || last < held.numel, CheckpointError,
             "a tensor of size {} and stride {} from element {} on leaves its storage of {} elements",
             to_string(sizes), to_string(strides), first, held.numel);
  return tensor;
}

void check_backed(const Tensor& tensor) {
  auto held = static_cast<int64_t>(tensor.storage()->nbytes() / itemsize(tensor.dtype()));
  TERN_CHECK(tensor.numel() <= held, CheckpointError,
             "a tensor of shape {} and strides {} repeats the {} elements of its storage, of which a copy "
             "would be needed",
             to_string(tensor.shape()), to_string(tensor.strides()), held);
}

std::span<const GlobalRow> torch_globals() { return kTorchRows; }

void set_tensor_state(const Tensor& tensor, const Value& state) {
  TERN_CHECK(state.is_tuple() && state.length() == 3, CheckpointError,
             "the state of a tensor is {}, not a tuple of 3 items", describe(state));
  with_grad(tensor, flag_argument(state.as_tuple()[0], "requires_grad"));
}

}  // namespace tern::io
