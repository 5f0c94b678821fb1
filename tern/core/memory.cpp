// The table of memories by kind of device, and foreign memory.
#include "tern/core/memory.h"

#include <array>
#include <atomic>
#include <memory>

#include "tern/base/check.h"
#include "tern/core/recording.h"

namespace tern {
namespace {

std::array<std::atomic<Memory*>, kNumDeviceTypes> memories{};
constinit std::atomic<const MemoryLoader*> memory_loader{nullptr};
constinit thread_local Device default_device = kCPU;

Memory& memory_of(Device device) {
  Memory* memory = find_memory(device.type);
  TERN_CHECK(
      memory != nullptr, DeviceError,
      "device {} is not available: no backend for it is loaded: use the cpu, or try_gpu(), which falls "
      "back to it{}",
      device.str(), absence_note(device.type));
  return *memory;
}

}  // namespace

constinit thread_local StepRecorder* detail::step_recorder = nullptr;

void detail::note_change(StorageImpl& storage) { step_recorder->changed(storage); }

void register_memory(DeviceType type, Memory* memory) {
  memories[static_cast<size_t>(type)].store(memory, std::memory_order_release);
}

Memory* registered_memory(DeviceType type) noexcept {
  return memories[static_cast<size_t>(type)].load(std::memory_order_acquire);
}

Memory* find_memory(DeviceType type) noexcept {
  if (Memory* there = registered_memory(type)) return there;
  const MemoryLoader* loader = memory_loader.load(std::memory_order_acquire);
  if (loader == nullptr) return nullptr;
  loader->load(type);
  return registered_memory(type);
}

void set_memory_loader(const MemoryLoader* loader) noexcept {
  memory_loader.store(loader, std::memory_order_release);
}

std::string absence_note(DeviceType type) {
  const MemoryLoader* loader = memory_loader.load(std::memory_order_acquire);
  const std::string reason = loader ? loader->why_absent(type) : std::string();
  return reason.empty() ? reason : " (" + reason + ")";
}

Device resolve_device(Device device) {
  if (device.is_cpu()) return device;
  Memory& memory = memory_of(device);
  int count = memory.device_count();
  int index = device.index < 0 ? memory.current_device() : device.index;
  TERN_CHECK(index < count, DeviceError,
             "device {} is not available: the program sees {} GPU(s), numbered from 0", device.str(), count);
  return Device(device.type, index);
}

Device get_default_device() noexcept { return default_device; }

void set_default_device(Device device) {
  default_device = with_context("set_default_device", [&] { return resolve_device(device); });
}

Storage allocate_storage(size_t nbytes, Device device) { return memory_of(device).allocate(nbytes, device); }

Storage storage_from_blob(void* data, size_t nbytes, std::function<void()> release) {
  using Owner = std::function<void()>;
  auto owner = std::make_unique<Owner>(std::move(release));
  Storage storage(new StorageImpl(
      data, nbytes, kCPU,
      [](StorageImpl* self) noexcept {
        std::unique_ptr<Owner> last(static_cast<Owner*>(self->context()));
        delete self;
        if (*last) (*last)();
      },
      owner.get()));
  owner.release();
  return storage;
}

void copy_to_host(void* host, const StorageImpl& from, size_t offset, size_t nbytes) {
  TERN_CHECK(offset <= from.nbytes() && nbytes <= from.nbytes() - offset, IndexError,
             "copy_to_host: bytes {}+{} are outside a storage of {} bytes", offset, nbytes, from.nbytes());
  if (nbytes == 0) return;
  detail::host_reads("copy_to_host");
  memory_of(from.device()).copy_to_host(host, from, offset, nbytes);
}

void copy_from_host(StorageImpl& to, size_t offset, const void* host, size_t nbytes) {
  TERN_CHECK(offset <= to.nbytes() && nbytes <= to.nbytes() - offset, IndexError,
             "copy_from_host: bytes {}+{} are outside a storage of {} bytes", offset, nbytes, to.nbytes());
  if (nbytes == 0) return;
  if (detail::step_recorder) [[unlikely]]
    return detail::step_recorder->host_writes(to, offset, host, nbytes);
  memory_of(to.device()).copy_from_host(to, offset, host, nbytes);
}

}  // namespace tern
