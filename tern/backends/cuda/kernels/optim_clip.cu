// The norm of all gradients of a list, clipping and unscaling. Sums go on in double from the blocks on, in a
// fixed order.
#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/optim.cuh"

namespace tern::cuda_backend {
namespace {

enum class NormKind { Two, One, Zero, Infinity, General };

NormKind norm_kind(double norm_type) {
  if (norm_type == 2) return NormKind::Two;
  if (norm_type == 1) return NormKind::One;
  if (norm_type == 0) return NormKind::Zero;
  return norm_type - norm_type != 0 ? NormKind::Infinity : NormKind::General;
}

/// What is summed, or for infinity compared.
template <class C>
__device__ __forceinline__ C term(NormKind kind, C x, C p) {
  if (kind == NormKind::Two) return x * x;
  if (kind == NormKind::Zero) return x != C(0) ? C(1) : C(0);
  const C size = x < C(0) ? -x : x;
  return kind == NormKind::General ? static_cast<C>(::pow(size, p)) : size;
}

template <class T>
__global__ void norms_of_pieces(Entries entries, NormKind kind, double norm_type, double* partial) {
  using C = Compute<T>;
  const OptimPiece piece = piece_of(entries);
  const T* x = static_cast<const T*>(piece.entry.grad);
  C sum = C(0);
  for (int64_t i = piece.begin + threadIdx.x; i < piece.end; i += kBlock) {
    const C t = term(kind, widen(x[i]), static_cast<C>(norm_type));
    sum = kind == NormKind::Infinity ? Larger()(sum, t) : sum + t;
  }
  const double wide = static_cast<double>(sum);
  const double total = kind == NormKind::Infinity ? block_reduce(wide, Larger()) : block_reduce(wide, Plus());
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

__global__ void join_norms(const double* partial, int64_t count, NormKind kind, double norm_type,
                           bool is_double, void* out) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kBlock)
    sum = kind == NormKind::Infinity ? Larger()(sum, partial[i]) : sum + partial[i];
  sum = kind == NormKind::Infinity ? block_reduce(sum, Larger()) : block_reduce(sum, Plus());
  if (threadIdx.x != 0) return;
  if (kind == NormKind::Two) sum = ::sqrt(sum);
  if (kind == NormKind::General) sum = ::pow(sum, 1 / norm_type);
  if (is_double)
    *static_cast<double*>(out) = sum;
  else
    *static_cast<float*>(out) = static_cast<float>(sum);
}

struct ClipNorm {
  DType norm_dtype;
  const void* norm;
  double max_norm;
  template <class T>
  __device__ void at(const OptimEntry& entry, int64_t i) const {
    using C = Compute<T>;
    const double factor =
        norm_dtype == DType::Float64
            ? max_norm / (*static_cast<const double*>(norm) + 1e-6)
            : static_cast<double>(static_cast<float>(max_norm) / (*static_cast<const float*>(norm) + 1e-6f));
    if (factor >= 1) return;
    T& x = param<T>(entry, i);
    x = narrow<T>(widen(x) * static_cast<C>(factor));
  }
};

struct ClipValue {
  double limit;
  template <class T>
  __device__ void at(const OptimEntry& entry, int64_t i) const {
    using C = Compute<T>;
    const C bound = static_cast<C>(limit);
    T& x = param<T>(entry, i);
    const C v = widen(x);
    x = narrow<T>(v < -bound ? -bound : v > bound ? bound : v);
  }
};

struct Unscale {
  float inv_scale;
  float* found_inf;
  template <class T>
  __device__ void at(const OptimEntry& entry, int64_t i) const {
    using C = Compute<T>;
    T& x = param<T>(entry, i);
    const C v = widen(x);
    if (!isfinite(v)) *static_cast<volatile float*>(found_inf) = 1;  // all that write, write the same
    x = narrow<T>(v * static_cast<C>(inv_scale));
  }
};

}  // namespace

void optim_norm(const LaunchContext& context, const OptimNormArgs& args) {
  const NormKind kind = norm_kind(args.norm_type);
  int64_t count = 0;
  for (int32_t e = 0; e < args.list.count; ++e) count += ceil_div(args.list.entries[e].numel, kPiece);
  const Storage scratch =
      workspace(context, static_cast<size_t>(std::max<int64_t>(count, 1)) * sizeof(double));
  auto* partial = static_cast<double*>(scratch->data());
  int64_t done = 0;
  visit_floating(args.list.dtype, [&]<class T>() {
    for_entries(args.list, kPiece, [&](const Entries& entries, unsigned grid) {
      start(context, grid, kBlock, 0, norms_of_pieces<T>, entries, kind, args.norm_type, partial + done);
      done += grid;
    });
  });
  start(context, 1, kBlock, 0, join_norms, static_cast<const double*>(partial), count, kind, args.norm_type,
        args.list.dtype == DType::Float64, args.out);
}

void optim_clip_norm(const LaunchContext& context, const OptimClipNormArgs& args) {
  run_steps(context, args.list, ClipNorm{args.norm_dtype, args.norm, args.max_norm});
}

void optim_clip_value(const LaunchContext& context, const OptimClipValueArgs& args) {
  run_steps(context, args.list, ClipValue{args.clip_value});
}

void optim_unscale(const LaunchContext& context, const OptimUnscaleArgs& args) {
  run_steps(context, args.list, Unscale{args.inv_scale, args.found_inf});
}

}  // namespace tern::cuda_backend
