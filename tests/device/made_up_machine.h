// Machines made up of files in a temporary folder, for the tests of machine.h and doctor.h.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "tern/device/machine.h"

namespace tern {

inline constexpr const char* kDriver = "550.54.14";
inline constexpr const char* kKernel = "6.1.0-18-amd64";

/// Paths begin with '/', as on the machine itself.
class MadeUpMachine {
 public:
  MadeUpMachine() {
    // Hundreds of small files: in memory where that is possible, since a busy disk takes seconds for them.
    const bool memory = ::access("/dev/shm", W_OK | X_OK) == 0;
    std::string name =
        (memory ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/tern-test-XXXXXX";
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    folder_ = name;
    // Others than the owner may look in: see Unprivileged.
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));
    write("/proc/sys/kernel/osrelease", std::string(kKernel) + "\n");
    std::filesystem::create_directories(real("/sys/bus/pci/devices"));
  }

  MadeUpMachine(const MadeUpMachine&) = delete;
  MadeUpMachine& operator=(const MadeUpMachine&) = delete;
  ~MadeUpMachine() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  MachineEnvironment environment;
  std::string version = "0.1.0";

  std::filesystem::path real(std::string_view path) const { return folder_ / path.substr(1); }
  void write(std::string_view path, std::string_view text) const {
    std::filesystem::create_directories(real(path).parent_path());
    std::ofstream file(real(path), std::ios::binary);
    file << text;
    if (!file.flush()) throw std::runtime_error("cannot write " + std::string(path));
  }
  void link(std::string_view path, std::string_view target) const {
    std::filesystem::create_directories(real(path).parent_path());
    std::filesystem::create_symlink(target, real(path));
  }
  void remove(std::string_view path) const { std::filesystem::remove_all(real(path)); }
  void permit(std::string_view path, unsigned mode) const {
    std::filesystem::permissions(real(path), std::filesystem::perms(mode));
  }

  void pci(const std::string& address, const std::string& vendor, const std::string& device,
           const std::string& driver, const std::string& class_code = "0x030000") const {
    const std::string folder = "/sys/bus/pci/devices/" + address;
    write(folder + "/class", class_code + "\n");
    write(folder + "/vendor", vendor + "\n");
    write(folder + "/device", device + "\n");
    if (!driver.empty()) link(folder + "/driver", "../../../../bus/pci/drivers/" + driver);
  }
  /// A plain file in place of a device node.
  void node(const std::string& path) const {
    write(path, "");
    permit(path, 0666);
  }
  void driver(const std::string& number = kDriver) const {
    write("/proc/driver/nvidia/version",
          "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " + number +
              "  Thu Feb 22 01:44:30 UTC 2024\nGCC version:  gcc version 12.2.0\n");
    write("/sys/module/nvidia/version", number + "\n");
    write("/sys/module/nvidia_uvm/version", number + "\n");
    node("/dev/nvidiactl");
    node("/dev/nvidia-uvm");
  }
  static std::string uuid(int minor) {
    return "GPU-" + std::to_string(minor) + "1111111-2222-3333-4444-555555555555";
  }
  /// A GPU at 0000:0<minor + 1>:00.0 that the driver serves.
  void gpu(int minor, const std::string& model = "NVIDIA GeForce RTX 3080") const {
    const std::string address = "0000:0" + std::to_string(minor + 1) + ":00.0";
    pci(address, "0x10de", "0x2206", "nvidia");
    write("/proc/driver/nvidia/gpus/" + address + "/information",
          "Model: \t\t " + model + "\nIRQ:   \t\t 132\nGPU UUID: \t " + uuid(minor) + "\nBus Location: \t " +
              address + "\nDevice Minor: \t " + std::to_string(minor) + "\nGPU Excluded:\t No\n");
    node("/dev/nvidia" + std::to_string(minor));
  }
  void libraries(const std::string& number = kDriver) const {
    for (const std::string name : {"libcuda", "libnvidia-ml"}) {
      const std::string path = "/usr/lib/x86_64-linux-gnu/" + name + ".so.";
      write(path + number, std::string("\x7f"
                                       "ELF\x02\x01\x01",
                                       7));
      link(path + "1", name + ".so." + number);
    }
  }
  void runtime(const std::string& number) const {
    write("/usr/local/cuda-12/version.json",
          "{\n \"cuda\" : {\n  \"name\" : \"CUDA SDK\",\n  \"version\" : \"" + number +
              "\"\n },\n \"cuda_cudart\" : {\"version\" : \"1.2.3\"}\n}\n");
    link("/usr/local/cuda", "/etc/alternatives/cuda");
    link("/etc/alternatives/cuda", "/usr/local/cuda-12");
  }
  void plugin(const std::string& number) const {
    write("/usr/lib/libtern_cuda.so", std::string("\x7f"
                                                  "ELF",
                                                  4) +
                                          std::string(1000, 'x') + "TERN_PLUGIN_VERSION=" + number +
                                          std::string(1, '\0') + "more");
  }
  /// Everything that computing on `gpus` GPUs takes.
  void healthy(int gpus = 1) const {
    driver();
    for (int i = 0; i < gpus; ++i) gpu(i);
    libraries();
    runtime("12.4.1");
    plugin("0.1.0");
  }

  Machine read() const {
    MachineOptions options;
    options.root = folder_.string();
    options.environment = environment;
    options.version = version;
    return read_machine(std::move(options));
  }

 private:
  std::filesystem::path folder_;
};

/// While one lives, file permissions count, although the tests may run as root.
class Unprivileged {
 public:
  Unprivileged() : before_(::geteuid()) {
    if (before_ == 0 && ::seteuid(65534) != 0) works_ = false;
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;
  ~Unprivileged() {
    if (before_ == 0 && works_ && ::seteuid(0) != 0) std::abort();
  }
  /// False where the process may not become another user.
  bool works() const { return works_; }

 private:
  uid_t before_;
  bool works_ = true;
};

}  // namespace tern
