// What the tables of classes share: settings as they stand in pickled objects, written and read. For
// module_classes*.cpp only.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tern/base/check.h"
#include "tern/ops/size3.h"
#include "tern/train/module_classes.h"

namespace tern::train {

// ---- settings to values

inline Value tuple(const std::vector<int64_t>& sizes) {
  return Value::tuple(std::vector<Value>(sizes.begin(), sizes.end()));
}
/// Sizes of one, two or three dimensions as a tuple.
template <class Size>
Value size_tuple(Size size) {
  const auto sizes = sizes_of(size);
  return Value::tuple(std::vector<Value>(sizes.begin(), sizes.end()));
}
/// A number or a tuple, as it was given.
template <class Size>
Value one_or_tuple(Size size) {
  return is_tuple(size) ? size_tuple(size) : Value(sizes_of(size)[0]);
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
  /// A number for all of N dimensions, or a tuple of N; None stands for -1.
  template <int N>
  SizeOf<N> size(std::string_view name) const {
    const Value& value = at(name);
    const auto one = [](const Value& x) { return x.is_none() ? int64_t{-1} : x.as_int(); };
    if (value.is_int() || value.is_none()) return one(value);
    const auto& given = value.as_sequence();
    TERN_CHECK(given.size() == N, CheckpointError, "'{}' is {}, not one number{}", name, value.str(100),
               N == 1 ? "" : " or " + std::to_string(N));
    std::array<int64_t, N> all;
    std::transform(given.begin(), given.end(), all.begin(), one);
    return size_from(all);
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
  /// Undefined where there is none.
  Tensor buffer(const std::string& name) const {
    const Value* buffers = find("_buffers");
    const Value* value = buffers && buffers->is_dict() ? buffers->find(name) : nullptr;
    return value && value->is_tensor() ? value->as_tensor() : Tensor();
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
/// Losses (module_classes_loss.cpp).
std::vector<ModuleClass> loss_classes();
/// Layers that give images another size or order (module_classes_resize.cpp).
std::vector<ModuleClass> resize_classes();
/// Recurrent layers and cells (module_classes_recurrent.cpp).
std::vector<ModuleClass> recurrent_classes();

}  // namespace tern::train
