// libcusolver as the backend calls it, by the machine's LAPACK. What the real library would refuse (leading
// dimensions that are too small, working memory that is too little, wide matrices in an SVD) is refused here
// too.
#include <cusolverDn.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/emulator/gpus.h"
#include "tests/emulator/queue.h"

struct cusolverDnContext {
  cudaStream_t stream = nullptr;
};

namespace {

/// A routine of LAPACK, in Fortran's way: pointers to everything.
template <class... P>
void lapack(const char* name, P... arguments) {
  static void* const library = [] {
    void* opened = ::dlopen("liblapack.so.3", RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      std::fprintf(stderr, "the emulated cuSOLVER needs LAPACK (Debian package liblapack3): %s\n",
                   ::dlerror());
      std::exit(70);
    }
    return opened;
  }();
  reinterpret_cast<void (*)(P...)>(::dlsym(library, name))(arguments...);
}

/// Elements of working memory that every routine asks for.
constexpr int kWork = 72;

/// Checks what all calls have, then gives the stream its work.
template <class Work>
cusolverStatus_t give(cusolverDnHandle_t handle, bool fits, const void* work, int count, const Work& body) {
  if (handle == nullptr || !emulator::thread_has_context()) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (!fits || work == nullptr || count < kWork) return CUSOLVER_STATUS_INVALID_VALUE;
  return emulator::enqueue(handle->stream, body) == cudaSuccess ? CUSOLVER_STATUS_SUCCESS
                                                                : CUSOLVER_STATUS_EXECUTION_FAILED;
}
cusolverStatus_t ask(bool fits, int* count) {
  *count = kWork;
  return fits ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}

bool is_tall_enough(int rows, int ld) { return rows >= 0 && ld >= std::max(1, rows); }

const char* letter_of(cublasFillMode_t triangle) { return triangle == CUBLAS_FILL_MODE_UPPER ? "U" : "L"; }

}  // namespace

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  *handle = new cusolverDnContext;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}

#define TERN_EMULATED(T, L, l)                                                                               \
  cusolverStatus_t cusolverDn##L##potrf_bufferSize(cusolverDnHandle_t, cublasFillMode_t, int n, T*, int ld,  \
                                                   int* count) {                                             \
    return ask(is_tall_enough(n, ld), count);                                                                \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##L##potrf(cusolverDnHandle_t handle, cublasFillMode_t triangle, int n, T* a,   \
                                        int ld, T* work, int count, int* info) {                             \
    return give(handle, is_tall_enough(n, ld), work, count,                                                  \
                [=] { lapack(#l "potrf_", letter_of(triangle), &n, a, &ld, info, size_t{1}); });             \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##L##getrf_bufferSize(cusolverDnHandle_t, int m, int, T*, int ld, int* count) { \
    return ask(is_tall_enough(m, ld), count);                                                                \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##L##getrf(cusolverDnHandle_t handle, int m, int n, T* a, int ld, T* work,      \
                                        int* pivots, int* info) {                                            \
    return give(handle, is_tall_enough(m, ld), work, kWork,                                                  \
                [=] { lapack(#l "getrf_", &m, &n, a, &ld, pivots, info); });                                 \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##L##geqrf_bufferSize(cusolverDnHandle_t, int m, int, T*, int ld, int* count) { \
    return ask(is_tall_enough(m, ld), count);                                                                \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##L##geqrf(cusolverDnHandle_t handle, int m, int n, T* a, int ld, T* tau,       \
                                        T* work, int count, int* info) {                                     \
    return give(handle, is_tall_enough(m, ld), work, count, [=] {                                            \
      std::vector<T> own(static_cast<size_t>(std::max(n, 1)) * 32);                                          \
      const int length = static_cast<int>(own.size());                                                       \
      lapack(#l "geqrf_", &m, &n, a, &ld, tau, own.data(), &length, info);                                   \
    });                                                                                                      \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##L##orgqr_bufferSize(cusolverDnHandle_t, int m, int n, int k, const T*,        \
                                                   int ld, const T*, int* count) {                           \
    return ask(is_tall_enough(m, ld) && k <= n && n <= m, count);                                            \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##L##orgqr(cusolverDnHandle_t handle, int m, int n, int k, T* a, int ld,        \
                                        const T* tau, T* work, int count, int* info) {                       \
    return give(handle, is_tall_enough(m, ld) && k <= n && n <= m, work, count, [=] {                        \
      std::vector<T> own(static_cast<size_t>(std::max(n, 1)) * 32);                                          \
      const int length = static_cast<int>(own.size());                                                       \
      lapack(#l "orgqr_", &m, &n, &k, a, &ld, tau, own.data(), &length, info);                               \
    });                                                                                                      \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##L##syevd_bufferSize(cusolverDnHandle_t, cusolverEigMode_t, cublasFillMode_t,  \
                                                   int n, const T*, int ld, const T*, int* count) {          \
    return ask(is_tall_enough(n, ld), count);                                                                \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##L##syevd(cusolverDnHandle_t handle, cusolverEigMode_t mode,                   \
                                        cublasFillMode_t triangle, int n, T* a, int ld, T* values, T* work,  \
                                        int count, int* info) {                                              \
    return give(handle, is_tall_enough(n, ld), work, count, [=] {                                            \
      std::vector<T> own(static_cast<size_t>(std::max(n, 1)) * 34);                                          \
      const int length = static_cast<int>(own.size());                                                       \
      lapack(#l "syev_", mode == CUSOLVER_EIG_MODE_VECTOR ? "V" : "N", letter_of(triangle), &n, a, &ld,      \
             values, own.data(), &length, info, size_t{1}, size_t{1});                                       \
    });                                                                                                      \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##L##gesvd_bufferSize(cusolverDnHandle_t, int m, int n, int* count) {           \
    return ask(m >= n && n >= 0, count);                                                                     \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##L##gesvd(cusolverDnHandle_t handle, signed char job_u, signed char job_v,     \
                                        int m, int n, T* a, int ld, T* s, T* u, int u_ld, T* vt, int vt_ld,  \
                                        T* work, int count, T*, int* info) {                                 \
    const bool vectors = job_u == 'N' || is_tall_enough(m, u_ld);                                            \
    const bool turned = job_v == 'N' || is_tall_enough(n, vt_ld);                                            \
    return give(handle, m >= n && is_tall_enough(m, ld) && vectors && turned, work, count, [=] {             \
      std::vector<T> own(static_cast<size_t>(std::max(m, 1)) * 40);                                          \
      const int length = static_cast<int>(own.size());                                                       \
      const char left[] = {static_cast<char>(job_u), 0}, right[] = {static_cast<char>(job_v), 0};            \
      lapack(#l "gesvd_", &left[0], &right[0], &m, &n, a, &ld, s, u, &u_ld, vt, &vt_ld, own.data(), &length, \
             info, size_t{1}, size_t{1});                                                                    \
    });                                                                                                      \
  }
TERN_EMULATED(float, S, s)
TERN_EMULATED(double, D, d)
#undef TERN_EMULATED
