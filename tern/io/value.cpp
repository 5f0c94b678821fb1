// Making and reading of values, entries by path, dicts. Text, equality and hashes are in value_compare.cpp
// and value_text.cpp.
#include "tern/io/value.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tern/base/check.h"
#include "tern/base/env.h"
#include "tern/io/value_nodes.h"

namespace tern {

using namespace detail;

std::string_view name(ValueKind kind) noexcept {
  static constexpr std::string_view names[] = {"NoneType",
                                               "bool",
                                               "int",
                                               "int",
                                               "float",
                                               "complex",
                                               "str",
                                               "bytes",
                                               "bytearray",
                                               "Tensor",
                                               "torch storage",
                                               "list",
                                               "tuple",
                                               "torch.Size",
                                               "dict",
                                               "set",
                                               "frozenset",
                                               "slice",
                                               "range",
                                               "torch.dtype",
                                               "torch.device",
                                               "torch.layout",
                                               "class or function",
                                               "object"};
  return names[static_cast<size_t>(kind)];
}

namespace {

/// Shortens a two's-complement number to the fewest bytes that keep its sign.
std::string_view trimmed(std::string_view bytes) {
  while (bytes.size() > 1) {
    auto last = static_cast<uint8_t>(bytes.back());
    bool next_negative = static_cast<uint8_t>(bytes[bytes.size() - 2]) >= 0x80;
    if ((last == 0 && !next_negative) || (last == 0xff && next_negative))
      bytes.remove_suffix(1);
    else
      break;
  }
  return bytes;
}

int64_t small_integer(std::string_view bytes) {
  uint64_t value = !bytes.empty() && static_cast<uint8_t>(bytes.back()) >= 0x80 ? ~uint64_t{0} : 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return static_cast<int64_t>(value);
}

std::string key_text(const Value& key) { return key.str(80); }

}  // namespace

namespace detail {

DictNode::~DictNode() {
  if (dict.empty() && dict.attributes_.is_none()) return;
  std::vector<Value> children;
  children.reserve(2 * dict.size() + 1);
  each_child([&](Value& child) { children.push_back(std::move(child)); });
  release_values(std::move(children));
}

ObjectNode::~ObjectNode() {
  std::vector<Value> children;
  each_child([&](Value& child) { children.push_back(std::move(child)); });
  release_values(std::move(children));
}

void release_values(std::vector<Value>&& values) noexcept {
  using NodePtr = std::shared_ptr<ValueNode>;
  static thread_local std::vector<NodePtr>* pending = nullptr;
  std::vector<NodePtr> work;
  std::vector<NodePtr>& list = pending ? *pending : work;
  for (Value& value : values)
    if (auto* node = std::get_if<NodePtr>(&value.data_)) list.push_back(std::move(*node));
  if (pending) return;
  pending = &work;
  while (!work.empty()) {
    NodePtr last = std::move(work.back());
    work.pop_back();
  }
  pending = nullptr;
}

std::string describe(const Value& value) {
  ValueKind kind = value.kind();
  if (kind == ValueKind::None) return "None";
  if (kind == ValueKind::Object) return fmt::format("an object of class {}", value.as_object().class_name());
  if (kind == ValueKind::Global) return fmt::format("the class or function {}", value.as_global().full());
  std::string_view text = name(kind);
  return fmt::format("{} {}", std::string_view("aeio").find(text[0]) == std::string_view::npos ? "a" : "an",
                     text);
}

void negate(std::string& twos_complement) {
  unsigned carry = 1;
  for (char& byte : twos_complement) {
    carry += static_cast<uint8_t>(~static_cast<uint8_t>(byte));
    byte = static_cast<char>(carry & 0xff);
    carry >>= 8;
  }
}

double nearest_float(std::string_view twos_complement) {
  std::string magnitude(trimmed(twos_complement));
  const bool negative = !magnitude.empty() && static_cast<uint8_t>(magnitude.back()) >= 0x80;
  if (negative) negate(magnitude);
  while (!magnitude.empty() && magnitude.back() == '\0') magnitude.pop_back();
  // The first 64 bits and whether more are set behind them say how to round 53 of them.
  uint64_t bits = 0;
  size_t rest = magnitude.size();
  while (rest > 0 && bits >> 56 == 0) bits = bits << 8 | static_cast<uint8_t>(magnitude[--rest]);
  if (magnitude.find_first_not_of('\0') < rest) bits |= 1;
  constexpr size_t kBeyondAll = 1024;
  const double value =
      std::ldexp(static_cast<double>(bits), static_cast<int>(8 * std::min(rest, kBeyondAll)));
  return negative ? -value : value;
}

Value whole_number(double value) {
  if (value >= -0x1p63 && value < 0x1p63) return static_cast<int64_t>(value);
  int exponent = 0;
  // Beyond 2^63 the last of the 53 bits stands for 2^11 or more.
  auto mantissa = static_cast<uint64_t>(std::ldexp(std::frexp(std::fabs(value), &exponent), 53));
  const auto shift = static_cast<size_t>(exponent - 53);
  std::string bytes(shift / 8, '\0');
  for (mantissa <<= shift % 8; mantissa != 0; mantissa >>= 8)
    bytes.push_back(static_cast<char>(mantissa & 0xff));
  bytes.push_back('\0');
  if (value < 0) negate(bytes);
  return Value::integer(bytes);
}

}  // namespace detail

// ---- making
// -----------------------------------------------------------------------------------------------------------------

Value::Value(const char* text)
    : Value(std::string(given_text(
          text, "Value: the text is a null pointer (None is nullptr without a type, or Value())"))) {}
Value Value::of_node(std::string text) { return Value(std::make_shared<StrNode>(std::move(text))); }
Value Value::of_node(GlobalName name) { return Value(std::make_shared<GlobalNode>(std::move(name))); }
Value Value::of_node(StorageValue storage) {
  return Value(std::make_shared<StorageNode>(std::move(storage)));
}
Value Value::of_node(ValueObject object) { return Value(std::make_shared<ObjectNode>(std::move(object))); }
Value Value::of_node(RangeValue range) { return Value(std::make_shared<RangeNode>(range)); }
Value::Value(ValueDict dict) : Value(std::make_shared<DictNode>(ValueKind::Dict, std::move(dict))) {}

Value::Value(const StateDict& dict) {
  ValueDict entries(/*is_ordered_dict=*/true);
  entries.reserve(dict.size());
  for (const auto& [name, tensor] : dict) entries.set(name, tensor);
  if (!dict.versions().empty()) {
    ValueDict metadata(/*is_ordered_dict=*/true);
    for (const auto& [path, version] : dict.versions()) metadata.set(path, Value({{"version", version}}));
    entries.set_attributes(Value({{"_metadata", Value(std::move(metadata))}}));
  }
  *this = Value(std::move(entries));
}

Value::Value(std::initializer_list<std::pair<Value, Value>> entries) {
  ValueDict dict;
  for (const auto& [key, value] : entries) {
    TERN_CHECK(!key.is_tensor(), TypeError,
               "Value: braces make a dict here, and a tensor cannot be its key: a list of lists is "
               "Value::list({{Value::list({{x, y}}), Value::list({{y, x}})}})");
    dict.set(key, value);
  }
  *this = Value(std::move(dict));
}

Value Value::list(std::vector<Value> items) {
  return Value(std::make_shared<SequenceNode>(ValueKind::List, std::move(items)));
}
Value Value::tuple(std::vector<Value> items) {
  return Value(std::make_shared<SequenceNode>(ValueKind::Tuple, std::move(items)));
}
Value Value::size(std::vector<int64_t> sizes) {
  return Value(
      std::make_shared<SequenceNode>(ValueKind::Size, std::vector<Value>(sizes.begin(), sizes.end())));
}
Value Value::dict() { return Value(ValueDict()); }
Value Value::ordered_dict() { return Value(ValueDict(/*is_ordered_dict=*/true)); }

Value Value::set(const std::vector<Value>& members) {
  auto node = std::make_shared<DictNode>(ValueKind::Set, ValueDict());
  for (const Value& member : members) node->dict.set(member, Value());
  return Value(std::move(node));
}
Value Value::frozen_set(const std::vector<Value>& members) {
  auto node = std::make_shared<DictNode>(ValueKind::FrozenSet, ValueDict());
  for (const Value& member : members) node->dict.set(member, Value());
  return Value(std::move(node));
}
Value Value::bytes(std::string data) {
  return Value(std::make_shared<BytesNode>(ValueKind::Bytes, std::move(data)));
}
Value Value::byte_array(std::string data) {
  return Value(std::make_shared<BytesNode>(ValueKind::ByteArray, std::move(data)));
}
Value Value::slice(Value start, Value stop, Value step) {
  return Value(std::make_shared<SequenceNode>(
      ValueKind::Slice, std::vector<Value>{std::move(start), std::move(stop), std::move(step)}));
}
Value Value::layout(std::string name) { return Value(std::make_shared<LayoutNode>(std::move(name))); }

Value Value::integer(std::string_view twos_complement) {
  std::string_view bytes = trimmed(twos_complement);
  if (bytes.size() <= 8) return small_integer(bytes);
  return Value(std::make_shared<BigIntNode>(std::string(bytes)));
}

Value Value::integer_from_decimal(std::string_view digits) {
  std::string_view rest = digits;
  bool negative = !rest.empty() && rest[0] == '-';
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) rest.remove_prefix(1);
  TERN_CHECK(!rest.empty() && rest.find_first_not_of("0123456789") == std::string_view::npos, ValueError,
             "{} is not a whole number in decimal digits", Value(digits.substr(0, 50)).str());
  std::vector<uint32_t> words;  // the magnitude, little end first
  while (!rest.empty()) {       // nine digits at a time, which fit a word
    const std::string_view group = rest.substr(0, rest.size() % 9 == 0 ? 9 : rest.size() % 9);
    rest.remove_prefix(group.size());
    uint64_t carry = 0;
    for (char digit : group) carry = carry * 10 + static_cast<uint64_t>(digit - '0');
    for (uint32_t& word : words) {
      carry += uint64_t{word} * 1'000'000'000;
      word = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) words.push_back(static_cast<uint32_t>(carry));
  }
  std::string bytes;
  for (uint32_t word : words)
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(word >> shift & 0xff));
  bytes.push_back('\0');
  if (negative) negate(bytes);
  return integer(bytes);
}

