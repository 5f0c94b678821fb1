// The loop over the opcodes of a pickle, as in CPython's Lib/pickletools.py.
#include "tern/io/pickle_reader.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "tern/io/pickle_machine.h"
#include "tern/io/pickle_text.h"
#include "tern/io/value_nodes.h"

namespace tern::io {

using detail::DictNode;

PickleResult PickleMachine::run() {
  try {
    loop();
    result_.root = pop();
    result_.root.break_cycles(options_.max_depth);
    break_other_cycles();
  } catch (const Error& error) {
    if (is_of_machine(error)) throw;
    std::string message = fmt::format("pickle, byte {}{}: {}", opcode_at_ - begin_, place(), error.message());
    if (cut_short_) throw PickleCutShort(std::move(message));
    throw CheckpointError(std::move(message));
  }
  result_.consumed = static_cast<size_t>(at_ - begin_);
  return std::move(result_);
}

void PickleMachine::loop() {
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

PickleResult read_pickle(std::span<const std::byte> bytes, PickleHost& host, const PickleOptions& options) {
  return PickleMachine(bytes, host, options).run();
}

}  // namespace tern::io
