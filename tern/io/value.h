// Value: the tree of plain Python values that a checkpoint is. Containers are shared by reference as in
// Python, so that shared and cyclic structure survives. Reading and writing of files is in serialize.h.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tern/core/state_dict.h"
#include "tern/core/tensor.h"
#include "tern/io/hash_index.h"

namespace tern {

class Value;
class ValueDict;
class ValueItem;
struct ValueObject;

enum class ValueKind : uint8_t {
  None,
  Bool,
  Int,
  BigInt,
  Float,
  Complex,
  Str,
  Bytes,
  ByteArray,
  Tensor,
  RawStorage,
  List,
  Tuple,
  Size,
  Dict,
  Set,
  FrozenSet,
  Slice,
  Range,
  DType,
  Device,
  Layout,
  Global,
  Object,
};
/// Python's name of the kind: "int", "dict", "torch.Size".
std::string_view name(ValueKind kind) noexcept;

/// The name of a class or function, as a value: it is never looked up or called.
struct GlobalName {
  std::string module;
  std::string name;
  /// What a reader knows about this name; null for unknown ones.
  const void* known = nullptr;

  std::string full() const { return module + "." + name; }
  bool operator==(const GlobalName& other) const { return module == other.module && name == other.name; }
};

/// A storage without a tensor, and what it was said to hold.
struct StorageValue {
  Storage storage;
  DType dtype = DType::UInt8;
  int64_t numel = 0;   ///< in elements of dtype
  int64_t offset = 0;  ///< where it begins, for a part of a storage
};

/// Python's range, in 64 bits.
struct RangeValue {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  bool operator==(const RangeValue&) const = default;
};

/// For types outside of io: a specialization for T makes every T a Value and, read back, a Value a T. It has
/// two functions, `static Value to_value(const T&)` and `static T from_value(const Value&)`, which throws
/// TypeError or IndexError for a value that is none. train/state_value.h has those of the states of
/// optimizers and schedules.
template <class T>
struct ValueConverter;

namespace detail {

struct DictNode;

/// Types that have a ValueConverter.
template <class T>
concept Convertible = requires {
  sizeof(ValueConverter<T>);
};

/// Base of what a Value refers to. Only containers have children.
struct ValueNode {
  explicit ValueNode(ValueKind kind_) : kind(kind_) {}
  ValueNode(const ValueNode&) = delete;
  ValueNode& operator=(const ValueNode&) = delete;
  virtual ~ValueNode() = default;
  const ValueKind kind;
};

/// Destroys the values one after the other, however deep they are nested.
void release_values(std::vector<Value>&& values) noexcept;

/// The typed reads that Value and ValueItem share. Each throws TypeError, naming the path, for a value of
/// another kind. References stay valid as long as the tree does. Read from a temporary, containers and texts
/// come as copies (of handles: what is in them is shared), so that `for (const Value& x :
/// load(file).as_list())` is safe; they are const, since a change to them would be lost. `v["losses"]` is a
/// temporary too: push_back() changes what it names.
template <class Self>
class ValueReader {
 public:
  bool as_bool() const;
  /// An int, a bool, or a tensor of one element of such a dtype. Throws TypeError also when it does not fit
  /// 64 bits.
  int64_t as_int() const;
  /// A float, int, bool, or a tensor of one element.
  double as_float() const;
  std::complex<double> as_complex() const;
  const std::string& as_str() const&;
  const std::string as_str() const&&;
  /// bytes or bytearray.
  const std::string& as_bytes() const&;
  const std::string as_bytes() const&&;
  /// A tensor, or an object that stands for one (a NumPy array, a parameter with attributes).
  Tensor as_tensor() const;
  std::vector<Value>& as_list() const&;
  const std::vector<Value> as_list() const&&;
  const std::vector<Value>& as_tuple() const&;
  const std::vector<Value> as_tuple() const&&;
  /// A list, a tuple or a torch.Size.
  const std::vector<Value>& as_sequence() const&;
  const std::vector<Value> as_sequence() const&&;
  /// A dict or an OrderedDict.
  ValueDict& as_dict() const&;
  const ValueDict as_dict() const&&;
  /// The members of a set or frozenset, in order of insertion.
  const ValueDict& as_set() const&;
  const ValueDict as_set() const&&;
  DType as_dtype() const;
  Device as_device() const;
  std::vector<int64_t> as_size() const;
  ValueObject& as_object() const&;
  const ValueObject as_object() const&&;
  /// A dict of names and tensors (with its `_metadata` when there is one).
  StateDict as_state_dict() const;

