// Norms of floats. Squares are summed without scaling, as PyTorch does: they overflow beyond 1e19 in float32.
#include <limits>

#include "tern/backends/cuda/kernels/reduce.cuh"

namespace tern::cuda_backend {
namespace {

/// One kernel for all norms: what they do with an element is chosen at run time.
template <class T>
struct Norm {
  using C = Compute<T>;
  using Acc = C;
  void* out;
  ReduceOp op;
  C p;
  __device__ Acc identity() const {
    return op == ReduceOp::NormNegInf ? std::numeric_limits<C>::infinity() : C(0);
  }
  __device__ Acc map(C x, int64_t) const {
    if (op == ReduceOp::Norm2) return x * x;
    const C size = x < C(0) ? -x : x;
    return op == ReduceOp::NormP ? static_cast<C>(::pow(size, p)) : size;
  }
  __device__ Acc combine(Acc a, Acc b) const {
    if (op == ReduceOp::NormInf) return b > a || b != b ? b : a;
    if (op == ReduceOp::NormNegInf) return b < a || b != b ? b : a;
    return a + b;
  }
  __device__ void store(int64_t k, Acc a) const {
    if (op == ReduceOp::Norm2) a = ::sqrt(a);
    if (op == ReduceOp::NormP) a = static_cast<C>(::pow(a, C(1) / p));
    static_cast<T*>(out)[k] = narrow<T>(a);
  }
};

}  // namespace

void reduce_norm(const LaunchContext& context, const ReduceArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    run_reduction<T>(context, args.dtype, args.in, args.kept, args.reduced,
                     Norm<T>{args.out, args.op, static_cast<Compute<T>>(args.param)});
  });
}

}  // namespace tern::cuda_backend