Value Value::from_unsigned(uint64_t value) {
  if (value <= static_cast<uint64_t>(INT64_MAX)) return static_cast<int64_t>(value);
  std::string bytes(9, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i) & 0xff);
  return integer(bytes);
}

// ---- reading
// ----------------------------------------------------------------------------------------------------------------

ValueNode* Value::node_pointer() const {
  if (auto* owned = std::get_if<std::shared_ptr<ValueNode>>(&data_)) return owned->get();
  if (auto* weak = std::get_if<std::weak_ptr<ValueNode>>(&data_)) {
    auto locked = weak->lock();
    TERN_CHECK(locked, ValueError,
               "a value that closed a cycle was read after the tree it belongs to was destroyed: keep the "
               "root alive");
    return locked.get();
  }
  return nullptr;
}

ValueKind Value::kind() const noexcept {
  switch (data_.index()) {
    case 0:
      return ValueKind::None;
    case 1:
      return ValueKind::Bool;
    case 2:
      return ValueKind::Int;
    case 3:
      return ValueKind::Float;
    case 4:
      return ValueKind::Complex;
    case 5:
      return ValueKind::Tensor;
    case 6:
      return ValueKind::DType;
    case 7:
      return ValueKind::Device;
    case 8:
      return std::get<8>(data_)->kind;
    default: {
      auto locked = std::get<9>(data_).lock();
      return locked ? locked->kind : ValueKind::None;
    }
  }
}

