// Values to opcodes. Structure as in CPython's Lib/pickle.py (_Pickler, protocol 2) and torch/_tensor.py
// (_reduce_ex_internal).
#include "tern/io/pickle_writer.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "tern/base/check.h"
#include "tern/io/byte_order.h"
#include "tern/io/pickle_globals.h"
#include "tern/io/utf8.h"
#include "tern/io/value_nodes.h"

namespace tern::io {

namespace {

constexpr size_t kMaxDepth = 1000;
constexpr size_t kBatch = 1000;

class Writer {
 public:
  Writer(const ReferStorage& refer, bool stream) : refer_(refer), stream_(stream) {}

  std::string run(const Value& root) {
    op(0x80);
    op(2);
    write(root);
    op('.');
    return std::move(out_);
  }

 private:
  // ---- opcodes
  // ------------------------------------------------------------------------------------------------------------

  void op(int code) { out_.push_back(static_cast<char>(code)); }

  void put(uint32_t index) {
    if (index < 256) {
      op('q');
      op(static_cast<int>(index));
    } else {
      op('r');
      append_le(out_, index);
    }
  }
  void get(uint32_t index) {
    if (index < 256) {
      op('h');
      op(static_cast<int>(index));
    } else {
      op('j');
      append_le(out_, index);
    }
  }

  void global(std::string_view module, std::string_view name) {
    scratch_.assign(module);
    scratch_ += '\n';
    scratch_ += name;
    auto [found, added] = globals_.try_emplace(scratch_, next_memo_);
    if (!added) return get(found->second);
    op('c');
    out_ += scratch_;
    out_ += '\n';
    put(next_memo_++);
  }

  void text(std::string_view utf8) {
    auto found = texts_.find(utf8);
    if (found != texts_.end()) return get(found->second);
    if (utf8.size() > UINT32_MAX) fail("a str is longer than 4 GiB");
    if (!is_utf8(utf8, /*surrogates=*/true))
      fail(fmt::format("{} is not UTF-8, which a str must be; Value::bytes() holds any bytes",
                       Value::bytes(std::string(utf8)).str(80)));
    op('X');
    append_le(out_, static_cast<uint32_t>(utf8.size()));
    out_ += utf8;
    texts_.emplace(std::string(utf8), next_memo_);
    put(next_memo_++);
  }

  void integer(int64_t value) {
    if (value >= 0 && value <= 0xff) {
      op('K');
      op(static_cast<int>(value));
    } else if (value >= 0 && value <= 0xffff) {
      op('M');
      append_le(out_, static_cast<uint16_t>(value));
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
      op('J');
      append_le(out_, static_cast<int32_t>(value));
    } else {
      long_integer(Value(value).integer_bytes());
    }
  }
  void long_integer(const std::string& twos_complement) {
    if (twos_complement.size() < 256) {
      op(0x8a);
      op(static_cast<int>(twos_complement.size()));
    } else {
      op(0x8b);
      append_le(out_, static_cast<int32_t>(twos_complement.size()));
    }
    out_ += twos_complement;
  }

  void floating(double value) {
    op('G');
    auto bits = std::bit_cast<uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8) op(static_cast<int>(bits >> shift & 0xff));
  }

  void integers(IntArrayRef list) {
    if (list.empty()) return op(')');
    if (list.size() > 3) op('(');
    for (int64_t value : list) integer(value);
    op(list.size() > 3 ? 't' : 0x84 + static_cast<int>(list.size()));
  }

  void boolean(bool value) { op(value ? 0x88 : 0x89); }

  void empty_ordered_dict() {
    global("collections", "OrderedDict");
    op(')');
    op('R');
  }

  // ---- memo of shared things
  // ----------------------------------------------------------------------------------------------

  /// True when the value was written before; then a reference to it is written.
  bool written(const Value& value) {
    auto found = memo_.find(value.identity());
    if (found == memo_.end()) return false;
    get(found->second);
    return true;
  }
  void remember(const Value& value) {
    memo_.emplace(value.identity(), next_memo_);
    put(next_memo_++);
  }

  // ---- values
  // -------------------------------------------------------------------------------------------------------------

