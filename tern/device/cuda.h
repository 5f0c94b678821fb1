// The functions that PyTorch has in torch.cuda: which GPUs there are, their properties, memory and streams.
// Simulated GPUs answer like real ones. Devices of every kind are listed by device/registry.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tern/device/backend.h"
#include "tern/device/event.h"
#include "tern/device/stream.h"

/// Wherever `device` may be left out, the current GPU of the calling thread is meant. All but is_available(),
/// device_count() and empty_cache() throw DeviceError for a GPU that is not there, and for anything but a
/// GPU.
namespace tern::cuda {

using tern::DeviceGuard;
using tern::Event;
using tern::StreamGuard;

/// A new stream of the device's pool (`torch.cuda.Stream()`).
struct Stream : tern::Stream {
  Stream() : Stream(Device(DeviceType::CUDA, -1)) {}
  explicit Stream(Device where) : tern::Stream(new_stream(where)) {}
};

/// True when the program sees a GPU, real or simulated. The first call looks for real ones, which takes a
/// moment where there are some.
bool is_available();
/// Why is_available() is false, in one sentence: no driver, no GPU, a plugin that is missing or of another
/// version. Empty when it is true.
std::string unavailable_reason();
int device_count();
/// The number of the GPU that `cuda` means in the calling thread.
int current_device();
/// Changes it.
void set_device(Device device);

std::string get_device_name(std::optional<Device> device = {});
DeviceProperties get_device_properties(std::optional<Device> device = {});

tern::Stream current_stream(std::optional<Device> device = {});
tern::Stream default_stream(std::optional<Device> device = {});
/// Makes `stream` the one that operators on its device use when called from this thread.
void set_stream(tern::Stream stream);
/// Blocks the host until all work on all streams of the device is done. Throws what that work threw.
void synchronize(std::optional<Device> device = {});

/// Seeds the default generator, which is one for all devices: the same as tern::manual_seed().
void manual_seed(uint64_t seed);
void manual_seed_all(uint64_t seed);

/// Bytes in tensors; in tensors and cached; their peaks since the last reset. These and memory_stats() are 0
/// on a machine without GPUs when `device` is left out.
uint64_t memory_allocated(std::optional<Device> device = {});
uint64_t memory_reserved(std::optional<Device> device = {});
uint64_t max_memory_allocated(std::optional<Device> device = {});
uint64_t max_memory_reserved(std::optional<Device> device = {});
void reset_peak_memory_stats(std::optional<Device> device = {});
/// All counters of the allocator.
MemoryStats memory_stats(std::optional<Device> device = {});
/// The counters as a table.
std::string memory_summary(std::optional<Device> device = {});
/// Every segment that the allocator holds, with its blocks.
std::vector<MemorySegment> memory_snapshot(std::optional<Device> device = {});
/// Gives cached memory back to the device.
void empty_cache();
/// Free and total bytes of the device.
std::pair<uint64_t, uint64_t> mem_get_info(std::optional<Device> device = {});
/// Allows the process `fraction` (0 to 1) of the device's memory; beyond it allocations throw
/// OutOfMemoryError. Throws ValueError for another fraction.
void set_per_process_memory_fraction(double fraction, std::optional<Device> device = {});

}  // namespace tern::cuda
