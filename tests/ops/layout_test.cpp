// Operators that move elements, on sizes and layouts that reach every loop of their kernels: transposed and
// reversed operands, long rows, all item sizes.
#include <gtest/gtest.h>

#include <algorithm>

#include "tern/core/generator.h"
#include "tern/core/philox.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/memory_format.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/shape.h"
#include "tests/support/emulated.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using testing::is_emulated;

const std::vector<DType> kDTypes = {DType::UInt8, DType::Float16, DType::Float32, DType::Float64};

Tensor numbers(IntArrayRef shape, DType dtype) { return randint(0, 100, shape).to(dtype); }

std::vector<double> values(const Tensor& x) { return x.to(DType::Float64).to_vector<double>(); }

TEST(Layout, MemoryFormats) {
  manual_seed(1);
  const struct {
    Shape shape, strides;
    MemoryFormat format;
  } rows[] = {{{2, 3, 4, 5}, {60, 1, 15, 3}, MemoryFormat::ChannelsLast},
              {{2, 3, 4, 5, 6}, {360, 1, 90, 18, 3}, MemoryFormat::ChannelsLast3d}};
  for (const auto& row : rows) {
    const Tensor x = rand(row.shape, {.requires_grad = true}), y = contiguous(x, row.format);
    EXPECT_EQ(y.strides(), row.strides);
    EXPECT_EQ(values(y.detach()), values(x.detach()));
    EXPECT_TRUE(is_contiguous(y, row.format) && is_contiguous(x, MemoryFormat::Contiguous));
    EXPECT_FALSE(is_contiguous(x, row.format) || is_contiguous(y, MemoryFormat::Contiguous));
    EXPECT_TRUE(contiguous(y, row.format).is_same(y));
    EXPECT_EQ(contiguous(y, MemoryFormat::Contiguous).strides(), x.strides());
    mul(y, y).sum().backward();
    EXPECT_EQ(values(x.grad()), values(mul(x.detach(), 2)));
    expect_error<ShapeError>([&] { contiguous(y.select(0, 0), row.format); }, "dimensions, but this one is");
    EXPECT_FALSE(is_contiguous(y.select(0, 0), row.format));
  }
  const Tensor one = rand({2, 1, 4, 5});  // of both formats
  EXPECT_TRUE(contiguous(one, MemoryFormat::ChannelsLast).is_same(one));
  expect_error<ValueError>([&] { contiguous(one, MemoryFormat::Preserve); },
                           "preserve_format keeps what is there");
}

TEST(Layout, TransposedOperands) {
  manual_seed(1);
  for (DType dtype : kDTypes)
    for (auto [rows, columns] : {std::pair{8, 8}, {33, 65}, {100, 300}, {7, 200}}) {
      const Tensor x = numbers({3, rows, columns}, dtype), y = numbers({3, columns, rows}, dtype);
      const Tensor turned = y.transpose(1, 2), dense = clone(turned).contiguous();
      const std::vector<double> sum = values(add(x, dense));
      EXPECT_EQ(values(add(x, turned)), sum);
      EXPECT_EQ(values(add(turned, x)), sum);
      EXPECT_EQ(values(add(turned, turned)), values(add(dense, dense)));
      EXPECT_EQ(values(gt(turned, 50)), values(gt(dense, 50)));
      EXPECT_EQ(values(add(turned, x.slice(2, 0, 1))), values(add(dense, x.slice(2, 0, 1))));
      EXPECT_EQ(values(turned.to(DType::Int32)), values(dense.to(DType::Int32)));
      Tensor target = clone(y).transpose(1, 2);
      target.add_(x);
      EXPECT_EQ(values(target), sum);
    }
}

