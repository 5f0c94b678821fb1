// Values as Python objects: what load() gives. The way there is in values.cpp.
#include <set>
#include <unordered_map>

#include "modules.h"
#include "numpy.h"
#include "tern/base/check.h"
#include "values.h"

namespace tern::python {

namespace {

constexpr uint64_t kMaxKeyParts = 10'000'000;

py::str text_to(const std::string& text) {
  PyObject* decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogatepass");
  if (!decoded) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

void warn(const std::string& text) {
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) != 0) throw py::error_already_set();
}

/// For objects that stand for a tensor: whether the tensor says all about them but for attributes.
bool is_plain_tensor(const ValueObject& object) {
  const std::string name = object.class_name();
  if (!name.starts_with("torch.") || !object.payload.is_tensor()) return false;
  if (name.ends_with("_rebuild_from_type_v2") || name.ends_with("_rebuild_from_type")) {
    const Value& type = object.args.as_tuple().at(1);
    if (type.kind() != ValueKind::Global) return false;
    const std::string class_name = type.as_global().full();
    return class_name == "torch.nn.parameter.Parameter" || class_name == "torch._tensor.Tensor" ||
           class_name == "torch.Tensor";
  }
  return !name.ends_with("_rebuild_qtensor");
}

bool is_of_parameter(const ValueObject& object) {
  if (object.class_name().find("arameter") != std::string::npos) return true;
  const std::vector<Value>& args = object.args.as_tuple();
  return args.size() > 1 && args[1].kind() == ValueKind::Global &&
         args[1].as_global().module == "torch.nn.parameter";
}

/// One pass over a tree of values.
class Maker {
 public:
  py::object make(const Value& value) {
    switch (value.kind()) {
      case ValueKind::None:
        return py::none();
      case ValueKind::Bool:
        return py::bool_(value.as_bool());
      case ValueKind::Int:
        return py::int_(value.as_int());
      case ValueKind::BigInt:
        return py::type::of(py::int_(0))
            .attr("from_bytes")(py::bytes(value.integer_bytes()), "little", py::arg("signed") = true);
      case ValueKind::Float:
        return py::float_(value.as_float());
      case ValueKind::Complex:
        return py::reinterpret_steal<py::object>(
            PyComplex_FromDoubles(value.as_complex().real(), value.as_complex().imag()));
      case ValueKind::Str:
        return text_to(value.as_str());
      case ValueKind::Tensor:
        return py::cast(value.as_tensor());
      case ValueKind::DType:
        return py::cast(value.as_dtype());
      case ValueKind::Device:
        return py::cast(value.as_device());
      case ValueKind::Layout:
        return imported("tern.serialization", "Layout")(text_to(value.as_layout()));
      case ValueKind::Global:
        return imported("tern.serialization", "Name")(text_to(value.as_global().module),
                                                      text_to(value.as_global().name));
      case ValueKind::Range: {
        const RangeValue range = value.as_range();
        return imported("builtins", "range")(range.start, range.stop, range.step);
      }
      default:
        return shared(value);
    }
  }

 private:
  /// What other values may refer to.
  py::object shared(const Value& value) {
    if (auto found = made_.find(value.identity()); found != made_.end()) return found->second;
    TERN_CHECK(++depth_ <= kMaxDepth, ValueError, "the value is nested deeper than {}", kMaxDepth);
    py::object made = container(value);
    --depth_;
    return made;
  }

  py::object remember(const Value& value, py::object object) {
    return made_[value.identity()] = std::move(object);
  }

  py::object container(const Value& value) {
    switch (value.kind()) {
      case ValueKind::Bytes:
        return remember(value, py::bytes(value.as_bytes()));
      case ValueKind::ByteArray:
        return remember(value,
                        py::reinterpret_steal<py::object>(PyByteArray_FromStringAndSize(
                            value.as_bytes().data(), static_cast<Py_ssize_t>(value.as_bytes().size()))));
      case ValueKind::RawStorage: {
        const StorageValue& storage = value.as_storage();
        return remember(value, py::cast(Tensor::from_storage(storage.storage, storage.dtype, {storage.numel},
                                                             {1}, storage.offset)));
      }
      case ValueKind::List: {
        py::list list;
        remember(value, list);
        for (const Value& item : value.as_list()) list.append(make(item));
        return list;
      }
      case ValueKind::Tuple:
        return tuple(value);
      case ValueKind::Size: {
        return remember(value, size_object(value.as_size()));
      }
      case ValueKind::Slice: {
        const std::vector<Value>& parts = value.as_slice();
        return remember(value, imported("builtins", "slice")(make(parts[0]), make(parts[1]), make(parts[2])));
      }
      case ValueKind::Set:
      case ValueKind::FrozenSet: {
        py::set members;
        for (const auto& entry : value.as_set()) members.add(key(entry.key));
        return remember(value, value.kind() == ValueKind::Set ? py::object(members)
                                                              : imported("builtins", "frozenset")(members));
      }
      case ValueKind::Dict:
        return dict(value);
      default:
        return object(value);
    }
  }

