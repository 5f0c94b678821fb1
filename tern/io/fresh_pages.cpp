// Huge pages by touching them, small ones by MADV_POPULATE_WRITE.
#include "tern/io/fresh_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <exception>

namespace tern::io {

#if defined(__linux__) && defined(MADV_POPULATE_WRITE)

namespace {

constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
constexpr uintptr_t kSmallPage = 4096;
/// Either kind of pages is chosen for so much at once: each change of the advice splits the mapping and waits
/// for the threads that fill it.
constexpr uintptr_t kRegion = uintptr_t{64} << 20;
/// What as much memory in small pages takes. A huge page that lies ready takes 0.2 ms, one that the host of a
/// virtual machine must provide first 5 ms.
constexpr int64_t kSmallPagesMicroseconds = 700;
/// What small pages in place of a huge one save up for another try.
constexpr int64_t kTryMicroseconds = 30;

uintptr_t address_of(std::span<std::byte> bytes) { return reinterpret_cast<uintptr_t>(bytes.data()); }
uintptr_t round_up(uintptr_t address, uintptr_t unit) { return (address + unit - 1) & ~(unit - 1); }

void advise(uintptr_t begin, uintptr_t end, int advice) noexcept {
  begin = round_up(begin, kSmallPage);
  end &= ~(kSmallPage - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

}  // namespace

FreshPages::~FreshPages() {
  // The system may join them later.
  for (const auto& [begin, end] : small_) advise(begin, end, MADV_HUGEPAGE);
}

bool FreshPages::are_small(uintptr_t begin, uintptr_t end) {
  const std::lock_guard lock(mutex_);
  if (small_.contains(begin)) return true;
  if (saved_ >= 0) return false;
  small_.emplace(begin, end);
  advise(begin, end, MADV_NOHUGEPAGE);
  return true;
}

void FreshPages::save(int64_t microseconds) {
  const std::lock_guard lock(mutex_);
  saved_ += microseconds;
}

void FreshPages::provide(std::span<std::byte> bytes, std::span<std::byte> storage) noexcept try {
  const uintptr_t first = address_of(storage), last = first + storage.size();
  uintptr_t at = address_of(bytes);
  const uintptr_t end = at + bytes.size();
  const uintptr_t region = at - (at - first) % kRegion;
  while (!are_small(region, std::min(region + kRegion, last))) {
    at = round_up(at, kHugePage);
    if (at >= end) return;
    const auto start = std::chrono::steady_clock::now();
    *reinterpret_cast<volatile std::byte*>(at) = std::byte{0};
    const auto taken =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
    save(kSmallPagesMicroseconds - taken.count());
    ++at;
  }
  advise(at, end, MADV_POPULATE_WRITE);
  save(kTryMicroseconds);
} catch (const std::exception&) {
  // No memory for the notes: the pages come when they are written.
}

#else

FreshPages::~FreshPages() = default;
void FreshPages::provide(std::span<std::byte>, std::span<std::byte>) noexcept {}

#endif

}  // namespace tern::io
