// What a Value refers to, kind by kind. For value*.cpp and the readers and writers of formats only.
#pragma once

#include <atomic>

#include "tern/io/value.h"

namespace tern::detail {

struct StrNode final : ValueNode {
  explicit StrNode(std::string text_) : ValueNode(ValueKind::Str), text(std::move(text_)) {}
  static bool holds(ValueKind kind) { return kind == ValueKind::Str; }
  const std::string text;
};

struct BytesNode final : ValueNode {
  BytesNode(ValueKind kind_, std::string data_) : ValueNode(kind_), data(std::move(data_)) {}
  static bool holds(ValueKind kind) { return kind == ValueKind::Bytes || kind == ValueKind::ByteArray; }
  const std::string data;
};

/// An int that does not fit 64 bits: two's complement, little end first, as short as possible.
struct BigIntNode final : ValueNode {
  explicit BigIntNode(std::string bytes_) : ValueNode(ValueKind::BigInt), bytes(std::move(bytes_)) {}
  static bool holds(ValueKind kind) { return kind == ValueKind::BigInt; }
  const std::string bytes;
};

struct StorageNode final : ValueNode {
  explicit StorageNode(StorageValue storage_)
      : ValueNode(ValueKind::RawStorage), storage(std::move(storage_)) {}
  static bool holds(ValueKind kind) { return kind == ValueKind::RawStorage; }
  const StorageValue storage;
};

struct RangeNode final : ValueNode {
  explicit RangeNode(RangeValue range_) : ValueNode(ValueKind::Range), range(range_) {}
  static bool holds(ValueKind kind) { return kind == ValueKind::Range; }
  const RangeValue range;
};

struct LayoutNode final : ValueNode {
  explicit LayoutNode(std::string name_) : ValueNode(ValueKind::Layout), name(std::move(name_)) {}
  static bool holds(ValueKind kind) { return kind == ValueKind::Layout; }
  const std::string name;
};

struct GlobalNode final : ValueNode {
  explicit GlobalNode(GlobalName name_) : ValueNode(ValueKind::Global), name(std::move(name_)) {}
  static bool holds(ValueKind kind) { return kind == ValueKind::Global; }
  const GlobalName name;
};

/// list, tuple, torch.Size (ints), slice (three).
struct SequenceNode final : ValueNode {
  SequenceNode(ValueKind kind_, std::vector<Value> items_) : ValueNode(kind_), items(std::move(items_)) {}
  ~SequenceNode() override {
    if (!items.empty()) release_values(std::move(items));
  }
  static bool holds(ValueKind kind) {
    return kind == ValueKind::List || kind == ValueKind::Tuple || kind == ValueKind::Size ||
           kind == ValueKind::Slice;
  }
  std::vector<Value> items;
  /// Of a tuple, once computed; 0 before. Threads that look a key up may compute it at the same time.
  std::atomic<size_t> hash{0};
};

/// dict, OrderedDict; the members of set and frozenset are keys.
struct DictNode final : ValueNode {
  DictNode(ValueKind kind_, ValueDict dict_) : ValueNode(kind_), dict(std::move(dict_)) {}
  ~DictNode() override;
  static bool holds(ValueKind kind) {
    return kind == ValueKind::Dict || kind == ValueKind::Set || kind == ValueKind::FrozenSet;
  }
  /// Calls `visit(Value&)` for every key, value and attribute.
  template <class Visit>
  void each_child(Visit&& visit) {
    for (auto& [key, value] : dict.entries_) {
      visit(key);
      visit(value);
    }
    visit(dict.attributes_);
  }
  ValueDict dict;
};

struct ObjectNode final : ValueNode {
  explicit ObjectNode(ValueObject object_) : ValueNode(ValueKind::Object), object(std::move(object_)) {}
  ~ObjectNode() override;
  static bool holds(ValueKind kind) { return kind == ValueKind::Object; }
  template <class Visit>
  void each_child(Visit&& visit) {
    for (Value* child : {&object.callee, &object.args, &object.kwargs, &object.state, &object.payload})
      visit(*child);
    for (Value& item : object.items) visit(item);
    for (auto& [key, value] : object.entries) {
      visit(key);
      visit(value);
    }
  }
  ValueObject object;
};

/// Calls `visit(Value&)` for every direct part of a container; nothing for other nodes.
template <class Visit>
void each_child(ValueNode& node, Visit&& visit) {
  if (SequenceNode::holds(node.kind)) {
    for (Value& item : static_cast<SequenceNode&>(node).items) visit(item);
  } else if (DictNode::holds(node.kind)) {
    static_cast<DictNode&>(node).each_child(visit);
  } else if (ObjectNode::holds(node.kind)) {
    static_cast<ObjectNode&>(node).each_child(visit);
  }
}

/// A short description for messages: "a str", "an int", "None".
std::string describe(const Value& value);

/// Throws ValueError for a reference that closed a cycle whose tree is gone: its kind is None.
inline void check_alive(const Value& value) { static_cast<void>(value.node<StrNode>()); }

/// Turns a two's-complement whole number, little end first, into its opposite.
void negate(std::string& twos_complement);

/// The nearest float to a two's-complement whole number, to even where two are as near; infinite beyond all.
double nearest_float(std::string_view twos_complement);

/// A finite float without fraction as a whole number.
Value whole_number(double value);

/// Decimal text of a two's-complement whole number, little end first.
std::string decimal_text(std::string_view twos_complement);

}  // namespace tern::detail