  /// Appends to a list, which is changed for all who share it: `v["losses"].push_back(0.5)`.
  void push_back(Value item) const;

  /// By its ValueConverter: `optimizer.load_state_dict(v["optimizer"])`.
  template <Convertible T>
  operator T() const {
    return ValueConverter<T>::from_value(self().resolve());
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

template <class T>
concept PlainInteger = std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>;

}  // namespace detail

/// One value. Small ones are held directly, containers and texts by reference: a copy of a list is the same
/// list. `Value v = {{"epoch", 3}, {"model", net.state_dict()}};` makes a dict, `Value::list({x, 3, "text"})`
/// a list: braces of values alone are neither.
class Value : public detail::ValueReader<Value> {
 public:
  Value() noexcept = default;
  Value(std::nullptr_t) noexcept {}
  template <class T>
  requires std::is_same_v<T, bool> Value(T value) : data_(value) {}
  template <detail::PlainInteger T>
  Value(T value) {
    if constexpr (sizeof(T) == 8 && std::is_unsigned_v<T>)
      *this = from_unsigned(value);
    else
      data_ = static_cast<int64_t>(value);
  }
  template <class T>
  requires std::is_floating_point_v<T> Value(T value) : data_(static_cast<double>(value)) {}
  template <class T>
  Value(std::complex<T> value) : data_(std::complex<double>(value)) {}
  /// A str. Throws ValueError for a null pointer, which is not taken for None.
  Value(const char* text);
  template <class T>
  requires std::is_same_v<T, std::string_view> Value(T text) : Value(std::string(text)) {}
  template <class T>
  requires std::is_same_v<T, std::string> Value(T text) : Value(of_node(std::move(text))) {}
  Value(Tensor tensor) : data_(std::move(tensor)) {}
  Value(DType dtype) : data_(dtype) {}
  template <class T>
  requires std::is_same_v<T, Device> Value(T device) : data_(device) {}
  Value(char) = delete;
  /// An OrderedDict; the versions become its `_metadata`.
  Value(const StateDict& dict);
  /// A list.
  template <class T>
  Value(const std::vector<T>& items) : Value(list(std::vector<Value>(items.begin(), items.end()))) {}
  /// A torch.Size, as x.shape() is in Python.
  template <class T>
  requires std::is_same_v<T, Shape> || std::is_same_v<T, IntArrayRef> Value(const T& sizes)
      : Value(size(std::vector<int64_t>(sizes.begin(), sizes.end()))) {}
  /// None where there is nothing.
  template <class T>
  Value(const std::optional<T>& item) {
    if (item) *this = Value(*item);
  }
  /// By its ValueConverter.
  template <detail::Convertible T>
  Value(const T& object) : Value(ValueConverter<T>::to_value(object)) {}
  /// A dict. Throws TypeError for a tensor as key, which inner lists of tensors would become: those are
  /// written `Value::list({x, y})`.
  Value(std::initializer_list<std::pair<Value, Value>> entries);
  Value(ValueDict dict);
  /// Given as objects of these types: braces never mean one.
  template <class T>
  requires std::is_same_v<T, GlobalName> || std::is_same_v<T, StorageValue> ||
      std::is_same_v<T, ValueObject> || std::is_same_v<T, RangeValue>
      Value(T value) : Value(of_node(std::move(value))) {}

  static Value list(std::vector<Value> items = {});
  static Value tuple(std::vector<Value> items = {});
  static Value size(std::vector<int64_t> sizes);
  static Value dict();
  static Value ordered_dict();
  static Value set(const std::vector<Value>& members = {});
  static Value frozen_set(const std::vector<Value>& members = {});
  static Value bytes(std::string data);
  static Value byte_array(std::string data);
  static Value slice(Value start, Value stop, Value step);
  /// From text like "torch.strided".
  static Value layout(std::string name);
  /// A whole number of any length, two's complement, little end first; an int where it fits 64 bits.
  static Value integer(std::string_view twos_complement);
  /// From decimal digits with an optional sign; an int where it fits 64 bits. Throws ValueError.
  static Value integer_from_decimal(std::string_view digits);