TEST(Layout, RowsOfEveryLengthAndSpacing) {
  manual_seed(1);
  std::vector<std::pair<int64_t, int64_t>> shapes = {{700, 16}, {5, 17}, {5, 129}};
  if (!is_emulated(get_default_device()))
    for (int64_t columns : {1, 3, 15, 16, 31, 32, 33, 64, 127, 128, 600, 4096, 4097})
      shapes.emplace_back(5, columns);
  for (DType dtype : {DType::Float16, DType::BFloat16, DType::Float32, DType::Int64})
    for (auto [rows, columns] : shapes) {
      const Shape shape = {rows, columns};
      const Tensor wide = numbers({rows, 2 * columns}, dtype);
      const Tensor operands[] = {numbers(shape, dtype), wide.slice(1, 0, columns), numbers({columns}, dtype),
                                 numbers({rows, 1}, dtype), wide.slice(1, 0, {}, 2)};
      for (const Tensor& a : operands)
        for (const Tensor& b : operands) {
          const Tensor dense_a = a.expand(shape).contiguous(), dense_b = b.expand(shape).contiguous();
          const std::vector<double> expected = values(sub(dense_a, dense_b));
          ASSERT_EQ(values(sub(a.expand(shape), b.expand(shape))), expected)
              << rows << " rows of " << columns << " of " << name(dtype);
          Tensor target = numbers({rows, columns + 3}, dtype);
          const std::vector<double> beside = values(target.slice(1, columns));
          Tensor part = target.slice(1, 0, columns);
          part.copy_(a.expand(shape));
          part.sub_(b);
          ASSERT_EQ(values(part), expected)
              << rows << " rows of " << columns << " of " << name(dtype) << ", in place";
          ASSERT_EQ(values(target.slice(1, columns)), beside);
        }
    }
}

TEST(Layout, ReversedAndSteppedCopies) {
  for (DType dtype : kDTypes) {
    const int64_t n = 1027;
    const Tensor x = numbers({5, n}, dtype);
    const std::vector<double> all = values(x);
    const std::vector<double> reversed = values(flip(x, {1})), rolled = values(roll(x, {3}, {1}));
    for (int64_t r = 0; r < 5; ++r)
      for (int64_t i = 0; i < n; ++i) {
        const double value = all[static_cast<size_t>(r * n + i)];
        ASSERT_EQ(reversed[static_cast<size_t>(r * n + n - 1 - i)], value);
        ASSERT_EQ(rolled[static_cast<size_t>(r * n + (i + 3) % n)], value);
      }
    for (int64_t step : {2, 3}) {
      const Tensor part = x.slice(1, 1, n, step);
      const std::vector<double> stepped = values(part.contiguous());
      for (int64_t i = 0; i < part.size(1); ++i)
        ASSERT_EQ(stepped[static_cast<size_t>(i)], all[static_cast<size_t>(1 + i * step)]);
    }
  }
}

TEST(Layout, WhereOfRowsAndNumbers) {
  manual_seed(2);
  for (DType dtype : kDTypes) {
    const Tensor a = numbers({65, 70}, dtype), b = numbers({65, 70}, dtype), chosen = gt(randn({65, 70}), 0);
    const Tensor row = a.slice(0, 0, 1), column = b.slice(1, 0, 1);
    auto expect = [&](const Tensor& condition, const Tensor& x, const Tensor& y, const Tensor& result) {
      const std::vector<double> c = values(expand(condition, {65, 70}).contiguous()),
                                xs = values(expand(x, {65, 70}).contiguous()),
                                ys = values(expand(y, {65, 70}).contiguous()), got = values(result);
      for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], c[i] != 0 ? xs[i] : ys[i]);
    };
    expect(chosen, a, b, where(chosen, a, b));
    expect(chosen, row, column, where(chosen, row, column));
    expect(chosen, column, b, where(chosen, column, b));
    expect(chosen.slice(1, 0, 1), a, b, where(chosen.slice(1, 0, 1), a, b));
    expect(chosen, a, full({1}, 7).to(dtype), where(chosen, a, 7));
    expect(chosen, full({1}, 7).to(dtype), b, where(chosen, 7, b));
  }
}

