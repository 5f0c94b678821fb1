// Size classes for small blocks, best fit for large ones.
#include "tern/device/caching_allocator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "tern/base/check.h"
#include "tern/device/recorder.h"
#include "tern/device/size_bins.h"

namespace tern {
namespace {

constexpr size_t kLargestSmall = size_t{64} << 10;
constexpr size_t kSlabBytes = size_t{1} << 20;
constexpr size_t kSmallestSplit = size_t{64} << 10;
constexpr size_t kLargeRounding = 4096;
constexpr size_t kLargestResting = size_t{256} << 10;
constexpr size_t kMostResting = 64;             // at a time, of one step and stream
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
  struct Pool;

  /// A piece of a segment. Free neighbours are always merged. A slab is a large block cut into small ones.
  struct Block {
    char* data = nullptr;
    size_t nbytes = 0;
    Block* previous = nullptr;      // neighbours in the segment (large blocks)
    Block* next = nullptr;          // also: next in a class's free list (small blocks)
    Block* bin_previous = nullptr;  // neighbours among free blocks of about this size
    Block* bin_next = nullptr;
    Block* slab = nullptr;  // of a small block
    int small_class = -1;
    int live_in_slab = 0;
    Pool* pool = nullptr;
    bool free = false;
    bool awaits = false;  // freed, but other streams may still use it
    bool is_slab = false;
    std::unique_ptr<std::vector<Stream>> uses;  // streams other than its own
    alignas(StorageImpl) std::byte storage[sizeof(StorageImpl)];
  };
  struct ByAddress {
    bool operator()(const Block* a, const Block* b) const { return a->data < b->data; }
  };
  struct Slab {
    Block* block;
    std::unique_ptr<Block[]> pieces;
    size_t count;
  };
  /// The free blocks of one stream; those of a recorded step are apart.
  struct Pool {
    Pool(State& owner_, uint16_t stream_, const Recorder* step_)
        : owner(owner_), stream(stream_), step(step_) {}

    State& owner;
    uint16_t stream;
    const Recorder* step;
    std::array<Block*, kNumClasses> small{};
    SizeBins<Block> large;
    /// Of a step: freed while other streams may still use them, at every replay again.
    std::vector<Block*> parked;
    /// Of a step: freed a short while ago, in a ring.
    std::array<Block*, kMostResting> resting{};
    size_t next_to_rest = 0;
  };
  struct Use {
    Stream stream;
    std::shared_ptr<EventRecord> end;
  };
  struct Pending {
    Block* block;
    std::vector<Use> uses;
  };

  State(MemorySource& source_, Device device_, bool pinned_)
      : source(source_), device(device_), pinned(pinned_) {}

  ~State() {
    wait_for_pending();
    release_free_segments();
  }

  Pool& pool_of(uint16_t stream) {
    if (stream >= pools.size()) pools.resize(stream + size_t{1});
    if (!pools[stream]) pools[stream] = std::make_unique<Pool>(*this, stream, nullptr);
    return *pools[stream];
  }

  Pool& pool_of(uint16_t stream, const Recorder* step) {
    if (step == nullptr) [[likely]]
      return pool_of(stream);
    for (const auto& pool : private_pools)
      if (pool->step == step && pool->stream == stream) return *pool;
    return *private_pools.emplace_back(std::make_unique<Pool>(*this, stream, step));
  }

  Storage take(size_t nbytes, uint16_t stream, const Recorder* step) {
    Block* block = nullptr;
    {
      std::lock_guard lock(mutex);
      if (nbytes > kMostBytes) throw_out_of_memory(nbytes);
      if (!pending.empty()) [[unlikely]]
        release_done();
      Pool& pool = pool_of(stream, step);
      if (source.segment_granularity() == 1) [[unlikely]]
        block = take_large(pool, std::max<size_t>(nbytes, 1));
      else if (nbytes <= kLargestSmall)
        block = take_small(pool, size_class(nbytes));
      else
        block = take_large(pool, (nbytes + kLargeRounding - 1) / kLargeRounding * kLargeRounding);
      if (block == nullptr) throw_out_of_memory(nbytes);
      counters.allocated += block->nbytes;
      counters.max_allocated = std::max(counters.max_allocated, counters.allocated);
      ++counters.num_allocations;
    }
    return Storage(new (block->storage)
                       StorageImpl(block->data, nbytes, device, &State::give_back, block, pinned));
  }

