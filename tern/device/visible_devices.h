// CUDA_VISIBLE_DEVICES: which GPUs the variable leaves to a program, and which entry of it is wrong. What is
// done with that knowledge is in doctor.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tern {

/// What an entry of CUDA_VISIBLE_DEVICES can be compared with.
struct GpuIdentity {
  std::string uuid;                    ///< "GPU-..."; empty where it is not known
  std::vector<std::string> mig_uuids;  ///< "MIG-..." of its parts
  bool mig_known = false;              ///< whether `mig_uuids` is complete
};

struct VisibleEntry {
  std::string text;
  int gpu = -1;        ///< its number among all GPUs; -1 where it names none or cannot be checked
  std::string fault;   ///< why CUDA stops here; empty where it does not
  std::string remark;  ///< what is odd, though CUDA takes it
};

struct VisibleDevices {
  std::vector<VisibleEntry> entries;
  /// How many devices CUDA gives to a program. With a repeated entry it is none.
  int count = 0;
  bool repeated = false;
};

/// Reads the variable as the driver does: the list ends before the first entry that is wrong (no number,
/// negative, out of range, a UUID that matches nothing or more than one GPU, a UUID among numbers), and one
/// that is repeated leaves nothing at all. The rules are those of the CUDA C++ Programming Guide, "CUDA
/// Environment Variables", and of PyTorch's torch/cuda/__init__.py (_parse_visible_devices and
/// _transform_uuid_to_ordinals), which imitates the driver. With no `gpus`, ranges and UUIDs are not judged.
VisibleDevices read_visible_devices(std::string_view text, const std::vector<GpuIdentity>& gpus);

}  // namespace tern
