// Every word, or byte of one that is not touched as a whole, remembers who wrote and read it last, in the
// manner of FastTrack (Flanagan and Freund, 2009): as barriers are for whole blocks and blocks run one after
// the other, one counter is the clock of all.
#include "tests/emulator/watch.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/emulator/grid.h"
#include "tests/emulator/memory.h"

namespace emulator::watch {
namespace {

constexpr uint16_t kAtomic = 0x8000, kSplit = 0x4000, kThread = 0x3ff;  // in a writer
constexpr uint16_t kSeveral = 0xffff;                                   // as a reader
constexpr size_t kWord = 4;
constexpr size_t kMostCells = size_t{64} << 20;

/// Of a word, or of a byte of one that was not touched as a whole. Times are of the clock below; 0 is never.
struct Cell {
  uint32_t written, read;
  uint32_t read_before;     ///< by an earlier block than the one that read it last
  uint16_t writer, reader;  ///< numbers in their block
  uint32_t written_from, read_from;
};

/// What is remembered of the memory at [first, first + nbytes).
struct Range {
  uintptr_t first;
  size_t nbytes;
  bool shared;
  Cell *words, *bytes;  ///< a byte's counts where its word's is split
  /// Of global memory: how many bytes from each multiple of kAlignment on are allocated.
  uint16_t* live;
  size_t asked_for;  ///< of shared memory: as many bytes may be touched

  Range(const void* begin, size_t count, bool is_shared)
      : first(reinterpret_cast<uintptr_t>(begin)),
        nbytes(count),
        shared(is_shared),
        words(reserve<Cell>(nbytes / kWord + 1)),
        bytes(reserve<Cell>(nbytes + kWord)),
        live(shared ? nullptr : reserve<uint16_t>(nbytes / kAlignment + 1)),
        asked_for(count) {}

  /// Whether [at, end) beyond the first byte may be touched.
  bool is_live(size_t at, size_t end) const {
    if (shared) return end <= asked_for;
    for (size_t slot = at / kAlignment; slot * kAlignment < end; ++slot)
      if (std::min(end - slot * kAlignment, kAlignment) > live[slot]) return false;
    return true;
  }
  void set_live(const void* begin, size_t count, bool is) const {
    size_t slot = (reinterpret_cast<uintptr_t>(begin) - first) / kAlignment;
    for (; count > 0; ++slot) {
      const size_t here = std::min(count, kAlignment);
      live[slot] = static_cast<uint16_t>(is ? here : 0);
      count -= here;
    }
  }

  void forget() const {
    madvise(words, (nbytes / kWord + 1) * sizeof(Cell), MADV_DONTNEED);
    madvise(bytes, (nbytes + kWord) * sizeof(Cell), MADV_DONTNEED);
  }