  ValueKind kind() const noexcept;
  bool is_none() const noexcept { return kind() == ValueKind::None; }
  bool is_bool() const noexcept { return kind() == ValueKind::Bool; }
  /// An int of any length; not a bool.
  bool is_int() const noexcept { return kind() == ValueKind::Int || kind() == ValueKind::BigInt; }
  bool is_float() const noexcept { return kind() == ValueKind::Float; }
  bool is_str() const noexcept { return kind() == ValueKind::Str; }
  bool is_tensor() const noexcept { return kind() == ValueKind::Tensor; }
  bool is_list() const noexcept { return kind() == ValueKind::List; }
  bool is_tuple() const noexcept { return kind() == ValueKind::Tuple; }
  bool is_dict() const noexcept { return kind() == ValueKind::Dict; }
  bool is_object() const noexcept { return kind() == ValueKind::Object; }

  const GlobalName& as_global() const;
  const StorageValue& as_storage() const;
  RangeValue as_range() const;
  /// Start, stop, step.
  const std::vector<Value>& as_slice() const;
  const std::string& as_layout() const;
  /// The two's-complement bytes of an int of any length, little end first, as short as possible.
  std::string integer_bytes() const;

  /// A dict's entry by key, a sequence's by position (counted from the end when negative), an object's
  /// attribute. Nothing is looked up until the entry is read, so that `v["new"] = 3` inserts. Reading throws
  /// IndexError naming the path.
  ValueItem operator[](Value key) const;
  /// The same without a path in errors; null when absent.
  const Value* find(const Value& key) const;
  bool contains(const Value& key) const { return find(key) != nullptr; }
  /// Entries of a container, bytes of a text. Throws TypeError for other kinds.
  size_t length() const;

  /// Same object: the same container, tensor body or plain value.
  bool is_same(const Value& other) const noexcept;
  /// A number that tells shared objects apart; 0 for values that are held directly.
  const void* identity() const noexcept;

  /// Python's text for it, cut after about `max_length` bytes; tensors by dtype and shape.
  std::string str(size_t max_length = 1000) const;

  /// Python's ==: 1, True and 1.0 are equal. Tensors are equal when they are the same tensor.
  /// Throws ValueError when the values are nested deeper than 1000 or have more than 10 million parts.
  bool operator==(const Value& other) const;
  /// Of equal values equal; of tensors and objects by identity. Throws TypeError for a list, dict, set or
  /// bytearray: they cannot be keys.
  size_t hash() const;

  /// Turns the references that close a cycle into ones that do not own, so that the tree is freed with its
  /// root; returns how many. Such a reference must not be used after the root is gone (reading it then throws
  /// ValueError). Throws CheckpointError when something is nested deeper than `max_depth`.
  size_t break_cycles(size_t max_depth = 1000);

  // For the readers and writers of formats.
  const Value& resolve() const noexcept { return *this; }
  std::string where() const { return "the value"; }
  template <class Node>
  Node* node() const {
    detail::ValueNode* base = node_pointer();
    return base && Node::holds(base->kind) ? static_cast<Node*>(base) : nullptr;
  }
  /// The directly held value of type T, or null.
  template <class T>
  const T* plain() const noexcept {
    return std::get_if<T>(&data_);
  }
  explicit Value(std::shared_ptr<detail::ValueNode> node) : data_(std::move(node)) {}

 private:
  friend void detail::release_values(std::vector<Value>&&) noexcept;
  static Value from_unsigned(uint64_t value);
  static Value of_node(std::string text);
  static Value of_node(GlobalName name);
  static Value of_node(StorageValue storage);
  static Value of_node(ValueObject object);
  static Value of_node(RangeValue range);
  detail::ValueNode* node_pointer() const;
  bool owns_node() const noexcept {
    return std::holds_alternative<std::shared_ptr<detail::ValueNode>>(data_);
  }

