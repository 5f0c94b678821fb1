// The pickle machine: a loop over opcodes with a stack, marks and a memo. Opcodes as in CPython's
// Lib/pickletools.py.
#include "tern/io/pickle_reader.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <unordered_map>
#include <utility>

#include "tern/base/check.h"
#include "tern/io/byte_order.h"
#include "tern/io/pickle_memo.h"
#include "tern/io/pickle_text.h"
#include "tern/io/utf8.h"
#include "tern/io/value_nodes.h"

namespace tern::io {

using detail::describe;
using detail::DictNode;
using detail::ObjectNode;
using detail::SequenceNode;

namespace {

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, PickleHost& host, const PickleOptions& options)
      : begin_(reinterpret_cast<const char*>(bytes.data())),
        at_(begin_),
        end_(begin_ + bytes.size()),
        host_(host),
        options_(options),
        memory_left_(options.memory_base + options.memory_per_byte * bytes.size()) {}
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine() { break_other_cycles(); }

  PickleResult run() {
    try {
      loop();
      result_.root = pop();
      result_.root.break_cycles(options_.max_depth);
      break_other_cycles();
    } catch (const IoError&) {
      throw;
    } catch (const OutOfMemoryError&) {
      throw;
    } catch (const DeviceError&) {
      throw;
    } catch (const Error& error) {
      std::string message =
          fmt::format("pickle, byte {}{}: {}", opcode_at_ - begin_, place(), error.message());
      if (cut_short_) throw PickleCutShort(std::move(message));
      throw CheckpointError(std::move(message));
    }
    result_.consumed = static_cast<size_t>(at_ - begin_);
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw CheckpointError(what); }

  /// Frees what is not part of the result, cycles too.
  void break_other_cycles() noexcept {
    if (shared_.empty()) return;
    Value::list(std::exchange(shared_, {})).break_cycles(SIZE_MAX);
  }

  // ---- bytes
  // --------------------------------------------------------------------------------------------------------------

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
  // --------------------------------------------------------------------------------------------------------------

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
  std::string place() const {
    std::string path;
    for (size_t level = 0; level <= marks_.size(); ++level) {
      size_t first = level == 0 ? 0 : marks_[level - 1];
      size_t last = level == marks_.size() ? stack_.size() : marks_[level];
      if (first > 0 && first <= stack_.size()) {
        const Value& container = stack_[first - 1];
        size_t count = last - first;
        if (container.is_dict()) {
          // The value at the end may be what is still being built, or a key that waits for its value.
          size_t keys = count + (level < marks_.size() && count % 2 == 0 ? 1 : 0);
          for (size_t i = first + (keys - 1) / 2 * 2 + 1; keys > 0 && i-- > first;) {
            if (i < last && (i - first) % 2 == 0) {
              if (stack_[i].is_str() || stack_[i].is_int()) path += fmt::format("[{}]", stack_[i].str(80));
              break;
            }
          }
        } else if (container.is_list()) {
          path += fmt::format("[{}]", count);
        }
      }
    }
    return path.empty() ? path : fmt::format(" in {}", path);
  }

  // ---- making values
  // ------------------------------------------------------------------------------------------------------

  static constexpr size_t kNodeBytes = 96;

  void push_text(std::string_view utf8) {
    if (!is_utf8(utf8, /*surrogates=*/true)) fail("a string is not UTF-8");
    push_node(Value(utf8), kNodeBytes + utf8.size());
  }
  void push_bytes(std::string_view bytes) {
    push_node(Value::bytes(std::string(bytes)), kNodeBytes + bytes.size());
  }
  /// A str of Python 2: text where it is UTF-8, else bytes.
  void push_python2_string(std::string_view bytes) {
    if (is_utf8(bytes))
      push_text(bytes);
    else
      push_bytes(bytes);
  }
  void push_integer(std::string_view twos_complement) {
    push_node(Value::integer(twos_complement), twos_complement.size());
  }
  void push_decimal(std::string_view digits) {
    if (digits.size() > options_.max_decimal_digits)
      fail(fmt::format(
          "an int has {} decimal digits; at most {} are accepted (pickles of protocol 2 and later "
          "have ints of any size)",
          digits.size(), options_.max_decimal_digits));
    push_node(Value::integer_from_decimal(digits), digits.size());
  }

  void push_text_int(std::string_view text) {
    if (text == "00")
      push(false);
    else if (text == "01")
      push(true);
    else
      push_decimal(text);
  }

