// save and load, and where storages go. Each format has its own files; checkpoint.cpp chooses among them.
#include "tern/io/serialize.h"

#include <charconv>

#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/io/file.h"
#include "tern/io/torch_file.h"

namespace tern {

namespace {

Device existing(Device device) {
  if (device.is_cpu()) return device;
  Memory* memory = find_memory(device.type);
  int count = memory ? memory->device_count() : 0;
  TERN_CHECK(count > 0, DeviceError,
             "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If "
             "you are running on a "
             "CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
             "storages to the CPU. (In "
             "Tern: load(path, {{.map_location = \"cpu\"}}).)");
  if (device.index < 0) device.index = static_cast<int16_t>(memory->current_device());
  TERN_CHECK(device.index < count, DeviceError,
             "Attempting to deserialize object on CUDA device {} but torch.cuda.device_count() is {}. Please "
             "use torch.load with "
             "map_location to map your storages to an existing device. (In Tern: load(path, {{.map_location "
             "= \"cuda:0\"}}).)",
             device.index, count);
  return device;
}

/// "cpu", "cuda", "cuda:1".
std::optional<Device> device_of(std::string_view location) {
  if (location == "cpu") return kCPU;
  if (!location.starts_with("cuda")) return std::nullopt;
  location.remove_prefix(4);
  if (location.empty()) return Device(DeviceType::CUDA, -1);
  int index = -1;
  const char* begin = location.data() + 1;
  const char* end = location.data() + location.size();
  if (location[0] != ':' || begin == end || *begin < '0' || *begin > '9') return std::nullopt;
  auto [stop, error] = std::from_chars(begin, end, index);
  bool right = error == std::errc() && stop == end && index <= INT16_MAX;
  return right ? std::optional(Device(DeviceType::CUDA, index)) : std::nullopt;
}

}  // namespace

Device MapLocation::operator()(const std::string& location) const {
  if (auto* device = std::get_if<Device>(&target_)) return existing(*device);
  std::string place = location;
  if (auto* map = std::get_if<std::map<std::string, std::string>>(&target_)) {
    auto found = map->find(location);
    if (found != map->end()) place = found->second;
  } else if (auto* function =
                 std::get_if<std::function<std::optional<Device>(const std::string&)>>(&target_)) {
    if (auto chosen = (*function)(location)) return existing(*chosen);
  }
  auto device = device_of(place);
  TERN_CHECK(device, CheckpointError,
             "don't know how to restore data location of torch.storage.UntypedStorage (tagged with {}): give "
             "a map_location, such as "
             "\"cpu\"",
             place.substr(0, 100));
  return existing(*device);
}

Value load(const std::filesystem::path& path, const LoadOptions& options) {
  return with_context(fmt::format("loading '{}'", path.string()),
                      [&] { return io::read_checkpoint(path, options).root; });
}

Value load_from_buffer(std::span<const std::byte> bytes, const LoadOptions& options) {
  return with_context("loading from memory",
                      [&] { return io::read_checkpoint(io::view_memory(bytes), options).root; });
}

}  // namespace tern