  [[noreturn]] void fail(const std::string& what) const {
    std::string place = "the value";
    constexpr size_t kShownEnd = 10;  // keys at both ends of a long path
    for (size_t i = 0; i < path_.size(); ++i) {
      if (i == kShownEnd && path_.size() > 2 * kShownEnd) {
        place += fmt::format("[... {} more ...]", path_.size() - 2 * kShownEnd);
        i = path_.size() - kShownEnd;
      }
      place += fmt::format("[{}]", path_[i] ? path_[i]->str(80) : "...");
    }
    TERN_THROW(ValueError, "{} cannot be saved: {}", place, what);
  }

  struct Nested {
    Nested(Writer& writer, const Value* key) : path(writer.path_) {
      path.push_back(key);
      if (path.size() > kMaxDepth) writer.fail(fmt::format("it is nested deeper than {}", kMaxDepth));
    }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    ~Nested() { path.pop_back(); }
    std::vector<const Value*>& path;
  };

  void write_at(const Value& value, const Value* key) {
    Nested nested(*this, key);
    write(value);
  }

  void write(const Value& value) {
    switch (value.kind()) {
      case ValueKind::None:
        detail::check_alive(value);
        return op('N');
      case ValueKind::Bool:
        return boolean(value.as_bool());
      case ValueKind::Int:
        return integer(value.as_int());
      case ValueKind::BigInt:
        return long_integer(value.integer_bytes());
      case ValueKind::Float:
        return floating(value.as_float());
      case ValueKind::Complex: {
        auto number = value.as_complex();
        global("__builtin__", "complex");
        floating(number.real());
        floating(number.imag());
        op(0x86);
        return op('R');
      }
      case ValueKind::Str:
        return text(value.as_str());
      case ValueKind::Bytes:
        return bytes(value.as_bytes());
      case ValueKind::ByteArray:
        global("__builtin__", "bytearray");
        text(latin1_to_utf8(value.as_bytes()));
        text("latin-1");
        op(0x86);
        return op('R');
      case ValueKind::DType:
        return global("torch", name(value.as_dtype()));
      case ValueKind::Device:
        return device(value.as_device());
      case ValueKind::Layout:
        global("torch.serialization", "_get_layout");
        text(value.as_layout());
        op(0x85);
        return op('R');
      case ValueKind::Global:
        return named(value.as_global());
      case ValueKind::Range: {
        RangeValue range = value.as_range();
        global("__builtin__", "xrange");
        integers({range.start, range.stop, range.step});
        return op('R');
      }
      default:
        break;
    }
    if (written(value)) return;
    switch (value.kind()) {
      case ValueKind::Tensor:
        return tensor(value);
      case ValueKind::RawStorage:
        return storage(value);
      case ValueKind::List:
        op(']');
        remember(value);
        return items(value.as_list());
      case ValueKind::Tuple:
        return tuple(value);
      case ValueKind::Size:
        global("torch", "Size");
        sequence(value.as_sequence());
        op(0x85);
        op('R');
        return remember(value);
      case ValueKind::Slice:
        global("__builtin__", "slice");
        sequence(value.as_slice());
        op('R');
        return remember(value);
      case ValueKind::Dict:
        return dict(value);
      case ValueKind::Set:
      case ValueKind::FrozenSet: {
        global("__builtin__", value.kind() == ValueKind::Set ? "set" : "frozenset");
        op(']');
        std::vector<Value> members;
        for (const auto& entry : value.as_set()) members.push_back(entry.key);
        items(members);
        op(0x85);
        op('R');
        return remember(value);
      }
      case ValueKind::Object:
        return object(value);
      default:
        fail("its kind is unknown");
    }
  }

  void named(const GlobalName& name) {
    if (name.module.find('\n') != std::string::npos || name.name.find('\n') != std::string::npos ||
        name.name.empty() || !is_utf8(name.module) || !is_utf8(name.name))
      fail("the name of a class or function has a line end, is empty or not UTF-8");
    qualified(name.module, name.name);
  }

  /// A class in a class by getattr, as Python does before protocol 4, whose opcode knows no dotted names.
  void qualified(std::string_view module, std::string_view name) {
    const size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || dot == 0 || dot + 1 == name.size()) return global(module, name);
    const std::string key = fmt::format("{}\n{}", module, name);
    if (auto found = globals_.find(key); found != globals_.end()) return get(found->second);
    global("__builtin__", "getattr");
    qualified(module, name.substr(0, dot));
    text(name.substr(dot + 1));
    op(0x86);
    op('R');
    globals_.emplace(key, next_memo_);
    put(next_memo_++);
  }

