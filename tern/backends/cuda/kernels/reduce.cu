// The reduce kernel: sums and products here, the others in the files that it calls.
#include "tern/backends/cuda/kernels/reduce.cuh"

namespace tern::cuda_backend {
namespace {

/// T: as in visit_elements(). Sums of floats are divided by `divisor`.
template <class T>
struct Sum {
  using C = Compute<T>;
  using Acc = C;
  void* out;
  C divisor;
  __device__ Acc identity() const { return Acc(0); }
  __device__ Acc map(C x, int64_t) const { return x; }
  __device__ Acc combine(Acc a, Acc b) const {
    if constexpr (std::is_integral_v<Acc>)
      return static_cast<Acc>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else
      return a + b;
  }
  __device__ void store(int64_t k, Acc a) const {
    if constexpr (!std::is_integral_v<Acc>)
      if (divisor != C(1)) a = a / divisor;
    static_cast<T*>(out)[k] = narrow<T>(a);
  }
};

template <class T>
struct Product {
  using C = Compute<T>;
  using Acc = C;
  void* out;
  __device__ Acc identity() const { return Acc(1); }
  __device__ Acc map(C x, int64_t) const { return x; }
  __device__ Acc combine(Acc a, Acc b) const {
    if constexpr (std::is_integral_v<Acc>)
      return static_cast<Acc>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return a * b;
  }
  __device__ void store(int64_t k, Acc a) const { static_cast<T*>(out)[k] = narrow<T>(a); }
};

}  // namespace

void reduce_sum(const LaunchContext& context, const ReduceArgs& args) {
  visit_reduced(args.dtype, [&]<class T>() {
    if (args.op == ReduceOp::Sum)
      run_reduction<T>(context, args.dtype, args.in, args.kept, args.reduced,
                       Sum<T>{args.out, static_cast<Compute<T>>(args.param)});
    else
      run_reduction<T>(context, args.dtype, args.in, args.kept, args.reduced, Product<T>{args.out});
  });
}

void reduce(const LaunchContext& context, const ReduceArgs& args) {
  switch (args.op) {
    case ReduceOp::Sum:
    case ReduceOp::Prod:
      return reduce_sum(context, args);
    case ReduceOp::Max:
    case ReduceOp::Min:
      return reduce_extreme(context, args);
    case ReduceOp::Any:
    case ReduceOp::All:
    case ReduceOp::CountNonzero:
      return reduce_logic(context, args);
    default:
      return reduce_norm(context, args);
  }
}

}  // namespace tern::cuda_backend
