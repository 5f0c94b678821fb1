// What the tables of classes share: settings as they stand in pickled objects, written and read. For
// module_classes*.cpp only.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tern/base/check.h"
#include "tern/ops/size2.h"
#include "tern/train/module_classes.h"

namespace tern::train {

// ---- settings to values

inline Value pair(Size2 size) { return Value::tuple({size.h, size.w}); }
/// One number where both are the same, as it is mostly given.
inline Value one_or_pair(Size2 size) { return size.h == size.w ? Value(size.h) : pair(size); }
inline Value single(int64_t size) { return Value::tuple({size}); }
inline Value tuple(const std::vector<int64_t>& sizes) {
  return Value::tuple(std::vector<Value>(sizes.begin(), sizes.end()));
}
template <class T>
Value or_none(const std::optional<T>& value) {
  return value ? Value(*value) : Value();
}

// ---- settings from values

struct Reader {
  const ValueObject& object;

  const Value* find(std::string_view name) const { return object.attribute(name); }
  const Value& at(std::string_view name) const {
    const Value* value = find(name);
    TERN_CHECK(value, CheckpointError, "the object has no attribute '{}'", name);
    return *value;
  }
  int64_t integer(std::string_view name) const { return at(name).as_int(); }
  int64_t integer(std::string_view name, int64_t absent) const {
    const Value* value = find(name);
    return value ? value->as_int() : absent;
  }
  double number(std::string_view name) const { return at(name).as_float(); }
  double number(std::string_view name, double absent) const {
    const Value* value = find(name);
    return value ? value->as_float() : absent;
  }
  bool flag(std::string_view name, bool absent) const {
    const Value* value = find(name);
    return value ? value->as_bool() : absent;
  }
  bool has(std::string_view name) const {
    const Value* value = find(name);
    return value && !value->is_none();
  }
  /// A number, or a tuple of one.
  int64_t one(std::string_view name) const {
    const Value& value = at(name);
    if (value.is_int()) return value.as_int();
    const auto& sizes = value.as_sequence();
    TERN_CHECK(sizes.size() == 1, CheckpointError, "'{}' is {}, not one number", name, value.str(100));
    return sizes[0].as_int();
  }
  /// A number for both, or a tuple of two; None stands for -1.
  Size2 two(std::string_view name) const {
    const Value& value = at(name);
    auto size = [](const Value& x) { return x.is_none() ? int64_t{-1} : x.as_int(); };
    if (value.is_int() || value.is_none()) return size(value);
    const auto& sizes = value.as_sequence();
    TERN_CHECK(sizes.size() == 2, CheckpointError, "'{}' is {}, not one or two numbers", name,
               value.str(100));
    return {size(sizes[0]), size(sizes[1])};
  }
  std::vector<int64_t> sizes(std::string_view name) const {
    const Value& value = at(name);
    if (value.is_int()) return {value.as_int()};
    std::vector<int64_t> sizes;
    for (const Value& size : value.as_sequence()) sizes.push_back(size.as_int());
    return sizes;
  }
  /// Refuses a setting that Tern's layer lacks.
  void only(std::string_view name, const Value& wanted) const {
    const Value* value = find(name);
    TERN_CHECK(!value || *value == wanted, CheckpointError, "{} = {} is not supported, only {}", name,
               value->str(100), wanted.str(100));
  }
  bool parameter(const std::string& name) const {
    const Value* parameters = find("_parameters");
    if (!parameters || !parameters->is_dict()) return false;
    const Value* value = parameters->find(name);
    return value && !value->is_none();
  }
};

/// The row of M, which has these two functions in its file.
template <class M, Attributes (*kSettings)(const M&), nn::AnyModule (*kMake)(const Reader&, const M*)>
ModuleClass module_class(const char* module, const char* name, std::vector<std::string> parameters,
                         std::vector<std::string> buffers) {
  return {std::string("torch.nn.modules.") + module,
          name,
          typeid(M),
          [](const nn::Module& layer) { return kSettings(static_cast<const M&>(layer)); },
          [](const ValueObject& object) { return kMake(Reader{object}, nullptr); },
          std::move(parameters),
          std::move(buffers)};
}

/// Classes of torch/nn/modules/activation.py (module_classes_activation.cpp).
std::vector<ModuleClass> activation_classes();
/// Attention and transformers (module_classes_attention.cpp).
std::vector<ModuleClass> attention_classes();
/// Classes of layers over sequences and images: convolution, pooling, padding (module_classes_images.cpp).
std::vector<ModuleClass> image_classes();
/// Recurrent layers and cells (module_classes_recurrent.cpp).
std::vector<ModuleClass> recurrent_classes();

}  // namespace tern::train
