// Python objects as values, and state dicts. The way back is in value_objects.cpp.
#include "values.h"

#include <unordered_map>
#include <unordered_set>

#include "modules.h"
#include "tern/base/check.h"
#include "tern/io/value_nodes.h"

namespace tern::python {

namespace {

std::string class_of(py::handle object) {
  const py::type type = py::type::of(object);
  return fmt::format("{}.{}", std::string(py::str(type.attr("__module__"))),
                     std::string(py::str(type.attr("__qualname__"))));
}

Value text_from(py::handle text) {
  // Half of a surrogate pair is no UTF-8, but a str may hold it, and pickles do.
  const py::object bytes =
      py::reinterpret_steal<py::object>(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
  if (!bytes) throw py::error_already_set();
  return bytes.cast<std::string>();
}

Value integer_from(py::handle number) {
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (value == -1 && PyErr_Occurred()) throw py::error_already_set();
  if (overflow == 0) return value;
  const auto nbytes = number.attr("bit_length")().cast<int64_t>() / 8 + 1;
  return Value::integer(
      number.attr("to_bytes")(nbytes, "little", py::arg("signed") = true).cast<std::string>());
}

GlobalName name_of(py::handle function_or_class) {
  return {py::str(function_or_class.attr("__module__")), py::str(function_or_class.attr("__qualname__"))};
}

/// Made by NumPy, as an array, a number, a dtype, or a function that makes one.
bool is_of_numpy(py::handle object) {
  py::handle named =
      PyType_Check(object.ptr()) || PyCallable_Check(object.ptr()) ? object : py::type::of(object);
  if (!py::hasattr(named, "__module__") || !py::hasattr(named, "__qualname__")) return false;
  const py::object module = named.attr("__module__");
  if (!py::isinstance<py::str>(module)) return false;
  const auto name = module.cast<std::string>();
  return name == "numpy" || name.starts_with("numpy.");
}

/// As long as it is there, a layer is without what Python added to it, and to those that it is made of.
class WithoutAdded {
 public:
  WithoutAdded(nn::Module& layer, bool below) : layer_(layer), added_(layer.added_fields()) {
    layer.set_added_fields(nullptr);
    if (below)
      for (nn::Module* module : layer.children())
        below_.push_back(std::make_unique<WithoutAdded>(*module, true));
  }
  WithoutAdded(const WithoutAdded&) = delete;
  WithoutAdded& operator=(const WithoutAdded&) = delete;
  ~WithoutAdded() { layer_.set_added_fields(std::move(added_)); }

 private:
  nn::Module& layer_;
  std::shared_ptr<nn::detail::AddedFields> added_;
  std::vector<std::unique_ptr<WithoutAdded>> below_;
};

/// Puts tensors of one number each in the place of those in a tree of modules.
void take_numbers(const Value& tree) {
  for (const char* kind : {"_parameters", "_buffers"})
    for (const auto& [name, own] : tree[kind].as_dict()) {
      if (own.is_none()) continue;
      const Tensor tensor =
          own.is_object() ? own.as_object().args.as_tuple()[0].as_tensor() : own.as_tensor();
      tree[kind][name.as_str()] = zeros({}, {.dtype = tensor.dtype()}).expand(tensor.shape());
    }
  for (const auto& [name, child] : tree["_modules"].as_dict())
    if (!child.is_none()) take_numbers(child);
}

/// One pass over a tree of objects.
class Reader {
 public:
  Value run(py::handle root) {
    try {
      Value value = read(root);
      if (has_cycle_) value.break_cycles();
      return value;
    } catch (...) {
      // What refers to itself would never be freed.
      if (has_cycle_)
        if (auto found = known_.find(root.ptr()); found != known_.end()) found->second.value.break_cycles();
      throw;
    }
  }

 private:
  struct Known {
    py::object object;  ///< kept, so that no other object gets its address
    Value value;
  };
  /// Where an object stands: a dict's key or a sequence's position.
  struct Place {
    py::object key;
    size_t position = 0;
  };

  Value read(py::handle object) {
    PyObject* o = object.ptr();
    if (object.is_none()) return {};
    if (PyBool_Check(o)) return o == Py_True;
    if (PyLong_Check(o)) return integer_from(object);
    if (PyFloat_Check(o)) return PyFloat_AS_DOUBLE(o);
    if (PyComplex_Check(o)) return std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o));
    if (PyUnicode_Check(o)) return text(object);
    if (DType dtype{}; !PyType_Check(o) && load_dtype(object, dtype)) return dtype;
    if (py::isinstance<Device>(object)) return object.cast<Device>();
    if (PyRange_Check(o))
      return RangeValue{object.attr("start").cast<int64_t>(), object.attr("stop").cast<int64_t>(),
                        object.attr("step").cast<int64_t>()};
    // What may be shared.
    if (auto found = known_.find(o); found != known_.end()) {
      has_cycle_ |= open_.contains(o);
      return found->second.value;
    }
    if (PyBytes_Check(o)) return remember(object, Value::bytes(object.cast<std::string>()));
    if (PyByteArray_Check(o))
      return remember(object, Value::byte_array(
                                  {PyByteArray_AS_STRING(o), static_cast<size_t>(PyByteArray_GET_SIZE(o))}));
    if (py::isinstance<TensorImpl>(object)) return tensor(object);
    if (PyList_CheckExact(o)) return list(object);
    if (PyTuple_CheckExact(o)) return tuple(object);
    if (PySlice_Check(o)) {
      auto* slice = reinterpret_cast<PySliceObject*>(o);
      return remember(object, Value::slice(read(slice->start), read(slice->stop), read(slice->step)));
    }
    if (PyAnySet_CheckExact(o)) return set(object);
    if (PyDict_CheckExact(o)) return dict(object, Value::dict());
    static const py::handle ordered_dict = imported("collections", "OrderedDict").release();
    static const py::handle counter = imported("collections", "Counter").release();
    static const py::handle inert = imported("tern.serialization", "Inert").release();
    static const py::handle name = imported("tern.serialization", "Name").release();
    const py::type type = py::type::of(object);
    if (type.is(ordered_dict)) return dict(object, Value::ordered_dict());
    if (type.is(counter)) return counted(object);
    if (type.is(py::type::of(size_object({})))) return remember(object, Value(object.cast<Shape>()));
    if (type.is(inert)) return inert_object(object);
    if (type.is(name))
      return GlobalName{object.attr("module").cast<std::string>(), object.attr("name").cast<std::string>()};
    if (py::isinstance<nn::Module>(object)) return module(object);
    if (is_of_numpy(object)) return of_numpy(object);
    fail(object);
  }