TEST(Layout, NonzeroOfLongAndShortRows) {
  manual_seed(3);
  for (Shape shape : {Shape{70000}, Shape{3, 50, 3}, Shape{2, 40000}, Shape{5000, 2, 7}}) {
    const Tensor x = gt(randn(shape), 0.5);
    const std::vector<double> all = values(x);
    const std::vector<int64_t> found = nonzero(x).to_vector<int64_t>();
    const size_t rank = shape.size();
    size_t at = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i] == 0) continue;
      int64_t position = 0;
      ASSERT_LE((at + 1) * rank, found.size());
      for (size_t d = 0; d < rank; ++d) position = position * shape[d] + found[at * rank + d];
      ASSERT_EQ(position, static_cast<int64_t>(i));
      ++at;
    }
    EXPECT_EQ(at * rank, found.size());
    EXPECT_EQ(masked_select(x, x).numel(), static_cast<int64_t>(at));
  }
  EXPECT_EQ(nonzero(full({}, 3)).shape(), (Shape{1, 0}));
}

TEST(Layout, AnIndexOutOfRangeAtTheEndOfALongRow) {
  for (int64_t n : {1, 9, 20000}) {
    const Tensor x = numbers({2, 50}, DType::Float32), good = randint(0, 50, {2, n});
    Tensor bad = clone(good);
    bad.select(0, 1).slice(0, n - 1, n).fill_(50);
    expect_error<IndexError>([&] { gather(x, 1, bad); }, "gather: index 50 is out of bounds");
    expect_error<IndexError>([&] { index_select(x, 1, bad.select(0, 1)); }, "index_select: index 50");
    expect_error<IndexError>([&] { scatter_add(x, 1, bad, ones({2, n})); }, "scatter_add: index 50");
    bad.select(0, 1).slice(0, n - 1, n).fill_(-1);
    expect_error<IndexError>([&] { gather(x, 1, bad); }, "gather: index -1 is out of bounds");
    const std::vector<double> all = values(x), got = values(gather(x, 1, good));
    const std::vector<int64_t> index = good.to_vector<int64_t>();
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], all[i / static_cast<size_t>(n) * 50 + static_cast<size_t>(index[i])]);
  }
}

TEST(Layout, PermutationsAreTheOrderOfTheirKeys) {
  for (int64_t n : {1, 2, 700, 2049, 4097, 300001}) {
    manual_seed(11);
    const std::vector<int64_t> order = randperm(n).to_vector<int64_t>();
    std::vector<std::pair<uint64_t, int64_t>> keys;
    for (int64_t i = 0; i < n; ++i) {
      const auto w = philox(11, static_cast<uint64_t>(i / 2));
      keys.emplace_back(i % 2 == 0 ? uint64_t{w[0]} << 32 | w[1] : uint64_t{w[2]} << 32 | w[3], i);
    }
    std::sort(keys.begin(), keys.end());
    for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], keys[i].second);
  }
}

TEST(Layout, CopiesOfMoreDimensionsThanKernelsWalk) {
  const Tensor x = arange(1024).view({2, 2, 2, 2, 2, 2, 2, 2, 2, 2});
  const Tensor mixed = permute(x, {9, 0, 8, 1, 7, 2, 6, 3, 5, 4});
  EXPECT_EQ(contiguous(mixed).view({-1}).to_vector<int64_t>()[1], 32) << "dimension 4 of x comes last";
  EXPECT_TRUE(equal(contiguous(permute(contiguous(mixed), {1, 3, 5, 7, 9, 8, 6, 4, 2, 0})), x));
  EXPECT_EQ(
      contiguous(permute(zeros({0, 2, 2, 2, 2, 2, 2, 2, 2, 2}), {9, 0, 8, 1, 7, 2, 6, 3, 5, 4})).numel(), 0);
}

TEST(Layout, AssignmentToAViewWritesIntoIt) {
  Tensor x = zeros({2, 3}), weight = ones({3}).requires_grad_();
  x[0] = weight * 2;
  x[1][2] = 7;
  x.slice(1, 0, 1) = tensor({5});
  EXPECT_EQ(values(x), (std::vector<double>{5, 2, 2, 5, 0, 7}));
  x.sum().backward();
  EXPECT_EQ(values(weight.grad()), (std::vector<double>{0, 2, 2}));
  Tensor name = x;
  name = zeros({1});
  EXPECT_EQ(x.numel(), 6) << "a name goes to another tensor";
  expect_error<ValueError>([&] { weight.grad() = Tensor(); }, "undefined tensor");
  expect_error<ShapeError>([&] { x[0] = ones({2}); }, "");
}

}  // namespace
}  // namespace tern
