// Pages for memory that is about to be filled. A huge page costs a fifth of what its small pages do, unless
// the system has none at hand: a virtual machine may have given its free memory back to its host, in huge
// pages, and gets it again small page by small page, while free small pages are still there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

namespace tern::io {

/// Takes huge pages as long as they cost less than small ones on the whole, then small ones, with another try
/// now and then. Thread-safe; for one file.
class FreshPages {
 public:
  FreshPages() = default;
  FreshPages(const FreshPages&) = delete;
  FreshPages& operator=(const FreshPages&) = delete;
  ~FreshPages();

  /// Sees to it that `bytes`, which are a part of `storage`, have pages; bytes in them are lost. Never fails:
  /// what it cannot do happens at the first write.
  void provide(std::span<std::byte> bytes, std::span<std::byte> storage) noexcept;

 private:
  /// Whether the region gets small pages, which is decided here when huge ones have become dear.
  bool are_small(uintptr_t begin, uintptr_t end);
  void save(int64_t microseconds);

  std::mutex mutex_;
  std::map<uintptr_t, uintptr_t> small_;  ///< regions with small pages: begin and end
  int64_t saved_ = 0;                     ///< microseconds that huge pages have saved so far
};

}  // namespace tern::io