  /// A tuple that contains itself, by way of a list, is referred to before its items are there.
  py::object tuple(const Value& value) {
    const std::vector<Value>& items = value.as_tuple();
    py::tuple made(items.size());
    for (size_t i = 0; i < items.size(); ++i) PyTuple_SET_ITEM(made.ptr(), i, py::none().release().ptr());
    remember(value, made);
    for (size_t i = 0; i < items.size(); ++i) {
      PyObject* const before = PyTuple_GET_ITEM(made.ptr(), i);
      PyTuple_SET_ITEM(made.ptr(), i, make(items[i]).release().ptr());
      Py_DECREF(before);
    }
    return made;
  }

  py::object dict(const Value& value) {
    const ValueDict& entries = value.as_dict();
    const py::object made = entries.is_ordered_dict() ? imported("collections", "OrderedDict")() : py::dict();
    remember(value, made);
    for (const auto& [name, entry] : entries) {
      const py::object made_name = key(name);
      made[made_name] = make(entry);
    }
    if (entries.attributes().is_dict()) made.attr("__dict__").attr("update")(make(entries.attributes()));
    return made;
  }

  /// What is hashed. Python does so each time for each part of a tuple, which in a tuple of tuples of one
  /// tuple, and so on, are more than it could ever come to the end of.
  py::object key(const Value& value) {
    TERN_CHECK(parts_of(value) <= kMaxKeyParts, CheckpointError, "a key is a tuple of more than {} parts",
               kMaxKeyParts);
    return make(value);
  }

  uint64_t parts_of(const Value& value) {
    if (!value.is_tuple()) return 1;
    const auto [found, added] = parts_.try_emplace(value.identity(), 1);
    if (!added) return found->second;
    uint64_t parts = 1;
    for (const Value& item : value.as_tuple()) parts = std::min(parts + parts_of(item), kMaxKeyParts + 1);
    return parts_[value.identity()] = parts;
  }

  // ---- objects

  py::object object(const Value& value) {
    const ValueObject& object = value.as_object();
    const std::string name = object.class_name();
    if (name == "collections.Counter") {
      const py::object counter = remember(value, imported("collections", "Counter")());
      for (const auto& [counted, count] : object.entries) counter[key(counted)] = make(count);
      return counter;
    }
    if (is_plain_tensor(object)) return tensor(value);
    if (name.starts_with("numpy.") && !object.payload.is_none()) {
      if (!object.payload.is_tensor()) return make(object.payload);  // a number
      if (std::optional<py::object> array = numpy_array(object.payload.as_tensor()))
        return remember(value, *array);
    }
    if (is_module_object(value))
      if (std::optional<py::object> made = module(value)) return *made;
    return inert(value);
  }

  py::object tensor(const Value& value) {
    const ValueObject& object = value.as_object();
    const Tensor tensor = object.payload.as_tensor();
    const py::object made =
        remember(value, is_of_parameter(object) ? parameter_object(tensor) : py::cast(tensor));
    if (object.state.is_dict()) made.attr("__dict__").attr("update")(make(object.state));
    return made;
  }

  /// tern.serialization.Inert, whose parts values.cpp reads again.
  py::object inert(const Value& value) {
    const ValueObject& object = value.as_object();
    const py::object type = imported("tern.serialization", "Inert");
    const py::object made = remember(value, type.attr("__new__")(type));
    const py::dict parts;
    made.attr("_parts") = parts;
    if (is_module_object(value)) keep_parameters(object);
    parts["callee"] = make(object.callee);
    parts["new"] = object.made == ValueObject::Made::New;
    parts["args"] = make(object.args);
    parts["kwargs"] = make(object.kwargs);
    if (object.has_state) parts["state"] = make(object.state);
    py::list elements, entries;
    for (const Value& item : object.items) elements.append(make(item));
    for (const auto& [key, entry] : object.entries) entries.append(py::make_tuple(make(key), make(entry)));
    parts["elements"] = elements;
    parts["entries"] = entries;
    parts["tensor"] = make(object.payload);
    return made;
  }

  // ---- modules

  /// Files say of parameters only where they stand: from here on these tensors are parameters in Python.
  void keep_parameters(const ValueObject& module) {
    const Value* parameters = module.attribute("_parameters");
    if (!parameters || !parameters->is_dict()) return;
    for (const auto& [name, parameter] : parameters->as_dict())
      if (parameter.is_tensor()) kept_.push_back(parameter_object(parameter.as_tensor()));
  }

