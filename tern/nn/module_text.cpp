// The text that a module prints, as PyTorch's repr, and the helpers for it.
#include <fmt/format.h>

#include <ostream>

#include "tern/base/type_name.h"
#include "tern/nn/module.h"
#include "tern/nn/text.h"
#include "tern/nn/whole_shapes.h"

namespace tern::nn {

std::string python_text(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".enai") == std::string::npos ? text + ".0" : text;
}

std::string python_text(bool value) { return value ? "True" : "False"; }

std::string python_tuple(IntArrayRef values) {
  return fmt::format("({}{})", fmt::join(values.begin(), values.end(), ", "), values.size() == 1 ? "," : "");
}

std::string size_text(IntArrayRef shape) { return "torch.Size(" + to_string(shape) + ")"; }

std::string indent_rest(std::string_view text) {
  std::string result;
  for (char c : text) {
    result += c;
    if (c == '\n') result += "  ";
  }
  return result;
}

constinit std::atomic<detail::WholeShapes::Show> detail::WholeShapes::show = nullptr;

std::string Module::class_name() const { return short_type_name(typeid(*this)); }

std::string Module::str() const {
  std::string extra;
  {
    const detail::WholeShapes shapes(*this);
    extra = extra_repr();
  }
  const auto children = named_children();
  std::string text = class_name() + "(";
  if (children.empty() && extra.find('\n') == std::string::npos) return text + extra + ")";
  if (!extra.empty()) text += "\n  " + indent_rest(extra);
  for (const auto& [name, child] : children)
    text += fmt::format("\n  ({}): {}", name, indent_rest(child->str()));
  return text + "\n)";
}

std::ostream& operator<<(std::ostream& out, const Module& module) { return out << module.str(); }

}  // namespace tern::nn
