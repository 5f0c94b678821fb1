// TorchScript archives (torch/csrc/jit/serialization). From torch 1.2 on modules are pickled like objects of
// classes `__torch__...`; torch 1.0 and 1.1 wrote model.json (caffe2/proto/torch.proto).
#include "tern/io/torch_script.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "tern/base/check.h"
#include "tern/io/pickle_globals.h"
#include "tern/io/tensor_kinds.h"
#include "tern/io/value_nodes.h"

namespace tern::io {

namespace {

using Json = nlohmann::json;

constexpr size_t kMaxDepth = 500;
constexpr std::string_view kConstants = "__constants__";

[[noreturn]] void fail(const std::string& what) { throw CheckpointError("model.json: " + what); }

const Json& member(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) fail("an object is expected");
  auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

std::string text_member(const Json& object, const char* key, const char* otherwise) {
  const Json& value = member(object, key);
  if (value.is_null()) return otherwise;
  if (!value.is_string()) fail(fmt::format("'{}' is no text", key));
  return value.get<std::string>();
}

/// Numbers of 64 bits are texts in JSON made from protocol buffers.
int64_t number_of(const Json& value, int64_t otherwise) {
  if (value.is_null()) return otherwise;
  if (value.is_number_integer() && !value.is_number_unsigned()) return value.get<int64_t>();
  if (value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX))
    return value.get<int64_t>();
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    int64_t number = 0;
    auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && stop == text.data() + text.size()) return number;
  }
  fail("a whole number is expected");
}

std::vector<Value> numbers_of(const Json& list) {
  std::vector<Value> numbers;
  if (list.is_null()) return numbers;
  if (!list.is_array()) fail("a list of numbers is expected");
  for (const Json& item : list) numbers.push_back(number_of(item, 0));
  return numbers;
}

DType dtype_of_name(const std::string& name) {
  static constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"FLOAT", DType::Float32}, {"DOUBLE", DType::Float64}, {"FLOAT16", DType::Float16},
      {"INT64", DType::Int64},   {"INT32", DType::Int32},    {"INT16", DType::Int16},
      {"INT8", DType::Int8},     {"UINT8", DType::UInt8},    {"BYTE", DType::UInt8},
      {"BOOL", DType::Bool},     {"UINT16", DType::UInt16}};
  for (const auto& [text, dtype] : kTypes)
    if (text == name) return dtype;
  fail(fmt::format("the dataType '{}' is unknown", name.substr(0, 40)));
}

class ModelReader {
 public:
  ModelReader(const Json& tensors, ScriptStorages& storages) : tensors_(tensors), storages_(storages) {
    if (!tensors.is_null() && !tensors.is_array()) fail("'tensors' is no list");
  }

  Value module(const Json& json, size_t depth) {
    if (depth > kMaxDepth) fail(fmt::format("modules are nested deeper than {}", kMaxDepth));
    Value attributes = Value::dict();
    auto add = [&](const std::string& name, Value value) {
      if (attributes.contains(name)) fail(fmt::format("'{}' is there twice", name.substr(0, 100)));
      attributes.as_dict().set(name, std::move(value));
    };
    for (const Json& parameter : list_of(json, "parameters")) {
      std::string name = text_member(parameter, "name", "");
      with_context(fmt::format("parameter '{}'", name.substr(0, 100)), [&] { add(name, tensor(parameter)); });
    }
    for (const Json& child : list_of(json, "submodules")) {
      std::string name = text_member(child, "name", "");
      add(name, module(child, depth + 1));
    }
    Value object = make_object(GlobalName{"__torch__", "Module"}, {}, ValueObject::Made::New);
    object.as_object().state = attributes;
    object.as_object().has_state = true;
    return object;
  }

 private:
  static const Json& list_of(const Json& object, const char* key) {
    static const Json kEmpty = Json::array();
    const Json& list = member(object, key);
    if (list.is_null()) return kEmpty;
    if (!list.is_array()) fail(fmt::format("'{}' is no list", key));
    return list;
  }

  Value tensor(const Json& parameter) {
    int64_t id = number_of(member(parameter, "tensorId"), 0);
    if (id < 0 || static_cast<uint64_t>(id) >= tensors_.size())
      fail(fmt::format("there is no tensor {}", id));
    const Json& json = tensors_[static_cast<size_t>(id)];
    DType dtype = dtype_of_name(text_member(json, "dataType", ""));
    Value storage = storages_.script_storage(text_member(member(json, "data"), "key", ""), dtype,
                                             text_member(json, "device", "cpu"));
    Tensor result = strided_tensor(storage, number_of(member(json, "offset"), 0),
                                   Value::tuple(numbers_of(member(json, "dims"))),
                                   Value::tuple(numbers_of(member(json, "strides"))));
    const Json& is_buffer = member(parameter, "isBuffer");
    const Json& requires_grad = member(json, "requiresGrad");
    bool wanted = requires_grad.is_boolean() && requires_grad.get<bool>() &&
                  !(is_buffer.is_boolean() && is_buffer.get<bool>());
    if (wanted) result.requires_grad_();
    return result;
  }

  const Json& tensors_;
  ScriptStorages& storages_;
};

}  // namespace

bool is_script_class(std::string_view module, std::string_view) {
  return module == "__torch__" || module.starts_with("__torch__.");
}

Value read_script_model(std::string_view json, ScriptStorages& storages) {
  Json root = Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) fail("it is no JSON object");
  const Json& model = member(root, "mainModule");
  if (!model.is_object()) fail("it has no mainModule");
  return ModelReader(member(root, "tensors"), storages).module(model, 0);
}

void add_script_constants(Value& model, const Value& constants) {
  if (constants.is_none()) return;
  TERN_CHECK(constants.is_tuple() || constants.is_list(), CheckpointError,
             "constants.pkl holds {}, not a tuple", detail::describe(constants));
  if (constants.length() == 0) return;
  TERN_CHECK(model.is_object(), CheckpointError, "the TorchScript program's model is {}",
             detail::describe(model));
  ValueObject& object = model.as_object();
  if (!object.has_state) {
    object.state = Value::dict();
    object.has_state = true;
  }
  if (object.state.is_dict())
    object.state.as_dict().set(kConstants, constants);
  else
    object.entries.push_back({kConstants, constants});
}

}  // namespace tern::io
