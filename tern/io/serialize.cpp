// save and load, and where storages go. Each format has its own files; checkpoint.cpp chooses among them.
#include "tern/io/serialize.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tern/base/check.h"
#include "tern/base/env.h"
#include "tern/core/memory.h"
#include "tern/io/file.h"
#include "tern/io/torch_file.h"
#include "tern/io/word_list.h"

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

/// The number behind the name of an accelerator: "mps:1" gives 1, "cuda" 0.
int number_of(std::string_view location) {
  size_t colon = location.find(':');
  int number = 0;
  if (colon != std::string_view::npos)
    std::from_chars(location.data() + colon + 1, location.data() + location.size(), number);
  return std::max(number, 0);
}

/// Where a location is, or what stands for it here.
Device nearest(const std::string& location) {
  if (location == "cpu") return kCPU;
  Memory* memory = find_memory(DeviceType::CUDA);
  const int count = memory ? memory->device_count() : 0;
  if (count == 0) return kCPU;
  return existing(location == "cuda" ? Device(DeviceType::CUDA, -1)
                                     : Device(DeviceType::CUDA, number_of(location) % count));
}

std::string size_text(uint64_t nbytes) {
  static constexpr std::pair<uint64_t, const char*> units[] = {{30, "GiB"}, {20, "MiB"}, {10, "KiB"}};
  for (auto [bits, unit] : units)
    if (nbytes >> bits)
      return fmt::format("{:.1f} {}", std::ldexp(static_cast<double>(nbytes), -static_cast<int>(bits)), unit);
  return fmt::format("{} bytes", nbytes);
}

}  // namespace

std::string LoadReport::str() const {
  std::string text;
  for (const Moved& group : moved)
    text +=
        fmt::format("{}{} is not here: what was there ({} storages, {}) is on {}", text.empty() ? "" : "\n",
                    group.from, group.storages, size_text(group.nbytes), group.to.str());
  if (copied != 0)
    text += fmt::format(
        "{}{} storages were copied into memory: they lie misaligned or compressed in the file, "
        "which save() puts right",
        text.empty() ? "" : "\n", copied);
  if (!hooks.empty())
    text += fmt::format("{}hooks were left out: {}", text.empty() ? "" : "\n", io::some_words(hooks));
  return text;
}

void LoadReport::note(const MapLocation& map, const std::string& location, Device device, size_t nbytes) {
  if (!map.is_auto()) return;
  auto named = device_of(location);
  if (named && named->type == device.type && (named->index < 0 || named->index == device.index)) return;
  auto group = std::find_if(moved.begin(), moved.end(), [&](const Moved& m) { return m.from == location; });
  if (group == moved.end()) group = moved.insert(moved.end(), {location, device, 0, 0});
  ++group->storages;
  group->nbytes += nbytes;
}

MapLocation::MapLocation(Function function) : target_(std::move(function)) {
  TERN_CHECK(std::get<Function>(target_), ValueError, "map_location is an empty function");
}

MapLocation::MapLocation(std::initializer_list<std::pair<std::string, Device>> locations) {
  auto& table = target_.emplace<std::map<std::string, std::string>>();
  for (const auto& [location, device] : locations) table.emplace(location, device.str());
}

MapLocation::MapLocation(const char* device)
    : MapLocation(std::string(given_text(
          device, "map_location is a null pointer to text (leave it out for \"each goes where it was\")"))) {}

MapLocation::MapLocation(const std::string& device) {
  if (device == "auto")
    target_ = Auto{};
  else
    target_ = Device(device);
}

Device MapLocation::operator()(const std::string& location) const {
  if (auto* device = std::get_if<Device>(&target_)) return existing(*device);
  if (is_auto()) return nearest(location);
  std::string place = location;
  if (auto* map = std::get_if<std::map<std::string, std::string>>(&target_)) {
    auto found = map->find(location);
    if (found != map->end()) place = found->second;
  } else if (auto* function = std::get_if<Function>(&target_)) {
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
  io::check_path(path);
  return io::with_path("loading ", path, [&] { return io::read_checkpoint(path, options).root; });
}

Value load_from_buffer(std::span<const std::byte> bytes, const LoadOptions& options) {
  return with_context("loading from memory",
                      [&] { return io::read_checkpoint(io::view_memory(bytes), options).root; });
}

}  // namespace tern
