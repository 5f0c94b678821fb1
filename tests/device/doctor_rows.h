// The table of the doctor's tests: a made-up machine for each cause, what must be found there, and what to
// do. It is gone through by doctor_test.cpp.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tern/device/doctor.h"
#include "tests/device/made_up_machine.h"

namespace tern::doctor_rows {

struct Expected {
  Severity severity;
  std::string subject;
  std::vector<std::string> found;
  std::vector<std::string> to_do;
};

struct Row {
  const char* name;
  std::function<void(MadeUpMachine&)> make;
  std::vector<Expected> expected;
  /// Findings that are problems, in all: causes must not drag their consequences along.
  size_t problems;
  GpuReadings readings = {};
  std::optional<std::vector<ProgramGpu>> program = {};
};

inline GpuReadings ready(std::vector<GpuReading> gpus) {
  GpuReadings readings;
  readings.state = GpuReadings::State::kReady;
  readings.driver_version = kDriver;
  readings.cuda_major = 12;
  readings.cuda_minor = 4;
  readings.gpus = std::move(gpus);
  return readings;
}

inline GpuReading reading(int index, uint64_t used_gib, std::vector<GpuProcess> processes = {}) {
  GpuReading gpu;
  gpu.index = index;
  gpu.name = "NVIDIA GeForce RTX 3080";
  gpu.uuid = MadeUpMachine::uuid(index);
  gpu.pci_bus_id = "0000:0" + std::to_string(index + 1) + ":00.0";
  gpu.memory_total = uint64_t{10} << 30;
  gpu.memory_used = used_gib << 30;
  gpu.mig_enabled = false;
  gpu.processes = std::move(processes);
  return gpu;
}

inline GpuReadings failed(int code, const std::string& reason) {
  GpuReadings readings;
  readings.state = GpuReadings::State::kFailed;
  readings.error_code = code;
  readings.reason = reason;
  return readings;
}

template <class... Changes>
GpuReading changed(GpuReading gpu, Changes... changes) {
  (changes(gpu), ...);
  return gpu;
}

inline constexpr Severity kOk = Severity::kOk, kNote = Severity::kNote, kWarning = Severity::kWarning,
                          kProblem = Severity::kProblem;

/// The environment's CUDA_VISIBLE_DEVICES on a machine with two GPUs.
inline std::function<void(MadeUpMachine&)> visible(const std::string& text) {
  return [text](MadeUpMachine& machine) {
    machine.healthy(2);
    machine.environment.cuda_visible_devices = text;
  };
}

/// An NVIDIA GPU without a loaded driver.
inline void undriven(MadeUpMachine& machine, const std::string& driver = "") {
  machine.pci("0000:01:00.0", "0x10de", "0x2206", driver);
  machine.libraries();
  machine.plugin("0.1.0");
}

inline void module_for(MadeUpMachine& machine, const std::string& kernel, const std::string& end = "") {
  machine.write("/lib/modules/" + kernel + "/modules.dep",
                "kernel/drivers/video/nvidiafb.ko: \nupdates/dkms/nvidia-drm.ko: updates/dkms/nvidia.ko\n"
                "updates/dkms/nvidia.ko: kernel/drivers/x.ko\n");
  machine.write("/lib/modules/" + kernel + "/updates/dkms/nvidia.ko", "module" + end);
}

inline void secure_boot(MadeUpMachine& machine) {
  machine.write("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
                std::string("\x06\0\0\0\x01", 5));
}

inline void wsl(MadeUpMachine& machine) {
  machine.write("/proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
  machine.write("/dev/dxg", "");
}

inline std::vector<Row> rows() {
  return {
      {"all is well",
       [](MadeUpMachine& machine) { machine.healthy(); },
       {{kOk, "displays", {"0000:01:00.0 NVIDIA (10de:2206, driver nvidia)"}, {}},
        {kOk, "driver", {"550.54.14 is loaded"}, {}},
        {kOk, "gpus", {"NVIDIA GeForce RTX 3080 (0000:01:00.0, GPU-0111"}, {}},
        {kOk, "device-nodes", {"readable and writable"}, {}},
        {kOk, "libcuda", {"of driver 550.54.14"}, {}},
        {kOk, "nvml", {"up to CUDA 12.4"}, {}},
        {kOk, "runtime", {"CUDA 12.4.1 runs on driver 550.54.14 (at least 525.60.13)"}, {}},
        {kOk, "plugin", {"of version 0.1.0"}, {}},
        {kOk, "visible-devices", {"not set"}, {}},
        {kOk, "memory", {"1.0 GiB of 10.0 GiB are taken, 9.0 GiB are free"}, {}},
        {kOk, "program", {"cuda:0 NVIDIA GeForce RTX 3080"}, {}}},
       0,
       ready({reading(0, 1)}),
       std::vector<ProgramGpu>{{"NVIDIA GeForce RTX 3080", "0000:01:00.0", false}}},
      {"no GPU at all",
       [](MadeUpMachine&) {},
       {{kNote, "displays", {"no graphics device", "no GPU"}, {"TERN_SIM_GPUS=2", "simulated"}}},
       0},
      {"simulated GPUs are on",
       [](MadeUpMachine& machine) { machine.environment.sim_gpus = "2"; },
       {{kNote, "simulated", {"the program has 1", "hide nothing"}, {"Unset TERN_SIM_GPUS"}}},
       0,
       {},
       std::vector<ProgramGpu>{{"Simulated GPU", "", true}}},
      {"a wrong number of simulated GPUs",
       [](MadeUpMachine& machine) { machine.environment.sim_gpus = "two"; },
       {{kWarning, "simulated", {"'two' is not a number"}, {"such as 2"}}},
       0},
      {"integrated graphics only",
       [](MadeUpMachine& machine) { machine.pci("0000:00:02.0", "0x8086", "0x9a49", "i915"); },
       {{kNote, "displays", {"no NVIDIA device on the PCI bus"}, {"TERN_SIM_GPUS=2"}},
        {kNote, "displays", {"integrated in an Intel processor", "task manager", "driver i915"}, {"CPU"}}},
       0},
      {"the task manager shows two GPUs, the program one",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.pci("0000:00:02.0", "0x8086", "0x9a49", "i915");
       },
       {{kNote,
         "displays",
         {"0000:00:02.0 Intel", "a task manager counts it", "cannot be used here"},
         {"count the NVIDIA devices only"}}},
       0},
      {"an AMD card",
       [](MadeUpMachine& machine) { machine.pci("0000:03:00.0", "0x1002", "0x744c", "amdgpu", "0x038000"); },
       {{kNote, "displays", {"AMD graphics", "1002:744c", "cannot be used here"}, {"TERN_SIM_GPUS=2"}}},
       0},
      {"the console of a server",
       [](MadeUpMachine& machine) { machine.pci("0000:03:00.0", "0x1a03", "0x2000", "ast"); },
       {{kNote, "displays", {"ASPEED", "the console of a server"}, {}}},
       0},
      {"nouveau in place of nvidia",
       [](MadeUpMachine& machine) {
         undriven(machine, "nouveau");
         machine.write("/sys/module/nouveau/refcnt", "1\n");
       },
       {{kProblem,
         "driver",
         {"nouveau", "cannot run CUDA"},
         {"blacklist nouveau", "Install the NVIDIA driver"}}},
       1},
      {"no driver installed",
       [](MadeUpMachine& machine) {
         undriven(machine);
         machine.write(std::string("/lib/modules/") + kKernel + "/modules.dep", "");
       },
       {{kProblem, "driver", {"no nvidia module for this kernel"}, {"Install the NVIDIA driver"}}},
       1},
      {"the driver was not built for the new kernel",
       [](MadeUpMachine& machine) {
         undriven(machine);
         machine.write(std::string("/lib/modules/") + kKernel + "/modules.dep", "");
         module_for(machine, "6.1.0-17-amd64");
       },
       {{kProblem,
         "driver",
         {"a module for 6.1.0-17-amd64, but none for the running kernel 6.1.0-18-amd64"},
         {"dkms autoinstall -k 6.1.0-18-amd64", "linux-headers-6.1.0-18-amd64"}}},
       1},
      {"the running kernel's modules are gone",
       [](MadeUpMachine& machine) {
         undriven(machine);
         module_for(machine, "6.1.0-19-amd64");
       },
       {{kProblem, "driver", {"are gone", "6.1.0-19-amd64 has one"}, {"Restart"}}},
       1},
      {"Secure Boot and an unsigned module",
       [](MadeUpMachine& machine) {
         undriven(machine);
         module_for(machine, kKernel);
         secure_boot(machine);
       },
       {{kProblem,
         "driver",
         {"no signature", "Secure Boot is on", "updates/dkms/nvidia.ko"},
         {"mokutil --import"}}},
       1},
      {"Secure Boot and a module signed with a key of its own",
       [](MadeUpMachine& machine) {
         undriven(machine);
         module_for(machine, kKernel, "~Module signature appended~\n");
         secure_boot(machine);
       },
       {{kProblem, "driver", {"unless its signing key is enrolled"}, {"mokutil --import"}}},
       1},
      {"a module that was not loaded",
       [](MadeUpMachine& machine) {
         undriven(machine);
         module_for(machine, kKernel);
       },
       {{kProblem, "driver", {"updates/dkms/nvidia.ko is there"}, {"modprobe nvidia", "dmesg"}}},
       1},
      {"a blacklisted module",
       [](MadeUpMachine& machine) {
         undriven(machine);
         module_for(machine, kKernel);
         machine.write("/lib/modprobe.d/blacklist-nvidia.conf", "# prime-select\nblacklist  nvidia\n");
       },
       {{kProblem, "driver", {"blacklist-nvidia.conf forbids it"}, {"prime-select"}}},
       1},
      {"a GPU set aside for a virtual machine",
       [](MadeUpMachine& machine) { undriven(machine, "vfio-pci"); },
       {{kProblem, "displays", {"set aside for a virtual machine"}, {"vfio-pci"}}},
       1},
      {"one of two GPUs is not served",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.pci("0000:09:00.0", "0x10de", "0x0fc6", "");
       },
       {{kProblem, "gpus", {"does not serve 0000:09:00.0"}, {"dmesg | grep NVRM", "too old"}}},
       1},
      {"a GPU excluded by a parameter",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.gpu(1);
         machine.write("/proc/driver/nvidia/gpus/0000:02:00.0/information",
                       "Model: NVIDIA T4\nDevice Minor: 1\nGPU Excluded:\t Yes\n");
       },
       {{kProblem, "gpus", {"0000:02:00.0 NVIDIA T4 is excluded"}, {"NVreg_ExcludedGpus"}}},
       1},
      {"a container without GPUs",
       [](MadeUpMachine& machine) {
         machine.healthy();
         for (const char* path :
              {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
               "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"})
           machine.remove(path);
         machine.write("/.dockerenv", "");
         machine.environment.nvidia_visible_devices = "void";
       },
       {{kNote, "machine", {"container (docker)"}, {}},
        {kProblem, "device-nodes", {"started without GPUs", "NVIDIA_VISIBLE_DEVICES=void"}, {"--gpus all"}}},
       1},
      {"a container on a host without driver",
       [](MadeUpMachine& machine) {
         undriven(machine);
         machine.write("/proc/1/cgroup", "0::/kubepods/burstable/pod1\n");
       },
       {{kNote, "machine", {"container (kubernetes)"}, {}},
        {kProblem, "driver", {"belongs to the host"}, {"On the host", "--gpus all"}}},
       1},
      {"a sandbox that hides the driver's files",
       [](MadeUpMachine& machine) {
         machine.libraries();
         machine.plugin("0.1.0");
         machine.write("/.dockerenv", "");
       },
       {{kOk, "driver", {"550.54.14 answers"}, {}}, {kOk, "libcuda", {"found"}, {}}},
       0,
       ready({reading(0, 1)})},
      {"a container with one of two GPUs",
       [](MadeUpMachine& machine) {
         machine.healthy(2);
         machine.remove("/proc/driver/nvidia/gpus/0000:02:00.0");
         machine.write("/run/.containerenv", "");
       },
       {{kNote, "gpus", {"0000:02:00.0", "not given to this container"}, {"--gpus all"}}},
       0},
      {"device nodes are missing",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.remove("/dev/nvidia0");
         machine.remove("/dev/nvidia-uvm");
       },
       {{kProblem,
         "device-nodes",
         {"not there: /dev/nvidia0 and /dev/nvidia-uvm"},
         {"nvidia-modprobe -c 0 -u"}}},
       1},
      {"the node of unified memory is missing, and its maker is there",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.remove("/dev/nvidia-uvm");
         machine.write("/usr/bin/nvidia-modprobe", "");
       },
       {{kWarning,
         "device-nodes",
         {"not there: /dev/nvidia-uvm", "when CUDA first starts"},
         {"modprobe nvidia-uvm"}}},
       0},
      {"the module of unified memory is not loaded",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.remove("/sys/module/nvidia_uvm");
       },
       {{kWarning, "device-nodes", {"nvidia_uvm is not loaded"}, {"modprobe nvidia-uvm"}}},
       0},
      {"device nodes without permission",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.permit("/dev/nvidia0", 0);
         machine.permit("/dev/nvidiactl", 0444);
         machine.permit("/dev/nvidia-uvm", 0666);
       },
       {{kProblem,
         "device-nodes",
         {"no permission", "/dev/nvidia0 (neither readable nor writable)", "/dev/nvidiactl (not writable)"},
         {"usermod -aG video"}}},
       1},
      {"libcuda is missing",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.remove("/usr/lib/x86_64-linux-gnu/libcuda.so.1");
       },
       {{kProblem, "libcuda", {"not found"}, {"libcuda1", "ldconfig"}}},
       1},
      {"libcuda is a link to nothing",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.remove(std::string("/usr/lib/x86_64-linux-gnu/libcuda.so.") + kDriver);
       },
       {{kWarning, "libcuda", {"a link to a file that is not there"}, {"anew"}},
        {kProblem, "libcuda", {"none that can be loaded"}, {"libcuda1"}}},
       1},
      {"libcuda of 32 bits only",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.write(std::string("/usr/lib/x86_64-linux-gnu/libcuda.so.") + kDriver,
                       std::string("\x7f"
                                   "ELF\x01\x01\x01",
                                   7));
       },
       {{kNote, "libcuda", {"32 bits"}, {}},
        {kProblem, "libcuda", {"none that can be loaded"}, {"libcuda1"}}},
       1},
      {"NVML is missing",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.remove("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1");
       },
       {{kWarning, "nvml", {"not found", "memory, load and processes"}, {"libnvidia-ml1"}}},
       0},
      {"libraries newer than the loaded module",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.driver("535.183.01");
       },
       {{kProblem, "libcuda", {"of driver 550.54.14", "of driver 535.183.01"}, {"Restart the machine"}},
        {kProblem, "nvml", {"Driver/library version mismatch"}, {"restart the machine"}}},
       2,
       failed(kNvmlVersionMismatch, "Driver/library version mismatch")},
      {"the driver does not answer",
       [](MadeUpMachine& machine) { machine.healthy(); },
       {{kProblem, "nvml", {"does not answer: Unknown Error"}, {"nvidia-smi", "dmesg"}}},
       1,
       failed(999, "Unknown Error")},
      {"a GPU that fell off the bus",
       [](MadeUpMachine& machine) { machine.healthy(2); },
       {{kProblem, "nvml", {"GPU is lost"}, {"Xid", "restart"}}},
       1,
       ready({reading(0, 0), changed(reading(1, 0), [](GpuReading& gpu) { gpu.error = "GPU is lost"; })})},
      {"a stub of libcuda on the path",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.write("/usr/local/cuda-12/lib64/stubs/libcuda.so.1", "");
         machine.environment.ld_library_path = "/opt/lib:/usr/local/cuda/lib64/stubs";
       },
       {{kProblem, "libcuda", {"/usr/local/cuda/lib64/stubs", "linking only"}, {"out of LD_LIBRARY_PATH"}}},
       1},
      {"the driver is older than the runtime",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.driver("470.57.02");
         machine.remove("/usr/lib/x86_64-linux-gnu");
         machine.libraries("470.57.02");
       },
       {{kProblem,
         "runtime",
         {"driver 470.57.02 is older than 525.60.13", "CUDA 12.4.1"},
         {"Install a driver of 525.60.13 or newer"}}},
       1},
      {"a runtime that is not in the table",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.write("/usr/local/cuda-12/version.json", R"({"cuda": {"version": "19.0.1"}})");
       },
       {{kNote, "runtime", {"CUDA 19.0.1", "not known here"}, {"release notes"}}},
       0},
      {"the plugin is missing",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.remove("/usr/lib/libtern_cuda.so");
       },
       {{kProblem,
         "plugin",
         {"no CUDA backend", "libtern_cuda.so"},
         {"beside the library", "TERN_SIM_GPUS=2"}}},
       1},
      {"the plugin is of another version",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.plugin("0.0.9");
       },
       {{kProblem, "plugin", {"of version 0.0.9, the program of 0.1.0"}, {"of version 0.1.0"}}},
       1},
      {"the plugin is something else",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.write("/usr/lib/libtern_cuda.so", "text");
       },
       {{kProblem, "plugin", {"no version stamp"}, {"anew"}}},
       1},
      {"TERN_CUDA_PLUGIN names nothing",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.environment.cuda_plugin = "/opt/tern/libtern_cuda.so";
       },
       {{kProblem, "plugin", {"TERN_CUDA_PLUGIN names is not there"}, {"unset it"}}},
       1},
      {"the plugin was not loaded",
       [](MadeUpMachine& machine) { machine.healthy(); },
       {{kProblem, "program", {"no real GPU", "not loaded"}, {"one source"}}},
       1,
       ready({reading(0, 0)}),
       std::vector<ProgramGpu>{{"Simulated GPU", "", true}}},
      {"CUDA_VISIBLE_DEVICES is empty",
       visible(""),
       {{kProblem, "visible-devices", {"hides every GPU"}, {"Unset CUDA_VISIBLE_DEVICES"}}},
       1},
      {"CUDA_VISIBLE_DEVICES=-1",
       visible("-1"),
       {{kProblem, "visible-devices", {"entry 1 ('-1')", "negative", "no GPU is left"}, {"from 0 to 1"}}},
       1},
      {"CUDA_VISIBLE_DEVICES=NoDevFiles",
       visible("NoDevFiles"),
       {{kProblem, "visible-devices", {"entry 1 ('NoDevFiles')", "hides every GPU"}, {"Unset"}}},
       1},
      {"CUDA_VISIBLE_DEVICES out of range",
       visible("1,2,0"),
       {{kProblem,
         "visible-devices",
         {"entry 2 ('2')", "out of range: the GPUs here are 0 to 1", "sees 1 GPU", "1 behind it"},
         {"from 0 to 1"}}},
       1},
      {"CUDA_VISIBLE_DEVICES is no number",
       visible("0,gpu1"),
       {{kProblem, "visible-devices", {"entry 2 ('gpu1')", "not a number", "sees 1 GPU"}, {"from 0 to 1"}}},
       1},
      {"CUDA_VISIBLE_DEVICES has an entry twice",
       visible("0,0,1"),
       {{kProblem,
         "visible-devices",
         {"entry 2 ('0')", "there twice", "no GPU at all"},
         {"distinct numbers"}}},
       1},
      {"CUDA_VISIBLE_DEVICES with a foreign UUID",
       visible("GPU-0111,GPU-99"),
       {{kProblem,
         "visible-devices",
         {"entry 2 ('GPU-99')", "no GPU here has this UUID"},
         {"nvidia-smi -L"}}},
       1},
      {"CUDA_VISIBLE_DEVICES with a MIG device that is not there",
       visible("MIG-1234"),
       {{kProblem, "visible-devices", {"entry 1 ('MIG-1234')", "no MIG device"}, {"nvidia-smi -L"}}},
       1,
       ready({reading(0, 0), reading(1, 0)})},
      {"CUDA_VISIBLE_DEVICES hides one",
       visible("1"),
       {{kNote, "visible-devices", {"leaves 1 of 2 GPUs"}, {"Unset it"}}},
       0},
      {"MIG is on, without MIG devices",
       [](MadeUpMachine& machine) { machine.healthy(); },
       {{kProblem, "mig", {"no MIG device was made"}, {"mig -cgi"}}},
       1,
       ready({changed(reading(0, 0), [](GpuReading& gpu) { gpu.mig_enabled = true; })})},
      {"MIG is on, and none is chosen",
       [](MadeUpMachine& machine) { machine.healthy(); },
       {{kNote, "mig", {"of its 2 MIG devices a program sees the first"}, {"CUDA_VISIBLE_DEVICES=MIG-a"}}},
       0,
       ready({changed(reading(0, 0),
                      [](GpuReading& gpu) {
                        gpu.mig_enabled = true;
                        gpu.mig_uuids = {"MIG-a", "MIG-b"};
                      })})},
      {"CUDA counts otherwise than nvidia-smi",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.gpu(1, "NVIDIA T400");
       },
       {{kWarning,
         "device-order",
         {"0 NVIDIA GeForce RTX 3080 and 1 NVIDIA T400", "another GPU than nvidia-smi's 0"},
         {"CUDA_DEVICE_ORDER=PCI_BUS_ID"}}},
       0},
      {"CUDA_DEVICE_ORDER makes them count alike",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.gpu(1, "NVIDIA T400");
         machine.environment.cuda_device_order = "PCI_BUS_ID";
       },
       {{kOk, "device-order", {"the same order"}, {}}},
       0},
      {"CUDA_DEVICE_ORDER is misspelt",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.environment.cuda_device_order = "pci";
       },
       {{kWarning, "device-order", {"'pci' is no order"}, {"PCI_BUS_ID"}}},
       0},
      {"memory taken by other processes",
       [](MadeUpMachine& machine) { machine.healthy(); },
       {{kWarning, "memory", {"9.0 GiB of 10.0 GiB are taken", "4242 python 8.0 GiB"}, {"kill 4242"}}},
       0,
       ready({reading(0, 9, {{4242, "python", uint64_t{8} << 30}})})},
      {"memory taken by processes that are not visible",
       [](MadeUpMachine& machine) { machine.healthy(); },
       {{kWarning, "memory", {"1.0 GiB are free"}, {"another user or container"}}},
       0,
       ready({reading(0, 9)})},
      {"programs are forbidden on a GPU",
       [](MadeUpMachine& machine) { machine.healthy(); },
       {{kProblem, "compute-mode", {"prohibited"}, {"-c DEFAULT"}}},
       1,
       ready({changed(reading(0, 0), [](GpuReading& gpu) { gpu.compute_mode = 2; })})},
      {"a GPU for one process, which is there",
       [](MadeUpMachine& machine) { machine.healthy(); },
       {{kProblem, "compute-mode", {"exclusive", "there is one already"}, {"-c DEFAULT"}}},
       1,
       ready(
           {changed(reading(0, 0, {{4242, "python", {}}}), [](GpuReading& gpu) { gpu.compute_mode = 3; })})},
      {"WSL with the driver of Windows",
       [](MadeUpMachine& machine) {
         wsl(machine);
         machine.write("/usr/lib/wsl/lib/libcuda.so.1", "");
         machine.write("/usr/lib/wsl/lib/libnvidia-ml.so.1", "");
         machine.plugin("0.1.0");
       },
       {{kNote, "machine", {"this is WSL", "/dev/dxg, which is there"}, {}}, {kOk, "libcuda", {"found"}, {}}},
       0},
      {"WSL with a Linux driver inside",
       [](MadeUpMachine& machine) {
         wsl(machine);
         machine.write("/usr/lib/wsl/lib/libcuda.so.1", "");
         machine.libraries();
         machine.plugin("0.1.0");
       },
       {{kProblem, "libcuda", {"a libcuda of a Linux driver comes first"}, {"Remove the NVIDIA driver"}}},
       1},
      {"WSL without a driver in Windows",
       [](MadeUpMachine& machine) { wsl(machine); },
       {{kNote, "displays", {"no libcuda of Windows"}, {"install its driver in Windows", "wsl --shutdown"}}},
       0},
      {"nonsense in every file",
       [](MadeUpMachine& machine) {
         machine.healthy();
         machine.write("/sys/bus/pci/devices/0000:01:00.0/class", std::string(100'000, '\xff'));
         machine.write("/sys/bus/pci/devices/sideways/class", "0x030000\n");
         machine.write("/proc/driver/nvidia/version", "NVRM version: \x1b[31m none\n");
         machine.write("/sys/module/nvidia/version", "99999999999.1");
         machine.write("/proc/driver/nvidia/gpus/0000:01:00.0/information",
                       "Model\nDevice Minor: 99999999999\n");
         machine.write("/usr/local/cuda-12/version.json", "{\"cuda\": [\"version");
         machine.remove("/dev/nvidiactl");
         std::filesystem::create_directories(machine.real("/dev/nvidiactl/deeper"));
         machine.permit("/dev/nvidiactl", 0777);
         machine.link("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
                      "/proc/loop");
         machine.link("/proc/loop", "loop");
       },
       {{kWarning, "odd-file", {"0000:01:00.0/class: expected a number"}, {"look at this file"}},
        {kWarning, "odd-file", {"sideways: not the address of a PCI device"}, {}},
        {kWarning, "odd-file", {"/proc/driver/nvidia/version: no version in"}, {}},
        {kWarning, "odd-file", {"/sys/module/nvidia/version: '99999999999.1' is no version"}, {}},
        {kWarning, "odd-file", {"'99999999999' is no number"}, {}},
        {kWarning, "odd-file", {"version.json: no version"}, {}},
        {kWarning, "odd-file", {"links that lead nowhere"}, {}},
        {kOk, "driver", {"(version unknown)"}, {}}},
       0},
  };
}

}  // namespace tern::doctor_rows
