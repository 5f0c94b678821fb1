// The fields that Python gives to modules: parameters, buffers and modules that are assigned to attributes.
#include <algorithm>

#include "layers.h"
#include "modules.h"

namespace tern::python {

static thread_local HeldFields* held_fields = nullptr;

HeldFields::HeldFields() : outer_(std::exchange(held_fields, this)) {}
HeldFields::~HeldFields() { held_fields = outer_; }

void PythonFields::put(Field field) {
  auto made = std::make_shared<Field>(std::move(field));
  for (auto& each : fields_)
    if (each->name == made->name) return each.swap(made);  // what was there may call Python when it goes
  fields_.push_back(std::move(made));
}

const PythonFields::Field* PythonFields::find_field(const std::string& name) const {
  for (const auto& field : fields_)
    if (field->name == name) return field.get();
  return nullptr;
}

void PythonFields::set_parameter(const std::string& name, py::object parameter) {
  Field field{name, Kind::Parameter, {}, {}, std::move(parameter)};
  static_cast<Tensor&>(field.parameter) = field.object.cast<Tensor>();
  put(std::move(field));
}

void PythonFields::set_buffer(const std::string& name, const Tensor& buffer, bool persistent) {
  put({name, Kind::Buffer, {}, nn::Buffer(buffer, {.persistent = persistent}), {}});
}

void PythonFields::set_module(const std::string& name, py::object module) {
  put({name, Kind::Module, {}, {}, std::move(module)});
}

py::object PythonFields::keep(const std::string& name, const Tensor& parameter) {
  py::object object = parameter_object(parameter);
  if (py::object& kept = kept_[name]; !kept.is(object)) const py::object before = std::exchange(kept, object);
  return object;
}

int PythonFields::traverse(visitproc visit, void* arg) const {
  for (const auto& field : fields_) Py_VISIT(field->object.ptr());
  for (const auto& [name, object] : kept_) Py_VISIT(object.ptr());
  return 0;
}

std::optional<py::object> PythonFields::find(const std::string& name) const {
  const Field* field = find_field(name);
  if (!field) return std::nullopt;
  switch (field->kind) {
    case Kind::Parameter:
      if (field->object && field->object.cast<Tensor>().is_same(field->parameter)) return field->object;
      return py::cast(field->parameter);
    case Kind::Buffer:
      return py::cast(static_cast<const Tensor&>(field->buffer));
    case Kind::Module:
      return field->object;
  }
  return std::nullopt;
}

bool PythonFields::has_buffer(const std::string& name) const {
  const Field* field = find_field(name);
  return field && field->kind == Kind::Buffer;
}

bool PythonFields::has_module(const std::string& name) const {
  const Field* field = find_field(name);
  return field && field->kind == Kind::Module;
}

bool PythonFields::is_saved(const std::string& name) const {
  const Field* field = find_field(name);
  return field && field->buffer.persistent;
}

PythonFields::PythonFields(const PythonFields& other) : AddedFields(other), hidden_(other.hidden_) {
  for (const auto& field : other.fields_) fields_.push_back(std::make_shared<Field>(*field));
}

bool PythonFields::remove(const std::string& name) {
  const auto found =
      std::find_if(fields_.begin(), fields_.end(), [&](const auto& field) { return field->name == name; });
  if (found == fields_.end()) return false;
  const std::shared_ptr<Field> removed = std::move(*found);  // what it held may call Python when it goes
  fields_.erase(found);
  return true;
}

std::vector<std::pair<std::string, py::object>> PythonFields::modules_below() const {
  std::vector<std::pair<std::string, py::object>> modules;
  for (const auto& field : fields_)
    if (field->kind == Kind::Module) modules.emplace_back(field->name, field->object);
  return modules;
}

std::vector<std::pair<std::string, const char*>> PythonFields::tensor_fields() const {
  std::vector<std::pair<std::string, const char*>> names;
  for (const auto& field : fields_)
    if (field->kind == Kind::Parameter)
      names.emplace_back(field->name, "parameter");
    else if (field->kind == Kind::Buffer)
      names.emplace_back(field->name, field->buffer.persistent ? "buffer" : "not saved");
  return names;
}

void PythonFields::collect(nn::Fields& fields) {
  const py::gil_scoped_acquire gil;
  if (held_fields) held_fields->fields.insert(held_fields->fields.end(), fields_.begin(), fields_.end());
  if (!hidden_.empty()) {
    const auto hidden = [&](const auto& field) { return is_hidden(field.first); };
    std::erase_if(fields.parameters, hidden);
    std::erase_if(fields.buffers, hidden);
    std::erase_if(fields.modules, hidden);
  }
  for (const auto& field : fields_) switch (field->kind) {
      case Kind::Parameter:
        fields.add(field->name, field->parameter);
        break;
      case Kind::Buffer:
        fields.add(field->name, field->buffer);
        break;
      case Kind::Module:
        if (!field->object.is_none()) fields.add(field->name, field->object.cast<nn::Module&>());
        break;
    }
}

py::object kept_parameter(nn::Module& layer, const std::string& name, const Tensor& parameter) {
  if (!parameter.defined()) return py::none();
  if (!parameter.is_leaf()) return parameter_object(parameter);  // computed for one forward
  return make_python_fields(layer).keep(name, parameter);
}

PythonFields* python_fields(const nn::Module& module) {
  return static_cast<PythonFields*>(module.added_fields().get());  // here nobody else adds any
}

PythonFields& make_python_fields(nn::Module& module) {
  if (!module.added_fields()) module.set_added_fields(std::make_shared<PythonFields>());
  return *python_fields(module);
}

void add_module(nn::Module& to, const std::string& name, py::object module) {
  if (!module.is_none())
    for (const nn::Module* below : module.cast<nn::Module&>().modules())
      if (below == &to)
        throw ValueError("'" + name +
                         "': a module can not be below itself; to refer to one above, keep it in a list");
  make_python_fields(to).set_module(name, std::move(module));
}

}  // namespace tern::python
