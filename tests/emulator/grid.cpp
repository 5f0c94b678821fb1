// Blocks, their barriers and the order of their threads.
#include "tests/emulator/grid.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "tests/emulator/fiber.h"
#include "tests/emulator/settings.h"
#include "tests/emulator/watch.h"

namespace emulator {
namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kMostThreads = 1024;

/// Carries threads: one that never waits leaves the worker to the next thread.
struct Worker {
  std::unique_ptr<Fiber> fiber;
  Position position{};
  unsigned thread = 0;  ///< its number in the block
};

/// Threads that wait for each other, and what they hand over. A slot is written again two meetings later at
/// the earliest, when everyone has read it.
struct Meeting {
  struct Round {
    std::array<uint64_t, kWarp> slots{};  ///< of a warp's lanes
    uint32_t taken = 0;                   ///< a bit for every lane that came
    int votes = 0;
  };
  unsigned members = 0, arrived = 0, number = 0;
  std::vector<Worker*> waiting;
  std::array<Round, 2> rounds;

  void start(unsigned count) {
    members = count;
    arrived = number = 0;
    rounds = {};
  }
};

/// The grid that runs.
class Grid {
 public:
  void run(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()>& thread) {
    thread_ = &thread;
    shared_bytes_ = shared_bytes;
    block_size_ = block;
    grid_size_ = grid;
    count_ = block.x * block.y * block.z;
    if (count_ == 0 || count_ > kMostThreads) fail("a block of a size that no GPU has");
    order_.resize(count_);
    std::iota(order_.begin(), order_.end(), 0u);
    const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
    // Any order is right; a stride that shares no factor with the count visits every block once.
    uint64_t stride = blocks > 1 ? random_() % blocks | 1 : 1;
    while (std::gcd(stride, blocks) != 1) ++stride;
    uint64_t at = random_() % blocks;
    watch::grid_begins();
    for (uint64_t i = 0; i < blocks; ++i, at = (at + stride) % blocks) run_block(at);
    watch::grid_ends();
  }

  const Position& position() const { return running_->position; }
  unsigned thread_number() const { return running_->thread; }
  void* shared() { return shared_.data(); }

  /// Comes to the meeting, does `bring` there, and waits until all have come.
  template <class F>
  const Meeting::Round& meet(Meeting& meeting, const F& bring) {
    Meeting::Round& round = meeting.rounds[meeting.number % 2];
    bring(round);
    if (++meeting.arrived == meeting.members) {
      complete(meeting);
    } else {
      meeting.waiting.push_back(running_);
      running_->fiber->leave();
    }
    return round;
  }
  Meeting& block() { return all_; }
  Meeting& warp() { return warps_[running_->thread / kWarp]; }
  unsigned lane() const { return running_->thread % kWarp; }
  void expect_whole_block() const {
    if (finished_ > 0) fail("__syncthreads() after threads of the block have ended");
  }

 private:
  void run_block(uint64_t number) {
    block_.x = static_cast<unsigned>(number % grid_size_.x);
    block_.y = static_cast<unsigned>(number / grid_size_.x % grid_size_.y);
    block_.z = static_cast<unsigned>(number / grid_size_.x / grid_size_.y);
    std::memset(shared_.data(), 0xff, shared_bytes_);
    watch::block_begins(shared_.data(), shared_bytes_);
    all_.start(count_);
    for (unsigned w = 0; w * kWarp < count_; ++w) warps_[w].start(std::min(kWarp, count_ - w * kWarp));
    std::shuffle(order_.begin(), order_.end(), random_);
    next_ = finished_ = 0;
    while (finished_ < count_) {
      if (next_ < count_ && (ready_.empty() || random_() % 4 != 0)) {
        if (idle_.empty()) make_worker();
        running_ = idle_.back();
        idle_.pop_back();
      } else if (!ready_.empty()) {
        std::swap(ready_[random_() % ready_.size()], ready_.back());
        running_ = ready_.back();
        ready_.pop_back();
      } else {
        fail("threads wait for threads that have ended or wait elsewhere");
      }
      running_->fiber->resume();
    }
  }

