// The doctor on graphics hardware and the driver in the kernel.
#include <algorithm>

#include "tern/device/doctor_topics.h"

namespace tern::detail {
namespace {

constexpr const char* kDisplays = "/sys/bus/pci/devices (classes 0300, 0302, 0380 and 12xx)";

std::string display_text(const PciDisplay& display) {
  return fmt::format("{} {} ({:04x}:{:04x}, driver {})", display.address, display.vendor_name(),
                     display.vendor, display.device, display.driver.empty() ? "none" : display.driver);
}

/// What kind of thing a display device of another vendor is.
std::string kind_of(const PciDisplay& display) {
  switch (display.vendor) {
    case 0x8086:
      return display.address.ends_with(":00:02.0") ? "graphics integrated in an Intel processor"
                                                   : "Intel graphics";
    case 0x1002:
      return "AMD graphics, integrated or on a card";
    case 0x1a03:
    case 0x102b:
      return "the console of a server";
    case 0x1013:
    case 0x1234:
    case 0x1af4:
    case 0x1b36:
    case 0x15ad:
    case 0x80ee:
    case 0x1414:
      return "the picture of a virtual machine";
    default:
      return "graphics of another maker";
  }
}

void examine_missing_module(const Chart& chart) {
  const NvidiaDriver& driver = chart.machine.driver;
  const KernelModule& module = driver.file;
  const std::string looked_at =
      fmt::format("/sys/module/nvidia, /proc/driver/nvidia/version, /lib/modules/{}", chart.machine.kernel);
  auto problem = [&](const std::string& found, const std::string& to_do) {
    chart.add(Severity::kProblem, "driver", looked_at, "the NVIDIA driver is not loaded: " + found, to_do);
  };
  if (chart.in_container())
    return problem("the kernel belongs to the host of this container",
                   "On the host, install or load the NVIDIA driver ('sudo modprobe nvidia'), then start the "
                   "container anew with its GPUs (docker run --gpus all).");
  if (!module.blacklisted_in.empty())
    return problem(
        fmt::format("{} forbids it", module.blacklisted_in),
        "On a laptop with two graphics chips run 'sudo prime-select on-demand'; otherwise remove that "
        "line and run 'sudo update-initramfs -u'. Then restart the machine.");
  const bool nouveau = driver.nouveau_loaded ||
                       std::any_of(chart.machine.displays.begin(), chart.machine.displays.end(),
                                   [](const PciDisplay& display) { return display.driver == "nouveau"; });
  if (nouveau)
    return problem(
        "nouveau, the kernel's own driver, is loaded in its place and cannot run CUDA",
        "Install the NVIDIA driver of the distribution (it blacklists nouveau), or put 'blacklist "
        "nouveau' into /etc/modprobe.d/nouveau.conf; then 'sudo update-initramfs -u' and restart.");
  if (!module.file.empty()) {
    if (chart.machine.secure_boot == true)
      return problem(
          module.has_signature == false
              ? fmt::format(
                    "{} is there, but it has no signature, and Secure Boot is on: the kernel refuses it",
                    module.file)
              : fmt::format(
                    "{} is there, and Secure Boot is on: the kernel refuses it unless its signing key is "
                    "enrolled",
                    module.file),
          "Sign the module and enrol the key ('sudo mokutil --import /var/lib/dkms/mok.pub', then restart "
          "and "
          "confirm), or switch Secure Boot off in the firmware. 'sudo dmesg | grep -i nvidia' has the "
          "refusal.");
    return problem(fmt::format("{} is there, and the kernel has not taken it", module.file),
                   "Run 'sudo modprobe nvidia'; if it fails, 'sudo dmesg | grep -i nvidia' says why.");
  }
  if (!chart.machine.kernel.empty() && !module.folder_present)
    return problem(fmt::format("the modules of the running kernel {} are gone: an update has replaced it{}",
                               chart.machine.kernel,
                               module.other_kernels.empty()
                                   ? ""
                                   : fmt::format("; {} has one for nvidia", and_list(module.other_kernels))),
                   "Restart the machine, so that it runs the new kernel.");
  if (!module.other_kernels.empty())
    return problem(
        fmt::format("there is a module for {}, but none for the running kernel {}: the kernel was "
                    "updated, the driver was not built for it",
                    and_list(module.other_kernels), chart.machine.kernel),
        fmt::format("Build it: 'sudo apt install linux-headers-{0}' and 'sudo dkms autoinstall -k {0}', "
                    "or restart with the former kernel.",
                    chart.machine.kernel));
  problem(
      "there is no nvidia module for this kernel",
      "Install the NVIDIA driver of the distribution (Debian: nvidia-driver, Ubuntu: 'sudo ubuntu-drivers "
      "install', Fedora: akmod-nvidia) and restart.");
}

}  // namespace

void examine_displays(const Chart& chart) {
  const Machine& machine = chart.machine;
  if (!machine.root_readable) return;
  std::vector<std::string> nvidia;
  for (const PciDisplay& display : machine.displays)
    if (display.is_nvidia()) nvidia.push_back(display_text(display));
  if (!nvidia.empty())
    chart.add(Severity::kOk, "displays", kDisplays, "on the PCI bus: " + and_list(nvidia));
  else if (!chart.expected)
    chart.add(
        Severity::kNote, "displays", kDisplays,
        machine.displays.empty()
            ? (machine.wsl ? "there is no graphics device on the PCI bus, as is usual in WSL, and no libcuda "
                             "of Windows: no GPU can be used"
                           : "there is no graphics device on the PCI bus: this machine has no GPU")
            : "there is no NVIDIA device on the PCI bus: this machine has no GPU that CUDA can use",
        machine.wsl ? "If the computer has an NVIDIA GPU, install its driver in Windows (none in Linux) and "
                      "run 'wsl --shutdown'. " +
                          without_gpu(machine)
                    : without_gpu(machine));
  for (const PciDisplay& display : machine.displays) {
    if (display.is_nvidia() && display.driver == "vfio-pci")
      chart.add(
          Severity::kProblem, "displays", fmt::format("/sys/bus/pci/devices/{}/driver", display.address),
          fmt::format("{} is set aside for a virtual machine (driver vfio-pci)", display_text(display)),
          "Run Tern in that virtual machine, or give the GPU back: take it out of the vfio-pci settings in "
          "/etc/modprobe.d and on the kernel's command line, and restart.");
    if (!display.is_nvidia())
      chart.add(
          Severity::kNote, "displays", fmt::format("/sys/bus/pci/devices/{}", display.address),
          fmt::format("{} is {}: a task manager counts it as a GPU, but it cannot be used here, where GPUs "
                      "are NVIDIA's with CUDA",
                      display_text(display), kind_of(display)),
          nvidia.empty() ? without_gpu(machine)
                         : "Nothing: count the NVIDIA devices only. cuda:0 is the first of those.");
  }
}

void examine_driver(const Chart& chart) {
  const Machine& machine = chart.machine;
  if (!chart.expected || machine.wsl) return;
  const NvidiaDriver& driver = machine.driver;
  if (!driver.module_loaded && chart.answers()) {
    chart.add(Severity::kOk, "driver", "NVML",
              fmt::format("the NVIDIA driver {} answers, though /sys and /proc do not show it here",
                          printable(chart.readings.driver_version)));
    return;
  }
  if (!driver.module_loaded) {
    // A GPU that is set aside for a virtual machine wants no driver, and examine_displays() has said so.
    const auto& all = machine.displays;
    const bool wanted =
        machine.nvidia_displays() == 0 || std::any_of(all.begin(), all.end(), [](const PciDisplay& display) {
          return display.is_nvidia() && display.driver != "vfio-pci";
        });
    if (wanted) examine_missing_module(chart);
    return;
  }
  chart.add(Severity::kOk, "driver", "/proc/driver/nvidia/version, /sys/module/nvidia",
            fmt::format("the NVIDIA driver {} is loaded{}",
                        driver.version ? driver.version->text : "(version unknown)",
                        driver.open_module ? ", as the open kernel module" : ""));
}

void examine_served(const Chart& chart) {
  const Machine& machine = chart.machine;
  if (!chart.expected || machine.wsl || !machine.driver.module_loaded) return;
  const std::string looked_at = "/proc/driver/nvidia/gpus/*/information";
  std::vector<std::string> models, absent;
  for (const DriverGpu& gpu : machine.driver.gpus) {
    if (gpu.excluded)
      chart.add(
          Severity::kProblem, "gpus", looked_at,
          fmt::format("{} {} is excluded by a parameter of the driver's module", gpu.pci_bus_id, gpu.model),
          "Take it out of NVreg_ExcludedGpus (or NVreg_ExcludeDevices) in /etc/modprobe.d and restart.");
    else
      models.push_back(fmt::format("{} ({}{}{})", gpu.model.empty() ? "a GPU of unknown model" : gpu.model,
                                   gpu.pci_bus_id, gpu.uuid.empty() ? "" : ", ", gpu.uuid));
  }
  if (!models.empty()) chart.add(Severity::kOk, "gpus", looked_at, "the driver serves " + and_list(models));
  for (const PciDisplay& display : machine.displays) {
    if (!display.is_nvidia() || display.driver == "vfio-pci") continue;
    const bool served =
        std::any_of(machine.driver.gpus.begin(), machine.driver.gpus.end(), [&display](const DriverGpu& gpu) {
          return normal_pci_address(gpu.pci_bus_id) == normal_pci_address(display.address);
        });
    if (!served) absent.push_back(display_text(display));
  }
  if (absent.empty()) return;
  // A container's runtime shows only the GPUs that were asked for; without any, examine_nodes() has the word.
  if (chart.in_container()) {
    if (!models.empty())
      chart.add(Severity::kNote, "gpus", looked_at,
                and_list(absent) + (absent.size() == 1 ? " is" : " are") + " not given to this container",
                "If they are wanted, start it with more GPUs (docker run --gpus all).");
    return;
  }
  const bool nouveau = and_list(absent).find("driver nouveau") != std::string::npos;
  chart.add(
      Severity::kProblem, "gpus", looked_at,
      fmt::format("the driver is loaded but does not serve {}", and_list(absent)),
      nouveau
          ? "It is bound to nouveau: blacklist nouveau in /etc/modprobe.d, run 'sudo update-initramfs -u' "
            "and restart."
          : fmt::format("'sudo dmesg | grep NVRM' says why: a GPU too old for this driver needs an older "
                        "(legacy) one{}; one that has failed or has no power needs a restart of the "
                        "machine.",
                        machine.driver.open_module
                            ? ", one before Turing needs the closed module in place of the open one"
                            : ""));
}

void examine_nodes(const Chart& chart) {
  const Machine& machine = chart.machine;
  if (!chart.expected || machine.wsl || !machine.driver.module_loaded) return;
  std::vector<std::string> wanted = {"/dev/nvidiactl"}, missing, closed;
  for (const DriverGpu& gpu : chart.served())
    if (gpu.minor >= 0) wanted.push_back(fmt::format("/dev/nvidia{}", gpu.minor));
  wanted.push_back("/dev/nvidia-uvm");
  for (const std::string& path : wanted) {
    const DeviceNode* node = machine.node(path);
    if (!node)
      missing.push_back(path);
    else if (!node->readable || !node->writable)
      closed.push_back(fmt::format("{} ({})", path,
                                   node->readable   ? "not writable"
                                   : node->writable ? "not readable"
                                                    : "neither readable nor writable"));
  }
  const std::string looked_at = and_list(wanted);
  if (chart.in_container() && missing.size() == wanted.size() && !chart.answers()) {
    const std::string asked = machine.options.environment.nvidia_visible_devices.value_or("");
    const bool none = asked == "void" || asked == "none";
    chart.add(Severity::kProblem, "device-nodes", looked_at,
              fmt::format("the host has an NVIDIA driver, but this container was started without GPUs{}",
                          none ? " (NVIDIA_VISIBLE_DEVICES=" + asked + ")" : ""),
              "Start it with its GPUs: 'docker run --gpus all ...' (podman: '--device nvidia.com/gpu=all'); "
              "the host "
              "needs the NVIDIA Container Toolkit. In Kubernetes ask for nvidia.com/gpu in the limits.");
    return;
  }
  if (!closed.empty())
    chart.add(
        Severity::kProblem, "device-nodes", looked_at, "no permission for this user: " + and_list(closed),
        "'ls -l /dev/nvidia*' shows the group they belong to: join it ('sudo usermod -aG video $USER', then "
        "log in again), or have the driver open them to all (NVreg_DeviceFileMode=0666). On a cluster, ask "
        "for "
        "a GPU with the job.");
  if (!missing.empty()) {
    const bool uvm_only = missing.size() == 1 && missing[0] == "/dev/nvidia-uvm";
    chart.add(
        machine.nvidia_modprobe ? Severity::kWarning : Severity::kProblem, "device-nodes", looked_at,
        fmt::format("not there: {}{}", and_list(missing),
                    machine.nvidia_modprobe ? "; nvidia-modprobe makes them when CUDA first starts"
                                            : ", and nvidia-modprobe, which would make them, is missing too"),
        uvm_only
            ? "Load the module for unified memory: 'sudo modprobe nvidia-uvm', or 'sudo nvidia-modprobe -u'."
            : "Make them: 'sudo nvidia-modprobe -c 0 -u', or run 'sudo nvidia-smi' once.");
  }
  const bool uvm_asleep = machine.node("/dev/nvidia-uvm") && !machine.driver.uvm_loaded;
  if (uvm_asleep)
    chart.add(Severity::kWarning, "device-nodes", "/sys/module/nvidia_uvm, /dev/nvidia-uvm",
              "the node for unified memory is there, but its module nvidia_uvm is not loaded, and CUDA fails "
              "with an "
              "unknown error when it cannot load it",
              "Load it: 'sudo modprobe nvidia-uvm'.");
  if (closed.empty() && missing.empty() && !uvm_asleep)
    chart.add(Severity::kOk, "device-nodes", looked_at, "all are there, readable and writable");
}

}  // namespace tern::detail
