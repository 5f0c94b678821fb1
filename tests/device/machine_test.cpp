// What is read of a machine, on folders made up for it.
#include "tern/device/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <functional>

#include "tern/device/machine_files.h"
#include "tests/device/made_up_machine.h"

namespace tern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Version version(const char* text) { return Version::parse(text).value(); }

TEST(MachineVersion, ReadsAndCompares) {
  EXPECT_EQ(version("450.80.02").numbers, (std::array<int, 4>{450, 80, 2, 0}));
  EXPECT_EQ(version("450.80.02").text, "450.80.02");
  EXPECT_LT(version("450.36.06"), version("450.80.02"));
  EXPECT_LT(version("525.60.13"), version("525.105.17"));
  EXPECT_EQ(version("580"), version("580.0"));
  for (const char* text :
       {"", ".", "1.", ".1", "1..2", "x86_64", "1.2.3.4.5", "-1.2", "1.2 ", "+1", "1.2a", "9999999999.1"})
    EXPECT_FALSE(Version::parse(text)) << text;
}

TEST(MachineVersion, LeastDriverOfARuntime) {
  const std::pair<const char*, const char*> rows[] = {
      {"10.0.130", "410.48"}, {"10.1", "418.39"},    {"10.2.89", "440.33"},   {"11.0.3", "450.80.02"},
      {"11.8", "450.80.02"},  {"12.0", "525.60.13"}, {"12.9.1", "525.60.13"}, {"13.0", "580"}};
  for (const auto& [runtime, driver] : rows)
    EXPECT_EQ(least_driver(version(runtime))->text, driver) << runtime;
  EXPECT_FALSE(least_driver(version("9.2")));
  EXPECT_FALSE(least_driver(version("14.0")));
}

TEST(MachineText, AddressesAndBytes) {
  EXPECT_EQ(normal_pci_address("00000000:65:00.0"), "0000:65:00.0");
  EXPECT_EQ(normal_pci_address("0001:0A:00.0"), "0001:0a:00.0");
  EXPECT_EQ(normal_pci_address("00010001:0a:00.0"), "10001:0a:00.0");
  EXPECT_EQ(normal_pci_address("65:00.0"), "0000:65:00.0");
  EXPECT_EQ(normal_pci_address(""), "0000:");
  EXPECT_EQ(printable("a\x1b[31m\xff\n"), "a?[31m??");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
}

TEST(MachineFiles, LinksStayInsideTheRoot) {
  const MadeUpMachine made_up;
  made_up.write("/usr/lib/inside", "yes");
  made_up.link("/lib", "usr/lib");
  made_up.link("/absolute", "/usr/lib/inside");
  made_up.link("/climbing", "../../../../../../usr/lib/inside");
  made_up.link("/etc/deep", "/lib/../lib/./inside");
  made_up.link("/outside", "/etc/passwd");
  made_up.link("/loop", "loop");
  std::vector<std::string> complaints;
  const std::string root = made_up.real("/").string();
  const detail::MachineFiles files(root, complaints);
  for (const char* path : {"/lib/inside", "/absolute", "/climbing", "/etc/deep", "/../../usr/lib/inside"})
    EXPECT_EQ(files.resolve(path), "/usr/lib/inside") << path;
  EXPECT_EQ(files.read("/climbing"), "yes");
  EXPECT_FALSE(files.exists("/outside"));
  EXPECT_TRUE(files.is_named("/outside"));
  EXPECT_EQ(files.link_name("/outside"), "passwd");
  EXPECT_EQ(files.link_name("/usr"), "");
  EXPECT_THAT(complaints, IsEmpty());
  EXPECT_FALSE(files.exists("/loop"));
  EXPECT_THAT(complaints, ElementsAre(HasSubstr("/loop: links that lead nowhere")));
}

