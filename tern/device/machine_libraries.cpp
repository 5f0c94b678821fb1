// The libraries: libcuda and NVML of the driver, the CUDA runtime, and Tern's CUDA plugin.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tern/device/machine_files.h"

namespace tern::detail {
namespace {

/// Folders of the dynamic linker and of the installers that put libcuda elsewhere, in the order of a search.
std::vector<std::string> library_folders(const MachineFiles& files, const Machine& machine) {
  std::vector<std::string> folders;
  auto add = [&folders](std::string_view folder) {
    if (folder.starts_with('/') && std::find(folders.begin(), folders.end(), folder) == folders.end())
      folders.emplace_back(folder);
  };
  if (const auto& path = machine.options.environment.ld_library_path)
    for (std::string_view folder : split_text(*path, ':')) add(folder);
  for (const std::string& name : files.list("/etc/ld.so.conf.d")) {
    if (!name.ends_with(".conf")) continue;
    const auto text = files.read(join("/etc/ld.so.conf.d", name));
    if (!text) continue;
    for (std::string_view line : split_text(*text, '\n')) add(trimmed(line));
  }
#if defined(__aarch64__)
  const char* const multiarch[] = {"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu"};
#else
  const char* const multiarch[] = {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"};
#endif
  for (const char* folder : multiarch) {
    add(folder);
    add(join(folder, "nvidia/current"));
  }
  for (const char* folder : {"/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib", "/usr/lib/wsl/lib",
                             "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/run/opengl-driver/lib"})
    add(folder);
  return folders;
}

/// "550.54.14" of ".../libcuda.so.550.54.14"; nothing for "libcuda.so.1".
std::optional<Version> version_in_name(std::string_view path) {
  const size_t at = path.rfind(".so.");
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view text = path.substr(at + 4);
  return text.find('.') == std::string_view::npos ? std::nullopt : Version::parse(text);
}

std::vector<LibraryFile> find_library(const MachineFiles& files, const std::vector<std::string>& folders,
                                      const char* name) {
  std::vector<LibraryFile> found;
  std::vector<std::string> seen;
  for (const std::string& folder : folders) {
    const std::string path = join(folder, name);
    if (!files.is_named(path)) continue;
    LibraryFile library;
    library.path = printable(path);
    if (const auto file = files.resolve(path)) {
      // /lib may be a link to /usr/lib.
      if (std::find(seen.begin(), seen.end(), *file) != seen.end()) continue;
      seen.push_back(*file);
      library.version = version_in_name(*file);
      const std::string head = files.read(*file, 5).value_or("");
      library.wrong_word_size = head.starts_with(
                                    "\x7f"
                                    "ELF") &&
                                head.size() == 5 && head[4] == (sizeof(void*) == 8 ? 1 : 2);
    } else {
      library.broken = true;
    }
    found.push_back(std::move(library));
  }
  return found;
}

/// "12.4.1" of {"cuda": {"name": "CUDA SDK", "version": "12.4.1"}, ...}. The file lists parts of the toolkit
/// as well, so the object under "cuda" is looked for.
std::optional<Version> version_in_json(std::string_view text) {
  size_t at = text.find("\"cuda\"");
  if (at == std::string_view::npos) return std::nullopt;
  const size_t end = text.find('}', at);
  at = text.find("\"version\"", at);
  if (at == std::string_view::npos || at > end) return std::nullopt;
  at = text.find(':', at);
  if (at == std::string_view::npos) return std::nullopt;
  const size_t open = text.find('"', at),
               close = open == std::string_view::npos ? open : text.find('"', open + 1);
  if (close == std::string_view::npos || close > end) return std::nullopt;
  return Version::parse(text.substr(open + 1, close - open - 1));
}

std::optional<CudaRuntime> read_toolkit(const MachineFiles& files, const std::string& folder) {
  const std::string json = join(folder, "version.json");
  if (const auto text = files.read(json)) {
    if (const auto version = version_in_json(*text)) return CudaRuntime{*version, json};
    files.complain(json + ": no version of \"cuda\" in it");
  }
  for (const char* place : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"}) {
    std::optional<CudaRuntime> newest;
    for (const std::string& name : files.list(join(folder, place))) {
      if (!name.starts_with("libcudart.so.")) continue;
      const auto version = Version::parse(std::string_view(name).substr(13));
      if (version && (!newest || newest->version < *version))
        newest = CudaRuntime{*version, join(join(folder, place), name)};
    }
    if (newest) return newest;
  }
  return std::nullopt;
}

std::optional<CudaRuntime> find_runtime(const MachineFiles& files, const std::vector<std::string>& folders) {
  if (auto runtime = read_toolkit(files, "/usr/local/cuda")) return runtime;
  std::optional<CudaRuntime> newest;
  for (const std::string& name : files.list("/usr/local")) {
    if (!name.starts_with("cuda-")) continue;
    auto runtime = read_toolkit(files, join("/usr/local", name));
    if (runtime && (!newest || newest->version < runtime->version)) newest = runtime;
  }
  if (newest) return newest;
  for (const char* name : {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"})
    for (const LibraryFile& library : find_library(files, folders, name)) {
      if (library.broken) continue;
      const auto version =
          library.version ? library.version : Version::parse(std::string_view(name).substr(13));
      return CudaRuntime{*version, library.path};
    }
  return std::nullopt;
}

}  // namespace

void read_libraries(const MachineFiles& files, Machine& machine) {
  const std::vector<std::string> folders = library_folders(files, machine);
  // The toolkit has a libcuda of its own, with empty functions, that a program must not find when it runs.
  std::vector<std::string> usable;
  for (const std::string& folder : folders) {
    const bool stub = folder.find("/stubs") != std::string::npos;
    if (!stub)
      usable.push_back(folder);
    else if (files.is_named(join(folder, "libcuda.so.1")))
      machine.stub_folders.push_back(printable(folder));
  }
  machine.libcuda = find_library(files, usable, "libcuda.so.1");
  machine.libnvidia_ml = find_library(files, usable, "libnvidia-ml.so.1");
  machine.runtime = find_runtime(files, usable);
}

void read_plugin(const MachineFiles& files, Machine& machine) {
  PluginFile& plugin = machine.plugin;
  const auto& named = machine.options.environment.cuda_plugin;
  plugin.named = named.has_value();
  std::string path = named ? *named : join(machine.options.library_folder, "libtern_cuda.so");
  if (!path.starts_with('/')) {
    std::error_code error;
    const auto absolute = std::filesystem::absolute(path, error);
    path = machine.real() && !error ? absolute.string() : "/" + path;
  }
  plugin.path = printable(path);
  plugin.present = files.exists(path);
  if (plugin.present) plugin.version = files.find_after(path, "TERN_PLUGIN_VERSION=").value_or("");
}

}  // namespace tern::detail
