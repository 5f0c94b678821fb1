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

void throw_no_element(const char* container, int64_t index, size_t size, const char* held) {
  TERN_THROW(IndexError, "{}: index {} is out of range: it holds {} {}", container, index, size, held);
}

void throw_no_key(std::string_view key, const std::vector<std::string>& keys, const char* held) {
  TERN_THROW(IndexError, "there is no {} '{}': the names are '{}'", held, key, fmt::join(keys, "', '"));
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

// ---- parameters

namespace {

/// PyTorch's old name of a tensor's type, "torch.FloatTensor", which it still prints for dicts.
std::string type_name(const Tensor& x) {
  const auto word = [&] {
    switch (x.dtype()) {
      case DType::Float32:
        return "Float";
      case DType::Float64:
        return "Double";
      case DType::Float16:
        return "Half";
      case DType::BFloat16:
        return "BFloat16";
      case DType::UInt8:
        return "Byte";
      case DType::Int8:
        return "Char";
      case DType::Int16:
        return "Short";
      case DType::Int32:
        return "Int";
      case DType::Int64:
        return "Long";
      default:
        return "Bool";
    }
  };
  return fmt::format("torch.{}{}Tensor", x.device().is_cuda() ? "cuda." : "", word());
}

/// The line of a parameter under this key.
std::string parameter_line(std::string_view key, std::string_view type, const Tensor& x) {
  return fmt::format("  ({}): Parameter containing: [{} of size {}{}]", key, type, fmt::join(x.shape(), "x"),
                     x.device().is_cuda() ? " (" + x.device().str() + ")" : "");
}

void check_present(const char* container, const Parameter& parameter) {
  TERN_CHECK(parameter.defined(), ValueError, "{}: the parameter is absent (default-constructed)", container);
}

}  // namespace

void ParameterList::insert(int64_t index, const Parameter& parameter) {
  check_present("ParameterList", parameter);
  const int64_t count = static_cast<int64_t>(size());
  parameters_.insert(parameters_.begin() + std::clamp(index < 0 ? index + count : index, int64_t{0}, count),
                     parameter);
}

size_t ParameterList::place_of(int64_t index) const {
  return detail::checked_index("ParameterList", index, size(), "parameters");
}

std::string ParameterList::extra_repr() const {
  std::vector<std::string> lines;
  for (const Parameter& parameter : parameters_)
    lines.push_back(parameter_line(std::to_string(lines.size()),
                                   "torch." + std::string(name(parameter.dtype())), parameter));
  return fmt::format("{}", fmt::join(lines, "\n"));
}

void ParameterDict::insert(std::string key, const Parameter& parameter) {
  check_present("ParameterDict", parameter);
  TERN_CHECK(!key.empty() && key.find('.') == std::string::npos, ValueError,
             "ParameterDict: a name must not be empty, nor have a '.' in it, got '{}'", key);
  TERN_CHECK(!contains(key), ValueError, "ParameterDict: there is a parameter '{}' already", key);
  entries_.emplace_back(std::move(key), parameter);
}

bool ParameterDict::contains(std::string_view key) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.first == key; });
}

const Parameter& ParameterDict::operator[](std::string_view key) const {
  for (const Entry& entry : entries_)
    if (entry.first == key) return entry.second;
  detail::throw_no_key(key, keys(), "parameter");
}

std::vector<std::string> ParameterDict::keys() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.first);
  return names;
}

std::string ParameterDict::extra_repr() const {
  std::vector<std::string> lines;
  for (const Entry& entry : entries_)
    lines.push_back(parameter_line(entry.first, type_name(entry.second), entry.second));
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace tern::nn
