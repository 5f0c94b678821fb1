// The two settings of precision, atomics of the process.
#include "tern/kernels/precision.h"

#include <array>
#include <atomic>

#include "tern/base/check.h"

namespace tern {
namespace {

std::atomic<kernels::Float32Matmul> matmul_precision{kernels::Float32Matmul::Highest};
std::atomic<bool> conv_in_tf32{false};

constexpr std::array<std::string_view, 3> kNames = {"highest", "high", "medium"};

}  // namespace

void set_float32_matmul_precision(std::string_view precision) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (precision == kNames[i])
      return matmul_precision.store(static_cast<kernels::Float32Matmul>(i), std::memory_order_relaxed);
  TERN_THROW(
      ValueError,
      "set_float32_matmul_precision: {} is not one of 'highest', 'high', or 'medium': the precision stays "
      "'{}'",
      precision, get_float32_matmul_precision());
}

std::string_view get_float32_matmul_precision() noexcept {
  return kNames[static_cast<size_t>(kernels::float32_matmul())];
}

void set_cudnn_allow_tf32(bool allow) noexcept { conv_in_tf32.store(allow, std::memory_order_relaxed); }
bool cudnn_allow_tf32() noexcept { return conv_in_tf32.load(std::memory_order_relaxed); }

kernels::Float32Matmul kernels::float32_matmul() noexcept {
  return matmul_precision.load(std::memory_order_relaxed);
}

}  // namespace tern
