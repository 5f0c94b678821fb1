// Which launches come after which, from the memory that they touch.
#include "tern/kernels/launch_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace tern {
namespace {

using Numbers = std::vector<uint32_t>;
using Operands = SmallVector<Operand, 8>;

Operand place(char letter, bool written) {
  return {reinterpret_cast<const void*>(uintptr_t{16} * static_cast<unsigned char>(letter)), 16, written,
          !written};
}

/// "ab<cd" writes a and b and reads c and d.
Operands operands(const std::string& launch) {
  Operands made;
  const size_t from = std::min(launch.find('<'), launch.size());
  for (size_t i = 0; i < launch.size(); ++i)
    if (i != from) made.push_back(place(launch[i], i < from));
  return made;
}

TEST(LaunchOrder, WhatComesAfterWhat) {
  struct Row {
    const char* what;
    std::vector<std::string> launches;
    std::vector<Numbers> after;
    uint32_t depth;
  };
  const Row rows[] = {
      {"a chain", {"b<a", "c<b", "d<c"}, {{}, {0}, {1}}, 3},
      {"two that one needs", {"b<a", "c<a", "d<bc"}, {{}, {}, {0, 1}}, 2},
      {"known from another", {"b<a", "c<b", "d<bc"}, {{}, {0}, {1}}, 3},
      {"a write after a read", {"b<a", "a<c"}, {{}, {0}}, 2},
      {"a write after reads", {"b<a", "c<a", "d<a", "a<e"}, {{}, {}, {}, {0, 1, 2}}, 2},
      {"a write after a write", {"b<a", "b<c"}, {{}, {0}}, 2},
      {"a read after two writes", {"b<a", "b<c", "d<b"}, {{}, {0}, {1}}, 3},
      {"reads of one place", {"b<a", "c<a", "d<a"}, {{}, {}, {}}, 1},
      {"in place", {"a<a", "a<a", "b<a"}, {{}, {0}, {1}}, 3},
      {"one that names nothing", {"b<a", "d<c", "", "f<e"}, {{}, {}, {0, 1}, {2}}, 3},
      {"sums of independent products",
       {"p<a", "n<p", "s<sn", "q<a", "m<q", "s<sm"},
       {{}, {0}, {1}, {}, {3}, {2, 4}},
       4},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    LaunchOrder order;
    std::vector<Numbers> after;
    for (const std::string& launch : row.launches) after.push_back(order.add(operands(launch)));
    EXPECT_EQ(after, row.after);
    EXPECT_EQ(order.depth(), row.depth);
    EXPECT_EQ(order.size(), row.launches.size());
  }
}

TEST(LaunchOrder, PartsOfOneTensorAreApart) {
  static const char bytes[64] = {};
  const auto touch = [](size_t begin, size_t end, bool written) {
    return Operands{{bytes + begin, end - begin, written, !written}};
  };
  LaunchOrder order;
  EXPECT_EQ(order.add(touch(0, 32, true)), Numbers{});
  EXPECT_EQ(order.add(touch(32, 64, true)), Numbers{});
  EXPECT_EQ(order.add(touch(31, 32, false)), Numbers{0});
  EXPECT_EQ(order.add(touch(40, 41, false)), Numbers{1});
  EXPECT_EQ(order.add(touch(30, 50, true)), (Numbers{2, 3}));
  EXPECT_EQ(order.add(touch(0, 30, false)), Numbers{0});
}

TEST(LaunchOrder, NoMoreThanItsLanesSideBySide) {
  LaunchOrder order;
  for (uint32_t i = 0; i < 40; ++i) {
    const Operands own{{reinterpret_cast<const void*>(uintptr_t{16} * (i + 1)), 16, true, false}};
    EXPECT_EQ(order.add(own),
              i < LaunchOrder::kLanes ? Numbers{} : Numbers{i - uint32_t{LaunchOrder::kLanes}});
  }
  EXPECT_EQ(order.depth(), 3u);
}

TEST(LaunchOrder, AllThatMeetInMemoryAreOrderedAndNothingIsSaidTwice) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    const int places = 2 + round;
    LaunchOrder order;
    std::vector<std::string> launches;
    std::vector<std::vector<bool>> reaches;  // of each launch, those before it that it comes after
    for (uint32_t i = 0; i < 200; ++i) {
      std::string launch;
      const auto letter = [&] {
        return static_cast<char>('A' + static_cast<int>(random() % unsigned(places)));
      };
      launch += letter();
      launch += '<';
      for (auto reads = random() % 3; reads > 0; --reads) launch += letter();
      const Numbers after = order.add(operands(launch));
      std::vector<bool> known(i, false);
      for (uint32_t before : after) {
        for (uint32_t other : after) EXPECT_FALSE(other > before && reaches[other][before]) << "said twice";
        known[before] = true;
        for (uint32_t j = 0; j < before; ++j)
          if (reaches[before][j]) known[j] = true;
      }
      for (uint32_t j = 0; j < i; ++j) {
        const bool meet = launches[j].find(launch[0]) != std::string::npos ||
                          launch.find(launches[j][0]) != std::string::npos;
        EXPECT_TRUE(known[j] || !meet) << launches[j] << " and " << launch;
      }
      launches.push_back(launch);
      reaches.push_back(known);
    }
  }
}

}  // namespace
}  // namespace tern
