// parallel_for on OpenMP's thread pool.
#include "tern/base/parallel.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "tern/base/check.h"
#include "tern/base/env.h"

namespace tern {
namespace {

int initial_threads() {
  if (auto asked = env_int("TERN_NUM_THREADS", 1, 1024)) return static_cast<int>(*asked);
  return std::clamp(omp_get_max_threads(), 1, 1024);  // OMP_NUM_THREADS too
}

std::atomic<int> process_threads{0};
std::atomic<bool> threads_were_set{false};
thread_local int own_threads = 0;
thread_local bool inside = false;
/// Threads are not copied by fork(), but OpenMP's pool believes in them and would wait for ever.
std::atomic<bool> pool_lost{false};

void run_chunks(int64_t first, int64_t step, int64_t count, int64_t chunks, detail::RangeBody body,
                void* context) {
  for (int64_t c = first; c < chunks; c += step) body(context, count * c / chunks, count * (c + 1) / chunks);
}

}  // namespace

int num_threads() {
  if (own_threads > 0) return own_threads;
  int threads = process_threads.load(std::memory_order_relaxed);
  if (threads == 0) {
    threads = initial_threads();
    process_threads.store(threads, std::memory_order_relaxed);
  }
  return threads;
}

void set_num_threads(int count) {
  TERN_CHECK(count >= 1 && count <= 1024, ValueError, "set_num_threads: expected 1 to 1024 threads, got {}",
             count);
  threads_were_set = true;
  process_threads.store(count, std::memory_order_relaxed);
  own_threads = 0;
  omp_set_num_threads(count);
}

void suggest_num_threads(int count) {
  if (threads_were_set || env_text("TERN_NUM_THREADS") || env_text("OMP_NUM_THREADS")) return;
  set_num_threads(std::clamp(count, 1, 1024));
  threads_were_set = false;
}

void set_thread_local_num_threads(int count) {
  TERN_CHECK(count >= 0 && count <= 1024, ValueError,
             "set_thread_local_num_threads: expected 0 to 1024 threads, got {}", count);
  own_threads = count;
  omp_set_num_threads(num_threads());
}

namespace detail {

bool in_parallel_region() noexcept { return inside; }

void parallel_for_impl(int64_t count, int64_t chunks, RangeBody body, void* context) {
  static std::once_flag watching;
  std::call_once(watching, [] { ::pthread_atfork(nullptr, nullptr, [] { pool_lost.store(true); }); });
  if (pool_lost.load(std::memory_order_relaxed)) return run_chunks(0, 1, count, chunks, body, context);

  std::exception_ptr failure;
  std::mutex failure_mutex;
  int team = static_cast<int>(chunks);
#pragma omp parallel num_threads(team)
  {
    inside = true;
    try {
      // The team may be smaller than asked for: every thread takes its chunks in turn.
      run_chunks(omp_get_thread_num(), omp_get_num_threads(), count, chunks, body, context);
    } catch (...) {
      std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
    inside = false;
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace detail
}  // namespace tern