  static Value text(py::handle object) {
    if (PyUnicode_CheckExact(object.ptr())) return text_from(object);
    static const py::handle layout = imported("tern.serialization", "Layout").release();
    return py::type::of(object).is(layout) ? Value::layout(object.cast<std::string>()) : text_from(object);
  }

  [[noreturn]] void fail(py::handle object) const {
    std::string remedy = "a file holds plain values: numbers, texts, lists, dicts, tensors";
    if (py::hasattr(object, "state_dict"))
      remedy = "give its state_dict()";
    else if (PyDict_Check(object.ptr()))
      remedy = "make it a dict";
    else if (PyTuple_Check(object.ptr()))
      remedy = "make it a tuple";
    else if (py::hasattr(object, "__dict__") && !PyCallable_Check(object.ptr()))
      remedy = "give its attributes, vars(...)";
    TERN_THROW(TypeError, "{} cannot be saved: it is of the class {}; {}", where(), class_of(object), remedy);
  }

  std::string where() const {
    constexpr size_t kShown = 10;
    std::string text = "the value";
    for (size_t i = 0; i < places_.size() && i < kShown; ++i) {
      const Place& place = places_[i];
      text +=
          fmt::format("[{}]", place.key ? std::string(py::repr(place.key)) : std::to_string(place.position));
    }
    if (places_.size() > kShown) text += "[...]";
    return text;
  }

  Value read_at(py::handle object, Place place) {
    places_.push_back(std::move(place));
    TERN_CHECK(places_.size() <= kMaxDepth, ValueError, "{} cannot be saved: it is nested deeper than {}",
               where(), kMaxDepth);
    Value value = read(object);
    places_.pop_back();
    return value;
  }

