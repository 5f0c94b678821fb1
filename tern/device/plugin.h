// The CUDA backend's plugin, libtern_cuda.so: where it is looked for, what it must say before it is used, and
// what came of it. The plugin itself is backends/cuda; what is missing on a machine is explained by doctor.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tern/device/backend.h"
#include "tern/device/caching_allocator.h"

namespace tern {

/// Raised whenever what library and plugin say to each other changes in a way that sizes do not show.
inline constexpr uint32_t kPluginInterface = 3;

/// FNV-1a, for fingerprints.
constexpr uint64_t add_to_fingerprint(uint64_t hash, uint64_t number) noexcept {
  for (int i = 0; i < 8; ++i) hash = (hash ^ (number >> (8 * i) & 0xff)) * 0x100000001b3;
  return hash;
}
constexpr uint64_t add_to_fingerprint(uint64_t hash, std::string_view text) noexcept {
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}
inline constexpr uint64_t kEmptyFingerprint = 0xcbf29ce484222325;

/// Sizes of what library and plugin hand to each other.
constexpr uint64_t layout_fingerprint() noexcept {
  uint64_t hash = kEmptyFingerprint;
  for (size_t size :
       {sizeof(Backend), sizeof(StorageImpl), sizeof(Launch), sizeof(LaunchContext), sizeof(Stream),
        sizeof(DeviceProperties), sizeof(MemoryStats), sizeof(MemorySegment), sizeof(MemoryBlock),
        sizeof(EventRecord), sizeof(CachingAllocator), sizeof(MemorySource)})
    hash = add_to_fingerprint(hash, size);
  return hash;
}

/// What a plugin says of itself. The first two members never move.
struct PluginStamp {
  uint32_t interface_number;
  uint32_t nbytes;      ///< of this struct
  const char* version;  ///< of Tern
  uint64_t layouts;     ///< layout_fingerprint()
  uint64_t kernels;     ///< kernel_list_fingerprint()
  /// detail::load_plugin_when_asked of the library that the plugin is linked to: it must be the one that
  /// opens it.
  void (*library)() noexcept;
};

/// What the plugin answers when it is started: a backend, or why there is none.
struct PluginAnswer {
  Backend* backend = nullptr;
  std::string reason;
};

/// The two functions that a plugin exports: `const PluginStamp* tern_plugin_stamp()` and
/// `void tern_plugin_start(PluginAnswer*)`, which throws nothing.
using PluginStampFn = const PluginStamp* (*)();
using PluginStartFn = void (*)(PluginAnswer*);

/// Opens, checks and starts a plugin; registers nothing. A plugin that fits stays open to the end of the
/// process. Whatever is wrong becomes the answer's reason.
PluginAnswer open_plugin(const std::string& path);

/// TERN_CUDA_PLUGIN, else libtern_cuda.so beside this library.
std::string plugin_path();

struct PluginStatus {
  bool tried = false;  ///< there was a plugin to be opened
  std::string reason;  ///< why there are no real GPUs; empty when there are
};

/// Looks for real GPUs unless that was done; where they are there, their backend is registered, unless
/// simulated ones have taken the place. Blocks the first time, for as long as the driver takes.
const PluginStatus& plugin_status();

namespace detail {
/// Makes the first question for a GPU load the plugin.
void load_plugin_when_asked() noexcept;
/// Names and argument sizes of all kernels, in their order. Defined in kernels/fingerprint.cpp.
uint64_t kernel_list_fingerprint() noexcept;
}  // namespace detail

}  // namespace tern
