// The allow-list's rows for Python's own classes, and the search in the whole list.
#include <algorithm>
#include <unordered_map>

#include "tern/base/check.h"
#include "tern/io/pickle_globals.h"
#include "tern/io/utf8.h"
#include "tern/io/value_nodes.h"

namespace tern::io {

using detail::describe;

namespace {

void check_count(const Value& callee, const CallArgs& args, size_t least, size_t most) {
  TERN_CHECK(args.size() >= least && args.size() <= most, CheckpointError,
             "{}: {} arguments are given, {} to {} are possible", callee.as_global().full(), args.size(),
             least, most);
}

[[noreturn]] void wrong_argument(const Value& callee, const Value& given, const char* wanted) {
  TERN_THROW(CheckpointError, "{}: an argument is {}, not {}", callee.as_global().full(), describe(given),
             wanted);
}

bool is_sequence(const Value& value) { return value.is_list() || value.is_tuple(); }

/// The members of what Python would iterate over: a list, tuple or set.
std::vector<Value> members_of(const Value& callee, const Value& value) {
  if (is_sequence(value)) return value.as_sequence();
  if (value.kind() != ValueKind::Set && value.kind() != ValueKind::FrozenSet)
    wrong_argument(callee, value, "a list, tuple or set");
  std::vector<Value> members;
  for (const auto& entry : value.as_set()) members.push_back(entry.key);
  return members;
}

Value call_dict(PickleHost&, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 0, 1);
  ValueDict dict(callee.as_global().name == "OrderedDict");
  if (args.empty()) return Value(std::move(dict));
  if (args[0].is_dict()) {
    for (const auto& [key, value] : args[0].as_dict()) dict.set(key, value);
  } else if (is_sequence(args[0])) {  // [[key, value], ...], as Python 2 wrote it
    for (const Value& pair : args[0].as_sequence()) {
      if (!is_sequence(pair) || pair.length() != 2) wrong_argument(callee, pair, "a pair of key and value");
      dict.set(pair.as_sequence()[0], pair.as_sequence()[1]);
    }
  } else {
    wrong_argument(callee, args[0], "a dict or a list of pairs");
  }
  return Value(std::move(dict));
}

Value call_list(PickleHost&, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 0, 1);
  return Value::list(args.empty() ? CallArgs{} : members_of(callee, args[0]));
}

Value call_tuple(PickleHost&, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 0, 1);
  return Value::tuple(args.empty() ? CallArgs{} : members_of(callee, args[0]));
}

Value call_set(PickleHost&, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 0, 1);
  std::vector<Value> members = args.empty() ? CallArgs{} : members_of(callee, args[0]);
  return callee.as_global().name == "set" ? Value::set(members) : Value::frozen_set(members);
}

Value call_complex(PickleHost&, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 0, 2);
  double parts[2] = {0, 0};
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is_float() && !args[i].is_int()) wrong_argument(callee, args[i], "a number");
    parts[i] = args[i].as_float();
  }
  return std::complex<double>(parts[0], parts[1]);
}

Value call_slice(PickleHost&, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 1, 3);
  if (args.size() == 1) return Value::slice({}, args[0], {});
  return Value::slice(args[0], args[1], args.size() == 3 ? args[2] : Value());
}

Value call_range(PickleHost&, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 1, 3);
  for (const Value& arg : args)
    if (arg.kind() != ValueKind::Int) wrong_argument(callee, arg, "an int of at most 64 bits");
  RangeValue range;
  if (args.size() == 1)
    range.stop = args[0].as_int();
  else
    range = {args[0].as_int(), args[1].as_int(), args.size() == 3 ? args[2].as_int() : 1};
  TERN_CHECK(range.step != 0, CheckpointError, "range: the step is 0");
  return range;
}

bool is_latin1(std::string_view encoding) { return encoding == "latin1" || encoding == "latin-1"; }

/// `_codecs.encode(text, 'latin1')`, how protocol 2 writes bytes: each character is one byte.
std::string encode_latin1(const Value& callee, const Value& text, const Value& encoding) {
  if (!text.is_str()) wrong_argument(callee, text, "a str");
  TERN_CHECK(encoding.is_str() && is_latin1(encoding.as_str()), CheckpointError,
             "{}: the encoding is {}; pickles use only 'latin1'", callee.as_global().full(),
             encoding.str(50));
  std::string bytes;
  TERN_CHECK(utf8_to_latin1(text.as_str(), bytes), CheckpointError, "{}: a character is no byte",
             callee.as_global().full());
  return bytes;
}

Value call_encode(PickleHost& host, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 2, 2);
  std::string bytes = encode_latin1(callee, args[0], args[1]);
  host.count_copy(bytes.size());  // one text can be encoded any number of times
  return Value::bytes(std::move(bytes));
}

Value call_bytes(PickleHost& host, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 0, 2);
  bool is_array = callee.as_global().name == "bytearray";
  std::string data;
  if (args.size() == 2) {
    data = encode_latin1(callee, args[0], args[1]);
  } else if (args.size() == 1 &&
             (args[0].kind() == ValueKind::Bytes || args[0].kind() == ValueKind::ByteArray)) {
    data = args[0].as_bytes();
  } else if (args.size() == 1 && is_sequence(args[0])) {
    for (const Value& item : args[0].as_sequence()) {
      if (item.kind() != ValueKind::Int || item.as_int() < 0 || item.as_int() > 255)
        wrong_argument(callee, item, "a byte");
      data.push_back(static_cast<char>(item.as_int()));
    }
  } else if (args.size() == 1) {
    wrong_argument(callee, args[0], "bytes");
  }
  host.count_copy(data.size());
  return is_array ? Value::byte_array(std::move(data)) : Value::bytes(std::move(data));
}

