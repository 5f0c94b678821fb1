// `tern diff`: how two checkpoints differ, whatever their formats.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "tern/base/check.h"
#include "tern/cli/checkpoint_file.h"
#include "tern/cli/checkpoint_text.h"
#include "tern/cli/command.h"
#include "tern/cli/output.h"
#include "tern/cli/usage.h"
#include "tern/io/tensor_numbers.h"
#include "tern/train/terminal.h"

namespace tern::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownLines = 60;

struct DiffOptions {
  std::string a, b;
  double tolerance = 0;
  bool ignore_prefix = false, ignore_dtype = false, json = false, all = false;
};

/// One side: tensors by name in the order of the file. Of sparse tensors each part.
struct Side {
  Value root;
  std::vector<std::string> names;
  std::unordered_map<std::string, io::FoundTensor> tensors;

  /// The second tensor of one name is "name (2)".
  void add(const std::string& name, io::FoundTensor&& tensor) {
    size_t& number = numbers_[name];
    std::string own;
    do {
      own = ++number == 1 ? name : fmt::format("{} ({})", name, number);
    } while (tensors.contains(own));
    names.push_back(own);
    tensors.emplace(std::move(own), std::move(tensor));
  }

 private:
  std::unordered_map<std::string, size_t> numbers_;
};

Side read_side(const std::string& path) {
  Side side;
  io::Summary summary = load_summary(path);
  for (io::TensorEntry& entry : summary.tensors) side.add(entry.path, std::move(entry));
  side.root = std::move(summary.root);
  return side;
}

/// The model's tensors have names without what wrappers put before; all others their own.
Side read_side_without_prefix(const std::string& path) {
  Side side;
  LoadedCheckpoint loaded = load_checkpoint(path);
  std::vector<std::string> names;
  for (const auto& [name, value] : loaded.weights) names.push_back(name);
  std::string prefix = io::wrapper_prefix(names);
  std::unordered_set<const TensorImpl*> named;
  if (loaded.from_module)
    for (const auto& [name, value] : loaded.weights)
      for (io::FoundTensor& found : io::find_tensors(value)) {
        named.insert(&found.tensor.impl());
        side.add(name.substr(prefix.size()), std::move(found));
      }
  for (auto key = loaded.keys.rbegin(); key != loaded.keys.rend(); ++key) prefix = *key + "." + prefix;
  for (io::TensorEntry& entry : loaded.summary.tensors) {
    if (loaded.from_module && entry.tensor.defined() && named.contains(&entry.tensor.impl())) continue;
    const bool wrapped = !loaded.from_module && entry.path.starts_with(prefix);
    side.add(entry.path.substr(wrapped ? prefix.size() : 0), std::move(entry));
  }
  side.root = std::move(loaded.summary.root);
  return side;
}

struct Difference {
  std::string name;
  std::string what;  ///< "only in a", "shape", "dtype", "values"
  std::string text;  ///< for people
  double largest = 0;
  int64_t different = 0;
  Json json;
};

std::optional<Difference> compare(const std::string& name, const io::FoundTensor& a, const io::FoundTensor& b,
                                  const DiffOptions& options) {
  Difference result;
  result.name = name;
  if (a.shape != b.shape) {
    result.what = "shape";
    result.text = fmt::format("shape {} and {}", to_string(a.shape), to_string(b.shape));
    result.json = {{"name", name}, {"what", "shape"}, {"a", a.shape}, {"b", b.shape}};
    return result;
  }
  // Of a sparse tensor the parts are compared in order.
  std::vector<std::pair<Tensor, Tensor>> pairs;
  if (a.tensor.defined() && b.tensor.defined()) {
    pairs.emplace_back(a.tensor, b.tensor);
  } else if (a.kind != b.kind || a.parts.size() != b.parts.size()) {
    result.what = "kind";
    result.text = fmt::format("a {} and a {}", io::name(a.kind), io::name(b.kind));
    result.json = {{"name", name}, {"what", "kind"}, {"a", io::name(a.kind)}, {"b", io::name(b.kind)}};
    return result;
  } else {
    for (size_t i = 0; i < a.parts.size(); ++i) pairs.emplace_back(a.parts[i], b.parts[i]);
  }
  bool comparable = true;
  for (const auto& [x, y] : pairs) {
    if (x.shape() != IntArrayRef(y.shape())) {
      result.what = "values";
      result.text = "other places of stored values";
      result.json = {{"name", name}, {"what", "values"}};
      return result;
    }
    if (!io::has_numbers(x) || !io::has_numbers(y)) {
      comparable = false;
      continue;
    }
    const io::NumberDifference d = with_context(fmt::format("tensor '{}'", name), [&, &a = x, &b = y] {
      return io::difference(a, b, options.tolerance);
    });
    result.largest = std::max(result.largest, d.largest);
    result.different += d.different;
  }
  if (!comparable) {
    // Dtypes that hold several numbers in an element: their bytes are compared.
    for (const auto& [x, y] : pairs)
      result.different += x.dtype() != y.dtype() || !x.is_contiguous() || !y.is_contiguous() ||
                          std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) != 0;
  }
  const bool other_dtype = a.dtype != b.dtype && !options.ignore_dtype;
  if (!other_dtype && result.different == 0) return std::nullopt;
  result.what = other_dtype ? "dtype" : "values";
  if (other_dtype) result.text = fmt::format("{} and {}", shown(a.dtype), shown(b.dtype));
  if (result.different > 0)
    result.text += fmt::format("{}{} of {} by up to {:.6g}", other_dtype ? "; " : "",
                               train::with_commas(result.different),
                               count_text(static_cast<uint64_t>(std::max<int64_t>(
                                              a.tensor.defined() ? a.tensor.numel() : result.different, 0)),
                                          "element"),
                               result.largest);
  result.json = {{"name", name},
                 {"what", result.what},
                 {"largest", number_json(result.largest)},
                 {"different", result.different}};
  if (a.dtype != b.dtype) {
    result.json["a"] = a.dtype;
    result.json["b"] = b.dtype;
  }
  return result;
}

