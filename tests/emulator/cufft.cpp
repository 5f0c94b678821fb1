// libcufft as the backend calls it: sums as they are defined, in float64. What the real library would refuse
// is refused here too, and a transform to real numbers destroys its input, as it may there.
#include <cufftXt.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <map>
#include <mutex>
#include <numbers>
#include <vector>

#include "tests/emulator/gpus.h"
#include "tests/emulator/queue.h"

namespace {

struct Plan {
  bool is_made = false, allocates = true;
  cufftType type{};
  int64_t size = 0, batch = 0;
  int64_t in_step = 0, in_apart = 0, out_step = 0, out_apart = 0;
  void* work = nullptr;
  cudaStream_t stream = nullptr;
};

/// Bytes of working memory that every plan asks for.
constexpr size_t kWork = 256;

std::mutex mutex;
std::map<cufftHandle, Plan> plans;

Plan* find(cufftHandle handle) {
  const auto found = plans.find(handle);
  return found == plans.end() ? nullptr : &found->second;
}

template <class T>
void transform(const Plan& p, void* in, void* out, int direction) {
  using Z = std::complex<double>;
  const bool to_half = p.type == CUFFT_R2C || p.type == CUFFT_D2Z;
  const bool to_real = p.type == CUFFT_C2R || p.type == CUFFT_Z2D;
  const int64_t n = p.size, half = n / 2 + 1;
  const double sign = to_half || (!to_real && direction == CUFFT_FORWARD) ? -1 : 1;
  std::vector<Z> roots(static_cast<size_t>(n)), x(static_cast<size_t>(n)), y(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k)
    roots[static_cast<size_t>(k)] =
        std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
  for (int64_t b = 0; b < p.batch; ++b) {
    T* const from = static_cast<T*>(in) + b * p.in_apart * (to_half ? 1 : 2);
    T* const to = static_cast<T*>(out) + b * p.out_apart * (to_real ? 1 : 2);
    for (int64_t j = 0; j < n; ++j) {
      const bool mirrored = to_real && j >= half;
      const int64_t at = (mirrored ? n - j : j) * p.in_step;
      const bool is_real = to_half || (to_real && (j == 0 || 2 * j == n));
      const double re = static_cast<double>(from[to_half ? at : 2 * at]);
      const double im = is_real ? 0 : static_cast<double>(from[2 * at + 1]);
      x[static_cast<size_t>(j)] = Z(re, mirrored ? -im : im);
    }
    for (int64_t k = 0; k < n; ++k) {
      Z sum = 0;
      for (int64_t j = 0; j < n; ++j)
        sum += x[static_cast<size_t>(j)] * roots[static_cast<size_t>(j * k % n)];
      y[static_cast<size_t>(k)] = sum;
    }
    if (to_real)
      for (int64_t k = 0; k < half; ++k) from[2 * k * p.in_step] = T(NAN);
    for (int64_t k = 0; k < (to_half ? half : n); ++k) {
      const int64_t at = k * p.out_step;
      to[to_real ? at : 2 * at] = static_cast<T>(y[static_cast<size_t>(k)].real());
      if (!to_real) to[2 * at + 1] = static_cast<T>(y[static_cast<size_t>(k)].imag());
    }
  }
}

}  // namespace

cufftResult cufftCreate(cufftHandle* handle) {
  if (!emulator::thread_has_context()) return CUFFT_SETUP_FAILED;
  const std::scoped_lock lock(mutex);
  static cufftHandle last = 0;
  *handle = ++last;
  plans[*handle] = {};
  return CUFFT_SUCCESS;
}

cufftResult cufftSetAutoAllocation(cufftHandle handle, int allocates) {
  const std::scoped_lock lock(mutex);
  Plan* const plan = find(handle);
  if (plan == nullptr || plan->is_made) return CUFFT_INVALID_PLAN;
  plan->allocates = allocates != 0;
  return CUFFT_SUCCESS;
}

cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long* n, long long* inembed,
                                long long istride, long long idist, long long* onembed, long long ostride,
                                long long odist, cufftType type, long long batch, size_t* work) {
  const std::scoped_lock lock(mutex);
  Plan* const plan = find(handle);
  if (plan == nullptr || plan->is_made) return CUFFT_INVALID_PLAN;
  if (rank != 1 || inembed == nullptr || onembed == nullptr) return CUFFT_INVALID_VALUE;
  if (n[0] < 1 || batch < 1 || istride < 1 || ostride < 1) return CUFFT_INVALID_SIZE;
  *plan = {true, plan->allocates, type, n[0], batch, istride, idist, ostride, odist, nullptr, nullptr};
  *work = kWork;
  return CUFFT_SUCCESS;
}

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  const std::scoped_lock lock(mutex);
  Plan* const plan = find(handle);
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  plan->stream = stream;
  return CUFFT_SUCCESS;
}

cufftResult cufftSetWorkArea(cufftHandle handle, void* work) {
  const std::scoped_lock lock(mutex);
  Plan* const plan = find(handle);
  if (plan == nullptr || !plan->is_made) return CUFFT_INVALID_PLAN;
  plan->work = work;
  return CUFFT_SUCCESS;
}

cufftResult cufftXtExec(cufftHandle handle, void* in, void* out, int direction) {
  const std::scoped_lock lock(mutex);
  const Plan* const found = find(handle);
  if (found == nullptr || !found->is_made) return CUFFT_INVALID_PLAN;
  if (!found->allocates && found->work == nullptr) return CUFFT_EXEC_FAILED;
  const Plan plan = *found;
  const bool is_double = plan.type == CUFFT_Z2Z || plan.type == CUFFT_D2Z || plan.type == CUFFT_Z2D;
  const auto work = [=] {
    if (is_double)
      transform<double>(plan, in, out, direction);
    else
      transform<float>(plan, in, out, direction);
  };
  return emulator::enqueue(plan.stream, work) == cudaSuccess ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}
