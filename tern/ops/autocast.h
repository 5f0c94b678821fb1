// Autocast: mixed precision as torch.autocast gives it. What operators do with it is in ops/autocast_rules.h,
// and each says in its first lines to which list it belongs; scaling of losses for float16 is in
// optim/grad_scaler.h.
#pragma once

#include <array>
#include <optional>

#include "tern/core/device.h"
#include "tern/core/dtype.h"

namespace tern {

struct AutocastOptions {
  DeviceType device_type = DeviceType::CUDA;  ///< the tensors that it concerns
  std::optional<DType> dtype = {};  ///< bfloat16 or float16; get_autocast_dtype(device_type) if not given
  bool enabled = true;
  bool cache_enabled = true;  ///< weights are cast once, not at each use
};

/// In the scope of this guard, on this thread, operators choose the dtype in which they compute, for tensors
/// of float32, float16 and bfloat16 on one kind of device:
/// - matrix products and convolutions: `dtype`;
/// - on GPUs exp, log, powers, sums, softmax and norms, everywhere losses and prod: float32;
/// - the few that need arguments of one dtype, such as dot, index_put, scatter_add: the widest of theirs;
/// - all others: as without it.
/// The lists are PyTorch's (torch 2, "Autocast Op Reference"), which differ for CPU and CUDA. Changes in
/// place and float64 are left alone. Gradients flow through the casts: parameters of float32 get gradients of
/// float32. backward() may be called in the scope or after it: it runs in the dtypes of the forward pass,
/// without autocast.
///
/// Guards nest; one with `enabled = false` turns it off inside another. Leaves of float32 that require
/// gradients are cast once and the cast is kept until the outermost guard goes or they change in place.
///
/// ValueError for a dtype that is neither bfloat16 nor float16.
class AutocastGuard {
 public:
  explicit AutocastGuard(const AutocastOptions& options = {});
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  DeviceType device_type_;
  bool enabled_before_, cache_before_, autocasting_before_;
  DType dtype_before_;
};

/// Whether operators called from this thread cast tensors on such a device. False while backward runs.
bool is_autocast_enabled(DeviceType device_type) noexcept;
/// The dtype of products on such a device under autocast: at first bfloat16 for the CPU, float16 for GPUs.
DType get_autocast_dtype(DeviceType device_type) noexcept;
bool is_autocast_cache_enabled() noexcept;
/// Lets go of the casts that this thread keeps.
void clear_autocast_cache() noexcept;

namespace detail {
/// What a thread's guards have set.
struct AutocastSettings {
  std::array<bool, kNumDeviceTypes> enabled{};
  std::array<DType, kNumDeviceTypes> dtype{DType::BFloat16, DType::Float16};
  bool cache_enabled = true;
  bool autocasting = false;
};
AutocastSettings autocast_settings() noexcept;
/// For a thread without guards, which casts a weight at each use.
void set_autocast_settings(const AutocastSettings& settings) noexcept;
}  // namespace detail

}  // namespace tern
