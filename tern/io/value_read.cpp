// The typed reads of values and of entries (as_int, as_tensor, ...).
#include <cstring>

#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/io/tensor_bytes.h"
#include "tern/io/value.h"
#include "tern/io/value_nodes.h"

namespace tern {

namespace {

/// The element of a one-element tensor of a computable dtype.
template <class R>
R element_of(const Tensor& tensor) {
  io::check_has_data(*tensor.storage());
  return visit_dtype(tensor.dtype(), [&]<class T>() {
    alignas(8) std::byte raw[sizeof(T)];
    copy_to_host(raw, *tensor.storage(), static_cast<size_t>(tensor.storage_offset()) * sizeof(T), sizeof(T));
    if constexpr (std::is_same_v<T, bool>) {
      return static_cast<R>(raw[0] != std::byte{0});
    } else {
      T value;
      std::memcpy(&value, raw, sizeof(T));
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
        return static_cast<R>(static_cast<float>(value));
      else
        return static_cast<R>(value);
    }
  });
}

}  // namespace

namespace detail {

#define TERN_WRONG_KIND(wanted) \
  TERN_THROW(TypeError, "{} is {}, not {}", self().where(), describe(self().resolve()), wanted)

namespace {
/// The value itself, or the plain value that an object stands for.
const Value& plain_form(const Value& value) {
  auto* object = value.node<ObjectNode>();
  return object && !object->object.payload.is_none() ? object->object.payload : value;
}

/// The number that a tensor of one element holds; an int only of a dtype without fractions.
template <class R>
R number_in(const Tensor& tensor, const std::string& where) {
  const bool has_fractions = is_floating_point(tensor.dtype());
  TERN_CHECK(
      tensor.numel() == 1 && is_computable(tensor.dtype()) && !(std::is_integral_v<R> && has_fractions),
      TypeError, "{} is a tensor of {} elements of {}, not one {}", where, tensor.numel(),
      name(tensor.dtype()), std::is_integral_v<R> ? "int" : "number");
  return element_of<R>(tensor);
}
}  // namespace

template <class Self>
bool ValueReader<Self>::as_bool() const {
  if (const bool* flag = plain_form(self().resolve()).template plain<bool>()) return *flag;
  TERN_WRONG_KIND("a bool");
}

template <class Self>
int64_t ValueReader<Self>::as_int() const {
  const Value& value = plain_form(self().resolve());
  if (const int64_t* number = value.template plain<int64_t>()) return *number;
  if (const bool* flag = value.template plain<bool>()) return *flag ? 1 : 0;
  if (value.kind() == ValueKind::BigInt)
    TERN_THROW(TypeError, "{} is an int that does not fit 64 bits", self().where());
  if (const Tensor* found = value.template plain<Tensor>(); found && found->defined())
    return number_in<int64_t>(*found, self().where());
  TERN_WRONG_KIND("an int");
}

template <class Self>
double ValueReader<Self>::as_float() const {
  const Value& value = plain_form(self().resolve());
  if (const double* number = value.template plain<double>()) return *number;
  if (const int64_t* number = value.template plain<int64_t>()) return static_cast<double>(*number);
  if (const bool* flag = value.template plain<bool>()) return *flag ? 1.0 : 0.0;
  if (const Tensor* found = value.template plain<Tensor>(); found && found->defined())
    return number_in<double>(*found, self().where());
  if (auto* big = value.template node<BigIntNode>()) return nearest_float(big->bytes);
  TERN_WRONG_KIND("a number");
}

template <class Self>
std::complex<double> ValueReader<Self>::as_complex() const {
  const Value& value = plain_form(self().resolve());
  if (auto* number = value.template plain<std::complex<double>>()) return *number;
  return as_float();
}

template <class Self>
const std::string& ValueReader<Self>::as_str() const& {
  auto* found = self().resolve().template node<StrNode>();
  if (!found) TERN_WRONG_KIND("a str");
  return found->text;
}

template <class Self>
const std::string& ValueReader<Self>::as_bytes() const& {
  auto* found = self().resolve().template node<BytesNode>();
  if (!found) TERN_WRONG_KIND("bytes");
  return found->data;
}

template <class Self>
Tensor ValueReader<Self>::as_tensor() const {
  if (auto* tensor = plain_form(self().resolve()).template plain<Tensor>()) return *tensor;
  TERN_WRONG_KIND("a tensor");
}

template <class Self>
std::vector<Value>& ValueReader<Self>::as_list() const& {
  auto* found = self().resolve().template node<SequenceNode>();
  if (!found || found->kind != ValueKind::List) TERN_WRONG_KIND("a list");
  return found->items;
}

template <class Self>
const std::vector<Value>& ValueReader<Self>::as_tuple() const& {
  auto* found = self().resolve().template node<SequenceNode>();
  if (!found || found->kind != ValueKind::Tuple) TERN_WRONG_KIND("a tuple");
  return found->items;
}

template <class Self>
const std::vector<Value>& ValueReader<Self>::as_sequence() const& {
  auto* found = self().resolve().template node<SequenceNode>();
  if (!found || found->kind == ValueKind::Slice) TERN_WRONG_KIND("a list or tuple");
  return found->items;
}

template <class Self>
ValueDict& ValueReader<Self>::as_dict() const& {
  auto* found = self().resolve().template node<DictNode>();
  if (!found || found->kind != ValueKind::Dict) TERN_WRONG_KIND("a dict");
  return found->dict;
}

template <class Self>
const ValueDict& ValueReader<Self>::as_set() const& {
  auto* found = self().resolve().template node<DictNode>();
  if (!found || found->kind == ValueKind::Dict) TERN_WRONG_KIND("a set");
  return found->dict;
}

template <class Self>
DType ValueReader<Self>::as_dtype() const {
  if (auto* found = self().resolve().template plain<DType>()) return *found;
  TERN_WRONG_KIND("a dtype");
}

template <class Self>
Device ValueReader<Self>::as_device() const {
  if (auto* found = self().resolve().template plain<Device>()) return *found;
  TERN_WRONG_KIND("a device");
}

template <class Self>
std::vector<int64_t> ValueReader<Self>::as_size() const {
  const Value& value = self().resolve();
  auto* found = value.template node<SequenceNode>();
  if (!found || found->kind == ValueKind::Slice) TERN_WRONG_KIND("a torch.Size, list or tuple of ints");
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < found->items.size(); ++i) {
    TERN_CHECK(found->items[i].kind() == ValueKind::Int, TypeError, "{}[{}] is {}, not an int",
               self().where(), i, describe(found->items[i]));
    sizes.push_back(found->items[i].as_int());
  }
  return sizes;
}

template <class Self>
ValueObject& ValueReader<Self>::as_object() const& {
  auto* found = self().resolve().template node<ObjectNode>();
  if (!found) TERN_WRONG_KIND("an object");
  return found->object;
}

template <class Self>
StateDict ValueReader<Self>::as_state_dict() const {
  const ValueDict& dict = as_dict();
  StateDict result;
  for (const auto& [key, value] : dict) {
    TERN_CHECK(key.is_str(), TypeError, "{}: the key {} is {}; a state dict has names", self().where(),
               key.str(80), describe(key));
    bool stands_for_tensor =
        value.is_tensor() || (value.is_object() && value.as_object().payload.is_tensor());
    TERN_CHECK(stands_for_tensor, TypeError, "{}[{}] is {}, not a tensor: this is no state dict",
               self().where(), key.str(80), describe(value));
    result.insert(key.as_str(), value.as_tensor());
  }
  const Value* metadata = dict.attributes().find("_metadata");
  if (!metadata || !metadata->is_dict()) return result;
  for (const auto& [path, entry] : metadata->as_dict()) {
    const Value* version = entry.find("version");
    if (path.is_str() && version && version->kind() == ValueKind::Int)
      result.set_version(path.as_str(), version->as_int());
  }
  return result;
}

template <class Self>
void ValueReader<Self>::push_back(Value item) const {
  as_list().push_back(std::move(item));
}

#undef TERN_WRONG_KIND

template <class Self>
const std::string ValueReader<Self>::as_str() const&& {
  return static_cast<const ValueReader&>(*this).as_str();
}
template <class Self>
const std::string ValueReader<Self>::as_bytes() const&& {
  return static_cast<const ValueReader&>(*this).as_bytes();
}
template <class Self>
const std::vector<Value> ValueReader<Self>::as_list() const&& {
  return static_cast<const ValueReader&>(*this).as_list();
}
template <class Self>
const std::vector<Value> ValueReader<Self>::as_tuple() const&& {
  return static_cast<const ValueReader&>(*this).as_tuple();
}
template <class Self>
const std::vector<Value> ValueReader<Self>::as_sequence() const&& {
  return static_cast<const ValueReader&>(*this).as_sequence();
}
template <class Self>
const ValueDict ValueReader<Self>::as_dict() const&& {
  return static_cast<const ValueReader&>(*this).as_dict();
}
template <class Self>
const ValueDict ValueReader<Self>::as_set() const&& {
  return static_cast<const ValueReader&>(*this).as_set();
}
template <class Self>
const ValueObject ValueReader<Self>::as_object() const&& {
  return static_cast<const ValueReader&>(*this).as_object();
}

template class ValueReader<Value>;
template class ValueReader<ValueItem>;

}  // namespace detail

}  // namespace tern