  const Value& remember(py::handle object, Value value) {
    return known_
        .insert_or_assign(object.ptr(), Known{py::reinterpret_borrow<py::object>(object), std::move(value)})
        .first->second.value;
  }

  /// Remembers a container before it is filled, since its items may refer to it.
  template <class Fill>
  Value filled(py::handle object, Value value, Fill fill) {
    remember(object, value);
    open_.insert(object.ptr());
    fill(value);
    open_.erase(object.ptr());
    return value;
  }

  Value list(py::handle object) {
    return filled(object, Value::list(), [&](const Value& value) {
      for (size_t i = 0; i < static_cast<size_t>(PyList_GET_SIZE(object.ptr())); ++i) {
        const auto item =
            py::reinterpret_borrow<py::object>(PyList_GET_ITEM(object.ptr(), static_cast<Py_ssize_t>(i)));
        value.as_list().push_back(read_at(item, {{}, i}));
      }
    });
  }

  Value tuple(py::handle object) {
    auto node = std::make_shared<tern::detail::SequenceNode>(ValueKind::Tuple, std::vector<Value>());
    return filled(object, Value(std::shared_ptr<tern::detail::ValueNode>(node)), [&](const Value&) {
      const auto count = static_cast<size_t>(PyTuple_GET_SIZE(object.ptr()));
      for (size_t i = 0; i < count; ++i)
        node->items.push_back(read_at(PyTuple_GET_ITEM(object.ptr(), static_cast<Py_ssize_t>(i)), {{}, i}));
    });
  }

  Value set(py::handle object) {
    std::vector<Value> members;
    for (py::handle member : py::reinterpret_borrow<py::iterable>(object))
      members.push_back(read_at(member, {{}, members.size()}));
    return remember(object,
                    PyFrozenSet_Check(object.ptr()) ? Value::frozen_set(members) : Value::set(members));
  }

  /// Calls `add(key, value)` for the entries of a dict, in its order.
  template <class Add>
  void each_entry(py::handle object, Add add) {
    const auto items = py::reinterpret_steal<py::list>(PyMapping_Items(object.ptr()));
    if (!items) throw py::error_already_set();
    for (py::handle item : items) {
      const auto entry = py::reinterpret_borrow<py::tuple>(item);
      Value key = read_at(entry[0], {entry[0], 0});
      add(std::move(key), read_at(entry[1], {entry[0], 0}));
    }
  }

  Value dict(py::handle object, Value empty) {
    return filled(object, std::move(empty), [&](const Value& value) {
      each_entry(object, [&](const Value& key, Value entry) { value.as_dict().set(key, std::move(entry)); });
      if (!value.as_dict().is_ordered_dict()) return;
      const py::dict attributes = object.attr("__dict__");
      if (!attributes.empty()) value.as_dict().set_attributes(read_at(attributes, {py::str("__dict__"), 0}));
    });
  }

  Value counted(py::handle object) {
    ValueObject counter;
    counter.callee = GlobalName{"collections", "Counter"};
    counter.args = Value::tuple();
    each_entry(object, [&](Value key, Value count) {
      counter.entries.push_back({std::move(key), std::move(count)});
    });
    return remember(object, Value(std::move(counter)));
  }

  // ---- tensors and modules

  Value tensor(py::handle object) {
    const Tensor value = object.cast<Tensor>();
    return remember(object, is_parameter(object) ? parameter(value) : Value(value));
  }

  const Value& parameter(const Tensor& parameter) {
    auto [found, added] = parameters_.try_emplace(&parameter.impl());
    if (added) {
      ValueObject object;
      object.callee = GlobalName{"torch._utils", "_rebuild_parameter"};
      object.args = Value::tuple({parameter.detach(), parameter.requires_grad(), Value::ordered_dict()});
      object.payload = parameter;
      found->second = Value(std::move(object));
    }
    return found->second;
  }