  static void give_back(StorageImpl* storage) noexcept {
    auto* block = static_cast<Block*>(storage->context());
    storage->~StorageImpl();
    State& state = block->pool->owner;
    // Before the events that tell when the memory's uses are over, and before the lock: a segment has memory.
    if (block->uses) [[unlikely]]
      if (Recorder* recorder = detail::this_recorder()) recorder->try_end_segment();
    std::lock_guard lock(state.mutex);
    state.counters.allocated -= block->nbytes;
    if (block->uses) [[unlikely]]
      state.wait_for_uses(block);
    else
      state.let_go(block);
  }

  void let_go(Block* block) noexcept {
    Pool& pool = *block->pool;
    if (!pool.step || block->nbytes > kLargestResting || !source.lets_blocks_rest()) [[likely]]
      return make_free(block);
    wake(std::exchange(pool.resting[pool.next_to_rest], block));
    block->awaits = true;
    pool.next_to_rest = (pool.next_to_rest + 1) % kMostResting;
  }

  void wake(Block* block) noexcept {
    if (block == nullptr) return;
    block->awaits = false;
    make_free(block);
  }

  void wake_all(Pool& pool) noexcept {
    for (Block*& block : pool.resting) wake(std::exchange(block, nullptr));
  }

  void make_free(Block* block) noexcept {
    if (block->small_class < 0) return free_large_block(block);
    Block*& head = block->pool->small[static_cast<size_t>(block->small_class)];
    block->next = head;
    head = block;
    --block->slab->live_in_slab;
  }

  void wait_for_uses(Block* block) noexcept {
    Pending waiting{block, {}};
    const std::unique_ptr<std::vector<Stream>> uses = std::move(block->uses);
    try {
      if (block->pool->step) {
        block->pool->parked.push_back(block);
        block->awaits = true;
        return;
      }
      for (Stream stream : *uses)
        if (auto event = source.fence(stream)) waiting.uses.push_back({stream, std::move(event)});
      block->awaits = true;
      pending.push_back(std::move(waiting));
    } catch (...) {  // a device that is gone uses nothing any more
      block->awaits = false;
      make_free(block);
    }
  }

  void release_done() noexcept {
    // Asking costs much where many blocks wait. What a stream has not come to, it has not passed later
    // either.
    std::array<Stream, 4> busy;
    size_t num_busy = 0;
    const auto is_done = [&](const Use& use) {
      const auto end = busy.begin() + static_cast<ptrdiff_t>(num_busy);
      if (std::find(busy.begin(), end, use.stream) != end) return false;
      const bool done = use.end->done();
      if (!done && num_busy < busy.size()) busy[num_busy++] = use.stream;
      return done;
    };
    std::erase_if(pending, [&](Pending& waiting) {
      std::erase_if(waiting.uses, is_done);
      if (!waiting.uses.empty()) return false;
      waiting.block->awaits = false;
      make_free(waiting.block);
      return true;
    });
  }

  void wait_for_pending() noexcept {
    // Not synchronize(), which would take the errors of the work from whoever waits for its results.
    for (const Pending& waiting : pending)
      for (const Use& use : waiting.uses) use.end->wait_until_done();
    release_done();
  }

  Block* take_small(Pool& pool, int index) {
    Block*& head = pool.small[static_cast<size_t>(index)];
    if (head == nullptr && !refill(pool, index) && head == nullptr) return nullptr;
    Block* block = head;
    head = block->next;
    ++block->slab->live_in_slab;
    return block;
  }

  bool refill(Pool& pool, int index) {
    Block* large = take_large(pool, kSlabBytes);
    if (large == nullptr) return false;
    large->is_slab = true;
    size_t piece = class_bytes(index);
    size_t count = kSlabBytes / piece;
    auto pieces = std::make_unique<Block[]>(count);
    for (size_t i = count; i-- > 0;) {
      Block& block = pieces[i];
      block.data = large->data + i * piece;
      block.nbytes = piece;
      block.slab = large;
      block.small_class = index;
      block.pool = &pool;
      block.next = pool.small[static_cast<size_t>(index)];
      pool.small[static_cast<size_t>(index)] = &block;
    }
    slabs.push_back({large, std::move(pieces), count});
    return true;
  }

