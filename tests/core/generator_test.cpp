// Random numbers: Philox's known answers, and the state of a generator.
#include "tern/core/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace tern {
namespace {

using Words = std::array<uint32_t, 4>;

/// From the authors' own table (Random123, kat_vectors, "philox4x32 10").
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, NeighboursDiffer) {
  EXPECT_NE(philox(1, 0), philox(1, 1));
  EXPECT_NE(philox(1, 0), philox(2, 0));
  EXPECT_NE(philox(1, 0, 0), philox(1, 0, 1));
}

TEST(Philox, UniformNumbersStayBelowOne) {
  EXPECT_EQ(uniform_float(0), 0.0f);
  EXPECT_EQ(uniform_float(0xffffffff), 1 - 0x1p-24f);
  EXPECT_EQ(uniform_float(0x80000000), 0.5f);
  EXPECT_EQ(uniform_double(0, 0), 0.0);
  EXPECT_EQ(uniform_double(0xffffffff, 0xffffffff), 1 - 0x1p-53);
  EXPECT_EQ(uniform_double(0x80000000, 0), 0.5);
}

TEST(Generator, CountsWhatIsTaken) {
  Generator generator(42);
  EXPECT_EQ(generator.state(), (Generator::State{42, 0}));
  EXPECT_EQ(generator.reserve(3), (Generator::State{42, 0}));
  EXPECT_EQ(generator.reserve(5), (Generator::State{42, 3}));
  EXPECT_EQ(generator.state(), (Generator::State{42, 8}));
}

TEST(Generator, StateGoesBackAndForth) {
  Generator generator(7);
  generator.reserve(10);
  const Generator::State saved = generator.state();
  const Generator::State first = generator.reserve(4);
  generator.set_state(saved);
  EXPECT_EQ(generator.reserve(4), first);
  generator.manual_seed(7);
  EXPECT_EQ(generator.state(), (Generator::State{7, 0}));
  generator.set_state({~uint64_t{0}, ~uint64_t{0}});
  EXPECT_EQ(generator.state(), (Generator::State{~uint64_t{0}, ~uint64_t{0}}));
}

TEST(Generator, CopiesShareTheirPosition) {
  Generator generator(1);
  Generator copy = generator;
  copy.reserve(5);
  EXPECT_EQ(generator.state().position, 5u);
}

TEST(Generator, ThreadsGetDifferentCounters) {
  Generator generator(1);
  std::vector<uint64_t> firsts[2];
  std::vector<std::thread> threads;
  for (auto& list : firsts)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) list.push_back(generator.reserve(2).position);
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<uint64_t> all = firsts[0];
  all.insert(all.end(), firsts[1].begin(), firsts[1].end());
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], 2 * i);
}

TEST(Generator, TheDefaultOneStartsWithAFixedSeed) {
  const Generator::State before = default_generator().state();
  manual_seed(123);
  EXPECT_EQ(default_generator().state(), (Generator::State{123, 0}));
  const uint64_t drawn = seed();
  EXPECT_EQ(default_generator().state(), (Generator::State{drawn, 0}));
  default_generator().set_state(before);
}

}  // namespace
}  // namespace tern
