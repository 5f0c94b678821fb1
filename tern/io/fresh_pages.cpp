// Huge pages by touching them, small ones by MADV_POPULATE_WRITE.
#include "tern/io/fresh_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tern::io {

#if defined(__linux__) && defined(MADV_POPULATE_WRITE)

namespace {

constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
constexpr uintptr_t kSmallPage = 4096;
/// One that lies ready takes a tenth of that, one that the host must provide twice as much.
constexpr std::chrono::microseconds kDear{2000};

uintptr_t round_up(uintptr_t address, uintptr_t unit) { return (address + unit - 1) & ~(unit - 1); }

void populate(uintptr_t begin, uintptr_t end) noexcept {
  begin = round_up(begin, kSmallPage);
  end &= ~(kSmallPage - 1);
  if (begin >= end) return;
  auto* address = reinterpret_cast<void*>(begin);
  madvise(address, end - begin, MADV_NOHUGEPAGE);
  madvise(address, end - begin, MADV_POPULATE_WRITE);
  // The system may join them later.
  madvise(address, end - begin, MADV_HUGEPAGE);
}

}  // namespace

void FreshPages::provide(std::span<std::byte> bytes) noexcept {
  auto at = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t end = at + bytes.size();
  while (!huge_are_dear_.load(std::memory_order_relaxed)) {
    at = round_up(at, kHugePage);
    if (at >= end) return;
    const auto start = std::chrono::steady_clock::now();
    *reinterpret_cast<volatile std::byte*>(at) = std::byte{0};
    if (std::chrono::steady_clock::now() - start > kDear)
      huge_are_dear_.store(true, std::memory_order_relaxed);
    ++at;
  }
  populate(at, end);
}

#else

void FreshPages::provide(std::span<std::byte>) noexcept {}

#endif

}  // namespace tern::io
