// Pages for memory that is about to be filled. A huge page costs a fifth of what its small pages do, unless
// the system has none at hand: a virtual machine may have given its free memory back to its host, in huge
// pages, and gets it again small page by small page, while free small pages are still there.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

namespace tern::io {

/// Watches what huge pages cost and takes small ones when they are dear. Thread-safe; for one file.
class FreshPages {
 public:
  /// Sees to it that `bytes` have pages; bytes in them are lost. Never fails: what it cannot do happens at
  /// the first write.
  void provide(std::span<std::byte> bytes) noexcept;

 private:
  std::atomic<bool> huge_are_dear_{false};
};

}  // namespace tern::io
