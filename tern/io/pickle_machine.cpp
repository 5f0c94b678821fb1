// What the opcodes of a pickle do: values, classes and calls, states, members.
#include "tern/io/pickle_machine.h"

#include <algorithm>
#include <charconv>

#include "tern/io/utf8.h"
#include "tern/io/value_nodes.h"

namespace tern::io {

using detail::describe;
using detail::DictNode;
using detail::ObjectNode;

void PickleMachine::break_other_cycles() noexcept {
  if (shared_.empty()) return;
  Value::list(std::exchange(shared_, {})).break_cycles(SIZE_MAX);
}

std::string PickleMachine::place() const {
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

void PickleMachine::push_text(std::string_view utf8) {
  if (!is_utf8(utf8, /*surrogates=*/true)) fail("a string is not UTF-8");
  push_node(Value(utf8), kNodeBytes + utf8.size());
}

void PickleMachine::push_bytes(std::string_view bytes) {
  push_node(Value::bytes(std::string(bytes)), kNodeBytes + bytes.size());
}

void PickleMachine::push_python2_string(std::string_view bytes) {
  if (is_utf8(bytes))
    push_text(bytes);
  else
    push_bytes(bytes);
}

void PickleMachine::push_integer(std::string_view twos_complement) {
  push_node(Value::integer(twos_complement), twos_complement.size());
}

void PickleMachine::push_decimal(std::string_view digits) {
  if (digits.size() > options_.max_decimal_digits)
    fail(
        fmt::format("an int has {} decimal digits; at most {} are accepted (pickles of protocol 2 and later "
                    "have ints of any size)",
                    digits.size(), options_.max_decimal_digits));
  push_node(Value::integer_from_decimal(digits), digits.size());
}

void PickleMachine::push_text_int(std::string_view text) {
  if (text == "00")
    push(false);
  else if (text == "01")
    push(true);
  else
    push_decimal(text);
}

Value PickleMachine::global(std::string_view module, std::string_view name) {
  if (!is_utf8(module) || !is_utf8(name)) fail("the name of a class or function is not UTF-8");
  if (module.size() + name.size() > 10000) fail("the name of a class or function is too long");
  // What looks like a known module but is not ("colle\u0441tions", "torch ") serves only to deceive.
  if (std::any_of(module.begin(), module.end(), [](char c) { return c <= ' ' || c > '~'; }))
    fail(fmt::format("the module name {} has characters that no module's name has", Value(module).str(100)));
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
    fail(fmt::format(
        "the file names {}.{}, which is no plain data (nothing was run). With weights_only = false "
        "modules of known classes are made, and all other objects become inert values",
        module, name));
  globals_.emplace(std::move(key), value);
  return value;
}

Value PickleMachine::call(const Value& called, Value args, ValueObject::Made made, Value kwargs) {
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

void PickleMachine::build() {
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

void PickleMachine::append(std::vector<Value>& items) {
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

void PickleMachine::set_items(std::vector<Value>& items) {
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

void PickleMachine::add_members(std::vector<Value>& items) {
  Value& target = top();
  if (target.kind() == ValueKind::Set) {
    for (const Value& item : items) target.node<DictNode>()->dict.set(item, Value());
  } else if (target.is_object()) {
    append(items);
  } else {
    fail(fmt::format("members cannot be added to {}", describe(target)));
  }
}

void PickleMachine::push_tuple(size_t count) {
  need(count);
  std::vector<Value> items(std::make_move_iterator(stack_.end() - static_cast<std::ptrdiff_t>(count)),
                           std::make_move_iterator(stack_.end()));
  stack_.resize(stack_.size() - count);
  push_node(Value::tuple(std::move(items)), kNodeBytes);
}

uint64_t PickleMachine::memo_index(std::string_view digits) {
  uint64_t index = 0;
  auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc() || stop != digits.data() + digits.size()) fail("the memo's place is not a number");
  return index;
}

}  // namespace tern::io
