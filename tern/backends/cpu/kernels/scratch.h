// Working memory of a kernel, from the CPU's caching allocator.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tern/core/memory.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// `count` uninitialised elements, aligned to 64 bytes at least, until the end of the scope.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count)
      : storage_(count > 0 ? allocate_storage(static_cast<size_t>(count) * sizeof(T), kCPU) : Storage()) {}
  T* get() const { return storage_ ? static_cast<T*>(storage_->data()) : nullptr; }

 private:
  Storage storage_;
};

/// Elements rounded up to whole cache lines.
template <class T>
constexpr int64_t round_to_line(int64_t count) {
  constexpr int64_t kPerLine = 64 / static_cast<int64_t>(sizeof(T));
  return (count + kPerLine - 1) / kPerLine * kPerLine;
}

/// From one plane of `count` elements to the next: so many that the same place of many planes falls into
/// different sets of a cache.
template <class T>
constexpr int64_t plane_step(int64_t count) {
  constexpr int64_t kPerLine = 64 / static_cast<int64_t>(sizeof(T));
  return count % (4 * kPerLine) == 0 ? count + kPerLine : count;
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
