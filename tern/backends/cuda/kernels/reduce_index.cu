// Maximum and minimum with their positions: the first one, the first NaN if there is one.
#include <limits>

#include "tern/backends/cuda/kernels/reduce.cuh"

namespace tern::cuda_backend {
namespace {

template <class T>
struct ExtremeAt {
  using C = Compute<T>;
  struct Acc {
    C value;
    int64_t index;
  };
  void* values;
  int64_t* indices;
  DType dtype;
  bool largest;
  /// Comes after every element: none is worse, and its index is larger.
  __device__ Acc identity() const {
    using Limits = std::numeric_limits<C>;
    if constexpr (Limits::has_infinity)
      return {largest ? -Limits::infinity() : Limits::infinity(), INT64_MAX};
    else
      return {largest ? Limits::lowest() : Limits::max(), INT64_MAX};
  }
  __device__ Acc map(C x, int64_t i) const { return {x, i}; }
  __device__ Acc combine(const Acc& a, const Acc& b) const {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool tie = a.value == b.value || (a_nan && b_nan);
    const bool better = largest ? b.value > a.value : b.value < a.value;
    return (tie ? b.index < a.index : b_nan || (better && !a_nan)) ? b : a;
  }
  __device__ void store(int64_t k, const Acc& a) const {
    indices[k] = a.index;
    if (values == nullptr) return;
    if constexpr (std::is_integral_v<T>)
      cuda_backend::store<int64_t>(dtype, values, k, a.value);
    else
      static_cast<T*>(values)[k] = narrow<T>(a.value);
  }
};

}  // namespace

void reduce_index(const LaunchContext& context, const ReduceIndexArgs& args) {
  visit_reduced(args.dtype, [&]<class T>() {
    run_reduction<T>(context, args.dtype, args.in, args.kept, args.reduced,
                     ExtremeAt<T>{args.values, args.indices, args.dtype, args.largest});
  });
}

}  // namespace tern::cuda_backend