int run(const DiffOptions& options) {
  const auto read = options.ignore_prefix ? read_side_without_prefix : read_side;
  const Side a = read(options.a), b = read(options.b);
  std::vector<std::string> only_a, only_b;
  std::vector<Difference> differences;
  size_t compared = 0;
  for (const std::string& name : a.names) {
    const auto other = b.tensors.find(name);
    if (other == b.tensors.end()) {
      only_a.push_back(name);
      continue;
    }
    ++compared;
    if (auto difference = compare(name, a.tensors.at(name), other->second, options))
      differences.push_back(std::move(*difference));
  }
  for (const std::string& name : b.names)
    if (!a.tensors.contains(name)) only_b.push_back(name);
  const bool equal = only_a.empty() && only_b.empty() && differences.empty();

  if (options.json) {
    Json list = Json::array();
    for (Difference& difference : differences) list.push_back(std::move(difference.json));
    fmt::print("{}", json_text({{"equal", equal},
                                {"tolerance", options.tolerance},
                                {"compared", compared},
                                {"only_in_a", only_a},
                                {"only_in_b", only_b},
                                {"differences", std::move(list)}}));
    return equal ? 0 : 1;
  }
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : only_a)
    rows.push_back({"- " + tensor_label(name, a.root), "only in " + shown(options.a)});
  for (const std::string& name : only_b)
    rows.push_back({"+ " + tensor_label(name, b.root), "only in " + shown(options.b)});
  for (const Difference& difference : differences)
    rows.push_back({"~ " + tensor_label(difference.name, a.root), difference.text});
  const size_t count = rows.size();
  if (!options.all && count > kShownLines) rows.resize(kShownLines);
  for (const std::string& row : table_rows(rows, {false, false}, table_width())) fmt::print("{}", row);
  const auto digits = [](size_t number) { return train::with_commas(static_cast<long long>(number)); };
  if (rows.size() < count) fmt::print("... {} more (--all shows them)\n", digits(count - rows.size()));
  if (equal)
    fmt::print("equal: {}\n", count_text(compared, "tensor"));
  else
    fmt::print("{} in both, {} of them different; {} only in the first, {} only in the second\n",
               count_text(compared, "tensor"), digits(differences.size()), digits(only_a.size()),
               digits(only_b.size()));
  if (compared == 0 && !only_a.empty() && !only_b.empty() && !options.ignore_prefix)
    fmt::print("no name is in both: --ignore-prefix takes what wrappers put before them\n");
  return equal ? 0 : 1;
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("diff", "Compare the tensors of two checkpoints");
  auto options = std::make_shared<DiffOptions>();
  command->add_option("a", options->a, "A checkpoint; '-': standard input")->required();
  command->add_option("b", options->b, "Another, of the same or another format")->required();
  command->add_option("--tolerance", options->tolerance, "Differences up to this are none")
      ->type_name("X")
      ->check(number_from(0))
      ->capture_default_str();
  command->add_flag("--ignore-prefix", options->ignore_prefix,
                    "Take the key and the wrapper's prefix from the names of the model's tensors");
  command->add_flag("--ignore-dtype", options->ignore_dtype, "Another dtype is no difference");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->add_flag("--all", options->all, "Do not shorten long lists");
  command->footer(
      "Exit codes: 0 equal, 1 different, 2 a file cannot be read, or wrong use.\n\nExamples:\n"
      "  tern diff a.pt b.safetensors\n  tern diff a.pt b.pt --tolerance 1e-6 --ignore-prefix");
  command->callback([options, &action] {
    action = [options] {
      return with_errors(
          "diff",
          [&] {
            const int code = run(*options);
            check_output();  // here, since 1 would say that the files differ
            return code;
          },
          /*failure=*/2);
    };
  });
}

}  // namespace tern::cli
