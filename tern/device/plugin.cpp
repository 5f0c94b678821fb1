// Opening of the plugin, and the one answer that the process keeps.
#include "tern/device/plugin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "tern/base/check.h"
#include "tern/base/env.h"
#include "tern/device/machine.h"
#include "tern/device/machine_files.h"
#include "tern/device/registry.h"

namespace tern {
namespace {

constexpr const char* kSameSource = "build or install library and plugin from one source";

/// What the linker said last.
std::string linker_error() {
  const char* text = ::dlerror();
  return text ? printable(text, 400) : "no reason was given";
}

/// The version that stands in the bytes of a file; empty where none does.
std::string version_in_file(const std::string& path) {
  std::vector<std::string> complaints;
  const std::string root = "/";
  const detail::MachineFiles files(root, complaints);
  return files.find_after(path, "TERN_PLUGIN_VERSION=").value_or("");
}

/// What is wrong with a plugin that could be opened; empty where it fits.
std::string misfit(const PluginStamp& stamp) {
  if (stamp.interface_number != kPluginInterface || stamp.nbytes != sizeof(PluginStamp))
    return fmt::format("it speaks interface {}, the library {}: {}", stamp.interface_number, kPluginInterface,
                       kSameSource);
  const std::string_view version = stamp.version ? stamp.version : "";
  if (version != TERN_VERSION)
    return fmt::format("it is of version {}, the library of {}: {}", printable(version, 40), TERN_VERSION,
                       kSameSource);
  if (stamp.library != &detail::load_plugin_when_asked)
    return fmt::format("it is linked to another copy of the library than the program: {}", kSameSource);
  if (stamp.layouts != layout_fingerprint() || stamp.kernels != detail::kernel_list_fingerprint())
    return fmt::format("it was built from other sources of version {}: {}", TERN_VERSION, kSameSource);
  return "";
}

PluginStatus load() {
  const std::string path = plugin_path();
  const bool named = env_text("TERN_CUDA_PLUGIN").has_value();
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr && *visible == '\0')
    return {false, "CUDA_VISIBLE_DEVICES is empty, which hides all GPUs"};
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    if (named) return {true, fmt::format("TERN_CUDA_PLUGIN: there is no file '{}'", printable(path))};
    return {false, fmt::format("this Tern has no CUDA backend: there is no file '{}'", printable(path))};
  }
  PluginAnswer answer = open_plugin(path);
  if (answer.backend != nullptr && registered_memory(DeviceType::CUDA) == nullptr)
    register_backend(answer.backend);
  return {true, std::move(answer.reason)};
}

}  // namespace

PluginAnswer open_plugin(const std::string& path) {
  const auto refuse = [&](const std::string& reason) {
    return PluginAnswer{nullptr, fmt::format("CUDA plugin '{}': {}", printable(path), reason)};
  };
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const std::string text = linker_error(), version = version_in_file(path);
    if (!version.empty() && version != TERN_VERSION)
      return refuse(fmt::format("it is of version {}, the library of {}: {}", printable(version, 40),
                                TERN_VERSION, kSameSource));
    return refuse("it cannot be opened: " + text);
  }
  const auto stamp = reinterpret_cast<PluginStampFn>(::dlsym(handle, "tern_plugin_stamp"));
  const auto start = reinterpret_cast<PluginStartFn>(::dlsym(handle, "tern_plugin_start"));
  std::string fault = stamp == nullptr || start == nullptr ? "it is no plugin of Tern" : misfit(*stamp());
  if (!fault.empty()) {
    ::dlclose(handle);
    return refuse(fault);
  }
  PluginAnswer answer;
  start(&answer);
  if (answer.backend == nullptr && answer.reason.empty())
    answer.reason = "the plugin gave no backend and no reason";
  return answer;
}

std::string plugin_path() {
  if (auto named = env_text("TERN_CUDA_PLUGIN")) return *named;
  return own_library_folder() + "/libtern_cuda.so";
}

const PluginStatus& plugin_status() {
  static std::once_flag once;
  // Never destroyed: tensors of static duration may ask at the end of the process.
  static auto* status = new PluginStatus;
  std::call_once(once, [] {
    try {
      *status = load();
    } catch (const std::exception& error) {
      status->reason = fmt::format("the CUDA plugin could not be looked for: {}", printable(error.what()));
    }
  });
  return *status;
}

namespace detail {

void load_plugin_when_asked() noexcept {
  static constexpr MemoryLoader kLoader{[](DeviceType type) noexcept {
                                          if (type != DeviceType::CUDA) return;
                                          try {
                                            plugin_status();
                                          } catch (...) {  // std::bad_alloc: no GPUs then
                                          }
                                        },
                                        [](DeviceType type) {
                                          if (type != DeviceType::CUDA) return std::string();
                                          const PluginStatus& status = plugin_status();
                                          return status.tried ? status.reason : std::string();
                                        }};
  set_memory_loader(&kLoader);
}

}  // namespace detail
}  // namespace tern