TEST(MachineFiles, OnlyPlainFilesAreOpened) {
  const MadeUpMachine made_up;
  ASSERT_EQ(::mkfifo(made_up.real("/pipe").c_str(), 0666), 0);
  std::filesystem::create_directories(made_up.real("/folder"));
  made_up.write("/closed", "x");
  made_up.permit("/closed", 0);
  made_up.write("/long", std::string(100'000, 'x'));
  std::vector<std::string> complaints;
  const std::string root = made_up.real("/").string();
  const detail::MachineFiles files(root, complaints);
  EXPECT_FALSE(files.read("/pipe"));
  EXPECT_FALSE(files.read("/folder"));
  EXPECT_FALSE(files.read("/missing"));
  EXPECT_THAT(complaints, ElementsAre("/pipe: not a plain file", "/folder: not a plain file"));
  EXPECT_EQ(files.read("/long")->size(), 65536u);
  EXPECT_EQ(files.read("/long", 20'000)->size(), 20'000u);
  EXPECT_EQ(files.read_end("/long", 5), "xxxxx");
  EXPECT_EQ(files.read_end("/long", 200'000)->size(), 100'000u);
  const Unprivileged unprivileged;
  if (unprivileged.works()) {
    EXPECT_FALSE(files.read("/closed"));
    EXPECT_THAT(complaints.back(), HasSubstr("/closed: cannot be opened: Permission denied"));
  }
}

TEST(MachineFiles, ComplaintsAreLimited) {
  const MadeUpMachine made_up;
  for (int i = 0; i < 100; ++i) made_up.write("/sys/bus/pci/devices/odd" + std::to_string(i) + "/class", "x");
  const Machine machine = made_up.read();
  EXPECT_EQ(machine.complaints.size(), 20u);
  EXPECT_THAT(machine.complaints.back(), HasSubstr("and more"));
}

TEST(MachineFiles, AStampIsFoundWhereverItLies) {
  const MadeUpMachine made_up;
  std::vector<std::string> complaints;
  const std::string root = made_up.real("/").string();
  const detail::MachineFiles files(root, complaints);
  constexpr size_t kPiece = 1 << 20;
  for (size_t before : {size_t{0}, kPiece - 30, kPiece - 15, kPiece - 1, kPiece, 2 * kPiece - 10}) {
    for (const std::string& end : {std::string(), std::string(1, '\0') + std::string(kPiece, 'y')}) {
      made_up.write("/stamp", std::string(before, 'x') + "STAMP=1.2.3" + end);
      EXPECT_EQ(files.find_after("/stamp", "STAMP="), "1.2.3") << before;
    }
  }
  made_up.write("/stamp", "STAMP=" + std::string(1000, '7'));
  EXPECT_EQ(files.find_after("/stamp", "STAMP="), std::string(64, '7'));
  made_up.write("/stamp", std::string(3 * kPiece, 'x'));
  EXPECT_FALSE(files.find_after("/stamp", "STAMP="));
  made_up.write("/stamp", "");
  EXPECT_FALSE(files.find_after("/stamp", "STAMP="));
}

TEST(Machine, DisplaysAndDriver) {
  MadeUpMachine made_up;
  made_up.healthy(2);
  made_up.pci("0000:00:02.0", "0x8086", "0x9a49", "i915");
  made_up.pci("0000:00:1f.3", "0x8086", "0xa0c8", "snd_hda_intel", "0x040300");
  made_up.pci("0000:41:00.0", "0x1002", "0x74a1", "amdgpu", "0x120000");
  const Machine machine = made_up.read();
  ASSERT_EQ(machine.displays.size(), 4u);
  EXPECT_EQ(machine.displays[0].address, "0000:00:02.0");
  EXPECT_EQ(machine.displays[0].driver, "i915");
  EXPECT_EQ(machine.displays[1].vendor, 0x10de);
  EXPECT_EQ(machine.displays[1].device, 0x2206);
  EXPECT_EQ(machine.displays[1].class_code, 0x030000u);
  EXPECT_EQ(machine.displays[3].vendor_name(), "AMD");
  EXPECT_EQ(machine.nvidia_displays(), 2u);
  EXPECT_TRUE(machine.driver.module_loaded && machine.driver.uvm_loaded);
  EXPECT_FALSE(machine.driver.nouveau_loaded || machine.driver.open_module);
  EXPECT_EQ(machine.driver.version, version(kDriver));
  ASSERT_EQ(machine.driver.gpus.size(), 2u);
  EXPECT_EQ(machine.driver.gpus[1].model, "NVIDIA GeForce RTX 3080");
  EXPECT_EQ(machine.driver.gpus[1].uuid, MadeUpMachine::uuid(1));
  EXPECT_EQ(machine.driver.gpus[1].minor, 1);
  EXPECT_EQ(machine.nodes.size(), 4u);
  EXPECT_TRUE(machine.node("/dev/nvidia1")->writable);
  EXPECT_EQ(machine.node("/dev/nvidia2"), nullptr);
  EXPECT_EQ(machine.kernel, kKernel);
  EXPECT_EQ(machine.container, "");
  EXPECT_FALSE(machine.wsl || machine.secure_boot.has_value());
  EXPECT_THAT(machine.complaints, IsEmpty());
}

TEST(Machine, TheOpenModuleAndAGpuWithoutUuid) {
  MadeUpMachine made_up;
  made_up.write("/proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build\n");
  made_up.write("/proc/driver/nvidia/gpus/0000:01:00.0/information",
                "Model: \t Unknown\nGPU UUID: \t GPU-" + std::string(8, '?') + "-\n");
  const Machine machine = made_up.read();
  EXPECT_TRUE(machine.driver.open_module);
  EXPECT_EQ(machine.driver.version, version("560.35.03"));
  EXPECT_EQ(machine.driver.gpus.at(0).uuid, "");
  EXPECT_EQ(machine.driver.gpus.at(0).minor, -1);
}

TEST(Machine, LibrariesInTheOrderOfTheSearch) {
  MadeUpMachine made_up;
  made_up.libraries("550.54.14");
  made_up.write("/opt/nvidia/libcuda.so.1", "");
  made_up.write("/etc/ld.so.conf.d/nvidia.conf", "# comment\n/opt/nvidia\n");
  made_up.write("/home/lib/libcuda.so.470.57.02", "");
  made_up.link("/home/lib/libcuda.so.1", "libcuda.so.470.57.02");
  made_up.environment.ld_library_path = "relative::/home/lib";
  const Machine machine = made_up.read();
  std::vector<std::string> paths;
  for (const LibraryFile& library : machine.libcuda) paths.push_back(library.path);
  EXPECT_THAT(paths, ElementsAre("/home/lib/libcuda.so.1", "/opt/nvidia/libcuda.so.1",
                                 "/usr/lib/x86_64-linux-gnu/libcuda.so.1"));
  EXPECT_EQ(machine.libcuda[0].version, version("470.57.02"));
  EXPECT_FALSE(machine.libcuda[1].version);
  EXPECT_EQ(machine.libnvidia_ml.size(), 1u);
}

TEST(Machine, TheRuntimeIsFoundInEveryForm) {
  const auto runtime = [](const std::function<void(MadeUpMachine&)>& make) {
    MadeUpMachine made_up;
    make(made_up);
    const Machine machine = made_up.read();
    return machine.runtime ? machine.runtime->version.text + " " + machine.runtime->found_in : "none";
  };
  EXPECT_EQ(runtime([](MadeUpMachine&) {}), "none");
  EXPECT_EQ(runtime([](MadeUpMachine& machine) { machine.runtime("12.4.1"); }),
            "12.4.1 /usr/local/cuda/version.json");
  EXPECT_EQ(runtime([](MadeUpMachine& machine) {
              machine.write("/usr/local/cuda/lib64/libcudart.so.11.0", "");
              machine.write("/usr/local/cuda/lib64/libcudart.so.11.8.89", "");
              machine.write("/usr/local/cuda/lib64/libcudart.so.old", "");
            }),
            "11.8.89 /usr/local/cuda/lib64/libcudart.so.11.8.89");
  EXPECT_EQ(runtime([](MadeUpMachine& machine) {
              machine.write("/usr/local/cuda-9.2/lib64/libcudart.so.9.2", "");
              machine.write("/usr/local/cuda-11.8/version.json", R"({"cuda": {"version": "11.8.0"}})");
            }),
            "11.8.0 /usr/local/cuda-11.8/version.json");
  EXPECT_EQ(runtime([](MadeUpMachine& machine) {
              machine.write("/usr/lib/x86_64-linux-gnu/libcudart.so.12.2.140", "");
              machine.link("/usr/lib/x86_64-linux-gnu/libcudart.so.12", "libcudart.so.12.2.140");
            }),
            "12.2.140 /usr/lib/x86_64-linux-gnu/libcudart.so.12");
  // No version under "cuda", or in another object: the file is left out.
  for (const char* text : {"", "{", R"({"cuda")", R"({"cuda": {}, "x": {"version": "1.2"}})",
                           R"({"cuda": {"version": )", R"({"cuda": {"version": "new"}})"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(
        runtime([text](MadeUpMachine& machine) { machine.write("/usr/local/cuda/version.json", text); }),
        "none");
  }
}

TEST(Machine, TheModuleFileUnderEachName) {
  for (const char* name : {"nvidia.ko", "nvidia.ko.xz", "nvidia-current.ko", "nvidia-tesla-470.ko.zst"}) {
    MadeUpMachine made_up;
    made_up.write(std::string("/lib/modules/") + kKernel + "/extra/" + name, "x");
    const Machine machine = made_up.read();
    EXPECT_THAT(machine.driver.file.file, HasSubstr(name));
    EXPECT_EQ(machine.driver.file.has_signature.has_value(), std::string(name).ends_with(".ko")) << name;
  }
  for (const char* name :
       {"nvidia-drm.ko", "nvidia-current-uvm.ko", "nvidiafb.ko", "nvidia", "i2c-nvidia-gpu.ko"}) {
    MadeUpMachine made_up;
    made_up.write(std::string("/lib/modules/") + kKernel + "/extra/" + name, "x");
    EXPECT_EQ(made_up.read().driver.file.file, "") << name;
  }
}

TEST(Machine, ContainersAndSecureBoot) {
  const std::pair<const char*, const char*> rows[] = {{"0::/docker/0123", "docker"},
                                                      {"0::/system.slice/containerd.service", "containerd"},
                                                      {"0::/machine/libpod-01.scope", "podman"},
                                                      {"0::/lxc/box", "lxc"},
                                                      {"0::/kubepods/docker-1", "kubernetes"},
                                                      {"0::/init.scope", ""}};
  for (const auto& [groups, name] : rows) {
    MadeUpMachine made_up;
    made_up.write("/proc/1/cgroup", groups);
    EXPECT_EQ(made_up.read().container, name) << groups;
  }
  MadeUpMachine made_up;
  made_up.environment.container = "systemd-nspawn";
  const char* const secure_boot = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
  made_up.write(secure_boot, std::string("\x06\0\0\0\0", 5));
  EXPECT_EQ(made_up.read().container, "systemd-nspawn");
  EXPECT_EQ(made_up.read().secure_boot, false);
  made_up.write(secure_boot, std::string("\x06\0\0\0\1", 5));
  EXPECT_EQ(made_up.read().secure_boot, true);
  made_up.write(secure_boot, "\1");
  EXPECT_EQ(made_up.read().secure_boot, std::nullopt);
  EXPECT_THAT(made_up.read().complaints, ElementsAre(HasSubstr("expected 5 bytes, got 1")));
}

TEST(Machine, ThePluginAndItsVersion) {
  MadeUpMachine made_up;
  Machine machine = made_up.read();
  EXPECT_FALSE(machine.plugin.present || machine.plugin.named);
  EXPECT_EQ(machine.plugin.path, "/usr/lib/libtern_cuda.so");
  made_up.plugin("1.2.3");
  EXPECT_EQ(made_up.read().plugin.version, "1.2.3");
  made_up.environment.cuda_plugin = "/opt/other.so";
  made_up.write("/opt/other.so", "TERN_PLUGIN_VERSION=2.0");
  machine = made_up.read();
  EXPECT_TRUE(machine.plugin.named && machine.plugin.present);
  EXPECT_EQ(machine.plugin.version, "2.0");
}

TEST(Machine, ThisOneCanBeRead) {
  const Machine machine = read_machine();
  EXPECT_TRUE(machine.real() && machine.root_readable);
  EXPECT_FALSE(machine.kernel.empty());
  EXPECT_FALSE(own_library_folder().empty());
}

}  // namespace
}  // namespace tern
