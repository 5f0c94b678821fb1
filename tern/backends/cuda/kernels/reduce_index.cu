// Maximum and minimum with their positions: the first one, the first NaN if there is one.
#include "tern/backends/cuda/kernels/reduce.cuh"

namespace tern::cuda_backend {
namespace {

template <class T>
struct ExtremeAt {
  using C = Compute<T>;
  struct Acc {
    C value;
    int32_t found;  ///< whether there is any
    int32_t nan;
    int64_t index;
  };
  void* values;
  int64_t* indices;
  DType dtype;
  bool largest;
  __device__ Acc identity() const { return {C(0), 0, 0, 0}; }
  __device__ Acc map(C x, int64_t i) const { return {x, 1, x != x, i}; }
  __device__ Acc combine(const Acc& a, const Acc& b) const {
    if (!b.found) return a;
    if (!a.found) return b;
    if (a.nan != b.nan) return a.nan ? a : b;
    if (a.nan || a.value == b.value) return a.index < b.index ? a : b;
    return (largest ? b.value > a.value : b.value < a.value) ? b : a;
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
