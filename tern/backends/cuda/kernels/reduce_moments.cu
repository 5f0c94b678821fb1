// Variance and mean in one pass: running means (Welford, 1962), merged by Chan, Golub and LeVeque's formula
// (1979).
#include "tern/backends/cuda/kernels/reduce.cuh"

namespace tern::cuda_backend {
namespace {

template <class T>
struct Variance {
  using C = Compute<T>;
  struct Acc {
    C mean;
    C squares;  ///< sum of squared deviations from the mean
    int64_t count;
  };
  void* out;
  void* mean;
  double correction;
  bool sqrt;
  __device__ Acc identity() const { return {C(0), C(0), 0}; }
  __device__ Acc map(C x, int64_t) const { return {x, C(0), 1}; }
  __device__ Acc combine(const Acc& a, const Acc& b) const {
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    const int64_t count = a.count + b.count;
    const C share = static_cast<C>(b.count) / static_cast<C>(count), delta = b.mean - a.mean;
    return {a.mean + delta * share, a.squares + b.squares + delta * delta * share * static_cast<C>(a.count),
            count};
  }
  __device__ void store(int64_t k, const Acc& a) const {
    const double divisor = static_cast<double>(a.count) - correction;
    double variance = static_cast<double>(a.squares) / (divisor > 0 ? divisor : 0.0);
    if (sqrt) variance = ::sqrt(variance);
    const double nan = __longlong_as_double(0x7ff8000000000000);
    static_cast<T*>(out)[k] = narrow<T>(static_cast<C>(a.count == 0 ? nan : variance));
    if (mean) static_cast<T*>(mean)[k] = narrow<T>(a.count == 0 ? static_cast<C>(nan) : a.mean);
  }
};

}  // namespace

void moments(const LaunchContext& context, const MomentsArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    run_reduction<T>(context, args.dtype, args.in, args.kept, args.reduced,
                     Variance<T>{args.out, args.mean, args.correction, args.sqrt});
  });
}

}  // namespace tern::cuda_backend
