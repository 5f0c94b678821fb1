// Python's equality and hashes of values, and the search for cycles.
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <unordered_set>

#include "tern/base/check.h"
#include "tern/io/value.h"
#include "tern/io/value_nodes.h"

namespace tern {

using namespace detail;

namespace {

constexpr size_t kMaxCompareDepth = 1000;
constexpr size_t kMaxCompareNodes = 10'000'000;

__extension__ using Wide = unsigned __int128;

uint64_t mix(uint64_t a, uint64_t b) {
  Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

/// A secret of this process, so that no file can be made whose keys all collide.
const std::array<uint64_t, 3>& secrets() {
  static const std::array<uint64_t, 3> values = [] {
    std::random_device device;
    std::array<uint64_t, 3> result;
    for (uint64_t& value : result) value = (uint64_t{device()} << 32 | device()) | 1;
    return result;
  }();
  return values;
}

/// After wyhash: 16 bytes a round through a 64x64 bit product.
uint64_t hash_bytes(std::string_view bytes) {
  const auto& [a, b, c] = secrets();
  uint64_t state = a ^ bytes.size();
  while (bytes.size() > 16) {
    uint64_t pair[2];
    std::memcpy(pair, bytes.data(), 16);
    state = mix(pair[0] ^ b, pair[1] ^ state);
    bytes.remove_prefix(16);
  }
  uint64_t pair[2] = {0, 0};
  std::memcpy(pair, bytes.data(), bytes.size());
  return mix(mix(pair[0] ^ b, pair[1] ^ state) ^ c, a);
}

uint64_t hash_integer(int64_t value) {
  return mix(static_cast<uint64_t>(value) ^ secrets()[0], secrets()[1]);
}

/// Whole floats hash as ints; no NaN is equal to anything, so each gets a number of its own.
uint64_t hash_float(double value) {
  if (std::isnan(value)) {
    static thread_local int64_t count = 0;
    return hash_integer(++count) + 1;
  }
  if (value >= -0x1p63 && value < 0x1p63 && value == std::floor(value))
    return hash_integer(static_cast<int64_t>(value));
  if (std::isfinite(value) && value == std::floor(value))
    return hash_bytes(whole_number(value).node<BigIntNode>()->bytes);
  return mix(std::bit_cast<uint64_t>(value) ^ secrets()[2], secrets()[0]);
}

[[noreturn]] void throw_unhashable(const Value& value) {
  TERN_THROW(TypeError, "{} cannot be a key of a dict or a member of a set", describe(value));
}

uint64_t hash_value(const Value& value, size_t depth) {
  TERN_CHECK(depth < kMaxCompareDepth, ValueError, "a key is nested deeper than {}", kMaxCompareDepth);
  uint64_t kind_seed = mix(secrets()[2], static_cast<uint64_t>(value.kind()) + 1);
  switch (value.kind()) {
    case ValueKind::None:
      check_alive(value);
      return kind_seed;
    case ValueKind::Bool:
    case ValueKind::Int:
      return hash_integer(value.as_int());
    case ValueKind::BigInt:
      return hash_bytes(value.node<BigIntNode>()->bytes);
    case ValueKind::Float:
      return hash_float(value.as_float());
    case ValueKind::Complex: {
      auto number = value.as_complex();
      return number.imag() == 0 ? hash_float(number.real())
                                : mix(hash_float(number.real()), ~hash_float(number.imag()));
    }
    case ValueKind::Str:
      return hash_bytes(value.as_str());
    case ValueKind::Bytes:
      return hash_bytes(value.as_bytes());
    case ValueKind::DType:
      return mix(kind_seed, static_cast<uint64_t>(value.as_dtype()) + 1);
    case ValueKind::Device:
      return hash_bytes(value.as_device().str()) ^ kind_seed;
    case ValueKind::Layout:
      return hash_bytes(value.as_layout()) ^ kind_seed;
    case ValueKind::Global:
      return hash_bytes(value.as_global().full()) ^ kind_seed;
    case ValueKind::Range: {
      RangeValue r = value.as_range();
      return mix(hash_integer(r.start) ^ kind_seed, hash_integer(r.stop) + static_cast<uint64_t>(r.step));
    }
    case ValueKind::Tuple:
    case ValueKind::Size:
    case ValueKind::Slice: {
      auto* sequence = value.node<SequenceNode>();
      if (size_t known = sequence->hash.load(std::memory_order_relaxed)) return known;
      uint64_t state = secrets()[0];
      for (const Value& item : sequence->items)
        state = mix(state ^ hash_value(item, depth + 1), secrets()[1]) + 1;
      sequence->hash.store(state | 1, std::memory_order_relaxed);
      return state | 1;
    }
    case ValueKind::FrozenSet: {
      uint64_t sum = kind_seed;
      for (const auto& entry : value.as_set()) sum += hash_value(entry.key, depth + 1);
      return sum;
    }
    case ValueKind::RawStorage:
      return mix(std::bit_cast<uintptr_t>(value.as_storage().storage.get()), secrets()[0]);
    case ValueKind::Tensor:
    case ValueKind::Object:
      return mix(std::bit_cast<uintptr_t>(value.identity()), secrets()[0]);
    case ValueKind::ByteArray:
    case ValueKind::List:
    case ValueKind::Dict:
    case ValueKind::Set:
      break;
  }
  throw_unhashable(value);
}

bool is_number(ValueKind kind) { return kind >= ValueKind::Bool && kind <= ValueKind::Complex; }

class Comparison {
 public:
  bool equal(const Value& a, const Value& b, size_t depth) {
    TERN_CHECK(depth < kMaxCompareDepth, ValueError, "values nested deeper than {} cannot be compared",
               kMaxCompareDepth);
    TERN_CHECK(++nodes_ <= kMaxCompareNodes, ValueError, "values of more than {} parts cannot be compared",
               kMaxCompareNodes);
    ValueKind kind = a.kind();
    if (is_number(kind) && is_number(b.kind())) return equal_numbers(a, b);
    if (a.identity() != nullptr && a.is_same(b)) return true;
    bool sizes = (kind == ValueKind::Tuple && b.kind() == ValueKind::Size) ||
                 (kind == ValueKind::Size && b.is_tuple());
    bool sets = (kind == ValueKind::Set && b.kind() == ValueKind::FrozenSet) ||
                (kind == ValueKind::FrozenSet && b.kind() == ValueKind::Set);
    if (kind == ValueKind::None) check_alive(a);
    if (b.is_none()) check_alive(b);
    bool texts = BytesNode::holds(kind) && BytesNode::holds(b.kind());
    if (kind != b.kind() && !sizes && !sets && !texts) return false;
    switch (kind) {
      case ValueKind::None:
        return true;
      case ValueKind::Str:
        return a.as_str() == b.as_str();
      case ValueKind::Bytes:
      case ValueKind::ByteArray:
        return a.as_bytes() == b.as_bytes();
      case ValueKind::DType:
        return a.as_dtype() == b.as_dtype();
      case ValueKind::Device:
        return a.as_device() == b.as_device();
      case ValueKind::Layout:
        return a.as_layout() == b.as_layout();
      case ValueKind::Global:
        return a.as_global() == b.as_global();
      case ValueKind::Range:
        return a.as_range() == b.as_range();
      case ValueKind::RawStorage:
        return a.as_storage().storage == b.as_storage().storage;
      case ValueKind::List:
      case ValueKind::Tuple:
      case ValueKind::Size:
      case ValueKind::Slice:
        return equal_sequences(a.node<SequenceNode>()->items, b.node<SequenceNode>()->items, depth);
      case ValueKind::Dict:
        return equal_dicts(a.as_dict(), b.as_dict(), depth);
      case ValueKind::Set:
      case ValueKind::FrozenSet: {
        const ValueDict& other = b.as_set();
        if (a.length() != other.size()) return false;
        for (const auto& entry : a.as_set())
          if (!other.contains(entry.key)) return false;
        return true;
      }
      default:
        return false;  // tensors and objects are equal only to themselves
    }
  }

 private:
  static bool equal_numbers(const Value& a, const Value& b) {
    bool whole_a = a.kind() <= ValueKind::BigInt, whole_b = b.kind() <= ValueKind::BigInt;
    if (whole_a && whole_b) {
      if (a.kind() == ValueKind::BigInt || b.kind() == ValueKind::BigInt)
        return a.kind() == b.kind() && a.node<BigIntNode>()->bytes == b.node<BigIntNode>()->bytes;
      return a.as_int() == b.as_int();
    }
    if (whole_a || whole_b) {  // a float is compared as the whole number it is, if it is one
      const Value& whole = whole_a ? a : b;
      std::complex<double> number = (whole_a ? b : a).as_complex();
      if (number.imag() != 0) return false;
      const double value = number.real();
      return std::isfinite(value) && value == std::floor(value) && equal_numbers(whole, whole_number(value));
    }
    return a.as_complex() == b.as_complex();
  }

  bool equal_sequences(const std::vector<Value>& a, const std::vector<Value>& b, size_t depth) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if (!equal(a[i], b[i], depth + 1)) return false;
    return true;
  }

  bool equal_dicts(const ValueDict& a, const ValueDict& b, size_t depth) {
    if (a.size() != b.size()) return false;
    bool ordered = a.is_ordered_dict() && b.is_ordered_dict();
    for (size_t i = 0; i < a.size(); ++i) {
      const auto& [key, value] = a.entry(i);
      if (ordered && !equal(key, b.entry(i).key, depth + 1)) return false;
      const Value* other = b.find(key);
      if (!other || !equal(value, *other, depth + 1)) return false;
    }
    return true;
  }

  size_t nodes_ = 0;
};

}  // namespace

bool Value::operator==(const Value& other) const { return Comparison().equal(*this, other, 0); }

size_t Value::hash() const { return hash_value(*this, 0); }

bool Value::is_same(const Value& other) const noexcept {
  if (const void* id = identity(); id || other.identity()) return id == other.identity();
  if (kind() != other.kind()) return false;
  switch (kind()) {
    case ValueKind::None:
      return true;
    case ValueKind::Bool:
      return std::get<bool>(data_) == std::get<bool>(other.data_);
    case ValueKind::Int:
      return std::get<int64_t>(data_) == std::get<int64_t>(other.data_);
    case ValueKind::Float:
      return std::get<double>(data_) == std::get<double>(other.data_);
    case ValueKind::Complex:
      return std::get<std::complex<double>>(data_) == std::get<std::complex<double>>(other.data_);
    case ValueKind::DType:
      return std::get<DType>(data_) == std::get<DType>(other.data_);
    case ValueKind::Device:
      return std::get<Device>(data_) == std::get<Device>(other.data_);
    default:
      return false;
  }
}

size_t Value::break_cycles(size_t max_depth) {
  // Depth first with an own stack. A reference to a node that is still on the stack closes a cycle. A
  // finished node knows the height of what hangs below it, so that a part reached by several ways is walked
  // once.
  struct Frame {
    ValueNode* node;
    std::vector<Value*> children;
    size_t next = 0;
    size_t height = 1;
  };
  constexpr size_t kOpen = 0;
  std::unordered_map<ValueNode*, size_t> heights;
  std::vector<Frame> stack;
  size_t broken = 0;

  auto is_container = [](const ValueNode& node) {
    return SequenceNode::holds(node.kind) || DictNode::holds(node.kind) || ObjectNode::holds(node.kind);
  };
  auto check = [&](size_t depth) {
    TERN_CHECK(depth <= max_depth, CheckpointError, "containers are nested deeper than {}", max_depth);
  };
  auto enter = [&](ValueNode* node) {
    check(stack.size() + 1);
    heights[node] = kOpen;
    Frame frame{node, {}, 0, 1};
    each_child(*node, [&](Value& child) {
      if (child.owns_node() && is_container(*std::get<8>(child.data_))) frame.children.push_back(&child);
    });
    stack.push_back(std::move(frame));
  };

  ValueNode* root = node_pointer();
  if (!root || !is_container(*root)) return 0;
  enter(root);
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next < top.children.size()) {
      Value& child = *top.children[top.next++];
      auto& shared = std::get<8>(child.data_);
      auto found = heights.find(shared.get());
      if (found == heights.end()) {
        enter(shared.get());
      } else if (found->second == kOpen) {
        std::weak_ptr<ValueNode> weak = shared;
        child.data_ = std::move(weak);
        ++broken;
      } else {
        top.height = std::max(top.height, found->second + 1);
        check(stack.size() + found->second);
      }
      continue;
    }
    size_t height = top.height;
    heights[top.node] = height;
    stack.pop_back();
    if (!stack.empty()) stack.back().height = std::max(stack.back().height, height + 1);
  }
  return broken;
}

}  // namespace tern