  /// Nothing, with a warning, where the class is not one of Tern's or has settings that Tern's has not.
  std::optional<py::object> module(const Value& value) {
    const std::string name = value.as_object().class_name();
    if (std::optional<py::object> made = written(value)) return made;
    std::string reason = "no code of files is run, and the program has no class of this name";
    if (name.starts_with("torch.")) try {
        // The AnyModule owns the module, whatever its class.
        const auto owner = std::make_shared<nn::AnyModule>(module_from_value(value));
        tie_parameters(value, owner->get());
        const py::object made = py::cast(std::shared_ptr<nn::Module>(owner, &owner->get()));
        if (!py::type::of(made).is(py::type::of<nn::Module>())) return remember(value, made);
      } catch (const CheckpointError& error) {
        reason = error.what();
      }
    if (warned_.insert(name).second)
      warn(fmt::format("load: a module of the class {} is inert, with its tensors in `tensors`: {}", name,
                       reason));
    return std::nullopt;
  }

  /// One of a class that is written in Python, if the program has it: the object is made without running any
  /// of it.
  std::optional<py::object> written(const Value& value) {
    const ValueObject& object = value.as_object();
    if (object.callee.kind() != ValueKind::Global) return std::nullopt;
    const GlobalName& name = object.callee.as_global();
    const py::object type =
        imported("tern.serialization", "_module_class")(text_to(name.module), text_to(name.name));
    if (type.is_none()) return std::nullopt;
    std::vector<std::pair<std::string, py::object>> below;
    const py::object plain = layer_of(value, type);  // a layer of C++, without what the class has beside it
    const nn::Fields own = plain.is_none() ? nn::Fields() : plain.cast<nn::Module&>().fields();
    const auto is_own = [](const auto& fields, const Value& key) {
      return std::any_of(fields.begin(), fields.end(), [&](const auto& field) {
        return field.first == key.as_str() || field.first.starts_with(key.as_str() + ".");
      });
    };
    for (const auto& [key, child] : value["_modules"].as_dict()) {
      if (is_own(own.modules, key)) continue;
      below.emplace_back(key.as_str(), make(child));
      const py::object& made = below.back().second;
      if (!made.is_none() && !py::isinstance<nn::Module>(made)) return std::nullopt;
    }
    const py::object made = remember(
        value, plain.is_none() ? imported("tern.nn.copies", "blank")(type) : plain.attr("_as")(type));
    auto& module = made.cast<nn::Module&>();
    PythonFields& fields = make_python_fields(module);
    if (const Value* training = value.find("training"); training && plain.is_none())
      module.train(training->as_bool());
    for (const auto& [key, parameter] : value["_parameters"].as_dict()) {
      if (is_own(own.parameters, key) || (!plain.is_none() && parameter.is_none())) continue;
      py::object tensor = make(parameter);  // files do not say of all that they are parameters
      if (!tensor.is_none() && !is_parameter(tensor)) tensor = new_parameter(tensor);
      fields.set_parameter(key.as_str(), std::move(tensor));
    }
    const Value* unsaved = value.find("_non_persistent_buffers_set");
    for (const auto& [key, buffer] : value["_buffers"].as_dict())
      if (!is_own(own.buffers, key) && (plain.is_none() || !buffer.is_none()))
        fields.set_buffer(key.as_str(), make(buffer).cast<Tensor>(),
                          !unsaved || !unsaved->as_set().contains(key));
    for (auto& [key, child] : below) add_module(module, key, std::move(child));
    const py::dict attributes = made.attr("__dict__");
    const py::object is_attribute = imported("tern.serialization", "_is_attribute");
    if (object.state.is_dict())
      for (const auto& [key, attribute] : object.state.as_dict())
        if (const py::object made_key = make(key); is_attribute(type, made_key).cast<bool>())
          attributes[made_key] = make(attribute);
    return made;
  }

  /// The layer of C++ that the class is derived from; None where it is derived from nn.Module alone.
  py::object layer_of(const Value& value, const py::object& type) {
    const py::object layer = imported("tern.serialization", "_layer_of")(type);
    if (layer.is_none()) return layer;
    const auto* info = py::detail::get_type_info(reinterpret_cast<PyTypeObject*>(layer.ptr()));
    const auto owner = std::make_shared<nn::AnyModule>(layer_from_value(value, *info->cpptype));
    tie_parameters(value, owner->get());
    return py::cast(std::shared_ptr<nn::Module>(owner, &owner->get()));
  }

  /// One parameter in the file is one here, also where several modules have it.
  void tie_parameters(const Value& tree, nn::Module& module) {
    const nn::Fields fields = module.fields();
    for (const auto& [name, field] : fields.parameters) {
      const Tensor saved = tree["_parameters"][name].as_tensor();
      const auto [found, added] = parameters_.try_emplace(&saved.impl(), *field);
      if (!added) *field = found->second;
    }
    for (const auto& [name, child] : fields.modules) tie_parameters(module_in_tree(tree, name), *child);
  }

  std::unordered_map<const void*, py::object> made_;
  std::unordered_map<const void*, uint64_t> parts_;  ///< of tuples
  std::unordered_map<const TensorImpl*, nn::Parameter> parameters_;
  std::vector<py::object> kept_;
  std::set<std::string> warned_;
  size_t depth_ = 0;
};

}  // namespace

py::object value_to_python(const Value& value) { return Maker().make(value); }

}  // namespace tern::python