  void make_worker() {
    workers_.push_back(std::make_unique<Worker>());
    Worker* worker = workers_.back().get();
    worker->fiber = std::make_unique<Fiber>([this, worker] {
      for (;;) {
        while (next_ < count_) run_thread(*worker, order_[next_++]);
        idle_.push_back(worker);
        worker->fiber->leave();
      }
    });
    idle_.push_back(worker);
  }

  void run_thread(Worker& worker, unsigned thread) {
    worker.thread = thread;
    worker.position = {{thread % block_size_.x, thread / block_size_.x % block_size_.y,
                        thread / block_size_.x / block_size_.y},
                       block_,
                       block_size_,
                       grid_size_};
    (*thread_)();
    ++finished_;
    leave(all_, /*whole=*/true);
    leave(warp(), /*whole=*/false);
  }

  /// A thread has ended. Barriers of the block are for all of it; a warp goes on with the lanes that are
  /// left.
  void leave(Meeting& meeting, bool whole) {
    if (whole && meeting.arrived > 0)
      fail("a thread has ended while others of its block wait at __syncthreads()");
    if (--meeting.members > 0 && meeting.arrived == meeting.members) complete(meeting);
  }

  void complete(Meeting& meeting) {
    if (&meeting == &all_) watch::barrier();
    meeting.arrived = 0;
    Meeting::Round& next = meeting.rounds[++meeting.number % 2];
    next.taken = 0;
    next.votes = 0;
    ready_.insert(ready_.end(), meeting.waiting.begin(), meeting.waiting.end());
    meeting.waiting.clear();
  }

  [[noreturn]] void fail(const char* what) const {
    std::fprintf(stderr, "CUDA emulator: block (%u, %u, %u) of a kernel: %s\n", block_.x, block_.y, block_.z,
                 what);
    std::abort();
  }

  const std::function<void()>* thread_ = nullptr;
  dim3 block_size_, grid_size_;
  uint3 block_{};
  unsigned count_ = 0, next_ = 0, finished_ = 0;
  std::vector<unsigned> order_;
  size_t shared_bytes_ = 0;
  std::vector<float4> shared_ = std::vector<float4>(kDynamicSharedRegion / sizeof(float4));
  Meeting all_;
  std::array<Meeting, kMostThreads / kWarp> warps_;
  Worker* running_ = nullptr;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> idle_, ready_;
  std::minstd_rand random_{static_cast<unsigned>(settings().seed)};
};

Grid& grid() {
  static auto* only = new Grid;
  return *only;
}

}  // namespace

const Position& position() noexcept { return grid().position(); }
unsigned thread_number() noexcept { return grid().thread_number(); }

void run_grid(dim3 size, dim3 block, size_t shared_bytes, const std::function<void()>& thread) {
  grid().run(size, block, shared_bytes, thread);
}

void* dynamic_shared() noexcept { return grid().shared(); }

int sync_block(bool vote) {
  grid().expect_whole_block();
  return grid().meet(grid().block(), [&](Meeting::Round& round) { round.votes += vote; }).votes;
}

uint64_t shuffle(uint64_t value, unsigned source) {
  const Meeting::Round& round = grid().meet(grid().warp(), [&](Meeting::Round& mine) {
    mine.slots[grid().lane()] = value;
    mine.taken |= 1u << grid().lane();
  });
  constexpr uint64_t kGarbage = 0xdeadbeefdeadbeef;
  return source < kWarp && (round.taken >> source & 1) != 0 ? round.slots[source] : kGarbage;
}

uint32_t ballot(bool vote) {
  const Meeting::Round& round = grid().meet(grid().warp(), [&](Meeting::Round& mine) {
    mine.slots[grid().lane()] = vote;
    mine.taken |= 1u << grid().lane();
  });
  uint32_t votes = 0;
  for (unsigned lane = 0; lane < kWarp; ++lane)
    if ((round.taken >> lane & 1) != 0 && round.slots[lane] != 0) votes |= 1u << lane;
  return votes;
}

}  // namespace emulator
