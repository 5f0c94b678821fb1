// Tensors from nothing, from numbers and from foreign memory: the texts in the tables are PyTorch's.
#include "tern/ops/creation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>

#include "tern/ops/copy.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/print.h"
#include "tern/ops/reduce.h"
#include "tests/ops/reduce_testing.h"
#include "tests/support/emulated.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using testing::as;
using ::testing::HasSubstr;
using testing::is_emulated;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct CreationRow {
  const char* name;
  Tensor made;
  const char* text;
};

TEST(Creation, TextsEqualPyTorch) {
  const CreationRow rows[] = {
      {"number", tensor(3.5), "tensor(3.5000)"},
      {"whole number", tensor(3), "tensor(3)"},
      {"bool", tensor(true), "tensor(True)"},
      {"list", tensor({1, 2, 3}), "tensor([1, 2, 3])"},
      {"list of one", tensor({1}), "tensor([1])"},
      {"matrix", tensor({{1.0, 2.0}, {3.0, 4.0}}), "tensor([[1., 2.],\n        [3., 4.]])"},
      {"matrix of one row", tensor({{1, 2}}), "tensor([[1, 2]])"},
      {"deep", tensor({{{1.0}}}), "tensor([[[1.]]])"},
      {"a float makes floats", tensor({1, 2.5}), "tensor([1.0000, 2.5000])"},
      {"an integer makes integers", tensor({true, 2}), "tensor([1, 2])"},
      {"bools", tensor({true, false}), "tensor([ True, False])"},
      {"empty", tensor({}), "tensor([])"},
      {"empty lists", tensor({{}, {}}), "tensor([], size=(2, 0))"},
      {"cut to integers", tensor({1.9, -1.9}, as(int32)), "tensor([ 1, -1], dtype=torch.int32)"},
      {"float overflow", tensor({1e300}), "tensor([inf])"},
      {"vector", tensor(std::vector<double>{1, 2}), "tensor([1., 2.])"},
      {"vector of int", tensor(std::vector<int>{1, 2}), "tensor([1, 2])"},
      {"vector of uint8", tensor(std::vector<uint8_t>{1, 255}), "tensor([  1, 255], dtype=torch.uint8)"},
      {"vector of bool", tensor(std::vector<bool>{true, false}), "tensor([ True, False])"},
      {"vector of vectors", tensor(std::vector<std::vector<float>>{{1, 2}, {3, 4}}),
       "tensor([[1., 2.],\n        [3., 4.]])"},
      {"array", tensor(std::array<int64_t, 2>{3, 4}, as(float64)), "tensor([3., 4.], dtype=torch.float64)"},
      {"vector to int8", tensor(std::vector<float>{-128, 127.9f}, as(int8)),
       "tensor([-128,  127], dtype=torch.int8)"},
      {"zeros", zeros({2, 3}), "tensor([[0., 0., 0.],\n        [0., 0., 0.]])"},
      {"zeros 0-d", zeros({}), "tensor(0.)"},
      {"ones", ones({3}, as(bool_)), "tensor([True, True, True])"},
      {"options", zeros({2}, {.dtype = float64, .device = "cpu", .requires_grad = true}),
       "tensor([0., 0.], dtype=torch.float64, requires_grad=True)"},
      {"full of bool", full({2}, true), "tensor([True, True])"},
      {"full of int", full({2, 2}, 7), "tensor([[7, 7],\n        [7, 7]])"},
      {"full of float", full({}, 1.5), "tensor(1.5000)"},
      {"full of int64", full({1}, int64_t{9007199254740993}), "tensor([9007199254740993])"},
      {"arange", arange(10), "tensor([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])"},
      {"arange of floats", arange(1, 2.5, 0.5), "tensor([1.0000, 1.5000, 2.0000])"},
      {"arange downwards", arange(5, 0, -2), "tensor([5, 3, 1])"},
      {"arange of a fraction", arange(5, 0, -1.5), "tensor([5.0000, 3.5000, 2.0000, 0.5000])"},
      {"arange empty", arange(0), "tensor([], dtype=torch.int64)"},
      {"arange(3.)", arange(3.0), "tensor([0., 1., 2.])"},
      {"arange as float64", arange(0, 5, 2, as(float64)), "tensor([0., 2., 4.], dtype=torch.float64)"},
      {"arange as uint8", arange(1, 4, as(uint8)), "tensor([1, 2, 3], dtype=torch.uint8)"},
      {"arange cut to int64", arange(0, 5, 1.5, as(int64)), "tensor([0, 1, 2, 3])"},
      {"arange ceil", arange(0, 5.5, as(int32)), "tensor([0, 1, 2, 3, 4, 5], dtype=torch.int32)"},
      {"arange(-5, 5, 4)", arange(-5, 5, 4), "tensor([-5, -1,  3])"},
      {"arange beyond double", arange(int64_t{1} << 62, (int64_t{1} << 62) + 3),
       "tensor([4611686018427387904, 4611686018427387905, 4611686018427387906])"},
      {"arange to the last", arange(INT64_MAX - 3, INT64_MAX, 2),
       "tensor([9223372036854775804, 9223372036854775806])"},
      {"arange as float16", arange(0, 3, as(float16)), "tensor([0., 1., 2.], dtype=torch.float16)"},
      {"linspace", linspace(0, 1, 5), "tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])"},
      {"linspace downwards", linspace(1, 0, 3), "tensor([1.0000, 0.5000, 0.0000])"},
      {"linspace of one", linspace(3, 9, 1), "tensor([3.])"},
      {"linspace of none", linspace(0, 1, 0), "tensor([])"},
      {"linspace(-1, 1, 4)", linspace(-1, 1, 4), "tensor([-1.0000, -0.3333,  0.3333,  1.0000])"},
      {"linspace as int64", linspace(0, 10, 4, as(int64)), "tensor([ 0,  3,  6, 10])"},
      {"linspace as int32", linspace(-3, 4, 8, as(int32)),
       "tensor([-3, -2, -1,  0,  1,  2,  3,  4], dtype=torch.int32)"},
      // 8 of its integers are others where products are rounded before they are added.
      {"linspace as int64 of tenths", (linspace(-10, 10, 201, as(int64)) * arange(201)).sum(),
       "tensor(62850)"},
      {"logspace", logspace(0, 2, 3), "tensor([  1.,  10., 100.])"},
      {"logspace of base 2", logspace(-1, 1, 3, 2.0), "tensor([0.5000, 1.0000, 2.0000])"},
      {"logspace of cut ends", logspace(0.5, 5.7, 4, 2.0, as(int64)), "tensor([ 1,  3, 10, 32])"},
      {"eye", eye(3), "tensor([[1., 0., 0.],\n        [0., 1., 0.],\n        [0., 0., 1.]])"},
      {"wide eye", eye(2, 3, as(int64)), "tensor([[1, 0, 0],\n        [0, 1, 0]])"},
      {"tall eye", eye(3, 1), "tensor([[1.],\n        [0.],\n        [0.]])"},
      {"empty eye", eye(0), "tensor([], size=(0, 0))"},
      {"one_hot", one_hot(tensor({0, 2, 1})), "tensor([[1, 0, 0],\n        [0, 0, 1],\n        [0, 1, 0]])"},
      {"one_hot of 3", one_hot(tensor({{1}, {0}}), 3), "tensor([[[0, 1, 0]],\n\n        [[1, 0, 0]]])"},
      {"zeros_like", zeros_like(tensor({1, 2})), "tensor([0, 0])"},
      {"ones_like", ones_like(eye(2).t(), as(float64)),
       "tensor([[1., 1.],\n        [1., 1.]], dtype=torch.float64)"},
      {"full_like", full_like(tensor({1, 2}), 7.9), "tensor([7, 7])"},
  };
  for (const CreationRow& row : rows) EXPECT_EQ(to_string(row.made.cpu()), row.text) << row.name;
  EXPECT_EQ(empty({2, 0, 3}).shape(), Shape({2, 0, 3}));
  EXPECT_EQ(empty_like(tensor({1, 2})).dtype(), int64);
}

