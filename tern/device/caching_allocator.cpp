// Size classes for small blocks, best fit for large ones.
#include "tern/device/caching_allocator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <new>
#include <set>
#include <vector>

#include "tern/base/check.h"

namespace tern {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kLargestSmall = size_t{64} << 10;
constexpr size_t kSlabBytes = size_t{1} << 20;
constexpr size_t kSmallestSplit = size_t{64} << 10;
constexpr size_t kLargeRounding = 4096;
constexpr size_t kMostBytes = size_t{1} << 62;  // beyond it the rounding up would overflow
constexpr int kNumClasses = 16 + 6 * 4;

/// Multiples of 64 up to 1 KiB, then four classes for every doubling up to 64 KiB.
int size_class(size_t nbytes) {
  if (nbytes <= 1024) return static_cast<int>((std::max<size_t>(nbytes, 1) - 1) / 64);
  int doubling = std::bit_width(nbytes - 1) - 11;
  size_t step = size_t{256} << doubling;
  return 16 + doubling * 4 + static_cast<int>((nbytes - 1 - (size_t{1024} << doubling)) / step);
}

size_t class_bytes(int size_class_index) {
  if (size_class_index < 16) return static_cast<size_t>(size_class_index + 1) * 64;
  int doubling = (size_class_index - 16) / 4;
  return (size_t{1024} << doubling) +
         static_cast<size_t>((size_class_index - 16) % 4 + 1) * (size_t{256} << doubling);
}

}  // namespace