/// collections.Counter(dict): an object with the dict's entries.
Value call_counter(PickleHost& host, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 0, 1);
  Value counter = make_object(callee, {});
  if (args.empty()) return counter;
  if (!args[0].is_dict()) wrong_argument(callee, args[0], "a dict");
  host.count_copy(args[0].length() * sizeof(ValueDict::Entry));
  for (const auto& entry : args[0].as_dict()) counter.as_object().entries.push_back(entry);
  return counter;
}

Value call_object(PickleHost&, const Value& callee, const CallArgs& args) {
  return make_object(callee, args);
}

/// copyreg._reconstructor(class, base, state), which protocols 0 and 1 use for instances:
/// class.__new__(class).
Value call_reconstructor(PickleHost& host, const Value& callee, const CallArgs& args) {
  check_count(callee, args, 3, 3);
  if (std::optional<GlobalName> inner = nested_class(args[0]))
    return call_reconstructor(host, callee, {std::move(*inner), args[1], args[2]});
  if (args[0].kind() != ValueKind::Global) wrong_argument(callee, args[0], "a class");
  CallArgs given = args[2].is_none() ? CallArgs{} : CallArgs{args[2]};
  if (const GlobalRow* row = row_of(args[0]); row && row->call) return row->call(host, args[0], given);
  return make_object(args[0], std::move(given), ValueObject::Made::New);
}

constexpr GlobalRow kPythonRows[] = {
    {"builtins", "dict", call_dict},
    {"builtins", "list", call_list},
    {"builtins", "tuple", call_tuple},
    {"builtins", "set", call_set},
    {"builtins", "frozenset", call_set},
    {"builtins", "complex", call_complex},
    {"builtins", "slice", call_slice},
    {"builtins", "range", call_range},
    {"builtins", "xrange", call_range},
    {"builtins", "bytes", call_bytes},
    {"builtins", "bytearray", call_bytes},
    {"builtins", "int"},
    {"builtins", "float"},
    {"builtins", "bool"},
    {"builtins", "str"},
    {"builtins", "object"},
    {"_codecs", "encode", call_encode},
    {"collections", "OrderedDict", call_dict},
    {"collections", "Counter", call_counter},
    {"collections", "defaultdict", call_object},
    {"collections", "deque", call_object},
    {"copyreg", "_reconstructor", call_reconstructor},
};

/// Names that Python 2 and NumPy 2 give to the same modules.
std::string_view common_module(std::string_view module) {
  if (module == "__builtin__") return "builtins";
  if (module == "copy_reg") return "copyreg";
  if (module == "numpy._core.multiarray") return "numpy.core.multiarray";
  if (module == "numpy._core.numeric") return "numpy.core.numeric";
  return module;
}

using Table = std::unordered_map<std::string, const GlobalRow*>;

const Table& table() {
  static const Table rows = [] {
    Table result;
    for (auto list : {python_globals(), torch_globals(), numpy_globals()})
      for (const GlobalRow& row : list) result.emplace(fmt::format("{} {}", row.module, row.name), &row);
    return result;
  }();
  return rows;
}

}  // namespace

std::span<const GlobalRow> python_globals() { return kPythonRows; }

Value find_global(std::string_view module, std::string_view name) {
  if (module == "torch") {
    for (int i = 0; i < kNumDTypes; ++i)
      if (tern::name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  auto found = table().find(fmt::format("{} {}", common_module(module), name));
  return GlobalName{std::string(module), std::string(name), found == table().end() ? nullptr : found->second};
}

bool is_class_name(std::string_view name) noexcept {
  const size_t first = name.find_first_not_of('_');
  return first != std::string_view::npos && name[first] >= 'A' && name[first] <= 'Z';
}

std::optional<GlobalName> nested_class(const Value& value) {
  if (!value.is_object()) return std::nullopt;
  constexpr int kMaxNesting = 16;
  std::string path;
  const Value* at = &value;
  for (int i = 0; i < kMaxNesting && at->is_object(); ++i) {
    const ValueObject& object = at->as_object();
    if (object.callee.kind() != ValueKind::Global || object.has_state || !object.args.is_tuple() ||
        object.args.length() != 2)
      return std::nullopt;
    const GlobalName& callee = object.callee.as_global();
    const std::vector<Value>& args = object.args.as_tuple();
    if (common_module(callee.module) != "builtins" || callee.name != "getattr" || !args[1].is_str() ||
        !is_class_name(args[1].as_str()))
      return std::nullopt;
    path = fmt::format(".{}{}", args[1].as_str(), path);
    at = &args[0];
  }
  if (at->kind() != ValueKind::Global) return std::nullopt;
  return GlobalName{at->as_global().module, at->as_global().name + path};
}

Value make_object(Value callee, CallArgs args, ValueObject::Made made) {
  ValueObject object;
  object.callee = std::move(callee);
  object.made = made;
  object.args = Value::tuple(std::move(args));
  return Value(std::move(object));
}

}  // namespace tern::io