TEST(Creation, DefaultDtype) {
  set_default_dtype(float64);
  EXPECT_EQ(tensor({1.0f}).dtype(), float64);
  EXPECT_EQ(zeros({1}).dtype(), float64);
  EXPECT_EQ(full({1}, 0.5).dtype(), float64);
  EXPECT_EQ(arange(0.5).dtype(), float64);
  EXPECT_EQ(full({1}, 1).dtype(), int64);
  set_default_dtype(float32);
}

TEST(Creation, LargeRangesAndFills) {
  // Past the cache, on several threads.
  const int64_t n = is_emulated(get_default_device()) ? 1'000'000 : 10'000'000;
  Tensor x = arange(n, as(float64)).cpu();
  Tensor y = arange(n).cpu();
  for (int64_t i : {int64_t{0}, int64_t{1}, int64_t{4095}, int64_t{123457}, n / 2, n - 1}) {
    EXPECT_EQ(x.data<double>()[i], static_cast<double>(i));
    EXPECT_EQ(y.data<int64_t>()[i], i);
  }
  Tensor line = linspace(0, 1, n).cpu();
  EXPECT_EQ(line.data<float>()[n - 1], 1.0f);
  EXPECT_EQ(line.data<float>()[0], 0.0f);
}

TEST(Creation, ForeignMemory) {
  float numbers[] = {1, 2, 3, 4, 5, 6};
  int released = 0;
  {
    Tensor x = from_blob(numbers, {2, 3}, [&] { ++released; });
    EXPECT_EQ(x.data_ptr(), numbers);
    Tensor row = x[1];
    x = Tensor();
    EXPECT_EQ(released, 0);
    numbers[3] = 40;
    EXPECT_EQ(to_string(row), "tensor([40.,  5.,  6.])");
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(to_string(from_blob(numbers, {3, 2}, {1, 3}, float32)),
            "tensor([[ 1., 40.],\n        [ 2.,  5.],\n        [ 3.,  6.]])");
  auto owner = std::make_shared<std::vector<int64_t>>(std::vector<int64_t>{1, 2, 3});
  std::weak_ptr<std::vector<int64_t>> watch = owner;
  Tensor x = from_blob(std::move(owner), {3});
  EXPECT_EQ(to_string(x), "tensor([1, 2, 3])");
  x = Tensor();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(from_blob(static_cast<float*>(nullptr), {0}).numel(), 0);
}

TEST(Creation, Errors) {
  expect_error<ShapeError>(
      [] {
        tensor({{1, 2, 3}, {1, 2}});
      },
      "tensor: expected sequence of length 3 at dim 1 (got 2)");
  expect_error<ShapeError>(
      [] {
        tensor({{1, 2}, 3});
      },
      "tensor: expected sequence of length 2 at dim 1 (got a number)");
  expect_error<ShapeError>(
      [] {
        tensor({1, {2}});
      },
      "tensor: expected a number at dim 1, got a list of length 1");
  expect_error<ValueError>([] { tensor({300}, as(uint8)); },
                           "tensor: value 300 cannot be converted to type uint8 without overflow");
  expect_error<ValueError>([] { tensor(std::vector<float>{NAN}, as(int64)); },
                           "tensor: value nan cannot be converted to type int64");
  expect_error<ValueError>([] { tensor({uint64_t{1} << 63}); },
                           "tensor: value 9223372036854775808 is larger than int64 holds");
  expect_error<DTypeError>([] { tensor({1}, {.dtype = {}, .device = {}, .requires_grad = true}); },
                           "floating point");
  expect_error<DeviceError>([] { zeros({1}, {.dtype = {}, .device = "cuda:3", .requires_grad = false}); },
                            "cuda:3");
  expect_error<ShapeError>([] { zeros({2, -1}); }, "zeros: a size can not be negative: [2, -1]");
  expect_error<ShapeError>([] { empty({int64_t{1} << 40, int64_t{1} << 40}); }, "empty: too many elements");
  expect_error<ShapeError>(
      [] {
        empty({int64_t{1} << 32, int64_t{1} << 32, 0});
      },
      "empty: too many elements");
  expect_error<OutOfMemoryError>([] { empty({int64_t{1} << 61}); }, "more bytes than there can be");
  expect_error<ValueError>([] { full({1}, 1e10, as(float16)); },
                           "full: value 10000000000 cannot be converted to type float16 without overflow");
  expect_error<ValueError>([] { full({1}, kInfinity, as(int32)); }, "full: value inf");
  expect_error<ValueError>([] { full({1}, -256, as(uint8)); }, "full: value -256");
  expect_error<ValueError>(
      [] { arange(5, 0); },
      "arange: upper bound and lower bound inconsistent with step sign: start 5, end 0, step 1");
  expect_error<ValueError>([] { arange(0, 5, 0); }, "arange: step must be nonzero");
  expect_error<ValueError>([] { arange(0, kInfinity); }, "arange: unsupported range");
  expect_error<ValueError>([] { arange(0, 1e30); }, "arange: invalid size, possible overflow");
  expect_error<DTypeError>([] { arange(0, 3, as(bool_)); },
                           "arange: needs an integer or floating-point dtype, got bool");
  expect_error<ValueError>([] { linspace(0, 1, -1); },
                           "linspace: number of steps must be non-negative, got -1");
  expect_error<ValueError>([] { linspace(0, 256, 3, as(uint8)); },
                           "linspace: value 256 cannot be converted to type uint8 without overflow");
  expect_error<ValueError>([] { linspace(kInfinity, 0, 3, as(int64)); }, "linspace: value inf");
  expect_error<ValueError>([] { linspace(0, 1e40, 3); }, "type float32 without overflow");
  expect_error<ValueError>([] { logspace(0, 300, 3, 10, as(uint8)); }, "logspace: value 300");
  expect_error<DTypeError>([] { logspace(0, 2, 3, 10, as(bool_)); }, "logspace: needs an integer");
  expect_error<ShapeError>([] { eye(-1); }, "eye: sizes must be greater or equal to 0, got n = -1, m = -1");
  expect_error<ShapeError>([] { tril(zeros({3})); },
                           "tril: input tensor must have at least 2 dimensions, got shape [3]");
  expect_error<ValueError>([] { one_hot(tensor({-1})); },
                           "one_hot: class values must be non-negative, found -1");
  expect_error<ValueError>([] { one_hot(tensor({3}), 3); },
                           "one_hot: class values must be smaller than num_classes, found 3");
  expect_error<ValueError>([] { one_hot(zeros({0}, as(int64))); },
                           "one_hot: can not infer total number of classes");
  expect_error<DTypeError>([] { one_hot(tensor({1.0})); },
                           "one_hot: class numbers must be integers, got float32");
  expect_error<ValueError>([] { from_blob(static_cast<float*>(nullptr), {1}); }, "from_blob: null memory");
  alignas(8) char bytes[16] = {};
  expect_error<ValueError>([&] { from_blob(bytes + 1, {1}, float32); },
                           "from_blob: the memory must be aligned to the 4 bytes of float32");
  expect_error<ShapeError>([&] { from_blob(bytes, {2}, {-1}, float32); },
                           "from_blob: strides can not be negative");
}

TEST(Item, NumbersThatDoNotFit) {
  EXPECT_EQ(tensor(300).item<int16_t>(), 300);
  EXPECT_EQ(tensor(-128.9, {.dtype = float64}).item<int8_t>(), -128);
  EXPECT_EQ(full({}, kInfinity).item<float>(), std::numeric_limits<float>::infinity());
  expect_error<ValueError>([] { tensor(300).item<uint8_t>(); }, "value 300 cannot be converted");
  expect_error<ValueError>([] { tensor(-1).item<uint64_t>(); }, "value -1 cannot be converted");
  expect_error<ValueError>([] { tensor(int64_t{1} << 40).item<int>(); }, "without overflow");
  expect_error<ValueError>([] { full({}, std::nan("")).item<int>(); }, "value nan");
  expect_error<ValueError>([] { tensor(0x1p63, {.dtype = float64}).item<int64_t>(); }, "without overflow");
  expect_error<ValueError>([] { tensor(1e300, {.dtype = float64}).item<float>(); }, "value 1e+300");
  expect_error<ValueError>([] { full({1}, UINT64_MAX); }, "without overflow");
}

TEST(OneHot, MoreClassesThanTheDtypeHasNumbers) {
  EXPECT_EQ(sum(one_hot(tensor({5, 7}, {.dtype = uint8}), 300), 1).to_vector<int64_t>(),
            (std::vector<int64_t>{1, 1}));
}

TEST(Linspace, OfIntegersCutsTheEndsFirst) {
  EXPECT_EQ(linspace(0.5, 10.9, 5, {.dtype = int64}).to_vector<int64_t>(),
            (std::vector<int64_t>{0, 2, 5, 7, 10}));
  EXPECT_EQ(linspace(0, 255.5, 3, as(uint8)).to_vector<int64_t>(), (std::vector<int64_t>{0, 127, 255}));
  EXPECT_EQ(linspace(-1, 5, 3, as(uint8)).to_vector<int64_t>(), (std::vector<int64_t>{255, 130, 5}));
}

TEST(Bool, AnyNumberButZeroIsTrue) {
  const Tensor no = tensor({false}), at = tensor({0}), mask = tensor({true});
  struct Row {
    double number;
    bool written;
  };
  for (const Row& row : {Row{0.5, true},
                         {-0.25, true},
                         {1e-320, true},
                         {kInfinity, true},
                         {std::nan(""), true},
                         {2, true},
                         {0, false},
                         {-0.0, false}}) {
    Tensor element = tensor({true, true});
    element[0] = row.number;
    for (const Tensor& y :
         {full({1}, row.number, as(bool_)), full_like(no, row.number), no.clone().fill_(row.number),
          masked_fill(no, mask, row.number), no.clone().masked_fill_(mask, row.number),
          scatter(no, 0, at, row.number), index_fill(no, 0, at, row.number), element,
          tensor({row.number}, as(bool_)), tensor(std::vector<double>{row.number}, as(bool_))})
      EXPECT_EQ(y[0].item<bool>(), row.written) << row.number;
  }
}

}  // namespace
}  // namespace tern
