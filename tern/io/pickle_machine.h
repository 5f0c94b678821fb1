// The pickle machine: the stack with its marks, the memo, and what opcodes do with them. Which opcode does
// what is in pickle_reader.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tern/base/check.h"
#include "tern/io/byte_order.h"
#include "tern/io/pickle_memo.h"
#include "tern/io/pickle_reader.h"

namespace tern::io {

class PickleMachine {
 public:
  PickleMachine(std::span<const std::byte> bytes, PickleHost& host, const PickleOptions& options)
      : begin_(reinterpret_cast<const char*>(bytes.data())),
        at_(begin_),
        end_(begin_ + bytes.size()),
        host_(host),
        options_(options),
        memory_left_(options.memory_base + options.memory_per_byte * bytes.size()) {}
  PickleMachine(const PickleMachine&) = delete;
  PickleMachine& operator=(const PickleMachine&) = delete;
  ~PickleMachine() { break_other_cycles(); }

  PickleResult run();

 private:
  /// Runs opcodes up to STOP.
  void loop();

  [[noreturn]] void fail(const std::string& what) const { throw CheckpointError(what); }
  /// Frees what is not part of the result, cycles too.
  void break_other_cycles() noexcept;

  // ---- bytes

  std::string_view take(uint64_t count) {
    if (count > static_cast<uint64_t>(end_ - at_)) {
      cut_short_ = true;
      fail(fmt::format("{} bytes are announced, but only {} are left", count, end_ - at_));
    }
    std::string_view bytes(at_, count);
    at_ += count;
    return bytes;
  }
  template <class T>
  T number() {
    return load_le<T>(take(sizeof(T)).data());
  }
  std::string_view line() {
    std::string_view rest(at_, static_cast<size_t>(end_ - at_));
    size_t length = rest.find('\n');
    cut_short_ = length == std::string_view::npos;
    if (cut_short_) fail("a line has no end");
    at_ += length + 1;
    return rest.substr(0, length);
  }

  // ---- stack

  void charge(size_t bytes) {
    if (bytes > memory_left_)
      fail("the pickle describes more values than a file of its size may hold (limits.value_bytes)");
    memory_left_ -= bytes;
  }
  void push(Value value) {
    charge(sizeof(Value));
    stack_.push_back(std::move(value));
  }
  /// A value that is somewhere else too. Every cycle of containers goes through one of these, wherever the
  /// pickle puts it afterwards.
  void push_shared(const Value& value) {
    const ValueKind kind = value.kind();
    if (kind == ValueKind::List || kind == ValueKind::Tuple || kind == ValueKind::Dict ||
        kind == ValueKind::Set || kind == ValueKind::FrozenSet || kind == ValueKind::Object) {
      charge(sizeof(Value));
      shared_.push_back(value);
    }
    push(value);
  }
  /// A value that owns memory beside the stack.
  void push_node(Value value, size_t bytes) {
    charge(bytes);
    push(std::move(value));
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  void need(size_t count) const {
    if (stack_.size() - floor() < count) fail(fmt::format("the opcode needs {} values on the stack", count));
  }
  Value pop() {
    need(1);
    Value value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }
  Value& top() {
    need(1);
    return stack_.back();
  }
  std::vector<Value> pop_to_mark() {
    if (marks_.empty()) fail("the opcode needs a MARK, and there is none");
    auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Value> items(std::make_move_iterator(first), std::make_move_iterator(stack_.end()));
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }
  /// Where in the tree the machine is, from the keys and positions on its stack: " in ['state'][0]".
  std::string place() const;

  // ---- making values

  static constexpr size_t kNodeBytes = 96;

  void push_text(std::string_view utf8);
  void push_bytes(std::string_view bytes);
  /// A str of Python 2: text where it is UTF-8, else bytes.
  void push_python2_string(std::string_view bytes);
  void push_integer(std::string_view twos_complement);
  void push_decimal(std::string_view digits);
  void push_text_int(std::string_view text);

  // ---- classes, calls, state

  Value global(std::string_view module, std::string_view name);
  Value call(const Value& called, Value args, ValueObject::Made made, Value kwargs = {});
  void build();
  void append(std::vector<Value>& items);
  void set_items(std::vector<Value>& items);
  void add_members(std::vector<Value>& items);
  void push_tuple(size_t count);

  // ---- memo

  void put(uint64_t index) {
    if (index > UINT32_MAX) fail(fmt::format("the memo has no place {}", index));
    Value& value = top();
    if (!memo_reads_.contains(index)) {
      memo_.skip();
      return;
    }
    charge(2 * sizeof(Value) + sizeof(size_t));
    memo_.put(static_cast<uint32_t>(index), value);
  }
  void get(uint64_t index) {
    const Value* value = index <= UINT32_MAX ? memo_.get(static_cast<uint32_t>(index)) : nullptr;
    if (!value) fail(fmt::format("place {} of the memo is empty", index));
    push_shared(*value);
  }
  uint64_t memo_index(std::string_view digits);

  const char* begin_;
  const char* at_;
  const char* end_;
  const char* opcode_at_ = begin_;
  PickleHost& host_;
  const PickleOptions& options_;
  size_t memory_left_;
  std::vector<Value> shared_;  ///< containers that were pushed a second time
  bool cut_short_ = false;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;
  const MemoReads memo_reads_{std::string_view(begin_, static_cast<size_t>(end_ - begin_))};
  PickleMemo memo_;
  std::unordered_map<std::string, Value> globals_;
  PickleResult result_;
};

}  // namespace tern::io