struct CachingAllocator::State {
  /// A piece of a segment. Free neighbours are always merged. A slab is a large block cut into small ones.
  struct Block {
    State* owner = nullptr;
    char* data = nullptr;
    size_t nbytes = 0;
    Block* previous = nullptr;  // neighbours in the segment (large blocks)
    Block* next = nullptr;      // also: next in a class's free list (small blocks)
    Block* slab = nullptr;      // of a small block
    int small_class = -1;
    int live_in_slab = 0;
    bool free = false;
    alignas(StorageImpl) std::byte storage[sizeof(StorageImpl)];
  };
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return a->nbytes != b->nbytes ? a->nbytes < b->nbytes : a->data < b->data;
    }
  };
  struct Slab {
    Block* block;
    std::unique_ptr<Block[]> pieces;
    size_t count;
  };

  State(MemorySource& source_, Device device_) : source(source_), device(device_) {}

  ~State() { release_free_segments(); }

  Storage take(size_t nbytes) {
    Block* block = nullptr;
    {
      std::lock_guard lock(mutex);
      if (nbytes > kMostBytes) throw_out_of_memory(nbytes);
      block = nbytes <= kLargestSmall
                  ? take_small(size_class(nbytes))
                  : take_large((nbytes + kLargeRounding - 1) / kLargeRounding * kLargeRounding);
      if (block == nullptr) throw_out_of_memory(nbytes);
      counters.allocated += block->nbytes;
      counters.max_allocated = std::max(counters.max_allocated, counters.allocated);
      ++counters.num_allocations;
    }
    return Storage(new (block->storage) StorageImpl(block->data, nbytes, device, &State::give_back, block));
  }

  static void give_back(StorageImpl* storage) noexcept {
    auto* block = static_cast<Block*>(storage->context());
    storage->~StorageImpl();
    State& state = *block->owner;
    std::lock_guard lock(state.mutex);
    state.counters.allocated -= block->nbytes;
    if (block->small_class >= 0) {
      block->next = state.free_small[static_cast<size_t>(block->small_class)];
      state.free_small[static_cast<size_t>(block->small_class)] = block;
      --block->slab->live_in_slab;
    } else {
      state.free_large_block(block);
    }
  }

  Block* take_small(int index) {
    Block*& head = free_small[static_cast<size_t>(index)];
    if (head == nullptr && !refill(index)) return nullptr;
    Block* block = head;
    head = block->next;
    ++block->slab->live_in_slab;
    return block;
  }

  bool refill(int index) {
    Block* large = take_large(kSlabBytes);
    if (large == nullptr) return false;
    size_t piece = class_bytes(index);
    size_t count = kSlabBytes / piece;
    auto pieces = std::make_unique<Block[]>(count);
    for (size_t i = count; i-- > 0;) {
      Block& block = pieces[i];
      block.owner = this;
      block.data = large->data + i * piece;
      block.nbytes = piece;
      block.slab = large;
      block.small_class = index;
      block.next = free_small[static_cast<size_t>(index)];
      free_small[static_cast<size_t>(index)] = &block;
    }
    slabs.push_back({large, std::move(pieces), count});
    return true;
  }

  Block* take_large(size_t nbytes) {
    Block* block = best_fit(nbytes);
    if (block == nullptr && (grow(nbytes) || (release_free_segments(), grow(nbytes))))
      block = best_fit(nbytes);
    if (block == nullptr) return nullptr;
    free_large.erase(block);
    block->free = false;
    free_bytes -= block->nbytes;
    if (block->nbytes - nbytes >= kSmallestSplit) split(block, nbytes);
    return block;
  }

  Block* best_fit(size_t nbytes) {
    Block key;
    key.nbytes = nbytes;
    auto found = free_large.lower_bound(&key);
    return found == free_large.end() ? nullptr : *found;
  }

  void split(Block* block, size_t nbytes) {
    auto* rest = new Block;
    rest->owner = this;
    rest->data = block->data + nbytes;
    rest->nbytes = block->nbytes - nbytes;
    rest->previous = block;
    rest->next = block->next;
    if (rest->next) rest->next->previous = rest;
    block->next = rest;
    block->nbytes = nbytes;
    rest->free = true;
    free_large.insert(rest);
    free_bytes += rest->nbytes;
  }

  bool grow(size_t nbytes) {
    size_t granularity = source.segment_granularity();
    size_t segment_bytes = (nbytes + granularity - 1) / granularity * granularity;
    auto block = std::make_unique<Block>();
    void* segment = source.allocate_segment(segment_bytes);
    if (segment == nullptr) return false;
    block->owner = this;
    block->data = static_cast<char*>(segment);
    block->nbytes = segment_bytes;
    block->free = true;
    free_large.insert(block.get());
    block.release();
    free_bytes += segment_bytes;
    counters.reserved += segment_bytes;
    counters.max_reserved = std::max(counters.max_reserved, counters.reserved);
    ++counters.num_system_allocations;
    return true;
  }

  void free_large_block(Block* block) noexcept {
    block->free = true;
    free_bytes += block->nbytes;
    if (Block* before = block->previous; before && before->free) {
      free_large.erase(before);
      absorb_next(before);
      block = before;
    }
    if (Block* after = block->next; after && after->free) {
      free_large.erase(after);
      absorb_next(block);
    }
    if (free_bytes > source.cache_limit() && is_segment(block))
      free_segment(block);
    else
      free_large.insert(block);
  }

  static void absorb_next(Block* block) {
    Block* gone = block->next;
    block->nbytes += gone->nbytes;
    block->next = gone->next;
    if (block->next) block->next->previous = block;
    delete gone;
  }

  static bool is_segment(const Block* block) { return block->previous == nullptr && block->next == nullptr; }

  void free_segment(Block* block) noexcept {
    source.free_segment(block->data, block->nbytes);
    counters.reserved -= block->nbytes;
    free_bytes -= block->nbytes;
    delete block;
  }

  void release_free_segments() noexcept {
    for (auto slab = slabs.begin(); slab != slabs.end();) {
      if (slab->block->live_in_slab != 0) {
        ++slab;
        continue;
      }
      Block** link = &free_small[static_cast<size_t>(slab->pieces[0].small_class)];
      while (*link) {
        if ((*link)->slab == slab->block)
          *link = (*link)->next;
        else
          link = &(*link)->next;
      }
      free_large_block(slab->block);
      slab = slabs.erase(slab);
    }
    for (auto it = free_large.begin(); it != free_large.end();) {
      Block* block = *it;
      if (!is_segment(block)) {
        ++it;
        continue;
      }
      it = free_large.erase(it);
      free_segment(block);
    }
  }

  [[noreturn]] void throw_out_of_memory(size_t nbytes) const {
    size_t largest = free_large.empty() ? 0 : (*free_large.rbegin())->nbytes;
    TERN_THROW(OutOfMemoryError,
               "out of memory on {}: tried to allocate {} bytes; in use {} bytes, reserved {} bytes, cached "
               "and free {} bytes "
               "(the largest free block has {} bytes). Use smaller batches, or free tensors that are no "
               "longer needed",
               device.str(), nbytes, counters.allocated, counters.reserved, free_bytes, largest);
  }

  MemorySource& source;
  Device device;
  mutable std::mutex mutex;
  std::array<Block*, kNumClasses> free_small{};
  std::vector<Slab> slabs;
  std::set<Block*, BySize> free_large;
  size_t free_bytes = 0;  // in free_large
  MemoryStats counters;
};

CachingAllocator::CachingAllocator(MemorySource& source, Device device)
    : state_(std::make_unique<State>(source, device)) {}
CachingAllocator::~CachingAllocator() = default;

Storage CachingAllocator::allocate(size_t nbytes) { return state_->take(nbytes); }

void CachingAllocator::empty_cache() {
  std::lock_guard lock(state_->mutex);
  state_->release_free_segments();
}

MemoryStats CachingAllocator::stats() const {
  std::lock_guard lock(state_->mutex);
  return state_->counters;
}

}  // namespace tern