  void bytes(const std::string& data) {
    if (data.empty()) {
      global("__builtin__", "bytes");
      op(')');
      return op('R');
    }
    global("_codecs", "encode");
    text(latin1_to_utf8(data));
    text("latin1");
    op(0x86);
    op('R');
  }

  void device(Device device) {
    global("torch", "device");
    text(device.is_cpu() ? "cpu" : "cuda");
    bool numbered = device.is_cuda() && device.index >= 0;
    if (numbered) integer(device.index);
    op(numbered ? 0x86 : 0x85);
    op('R');
  }

  /// APPEND for one item, APPENDS for up to 1000 at a time.
  void items(const std::vector<Value>& list) {
    for (size_t first = 0; first < list.size(); first += kBatch) {
      size_t last = std::min(list.size(), first + kBatch);
      bool single = last - first == 1;
      if (!single) op('(');
      for (size_t i = first; i < last; ++i) {
        Value position(i);
        write_at(list[i], &position);
      }
      op(single ? 'a' : 'e');
    }
  }

  template <class Entries>
  void entries(const Entries& dict) {
    size_t left = dict.size(), in_batch = 0;
    bool single = false;
    for (const auto& [key, value] : dict) {
      if (in_batch == 0) {
        single = left == 1;
        if (!single) op('(');
      }
      write_at(key, nullptr);
      write_at(value, &key);
      --left;
      if (++in_batch == kBatch || left == 0) {
        op(single ? 's' : 'u');
        in_batch = 0;
      }
    }
  }

  void dict(const Value& value) {
    const ValueDict& entries_of = value.as_dict();
    if (entries_of.is_ordered_dict())
      empty_ordered_dict();
    else
      op('}');
    remember(value);
    entries(entries_of);
    if (entries_of.attributes().is_none()) return;
    write_at(entries_of.attributes(), nullptr);
    op('b');
  }

  /// A tuple without a memo.
  void sequence(const std::vector<Value>& list) {
    if (list.empty()) return op(')');
    if (list.size() > 3) op('(');
    for (size_t i = 0; i < list.size(); ++i) {
      Value position(i);
      write_at(list[i], &position);
    }
    op(list.size() > 3 ? 't' : 0x84 + static_cast<int>(list.size()));
  }

  /// When a tuple contains itself by way of a list or dict, it was written while its items were: the items
  /// are dropped then.
  void tuple(const Value& value) {
    const std::vector<Value>& list = value.as_tuple();
    if (list.empty()) return op(')');
    bool marked = list.size() > 3;
    if (marked) op('(');
    for (size_t i = 0; i < list.size(); ++i) {
      Value position(i);
      write_at(list[i], &position);
    }
    if (memo_.contains(value.identity())) {
      if (marked)
        op('1');
      else
        out_.append(list.size(), '0');
      written(value);
      return;
    }
    op(marked ? 't' : 0x84 + static_cast<int>(list.size()));
    remember(value);
  }

  void object(const Value& value) {
    const ValueObject& object = value.as_object();
    if (!object.args.is_tuple()) fail("the arguments of an object are no tuple");
    if (object.kwargs.is_none()) {
      write_at(object.callee, nullptr);
      sequence(object.args.as_tuple());
      op(object.made == ValueObject::Made::New ? 0x81 : 'R');
    } else {
      global("copy_reg", "__newobj_ex__");
      write_at(object.callee, nullptr);
      sequence(object.args.as_tuple());
      write_at(object.kwargs, nullptr);
      op(0x87);
      op('R');
    }
    remember(value);
    items(object.items);
    entries(object.entries);
    if (!object.has_state) return;
    write_at(object.state, nullptr);
    op('b');
  }

  // ---- tensors
  // ------------------------------------------------------------------------------------------------------------

  /// ('storage', class, key, location, numel) BINPERSID; gives back what of the storage has this key.
  ElementRange storage_id(const Storage& storage, DType dtype, ElementRange range) {
    std::string_view class_name = storage_class(dtype);
    StorageReference reference = refer_(storage, dtype, range);
    op('(');
    text("storage");
    if (class_name.empty())
      global("torch.storage", "UntypedStorage");
    else
      global("torch", class_name);
    out_ += 'X';  // not memoised: each key is written once
    append_le(out_, static_cast<uint32_t>(reference.key.size()));
    out_ += reference.key;
    text(reference.location);
    integer(class_name.empty() ? reference.nbytes : reference.part.end - reference.part.begin);
    if (stream_) op('N');  // the storage is no view of another
    op('t');
    op('Q');
    return reference.part;
  }

