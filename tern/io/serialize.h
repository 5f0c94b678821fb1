// load: values from files in PyTorch's formats, and safetensors. Writing them is in save.h, which this header
// brings along; the tree of values is in value.h.
#pragma once

#include <concepts>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tern/io/save.h"
#include "tern/io/value.h"

namespace tern {

/// Where storages go that a file says were at `location` ("cpu", "cuda:1"). Made of a device in any form, a
/// table or a function: `{.map_location = "cuda:1"}`, `= kCPU`, `= 1`, `= {{"cuda:1", "cuda:0"}}`,
/// `= [](const std::string& location) { return kCPU; }`.
// Devices and maps are taken by templates: braces are a table then, and nothing else.
class MapLocation {
 public:
  using Function = std::function<std::optional<Device>(const std::string& location)>;

  /// Each goes where it was.
  MapLocation() = default;
  /// All go to one device: `"cpu"`, `Device("cuda:0")`.
  template <std::same_as<Device> T>
  MapLocation(T device) : target_(device) {}
  /// All go to the GPU of this number, as in PyTorch. Throws DeviceError when negative.
  MapLocation(int gpu) : target_(Device(gpu)) {}
  /// "cpu", "cuda:1"; or "auto": each goes where it was if that device is here, those of absent GPUs to the
  /// GPUs that are here (cuda:3 to cuda:1 where there are two), or to the CPU where there is none.
  /// Throws DeviceError for other texts, ValueError for a null pointer.
  MapLocation(const char* device);
  MapLocation(const std::string& device);
  /// From location to location; those that are not named stay.
  template <std::same_as<std::map<std::string, std::string>> T>
  MapLocation(T locations) : target_(std::move(locations)) {}
  MapLocation(std::initializer_list<std::pair<std::string, Device>> locations);
  /// Called with the location; no value means: where it was. Throws ValueError for an empty function.
  MapLocation(Function function);
  template <class F>
  requires(!std::is_same_v<F, MapLocation> &&
           std::is_invocable_r_v<std::optional<Device>, F&, const std::string&>) MapLocation(F function)
      : MapLocation(Function(std::move(function))) {}

  /// The device for a location. Throws DeviceError, in PyTorch's words, when that device is not there, and
  /// CheckpointError for a location of an unknown kind.
  Device operator()(const std::string& location) const;
  bool is_auto() const noexcept { return std::holds_alternative<Auto>(target_); }

 private:
  struct Auto {};
  std::variant<std::monostate, Auto, Device, std::map<std::string, std::string>, Function> target_;
};

/// What a file may ask for before it is refused, whoever made it. A file's own numbers are checked against
/// its bytes besides: nothing is allocated that the file cannot fill.
struct LoadLimits {
  /// Containers inside containers.
  size_t nesting = 1000;
  /// Entries of an archive, shards of an index, chunks of a tensor.
  uint64_t entries = 10'000'000;
  /// Bytes of one pickle.
  uint64_t pickle_bytes = uint64_t{256} << 20;
  /// Memory for values other than the numbers of tensors, beside 48 bytes for each byte of the pickle.
  uint64_t value_bytes = uint64_t{128} << 20;
  /// Bytes of all tensors together.
  uint64_t tensor_bytes = UINT64_MAX;
  /// What compressed entries may unpack to in all, in sizes of the file, beside 64 MiB.
  uint64_t expansion = 4;
};

/// What loading did on its own account.
struct LoadReport {
  struct Moved {
    std::string from;  ///< as the file has it: "cuda:3"
    Device to;
    size_t storages = 0;
    uint64_t nbytes = 0;
  };
  /// With map_location "auto": what was on devices that are not here.
  std::vector<Moved> moved;
  /// With mmap: storages that had to be copied, since they lie misaligned or compressed in the file.
  size_t copied = 0;

  /// With load_module: what is not empty in the file and that its modules do not have here, such as
  /// "encoder.0._forward_hooks".
  std::vector<std::string> hooks;

  /// A sentence for each; empty when there is nothing to say.
  std::string str() const;
  /// Counts a storage that was at `location` and is on `device` now.
  void note(const MapLocation& map, const std::string& location, Device device, size_t nbytes);
};

struct LoadOptions {
  MapLocation map_location = {};
  /// Leave the numbers in the file until they are looked at: tensors on the CPU are parts of a private
  /// mapping of the file, which is not copied, and changes to them stay in memory. The file must not be cut
  /// short meanwhile (io/mapped_file.h). For PyTorch's zip format and safetensors. CRCs are not checked,
  /// since nothing is read, unless verify_mapped says so.
  bool mmap = false;
  /// With mmap, check the CRCs all the same: the file is read once, which takes time but no memory.
  bool verify_mapped = false;
  /// Accept plain data only: a file that names any other class or function is refused. When false, unknown
  /// classes become inert objects (ValueObject). Nothing from the file is run either way.
  bool weights_only = true;
  /// Check the CRC of what is read, where the file has one.
  bool verify = true;
  LoadLimits limits = {};
  /// Gets what loading has to say.
  LoadReport* report = nullptr;
  /// Leave the numbers in the file: tensors have shape, dtype and storage, but a storage has no memory
  /// (`data()` is null). For looking at files; a file of any size is opened in milliseconds.
  bool skip_data = false;
};

/// Reads a file that `save` or `torch.save` wrote, a safetensors file or .npz (a dict), a .npy (a tensor),
/// the shards of a HuggingFace index (`*.index.json`, or the folder that has one), a folder of PyTorch's
/// distributed checkpoints. Throws IoError when the file cannot be read, CheckpointError when it is broken or
/// of another kind, DeviceError when a tensor's device is not there.
Value load(const std::filesystem::path& path, const LoadOptions& options = {});

/// The same from memory, which is not needed afterwards.
Value load_from_buffer(std::span<const std::byte> bytes, const LoadOptions& options = {});

/// Names and tensors with the file's `__metadata__`.
struct SafetensorsFile {
  StateDict tensors;
  std::map<std::string, std::string> metadata;
};

/// Reads a safetensors file; tensors come in the order of their data. The format says nothing of devices:
/// all go where `map_location` puts "cpu". It has no CRCs either, and holds plain data only, so that `verify`
/// and `weights_only` change nothing. Throws CheckpointError by the rules of the format's reference
/// implementation, for duplicate names, and beyond the limits; DeviceError as `load`.
SafetensorsFile load_safetensors(const std::filesystem::path& path, const LoadOptions& options = {});
/// The same from memory. Throws TypeError with `mmap`.
SafetensorsFile load_safetensors_from_buffer(std::span<const std::byte> bytes,
                                             const LoadOptions& options = {});

}  // namespace tern
