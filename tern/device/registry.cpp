// The table of backends.
#include "tern/device/registry.h"

#include "tern/base/check.h"
#include "tern/device/cuda.h"
#include "tern/device/launch.h"
#include "tern/device/plugin.h"
#include "tern/device/simulation.h"

namespace tern {

namespace detail {
std::atomic<Backend*> backends[kNumDeviceTypes];

namespace {
struct RegisterAtStart {
  RegisterAtStart() {
    register_cpu_backend();
    register_sim_backend_from_environment();
    load_plugin_when_asked();
  }
} register_at_start;
}  // namespace
}  // namespace detail

void register_backend(Backend* backend) {
  detail::backends[static_cast<int>(backend->type())].store(backend, std::memory_order_release);
  register_memory(backend->type(), backend);
}

void unregister_backend(DeviceType type) {
  register_memory(type, nullptr);
  detail::backends[static_cast<int>(type)].store(nullptr, std::memory_order_release);
}

Backend& backend_of(DeviceType type) {
  const auto& slot = detail::backends[static_cast<int>(type)];
  Backend* backend = slot.load(std::memory_order_acquire);
  if (backend == nullptr) [[unlikely]] {
    find_memory(type);
    backend = slot.load(std::memory_order_acquire);
  }
  TERN_CHECK(backend != nullptr, DeviceError,
             "device {} is not available: no backend for it is loaded: use the cpu{}",
             Device(type, type == DeviceType::CPU ? 0 : -1).str(), absence_note(type));
  return *backend;
}

std::vector<Device> available_devices() {
  std::vector<Device> devices{kCPU};
  for (int i = 0; i < cuda::device_count(); ++i) devices.push_back(Device(DeviceType::CUDA, i));
  return devices;
}

Device try_gpu(int index) {
  return index >= 0 && index < cuda::device_count() ? Device(DeviceType::CUDA, index) : kCPU;
}

std::vector<Device> try_all_gpus() {
  std::vector<Device> devices = available_devices();
  if (devices.size() > 1) devices.erase(devices.begin());
  return devices;
}

}  // namespace tern
