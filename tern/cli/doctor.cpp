// `tern doctor`: why a GPU that somebody expects is not there. The examination is in tern/device/doctor.h.
#include "tern/device/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tern/base/error.h"
#include "tern/cli/command.h"
#include "tern/cli/device_list.h"
#include "tern/cli/output.h"
#include "tern/cli/usage.h"
#include "tern/device/plugin.h"
#include "tern/device/registry.h"
#include "tern/train/terminal.h"

namespace tern::cli {
namespace {

struct DoctorOptions {
  bool json = false;
  std::string root;
};

/// The GPUs of this program. An environment that switches none on (wrong text) is a finding, too.
std::vector<ProgramGpu> program_gpus(std::vector<Finding>& findings) {
  std::vector<ProgramGpu> gpus;
  try {
    for (const Device& device : available_devices()) {
      if (!device.is_cuda()) continue;
      const DeviceProperties properties = backend_of(device.type).properties(device.index);
      gpus.push_back({properties.name, properties.pci_bus_id, properties.simulated});
    }
  } catch (const Error& error) {
    findings.push_back({Severity::kProblem, "program", "the devices of this program",
                        printable(error.what(), 400), "Correct what this names, and look again."});
  }
  return gpus;
}

size_t count_of(const std::vector<Finding>& findings, Severity severity) {
  return static_cast<size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [severity](const Finding& finding) { return finding.severity == severity; }));
}

std::string conclusion(const std::vector<Finding>& findings, bool expected) {
  const size_t problems = count_of(findings, Severity::kProblem);
  if (problems > 0)
    return fmt::format("{} problem{}: {}.", problems, problems == 1 ? "" : "s",
                       expected ? "a GPU that is here cannot be used as it should" : "see above");
  if (!expected) return "No NVIDIA GPU is here, and nothing is wrong.";
  return "Every GPU that is here can be used.";
}

/// `text` in lines of `width`, each after the first with `indent` spaces before it.
std::string wrapped(std::string_view text, size_t width, size_t indent) {
  std::string result;
  size_t used = indent;
  for (const std::string& word : split(text, ' ')) {
    if (used > indent && used + 1 + word.size() > width) {
      result += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (used > indent) {
      result += ' ';
      ++used;
    }
    result += word;
    used += word.size();
  }
  return result;
}

void print_text(const std::vector<Finding>& findings, bool expected) {
  const train::Terminal terminal = train::Terminal::of(1);
  const train::Style style(terminal);
  const auto width = static_cast<size_t>(std::clamp(terminal.is_terminal ? terminal.columns : 100, 40, 100));
  for (const Finding& finding : findings) {
    const std::string& color = finding.severity == Severity::kProblem   ? style.red
                               : finding.severity == Severity::kWarning ? style.yellow
                               : finding.severity == Severity::kNote    ? style.cyan
                                                                        : style.green;
    fmt::print("{}{:<8}{} {}{}{}\n", color, severity_name(finding.severity), style.reset, style.bold,
               finding.subject, style.reset);
    const std::pair<const char*, const std::string*> rows[] = {
        {"looked at", &finding.looked_at}, {"found", &finding.found}, {"to do", &finding.to_do}};
    for (const auto& [name, text] : rows)
      if (!text->empty()) fmt::print("  {:<10} {}\n", name, wrapped(*text, width, 13));
  }
  fmt::print("\n{}\n", conclusion(findings, expected));
}

void print_json(const std::vector<Finding>& findings, bool expected, const std::string& root) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings)
    list.push_back({{"severity", std::string(severity_name(finding.severity))},
                    {"subject", finding.subject},
                    {"looked_at", finding.looked_at},
                    {"found", finding.found},
                    {"to_do", finding.to_do}});
  const nlohmann::ordered_json report = {{"root", root},
                                         {"gpu_expected", expected},
                                         {"problems", count_of(findings, Severity::kProblem)},
                                         {"warnings", count_of(findings, Severity::kWarning)},
                                         {"conclusion", conclusion(findings, expected)},
                                         {"findings", list}};
  fmt::print("{}", json_text(report));
}

int examine(const DoctorOptions& given) {
  MachineOptions options;
  options.root = machine_folder(given.root);
  const bool real = options.root == "/";
  options.environment = MachineEnvironment::current();
  options.version = TERN_VERSION;
  if (real) options.library_folder = own_library_folder();

  std::vector<Finding> about_program;
  Examination examination{read_machine(std::move(options)), {}, {}};
  if (real) {
    examination.readings = nvml_monitor()->read();
    examination.program = program_gpus(about_program);
    examination.absence = plugin_status().reason;
  }
  std::vector<Finding> findings = diagnose(examination);
  findings.insert(findings.end(), about_program.begin(), about_program.end());
  const bool expected = gpu_expected(examination);
  if (given.json)
    print_json(findings, expected, examination.machine.options.root);
  else
    print_text(findings, expected);
  return has_problem(findings) ? 1 : 0;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("doctor", "Say why a GPU that is expected is not there");
  auto options = std::make_shared<DoctorOptions>();
  command->add_flag("--json", options->json, "Print one JSON object instead of text");
  command
      ->add_option(
          "--root", options->root,
          "Examine the machine whose files lie below this folder; by default TERN_MACHINE_ROOT, else /")
      ->type_name("DIR");
  command->footer(
      "Exit codes: 0 no problem (also where no GPU is expected), 1 a problem was found.\n\n"
      "Examples:\n  tern doctor\n  tern doctor --json\n  tern doctor --root /mnt/other");
  command->callback([options, &action] { action = [options] { return examine(*options); }; });
}

}  // namespace tern::cli
