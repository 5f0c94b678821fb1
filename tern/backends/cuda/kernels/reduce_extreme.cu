// Maximum and minimum, and any, all and the count of elements that are not zero.
#include <limits>

#include "tern/backends/cuda/kernels/reduce.cuh"

namespace tern::cuda_backend {
namespace {

template <class T, class Pick>
struct Extreme {
  using C = Compute<T>;
  using Acc = C;
  static constexpr bool largest = std::is_same_v<Pick, Larger>;
  void* out;
  DType dtype;
  __device__ Acc identity() const {
    using Limits = std::numeric_limits<C>;
    if constexpr (Limits::has_infinity)
      return largest ? -Limits::infinity() : Limits::infinity();
    else
      return largest ? Limits::lowest() : Limits::max();
  }
  __device__ Acc map(C x, int64_t) const { return x; }
  __device__ Acc combine(Acc a, Acc b) const { return Pick()(a, b); }
  __device__ void store(int64_t k, Acc a) const {
    if constexpr (std::is_integral_v<T>)
      cuda_backend::store<int64_t>(dtype, out, k, a);
    else
      static_cast<T*>(out)[k] = narrow<T>(a);
  }
};

/// How many elements are not zero.
template <class T>
struct Count {
  using C = Compute<T>;
  using Acc = int64_t;
  void* out;
  ReduceOp op;
  int64_t numel;
  __device__ Acc identity() const { return 0; }
  __device__ Acc map(C x, int64_t) const { return x != C(0); }
  __device__ Acc combine(Acc a, Acc b) const { return a + b; }
  __device__ void store(int64_t k, Acc a) const {
    if (op == ReduceOp::CountNonzero)
      static_cast<int64_t*>(out)[k] = a;
    else
      static_cast<bool*>(out)[k] = op == ReduceOp::Any ? a != 0 : a == numel;
  }
};

}  // namespace

void reduce_extreme(const LaunchContext& context, const ReduceArgs& args) {
  visit_reduced(args.dtype, [&]<class T>() {
    const auto run = [&](const auto& extreme) {
      run_reduction<T>(context, args.dtype, args.in, args.kept, args.reduced, extreme);
    };
    if (args.op == ReduceOp::Max)
      run(Extreme<T, Larger>{args.out, args.dtype});
    else
      run(Extreme<T, Smaller>{args.out, args.dtype});
  });
}

void reduce_logic(const LaunchContext& context, const ReduceArgs& args) {
  visit_reduced(args.dtype, [&]<class T>() {
    run_reduction<T>(context, args.dtype, args.in, args.kept, args.reduced,
                     Count<T>{args.out, args.op, args.reduced.numel});
  });
}

}  // namespace tern::cuda_backend