  // ---- classes, calls, state
  // ----------------------------------------------------------------------------------------------

  Value global(std::string_view module, std::string_view name) {
    if (!is_utf8(module) || !is_utf8(name)) fail("the name of a class or function is not UTF-8");
    if (module.size() + name.size() > 10000) fail("the name of a class or function is too long");
    // What looks like a known module but is not ("colle\u0441tions", "torch ") serves only to deceive.
    if (std::any_of(module.begin(), module.end(), [](char c) { return c <= ' ' || c > '~'; }))
      fail(
          fmt::format("the module name {} has characters that no module's name has", Value(module).str(100)));
    if (!options_.names_allowed)
      fail(fmt::format("the class or function {}.{} is named where only numbers and texts may be", module,
                       name));
    std::string key = fmt::format("{}\n{}", module, name);
    auto found = globals_.find(key);
    if (found != globals_.end()) return found->second;
    charge(kNodeBytes * 3 + 2 * key.size());
    result_.globals.push_back({std::string(module), std::string(name)});
    result_.global_bytes.push_back(static_cast<size_t>(opcode_at_ - begin_));
    Value value = find_global(module, name);
    bool known = value.kind() != ValueKind::Global || value.as_global().known != nullptr;
    bool inert = options_.is_inert && options_.is_inert(module, name);
    if (!known && options_.weights_only && !inert)
      fail(
          fmt::format("the file names {}.{}, which is no plain data (nothing was run). To read objects of "
                      "unknown classes as "
                      "inert values, load with weights_only = false",
                      module, name));
    globals_.emplace(std::move(key), value);
    return value;
  }

  Value call(const Value& called, Value args, ValueObject::Made made, Value kwargs = {}) {
    const std::optional<GlobalName> inner = nested_class(called);
    const Value callee = inner ? global(inner->module, inner->name) : called;
    if (!args.is_tuple()) fail(fmt::format("a class is called with {} instead of a tuple", describe(args)));
    if (callee.kind() == ValueKind::Global) {
      const GlobalRow* row = row_of(callee);
      if (row && !row->call) fail(fmt::format("{} cannot be called", callee.as_global().full()));
      if (row && kwargs.is_none()) {
        Value result = row->call(host_, callee, args.as_tuple());
        charge(host_.take_copied());
        return result;
      }
      const std::string& name = callee.as_global().name;
      const size_t dot = name.rfind('.');
      if (dot != std::string::npos && !is_class_name(name.substr(dot + 1))) result_.calls_results = true;
    } else if (!callee.is_object()) {
      fail(fmt::format("what is called is {}, not a class or function", describe(callee)));
    } else {
      result_.calls_results = true;
    }
    charge(sizeof(ObjectNode) + kNodeBytes);
    ValueObject object;
    object.callee = callee;
    object.made = made;
    object.args = std::move(args);
    object.kwargs = std::move(kwargs);
    return Value(std::move(object));
  }

  void build() {
    Value state = pop();
    Value& target = top();
    if (auto* object = target.node<ObjectNode>()) {
      const GlobalRow* row = row_of(object->object.callee);
      if (row && row->set_state) {
        row->set_state(host_, object->object, state);
        charge(host_.take_copied());
      } else {
        object->object.state = std::move(state);
        object->object.has_state = true;
      }
    } else if (target.is_tensor()) {
      set_tensor_state(target.as_tensor(), state);
    } else if (target.is_dict() && target.as_dict().is_ordered_dict()) {
      if (!state.is_dict())
        fail(fmt::format("the attributes of an OrderedDict are {}, not a dict", describe(state)));
      target.as_dict().set_attributes(std::move(state));
    } else {
      fail(fmt::format("{} cannot be given a state", describe(target)));
    }
  }

