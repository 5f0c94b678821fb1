// The doctor: why a GPU that somebody expects is not there, as findings. What it looks at is read by
// machine.h and nvml.h; `tern doctor` prints it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tern/device/machine.h"
#include "tern/device/nvml.h"

namespace tern {

enum class Severity {
  kOk,
  kNote,     ///< worth knowing; nothing is lost
  kWarning,  ///< may go wrong later
  kProblem,  ///< a GPU that is expected cannot be used
};

/// "ok", "note", "warning", "problem".
std::string_view severity_name(Severity severity) noexcept;

struct Finding {
  Severity severity = Severity::kOk;
  std::string subject;    ///< a word for programs: "displays", "driver", "visible-devices"
  std::string looked_at;  ///< files, variables
  std::string found;
  std::string to_do;  ///< empty where there is nothing to do
};

/// A GPU that the running program has.
struct ProgramGpu {
  std::string name, pci_bus_id;
  bool simulated = false;
};

/// What the doctor knows.
struct Examination {
  Machine machine;
  GpuReadings readings = {};
  /// In the order of cuda:0, cuda:1; nothing where the machine is not the one that this program runs on.
  std::optional<std::vector<ProgramGpu>> program = {};
  /// Why the program has no real GPU, as the CUDA plugin's loader said it; may be empty.
  std::string absence = {};
};

/// True when something shows that an NVIDIA GPU is here, though perhaps not usable.
bool gpu_expected(const Examination& examination);

/// From the PCI bus to the program, in this order. Strange contents of files are findings, too; nothing is
/// thrown but std::bad_alloc.
std::vector<Finding> diagnose(const Examination& examination);

bool has_problem(const std::vector<Finding>& findings) noexcept;

}  // namespace tern
