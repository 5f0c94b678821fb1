// How GPUs compute products and convolutions, for the whole process: how exactly, and by which of a library's
// ways. Backends read it at every launch; those that know one way only, like the CPU, which always computes
// float32, need not. Mixed precision, which changes dtypes, is in ops/autocast.h.
#pragma once

#include <string_view>

namespace tern {

/// Sets how GPUs compute matrix products of float32, gradients included, as in PyTorch: "highest" in float32,
/// "high" and "medium" with inputs rounded to TF32 (10 bits of mantissa) and sums in float32. ("medium"
/// allows bfloat16, which neither PyTorch nor Tern makes use of on GPUs.) "highest" at first. Products that
/// follow on any thread heed it. ValueError for any other text. The CPU computes float32 whatever it says.
void set_float32_matmul_precision(std::string_view precision);
/// "highest", "high" or "medium".
std::string_view get_float32_matmul_precision() noexcept;

/// Whether convolutions of float32 on GPUs may round their inputs to TF32: torch.backends.cudnn.allow_tf32,
/// but false at first, where PyTorch allows it: float32 means float32 until somebody asks for less.
void set_cudnn_allow_tf32(bool allow) noexcept;
bool cudnn_allow_tf32() noexcept;

/// Whether cuDNN's ways of computing a convolution are measured, each a few times, when a shape is met first,
/// so that the fastest is used from then on: torch.backends.cudnn.benchmark, false at first. Worth it where
/// the same shapes come again and again. All of them give the same result every time, but another than each
/// other in the last bits, so that a run with it need not equal another run. The host waits for the
/// measuring; a recorded step cannot, and takes what was measured before it, else cuDNN's advice.
void set_cudnn_benchmark(bool benchmark) noexcept;
bool cudnn_benchmark() noexcept;

/// The same for matrix products and cuBLASLt's algorithms, false at first; PyTorch's torch.cuda.tunable.
/// Small products of float32, which have a kernel of Tern's own, and sums into what a product is added to
/// (addmm_()) are not measured.
void set_matmul_benchmark(bool benchmark) noexcept;
bool matmul_benchmark() noexcept;

namespace kernels {

/// Whether set_float32_matmul_precision() allows it.
bool matmul_allows_tf32() noexcept;

}  // namespace kernels
}  // namespace tern
