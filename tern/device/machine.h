// Machine: what there is on this computer that a GPU needs: PCI devices, driver, device nodes, libraries,
// environment, as plain values. They are read below a root folder that can be set, so that tests make
// machines up. What follows from them is in doctor.h; what the driver measures is in nvml.h.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tern {

/// "450.80.02": up to four numbers with dots between. Missing ones count as 0.
struct Version {
  std::array<int, 4> numbers{};
  std::string text;  ///< as it was written

  /// The whole text, or nothing when it is no version.
  static std::optional<Version> parse(std::string_view text);
  int major() const noexcept { return numbers[0]; }
  std::strong_ordering operator<=>(const Version& other) const noexcept { return numbers <=> other.numbers; }
  bool operator==(const Version& other) const noexcept { return numbers == other.numbers; }
};

/// A PCI device of class 03xx (display) or 12xx (processing accelerator).
struct PciDisplay {
  std::string address;      ///< "0000:01:00.0"
  uint32_t class_code = 0;  ///< 0x030000: class, subclass, interface
  uint16_t vendor = 0;
  uint16_t device = 0;
  std::string driver;  ///< "nvidia", "nouveau", "vfio-pci"; empty where none is bound

  bool is_nvidia() const noexcept { return vendor == 0x10de; }
  /// "NVIDIA", "Intel", "vendor 1234".
  std::string vendor_name() const;
};

/// A GPU that the NVIDIA driver serves: /proc/driver/nvidia/gpus/*/information.
struct DriverGpu {
  std::string pci_bus_id, model;
  std::string uuid;       ///< empty where the driver does not know it yet
  int minor = -1;         ///< N of /dev/nvidiaN; -1 where it is not said
  bool excluded = false;  ///< by a parameter of the module
};

/// Where the kernel's modules lie.
struct KernelModule {
  bool folder_present = false;             ///< /lib/modules/KERNEL of the running kernel
  std::string file;                        ///< of nvidia for the running kernel; empty where there is none
  std::optional<bool> has_signature;       ///< nothing where the file cannot be judged (compressed)
  std::vector<std::string> other_kernels;  ///< that have an nvidia module, where the running one has none
  std::string blacklisted_in;              ///< the file in modprobe.d that forbids it
};

struct NvidiaDriver {
  bool module_loaded = false;
  bool uvm_loaded = false;
  bool nouveau_loaded = false;
  bool open_module = false;        ///< the open kernel module, for Turing and newer
  std::optional<Version> version;  ///< of the loaded module
  std::vector<DriverGpu> gpus;
  KernelModule file;
};

struct DeviceNode {
  std::string path;  ///< "/dev/nvidia0"
  bool readable = false, writable = false;
};

struct LibraryFile {
  std::string path;
  std::optional<Version> version;  ///< of the file that the name leads to: libcuda.so.550.54.14
  bool broken = false;             ///< a link to a file that is not there
  bool wrong_word_size = false;    ///< for programs of 32 bits
};

struct CudaRuntime {
  Version version;
  std::string found_in;
};

/// The CUDA backend, libtern_cuda.so.
struct PluginFile {
  std::string path;    ///< where it is, or where it was looked for
  bool named = false;  ///< by TERN_CUDA_PLUGIN
  bool present = false;
  std::string version;  ///< after "TERN_PLUGIN_VERSION=" in its bytes; empty where that is not there
};

/// What a program's environment says about GPUs. "Nothing" is a variable that is not set.
struct MachineEnvironment {
  std::optional<std::string> cuda_visible_devices, cuda_device_order, nvidia_visible_devices;
  std::optional<std::string> ld_library_path, container;
  std::optional<std::string> cuda_plugin;    ///< TERN_CUDA_PLUGIN
  std::optional<std::string> sim_gpus, sim;  ///< TERN_SIM_GPUS, TERN_SIM

  /// Of this process.
  static MachineEnvironment current();
};

struct MachineOptions {
  std::string root = "/";
  MachineEnvironment environment = {};
  /// Where the library lies, and the plugin beside it; seen from `root`.
  std::string library_folder = "/usr/lib";
  /// Of this library, to compare with the plugin's.
  std::string version = {};
};

struct Machine {
  MachineOptions options;
  bool root_readable = false;
  std::string kernel;  ///< "6.1.0-18-amd64"
  std::optional<bool> secure_boot;
  std::string container;  ///< "docker", "podman", "kubernetes", "lxc", "container"; empty outside of one
  bool wsl = false;
  bool dxg_node = false;  ///< /dev/dxg, through which WSL reaches the GPUs of Windows
  std::vector<PciDisplay> displays;
  NvidiaDriver driver;
  std::vector<DeviceNode> nodes;  ///< nvidia0, nvidia1, ..., nvidiactl, nvidia-uvm: those that are there
  bool nvidia_modprobe = false;   ///< the helper that makes nodes when CUDA starts
  std::vector<LibraryFile> libcuda, libnvidia_ml;  ///< in the order of the search
  std::vector<std::string> stub_folders;  ///< of LD_LIBRARY_PATH, with a libcuda that is only for linking
  std::optional<CudaRuntime> runtime;
  PluginFile plugin;
  std::vector<std::string> complaints;  ///< what could not be read or understood, a line each

  bool real() const noexcept { return options.root == "/"; }
  size_t nvidia_displays() const noexcept;
  const DeviceNode* node(std::string_view path) const noexcept;
};

/// Reads a machine. What is missing, closed or nonsense becomes a line in `complaints`; nothing is thrown but
/// std::bad_alloc. Takes some milliseconds, needs no rights and wakes no GPU.
Machine read_machine(MachineOptions options = {});

/// The root folder for a program: TERN_MACHINE_ROOT, else "/".
std::string machine_root();

/// The folder of this library on the running system; empty where the system does not tell.
std::string own_library_folder();

/// The oldest driver that runs programs of this CUDA version; nothing where the table does not have it.
/// From NVIDIA's CUDA Toolkit release notes, "Minimum Required Driver Version for CUDA Minor Version
/// Compatibility", and the CUDA Compatibility guide, tables 1 and 2.
std::optional<Version> least_driver(const Version& runtime);

/// `text` with bytes that a terminal would not show as characters of ASCII replaced by '?', and cut to
/// `limit` bytes.
std::string printable(std::string_view text, size_t limit = 200);

/// "0000:01:00.0" in small letters from any form of a PCI address ("00000000:01:00.0"), so that they compare.
std::string normal_pci_address(std::string_view address);

}  // namespace tern
