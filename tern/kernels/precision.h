// How products and convolutions are computed, for the whole process: how exactly, and by which of a library's
// ways. Backends read it at every launch; those that know one way only need not. Mixed precision, which
// changes dtypes, is in ops/autocast.h.
#pragma once

#include <string_view>

namespace tern {

/// Sets how exactly matrix products of float32 are computed, gradients included, as in PyTorch; sums are
/// float32 always. "highest" at first. Products that follow on any thread heed it. ValueError for any other
/// text.
/// - "highest": float32.
/// - "high": on GPUs inputs are rounded to TF32 (10 bits of mantissa). CPUs with AMX multiply inputs that are
///   sums of two bfloat16 (16 bits), with an error of about 2^-16 of the product of magnitudes; products with
///   infinities, NaN or numbers above 3.39e38 are computed as by "highest".
/// - "medium": GPUs do the same as for "high" (neither PyTorch nor Tern makes use of bfloat16 there). CPUs
///   with AMX or AVX512-BF16 round inputs to bfloat16 (7 bits).
/// Other CPUs compute float32 whatever it says, as do those for products too small to gain. Where bfloat16 is
/// multiplied, numbers and products below 1.2e-38 in magnitude count as 0.
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

/// What set_float32_matmul_precision() allows.
enum class MatmulPrecision { Highest, High, Medium };
MatmulPrecision matmul_precision() noexcept;

}  // namespace kernels
}  // namespace tern
