// `tern inspect`: what is in a checkpoint file. What is known of it comes from tern/io/summary.h; the tree is
// in value_tree.h.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <set>
#include <string>

#include "tern/base/check.h"
#include "tern/cli/checkpoint_file.h"
#include "tern/cli/checkpoint_text.h"
#include "tern/cli/command.h"
#include "tern/cli/output.h"
#include "tern/cli/usage.h"
#include "tern/cli/value_tree.h"
#include "tern/io/pickle_listing.h"
#include "tern/io/sparse_numbers.h"
#include "tern/io/summary.h"
#include "tern/train/terminal.h"

namespace tern::cli {
namespace {

using Json = nlohmann::ordered_json;
using io::Summary;
using io::TensorEntry;
using io::Verdict;

constexpr size_t kShownTensors = 60;

struct InspectOptions {
  std::string file;
  bool json = false;
  bool values = false;
  bool tree = false;
  bool pickle = false;
  bool all = false;
};

/// The numbers of what is found; none for what has none, such as arrays of text.
std::optional<io::NumberSummary> numbers_of(const TensorEntry& entry) {
  if (entry.kind == io::TensorKind::Sparse) return io::summarize_sparse(entry);
  if (!io::has_numbers(entry.tensor)) return std::nullopt;
  return with_context(fmt::format("tensor '{}'", entry.path),
                      [&] { return io::summarize_numbers(entry.tensor, /*drop_pages=*/true); });
}

bool is_complex_name(const std::string& dtype) {
  return dtype.ends_with("complex32") || dtype.starts_with("complex");
}

Json values_json(const Summary& summary) {
  Json tensors = Json::array();
  for (const TensorEntry& entry : summary.tensors) {
    Json json = {
        {"name", entry.path}, {"dtype", entry.dtype}, {"shape", entry.shape}, {"device", entry.device}};
    const std::optional<io::NumberSummary> numbers = numbers_of(entry);
    json["sum"] = numbers ? number_json(numbers->sum, is_complex_name(entry.dtype)) : Json(nullptr);
    Json first = Json::array();
    if (numbers)
      for (const io::Number& number : numbers->first) first.push_back(number_json(number));
    json["first"] = std::move(first);
    tensors.push_back(std::move(json));
  }
  return {{"format", summary.format},
          {"wrapper", summary.wrapper.empty() ? Json(nullptr) : Json(summary.wrapper)},
          {"safe", summary.verdict() == Verdict::PlainData},
          {"tensors", std::move(tensors)}};
}

Json summary_json(const Summary& summary) {
  auto text_or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  Json globals = Json::array(), tensors = Json::array();
  for (const io::JudgedGlobal& global : summary.globals)
    globals.push_back(
        {{"name", global.name.full()}, {"byte", global.byte}, {"verdict", name(global.verdict)}});
  for (const TensorEntry& entry : summary.tensors)
    tensors.push_back({{"name", entry.path},
                       {"kind", name(entry.kind)},
                       {"dtype", entry.dtype},
                       {"shape", entry.shape},
                       {"stride", entry.stride},
                       {"offset", entry.offset},
                       {"device", entry.device},
                       {"storage", text_or_null(entry.storage)},
                       {"bytes", entry.nbytes},
                       {"shared_with", text_or_null(entry.shared_with)}});
  Json metadata = Json::object();
  for (const auto& [key, value] : summary.metadata) metadata[key] = value;
  return {{"format", summary.format},
          {"version", text_or_null(summary.version)},
          {"pickle_protocol", summary.pickle_protocol},
          {"file_bytes", summary.file_bytes},
          {"wrapper", text_or_null(summary.wrapper)},
          {"safe", summary.verdict() == Verdict::PlainData},
          {"verdict", name(summary.verdict())},
          {"globals", std::move(globals)},
          {"metadata", std::move(metadata)},
          {"tensor_count", summary.tensors.size()},
          {"elements", summary.elements},
          {"tensor_bytes", summary.tensor_bytes},
          {"storages", summary.storages},
          {"storage_bytes", summary.storage_bytes},
          {"tensors", std::move(tensors)}};
}

std::string format_text(const Summary& summary) {
  const std::string& format = summary.format;
  std::string text = format == "zip"           ? "PyTorch's zip format"
                     : format == "legacy"      ? "PyTorch's stream format (before 1.6)"
                     : format == "tar"         ? "PyTorch's tar format (0.1)"
                     : format == "torchscript" ? "a TorchScript program"
                     : format == "pickle"      ? "a plain pickle"
                     : format == "npy"         ? "a NumPy array"
                     : format == "npz"         ? "NumPy arrays (.npz)"
                                               : format;
  if (!summary.version.empty()) text += ", version " + shown(summary.version);
  if (summary.pickle_protocol > 0) text += fmt::format(", pickle protocol {}", summary.pickle_protocol);
  return text;
}

/// The names of one verdict, the first few with their bytes.
std::string names_text(const Summary& summary, Verdict verdict, bool bytes) {
  std::string text;
  size_t count = 0;
  constexpr size_t kShown = 6;
  for (const io::JudgedGlobal& global : summary.globals) {
    if (global.verdict != verdict || ++count > kShown) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", shown(global.name.full()).substr(0, 100),
                        bytes ? fmt::format(" (byte {})", global.byte) : "");
  }
  return count > kShown ? fmt::format("{} and {} more", text, count - kShown) : text;
}

void print_verdict(const Summary& summary, const train::Style& style) {
  const Verdict verdict = summary.verdict();
  const std::string& color = verdict == Verdict::PlainData      ? style.green
                             : verdict == Verdict::NeedsClasses ? style.yellow
                                                                : style.red;
  const std::string names = verdict == Verdict::PlainData ? "" : names_text(summary, verdict, /*bytes=*/true);
  fmt::print("{}{}{}{}{}\n", color, name(verdict), style.reset, names.empty() ? "" : ": ", names);
}

/// What is special about a tensor, in a few words.
std::string note_of(const TensorEntry& entry) {
  std::string note;
  auto add = [&](const std::string& text) { note += (note.empty() ? "" : ", ") + text; };
  if (entry.kind != io::TensorKind::Tensor && entry.kind != io::TensorKind::Parameter)
    add(std::string(name(entry.kind)));
  if (entry.tensor.defined() && !entry.tensor.is_contiguous())
    add(fmt::format("stride {}", to_string(entry.stride)));
  if (!entry.shared_with.empty()) add(fmt::format("shares '{}'", shown(entry.shared_with)));
  return note;
}

void print_table(const Summary& summary, const InspectOptions& options, const train::Terminal& terminal) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> header = {"name", "dtype", "shape", "device", "bytes"};
  std::vector<bool> right = {false, false, false, false, true};
  if (options.values) {
    header.insert(header.end(), {"sum", "first"});
    right.insert(right.end(), {true, false});
  }
  header.push_back("");
  right.push_back(false);
  rows.push_back(header);
  // A list that is shortened shows its end too.
  const size_t count = summary.tensors.size();
  const bool cut = !options.all && count > kShownTensors;
  const size_t head = cut ? kShownTensors - 10 : count, tail = cut ? count - 10 : count;
  std::vector<size_t> chosen;
  for (size_t i = 0; i < head; ++i) chosen.push_back(i);
  for (size_t i = tail; i < count; ++i) chosen.push_back(i);
  for (size_t i : chosen) {
    const TensorEntry& entry = summary.tensors[i];
    std::vector<std::string> row = {tensor_label(entry.path, summary.root), shown(entry.dtype),
                                    to_string(entry.shape), shown(entry.device),
                                    std::to_string(entry.nbytes)};
    if (options.values) {
      const std::optional<io::NumberSummary> numbers = numbers_of(entry);
      row.push_back(numbers ? number_text(numbers->sum, is_complex_name(entry.dtype)) : "-");
      std::string first;
      if (numbers)
        for (const io::Number& number : numbers->first)
          first += (first.empty() ? "" : " ") +
                   std::visit(
                       [](auto value) {
                         if constexpr (std::is_same_v<decltype(value), double>)
                           return fmt::format("{:.4g}", value);
                         else if constexpr (std::is_same_v<decltype(value), std::complex<double>>)
                           return number_text(value, true);
                         else
                           return fmt::format("{}", value);
                       },
                       number);
      row.push_back(first);
    }
    row.push_back(note_of(entry));
    rows.push_back(std::move(row));
  }
  const train::Style style(terminal);
  const std::vector<std::string> texts = table_rows(rows, right, table_width());
  fmt::print("{}{}{}", style.dim, texts[0], style.reset);
  for (size_t i = 1; i < texts.size(); ++i) {
    if (cut && i == head + 1)
      fmt::print("{}... {} more (--all shows them)\n{}", style.dim,
                 train::with_commas(static_cast<long long>(tail - head)), style.reset);
    fmt::print("{}", texts[i]);
  }
}

