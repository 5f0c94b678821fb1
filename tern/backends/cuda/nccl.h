// NCCL: what links GPUs of several processes (device/link.h), opened when it is first needed.
#pragma once

#include "tern/device/link.h"

namespace tern::cuda_backend {

/// Of this process. Where Tern was built without NCCL's header, everything that it is asked for is a
/// DeviceError that says so.
LinkMaker& nccl_links();

}  // namespace tern::cuda_backend
