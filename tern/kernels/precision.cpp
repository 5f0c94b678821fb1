// The settings of products and convolutions, atomics of the process.
#include "tern/kernels/precision.h"

#include <array>
#include <atomic>

#include "tern/base/check.h"

namespace tern {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"highest", "high", "medium"};  // as MatmulPrecision

std::atomic<size_t> precision_of_matmul{0};  // a place in kNames
std::atomic<bool> conv_in_tf32{false}, conv_measured{false}, matmul_measured{false};

}  // namespace

void set_float32_matmul_precision(std::string_view precision) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (precision == kNames[i]) return precision_of_matmul.store(i, std::memory_order_relaxed);
  TERN_THROW(
      ValueError,
      "set_float32_matmul_precision: {} is not one of 'highest', 'high', or 'medium': the precision stays "
      "'{}'",
      precision, get_float32_matmul_precision());
}

std::string_view get_float32_matmul_precision() noexcept {
  return kNames[precision_of_matmul.load(std::memory_order_relaxed)];
}

void set_cudnn_allow_tf32(bool allow) noexcept { conv_in_tf32.store(allow, std::memory_order_relaxed); }
bool cudnn_allow_tf32() noexcept { return conv_in_tf32.load(std::memory_order_relaxed); }

void set_cudnn_benchmark(bool benchmark) noexcept {
  conv_measured.store(benchmark, std::memory_order_relaxed);
}
bool cudnn_benchmark() noexcept { return conv_measured.load(std::memory_order_relaxed); }

void set_matmul_benchmark(bool benchmark) noexcept {
  matmul_measured.store(benchmark, std::memory_order_relaxed);
}
bool matmul_benchmark() noexcept { return matmul_measured.load(std::memory_order_relaxed); }

kernels::MatmulPrecision kernels::matmul_precision() noexcept {
  return static_cast<MatmulPrecision>(precision_of_matmul.load(std::memory_order_relaxed));
}

}  // namespace tern
