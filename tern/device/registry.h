// Which backends and devices this process has. What PyTorch has in torch.cuda is in device/cuda.h.
#pragma once

#include <vector>

#include "tern/device/backend.h"

namespace tern {

/// Makes a backend serve its kind of device. It must live to the end of the process.
void register_backend(Backend* backend);

/// Takes it away again.
void unregister_backend(DeviceType type);

/// The backend of a kind of device. Throws DeviceError when there is none.
Backend& backend_of(DeviceType type);

/// Every device that tensors can be put on: the CPU first, then the GPUs.
std::vector<Device> available_devices();

/// `cuda:index` if it is there, else the CPU.
Device try_gpu(int index = 0);

/// All GPUs, or the CPU alone when there are none.
std::vector<Device> try_all_gpus();

namespace detail {
/// Defined in backends/cpu; called once before the first device is used.
void register_cpu_backend();
}  // namespace detail

}  // namespace tern