const void* Value::identity() const noexcept {
  if (auto* owned = std::get_if<std::shared_ptr<ValueNode>>(&data_)) return owned->get();
  if (auto* weak = std::get_if<std::weak_ptr<ValueNode>>(&data_)) return weak->lock().get();
  if (auto* tensor = std::get_if<Tensor>(&data_)) return tensor->impl_ptr().get();
  return nullptr;
}

const GlobalName& Value::as_global() const {
  auto* found = node<GlobalNode>();
  TERN_CHECK(found, TypeError, "the value is {}, not a class or function", describe(*this));
  return found->name;
}

const StorageValue& Value::as_storage() const {
  auto* found = node<StorageNode>();
  TERN_CHECK(found, TypeError, "the value is {}, not a storage", describe(*this));
  return found->storage;
}

RangeValue Value::as_range() const {
  auto* found = node<RangeNode>();
  TERN_CHECK(found, TypeError, "the value is {}, not a range", describe(*this));
  return found->range;
}

const std::vector<Value>& Value::as_slice() const {
  auto* found = node<SequenceNode>();
  TERN_CHECK(found && found->kind == ValueKind::Slice, TypeError, "the value is {}, not a slice",
             describe(*this));
  return found->items;
}

const std::string& Value::as_layout() const {
  auto* found = node<LayoutNode>();
  TERN_CHECK(found, TypeError, "the value is {}, not a layout", describe(*this));
  return found->name;
}