  void append(std::vector<Value>& items) {
    Value& target = top();
    if (target.is_list()) {
      std::vector<Value>& list = target.as_list();
      list.insert(list.end(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
    } else if (target.is_object()) {
      std::vector<Value>& list = target.as_object().items;
      list.insert(list.end(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
    } else {
      fail(fmt::format("items cannot be appended to {}", describe(target)));
    }
  }

  void set_items(std::vector<Value>& items) {
    Value& target = top();
    if (items.size() % 2 != 0) fail("a key has no value");
    charge(items.size() * sizeof(Value));
    if (target.is_dict()) {
      ValueDict& dict = target.as_dict();
      for (size_t i = 0; i < items.size(); i += 2) dict.set(items[i], std::move(items[i + 1]));
    } else if (target.is_object()) {
      for (size_t i = 0; i < items.size(); i += 2)
        target.as_object().entries.push_back({std::move(items[i]), std::move(items[i + 1])});
    } else {
      fail(fmt::format("keys cannot be set in {}", describe(target)));
    }
  }

  void add_members(std::vector<Value>& items) {
    Value& target = top();
    if (target.kind() == ValueKind::Set) {
      for (const Value& item : items) target.node<DictNode>()->dict.set(item, Value());
    } else if (target.is_object()) {
      append(items);
    } else {
      fail(fmt::format("members cannot be added to {}", describe(target)));
    }
  }

  void push_tuple(size_t count) {
    need(count);
    std::vector<Value> items(std::make_move_iterator(stack_.end() - static_cast<std::ptrdiff_t>(count)),
                             std::make_move_iterator(stack_.end()));
    stack_.resize(stack_.size() - count);
    push_node(Value::tuple(std::move(items)), kNodeBytes);
  }

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
  uint64_t memo_index(std::string_view digits) {
    uint64_t index = 0;
    auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error != std::errc() || stop != digits.data() + digits.size())
      fail("the memo's place is not a number");
    return index;
  }

  // ---- the loop
  // -----------------------------------------------------------------------------------------------------------

  void loop() {
    while (true) {
      opcode_at_ = at_;
      cut_short_ = at_ == end_;
      if (cut_short_) fail("the pickle has no STOP: the file is cut short");
      auto opcode = static_cast<uint8_t>(*at_++);
      switch (opcode) {
        case 0x80: {  // PROTO
          auto protocol = number<uint8_t>();
          if (protocol > 5) fail(fmt::format("pickle protocol {} is unknown; 5 is the highest", protocol));
          result_.protocol = std::max<int>(result_.protocol, protocol);
          break;
        }
        case 0x95: {  // FRAME
          auto length = number<uint64_t>();
          cut_short_ = length > static_cast<uint64_t>(end_ - at_);
          if (cut_short_) fail("a frame is longer than what is left");
          break;
        }
        case '.':
          return;
        case '(':
          marks_.push_back(stack_.size());
          charge(sizeof(size_t));
          break;
        case '0':  // POP: a mark, when it is on top
          if (!marks_.empty() && marks_.back() == stack_.size())
            marks_.pop_back();
          else
            pop();
          break;
        case '1':
          pop_to_mark();
          break;
        case '2':
          push_shared(Value(top()));
          break;

        case 'N':
          push({});
          break;
        case 0x88:
          push(true);
          break;
        case 0x89:
          push(false);
          break;
        case 'I':
          push_text_int(line());
          break;
        case 'J':
          push(int64_t{number<int32_t>()});
          break;
        case 'K':
          push(int64_t{number<uint8_t>()});
          break;
        case 'M':
          push(int64_t{number<uint16_t>()});
          break;
        case 'L': {
          std::string_view digits = line();
          if (digits.ends_with('L')) digits.remove_suffix(1);
          push_decimal(digits);
          break;
        }
        case 0x8a:
          push_integer(take(number<uint8_t>()));
          break;
        case 0x8b: {
          auto length = number<int32_t>();
          if (length < 0) fail("the length of an int is negative");
          push_integer(take(static_cast<uint64_t>(length)));
          break;
        }
        case 'F':
          push(parse_text_float(line()));
          break;
        case 'G': {
          uint64_t bits = 0;
          for (char c : take(8)) bits = bits << 8 | static_cast<uint8_t>(c);
          push(std::bit_cast<double>(bits));
          break;
        }

        case 'S':
          push_python2_string(unquote_string(line()));
          break;
        case 'T': {
          auto length = number<int32_t>();
          if (length < 0) fail("the length of a string is negative");
          push_python2_string(take(static_cast<uint64_t>(length)));
          break;
        }
        case 'U':
          push_python2_string(take(number<uint8_t>()));
          break;
        case 'V':
          push_text(decode_raw_unicode(line()));
          break;
        case 'X':
          push_text(take(number<uint32_t>()));
          break;
        case 0x8c:
          push_text(take(number<uint8_t>()));
          break;
        case 0x8d:
          push_text(take(number<uint64_t>()));
          break;
        case 'B':
          push_bytes(take(number<uint32_t>()));
          break;
        case 'C':
          push_bytes(take(number<uint8_t>()));
          break;
        case 0x8e:
          push_bytes(take(number<uint64_t>()));
          break;
        case 0x96: {
          std::string_view bytes = take(number<uint64_t>());
          push_node(Value::byte_array(std::string(bytes)), kNodeBytes + bytes.size());
          break;
        }

        case ']':
          push_node(Value::list(), kNodeBytes);
          break;
        case '}':
          push_node(Value::dict(), sizeof(DictNode));
          break;
        case ')':
          push_node(Value::tuple(), kNodeBytes);
          break;
        case 0x8f:
          push_node(Value::set(), sizeof(DictNode));
          break;
        case 'l':
          push_node(Value::list(pop_to_mark()), kNodeBytes);
          break;
        case 't':
          push_node(Value::tuple(pop_to_mark()), kNodeBytes);
          break;
        case 0x85:
          push_tuple(1);
          break;
        case 0x86:
          push_tuple(2);
          break;
        case 0x87:
          push_tuple(3);
          break;
        case 'd': {
          std::vector<Value> items = pop_to_mark();
          push_node(Value::dict(), sizeof(DictNode));
          set_items(items);
          break;
        }
        case 0x91:
          push_node(Value::frozen_set(pop_to_mark()), sizeof(DictNode));
          break;
        case 'a': {
          std::vector<Value> items{pop()};
          append(items);
          break;
        }
        case 'e': {
          std::vector<Value> items = pop_to_mark();
          append(items);
          break;
        }
        case 's': {
          need(3);
          std::vector<Value> items(2);
          items[1] = pop();
          items[0] = pop();
          set_items(items);
          break;
        }
        case 'u': {
          std::vector<Value> items = pop_to_mark();
          set_items(items);
          break;
        }
        case 0x90: {
          std::vector<Value> items = pop_to_mark();
          add_members(items);
          break;
        }

        case 'c': {
          std::string_view module = line();
          push(global(module, line()));
          break;
        }
        case 0x93: {
          need(2);
          Value name = pop(), module = pop();
          if (!name.is_str() || !module.is_str()) fail("the name of a class is not a str");
          push(global(module.as_str(), name.as_str()));
          break;
        }
        case 'R': {
          need(2);
          Value args = pop(), callee = pop();
          push(call(callee, std::move(args), ValueObject::Made::Called));
          break;
        }
        case 0x81: {
          need(2);
          Value args = pop(), callee = pop();
          push(call(callee, std::move(args), ValueObject::Made::New));
          break;
        }
        case 0x92: {
          need(3);
          Value kwargs = pop(), args = pop(), callee = pop();
          if (!kwargs.is_dict()) fail("the keyword arguments of a class are not a dict");
          if (kwargs.length() == 0) kwargs = Value();
          push(call(callee, std::move(args), ValueObject::Made::New, std::move(kwargs)));
          break;
        }
        case 'i': {
          std::string_view module = line();
          Value callee = global(module, line());
          push(call(callee, Value::tuple(pop_to_mark()), ValueObject::Made::Called));
          break;
        }
        case 'o': {
          std::vector<Value> items = pop_to_mark();
          if (items.empty()) fail("an instance has no class");
          Value callee = std::move(items.front());
          items.erase(items.begin());
          push(call(callee, Value::tuple(std::move(items)), ValueObject::Made::Called));
          break;
        }
        case 'b':
          build();
          break;

        case 'p':
          put(memo_index(line()));
          break;
        case 'q':
          put(number<uint8_t>());
          break;
        case 'r':
          put(number<uint32_t>());
          break;
        case 0x94:
          put(memo_.next());
          break;
        case 'g':
          get(memo_index(line()));
          break;
        case 'h':
          get(number<uint8_t>());
          break;
        case 'j':
          get(number<uint32_t>());
          break;

        case 'Q':
          push(host_.persistent_load(pop()));
          break;
        case 'P':
          fail(
              "a persistent id is written as text, as pickle protocol 0 does; no PyTorch can read such a "
              "file either: save it "
              "again with protocol 2");
        case 0x82:
        case 0x83:
        case 0x84:
          fail("extension codes (EXT) are not supported: their meaning is not in the file");
        case 0x97:
        case 0x98:
          fail("out-of-band buffers are not supported: their bytes are not in the file");
        default:
          fail(fmt::format("0x{:02x} is no pickle opcode", opcode));
      }
    }
  }

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

}  // namespace

PickleResult read_pickle(std::span<const std::byte> bytes, PickleHost& host, const PickleOptions& options) {
  return Machine(bytes, host, options).run();
}

}  // namespace tern::io