 private:
  template <class T>
  static T* reserve(size_t count) {
    void* made = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) std::abort();
    madvise(made, count * sizeof(T), MADV_HUGEPAGE);  // or most of the time goes to misses of the TLB
    return static_cast<T*>(made);
  }
};

struct State {
  /// The GPUs' memory, the variables of a library, and before them the memory whose size a launch says.
  std::vector<Range> ranges{Range(nullptr, kDynamicSharedRegion, /*shared=*/true)};
  size_t cells = 0;                                   ///< that hold something
  uint32_t now = 0, grid_start = 0, block_start = 0;  ///< the clock goes on with every barrier and block
  std::set<std::pair<uint32_t, uint32_t>> told;
  uintptr_t base = 0;  ///< where the kernels' library lies
};

// Never destroyed: kernels may run until the process has ended.
State& state() {
  static auto* only = new State;
  return *only;
}

[[gnu::tls_model("initial-exec")]] thread_local bool inside = false;

void end_with_failure() { std::_Exit(66); }

class Check {
 public:
  Check(Access access, const void* from, bool shared)
      : all_(state()), me_(static_cast<uint16_t>(thread_number())), access_(access), shared_(shared) {
    if (all_.base == 0) {
      Dl_info info{};
      dladdr(from, &info);
      all_.base = reinterpret_cast<uintptr_t>(info.dli_fbase);
    }
    from_ = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) - all_.base);
  }

  void beyond_allocations() const {
    tell(shared_ ? "more shared memory is touched than the launch asked for"
                 : "global memory that is not allocated is touched",
         0);
  }

  void at(Cell& cell) const {
    if ((cell.written | cell.read) == 0) ++all_.cells;
    if (access_ == Access::Read)
      read(cell);
    else
      write(cell);
  }

 private:
  /// Whether nothing orders what another thread did then.
  bool races_with(uint32_t then, uint16_t who) const {
    return (then == all_.now && who != me_) || other_block(then);
  }
  bool other_block(uint32_t then) const {
    return !shared_ && then >= all_.grid_start && then < all_.block_start;
  }

  void read(Cell& cell) const {
    if (shared_ && cell.written < all_.block_start)
      tell("shared memory is read before any thread of the block writes it", 0);
    if (races_with(cell.written, cell.writer & kThread))
      tell_of_race("is written and read", cell.written_from);
    if (cell.read < all_.block_start) cell.read_before = cell.read;
    cell.reader = cell.read == all_.now && cell.reader != me_ ? kSeveral : me_;
    cell.read = all_.now;
    cell.read_from = from_;
  }

  void write(Cell& cell) const {
    const bool atomic = access_ == Access::Atomic;
    if (races_with(cell.written, cell.writer & kThread) && !(atomic && (cell.writer & kAtomic) != 0))
      tell_of_race("is written twice", cell.written_from);
    if (races_with(cell.read, cell.reader) || other_block(cell.read_before))
      tell_of_race("is read and written", cell.read_from);
    cell.writer = static_cast<uint16_t>(me_ | (atomic ? kAtomic : 0) | (cell.writer & kSplit));
    cell.written = all_.now;
    cell.written_from = from_;
  }

  void tell_of_race(const char* what, uint32_t before) const {
    tell(std::string(shared_ ? "shared" : "global") + " memory " + what + " with no __syncthreads() between",
         before);
  }

  void tell(const std::string& what, uint32_t before) const {
    if (!all_.told.insert({before, from_}).second) return;
    if (all_.told.size() == 1) std::atexit(end_with_failure);
    Dl_info info{};
    dladdr(reinterpret_cast<const void*>(all_.base), &info);
    const Position& p = position();
    std::fprintf(
        stderr,
        "CUDA emulator: %s: thread %u of block (%u, %u, %u) of %u threads; addr2line -Cfie %s 0x%x 0x%x\n",
        what.c_str(), unsigned{me_}, p.block.x, p.block.y, p.block.z,
        p.block_size.x * p.block_size.y * p.block_size.z, info.dli_fname, before, from_);
  }

  State& all_;
  uint16_t me_;
  Access access_;
  bool shared_;
  uint32_t from_;
};

const Range& global_range() {
  const auto& ranges = state().ranges;
  return *std::find_if(ranges.begin(), ranges.end(), [](const Range& range) { return !range.shared; });
}

}  // namespace

void touch(const void* address, size_t nbytes, Access access, const void* from) noexcept {
  if (!inside) return;
  const auto first = reinterpret_cast<uintptr_t>(address);
  const auto holds = [&](const Range& range) { return first - range.first < range.nbytes; };
  const auto& ranges = state().ranges;
  const auto range = std::find_if(ranges.begin(), ranges.end(), holds);
  if (range == ranges.end()) return;  // the thread's own
  const Check check(access, from, range->shared);
  size_t at = first - range->first;
  const size_t end = at + nbytes;
  if (!range->is_live(at, end)) return check.beyond_allocations();
  while (at < end) {
    Cell& word = range->words[at / kWord];
    const bool split = (word.writer & kSplit) != 0;
    if (!split && at % kWord == 0 && end - at >= kWord) {
      check.at(word);
      at += kWord;
      continue;
    }
    if (!split) {
      word.writer |= kSplit;
      std::fill_n(range->bytes + at / kWord * kWord, kWord, word);
    }
    check.at(range->bytes[at++]);
  }
}

void add_shared(const void* first, size_t nbytes) { state().ranges.emplace_back(first, nbytes, true); }
void add_global(const void* first, size_t nbytes) { state().ranges.emplace_back(first, nbytes, false); }

void allocated(const void* first, size_t nbytes) { global_range().set_live(first, nbytes, true); }
void freed(const void* first, size_t nbytes) { global_range().set_live(first, nbytes, false); }

void grid_begins() {
  State& all = state();
  if (all.cells > kMostCells) {  // what the grids before it did races with nothing any more
    for (const Range& range : all.ranges) range.forget();
    all.cells = 0;
  }
  all.grid_start = all.now + 1;
  inside = true;
}
void block_begins(const void* dynamic_shared, size_t nbytes) {
  State& all = state();
  all.block_start = ++all.now;
  all.ranges[0].first = reinterpret_cast<uintptr_t>(dynamic_shared);
  all.ranges[0].asked_for = nbytes;
}
void barrier() { ++state().now; }
void grid_ends() { inside = false; }

}  // namespace emulator::watch
