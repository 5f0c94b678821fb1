// The machine as a whole: environment, kernel, container, and the small values of machine.h. PCI devices,
// driver and libraries are read in machine_pci.cpp, machine_driver.cpp and machine_libraries.cpp.
#include "tern/device/machine.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "tern/base/env.h"
#include "tern/device/machine_files.h"

namespace tern {
namespace {

/// Like env_text, but an empty value counts: it hides all GPUs in CUDA_VISIBLE_DEVICES.
std::optional<std::string> variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? std::optional<std::string>(text) : std::nullopt;
}

std::string find_container(const detail::MachineFiles& files, const MachineEnvironment& environment) {
  if (files.exists("/.dockerenv")) return "docker";
  if (files.exists("/run/.containerenv")) return "podman";
  const std::string groups = files.read("/proc/1/cgroup").value_or("");
  const std::pair<const char*, const char*> marks[] = {
      {"kubepods", "kubernetes"}, {"docker", "docker"}, {"containerd", "containerd"},
      {"libpod", "podman"},       {"/lxc", "lxc"},
  };
  for (const auto& [mark, name] : marks)
    if (groups.find(mark) != std::string::npos) return name;
  const std::string declared = environment.container.value_or("");
  return declared.empty() || declared == "wsl" ? "" : printable(declared, 40);
}

std::optional<bool> read_secure_boot(const detail::MachineFiles& files) {
  constexpr const char* kVariable =
      "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
  const auto bytes = files.read(kVariable, 16);
  if (!bytes) return std::nullopt;
  // Four bytes of attributes, then the value.
  if (bytes->size() != 5) {
    files.complain(std::string(kVariable) + ": expected 5 bytes, got " + std::to_string(bytes->size()));
    return std::nullopt;
  }
  return (*bytes)[4] == 1;
}

}  // namespace

std::optional<Version> Version::parse(std::string_view text) {
  Version version;
  version.text = text;
  size_t count = 0;
  for (std::string_view part : detail::split_text(text, '.')) {
    if (count == version.numbers.size() || part.size() > 9) return std::nullopt;
    int number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || end != part.data() + part.size() || number < 0) return std::nullopt;
    version.numbers[count++] = number;
  }
  return version;
}

MachineEnvironment MachineEnvironment::current() {
  MachineEnvironment environment;
  environment.cuda_visible_devices = variable("CUDA_VISIBLE_DEVICES");
  environment.cuda_device_order = variable("CUDA_DEVICE_ORDER");
  environment.nvidia_visible_devices = variable("NVIDIA_VISIBLE_DEVICES");
  environment.ld_library_path = variable("LD_LIBRARY_PATH");
  environment.container = variable("container");
  environment.cuda_plugin = env_text("TERN_CUDA_PLUGIN");
  environment.sim_gpus = env_text("TERN_SIM_GPUS");
  environment.sim = env_text("TERN_SIM");
  return environment;
}

size_t Machine::nvidia_displays() const noexcept {
  return static_cast<size_t>(std::count_if(displays.begin(), displays.end(),
                                           [](const PciDisplay& display) { return display.is_nvidia(); }));
}

const DeviceNode* Machine::node(std::string_view path) const noexcept {
  for (const DeviceNode& each : nodes)
    if (each.path == path) return &each;
  return nullptr;
}

Machine read_machine(MachineOptions options) {
  Machine machine;
  machine.options = std::move(options);
  const detail::MachineFiles files(machine.options.root, machine.complaints);
  struct stat status {};
  machine.root_readable = ::stat(machine.options.root.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  if (!machine.root_readable) {
    files.complain(machine.options.root + ": not a folder that can be read");
    return machine;
  }
  machine.kernel = printable(files.read_trimmed("/proc/sys/kernel/osrelease").value_or(""), 100);
  machine.dxg_node = files.exists("/dev/dxg");
  std::string lower = machine.kernel;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  machine.wsl = machine.dxg_node || lower.find("microsoft") != std::string::npos ||
                lower.find("wsl") != std::string::npos;
  machine.container = find_container(files, machine.options.environment);
  machine.secure_boot = read_secure_boot(files);
  detail::read_displays(files, machine);
  detail::read_driver(files, machine);
  detail::read_libraries(files, machine);
  detail::read_plugin(files, machine);
  return machine;
}

std::string machine_root() { return env_text("TERN_MACHINE_ROOT").value_or("/"); }

std::string own_library_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_library_folder), &info) == 0 || !info.dli_fname) return "";
  std::error_code error;
  const auto path = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::string() : path.parent_path().string();
}

std::optional<Version> least_driver(const Version& runtime) {
  switch (runtime.major()) {
    case 10:
      return Version::parse(runtime.numbers[1] == 0   ? "410.48"
                            : runtime.numbers[1] == 1 ? "418.39"
                                                      : "440.33");
    case 11:
      return Version::parse("450.80.02");
    case 12:
      return Version::parse("525.60.13");
    case 13:
      return Version::parse("580");
    default:
      return std::nullopt;
  }
}

std::string printable(std::string_view text, size_t limit) {
  std::string result(text.substr(0, limit));
  for (char& c : result)
    if (c < ' ' || c >= '\x7f') c = '?';
  if (text.size() > limit) result += "...";
  return result;
}

std::string normal_pci_address(std::string_view address) {
  std::string result;
  for (char c : address) result.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  const size_t colon = result.find(':');
  if (std::count(result.begin(), result.end(), ':') < 2) return "0000:" + result;
  if (colon > 4) {
    const size_t zeros = std::min(result.find_first_not_of('0'), colon - 4);
    result.erase(0, zeros);
  }
  return result;
}

}  // namespace tern
