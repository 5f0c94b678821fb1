// The parts of containers that do not depend on what they hold.
#include "tern/nn/containers.h"

#include <fmt/format.h>

#include "tern/base/check.h"
#include "tern/nn/activation.h"
#include "tern/nn/text.h"

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

Tensor Sequential::forward(const Tensor& x) const {
  Tensor y = x;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const AnyModule& module = entries_[i].second;
    const AnyModule* next = i + 1 < entries_.size() ? &entries_[i + 1].second : nullptr;
    if (next != nullptr && module.has_relu() && next->is<ReLU>() && !(*next)->hooks()) {
      y = module.call_relu(y);
      ++i;
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
