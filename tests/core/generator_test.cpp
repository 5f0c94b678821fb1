// Random numbers: Philox's known answers, and the state of a generator.
#include "tern/core/generator.h"
#include "tern/core/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tern/base/error.h"
#include "tern/core/mersenne_twister.h"

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

TEST(MersenneTwister, IsTheStandardOne) {
  for (uint32_t seed : {0u, 5489u, 4294967295u}) {
    std::mt19937 standard(seed);
    MersenneTwister twister(seed);
    std::vector<uint32_t> words(1500);
    twister.fill({words.data(), 1000});
    twister.fill({words.data() + 1000, 500});
    for (uint32_t word : words) ASSERT_EQ(word, standard());
    const uint64_t high = standard();
    EXPECT_EQ(twister.next64(), high << 32 | standard());
  }
  EXPECT_EQ(MersenneTwister(uint64_t{1} << 40 | 5).next(), MersenneTwister(5).next())
      << "32 bits of the seed count";
}

TEST(MersenneTwister, GoesOnFromItsBytes) {
  for (size_t drawn : {0u, 1u, 623u, 624u, 625u, 1000u}) {
    MersenneTwister twister(42);
    std::vector<uint32_t> words(drawn);
    twister.fill(words);
    if (drawn == 1000) twister.next_normal = 0.25;
    const std::vector<uint8_t> bytes = twister.bytes();
    ASSERT_EQ(bytes.size(), 5056u);
    MersenneTwister again = MersenneTwister::from_bytes(bytes);
    EXPECT_EQ(again.bytes(), bytes) << drawn;
    EXPECT_EQ(again.seed(), 42u);
    EXPECT_EQ(again.next_normal, twister.next_normal);
    for (int i = 0; i < 700; ++i) ASSERT_EQ(again.next(), twister.next()) << drawn;
  }
}

TEST(MersenneTwister, TakesTheBytesOfOldPyTorch) {
  std::vector<uint8_t> bytes = MersenneTwister(3).bytes();
  bytes.resize(5048);
  const double x = 0.125, rho = 2;
  std::memcpy(&bytes[5016], &x, sizeof x);
  std::memcpy(&bytes[5032], &rho, sizeof rho);
  bytes[5040] = 1;
  MersenneTwister twister = MersenneTwister::from_bytes(bytes);
  ASSERT_TRUE(twister.next_normal);
  EXPECT_NEAR(*twister.next_normal, std::sqrt(2.0), 1e-15);
  EXPECT_EQ(twister.next(), MersenneTwister(3).next());
}

TEST(MersenneTwister, RefusesBytesThatAreNoState) {
  const std::vector<uint8_t> good = MersenneTwister(3).bytes();
  Generator generator(8);
  for (size_t size : {0u, 15u, 17u, 5047u, 5055u, 5057u})
    EXPECT_THROW(generator.set_bytes(std::vector<uint8_t>(size)), ValueError) << size;
  struct Row {
    size_t offset;
    uint8_t value;
  };
  // `left` of 0, 256 and negative; not seeded; `next` that does not fit `left`, or far outside.
  for (Row row : {Row{8, 0}, Row{9, 1}, Row{11, 255}, Row{12, 0}, Row{16, 7}, Row{22, 1}}) {
    std::vector<uint8_t> bytes = good;
    bytes[row.offset] = row.value;
    EXPECT_THROW(generator.set_bytes(bytes), ValueError) << row.offset;
  }
  EXPECT_EQ(generator.state(), (Generator::State{8, 0})) << "nothing is lost";
}

TEST(Generator, WithATwisterKeepsItsEngine) {
  Generator generator(5, RandomEngine::MersenneTwister);
  EXPECT_EQ(generator.engine(), RandomEngine::MersenneTwister);
  EXPECT_EQ(generator.bytes(), MersenneTwister(5).bytes());
  EXPECT_THROW(generator.state(), ValueError);
  MersenneTwister twister(5);
  EXPECT_EQ(generator.reserve(7), (Generator::State{twister.next64(), 0}));
  EXPECT_EQ(generator.reserve(1), (Generator::State{twister.next64(), 0}));
  EXPECT_EQ(generator.bytes(), twister.bytes());
  generator.manual_seed(6);
  EXPECT_EQ(generator.bytes(), MersenneTwister(6).bytes());
  generator.manual_seed(6, RandomEngine::Philox);
  EXPECT_EQ(generator.state(), (Generator::State{6, 0}));
  EXPECT_THROW(generator.with_twister([](MersenneTwister&) {}), ValueError);
  generator.reserve(9);
  Generator other;
  other.set_bytes(generator.bytes());
  EXPECT_EQ(other.state(), (Generator::State{6, 9}));
}

}  // namespace
}  // namespace tern