void print_summary(const Summary& summary, const InspectOptions& options) {
  const train::Terminal terminal = train::Terminal::of(1);
  const train::Style style(terminal);
  fmt::print("{}{}{}: {}; {}\n", style.bold, shown(options.file), style.reset, format_text(summary),
             size_text(summary.file_bytes));
  fmt::print("{}, {}, {} in {}{}\n", count_text(summary.tensors.size(), "tensor"),
             count_text(summary.elements, "element"), size_text(summary.tensor_bytes),
             count_text(summary.storages, "storage"),
             summary.storage_bytes != summary.tensor_bytes
                 ? fmt::format(" of {}", size_text(summary.storage_bytes))
                 : "");
  if (!summary.wrapper.empty())
    fmt::print("wrapper: {}{}{}\n", style.cyan, shown(summary.wrapper), style.reset);
  for (const auto& [key, value] : summary.metadata)
    fmt::print("metadata: {} = {}\n", shown(key), shortened(shown(value), 100));
  print_verdict(summary, style);
  if (options.tree) {
    fmt::print("\n{}", tree_text(summary.root, {.unicode = terminal.unicode, .all = options.all}));
  } else if (!summary.tensors.empty()) {
    fmt::print("\n");
    print_table(summary, options, terminal);
  }
}

void print_pickle(const InspectOptions& options) {
  const train::Style style(train::Terminal::of(1));
  std::set<std::pair<std::string, std::string>> names;
  auto finish = [&] {
    if (names.empty()) return;
    fmt::print("\nclasses and functions:\n");
    for (const auto& [module, each] : names) {
      const Verdict verdict = io::judge_global({module, each}, /*calls_results=*/false);
      const std::string& color = verdict == Verdict::PlainData      ? style.green
                                 : verdict == Verdict::NeedsClasses ? style.yellow
                                                                    : style.red;
      fmt::print("  {}{:<14}{}  {}.{}\n", color, name(verdict), style.reset, shown(module), shown(each));
    }
  };
  const std::shared_ptr<const io::ByteSource> source = open_input(options.file);
  try {
    const auto print_title = [&](const std::string& title) {
      fmt::print("{}{}{}\n", style.bold, shown(title), style.reset);
    };
    const auto print_line = [&](const io::PickleLine& line) {
      if (line.names_global) names.emplace(line.module, line.name);
      fmt::print("{:>7}: {:{}}{:<16} {}\n", line.byte, "", 2 * std::min(line.depth, 20), line.opcode,
                 shown(line.argument));
      return true;
    };
    with_context(source->name(), [&] { io::list_pickles_of(source, print_title, print_line); });
  } catch (...) {
    finish();
    throw;
  }
  finish();
}

