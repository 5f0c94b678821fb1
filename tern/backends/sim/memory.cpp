// Regions of addresses, handed out first fit, and their protection.
#include "tern/backends/sim/memory.h"

#include <sys/mman.h>

#include "tern/base/check.h"

namespace tern::sim {

DeviceMemory::DeviceMemory(size_t limit, bool closes) : limit_(limit), reach_(2 * limit), closes_(closes) {
  void* region = mmap(nullptr, reach_, closes ? PROT_NONE : PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TERN_CHECK(region != MAP_FAILED, OutOfMemoryError,
             "simulated GPUs: the system gives no {} bytes of addresses: ask for less memory", reach_);
  base_ = static_cast<char*>(region);
  // Opening and closing takes time for every page that is there: with huge ones little.
  madvise(region, reach_, MADV_HUGEPAGE);
  gaps_[0] = reach_;
}

DeviceMemory::~DeviceMemory() { munmap(base_, reach_); }

void* DeviceMemory::take(size_t nbytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (nbytes > limit_ - used_) return nullptr;
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    if (gap->second < nbytes) continue;
    const auto [offset, length] = *gap;
    gaps_.erase(gap);
    if (length > nbytes) gaps_[offset + nbytes] = length - nbytes;
    used_ += nbytes;
    return base_ + offset;
  }
  return nullptr;
}

void DeviceMemory::give(void* start, size_t nbytes) noexcept {
  // Pages go back to the system at once.
  madvise(start, nbytes, MADV_DONTNEED);
  const std::lock_guard lock(mutex_);
  const auto offset = static_cast<size_t>(static_cast<char*>(start) - base_);
  used_ -= nbytes;
  auto after = gaps_.lower_bound(offset);
  if (after != gaps_.end() && after->first == offset + nbytes) {
    nbytes += after->second;
    after = gaps_.erase(after);
  }
  if (after != gaps_.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += nbytes;
      return;
    }
  }
  gaps_[offset] = nbytes;
}

size_t DeviceMemory::free_bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return limit_ - used_;
}

bool DeviceMemory::contains(const void* address) const noexcept {
  const auto* place = static_cast<const char*>(address);
  return place >= base_ && place < base_ + reach_;
}

void DeviceMemory::open() noexcept {
  const std::lock_guard lock(access_mutex_);
  if (accesses_++ == 0) mprotect(base_, reach_, PROT_READ | PROT_WRITE);
}

void DeviceMemory::close() noexcept {
  const std::lock_guard lock(access_mutex_);
  if (--accesses_ == 0) mprotect(base_, reach_, PROT_NONE);
}

}  // namespace tern::sim