  std::variant<std::monostate, bool, int64_t, double, std::complex<double>, Tensor, DType, Device,
               std::shared_ptr<detail::ValueNode>, std::weak_ptr<detail::ValueNode>>
      data_;
};

/// An entry of a container, found when it is read. It keeps the container alive.
class ValueItem : public detail::ValueReader<ValueItem> {
 public:
  ValueItem(Value container, Value key, std::string path)
      : container_(std::move(container)), key_(std::move(key)), path_(std::move(path)) {}

  /// The entry itself. Throws IndexError when there is none, TypeError when the container has no entries.
  const Value& resolve() const;
  operator Value() const { return resolve(); }
  const std::string& where() const noexcept { return path_; }
  bool exists() const;
  ValueKind kind() const { return resolve().kind(); }
  bool is_none() const { return resolve().is_none(); }
  size_t length() const { return resolve().length(); }
  std::string str(size_t max_length = 1000) const { return resolve().str(max_length); }
  ValueItem operator[](Value key) const;
  /// Inserts or replaces the entry of a dict, replaces the entry of a list, sets an object's attribute.
  const ValueItem& operator=(Value value) const;
  ValueItem(const ValueItem&) = default;
  const ValueItem& operator=(const ValueItem& other) const { return *this = Value(other.resolve()); }

 private:
  Value container_;
  Value key_;
  std::string path_;
};

/// A dict: entries in order of insertion, found by Python's equality. Also an OrderedDict, which may have
/// attributes.
class ValueDict {
 public:
  struct Entry {
    Value key;
    Value value;
  };
  using const_iterator = std::vector<Entry>::const_iterator;

  ValueDict() = default;
  explicit ValueDict(bool is_ordered_dict) : is_ordered_dict_(is_ordered_dict) {}

  size_t size() const noexcept { return entries_.size(); }
  bool empty() const noexcept { return entries_.empty(); }
  const_iterator begin() const noexcept { return entries_.begin(); }
  const_iterator end() const noexcept { return entries_.end(); }
  const Entry& entry(size_t position) const { return entries_[position]; }

  const Value* find(const Value& key) const;
  Value* find(const Value& key) { return const_cast<Value*>(std::as_const(*this).find(key)); }
  bool contains(const Value& key) const { return find(key) != nullptr; }
  /// Inserts at the end; a key that is there keeps its position and gets the new value. Throws TypeError for
  /// a key that cannot be one.
  void set(const Value& key, Value value);
  /// True when the key was there. Linear in the size.
  bool erase(const Value& key);
  void reserve(size_t count);

  bool is_ordered_dict() const noexcept { return is_ordered_dict_; }
  /// The attributes of an OrderedDict (`_metadata`), None when there are none.
  const Value& attributes() const noexcept { return attributes_; }
  void set_attributes(Value attributes) { attributes_ = std::move(attributes); }

 private:
  friend class Value;
  friend struct detail::DictNode;
  size_t position_of(const Value& key, size_t hash) const;

  std::vector<Entry> entries_;
  std::vector<size_t> hashes_;
  /// Empty while the dict is so small that looking through the hashes is faster.
  io::HashIndex index_;
  bool is_ordered_dict_ = false;
  Value attributes_;
};

/// An instance of a class that is not run: what the file says about how to build it. `payload` is the tensor
/// it stands for where that is known (a NumPy array, a parameter with attributes of its own).
struct ValueObject {
  enum class Made : uint8_t {
    Called,  ///< callee(*args)
    New,     ///< callee.__new__(callee, *args, **kwargs)
  };
  Value callee;  ///< a GlobalName, or the object that was called
  Made made = Made::Called;
  Value args;    ///< a tuple
  Value kwargs;  ///< a dict or None
  Value state;   ///< None, a dict of attributes, or what __setstate__ would get
  bool has_state = false;
  std::vector<Value> items;               ///< what was appended to it, for subclasses of list and set
  std::vector<ValueDict::Entry> entries;  ///< what was put into it, for subclasses of dict
  Value payload;

  /// "module.Class".
  std::string class_name() const;
  /// The attribute of this name in the state, or null.
  const Value* attribute(std::string_view name) const;
};

}  // namespace tern
