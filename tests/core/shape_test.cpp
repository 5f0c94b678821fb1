// Shapes and strides: counts, broadcasting, views without a copy, dimensions counted from the end.
#include "tern/core/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "tern/base/error.h"

namespace tern {
namespace {

TEST(Shape, Numel) {
  EXPECT_EQ(checked_numel({}), 1);
  EXPECT_EQ(checked_numel({2, 3, 4}), 24);
  EXPECT_EQ(checked_numel({2, 0, 4}), 0);
  EXPECT_EQ(checked_numel({0, int64_t{1} << 62}), 0);
  for (const Shape& shape : {Shape{0, int64_t{1} << 62, 4},
                             {int64_t{1} << 32, 0, int64_t{1} << 32},
                             {int64_t{1} << 32, int64_t{1} << 32, 0}})
    EXPECT_THROW(checked_numel(shape), ShapeError) << to_string(shape);
  EXPECT_EQ(checked_numel({int64_t{1} << 31, int64_t{1} << 31}), int64_t{1} << 62);
  EXPECT_THROW(checked_numel({int64_t{1} << 32, int64_t{1} << 31}), ShapeError);
  EXPECT_THROW(checked_numel({2, -1}), ShapeError);
  EXPECT_THROW(checked_numel({0, -1}), ShapeError);
  EXPECT_NO_THROW(checked_numel(std::vector<int64_t>(kMaxRank, 1)));
  EXPECT_THROW(checked_numel(std::vector<int64_t>(kMaxRank + 1, 1)), ShapeError);
}

TEST(Shape, ContiguousStrides) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Strides{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), Strides{});
  EXPECT_EQ(contiguous_strides({5}), (Strides{1}));
  EXPECT_EQ(contiguous_strides({2, 0, 3}), (Strides{3, 3, 1})) << "as PyTorch: a size of 0 counts as 1";
  EXPECT_THROW(contiguous_strides({0, int64_t{1} << 62, 4}), ShapeError);
}

TEST(Shape, IsContiguous) {
  EXPECT_TRUE(is_contiguous({2, 3}, {3, 1}));
  EXPECT_FALSE(is_contiguous({2, 3}, {1, 2}));
  EXPECT_TRUE(is_contiguous({1, 3}, {99, 1})) << "the stride of a size of 1 does not matter";
  EXPECT_TRUE(is_contiguous({0, 3}, {7, 7})) << "nor do any of an empty tensor";
  EXPECT_FALSE(is_contiguous({3}, {2}));
  EXPECT_FALSE(is_contiguous({3}, {0}));
  EXPECT_TRUE(is_contiguous({}, {}));
}

TEST(Shape, WrapDim) {
  EXPECT_EQ(wrap_dim(0, 3, "op"), 0);
  EXPECT_EQ(wrap_dim(-1, 3, "op"), 2);
  EXPECT_EQ(wrap_dim(-3, 3, "op"), 0);
  EXPECT_EQ(wrap_dim(0, 0, "op"), 0);
  EXPECT_EQ(wrap_dim(-1, 0, "op"), 0);
  for (int64_t dim : {int64_t{3}, int64_t{-4}, std::numeric_limits<int64_t>::min()})
    EXPECT_THROW(wrap_dim(dim, 3, "op"), IndexError) << dim;
  try {
    wrap_dim(5, 2, "sum");
  } catch (const IndexError& error) {
    EXPECT_STREQ(error.what(), "sum: Dimension out of range (expected to be in range of [-2, 1], but got 5)");
  }
}

TEST(Shape, Broadcast) {
  struct Row {
    Shape a, b, result;
  };
  const Row rows[] = {{{2, 3}, {2, 3}, {2, 3}},       {{2, 3}, {3}, {2, 3}},
                      {{2, 3}, {}, {2, 3}},           {{2, 1}, {1, 4}, {2, 4}},
                      {{5, 1, 3}, {4, 1}, {5, 4, 3}}, {{1}, {0}, {0}},
                      {{0, 3}, {1, 3}, {0, 3}},       {{}, {}, {}}};
  for (const Row& row : rows) {
    EXPECT_EQ(broadcast_shapes(row.a, row.b, "op"), row.result) << to_string(row.a) << to_string(row.b);
    EXPECT_EQ(broadcast_shapes(row.b, row.a, "op"), row.result) << to_string(row.b) << to_string(row.a);
  }
  EXPECT_THROW(broadcast_shapes({2, 3}, {4}, "op"), ShapeError);
  EXPECT_THROW(broadcast_shapes({0}, {2}, "op"), ShapeError);
  try {
    broadcast_shapes({5, 2, 3}, {4, 3}, "add");
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "add: shapes [5, 2, 3] and [4, 3] do not broadcast: the sizes at dimension 1 differ (2 "
                 "vs 4) and neither is 1");
  }
}

TEST(Shape, ViewStrides) {
  struct Row {
    Shape shape;
    Strides strides;
    Shape target;
    std::optional<Strides> result;
  };
  const Row rows[] = {
      {{2, 3}, {3, 1}, {6}, Strides{1}},
      {{6}, {1}, {2, 3}, Strides{3, 1}},
      {{6}, {2}, {2, 3}, Strides{6, 2}},
      {{2, 3}, {1, 2}, {6}, std::nullopt},               // transposed
      {{2, 3}, {1, 2}, {2, 3, 1}, Strides{1, 2, 2}},     // only a 1 is added
      {{2, 3, 4}, {24, 4, 1}, {2, 12}, Strides{24, 1}},  // a gap stays between the two
      {{2, 3, 4}, {24, 4, 1}, {24}, std::nullopt},
      {{3, 1}, {0, 0}, {3}, Strides{0}},  // expanded
      {{1}, {1}, {}, Strides{}},
      {{}, {}, {1, 1}, Strides{1, 1}},
  };
  for (const Row& row : rows) {
    Strides found;
    const bool possible = view_strides(row.shape, row.strides, row.target, found);
    EXPECT_EQ(possible, row.result.has_value()) << to_string(row.shape) << to_string(row.target);
    if (possible && row.result) {
      EXPECT_EQ(found, *row.result) << to_string(row.shape) << to_string(row.target);
    }
  }
}

TEST(Shape, Text) {
  EXPECT_EQ(to_string({}), "[]");
  EXPECT_EQ(to_string({2}), "[2]");
  EXPECT_EQ(to_string({2, -1, 3}), "[2, -1, 3]");
}

TEST(IntArrayRef, ShowsEveryKindOfList) {
  const std::vector<int64_t> vector = {1, 2};
  const Shape shape = {1, 2};
  const int64_t array[] = {1, 2};
  EXPECT_TRUE(IntArrayRef(vector) == IntArrayRef(shape));
  EXPECT_TRUE(IntArrayRef(array, 2) == IntArrayRef(shape));
  EXPECT_FALSE(IntArrayRef(array, 1) == IntArrayRef(shape));
  EXPECT_TRUE(IntArrayRef().empty());
  EXPECT_EQ(IntArrayRef(vector).to_shape(), shape);
}

}  // namespace
}  // namespace tern
