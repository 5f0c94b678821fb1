// Norms of floats, and their sum without NaN. Squares are summed without scaling, as PyTorch does: they
// overflow beyond 1e19 in float32.
#include <limits>

#include "tern/backends/cuda/kernels/reduce.cuh"

namespace tern::cuda_backend {
namespace {

/// `op` is known when this is compiled: what is chosen in a loop keeps its loads apart.
template <class T, ReduceOp op>
struct Norm {
  using C = Compute<T>;
  using Acc = C;
  void* out;
  C p;
  __device__ Acc identity() const {
    return op == ReduceOp::NormNegInf ? std::numeric_limits<C>::infinity() : C(0);
  }
  __device__ Acc map(C x, int64_t) const {
    if constexpr (op == ReduceOp::NanSum) return x != x ? C(0) : x;
    if constexpr (op == ReduceOp::Norm2) return x * x;
    const C size = x < C(0) ? -x : x;
    if constexpr (op == ReduceOp::NormP) return static_cast<C>(::pow(size, p));
    return size;
  }
  __device__ Acc combine(Acc a, Acc b) const {
    if constexpr (op == ReduceOp::NormInf) return b > a || b != b ? b : a;
    if constexpr (op == ReduceOp::NormNegInf) return b < a || b != b ? b : a;
    return a + b;
  }
  __device__ void store(int64_t k, Acc a) const {
    if constexpr (op == ReduceOp::Norm2) a = ::sqrt(a);
    if constexpr (op == ReduceOp::NormP) a = static_cast<C>(::pow(a, C(1) / p));
    static_cast<T*>(out)[k] = narrow<T>(a);
  }
};

template <ReduceOp op>
void run_norm(const LaunchContext& context, const ReduceArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    run_reduction<T>(context, args.dtype, args.in, args.kept, args.reduced,
                     Norm<T, op>{args.out, static_cast<Compute<T>>(args.param)});
  });
}

}  // namespace

void reduce_norm(const LaunchContext& context, const ReduceArgs& args) {
  switch (args.op) {
    case ReduceOp::NanSum:
      return run_norm<ReduceOp::NanSum>(context, args);
    case ReduceOp::Norm1:
      return run_norm<ReduceOp::Norm1>(context, args);
    case ReduceOp::Norm2:
      return run_norm<ReduceOp::Norm2>(context, args);
    case ReduceOp::NormInf:
      return run_norm<ReduceOp::NormInf>(context, args);
    case ReduceOp::NormNegInf:
      return run_norm<ReduceOp::NormNegInf>(context, args);
    default:
      return run_norm<ReduceOp::NormP>(context, args);
  }
}

}  // namespace tern::cuda_backend
