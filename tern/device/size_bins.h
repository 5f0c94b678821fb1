// Free blocks sorted into bins by size: insertion, removal and a good fit without searching or allocating.
// After M. Masmano et al., "TLSF: a new dynamic memory allocator for real-time systems", ECRTS 2004.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tern {

/// An intrusive set of blocks, each with `nbytes`, `bin_previous` and `bin_next`. Sixteen bins for every
/// doubling of the size.
template <class Block>
class SizeBins {
 public:
  void insert(Block* block) noexcept {
    const size_t bin = bin_of(block->nbytes);
    block->bin_previous = nullptr;
    block->bin_next = heads_[bin];
    if (heads_[bin]) heads_[bin]->bin_previous = block;
    heads_[bin] = block;
    filled_[bin / 64] |= uint64_t{1} << (bin % 64);
  }

  void erase(Block* block) noexcept {
    if (block->bin_next) block->bin_next->bin_previous = block->bin_previous;
    if (block->bin_previous) {
      block->bin_previous->bin_next = block->bin_next;
      return;
    }
    const size_t bin = bin_of(block->nbytes);
    heads_[bin] = block->bin_next;
    if (!heads_[bin]) filled_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
  }

  /// The smallest of the first blocks in the first bin that has one of at least `nbytes`; null without any.
  Block* best_fit(size_t nbytes) const noexcept {
    size_t bin = bin_of(nbytes);
    if (Block* block = smallest(bin, nbytes)) return block;
    bin = next_filled(bin + 1);
    return bin < kBins ? smallest(bin, nbytes) : nullptr;
  }

  /// The size of the largest block; 0 without any.
  size_t largest() const noexcept {
    size_t result = 0;
    for_each([&](const Block* block) { result = block->nbytes > result ? block->nbytes : result; });
    return result;
  }

  /// Calls `f` with every block; `f` may erase that block.
  template <class F>
  void for_each(F&& f) const {
    for (size_t bin = next_filled(0); bin < kBins; bin = next_filled(bin + 1))
      for (Block* block = heads_[bin]; block;) {
        Block* next = block->bin_next;
        f(block);
        block = next;
      }
  }

 private:
  static constexpr size_t kBins = 64 * 16;
  static constexpr int kMostTried = 32;

  static size_t bin_of(size_t nbytes) noexcept {
    const int doubling = std::bit_width(nbytes | 16) - 1;
    return static_cast<size_t>(doubling) * 16 + (nbytes >> (doubling - 4) & 15);
  }

  size_t next_filled(size_t bin) const noexcept {
    if (bin >= kBins) return kBins;
    uint64_t word = filled_[bin / 64] >> (bin % 64) << (bin % 64);
    for (size_t w = bin / 64;; word = filled_[w]) {
      if (word) return w * 64 + static_cast<size_t>(std::countr_zero(word));
      if (++w == filled_.size()) return kBins;
    }
  }

  Block* smallest(size_t bin, size_t nbytes) const noexcept {
    Block* best = nullptr;
    int tried = 0;
    for (Block* block = heads_[bin]; block && (tried < kMostTried || !best); block = block->bin_next, ++tried)
      if (block->nbytes >= nbytes && (!best || block->nbytes < best->nbytes)) {
        best = block;
        if (block->nbytes == nbytes) break;
      }
    return best;
  }

  std::array<Block*, kBins> heads_{};
  std::array<uint64_t, kBins / 64> filled_{};
};

}  // namespace tern
