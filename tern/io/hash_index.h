// An index of positions by hash, for lists whose entries are found by key: names in an archive, keys of a
// dict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tern::io {

/// Positions, fewer than 2^31, by the hash of what lies there; who asks compares the keys themselves. One
/// flat table with linear probing: a lookup is one visit to memory, and the table has no node to allocate.
class HashIndex {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  bool empty() const noexcept { return size_ == 0; }
  void clear() {
    slots_.clear();
    size_ = 0;
  }
  /// Makes room for `count` positions.
  void reserve(size_t count) {
    if (2 * count > slots_.size()) rehash(count);
  }

  /// The first position with this hash for which `same(position)` holds, or kNone.
  template <class Same>
  size_t find(size_t hash, Same&& same) const {
    if (slots_.empty()) return kNone;
    const uint32_t mixed = mix(hash);
    for (size_t at = mixed >> shift_; slots_[at].position != kFree; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].mixed == mixed && same(slots_[at].position)) return slots_[at].position;
    return kNone;
  }

  /// Adds a position that is not there yet.
  void insert(size_t hash, size_t position) {
    reserve(size_ + 1);
    place({mix(hash), static_cast<uint32_t>(position)});
    ++size_;
  }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  struct Slot {
    uint32_t mixed = 0;
    uint32_t position = kFree;
  };

  /// Spreads hashes that are plain numbers over the upper bits, which choose the slot.
  static uint32_t mix(uint64_t hash) noexcept {
    return static_cast<uint32_t>((hash ^ hash >> 32) * 0x9e3779b97f4a7c15 >> 32);
  }

  void place(const Slot& slot) {
    size_t at = slot.mixed >> shift_;
    while (slots_[at].position != kFree) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
  void rehash(size_t count) {
    int bits = 5;
    while ((size_t{1} << bits) < 2 * count) ++bits;
    std::vector<Slot> old(size_t{1} << bits);
    old.swap(slots_);
    shift_ = 32 - bits;
    for (const Slot& slot : old)
      if (slot.position != kFree) place(slot);
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
  int shift_ = 32;
};

}  // namespace tern::io
