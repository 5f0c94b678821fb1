// torch.cuda's functions on top of the backend.
#include "tern/device/cuda.h"

#include "tern/base/check.h"
#include "tern/core/generator.h"
#include "tern/device/plugin.h"
#include "tern/device/registry.h"

namespace tern::cuda {
namespace {

/// The GPU that is meant, its index resolved.
Device gpu(const char* function, const std::optional<Device>& device) {
  return with_context(std::string("cuda::") + function, [&] {
    const Device where = resolve_device(device.value_or(Device(DeviceType::CUDA, -1)));
    TERN_CHECK(where.is_cuda(), DeviceError, "expected a GPU, got {}", where.str());
    return where;
  });
}

Backend& backend() { return backend_of(DeviceType::CUDA); }

/// All zero, as in PyTorch, where there is no GPU and none is named.
MemoryStats counters(const char* function, const std::optional<Device>& device) {
  if (!device && !is_available()) return {};
  const Device where = gpu(function, device);
  return backend().memory_stats(where.index);
}

std::string size_text(uint64_t nbytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double number = static_cast<double>(nbytes);
  size_t unit = 0;
  while (number >= 1024 && unit + 1 < std::size(units)) {
    number /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", nbytes) : fmt::format("{:.1f} {}", number, units[unit]);
}

}  // namespace

bool is_available() { return device_count() > 0; }

std::string unavailable_reason() {
  if (is_available()) return "";
  const Memory* simulation = registered_memory(DeviceType::CUDA);
  return simulation ? "the simulation has no GPUs" : plugin_status().reason;
}

int device_count() {
  Memory* memory = find_memory(DeviceType::CUDA);
  return memory ? memory->device_count() : 0;
}

int current_device() { return gpu("current_device", {}).index; }

void set_device(Device device) { detail::current_gpu = gpu("set_device", device).index; }

std::string get_device_name(std::optional<Device> device) {
  return backend().properties(gpu("get_device_name", device).index).name;
}

DeviceProperties get_device_properties(std::optional<Device> device) {
  const Device where = gpu("get_device_properties", device);
  return backend().properties(where.index);
}

tern::Stream current_stream(std::optional<Device> device) {
  return tern::current_stream(gpu("current_stream", device));
}

tern::Stream default_stream(std::optional<Device> device) {
  return tern::Stream{gpu("default_stream", device), 0};
}

void set_stream(tern::Stream stream) {
  if (stream.device.is_cpu()) return;
  const Device where = gpu("set_stream", stream.device);
  detail::current_streams[where.index] = stream.id;
  detail::current_gpu = where.index;
}

void synchronize(std::optional<Device> device) { tern::synchronize(gpu("synchronize", device)); }

MemoryStats memory_stats(std::optional<Device> device) { return counters("memory_stats", device); }

uint64_t memory_allocated(std::optional<Device> device) {
  return counters("memory_allocated", device).allocated;
}
uint64_t memory_reserved(std::optional<Device> device) {
  return counters("memory_reserved", device).reserved;
}
uint64_t max_memory_allocated(std::optional<Device> device) {
  return counters("max_memory_allocated", device).max_allocated;
}
uint64_t max_memory_reserved(std::optional<Device> device) {
  return counters("max_memory_reserved", device).max_reserved;
}

void reset_peak_memory_stats(std::optional<Device> device) {
  const Device where = gpu("reset_peak_memory_stats", device);
  backend().reset_peak_memory_stats(where.index);
}

std::string memory_summary(std::optional<Device> device) {
  const Device where = gpu("memory_summary", device);
  const MemoryStats stats = backend().memory_stats(where.index);
  size_t largest_free = 0, awaiting = 0, segments = 0;
  for (const MemorySegment& segment : backend().memory_snapshot(where.index)) {
    ++segments;
    for (const MemoryBlock& block : segment.blocks) {
      if (block.state == MemoryBlock::State::Free) largest_free = std::max(largest_free, block.nbytes);
      if (block.state == MemoryBlock::State::AwaitingEvents) awaiting += block.nbytes;
    }
  }
  const auto row = [](const char* what, uint64_t now, std::optional<uint64_t> peak = {}) {
    return fmt::format("| {:<22} | {:>12} | {:>12} |\n", what, size_text(now), peak ? size_text(*peak) : "");
  };
  const auto line = [](const char* what, uint64_t number) {
    return fmt::format("| {:<22} | {:>12} | {:>12} |\n", what, number, "");
  };
  const std::string rule = fmt::format("|{:-<24}|{:-<14}|{:-<14}|\n", "", "", "");
  return fmt::format("| memory of {:<12} | {:>12} | {:>12} |\n", where.str(), "now", "peak") + rule +
         row("in tensors", stats.allocated, stats.max_allocated) +
         row("reserved", stats.reserved, stats.max_reserved) +
         row("cached", stats.reserved - stats.allocated) + row("largest free block", largest_free) +
         row("waiting for streams", awaiting) + rule + line("segments", segments) +
         line("allocations", stats.num_allocations) +
         line("device allocations", stats.num_system_allocations) +
         line("retries after emptying", stats.num_retries) + line("out of memory", stats.num_ooms);
}

std::vector<MemorySegment> memory_snapshot(std::optional<Device> device) {
  const Device where = gpu("memory_snapshot", device);
  return backend().memory_snapshot(where.index);
}

void empty_cache() {
  for (int i = 0; i < device_count(); ++i) backend().empty_cache(i);
}

std::pair<uint64_t, uint64_t> mem_get_info(std::optional<Device> device) {
  const Device where = gpu("mem_get_info", device);
  return {backend().free_memory(where.index), backend().properties(where.index).total_memory};
}

void set_per_process_memory_fraction(double fraction, std::optional<Device> device) {
  const Device where = gpu("set_per_process_memory_fraction", device);
  TERN_CHECK(fraction >= 0 && fraction <= 1, ValueError,
             "set_per_process_memory_fraction: expected a fraction from 0 to 1, got {}", fraction);
  const double total = static_cast<double>(backend().properties(where.index).total_memory);
  backend().set_memory_limit(where.index, static_cast<size_t>(std::max(1.0, fraction * total)));
}

void manual_seed(uint64_t seed) { tern::manual_seed(seed); }
void manual_seed_all(uint64_t seed) { tern::manual_seed(seed); }

}  // namespace tern::cuda