std::string Value::integer_bytes() const {
  if (auto* big = node<BigIntNode>()) return big->bytes;
  auto value = static_cast<uint64_t>(as_int());
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i) & 0xff);
  return std::string(trimmed(bytes));
}

size_t Value::length() const {
  if (auto* sequence = node<SequenceNode>()) return sequence->items.size();
  if (auto* dict = node<DictNode>()) return dict->dict.size();
  if (auto* text = node<StrNode>()) return text->text.size();
  if (auto* bytes = node<BytesNode>()) return bytes->data.size();
  TERN_THROW(TypeError, "the value is {}: it has no length", describe(*this));
}

const Value* Value::find(const Value& key) const {
  if (auto* dict = node<DictNode>()) return dict->dict.find(key);
  if (auto* sequence = node<SequenceNode>()) {
    if (!key.is_int() && !key.is_bool()) return nullptr;
    if (key.kind() == ValueKind::BigInt) return nullptr;
    int64_t position = key.as_int();
    auto count = static_cast<int64_t>(sequence->items.size());
    if (position < 0) position += count;
    return position >= 0 && position < count ? &sequence->items[static_cast<size_t>(position)] : nullptr;
  }
  if (auto* object = node<ObjectNode>()) {
    if (key.is_str())
      if (const Value* attribute = object->object.attribute(key.as_str())) return attribute;
    for (const auto& entry : object->object.entries)
      if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

ValueItem Value::operator[](Value key) const {
  std::string path = fmt::format("value[{}]", key_text(key));
  return ValueItem(*this, std::move(key), std::move(path));
}

ValueItem ValueItem::operator[](Value key) const {
  std::string path = fmt::format("{}[{}]", path_, key_text(key));
  return ValueItem(resolve(), std::move(key), std::move(path));
}

bool ValueItem::exists() const { return container_.find(key_) != nullptr; }

const Value& ValueItem::resolve() const {
  if (const Value* found = container_.find(key_)) return *found;
  ValueKind kind = container_.kind();
  if (kind == ValueKind::Dict) {
    const ValueDict& dict = container_.as_dict();
    std::string keys;
    for (size_t i = 0; i < std::min<size_t>(dict.size(), 10); ++i)
      keys += (i ? ", " : "") + key_text(dict.entry(i).key);
    TERN_THROW(IndexError, "{}: there is no such key; {}", path_,
               dict.empty() ? "the dict is empty"
                            : fmt::format("the dict's {} keys are {}{}", dict.size(), keys,
                                          dict.size() > 10 ? ", ..." : ""));
  }
  if (kind == ValueKind::List || kind == ValueKind::Tuple || kind == ValueKind::Size)
    TERN_THROW(IndexError, "{}: no such position; the {} has {} items", path_, name(kind),
               container_.length());
  if (kind == ValueKind::Object)
    TERN_THROW(IndexError, "{}: the object of class {} has no such attribute", path_,
               container_.as_object().class_name());
  TERN_THROW(TypeError, "{}: what is to be indexed is {}, not a dict, list or tuple", path_,
             describe(container_));
}

const ValueItem& ValueItem::operator=(Value value) const {
  if (auto* dict = container_.node<DictNode>(); dict && dict->kind == ValueKind::Dict) {
    dict->dict.set(key_, std::move(value));
  } else if (container_.is_list() && exists()) {
    *const_cast<Value*>(container_.find(key_)) = std::move(value);
  } else if (container_.is_object() && key_.is_str() &&
             (container_.as_object().state.is_dict() || container_.as_object().state.is_none())) {
    ValueObject& object = container_.as_object();
    if (object.state.is_none()) object.state = Value::dict();
    object.has_state = true;
    object.state.as_dict().set(key_, std::move(value));
  } else if (container_.is_list()) {
    TERN_THROW(IndexError, "{}: no such position; the list has {} items", path_, container_.length());
  } else {
    TERN_THROW(TypeError, "{}: entries of {} cannot be set", path_, describe(container_));
  }
  return *this;
}

// ---- dicts and objects
// ------------------------------------------------------------------------------------------------------

namespace {
/// Up to this size a walk over the hashes is as fast as an index.
constexpr size_t kUnindexed = 12;
}  // namespace

size_t ValueDict::position_of(const Value& key, size_t hash) const {
  auto same = [&](size_t position) {
    return hashes_[position] == hash &&
           (entries_[position].key.is_same(key) || entries_[position].key == key);
  };
  if (index_.empty()) {
    for (size_t i = 0; i < entries_.size(); ++i)
      if (same(i)) return i;
  } else {
    size_t found = index_.find(hash, same);
    if (found != io::HashIndex::kNone) return found;
  }
  return entries_.size();
}

const Value* ValueDict::find(const Value& key) const {
  size_t position = position_of(key, key.hash());
  return position < entries_.size() ? &entries_[position].value : nullptr;
}

void ValueDict::set(const Value& key, Value value) {
  size_t hash = key.hash();
  size_t position = position_of(key, hash);
  if (position < entries_.size()) {
    entries_[position].value = std::move(value);
    return;
  }
  entries_.push_back({key, std::move(value)});
  hashes_.push_back(hash);
  if (!index_.empty()) {
    index_.insert(hash, position);
  } else if (entries_.size() > kUnindexed) {
    for (size_t i = 0; i < entries_.size(); ++i) index_.insert(hashes_[i], i);
  }
}

bool ValueDict::erase(const Value& key) {
  size_t position = position_of(key, key.hash());
  if (position == entries_.size()) return false;
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(position));
  hashes_.erase(hashes_.begin() + static_cast<std::ptrdiff_t>(position));
  index_.clear();
  if (entries_.size() > kUnindexed)
    for (size_t i = 0; i < entries_.size(); ++i) index_.insert(hashes_[i], i);
  return true;
}

void ValueDict::reserve(size_t count) {
  entries_.reserve(count);
  hashes_.reserve(count);
}

std::string ValueObject::class_name() const {
  if (callee.kind() == ValueKind::Global) return callee.as_global().full();
  return "(result of a call)";
}

const Value* ValueObject::attribute(std::string_view name) const {
  Value key(name);
  if (state.is_dict()) return state.find(key);
  if (!state.is_tuple() || state.length() != 2) return nullptr;
  for (const Value& part : state.as_tuple())  // (attributes, slots)
    if (part.is_dict())
      if (const Value* found = part.find(key)) return found;
  return nullptr;
}

}  // namespace tern