  Block* take_large(Pool& pool, size_t nbytes) {
    Block* block = pool.large.best_fit(nbytes);
    if (block == nullptr && grow(nbytes, pool)) block = pool.large.best_fit(nbytes);
    if (block == nullptr) {
      ++counters.num_retries;
      wait_for_pending();
      wake_all(pool);
      block = pool.large.best_fit(nbytes);
    }
    if (block == nullptr) {
      release_free_segments();
      if (grow(nbytes, pool)) block = pool.large.best_fit(nbytes);
    }
    if (block == nullptr) return nullptr;
    pool.large.erase(block);
    block->free = false;
    free_bytes -= block->nbytes;
    if (block->nbytes - nbytes >= kSmallestSplit) split(pool, block, nbytes);
    return block;
  }

  void split(Pool& pool, Block* block, size_t nbytes) {
    auto* rest = new Block;
    rest->data = block->data + nbytes;
    rest->nbytes = block->nbytes - nbytes;
    rest->pool = &pool;
    rest->previous = block;
    rest->next = block->next;
    if (rest->next) rest->next->previous = rest;
    block->next = rest;
    block->nbytes = nbytes;
    rest->free = true;
    pool.large.insert(rest);
    free_bytes += rest->nbytes;
  }

  bool grow(size_t nbytes, Pool& pool) {
    size_t granularity = source.segment_granularity();
    size_t segment_bytes = (nbytes + granularity - 1) / granularity * granularity;
    if (limit != 0 && counters.reserved + segment_bytes > limit) return false;
    auto block = std::make_unique<Block>();
    void* segment = source.allocate_segment(segment_bytes);
    if (segment == nullptr) return false;
    block->data = static_cast<char*>(segment);
    block->nbytes = segment_bytes;
    block->pool = &pool;
    block->free = true;
    pool.large.insert(block.get());
    segments.insert(block.release());
    free_bytes += segment_bytes;
    counters.reserved += segment_bytes;
    counters.max_reserved = std::max(counters.max_reserved, counters.reserved);
    ++counters.num_system_allocations;
    return true;
  }

  void free_large_block(Block* block) noexcept {
    auto& free_blocks = block->pool->large;
    block->free = true;
    block->is_slab = false;
    free_bytes += block->nbytes;
    if (Block* before = block->previous; before && before->free) {
      free_blocks.erase(before);
      absorb_next(before);
      block = before;
    }
    if (Block* after = block->next; after && after->free) {
      free_blocks.erase(after);
      absorb_next(block);
    }
    if (free_bytes > source.cache_limit() && is_segment(block) && !block->pool->step)
      free_segment(block);
    else
      free_blocks.insert(block);
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
    segments.erase(block);
    delete block;
  }

  /// A step is gone: its blocks join those of their streams.
  void release_private(const Recorder* step) noexcept {
    std::erase_if(private_pools, [&](const std::unique_ptr<Pool>& pool) {
      if (pool->step != step) return false;
      Pool& common = pool_of(pool->stream);
      for (Block* first : segments)
        for (Block* block = first; block != nullptr && block->pool == pool.get(); block = block->next) {
          if (block->free) {
            pool->large.erase(block);
            common.large.insert(block);
          }
          block->pool = &common;
        }
      for (Slab& slab : slabs)
        for (size_t i = 0; i < slab.count && slab.pieces[i].pool == pool.get(); ++i)
          slab.pieces[i].pool = &common;
      for (size_t i = 0; i < pool->small.size(); ++i) {
        Block** end = &pool->small[i];
        while (*end) end = &(*end)->next;
        *end = common.small[i];
        common.small[i] = pool->small[i];
      }
      wake_all(*pool);
      for (Block* block : pool->parked) wake(block);
      return true;
    });
  }

  size_t private_bytes(const Recorder* step) const {
    size_t sum = 0;
    for (const Block* first : segments)
      if (first->pool->step == step)
        for (const Block* block = first; block != nullptr; block = block->next) sum += block->nbytes;
    return sum;
  }

  void release_free_segments() noexcept {
    for (auto& pool : pools) {
      if (!pool) continue;
      for (Block*& head : pool->small)
        for (Block** link = &head; *link;) {
          if ((*link)->slab->live_in_slab == 0)
            *link = (*link)->next;
          else
            link = &(*link)->next;
        }
    }
    std::erase_if(slabs, [&](Slab& slab) {
      if (slab.block->live_in_slab != 0 || slab.block->pool->step) return false;
      free_large_block(slab.block);
      return true;
    });
    for (auto& pool : pools) {
      if (!pool) continue;
      pool->large.for_each([&](Block* block) {
        if (!is_segment(block)) return;
        pool->large.erase(block);
        free_segment(block);
      });
    }
  }

