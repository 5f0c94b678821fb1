// Every byte remembers who wrote and read it last, in the manner of FastTrack (Flanagan and Freund, 2009):
// as barriers are for whole blocks and blocks run one after the other, one counter is the clock of all.
#include "tests/emulator/races.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#include "tests/emulator/grid.h"

namespace emulator::races {
namespace {

constexpr uint16_t kAtomic = 0x8000, kSeveral = 0xffff;
constexpr size_t kTouched = size_t{64} << 20;

/// Of a byte. Times are of the clock below; 0 is never.
struct Cell {
  uint32_t written, read;
  uint32_t read_before;     ///< by an earlier block than the one that read it last
  uint16_t writer, reader;  ///< numbers in their block
  uint32_t written_from, read_from;
};

struct Range {
  uintptr_t first, last;
  bool shared;
  Cell* cells;

  Range(const void* begin, const void* end, bool is_shared)
      : first(reinterpret_cast<uintptr_t>(begin)), last(reinterpret_cast<uintptr_t>(end)), shared(is_shared) {
    void* made = mmap(nullptr, (last - first + 1) * sizeof(Cell), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) std::abort();
    cells = static_cast<Cell*>(made);
    madvise(made, (last - first + 1) * sizeof(Cell), MADV_HUGEPAGE);
  }
  /// Gives the memory back.
  void forget() const { madvise(cells, (last - first) * sizeof(Cell), MADV_DONTNEED); }
};

struct Races {
  std::vector<Range> ranges;  // few: the GPUs' memory, and the variables of one library
  std::vector<Cell> dynamic;  // of the memory whose size a launch says
  uintptr_t dynamic_first = 0;
  size_t dynamic_nbytes = 0;
  size_t touched = 0;                                 ///< bytes with a history
  uint32_t now = 0, grid_start = 0, block_start = 0;  ///< the clock goes on with every barrier and block
  std::set<std::pair<uint32_t, uint32_t>> told;
  uintptr_t base = 0;  ///< where the kernels' library lies
};

// Never destroyed: kernels may run until the process has ended.
Races& races() {
  static auto* only = new Races;
  return *only;
}

[[gnu::tls_model("initial-exec")]] thread_local bool inside = false;

void end_with_failure() { std::_Exit(66); }

class Check {
 public:
  Check(Access access, const void* from, bool shared)
      : all_(races()), me_(static_cast<uint16_t>(thread_number())), access_(access), shared_(shared) {
    if (all_.base == 0) {
      Dl_info info{};
      dladdr(from, &info);
      all_.base = reinterpret_cast<uintptr_t>(info.dli_fbase);
    }
    from_ = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) - all_.base);
  }

  void at(Cell& cell) const {
    if ((cell.written | cell.read) == 0) ++all_.touched;
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
      tell("is read before any thread of the block writes it", 0);
    if (races_with(cell.written, cell.writer & ~kAtomic)) tell("is written and read", cell.written_from);
    if (cell.read < all_.block_start) cell.read_before = cell.read;
    cell.reader = cell.read == all_.now && cell.reader != me_ ? kSeveral : me_;
    cell.read = all_.now;
    cell.read_from = from_;
  }

  void write(Cell& cell) const {
    const bool atomic = access_ == Access::Atomic;
    if (races_with(cell.written, cell.writer & ~kAtomic) && !(atomic && (cell.writer & kAtomic) != 0))
      tell("is written twice", cell.written_from);
    if (races_with(cell.read, cell.reader) || other_block(cell.read_before))
      tell("is read and written", cell.read_from);
    cell.writer = static_cast<uint16_t>(me_ | (atomic ? kAtomic : 0));
    cell.written = all_.now;
    cell.written_from = from_;
  }

  void tell(const char* what, uint32_t before) const {
    if (!all_.told.insert({before, from_}).second) return;
    if (all_.told.size() == 1) std::atexit(end_with_failure);
    Dl_info info{};
    dladdr(reinterpret_cast<const void*>(all_.base), &info);
    const Position& p = position();
    std::fprintf(
        stderr,
        "CUDA emulator: race: %s memory %s with no __syncthreads() between: thread %u of block (%u, %u, "
        "%u) of %u threads; addr2line -Cfie %s 0x%x 0x%x\n",
        shared_ ? "shared" : "global", what, unsigned{me_}, p.block.x, p.block.y, p.block.z,
        p.block_size.x * p.block_size.y * p.block_size.z, info.dli_fname, before, from_);
  }

  Races& all_;
  uint16_t me_;
  Access access_;
  bool shared_;
  uint32_t from_;
};

}  // namespace

void touch(const void* address, size_t nbytes, Access access, const void* from) noexcept {
  if (!inside) return;
  Races& all = races();
  const auto at = reinterpret_cast<uintptr_t>(address);
  Cell* cells = nullptr;
  bool shared = true;
  if (at - all.dynamic_first < all.dynamic_nbytes) {
    cells = &all.dynamic[at - all.dynamic_first];
  } else {
    for (const Range& range : all.ranges) {
      if (at < range.first || at >= range.last) continue;
      cells = range.cells + (at - range.first);
      shared = range.shared;
    }
  }
  if (cells == nullptr) return;  // the thread's own
  const Check check(access, from, shared);
  for (size_t i = 0; i < nbytes; ++i) check.at(cells[i]);
}

void add_shared(const void* first, const void* last) { races().ranges.emplace_back(first, last, true); }
void add_global(const void* first, const void* last) { races().ranges.emplace_back(first, last, false); }

void grid_begins() {
  Races& all = races();
  if (all.touched > kTouched) {  // what the grids before it did races with nothing any more
    for (const Range& range : all.ranges) range.forget();
    all.touched = 0;
  }
  all.grid_start = all.now + 1;
  inside = true;
}
void block_begins(const void* dynamic_shared, size_t nbytes) {
  Races& all = races();
  all.block_start = ++all.now;
  all.dynamic_first = reinterpret_cast<uintptr_t>(dynamic_shared);
  all.dynamic_nbytes = nbytes;
  if (all.dynamic.size() < nbytes) all.dynamic.resize(nbytes);
}
void barrier() { ++races().now; }
void grid_ends() { inside = false; }

}  // namespace emulator::races
