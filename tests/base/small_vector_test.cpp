// SmallVector: its values in place and on the heap, and the way between.
#include "tern/base/small_vector.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace tern {
namespace {

using Small = SmallVector<int64_t, 3>;

std::vector<int64_t> all(const Small& v) { return {v.begin(), v.end()}; }
Small counting(size_t size) {
  Small v(size);
  std::iota(v.begin(), v.end(), 0);
  return v;
}
bool in_place(const Small& v) {
  const auto* begin = reinterpret_cast<const std::byte*>(&v);
  const auto* data = reinterpret_cast<const std::byte*>(v.data());
  return data >= begin && data < begin + sizeof v;
}

TEST(SmallVector, NeedsNoHeapUpToItsSize) {
  Small v = {1, 2, 3};
  EXPECT_TRUE(in_place(v));
  v.push_back(4);
  EXPECT_FALSE(in_place(v));
  EXPECT_EQ(all(v), (std::vector<int64_t>{1, 2, 3, 4}));
  v.pop_back();
  EXPECT_EQ(v.back(), 3);
  EXPECT_FALSE(v.empty());
  v.clear();
  EXPECT_TRUE(v.empty());
}

TEST(SmallVector, GrowsWithItsValues) {
  Small v;
  for (int64_t i = 0; i < 1000; ++i) v.push_back(i);
  EXPECT_EQ(all(v), all(counting(1000)));
  v.resize(2);
  EXPECT_EQ(all(v), (std::vector<int64_t>{0, 1}));
  v.resize(4, 9);
  EXPECT_EQ(all(v), (std::vector<int64_t>{0, 1, 9, 9}));
}

TEST(SmallVector, CopiesAndMovesOfEverySize) {
  for (size_t size : {0, 1, 3, 4, 50}) {
    const Small original = counting(size);
    Small copy = original;
    EXPECT_EQ(copy, original);
    if (size != 0) copy[0] = 7;
    EXPECT_EQ(all(original), all(counting(size))) << "a copy has its own values";
    Small moved = std::move(copy);
    EXPECT_EQ(moved.size(), size);
    EXPECT_TRUE(copy.empty()) << "moved from: empty, and usable";
    copy.push_back(5);
    EXPECT_EQ(all(copy), (std::vector<int64_t>{5}));
    for (size_t other : {0, 2, 60}) {
      Small assigned = counting(other);
      assigned = original;
      EXPECT_EQ(assigned, original);
      Small taken = counting(other);
      taken = std::move(assigned);
      EXPECT_EQ(taken, original);
    }
  }
}

TEST(SmallVector, AssignmentToItself) {
  Small v = counting(5);
  const Small& same = v;
  v = same;
  EXPECT_EQ(all(v), all(counting(5)));
}

TEST(SmallVector, InsertAndErase) {
  Small v = {1, 3};
  v.insert(1, 2);
  v.insert(0, 0);
  v.insert(4, 4);
  EXPECT_EQ(all(v), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  v.erase(0);
  v.erase(3);
  v.erase(1);
  EXPECT_EQ(all(v), (std::vector<int64_t>{1, 3}));
}

TEST(SmallVector, Equality) {
  EXPECT_EQ((Small{1, 2}), (Small{1, 2}));
  EXPECT_NE((Small{1, 2}), (Small{1, 2, 3}));
  EXPECT_NE((Small{1, 2}), (Small{1, 3}));
  EXPECT_EQ(Small(), Small{});
}

}  // namespace
}  // namespace tern
