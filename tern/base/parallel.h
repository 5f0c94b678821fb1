// Splitting a range over the cores. One pool for the whole process (OpenMP's); a thread may ask for fewer
// cores than the process has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace tern {

/// Threads that `parallel_for` uses when called from this thread. At first the number of usable cores, or
/// TERN_NUM_THREADS; throws ValueError when that is no number from 1 to 1024.
int num_threads();

/// Sets the number of threads for the calling thread and for threads that have not set their own.
/// Throws ValueError unless 1 <= count <= 1024.
void set_num_threads(int count);

/// The same where nothing else has set it: set_num_threads(), TERN_NUM_THREADS, OMP_NUM_THREADS.
void suggest_num_threads(int count);

/// Sets the number of threads for the calling thread alone; 0 goes back to the process's number.
void set_thread_local_num_threads(int count);

namespace detail {
using RangeBody = void (*)(void* context, int64_t begin, int64_t end);
void parallel_for_impl(int64_t count, int64_t chunks, RangeBody body, void* context);
bool in_parallel_region() noexcept;
}  // namespace detail

/// Calls `body(begin, end)` on disjoint ranges that cover [0, count), of equal length up to one element and
/// of at least half of `grain` elements, at most one per thread. Ranges depend only on count, grain and the
/// number of threads. Serial when called from inside another parallel_for, and in a process that was forked
/// after its parent had used threads. An exception of `body` is rethrown here.
template <class Body>
void parallel_for(int64_t count, int64_t grain, Body&& body) {
  if (count <= 0) return;
  if (count <= grain) {
    body(int64_t{0}, count);
    return;
  }
  int64_t chunks = std::min<int64_t>(num_threads(), (count + grain - 1) / std::max<int64_t>(grain, 1));
  if (chunks <= 1 || detail::in_parallel_region()) {
    body(int64_t{0}, count);
    return;
  }
  using Target = std::remove_reference_t<Body>;
  detail::parallel_for_impl(
      count, chunks,
      [](void* context, int64_t begin, int64_t end) { (*static_cast<Target*>(context))(begin, end); },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

}  // namespace tern