  [[noreturn]] void throw_out_of_memory(size_t nbytes) {
    ++counters.num_ooms;
    size_t largest = 0;
    for (const auto& pool : pools)
      if (pool) largest = std::max(largest, pool->large.largest());
    TERN_THROW(OutOfMemoryError,
               "out of memory on {}: tried to allocate {} bytes; in use {} bytes, reserved {} bytes, cached "
               "and free {} bytes "
               "(the largest free block has {} bytes). Use smaller batches, or free tensors that are no "
               "longer needed",
               device.str(), nbytes, counters.allocated, counters.reserved, free_bytes, largest);
  }

  MemorySource& source;
  Device device;
  bool pinned;
  mutable std::mutex mutex;
  std::vector<std::unique_ptr<Pool>> pools;  // by stream
  std::vector<std::unique_ptr<Pool>> private_pools;
  std::vector<Slab> slabs;
  std::set<Block*, ByAddress> segments;  // their first blocks
  std::vector<Pending> pending;
  size_t free_bytes = 0;  // in the large blocks of the pools
  size_t limit = 0;
  MemoryStats counters;
};

CachingAllocator::CachingAllocator(MemorySource& source, Device device, bool pinned)
    : state_(std::make_unique<State>(source, device, pinned)) {}
CachingAllocator::~CachingAllocator() = default;

Storage CachingAllocator::allocate(size_t nbytes, uint16_t stream) {
  Recorder* step = detail::this_recorder();
  if (step) [[unlikely]]
    step->allocates_from(*this);
  return state_->take(nbytes, stream, step);
}

Device CachingAllocator::device() const noexcept { return state_->device; }

void CachingAllocator::release_private(const Recorder* step) {
  std::lock_guard lock(state_->mutex);
  state_->release_private(step);
}

size_t CachingAllocator::private_bytes(const Recorder* step) const {
  std::lock_guard lock(state_->mutex);
  return state_->private_bytes(step);
}

void CachingAllocator::record_stream(const StorageImpl& storage, Stream stream) {
  auto* block = static_cast<State::Block*>(storage.context());
  std::lock_guard lock(state_->mutex);
  if (!state_->pinned && stream == Stream{state_->device, block->pool->stream}) return;
  if (!block->uses) block->uses = std::make_unique<std::vector<Stream>>();
  if (std::find(block->uses->begin(), block->uses->end(), stream) == block->uses->end())
    block->uses->push_back(stream);
}

void CachingAllocator::empty_cache() {
  std::lock_guard lock(state_->mutex);
  state_->wait_for_pending();
  state_->release_free_segments();
}

void CachingAllocator::before_fork() { state_->mutex.lock(); }
void CachingAllocator::after_fork() { state_->mutex.unlock(); }

void CachingAllocator::set_limit(size_t nbytes) {
  std::lock_guard lock(state_->mutex);
  state_->limit = nbytes;
}

MemoryStats CachingAllocator::stats() const {
  std::lock_guard lock(state_->mutex);
  return state_->counters;
}

void CachingAllocator::reset_peaks() {
  std::lock_guard lock(state_->mutex);
  state_->counters.max_allocated = state_->counters.allocated;
  state_->counters.max_reserved = state_->counters.reserved;
}

std::vector<MemorySegment> CachingAllocator::snapshot() const {
  std::lock_guard lock(state_->mutex);
  std::vector<MemorySegment> list;
  for (const State::Block* first : state_->segments) {
    MemorySegment segment{reinterpret_cast<uintptr_t>(first->data), 0, first->pool->stream, {}};
    for (const State::Block* block = first; block != nullptr; block = block->next) {
      const bool free = block->free || (block->is_slab && block->live_in_slab == 0);
      segment.nbytes += block->nbytes;
      segment.blocks.push_back({block->nbytes, block->awaits ? MemoryBlock::State::AwaitingEvents
                                               : free        ? MemoryBlock::State::Free
                                                             : MemoryBlock::State::Active});
    }
    list.push_back(std::move(segment));
  }
  return list;
}

}  // namespace tern
