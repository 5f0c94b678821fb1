// Reading of CUDA_VISIBLE_DEVICES, one entry at a time.
#include "tern/device/visible_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

namespace tern {
namespace {

constexpr size_t kMaxEntries = 256;

std::string_view trim(std::string_view text) {
  auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (parts.size() < kMaxEntries) {
    const size_t comma = text.find(',');
    parts.push_back(trim(text.substr(0, comma)));
    if (comma == std::string_view::npos || trim(text.substr(comma + 1)).empty()) break;
    text.remove_prefix(comma + 1);
  }
  return parts;
}

std::string range_text(size_t count) {
  return count == 1 ? "the only GPU here is 0" : fmt::format("the GPUs here are 0 to {}", count - 1);
}

VisibleEntry read_number(std::string_view text, const std::vector<GpuIdentity>& gpus) {
  VisibleEntry entry{std::string(text), -1, {}, {}};
  if (text.empty()) {
    entry.fault = "it is empty";
    return entry;
  }
  std::string_view digits = text;
  if (digits.front() == '+') digits.remove_prefix(1);
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc::result_out_of_range)
    entry.fault = gpus.empty() ? "the number is too large" : "out of range: " + range_text(gpus.size());
  else if (error != std::errc())
    entry.fault = "it is not a number";
  else if (number < 0)
    entry.fault = "it is negative";
  else if (!gpus.empty() && static_cast<size_t>(number) >= gpus.size())
    entry.fault = "out of range: " + range_text(gpus.size());
  else
    entry.gpu = number;
  if (entry.gpu >= 0 && end != digits.data() + digits.size())
    entry.remark = fmt::format("CUDA reads it as {}", number);
  return entry;
}

/// The full UUID that `text` is the beginning of goes to `full`.
VisibleEntry read_gpu_uuid(std::string_view text, const std::vector<GpuIdentity>& gpus, std::string& full) {
  VisibleEntry entry{std::string(text), -1, {}, {}};
  full = text;
  if (gpus.empty() || std::any_of(gpus.begin(), gpus.end(), [](auto& gpu) { return gpu.uuid.empty(); }))
    return entry;
  int matches = 0;
  for (size_t i = 0; i < gpus.size(); ++i)
    if (gpus[i].uuid.starts_with(text)) {
      ++matches;
      entry.gpu = static_cast<int>(i);
      full = gpus[i].uuid;
    }
  if (matches == 1) return entry;
  entry.gpu = -1;
  entry.fault =
      matches == 0 ? "no GPU here has this UUID" : fmt::format("{} GPUs have UUIDs that begin so", matches);
  return entry;
}

VisibleEntry read_mig_uuid(std::string_view text, const std::vector<GpuIdentity>& gpus, std::string& full) {
  VisibleEntry entry{std::string(text), -1, {}, {}};
  full = text;
  if (gpus.empty() || std::any_of(gpus.begin(), gpus.end(), [](auto& gpu) { return !gpu.mig_known; }))
    return entry;
  // Drivers before 470 wrote MIG-GPU-<uuid>/<GPU instance>/<compute instance>.
  const bool old_form = text.starts_with("MIG-GPU-");
  const std::string_view owner = old_form ? text.substr(4, text.find('/') - 4) : std::string_view();
  int matches = 0;
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (old_form && !gpus[i].mig_uuids.empty() && gpus[i].uuid.starts_with(owner)) {
      ++matches;
      entry.gpu = static_cast<int>(i);
    }
    for (const std::string& mig : gpus[i].mig_uuids)
      if (!old_form && mig.starts_with(text)) {
        ++matches;
        entry.gpu = static_cast<int>(i);
        full = mig;
      }
  }
  if (matches == 1) return entry;
  entry.gpu = -1;
  entry.fault = matches == 0 ? "no MIG device here has this UUID"
                             : fmt::format("{} MIG devices have UUIDs that begin so", matches);
  return entry;
}

}  // namespace

VisibleDevices read_visible_devices(std::string_view text, const std::vector<GpuIdentity>& gpus) {
  VisibleDevices result;
  text = trim(text);
  if (text.empty()) return result;
  const bool gpu_uuids = text.starts_with("GPU-"), mig_uuids = text.starts_with("MIG-");
  std::set<std::string> seen;
  bool ended = false;
  for (std::string_view part : split(text)) {
    std::string key;
    VisibleEntry entry;
    if (part == "NoDevFiles") {
      entry = {std::string(part), -1, "this word hides every GPU", {}};
    } else if (gpu_uuids || mig_uuids) {
      if (!part.starts_with(gpu_uuids ? "GPU-" : "MIG-"))
        entry = {std::string(part), -1, "the first entry is a UUID, and this one is none of its kind", {}};
      else
        entry = gpu_uuids ? read_gpu_uuid(part, gpus, key) : read_mig_uuid(part, gpus, key);
    } else if (part.starts_with("GPU-") || part.starts_with("MIG-")) {
      entry = {std::string(part), -1, "a UUID among numbers", {}};
    } else {
      entry = read_number(part, gpus);
      key = std::to_string(entry.gpu);
    }
    if (!ended && entry.fault.empty() && !seen.insert(key).second) {
      entry.fault = "it is there twice";
      result.repeated = true;
    }
    if (!entry.fault.empty()) ended = true;
    if (!ended) ++result.count;
    result.entries.push_back(std::move(entry));
  }
  if (result.repeated) result.count = 0;
  return result;
}

}  // namespace tern
