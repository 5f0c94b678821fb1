// Padding layers.
#include "tern/nn/pad.h"

#include "tern/nn/text.h"

namespace tern::nn {
namespace {

/// As Python writes it.
std::string number_text(const Scalar& value) {
  if (value.kind() == DType::Bool) return python_text(value.to_bool());
  return value.is_floating_point() ? python_text(value.to_double()) : std::to_string(value.to_int());
}

}  // namespace

Padding::Padding(const char* mode, Sides1d sides, const Scalar& value, bool prints_value)
    : padding_{sides.left, sides.right}, mode_(mode), value_(value), prints_value_(prints_value) {}

Padding::Padding(const char* mode, Sides2d sides, const Scalar& value, bool prints_value)
    : padding_{sides.left, sides.right, sides.top, sides.bottom},
      mode_(mode),
      value_(value),
      prints_value_(prints_value) {}

Padding::Padding(const char* mode, Sides3d sides, const Scalar& value, bool prints_value)
    : padding_{sides.left, sides.right, sides.top, sides.bottom, sides.front, sides.back},
      mode_(mode),
      value_(value),
      prints_value_(prints_value) {}

Tensor Padding::forward(const Tensor& x) const { return pad(x, padding_, mode_, value_); }

std::string Padding::extra_repr() const {
  const std::string sides = python_tuple(padding_);
  return prints_value_ ? "padding=" + sides + ", value=" + number_text(value_) : sides;
}

}  // namespace tern::nn
