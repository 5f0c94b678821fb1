// The doctor on libraries: the driver's, the CUDA runtime, and the plugin with the CUDA backend.
#include <algorithm>

#include "tern/device/doctor_topics.h"

namespace tern::detail {
namespace {

const LibraryFile* first_usable(const std::vector<LibraryFile>& libraries) {
  for (const LibraryFile& library : libraries)
    if (!library.broken && !library.wrong_word_size) return &library;
  return nullptr;
}

bool is_of_wsl(const LibraryFile& library) { return library.path.find("/wsl/") != std::string::npos; }

/// What a library that is not there is called in the distributions, or who brings it.
std::string install_text(const Machine& machine) {
  if (!machine.container.empty())
    return "Start the container with its GPUs ('docker run --gpus all ...'): the NVIDIA Container Toolkit "
           "brings the "
           "host's libraries in. With that done, NVIDIA_DRIVER_CAPABILITIES must contain 'compute,utility'.";
  if (machine.wsl) return "Install NVIDIA's driver in Windows, and run 'wsl --shutdown' there.";
  return "Install the part of the driver that programs use, of the version that is loaded (Debian: libcuda1 "
         "and "
         "libnvidia-ml1, Ubuntu: libnvidia-compute-NNN, Fedora: xorg-x11-drv-nvidia-cuda), and run 'sudo "
         "ldconfig'.";
}

void examine_version_of(const Chart& chart, const LibraryFile& libcuda) {
  const NvidiaDriver& driver = chart.machine.driver;
  const bool differ = driver.version && libcuda.version && *driver.version != *libcuda.version;
  if (differ)
    chart.add(
        Severity::kProblem, "libcuda", libcuda.path + ", /proc/driver/nvidia/version",
        fmt::format("libcuda is of driver {}, the module in the kernel of driver {}: they work together only "
                    "when they are the same, and after an update the old module stays until the next start",
                    libcuda.version->text, driver.version->text),
        chart.in_container()
            ? "Start the container anew, so that it gets the host's libraries, and keep no driver inside it."
            : "Restart the machine, or unload the old module ('sudo rmmod nvidia_uvm nvidia_drm "
              "nvidia_modeset nvidia') and load the new one ('sudo modprobe nvidia').");
  else
    chart.add(Severity::kOk, "libcuda", libcuda.path,
              fmt::format("found{}", libcuda.version ? ", of driver " + libcuda.version->text : ""));
}

}  // namespace

void examine_libraries(const Chart& chart) {
  const Machine& machine = chart.machine;
  if (!machine.stub_folders.empty())
    chart.add(
        Severity::kProblem, "libcuda", "LD_LIBRARY_PATH",
        fmt::format("{} holds a libcuda.so.1 that is for linking only and finds no GPU, and programs load it "
                    "instead of the driver's",
                    and_list(machine.stub_folders)),
        "Take that folder out of LD_LIBRARY_PATH.");
  // Without the module or in a container without GPUs the libraries would not help, and the cause is said.
  const bool given = machine.wsl || chart.driver_loaded();
  const bool container_without_gpus =
      chart.in_container() && !machine.wsl && machine.nodes.empty() && !chart.answers();
  if (!chart.expected || !given) return;
  for (const LibraryFile& library : machine.libcuda) {
    if (library.broken)
      chart.add(Severity::kWarning, "libcuda", library.path, "it is a link to a file that is not there",
                "Install the driver's libraries anew, or remove the link, and run 'sudo ldconfig'.");
    if (library.wrong_word_size)
      chart.add(Severity::kNote, "libcuda", library.path,
                "it is for programs of 32 bits, which this one is not");
  }
  const LibraryFile* libcuda = first_usable(machine.libcuda);
  if (!libcuda) {
    if (!container_without_gpus)
      chart.add(Severity::kProblem, "libcuda", "libcuda.so.1 in the folders of the dynamic linker",
                machine.libcuda.empty() ? "not found: CUDA cannot reach the driver"
                                        : "none that can be loaded: CUDA cannot reach the driver",
                install_text(machine));
    return;
  }
  const bool of_windows = std::any_of(machine.libcuda.begin(), machine.libcuda.end(), is_of_wsl);
  if (machine.wsl && !is_of_wsl(*libcuda))
    chart.add(
        of_windows ? Severity::kProblem : Severity::kWarning, "libcuda", libcuda->path,
        fmt::format(
            "a libcuda of a Linux driver {} in WSL, where only the one of Windows in /usr/lib/wsl/lib "
            "works",
            of_windows ? "comes first" : "is the only one"),
        "Remove the NVIDIA driver that was installed inside WSL ('sudo apt remove --purge \"libnvidia-*\" "
        "\"nvidia-driver-*\"'); the driver belongs to Windows.");
  else
    examine_version_of(chart, *libcuda);
}

void examine_nvml(const Chart& chart) {
  const Machine& machine = chart.machine;
  const GpuReadings& readings = chart.readings;
  const bool given = machine.wsl || chart.driver_loaded();
  if (!chart.expected || !given ||
      (chart.in_container() && !machine.wsl && machine.nodes.empty() && !chart.answers()))
    return;
  const LibraryFile* library = first_usable(machine.libnvidia_ml);
  if (readings.state == GpuReadings::State::kFailed) {
    const std::string looked_at = "NVML (libnvidia-ml.so.1)";
    std::string to_do =
        "'nvidia-smi' goes the same way and may say more; 'sudo dmesg | grep NVRM' has the driver's "
        "own words.";
    if (readings.error_code == kNvmlVersionMismatch)
      to_do = "The driver was updated and the old module is still in the kernel: restart the machine.";
    if (readings.error_code == kNvmlNoPermission)
      to_do =
          "This user may not open /dev/nvidiactl: see the group of the device nodes with 'ls -l "
          "/dev/nvidia*'.";
    if (readings.error_code == kNvmlDriverNotLoaded)
      to_do = "Load the driver: 'sudo modprobe nvidia'; if it fails, 'sudo dmesg | grep -i nvidia' says why.";
    chart.add(Severity::kProblem, "nvml", looked_at,
              fmt::format("the driver does not answer: {}", printable(readings.reason)), to_do);
  } else if (readings.state == GpuReadings::State::kReady) {
    chart.add(
        Severity::kOk, "nvml", library ? library->path : "libnvidia-ml.so.1",
        fmt::format("the driver {} answers{}", printable(readings.driver_version),
                    readings.cuda_major ? fmt::format(", and runs programs up to CUDA {}.{}",
                                                      *readings.cuda_major, readings.cuda_minor.value_or(0))
                                        : ""));
  } else if (!library) {
    chart.add(
        Severity::kWarning, "nvml", "libnvidia-ml.so.1 in the folders of the dynamic linker",
        "not found: memory, load and processes of the GPUs are not known, though they can be computed on",
        install_text(machine));
  } else if (readings.state == GpuReadings::State::kNoLibrary) {
    chart.add(Severity::kWarning, "nvml", library->path,
              fmt::format("it is there but cannot be loaded: {}", printable(readings.reason)),
              "Run 'sudo ldconfig'; if that does not help, install the driver's libraries anew.");
  } else {
    chart.add(Severity::kOk, "nvml", library->path, "found");
  }
  for (const GpuReading& gpu : readings.gpus)
    if (!gpu.error.empty())
      chart.add(
          Severity::kProblem, "nvml", fmt::format("GPU {} of nvidia-smi", gpu.index),
          fmt::format("the driver cannot reach it: {}", printable(gpu.error)),
          "It may have fallen off the bus (heat, power, a fault): 'sudo dmesg | grep Xid' says more; restart "
          "the machine.");
}

void examine_runtime(const Chart& chart) {
  const Machine& machine = chart.machine;
  if (!chart.expected) return;
  const auto& runtime = machine.runtime;
  if (!runtime) {
    chart.add(
        Severity::kNote, "runtime", "/usr/local/cuda, libcudart.so",
        "no CUDA runtime found, so the driver's age cannot be compared with it",
        "Needed where Tern's CUDA backend is built, and where programs use a CUDA toolkit of their own.");
    return;
  }
  std::optional<Version> driver = machine.driver.version;
  if (!driver) driver = Version::parse(chart.readings.driver_version);
  if (!driver && !machine.wsl)
    if (const LibraryFile* libcuda = first_usable(machine.libcuda)) driver = libcuda->version;
  const auto least = least_driver(runtime->version);
  const std::string looked_at = runtime->found_in + ", /proc/driver/nvidia/version";
  if (!driver) {
    chart.add(Severity::kNote, "runtime", looked_at,
              fmt::format("CUDA {} is installed; the driver's version is not known", runtime->version.text));
  } else if (!least) {
    chart.add(
        Severity::kNote, "runtime", looked_at,
        fmt::format("CUDA {} is installed, for which the least driver is not known here; the driver is {}",
                    runtime->version.text, driver->text),
        "The release notes of that CUDA toolkit name the driver it needs.");
  } else if (*driver < *least) {
    chart.add(
        Severity::kProblem, "runtime", looked_at,
        fmt::format("the driver {} is older than {}, the least that CUDA {} runs on", driver->text,
                    least->text, runtime->version.text),
        fmt::format(
            "Install a driver of {} or newer, or a CUDA toolkit of an older major version. (Data-centre "
            "GPUs can use the cuda-compat package instead.)",
            least->text));
  } else {
    chart.add(Severity::kOk, "runtime", looked_at,
              fmt::format("CUDA {} runs on driver {} (at least {})", runtime->version.text, driver->text,
                          least->text));
  }
}

void examine_plugin(const Chart& chart) {
  const Machine& machine = chart.machine;
  const PluginFile& plugin = machine.plugin;
  if (!machine.root_readable || (!chart.expected && !plugin.named)) return;
  const std::string looked_at = plugin.named ? "TERN_CUDA_PLUGIN=" + plugin.path : plugin.path;
  const std::string& ours = machine.options.version;
  auto problem = [&](const std::string& found, const std::string& to_do) {
    chart.add(Severity::kProblem, "plugin", looked_at, found, to_do);
  };
  if (!plugin.present) {
    if (plugin.named)
      return problem("the file that TERN_CUDA_PLUGIN names is not there",
                     "Correct the variable, or unset it: the plugin is then looked for beside the library.");
    return problem(
        "this build of Tern has no CUDA backend: there is no libtern_cuda.so beside the library, so the "
        "program cannot use any real GPU",
        "Install the CUDA backend of the same version beside the library, or name it in "
        "TERN_CUDA_PLUGIN; a build of Tern makes it where nvcc is. Until then: " +
            without_gpu(machine));
  }
  if (plugin.version.empty())
    return problem(
        "the file has no version stamp (TERN_PLUGIN_VERSION) in it: it is no plugin of Tern, or is cut off",
        "Install the plugin anew, of the version that 'tern version' prints.");
  if (!ours.empty() && plugin.version != ours)
    return problem(fmt::format("the plugin is of version {}, the program of {}: only the same version fits",
                               printable(plugin.version), ours),
                   fmt::format("Install libtern_cuda.so of version {}.", ours));
  chart.add(Severity::kOk, "plugin", looked_at,
            fmt::format("the CUDA backend is there, of version {}", printable(plugin.version)));
}

}  // namespace tern::detail
