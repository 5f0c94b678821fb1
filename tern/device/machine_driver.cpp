// The NVIDIA driver: its modules, what it says in /proc/driver/nvidia, its device nodes.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tern/device/machine_files.h"

namespace tern::detail {
namespace {

constexpr size_t kMaxOtherKernels = 16;

/// From "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 ...": the first word that is a
/// version.
void read_version(const MachineFiles& files, NvidiaDriver& driver) {
  const std::string path = "/proc/driver/nvidia/version";
  if (const auto text = files.read(path)) {
    const std::string_view line = std::string_view(*text).substr(0, text->find('\n'));
    driver.module_loaded = true;
    driver.open_module = line.find("Open Kernel Module") != std::string_view::npos;
    for (std::string_view word : split_text(line, ' '))
      if (word.find('.') != std::string_view::npos && !driver.version) driver.version = Version::parse(word);
    if (!driver.version) files.complain(fmt::format("{}: no version in '{}'", path, printable(line, 80)));
  }
  if (driver.version) return;
  if (const auto text = files.read_trimmed("/sys/module/nvidia/version")) {
    driver.version = Version::parse(*text);
    if (!driver.version)
      files.complain(fmt::format("/sys/module/nvidia/version: '{}' is no version", printable(*text, 40)));
  }
}

/// Lines such as "Model:  NVIDIA GeForce RTX 3080".
DriverGpu read_gpu(const MachineFiles& files, const std::string& name) {
  DriverGpu gpu;
  gpu.pci_bus_id = printable(name, 40);
  const std::string path = fmt::format("/proc/driver/nvidia/gpus/{}/information", name);
  const auto text = files.read(path);
  if (!text) {
    files.complain(path + ": not there");
    return gpu;
  }
  for (std::string_view line : split_text(*text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trimmed(line.substr(0, colon)), value = trimmed(line.substr(colon + 1));
    if (key == "Model") {
      gpu.model = printable(value, 100);
    } else if (key == "GPU UUID") {
      if (value.find('?') == std::string_view::npos) gpu.uuid = printable(value, 60);
    } else if (key == "GPU Excluded") {
      gpu.excluded = value == "Yes";
    } else if (key == "Device Minor") {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), gpu.minor);
      if (error != std::errc() || end != value.data() + value.size() || gpu.minor < 0) {
        gpu.minor = -1;
        files.complain(fmt::format("{}: Device Minor: '{}' is no number", path, printable(value, 40)));
      }
    }
  }
  return gpu;
}

/// Whether a path in the kernel's folders is the module itself under one of the names that distributions give
/// it, and not one of its companions.
bool is_nvidia_module(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  const size_t end = name.find(".ko");
  if (end == std::string_view::npos) return false;
  name = name.substr(0, end);
  for (const char* companion : {"-drm", "-modeset", "-uvm", "-peermem", "-fs"})
    if (name.ends_with(companion)) return false;
  return name == "nvidia" || name.starts_with("nvidia-current") || name.starts_with("nvidia-tesla") ||
         name.starts_with("nvidia-legacy");
}

/// The module file for one kernel; empty where there is none.
std::string find_module(const MachineFiles& files, const std::string& folder) {
  if (const auto list = files.read(folder + "/modules.dep", /*limit=*/8 << 20))
    for (std::string_view line : split_text(*list, '\n')) {
      const std::string_view path = line.substr(0, line.find(':'));
      if (!is_nvidia_module(path)) continue;
      const std::string full = path.front() == '/' ? std::string(path) : join(folder, path);
      if (files.exists(full)) return full;
    }
  for (const char* place : {"updates/dkms", "updates", "extra", "kernel/drivers/video", "misc"})
    for (const std::string& name : files.list(join(folder, place)))
      if (is_nvidia_module(name)) return join(join(folder, place), name);
  return "";
}

void read_module_file(const MachineFiles& files, const Machine& machine, KernelModule& module) {
  if (machine.kernel.empty() || machine.kernel.find('/') != std::string::npos) return;
  const std::string folder = "/lib/modules";
  module.folder_present = files.exists(join(folder, machine.kernel));
  if (module.folder_present) module.file = find_module(files, join(folder, machine.kernel));
  if (module.file.empty()) {
    auto kernels = files.list(folder);
    if (kernels.size() > kMaxOtherKernels)
      kernels.erase(kernels.begin(), kernels.end() - static_cast<std::ptrdiff_t>(kMaxOtherKernels));
    for (const std::string& kernel : kernels)
      if (kernel != machine.kernel && !find_module(files, join(folder, kernel)).empty())
        module.other_kernels.push_back(printable(kernel, 80));
  } else if (module.file.ends_with(".ko")) {
    // The kernel build appends the signature and then this line, the last 28 bytes of the file.
    constexpr std::string_view kSignature = "~Module signature appended~\n";
    const auto end = files.read_end(module.file, kSignature.size());
    if (end) module.has_signature = *end == kSignature;
  }
}

/// Such a line is what `prime-select intel` writes on a laptop with two graphics chips.
std::string find_blacklist(const MachineFiles& files) {
  for (const char* folder : {"/etc/modprobe.d", "/lib/modprobe.d", "/usr/lib/modprobe.d"})
    for (const std::string& name : files.list(folder)) {
      if (!name.ends_with(".conf")) continue;
      const std::string path = join(folder, name);
      const auto text = files.read(path);
      if (!text) continue;
      for (std::string_view line : split_text(*text, '\n')) {
        std::vector<std::string_view> words;
        for (std::string_view word : split_text(trimmed(line), ' '))
          if (!trimmed(word).empty()) words.push_back(trimmed(word));
        const bool forbids =
            words.size() >= 2 && words[1] == "nvidia" &&
            (words[0] == "blacklist" || (words.size() >= 3 && words[0] == "alias" && words[2] == "off") ||
             (words.size() >= 3 && words[0] == "install" && words[2].ends_with("/false")));
        if (forbids) return printable(path);
      }
    }
  return "";
}

void read_nodes(const MachineFiles& files, Machine& machine) {
  machine.nvidia_modprobe = files.exists("/usr/bin/nvidia-modprobe");
  for (const std::string& name : files.list("/dev")) {
    const bool numbered = name.starts_with("nvidia") && name.size() > 6 && name.size() <= 9 &&
                          name.find_first_not_of("0123456789", 6) == std::string::npos;
    if (numbered || name == "nvidiactl" || name == "nvidia-uvm")
      machine.nodes.push_back(files.access("/dev/" + name));
  }
}

}  // namespace

void read_driver(const MachineFiles& files, Machine& machine) {
  NvidiaDriver& driver = machine.driver;
  driver.module_loaded = files.exists("/sys/module/nvidia");
  driver.uvm_loaded = files.exists("/sys/module/nvidia_uvm");
  driver.nouveau_loaded = files.exists("/sys/module/nouveau");
  read_version(files, driver);
  for (const std::string& name : files.list("/proc/driver/nvidia/gpus"))
    driver.gpus.push_back(read_gpu(files, name));
  read_nodes(files, machine);
  if (driver.module_loaded) return;
  read_module_file(files, machine, driver.file);
  driver.file.blacklisted_in = find_blacklist(files);
}

}  // namespace tern::detail
