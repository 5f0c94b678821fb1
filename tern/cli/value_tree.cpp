// Drawing of trees.
#include "tern/cli/value_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tern/cli/output.h"
#include "tern/io/find_tensors.h"

namespace tern::cli {
namespace {

constexpr size_t kShownChildren = 40;
constexpr size_t kShownText = 60;

class Drawer {
 public:
  explicit Drawer(const TreeOptions& options) : options_(options) {}

  std::string draw(const Value& root) {
    line("", ".", root);
    children(root, "", ".");
    return std::move(text_);
  }

 private:
  using Child = std::pair<std::string, Value>;

  static std::string entries_text(size_t count) {
    return count == 1 ? "1 entry" : fmt::format("{} entries", count);
  }
  static std::string describe(const Value& value) {
    switch (value.kind()) {
      case ValueKind::Tensor:
        return tensor_text(value.as_tensor());
      case ValueKind::Dict:
        return fmt::format("{}, {}", value.as_dict().is_ordered_dict() ? "OrderedDict" : "dict",
                           entries_text(value.length()));
      case ValueKind::List:
      case ValueKind::Tuple:
        return fmt::format("{}, {}", name(value.kind()), entries_text(value.length()));
      case ValueKind::Object: {
        const ValueObject& object = value.as_object();
        std::string text = shown(object.class_name());
        if (object.payload.is_tensor()) text += " " + tensor_text(object.payload.as_tensor());
        return text;
      }
      default:
        return shown(value.str(kShownText));
    }
  }
  static std::string tensor_text(const Tensor& tensor) {
    if (!tensor.defined()) return "undefined tensor";
    return fmt::format("{} {}", name(tensor.dtype()), to_string(tensor.shape()));
  }

  static std::vector<Child> children_of(const Value& value) {
    std::vector<Child> result;
    auto add_entries = [&](const auto& entries) {
      size_t position = 0;
      for (const auto& [key, entry] : entries) result.emplace_back(io::key_text(key, position++), entry);
    };
    auto add_items = [&](const std::vector<Value>& items) {
      for (size_t i = 0; i < items.size(); ++i) result.emplace_back(std::to_string(i), items[i]);
    };
    if (value.is_dict()) {
      add_entries(value.as_dict());
      if (value.as_dict().attributes().is_dict()) add_entries(value.as_dict().attributes().as_dict());
    } else if (value.is_list() || value.is_tuple()) {
      add_items(value.as_sequence());
    } else if (value.kind() == ValueKind::Set || value.kind() == ValueKind::FrozenSet) {
      size_t position = 0;
      for (const auto& entry : value.as_set()) result.emplace_back(std::to_string(position++), entry.key);
    } else if (value.is_object() && !value.as_object().payload.is_tensor()) {
      const ValueObject& object = value.as_object();
      if (object.args.is_tuple() && object.args.length() > 0) result.emplace_back("__args__", object.args);
      add_items(object.items);
      add_entries(object.entries);
      if (object.state.is_dict())
        add_entries(object.state.as_dict());
      else if (!object.state.is_none())
        result.emplace_back("__state__", object.state);
    }
    return result;
  }

  void line(const std::string& indent, const std::string& label, const Value& value) {
    text_ += fmt::format("{}{}  {}\n", indent, label.empty() ? "''" : shown(label), describe(value));
  }

  void children(const Value& value, const std::string& indent, const std::string& path) {
    std::vector<Child> all = children_of(value);
    if (all.empty()) return;
    if (!first_place_.emplace(value.identity(), path).second) return;
    const size_t count = options_.all ? all.size() : std::min(all.size(), kShownChildren);
    for (size_t i = 0; i < count; ++i) {
      const auto& [label, child] = all[i];
      const bool last = i + 1 == all.size();
      const std::string here = indent + branch(last);
      const auto seen = child.identity() ? first_place_.find(child.identity()) : first_place_.end();
      if (seen != first_place_.end() && !children_of(child).empty()) {
        text_ += fmt::format("{}{}  the same as {}\n", here, shown(label), shown(seen->second));
        continue;
      }
      line(here, label, child);
      children(child, indent + (last ? "    " : bar()), path == "." ? label : path + "." + label);
    }
    if (count < all.size())
      text_ += fmt::format("{}{}... {} more (--all shows them)\n", indent, branch(true), all.size() - count);
  }

  const char* branch(bool last) const {
    if (options_.unicode) return last ? "\u2514\u2500\u2500 " : "\u251c\u2500\u2500 ";
    return last ? "`-- " : "|-- ";
  }
  const char* bar() const { return options_.unicode ? "\u2502   " : "|   "; }

  const TreeOptions& options_;
  std::string text_;
  std::unordered_map<const void*, std::string> first_place_;
};

}  // namespace

std::string tree_text(const Value& root, const TreeOptions& options) { return Drawer(options).draw(root); }

}  // namespace tern::cli
