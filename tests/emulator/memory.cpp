// cudaMalloc and its kin. Under AddressSanitizer memory comes from its heap, whose red zones show where
// copies and libraries go beyond an allocation; otherwise it is one region that is closed to the host.
#include "tests/emulator/memory.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "tests/emulator/queue.h"
#include "tests/emulator/sanitizer.h"
#include "tests/emulator/settings.h"
#include "tests/emulator/watch.h"

namespace emulator {
namespace {

#if defined(TERN_UNDER_ASAN)
constexpr bool kHeap = true;
#else
constexpr bool kHeap = false;
#endif

/// Memory is opened, closed and given back in whole ones: once one is split, to close it takes longer than
/// most kernels.
constexpr size_t kHugePage = size_t{2} << 20;

struct Allocation {
  size_t nbytes;
  int gpu;
};

struct Memory {
  char* region = nullptr;
  size_t reach = 0;
  std::map<char*, Allocation> live;
  std::map<char*, size_t> pinned;
  std::map<int, size_t> used;
  std::map<char*, size_t> fresh;  ///< allocated since the memory was open last
  int open = 0;
  size_t opened = 0;  ///< of the region, from its start, what is in use

  Memory() {
    if (kHeap) return;
    reach = 2 * settings().memory * static_cast<size_t>(settings().gpus);
    size_t room = reach + kHugePage;
    void* made = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) std::abort();
    region = static_cast<char*>(std::align(kHugePage, reach, made, room));
    madvise(region, reach, MADV_HUGEPAGE);
    watch::add_global(region, reach);
  }

  /// Gives the pages back that nothing else lies on, where there are many: to get them again takes longer.
  static void forget(char* start, size_t nbytes) {
    if (nbytes < size_t{4} << 20) return;
    const auto first = (reinterpret_cast<uintptr_t>(start) + kHugePage - 1) / kHugePage * kHugePage;
    const auto last = (reinterpret_cast<uintptr_t>(start) + nbytes) / kHugePage * kHugePage;
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }

  /// Where the last allocation ends, from the region's start.
  size_t used_reach() const {
    if (live.empty()) return 0;
    const auto& [start, last] = *live.rbegin();
    const size_t end = static_cast<size_t>(start - region) + last.nbytes;
    return std::min((end + kHugePage - 1) / kHugePage * kHugePage, reach);
  }

  /// The first gap that is large enough; null where there is none. What lies next begins a little later, so
  /// that to go beyond an allocation is to touch what is free.
  char* place(size_t nbytes) {
    if (kHeap) {
      void* made = nullptr;
      return posix_memalign(&made, kAlignment, nbytes) == 0 ? static_cast<char*>(made) : nullptr;
    }
    const auto reach_of = [](size_t count) { return (count / kAlignment + 2) * kAlignment; };
    char* at = region + kAlignment;
    for (const auto& [start, allocation] : live) {
      if (static_cast<size_t>(start - at) >= reach_of(nbytes)) return at;
      at = start + reach_of(allocation.nbytes);
    }
    return static_cast<size_t>(region + reach - at) >= reach_of(nbytes) ? at : nullptr;
  }
};

Memory& memory() {
  static auto* only = new Memory;
  return *only;
}

void protect(int access) {
  const Memory& all = memory();
  if (all.opened > 0 && mprotect(all.region, all.opened, access) != 0) std::abort();
}

}  // namespace

OpenMemory::OpenMemory() {
  Memory& all = memory();
  if (all.open++ > 0) return;
  if (!kHeap) all.opened = all.used_reach();
  protect(PROT_READ | PROT_WRITE);
  for (const auto& [start, nbytes] : all.fresh) std::memset(start, 0xa5, nbytes);  // no zeros
  all.fresh.clear();
}
OpenMemory::~OpenMemory() {
  if (--memory().open == 0) protect(PROT_NONE);
}

bool is_pinned(const void* address) {
  const auto& pinned = memory().pinned;
  auto after = pinned.upper_bound(static_cast<char*>(const_cast<void*>(address)));
  if (after == pinned.begin()) return false;
  --after;
  return static_cast<const char*>(address) < after->first + after->second;
}

}  // namespace emulator

using namespace emulator;

cudaError_t cudaMalloc(void** pointer, size_t nbytes) {
  const std::lock_guard lock(big_lock());
  int gpu = 0;
  cudaGetDevice(&gpu);
  Memory& all = memory();
  *pointer = nullptr;
  if (nbytes == 0) return cudaSuccess;
  if (nbytes > settings().memory - all.used[gpu]) return cudaErrorMemoryAllocation;
  char* made = all.place(nbytes);
  if (made == nullptr) return cudaErrorMemoryAllocation;
  all.live[made] = {nbytes, gpu};
  all.used[gpu] += nbytes;
  if (!kHeap) watch::allocated(made, nbytes);
  all.fresh[made] = nbytes;
  *pointer = made;
  return cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  const std::lock_guard lock(big_lock());
  if (pointer == nullptr) return cudaSuccess;
  const auto found = memory().live.find(static_cast<char*>(pointer));
  if (found == memory().live.end()) return cudaErrorInvalidValue;
  finish_all();
  memory().fresh.erase(found->first);
  memory().used[found->second.gpu] -= found->second.nbytes;
  if (kHeap) {
    std::free(pointer);
  } else {
    watch::freed(pointer, found->second.nbytes);
    Memory::forget(found->first, found->second.nbytes);
  }
  memory().live.erase(found);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const std::lock_guard lock(big_lock());
  int gpu = 0;
  cudaGetDevice(&gpu);
  *total = settings().memory;
  *free = *total - memory().used[gpu];
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** pointer, size_t nbytes, unsigned) {
  const std::lock_guard lock(big_lock());
  if (posix_memalign(pointer, kAlignment, nbytes) != 0) return cudaErrorMemoryAllocation;
  memory().pinned[static_cast<char*>(*pointer)] = nbytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* pointer) {
  const std::lock_guard lock(big_lock());
  finish_all();
  if (memory().pinned.erase(static_cast<char*>(pointer)) == 0) return cudaErrorInvalidValue;
  std::free(pointer);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t nbytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const std::lock_guard lock(big_lock());
  // Of memory that is not pinned CUDA takes a copy before it returns, and gives back what has arrived.
  if (kind == cudaMemcpyHostToDevice && !is_pinned(from)) {
    const auto staged = std::make_shared<std::string>(static_cast<const char*>(from), nbytes);
    return enqueue(stream, [=] { std::memcpy(to, staged->data(), nbytes); });
  }
  const cudaError_t error = enqueue(stream, [=] { std::memmove(to, from, nbytes); });
  if (error == cudaSuccess && kind == cudaMemcpyDeviceToHost && !is_pinned(to)) return finish(stream);
  return error;
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t nbytes, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, nbytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t nbytes, cudaStream_t stream) {
  return enqueue(stream, [=] { std::memset(to, value, nbytes); });
}
