// Merging of dimensions and walking of rows, against plain loops; output sizes of windows.
#include "tern/kernels/strides.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tern/base/error.h"
#include "tern/kernels/conv.h"
#include "tern/kernels/pool.h"

namespace tern {
namespace {

template <int N>
Geometry<N> collapsed(const Shape& shape, const std::array<Strides, N>& strides) {
  Geometry<N> g;
  const int64_t* pointers[N];
  for (int i = 0; i < N; ++i) pointers[i] = strides[static_cast<size_t>(i)].data();
  collapse(g, shape, pointers);
  return g;
}

TEST(Collapse, MergesWhatLiesTogether) {
  struct Row {
    Shape shape;
    Strides a, b;
    int ndim;
  };
  const Row rows[] = {{{2, 3, 4}, {12, 4, 1}, {12, 4, 1}, 1},  // all dense
                      {{2, 3, 4}, {12, 4, 1}, {0, 4, 1}, 2},   // b broadcasts along the first
                      {{2, 3, 4}, {12, 4, 1}, {0, 0, 1}, 2},
                      {{2, 3, 4}, {12, 4, 1}, {0, 0, 0}, 1},
                      {{3, 2}, {1, 3}, {2, 1}, 2},            // transposed
                      {{2, 1, 3}, {3, 99, 1}, {3, 0, 1}, 1},  // a size of 1 does not matter
                      {{1, 1}, {5, 5}, {7, 7}, 1},
                      {{}, {}, {}, 1},
                      {{4, 6}, {12, 2}, {12, 2}, 1}};
  for (const Row& row : rows) {
    const Geometry<2> g = collapsed<2>(row.shape, {row.a, row.b});
    EXPECT_EQ(g.ndim, row.ndim) << to_string(row.shape) << to_string(row.a) << to_string(row.b);
    EXPECT_EQ(g.numel, checked_numel(row.shape));
  }
}

TEST(Collapse, FlatMeansDenseEverywhere) {
  EXPECT_TRUE((collapsed<2>({2, 3}, {Strides{3, 1}, Strides{3, 1}}).flat()));
  EXPECT_FALSE((collapsed<2>({2, 3}, {Strides{3, 1}, Strides{0, 0}}).flat()));
  EXPECT_FALSE((collapsed<1>({4}, {Strides{2}}).flat()));
  EXPECT_TRUE((collapsed<1>({}, {Strides{}}).flat()));
}

TEST(Collapse, TooManyDimensions) {
  Shape shape(kMaxDims + 1, 2);
  Strides strides(shape.size());
  for (size_t d = 0; d < strides.size(); ++d) strides[d] = 3 << d;  // nothing merges
  EXPECT_THROW(collapsed<1>(shape, {strides}), NotImplementedError);
}

TEST(BroadcastStrides, AreZeroWhereSizesGrow) {
  Strides result(4);
  broadcast_strides({3, 1}, {1, 1}, {5, 2, 3, 4}, result.data());
  EXPECT_EQ(result, (Strides{0, 0, 1, 0}));
  broadcast_strides({1}, {7}, {1, 1, 1, 1}, result.data());
  EXPECT_EQ(result, (Strides{0, 0, 0, 7}));
}

/// Random layouts of two operands: walking any piece visits the same offsets as nested loops.
TEST(WalkRows, VisitsWhatLoopsVisit) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Shape shape;
    std::array<Strides, 2> strides;
    const size_t rank = random() % 5;
    for (size_t d = 0; d < rank; ++d) {
      shape.push_back(1 + static_cast<int64_t>(random() % 4));
      for (Strides& s : strides) s.push_back(static_cast<int64_t>(random() % 7));
    }
    if (round % 2 == 0) strides[0] = contiguous_strides(shape);
    const Geometry<2> g = collapsed<2>(shape, strides);
    std::vector<std::array<int64_t, 2>> expected;
    for (int64_t e = 0; e < g.numel; ++e) {
      std::array<int64_t, 2> offsets = {};
      int64_t rest = e;
      for (size_t d = rank; d-- > 0;) {
        for (size_t i = 0; i < 2; ++i) offsets[i] += rest % shape[d] * strides[i][d];
        rest /= shape[d];
      }
      expected.push_back(offsets);
    }
    const int64_t begin = static_cast<int64_t>(random() % static_cast<uint64_t>(g.numel + 1));
    const int64_t end = begin + static_cast<int64_t>(random() % static_cast<uint64_t>(g.numel - begin + 1));
    std::vector<std::array<int64_t, 2>> visited;
    if (begin < end)
      walk_rows(g, begin, end, [&](const int64_t(&offsets)[2], int64_t count) {
        const int inner = g.ndim - 1;
        for (int64_t i = 0; i < count; ++i)
          visited.push_back({offsets[0] + i * g.strides[0][inner], offsets[1] + i * g.strides[1][inner]});
      });
    EXPECT_EQ(visited, std::vector(expected.begin() + begin, expected.begin() + end)) << to_string(shape);
  }
}

/// PyTorch's: torch.nn.functional.max_pool1d and conv1d of these sizes.
TEST(OutputSize, OfWindows) {
  struct Row {
    int64_t size, kernel, stride, padding, dilation, floor, ceil;
  };
  const Row rows[] = {{7, 3, 2, 0, 1, 3, 3}, {8, 3, 2, 0, 1, 3, 4}, {8, 3, 2, 1, 1, 4, 5},
                      {5, 2, 3, 1, 1, 2, 2}, {4, 4, 1, 0, 1, 1, 1}, {3, 4, 1, 0, 1, 0, 0},
                      {9, 3, 2, 1, 2, 4, 4}, {1, 1, 1, 0, 1, 1, 1}};
  for (const Row& r : rows) {
    EXPECT_EQ(Pool2dShape::output_size(r.size, r.kernel, r.stride, r.padding, r.dilation, false), r.floor)
        << r.size;
    EXPECT_EQ(Pool2dShape::output_size(r.size, r.kernel, r.stride, r.padding, r.dilation, true), r.ceil)
        << r.size;
    EXPECT_EQ(Conv2dShape::output_size(r.size, r.kernel, r.stride, r.padding, r.dilation), r.floor) << r.size;
  }
}

}  // namespace
}  // namespace tern
