// Fourier transforms on GPUs, by cuFFT, whose plans are kept for each stream: their working memory is used in
// its order.
#include <cuda_runtime.h>

#include <mutex>
#include <unordered_map>

#include "tern/backends/cuda/check.h"
#include "tern/backends/cuda/cufft.h"
#include "tern/backends/cuda/device.h"
#include "tern/backends/cuda/kernels/plan_key.h"
#include "tern/kernels/list.h"

namespace tern::cuda_backend {

void binary(const LaunchContext& context, const BinaryArgs& args);

namespace {

struct Key {
  int64_t kind, is_double, size, batch, apart, beside, stream;
  bool operator==(const Key&) const = default;
};
struct Plan {
  cufftHandle handle = 0;
  size_t workspace = 0;
};

cufftType type_of(const FftArgs& args) {
  const bool is_double = args.dtype == DType::Float64;
  if (args.kind == FftKind::Complex) return is_double ? CUFFT_Z2Z : CUFFT_C2C;
  if (args.kind == FftKind::ToHalf) return is_double ? CUFFT_D2Z : CUFFT_R2C;
  return is_double ? CUFFT_Z2D : CUFFT_C2R;
}

/// Of `batch` transforms whose elements are `apart`, and whose first elements are `beside` each other or,
/// where that is 0, behind each other.
Plan make_plan(const FftArgs& args, int64_t batch, int64_t apart, int64_t beside) {
  Plan plan;
  long long size = args.size, in_size = args.kind == FftKind::ToReal ? args.half() : args.size,
            out_size = args.kind == FftKind::ToHalf ? args.half() : args.size;
  TERN_FFT_CALL(cufftCreate(&plan.handle));
  TERN_FFT_CALL(cufftSetAutoAllocation(plan.handle, 0));
  const int64_t in_beside = beside != 0 ? beside : in_size, out_beside = beside != 0 ? beside : out_size;
  TERN_FFT_CALL(cufftMakePlanMany64(plan.handle, 1, &size, &in_size, apart, in_beside, &out_size, apart,
                                    out_beside, type_of(args), batch, &plan.workspace));
  return plan;
}

/// Multiplies `count` real numbers.
void scale(const LaunchContext& context, const FftArgs& args, int64_t count) {
  if (args.scale == 1 || count == 0) return;
  BinaryArgs product{.op = BinaryOp::Mul,
                     .dtype = args.dtype,
                     .out = args.out,
                     .a = args.out,
                     .b = nullptr,
                     .scalar = {args.scale, 0},
                     .params = {},
                     .geometry = {}};
  set_flat(product.geometry, count);
  binary(context, product);
}

}  // namespace

void fft(const LaunchContext& context, const FftArgs& args) {
  if (args.outer * args.inner == 0) return;
  const int64_t item = static_cast<int64_t>(itemsize(args.dtype));
  const bool to_half = args.kind == FftKind::ToHalf, to_real = args.kind == FftKind::ToReal;
  const int64_t in_numbers = to_real ? 2 * args.half() : to_half ? args.size : 2 * args.size;
  const int64_t out_numbers = to_half ? 2 * args.half() : to_real ? args.size : 2 * args.size;
  const cudaStream_t stream = stream_of(context.stream).handle();
  const auto* in = static_cast<const char*>(args.in);
  Storage kept;
  if (to_real) {  // which cuFFT may overwrite
    const auto nbytes = static_cast<size_t>(args.outer * args.inner * in_numbers * item);
    kept = workspace(context, nbytes);
    TERN_CUDA_CALL(cudaMemcpyAsync(kept->data(), in, nbytes, cudaMemcpyDeviceToDevice, stream));
    in = static_cast<const char*>(kept->data());
  }
  const bool rows = args.inner == 1;
  const Key key{static_cast<int64_t>(args.kind),
                args.dtype == DType::Float64,
                args.size,
                rows ? args.outer : args.inner,
                args.inner,
                rows ? 0 : 1,
                static_cast<int64_t>(reinterpret_cast<intptr_t>(stream))};
  static std::mutex mutex;
  static auto* plans = new std::unordered_map<Key, Plan, PlanHash<Key>>;  // CUDA may be gone before it is
  const std::scoped_lock lock(mutex);
  auto found = plans->find(key);
  if (found == plans->end()) {
    found = plans->emplace(key, make_plan(args, key.batch, key.apart, key.beside)).first;
    TERN_FFT_CALL(cufftSetStream(found->second.handle, stream));
  }
  const Plan& plan = found->second;
  const Storage work = workspace(context, std::max<size_t>(plan.workspace, 1));
  TERN_FFT_CALL(cufftSetWorkArea(plan.handle, work->data()));
  const int direction = args.forward ? CUFFT_FORWARD : CUFFT_INVERSE;
  for (int64_t o = 0; o < (rows ? 1 : args.outer); ++o)
    TERN_FFT_CALL(cufftXtExec(plan.handle, const_cast<char*>(in) + o * in_numbers * args.inner * item,
                              static_cast<char*>(args.out) + o * out_numbers * args.inner * item, direction));
  scale(context, args, args.outer * args.inner * out_numbers);
}

}  // namespace tern::cuda_backend