  Value module(py::handle object) {
    auto& module = object.cast<nn::Module&>();
    if (dynamic_cast<PythonModule*>(&module))
      return written(object, module, module_to_value(nn::Sequential()));
    Value tree = [&] {
      const WithoutAdded own(module, /*below=*/false);
      return module_to_value(module);
    }();
    tie_parameters(tree, module);
    if (module.added_fields() || !is_class_of_layer(object)) return written(object, module, std::move(tree));
    return remember(object, std::move(tree));
  }

  static bool is_class_of_layer(py::handle object) {
    return py::bool_(imported("tern.serialization", "_is_layer")(py::type::of(object)));
  }

  /// One parameter is one in the file, also where several modules have it.
  void tie_parameters(const Value& tree, const nn::Module& module) {
    const nn::Fields fields = module.fields();
    const PythonFields* added = python_fields(module);
    const auto is_added = [&](const std::string& name) { return added && added->find(name); };
    for (const auto& [name, field] : fields.parameters)
      if (!is_added(name)) tree["_parameters"][name] = parameter(*field);
    for (const auto& [name, child] : fields.modules)
      if (!is_added(name)) tie_parameters(module_in_tree(tree, name), *child);
  }

  /// A module of a class that is written in Python, as PyTorch keeps one: to `tree`, with the fields of the
  /// layer that it is derived from, come its own, and its attributes beside them.
  Value written(py::handle object, const nn::Module& module, Value tree) {
    if (!is_class_of_layer(object)) tree.as_object().callee = name_of_module_class(object);
    return filled(object, std::move(tree), [&](const Value& value) {
      value["training"] = module.is_training();
      const PythonFields none, *fields = python_fields(module) ? python_fields(module) : &none;
      for (const auto& [name, kind] : fields->tensor_fields()) {
        const py::object tensor = *fields->find(name);
        const bool is_parameter = kind == std::string_view("parameter");
        value[is_parameter ? "_parameters" : "_buffers"][name] = read_at(tensor, {py::str(name), 0});
        if (kind == std::string_view("not saved")) value["_non_persistent_buffers_set"] = with(value, name);
      }
      for (const auto& [name, below] : fields->modules_below())
        value["_modules"][name] = read_at(below, {py::str(name), 0});
      for (const auto& [name, attribute] :
           imported("tern.serialization", "_attributes_of")(object).cast<py::dict>())
        value[name.cast<std::string>()] = read_at(attribute, {py::str(name), 0});
    });
  }

  static Value with(const Value& module, const std::string& name) {
    std::vector<Value> names{name};
    for (const auto& entry : module["_non_persistent_buffers_set"].as_set()) names.push_back(entry.key);
    return Value::set(names);
  }

  GlobalName name_of_module_class(py::handle object) const {
    const py::object name = imported("tern.serialization", "_name_of_module_class")(py::type::of(object));
    TERN_CHECK(!name.is_none(), TypeError,
               "{} cannot be saved whole: its class {} is defined in a function, where load() does not find "
               "it; save its "
               "state_dict(), and load it with load_state_dict()",
               where(), class_of(object));
    const auto pair = name.cast<std::pair<std::string, std::string>>();
    return {pair.first, pair.second};
  }

  // ---- objects

  /// By what pickle would write: a function of NumPy, its arguments, and the state that the result gets.
  Value of_numpy(py::handle object) {
    if (PyType_Check(object.ptr()) || PyCallable_Check(object.ptr())) return name_of(object);
    const py::tuple parts = object.attr("__reduce__")();
    ValueObject made;
    made.callee = name_of(parts[0]);
    made.args = read_at(parts[1], {py::str("args"), 0});
    made.has_state = parts.size() > 2 && !parts[2].is_none();
    if (made.has_state) made.state = read_at(parts[2], {py::str("state"), 0});
    return remember(object, Value(std::move(made)));
  }

