// Variance and mean in one pass. Narrow floats are summed as float64, less the first element: with 53 bits
// the squares of what is left are as exact as deviations from the mean. Float64 has running means (Welford,
// 1962), merged by Chan, Golub and LeVeque's formula (1979).
#include "tern/backends/cuda/kernels/reduce.cuh"

namespace tern::cuda_backend {
namespace {

/// What both have: where the results go. `squares` are deviations from the mean, squared and summed.
template <class T>
struct MomentsOut {
  void* out;
  void* mean;
  double correction;
  bool sqrt;
  __device__ void write(int64_t k, double mean_, double squares, int64_t count) const {
    const double divisor = static_cast<double>(count) - correction;
    double variance = squares / (divisor > 0 ? divisor : 0.0);
    if (sqrt) variance = ::sqrt(variance);
    if (count == 0) variance = mean_ = __longlong_as_double(0x7ff8000000000000);
    static_cast<T*>(out)[k] = narrow<T>(static_cast<Compute<T>>(variance));
    if (mean) static_cast<T*>(mean)[k] = narrow<T>(static_cast<Compute<T>>(mean_));
  }
};

template <class T>
struct Sums {
  struct Acc {
    double sum, squares;  ///< of what exceeds `first`
    double first;
    int64_t count;
  };
  MomentsOut<T> to;
  float first = 0;
  __device__ void begin(float x) { first = x; }
  __device__ Acc identity() const { return {0, 0, first, 0}; }
  __device__ Acc map(float x, int64_t) const {
    const double rest = static_cast<double>(x) - static_cast<double>(first);
    return {rest, rest * rest, first, 1};
  }
  __device__ Acc combine(const Acc& a, const Acc& b) const {
    return {a.sum + b.sum, a.squares + b.squares, b.count > 0 ? b.first : a.first, a.count + b.count};
  }
  __device__ void store(int64_t k, const Acc& a) const {
    const double mean = a.sum / static_cast<double>(a.count);
    const double squares = a.squares - mean * a.sum;  // NaN where an element is infinite, and so is the mean
    to.write(k, squares == squares ? a.first + mean : squares, squares < 0 ? 0 : squares, a.count);
  }
};

struct RunningMean {
  struct Acc {
    double mean, squares;
    int64_t count;
  };
  MomentsOut<double> to;
  __device__ Acc identity() const { return {0, 0, 0}; }
  __device__ Acc map(double x, int64_t) const { return {x, 0, 1}; }
  __device__ Acc combine(const Acc& a, const Acc& b) const {
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    const int64_t count = a.count + b.count;
    const double share = static_cast<double>(b.count) / static_cast<double>(count), delta = b.mean - a.mean;
    return {a.mean + delta * share,
            a.squares + b.squares + delta * delta * share * static_cast<double>(a.count), count};
  }
  __device__ void store(int64_t k, const Acc& a) const {
    const double rest = a.mean - a.mean;  // NaN where an element is infinite, wherever it lies
    to.write(k, a.mean + rest, a.squares + rest, a.count);
  }
};

}  // namespace

void moments(const LaunchContext& context, const MomentsArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    const MomentsOut<T> to{args.out, args.mean, args.correction, args.sqrt};
    if constexpr (std::is_same_v<T, double>)
      run_reduction<T>(context, args.dtype, args.in, args.kept, args.reduced, RunningMean{to});
    else
      run_reduction<T>(context, args.dtype, args.in, args.kept, args.reduced, Sums<T>{to});
  });
}

}  // namespace tern::cuda_backend
