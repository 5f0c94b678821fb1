// parallel_for: how ranges are cut, exceptions of the workers, numbers of threads.
#include "tern/base/parallel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tern/base/error.h"

namespace tern {
namespace {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

/// The ranges of a loop, in order of their beginnings.
Ranges ranges_of(int64_t count, int64_t grain) {
  Ranges ranges;
  std::mutex mutex;
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    std::lock_guard lock(mutex);
    ranges.emplace_back(begin, end);
  });
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

class Threads : public ::testing::Test {
 protected:
  void SetUp() override { set_thread_local_num_threads(4); }
  void TearDown() override { set_thread_local_num_threads(0); }
};

TEST_F(Threads, RangesAreDisjointAndCoverAll) {
  for (int64_t count : {1, 2, 3, 7, 100, 1001}) {
    for (int64_t grain : {1, 2, 10, 1000}) {
      const Ranges ranges = ranges_of(count, grain);
      int64_t next = 0;
      for (auto [begin, end] : ranges) {
        EXPECT_EQ(begin, next);
        EXPECT_LT(begin, end);
        EXPECT_GE(2 * (end - begin) + 1, std::min(grain, count));
        next = end;
      }
      EXPECT_EQ(next, count);
      EXPECT_LE(ranges.size(), 4u);
      EXPECT_LE(ranges.size(), static_cast<size_t>((count + grain - 1) / grain));
      EXPECT_EQ(ranges, ranges_of(count, grain)) << "they depend on count, grain and threads alone";
    }
  }
}

TEST_F(Threads, KnownCuts) {
  EXPECT_EQ(ranges_of(10, 1), (Ranges{{0, 2}, {2, 5}, {5, 7}, {7, 10}}));
  EXPECT_EQ(ranges_of(10, 5), (Ranges{{0, 5}, {5, 10}}));
  EXPECT_EQ(ranges_of(10, 10), (Ranges{{0, 10}}));
  EXPECT_EQ(ranges_of(2, 1), (Ranges{{0, 1}, {1, 2}}));
}

TEST_F(Threads, NothingIsCalledForNothing) {
  EXPECT_TRUE(ranges_of(0, 1).empty());
  EXPECT_TRUE(ranges_of(-5, 1).empty());
}

TEST_F(Threads, ASmallLoopStaysOnTheCallingThread) {
  std::thread::id id;
  parallel_for(10, 10, [&](int64_t, int64_t) { id = std::this_thread::get_id(); });
  EXPECT_EQ(id, std::this_thread::get_id());
}

TEST_F(Threads, NestedLoopsAreSerial) {
  std::atomic<int> inner_calls{0};
  std::atomic<int64_t> sum{0};
  parallel_for(4, 1, [&](int64_t, int64_t) {
    EXPECT_TRUE(detail::in_parallel_region());
    parallel_for(100, 1, [&](int64_t begin, int64_t end) {
      ++inner_calls;
      for (int64_t i = begin; i < end; ++i) sum += i;
    });
  });
  EXPECT_EQ(inner_calls, 4);
  EXPECT_EQ(sum, 4 * 4950);
  EXPECT_FALSE(detail::in_parallel_region());
}

TEST_F(Threads, ExceptionsOfWorkersComeThroughWithTheirType) {
  for (int64_t failing : {0, 3}) {
    try {
      parallel_for(4, 1, [&](int64_t begin, int64_t) {
        if (begin == failing) throw IndexError("from range " + std::to_string(begin));
      });
      ADD_FAILURE() << "no error was thrown";
    } catch (const IndexError& error) {
      EXPECT_EQ(error.message(), "from range " + std::to_string(failing));
    }
  }
  EXPECT_THROW(parallel_for(4, 1, [](int64_t, int64_t) { throw std::runtime_error("each"); }),
               std::runtime_error);
  EXPECT_EQ(ranges_of(4, 1).size(), 4u) << "the pool goes on";
}

TEST_F(Threads, OtherRangesAreDoneAllTheSame) {
  std::atomic<int> done{0};
  EXPECT_THROW(parallel_for(4, 1,
                            [&](int64_t begin, int64_t) {
                              if (begin == 1) throw ValueError("one");
                              ++done;
                            }),
               ValueError);
  EXPECT_EQ(done, 3);
}

TEST_F(Threads, NumbersAreOfTheThread) {
  EXPECT_EQ(num_threads(), 4);
  int other = 0;
  std::thread([&] { other = num_threads(); }).join();
  set_thread_local_num_threads(0);
  EXPECT_EQ(other, num_threads()) << "another thread has the number of the process";
  EXPECT_THROW(set_num_threads(0), ValueError);
  EXPECT_THROW(set_num_threads(1025), ValueError);
  EXPECT_THROW(set_thread_local_num_threads(-1), ValueError);
}

TEST_F(Threads, OneThreadMeansOneRange) {
  set_thread_local_num_threads(1);
  EXPECT_EQ(ranges_of(1000, 1), (Ranges{{0, 1000}}));
}

TEST_F(Threads, SeveralCallersAtOnce) {
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 3; ++t)
    callers.emplace_back([&] {
      set_thread_local_num_threads(2);
      for (int i = 0; i < 50; ++i)
        parallel_for(1000, 10, [&](int64_t begin, int64_t end) { sum += end - begin; });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 3 * 50 * 1000);
}

TEST(NumThreads, ASuggestionGivesWayToWhatWasSet) {
  if (std::getenv("TERN_NUM_THREADS") || std::getenv("OMP_NUM_THREADS"))
    GTEST_SKIP() << "the environment says how many";
  // In a process of its own, where nothing was set before.
  EXPECT_EXIT(
      {
        suggest_num_threads(3);
        bool right = num_threads() == 3;
        suggest_num_threads(0);
        right &= num_threads() == 1;
        set_num_threads(2);
        suggest_num_threads(3);
        std::exit(right && num_threads() == 2 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(Threads, AForkedProcessGoesOnAlone) {
  const Ranges here = ranges_of(1000, 10);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    ::_exit(ranges_of(1000, 10) == here ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

}  // namespace
}  // namespace tern