  Value inert_object(py::handle object) {
    const py::dict parts = object.attr("_parts");
    auto part = [&](const char* name) { return read_at(parts[name], {py::str(name), 0}); };
    return filled(object, Value(ValueObject()), [&](const Value& value) {
      ValueObject& made = value.as_object();
      made.callee = part("callee");
      made.made = parts["new"].cast<bool>() ? ValueObject::Made::New : ValueObject::Made::Called;
      made.args = part("args");
      made.kwargs = part("kwargs");
      made.has_state = parts.contains("state");
      if (made.has_state) made.state = part("state");
      for (py::handle item : parts["elements"]) made.items.push_back(read_at(item, {{}, made.items.size()}));
      for (py::handle entry : parts["entries"]) {
        const auto pair = py::reinterpret_borrow<py::tuple>(entry);
        Value key = read_at(pair[0], {pair[0], 0});
        made.entries.push_back({std::move(key), read_at(pair[1], {pair[0], 0})});
      }
      made.payload = part("tensor");
    });
  }

  std::unordered_map<PyObject*, Known> known_;
  std::unordered_set<PyObject*> open_;
  std::unordered_map<const TensorImpl*, Value> parameters_;
  std::vector<Place> places_;
  bool has_cycle_ = false;
};

}  // namespace

Value module_in_tree(const Value& tree, const std::string& path) {
  const size_t dot = path.find('.');
  const Value child = tree["_modules"][path.substr(0, dot)];
  return dot == std::string::npos ? child : module_in_tree(child, path.substr(dot + 1));
}

Value value_from_python(py::handle object) { return Reader().run(object); }

py::bytes layer_to_bytes(nn::Module& layer) {
  const WithoutAdded own(layer, /*below=*/true);
  const Value tree = module_to_value(layer);
  take_numbers(tree);
  const std::vector<std::byte> bytes = save_to_buffer(tree);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

py::object layer_from_bytes(const py::buffer& bytes, const py::object& layer_class) {
  const py::buffer_info info = bytes.request();
  const Value tree = load_from_buffer(
      {static_cast<const std::byte*>(info.ptr), static_cast<size_t>(info.size)}, {.weights_only = false});
  const auto* type = py::detail::get_type_info(reinterpret_cast<PyTypeObject*>(layer_class.ptr()));
  const auto owner = std::make_shared<nn::AnyModule>(layer_of_settings(tree, *type->cpptype));
  return py::cast(std::shared_ptr<nn::Module>(owner, &owner->get()));
}

py::object state_dict_to_python(const StateDict& dict, const std::string& prefix) {
  const py::object ordered_dict = imported("collections", "OrderedDict");
  const py::object result = ordered_dict();
  for (const auto& [name, tensor] : dict) result[py::str(prefix + name)] = tensor;
  const py::object metadata = ordered_dict();
  for (const auto& [path, version] : dict.versions()) {
    // "net." before the names is "net" as the path of a module.
    std::string key = prefix + path;
    if (path.empty() && !key.empty()) key.pop_back();
    metadata[py::str(key)] = py::dict(py::arg("version") = version);
  }
  result.attr("_metadata") = metadata;
  return result;
}

StateDict state_dict_from_python(py::handle mapping) {
  TERN_CHECK(py::hasattr(mapping, "items"), TypeError, "Expected state_dict to be dict-like, got {}.",
             std::string(py::str(py::type::of(mapping))));
  StateDict dict;
  for (py::handle item : py::iter(mapping.attr("items")())) {
    const py::tuple entry = py::reinterpret_borrow<py::object>(item);
    TERN_CHECK(py::isinstance<py::str>(entry[0]), TypeError, "a name in the state dict is {}, not a str",
               std::string(py::repr(entry[0])));
    const auto name = entry[0].cast<std::string>();
    TERN_CHECK(py::isinstance<TensorImpl>(entry[1]), TypeError,
               "'{}' in the state dict is of the class {}, not a tensor", name, class_of(entry[1]));
    dict.insert(name, entry[1].cast<Tensor>());
  }
  if (!py::hasattr(mapping, "_metadata") || mapping.attr("_metadata").is_none()) return dict;
  for (py::handle item : py::iter(mapping.attr("_metadata").attr("items")())) {
    const py::tuple entry = py::reinterpret_borrow<py::object>(item);
    const py::object version = entry[1].attr("get")("version");
    if (!version.is_none()) dict.set_version(entry[0].cast<std::string>(), version.cast<int64_t>());
  }
  return dict;
}

}  // namespace tern::python