int run(const InspectOptions& options) {
  if (options.json && (options.tree || options.pickle)) throw_usage("--json goes with --values only");
  if (options.pickle) {
    print_pickle(options);
    std::fflush(stdout);
  }
  const Summary summary = summarize_input(options.file, {.values = options.values, .mmap = true});
  if (options.json)
    fmt::print("{}", json_text(options.values ? values_json(summary) : summary_json(summary)));
  else if (!options.pickle)
    print_summary(summary, options);
  if (summary.verdict() != Verdict::WouldRunCode) return 0;
  std::fflush(stdout);  // before the error, where both go to one place
  print_error("tern inspect",
              fmt::format("'{}': Python would run code when it opens this file (nothing was run "
                          "here): it names {}",
                          options.file, names_text(summary, Verdict::WouldRunCode, /*bytes=*/true)));
  return 1;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("inspect", "Show what is in a checkpoint file, without running it");
  auto options = std::make_shared<InspectOptions>();
  command
      ->add_option("file", options->file,
                   "A file of torch.save, safetensors or NumPy, or a folder of shards; '-': standard input")
      ->required();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->add_flag("--values", options->values, "Read the numbers: sum and first four of each tensor");
  command->add_flag("--tree", options->tree, "Show the nested structure instead of the list of tensors");
  command->add_flag("--pickle", options->pickle, "List the opcodes of the pickle");
  command->add_flag("--all", options->all, "Do not shorten long lists");
  command->footer(
      "Exit codes: 0 read, 1 broken, no checkpoint, or one that would run code in Python.\n\nExamples:\n"
      "  tern inspect model.pt\n  tern inspect model.safetensors --json --values\n"
      "  tern inspect untrusted.pkl --pickle");
  command->callback([options, &action] {
    action = [options] { return with_errors("inspect", [&] { return run(*options); }); };
  });
}

}  // namespace tern::cli
