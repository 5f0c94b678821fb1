// `tern verify`: whether a checkpoint is whole: structure, checksums, numbers that are none.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "tern/base/check.h"
#include "tern/cli/checkpoint_file.h"
#include "tern/cli/checkpoint_text.h"
#include "tern/cli/command.h"
#include "tern/cli/output.h"
#include "tern/cli/usage.h"
#include "tern/io/file.h"
#include "tern/io/format.h"
#include "tern/io/summary.h"
#include "tern/io/tensor_numbers.h"
#include "tern/io/zip_reader.h"

namespace tern::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownFindings = 10;
constexpr uint64_t kPieceBytes = uint64_t{1} << 30;

struct VerifyOptions {
  std::string file;
  bool json = false, allow_nonfinite = false;
};

struct Findings {
  std::string format;
  size_t tensors = 0, entries = 0, without_crc = 0;
  int64_t nans = 0, infinities = 0;
  std::vector<std::pair<std::string, std::string>> nonfinite;  ///< names and counts
  std::vector<std::string> faults;
};

/// Every entry of an archive, those too that no tensor refers to.
void check_archive(const std::string& path, Findings& findings) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return;  // of shards
  const std::shared_ptr<const io::ByteSource> source = open_input(path);
  if (io::sniff_format(*source) != io::FileFormat::Zip) return;
  const io::ZipReader zip(source);
  for (const io::ZipEntry& entry : zip.entries()) {
    ++findings.entries;
    findings.without_crc += entry.crc == 0 && entry.size > 0;
    if (entry.stored())
      zip.check_crc(entry);
    else if (entry.size <= kPieceBytes)  // storages were read before; what is left is small, or nobody's
      zip.read(entry, kPieceBytes);
  }
}

void check_numbers(const io::Summary& summary, Findings& findings) {
  for (const io::TensorEntry& entry : summary.tensors) {
    std::vector<Tensor> tensors = entry.parts;
    if (entry.tensor.defined()) tensors.push_back(entry.tensor);
    int64_t nans = 0, infinities = 0;
    for (const Tensor& tensor : tensors) {
      if (!io::has_numbers(tensor)) continue;
      const io::NumberSummary numbers = with_context(fmt::format("tensor '{}'", entry.path), [&] {
        return io::summarize_numbers(tensor, /*drop_pages=*/true);
      });
      nans += numbers.nans;
      infinities += numbers.infinities;
    }
    if (nans + infinities == 0) continue;
    findings.nans += nans;
    findings.infinities += infinities;
    std::string text = nans > 0 ? fmt::format("{} NaN", nans) : "";
    if (infinities > 0) text += fmt::format("{}{} Inf", text.empty() ? "" : ", ", infinities);
    findings.nonfinite.emplace_back(entry.path, text);
  }
}

Findings look(const VerifyOptions& options) {
  Findings findings;
  try {
    const io::Summary summary = summarize_input(options.file, {.values = true, .verify = true, .mmap = true});
    findings.format = summary.format;
    findings.tensors = summary.tensors.size();
    if (summary.verdict() == io::Verdict::WouldRunCode)
      findings.faults.push_back(fmt::format(
          "'{}': Python would run code when it opens this file ('tern inspect' says more)", options.file));
    check_archive(options.file, findings);
    check_numbers(summary, findings);
  } catch (const CheckpointError& error) {
    findings.faults.push_back(error.message());
  } catch (const IoError& error) {
    findings.faults.push_back(error.message());
  }
  return findings;
}

std::string nonfinite_text(const Findings& findings) {
  std::string text =
      fmt::format("{} NaN or Inf: ", findings.nonfinite.size() == 1
                                         ? std::string("1 tensor has")
                                         : fmt::format("{} tensors have", findings.nonfinite.size()));
  for (size_t i = 0; i < findings.nonfinite.size() && i < kShownFindings; ++i)
    text += fmt::format("{}{} ({})", i ? ", " : "", shown(findings.nonfinite[i].first),
                        findings.nonfinite[i].second);
  return findings.nonfinite.size() > kShownFindings
             ? fmt::format("{} and {} more", text, findings.nonfinite.size() - kShownFindings)
             : text;
}

int run(const VerifyOptions& options) {
  Findings findings = look(options);
  const bool bad_numbers = !findings.nonfinite.empty() && !options.allow_nonfinite;
  const bool good = findings.faults.empty() && !bad_numbers;
  if (options.json) {
    Json tensors = Json::array();
    for (const auto& [name, text] : findings.nonfinite) tensors.push_back({{"name", name}, {"found", text}});
    fmt::print("{}", json_text({{"ok", good},
                                {"format", findings.format.empty() ? Json(nullptr) : Json(findings.format)},
                                {"tensors", findings.tensors},
                                {"entries", findings.entries},
                                {"entries_without_crc", findings.without_crc},
                                {"nan", findings.nans},
                                {"inf", findings.infinities},
                                {"nonfinite", std::move(tensors)},
                                {"faults", findings.faults}}));
  } else if (findings.faults.empty()) {
    fmt::print("{}: {}, {}: structure is right\n", shown(options.file), findings.format,
               count_text(findings.tensors, "tensor"));
    if (findings.entries > 0 && findings.without_crc == 0)
      fmt::print("checksums of {} are right\n",
                 findings.entries == 1 ? "1 entry" : fmt::format("{} entries", findings.entries));
    else if (findings.entries > 0)
      fmt::print("{} of {} entries have no checksum; the others are right\n", findings.without_crc,
                 findings.entries);
    else
      fmt::print("the format has no checksums\n");
    if (findings.nonfinite.empty())
      fmt::print("no NaN, no Inf\n");
    else
      fmt::print("{}\n", nonfinite_text(findings));
  }
  if (good) return 0;
  std::fflush(stdout);  // before the error, where both go to one place
  print_error("tern verify", findings.faults.empty()
                                 ? fmt::format("'{}': {}", options.file, nonfinite_text(findings))
                                 : findings.faults.front());
  return 1;
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("verify", "Check that a checkpoint is whole, and its numbers finite");
  auto options = std::make_shared<VerifyOptions>();
  command->add_option("file", options->file, "The checkpoint; '-': standard input")->required();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->add_flag("--allow-nonfinite", options->allow_nonfinite,
                    "NaN and Inf are counted, but are no fault");
  command->footer(
      "Exit codes: 0 whole, 1 not.\n\nExamples:\n  tern verify run/checkpoint.pt\n"
      "  tern verify model.safetensors --json");
  command->callback([options, &action] {
    action = [options] { return with_errors("verify", [&] { return run(*options); }); };
  });
}

}  // namespace tern::cli