  void storage(const Value& value) {
    const StorageValue& held = value.as_storage();
    if (!held.storage) fail("it is an undefined storage");
    if (held.offset != 0) fail("it is a part of a storage without a tensor");
    storage_id(held.storage, held.dtype,
               {0, static_cast<int64_t>(held.storage->nbytes() / itemsize(held.dtype))});
    remember(value);
  }

  /// The elements of its storage between the first and the last that the tensor uses.
  static ElementRange extent(const Tensor& tensor) {
    const int64_t first = tensor.storage_offset();
    if (tensor.numel() == 0) return {first, first};
    int64_t last = first;
    for (int64_t d = 0; d < tensor.dim(); ++d)
      last += (tensor.shape()[static_cast<size_t>(d)] - 1) * tensor.strides()[static_cast<size_t>(d)];
    return {first, last + 1};
  }

  void tensor(const Value& value) {
    const Tensor tensor = value.as_tensor();
    if (!tensor.defined()) fail("it is an undefined tensor");
    if (tensor.storage()->is_uninitialized())
      fail("it is an uninitialized parameter of a lazy layer: call the module with one batch first");
    if (is_quantized(tensor.dtype()))
      fail(fmt::format("it is a tensor of {} without its scale: save the object that it came from",
                       name(tensor.dtype())));
    const bool typed = !storage_class(tensor.dtype()).empty();
    // PyTorch fails to read a tensor of these dtypes that requires gradients, but not a parameter.
    const bool as_parameter = !typed && tensor.requires_grad();
    if (as_parameter) {
      global("torch._utils", "_rebuild_parameter");
      op('(');
    }
    global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    op('(');
    const ElementRange part = storage_id(tensor.storage(), tensor.dtype(), extent(tensor));
    // An empty tensor may be said to lie anywhere.
    integer(std::clamp<int64_t>(tensor.storage_offset() - part.begin, 0, part.end - part.begin));
    integers(tensor.shape());
    integers(tensor.strides());
    boolean(tensor.requires_grad() && !as_parameter);
    empty_ordered_dict();  // backward hooks, which are not saved
    if (!typed) global("torch", name(tensor.dtype()));
    op('t');
    op('R');
    if (as_parameter) {
      boolean(true);
      empty_ordered_dict();
      op('t');
      op('R');
    }
    remember(value);
  }

  struct TextHash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  const ReferStorage& refer_;
  const bool stream_;
  std::string out_;
  std::string scratch_;
  uint32_t next_memo_ = 0;
  std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>> texts_;
  std::unordered_map<std::string, uint32_t> globals_;
  std::unordered_map<const void*, uint32_t> memo_;
  std::vector<const Value*> path_;
};

}  // namespace

std::string_view storage_class(DType dtype) noexcept {
  switch (dtype) {
    case DType::Float64:
      return "DoubleStorage";
    case DType::Float32:
      return "FloatStorage";
    case DType::Float16:
      return "HalfStorage";
    case DType::BFloat16:
      return "BFloat16Storage";
    case DType::Int64:
      return "LongStorage";
    case DType::Int32:
      return "IntStorage";
    case DType::Int16:
      return "ShortStorage";
    case DType::Int8:
      return "CharStorage";
    case DType::UInt8:
      return "ByteStorage";
    case DType::Bool:
      return "BoolStorage";
    case DType::Complex64:
      return "ComplexFloatStorage";
    case DType::Complex128:
      return "ComplexDoubleStorage";
    case DType::QUInt8:
      return "QUInt8Storage";
    case DType::QInt8:
      return "QInt8Storage";
    case DType::QInt32:
      return "QInt32Storage";
    case DType::QUInt4x2:
      return "QUInt4x2Storage";
    case DType::QUInt2x4:
      return "QUInt2x4Storage";
    default:
      return {};
  }
}

std::string write_pickle(const Value& value, const ReferStorage& refer, bool stream) {
  return Writer(refer, stream).run(value);
}

}  // namespace tern::io
