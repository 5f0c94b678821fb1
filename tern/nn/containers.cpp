// The parts of containers that do not depend on what they hold.
#include "tern/nn/containers.h"

#include <fmt/format.h>

#include "tern/base/check.h"
#include "tern/nn/activation.h"
#include "tern/nn/linear.h"
#include "tern/nn/text.h"
#include "tern/ops/linear.h"

namespace tern::nn {

namespace detail {

void throw_no_element(const char* container, int64_t index, size_t size) {
  TERN_THROW(IndexError, "{}: index {} is out of range: it holds {} modules", container, index, size);
}

void throw_no_key(std::string_view key, const std::vector<std::string>& keys) {
  TERN_THROW(IndexError, "there is no module '{}': the names are '{}'", key, fmt::join(keys, "', '"));
}

void throw_double_key(const char* container, std::string_view key) {
  TERN_THROW(ValueError, "{}: there is a module '{}' already", container, key);
}

std::string list_text(const Module& list) {
  struct Run {
    std::string text;
    size_t first, last;
  };
  std::vector<Run> runs;
  size_t index = 0;
  for (const auto& [name, module] : list.named_children()) {
    std::string text = module->str();
    if (!runs.empty() && runs.back().text == text)
      runs.back().last = index;
    else
      runs.push_back({std::move(text), index, index});
    ++index;
  }
  std::string result = list.class_name() + "(";
  for (const Run& run : runs) {
    std::string line = run.first == run.last ? fmt::format("({}): {}", run.first, run.text)
                                             : fmt::format("({}-{}): {} x {}", run.first, run.last,
                                                           run.last - run.first + 1, run.text);
    result += "\n  " + indent_rest(line);
  }
  return result + (runs.empty() ? ")" : "\n)");
}

}  // namespace detail

namespace {

/// Two layers with gelu by tanh between them, which fit each other, and no hook looks at what lies between.
bool is_feed_forward(const AnyModule& first, const AnyModule& between, const AnyModule& second) {
  const auto is_linear = [](const AnyModule& m) { return m.is<Linear>() || m.is<LazyLinear>(); };
  if (!is_linear(first) || !between.is<GELU>() || !is_linear(second)) return false;
  const auto &one = first.as<Linear>(), &two = second.as<Linear>();
  if (detail::any_lazy(one.weight, one.bias) || detail::any_lazy(two.weight, two.bias)) return false;
  return between.as<GELU>().approximate == "tanh" && !one.hooks() && !between->hooks() && !two.hooks() &&
         one.out_features() == two.in_features() && one.weight.dtype() == two.weight.dtype() &&
         one.weight.device() == two.weight.device();
}

Tensor feed_forward(const AnyModule& first, const AnyModule& second, const Tensor& x) {
  const auto &one = first.as<Linear>(), &two = second.as<Linear>();
  return detail::call_inside(
      first.get(), [&] { return linear_gelu_linear(x, one.weight, one.bias, two.weight, two.bias); });
}

}  // namespace

Tensor Sequential::forward(const Tensor& x) const {
  Tensor y = x;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const AnyModule& module = entries_[i].second;
    const AnyModule* next = i + 1 < entries_.size() ? &entries_[i + 1].second : nullptr;
    const AnyModule* second = i + 2 < entries_.size() ? &entries_[i + 2].second : nullptr;
    if (next != nullptr && module.has_relu() && next->is<ReLU>() && !(*next)->hooks()) {
      y = module.call_relu(y);
      ++i;
    } else if (second != nullptr && is_feed_forward(module, *next, *second)) {
      y = feed_forward(module, *second, y);
      i += 2;
    } else {
      y = module(y);
    }
  }
  return y;
}

void Sequential::push_back(std::string name, AnyModule module) {
  for (const Entry& entry : entries_)
    if (entry.first == name) detail::throw_double_key("Sequential", name);
  entries_.emplace_back(std::move(name), std::move(module));
}

AnyModule& Sequential::operator[](std::string_view name) {
  std::vector<std::string> names;
  for (Entry& entry : entries_) {
    if (entry.first == name) return entry.second;
    names.push_back(entry.first);
  }
  detail::throw_no_key(name, names);
}

}  // namespace tern::nn
