// Descriptions of launches: operations, bytes and operands, one row for each. That kernels keep to them is
// proved in work_proof_test.cpp.
#include "tern/kernels/work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tern/kernels/list.h"
#include "tests/kernels/work_testing.h"

namespace tern::work_testing {
namespace {

TEST(Work, Pointwise) {
  const auto binary = [](BinaryOp op, const void* b, const Geometry<3>& g) {
    BinaryArgs args{};
    args.op = op;
    args.dtype = float32;
    args.out = kOut;
    args.a = kA;
    args.b = b;
    args.geometry = g;
    return args;
  };
  expect_work(kernels::binary, binary(BinaryOp::Add, kB, flat<3>(10)), "add", 10, 120,
              {{kOut, 40, "w"}, {kA, 40, "r"}, {kB, 40, "r"}});
  // A row that broadcasts counts once.
  expect_work(kernels::binary, binary(BinaryOp::Mul, kB, geometry<3>({3, 4}, {{4, 1}, {4, 1}, {0, 1}})),
              "mul", 12, 112, {{kOut, 48, "w"}, {kA, 48, "r"}, {kB, 16, "r"}});
  // Every second column: the span has the gaps, the bytes have not. A comparison writes bools.
  expect_work(kernels::binary, binary(BinaryOp::Lt, nullptr, geometry<3>({3, 4}, {{4, 1}, {8, 2}, {0, 0}})),
              "lt", 12, 60, {{kOut, 12, "w"}, {kA, 92, "r"}});
  expect_work(kernels::binary, binary(BinaryOp::Add, kB, flat<3>(0)), "add", 0, 0, {});

  const UnaryArgs unary{
      .op = UnaryOp::Exp, .dtype = bfloat16, .out = kA, .in = kA, .params = {}, .geometry = flat<2>(6)};
  expect_work(kernels::unary, unary, "exp", 6, 24, {{kA, 12, "w"}, {kA, 12, "r"}});
  const FillArgs fill{.dtype = int64, .value = {}, .out = kOut, .geometry = geometry<1>({2, 3}, {{10, 2}})};
  expect_work(kernels::fill, fill, "fill", 0, 48, {{kOut, 15 * 8, "w"}});
  // Copied backwards: the pointer is to the last element.
  const CopyArgs copy{.out_dtype = float64,
                      .in_dtype = float32,
                      .out = kOut,
                      .in = kA + 16,
                      .geometry = geometry<2>({5}, {{1}, {-1}})};
  expect_work(kernels::copy, copy, "copy", 0, 60, {{kOut, 40, "w"}, {kA, 20, "r"}});
  // Windows that overlap: elements are counted once.
  const CopyArgs windows{.out_dtype = float32,
                         .in_dtype = float32,
                         .out = kOut,
                         .in = kA,
                         .geometry = geometry<2>({3, 4}, {{4, 1}, {1, 1}})};
  expect_work(kernels::copy, windows, "copy", 0, 48 + 24, {{kOut, 48, "w"}, {kA, 24, "r"}});
  const TernaryArgs ternary{.op = TernaryOp::Addcmul,
                            .dtype = float32,
                            .out = kOut,
                            .a = kOut,
                            .b = kA,
                            .c = kB,
                            .value = {},
                            .geometry = geometry<4>({5}, {{1}, {1}, {1}, {0}})};
  expect_work(kernels::ternary, ternary, "addcmul", 5, 64,
              {{kOut, 20, "w"}, {kOut, 20, "r"}, {kA, 20, "r"}, {kB, 4, "r"}});
  const WhereArgs where{.dtype = float32,
                        .out = kOut,
                        .condition = kA,
                        .a = nullptr,
                        .b = kB,
                        .a_scalar = {},
                        .b_scalar = {},
                        .geometry = geometry<4>({5}, {{1}, {1}, {0}, {0}})};
  expect_work(kernels::where, where, "where", 5, 29, {{kOut, 20, "w"}, {kA, 5, "r"}, {kB, 4, "r"}});
}

TEST(Work, CreationAndRandom) {
  RangeArgs range{};
  range.dtype = float32;
  range.out = kOut;
  range.count = 7;
  expect_work(kernels::range, range, "range", 7, 28, {{kOut, 28, "w"}});
  TriangleArgs triangle{float32,     /*upper=*/false, kOut,       kA,
                        /*batch=*/2, /*rows=*/3,      /*cols=*/4, /*diagonal=*/0};
  expect_work(kernels::triangle, triangle, "tril", 0, 96 + 48, {{kOut, 96, "w"}, {kA, 96, "r"}});
  triangle.upper = true;
  triangle.diagonal = 1;
  expect_work(kernels::triangle, triangle, "triu", 0, 96 + 48, {{kOut, 96, "w"}, {kA, 96, "r"}});
  triangle.diagonal = std::numeric_limits<int64_t>::max();
  expect_work(kernels::triangle, triangle, "triu", 0, 96, {{kOut, 96, "w"}, {kA, 96, "r"}});
  triangle.diagonal = std::numeric_limits<int64_t>::min();
  expect_work(kernels::triangle, triangle, "triu", 0, 192, {{kOut, 96, "w"}, {kA, 96, "r"}});

  RandomArgs random{};
  random.distribution = Distribution::Normal;
  random.dtype = float16;
  random.out = kOut;
  random.numel = 9;
  expect_work(kernels::random, random, "normal", 9, 18, {{kOut, 18, "w"}});
  DropoutArgs dropout{};
  dropout.dtype = float32;
  dropout.out = kOut;
  dropout.in = kA;
  dropout.numel = 9;
  expect_work(kernels::dropout, dropout, "dropout", 9, 72, {{kOut, 36, "w"}, {kA, 36, "r"}});
  expect_work(kernels::permutation, {longs(kOut), 5, 0, 0}, "randperm", 0, 40, {{kOut, 40, "w"}});
  const MultinomialArgs multinomial{.out = longs(kOut),
                                    .weights = reinterpret_cast<double*>(kA),
                                    .fault = longs(kB),
                                    .rows = 2,
                                    .categories = 5,
                                    .samples = 3,
                                    .replacement = true,
                                    .seed = 0,
                                    .position = 0};
  expect_work(kernels::multinomial, multinomial, "multinomial", 10, 48 + 8 + 80,
              {{kOut, 48, "w"}, {kB, 8, "w"}, {kA, 80, "r"}});
}

TEST(Work, IndexAndSort) {
  // Three rows of a [5, 4] table.
  IndexGetArgs get{};
  get.dtype = float32;
  get.out = kOut;
  get.in = kA;
  get.dims.op = "embedding";
  get.dims.count = 1;
  get.dims.index[0] = longs(kB);
  get.dims.size[0] = 5;
  get.dims.stride[0] = 4;
  std::vector<std::vector<int64_t>> strides(2 + kMaxIndexTensors, {0, 0});
  strides[0] = {4, 1};
  strides[1] = {0, 1};
  strides[2] = {1, 0};
  get.geometry = geometry<2 + kMaxIndexTensors>({3, 4}, strides);
  expect_work(kernels::index_get, get, "embedding", 0, 48 + 48 + 24,
              {{kOut, 48, "w"}, {kA, 80, "r"}, {kB, 24, "r"}});
  // A hundred rows read no more than the table holds.
  get.geometry = geometry<2 + kMaxIndexTensors>({100, 4}, strides);
  expect_work(kernels::index_get, get, "embedding", 0, 1600 + 80 + 800,
              {{kOut, 1600, "w"}, {kA, 80, "r"}, {kB, 800, "r"}});
  get.geometry = geometry<2 + kMaxIndexTensors>({0, 4}, strides);
  expect_work(kernels::index_get, get, "embedding", 0, 0, {});

  // Three rows of [4] added to a [5, 4] table: free are the columns, addressed the rows.
  IndexPutArgs put{};
  put.dtype = float32;
  put.mode = IndexPutMode::Add;
  put.out = kOut;
  put.source = kA;
  put.dims = get.dims;
  put.dims.op = "index_add";
  std::vector<std::vector<int64_t>> free(2 + kMaxIndexTensors, {0}), addressed(2 + kMaxIndexTensors, {0});
  free[0] = free[1] = {1};
  addressed[1] = {4};
  addressed[2] = {1};
  put.free = geometry<2 + kMaxIndexTensors>({4}, free);
  put.addressed = geometry<2 + kMaxIndexTensors>({3}, addressed);
  expect_work(kernels::index_put, put, "index_add", 12, 96 + 48 + 24,
              {{kOut, 80, "rw"}, {kA, 48, "r"}, {kB, 24, "r"}});
  put.mode = IndexPutMode::Set;
  put.source = nullptr;
  put.dims.op = "index_fill";
  expect_work(kernels::index_put, put, "index_fill", 0, 48 + 24, {{kOut, 80, "w"}, {kB, 24, "r"}});

  expect_work(kernels::nonzero_count, {bool_, kA, longs(kOut), geometry<1>({6}, {{2}})}, "nonzero_count", 0,
              22, {{kA, 11, "r"}, {kOut, 16, "w"}});
  NonzeroArgs nonzero{};
  nonzero.dtype = float32;
  nonzero.rank = 2;
  nonzero.in = kA;
  nonzero.starts = longs(kB);
  nonzero.out = longs(kOut);
  nonzero.count = 3;
  nonzero.row_stride = 2;
  nonzero.column_stride = 1;
  nonzero.geometry = flat<1>(12);
  expect_work(kernels::nonzero, nonzero, "nonzero", 0, 104, {{kOut, 48, "w"}, {kA, 48, "r"}, {kB, 8, "r"}});
  nonzero.count = 0;
  expect_work(kernels::nonzero, nonzero, "nonzero", 0, 56, {{kA, 48, "r"}, {kB, 8, "r"}});
  SearchSortedArgs search{float32,       /*right=*/false,         kA, kB, longs(kOut),
                          /*rows=*/2,    /*row_values=*/3,
                          /*length=*/10, /*sorted_row_stride=*/10};
  expect_work(kernels::searchsorted, search, "searchsorted", 0, 48 + 24 + 80,
              {{kOut, 48, "w"}, {kB, 24, "r"}, {kA, 80, "r"}});
  search.sorted_row_stride = 0;
  expect_work(kernels::searchsorted, search, "searchsorted", 0, 48 + 24 + 40,
              {{kOut, 48, "w"}, {kB, 24, "r"}, {kA, 40, "r"}});
  SortArgs sort{.descending = false,
                .only_last = false,
                .nan_wins = false,
                .dtype = float32,
                .values = kOut,
                .indices = longs(kB),
                .in = kA,
                .outer = 2,
                .size = 5,
                .inner = 3,
                .count = 5};
  expect_work(kernels::sort, sort, "sort", 0, 120 + 240 + 120,
              {{kOut, 120, "w"}, {kB, 240, "w"}, {kA, 120, "r"}});
  sort.count = 2;
  expect_work(kernels::sort, sort, "topk", 0, 48 + 96 + 120,
              {{kOut, 48, "w"}, {kB, 96, "w"}, {kA, 120, "r"}});
  sort.only_last = true;
  expect_work(kernels::sort, sort, "kthvalue", 0, 24 + 48 + 120,
              {{kOut, 24, "w"}, {kB, 48, "w"}, {kA, 120, "r"}});
  sort.nan_wins = true;
  expect_work(kernels::sort, sort, "median", 0, 24 + 48 + 120,
              {{kOut, 24, "w"}, {kB, 48, "w"}, {kA, 120, "r"}});
  sort.count = 0;
  sort.only_last = false;
  expect_work(kernels::sort, sort, "topk", 0, 0, {});
}

TEST(Work, Reduce) {
  // [3, 4] over the rows of a transposed matrix.
  ReduceArgs sum{.op = ReduceOp::Sum,
                 .dtype = float32,
                 .param = 1,
                 .out = kOut,
                 .in = kA,
                 .kept = geometry<1>({3}, {{1}}),
                 .reduced = geometry<1>({4}, {{3}})};
  expect_work(kernels::reduce, sum, "sum", 12, 12 + 48, {{kOut, 12, "w"}, {kA, 48, "r"}});
  sum.param = 4;
  expect_work(kernels::reduce, sum, "mean", 12, 12 + 48, {{kOut, 12, "w"}, {kA, 48, "r"}});
  sum.param = 1;
  sum.dtype = bool_;
  expect_work(kernels::reduce, sum, "sum", 12, 24 + 12, {{kOut, 24, "w"}, {kA, 12, "r"}});
  sum.op = ReduceOp::Norm2;
  sum.dtype = float64;
  expect_work(kernels::reduce, sum, "norm", 24, 24 + 96, {{kOut, 24, "w"}, {kA, 96, "r"}});
  sum.op = ReduceOp::Any;
  sum.reduced = flat<1>(0);  // of nothing: the neutral element is written
  expect_work(kernels::reduce, sum, "any", 0, 3, {{kOut, 3, "w"}});
  sum.kept = flat<1>(0);
  expect_work(kernels::reduce, sum, "any", 0, 0, {});
  ReduceIndexArgs index{true, float32, nullptr, longs(kOut), kA, flat<1>(1), geometry<1>({4}, {{2}})};
  expect_work(kernels::reduce_index, index, "argmax", 4, 8 + 16, {{kOut, 8, "w"}, {kA, 28, "r"}});
  index.values = kB;
  expect_work(kernels::reduce_index, index, "max", 4, 4 + 8 + 16,
              {{kB, 4, "w"}, {kOut, 8, "w"}, {kA, 28, "r"}});
  const MomentsArgs moments{false, float32, 1, kOut, kB, kA, flat<1>(1), flat<1>(6)};
  expect_work(kernels::moments, moments, "var_mean", 24, 8 + 24,
              {{kOut, 4, "w"}, {kB, 4, "w"}, {kA, 24, "r"}});

  expect_work(kernels::softmax, {SoftmaxOp::Softmax, float32, kOut, kA, {2, 5, 3}}, "softmax", 150, 240,
              {{kOut, 120, "w"}, {kA, 120, "r"}});
  expect_work(kernels::softmax, {SoftmaxOp::LogSumExp, float32, kOut, kA, {2, 5, 3}}, "logsumexp", 120, 144,
              {{kOut, 24, "w"}, {kA, 120, "r"}});
  expect_work(kernels::softmax_backward, {SoftmaxOp::LogSoftmax, float16, kOut, kA, kB, {2, 5, 3}},
              "log_softmax_backward", 120, 180, {{kOut, 60, "w"}, {kA, 60, "r"}, {kB, 60, "r"}});
  expect_work(kernels::scan, {ScanOp::Sum, false, int32, kOut, kA, 2, 5, 3}, "cumsum", 30, 240 + 120,
              {{kOut, 240, "w"}, {kA, 120, "r"}});
  expect_work(kernels::scan, {ScanOp::LogSumExp, false, float32, kOut, kA, 2, 5, 3}, "logcumsumexp", 120,
              120 + 120, {{kOut, 120, "w"}, {kA, 120, "r"}});
  expect_work(kernels::scan_extreme, {false, int16, kOut, longs(kB), kA, 2, 5, 3}, "cummin", 30,
              60 + 240 + 60, {{kOut, 60, "w"}, {kB, 240, "w"}, {kA, 60, "r"}});
  expect_work(kernels::prod_backward, {false, float32, kOut, kA, kB, 2, 5, 3}, "prod_backward", 120,
              120 + 24 + 120, {{kOut, 120, "w"}, {kA, 24, "r"}, {kB, 120, "r"}});
}

TEST(Work, Products) {
  MatmulArgs matmul;
  matmul.dtype = float32;
  matmul.m = 2;
  matmul.k = 3;
  matmul.n = 4;
  matmul.a = kA;  // transposed
  matmul.a_row_stride = 1;
  matmul.a_col_stride = 2;
  matmul.b = kB;
  matmul.b_row_stride = 4;
  matmul.b_col_stride = 1;
  matmul.out = kOut;
  matmul.out_row_stride = 4;
  expect_work(kernels::matmul, matmul, "matmul", 48, 32 + 24 + 48,
              {{kOut, 32, "w"}, {kA, 24, "r"}, {kB, 48, "r"}});
  matmul.addend = kC;  // a bias
  matmul.addend_col_stride = 1;
  expect_work(kernels::matmul, matmul, "addmm", 48, 32 + 24 + 48 + 16,
              {{kOut, 32, "w"}, {kA, 24, "r"}, {kB, 48, "r"}, {kC, 16, "r"}});
  matmul.addend = kOut;  // accumulation
  matmul.addend_row_stride = 4;
  matmul.batch_dims = 1;  // b is shared
  matmul.batch_sizes[0] = 5;
  matmul.a_batch_strides[0] = 6;
  matmul.out_batch_strides[0] = matmul.addend_batch_strides[0] = 8;
  expect_work(kernels::matmul, matmul, "baddbmm", 240, 160 + 160 + 120 + 48,
              {{kOut, 160, "w"}, {kA, 120, "r"}, {kB, 48, "r"}, {kOut, 160, "r"}});
  matmul.k = 0;
  expect_work(kernels::matmul, matmul, "baddbmm", 0, 320, {{kOut, 160, "w"}, {kOut, 160, "r"}});
  matmul.m = 0;
  expect_work(kernels::matmul, matmul, "baddbmm", 0, 0, {});

  // Rows of g that are equal (an expanded gradient), W transposed.
  LinearBackwardArgs linear{.dtype = float32, .rows = 5, .in_features = 3, .out_features = 2};
  linear.grad_output = kA;
  linear.grad_col_stride = 1;
  linear.input = linear.weight = kB;
  linear.input_row_stride = 4, linear.input_col_stride = 1;
  linear.weight_row_stride = 1, linear.weight_col_stride = 2;
  linear.grad_input = kOut;
  expect_work(kernels::linear_backward, linear, "linear_backward", 60, 60 + 8 + 24,
              {{kOut, 60, "w"}, {kA, 8, "r"}, {kB, 24, "r"}});
  linear.relu_output = kD;
  linear.grad_input = nullptr;
  linear.grad_weight = kOut;
  linear.grad_bias = kC;
  expect_work(kernels::linear_backward, linear, "linear_backward", 60, 24 + 8 + 8 + 40 + 60,
              {{kOut, 24, "w"}, {kC, 8, "w"}, {kA, 8, "r"}, {kD, 40, "r"}, {kB, 76, "r"}});

  Conv2dShape shape;
  shape.batch = 2;
  shape.in_channels = 4;
  shape.in_h = shape.in_w = 5;
  shape.out_channels = 6;
  shape.out_h = shape.out_w = 3;
  shape.kernel_h = shape.kernel_w = 3;
  shape.groups = 2;
  const size_t input = 2 * 4 * 25 * 4, output = 2 * 6 * 9 * 4, weight = 6 * 2 * 9 * 4;
  const double flops = 2.0 * 2 * 6 * 9 * 2 * 9;
  expect_work(kernels::conv2d, {float32, /*relu=*/true, shape, kA, kB, kC, kOut}, "conv2d_relu", flops,
              input + output + weight + 24,
              {{kOut, output, "w"}, {kA, input, "r"}, {kB, weight, "r"}, {kC, 24, "r"}});
  Conv2dBackwardArgs backward{.dtype = float32, .shape = shape, .grad_output = kA, .weight = kB};
  backward.grad_input = kOut;
  expect_work(kernels::conv2d_backward, backward, "conv2d_backward", flops, input + output + weight,
              {{kOut, input, "w"}, {kA, output, "r"}, {kB, weight, "r"}});
  backward = {.dtype = float32, .shape = shape, .grad_output = kA, .relu_output = kB, .input = kD};
  backward.grad_bias = kC;
  expect_work(kernels::conv2d_backward, backward, "conv2d_backward", 108, 2 * output + 24,
              {{kC, 24, "w"}, {kA, output, "r"}, {kB, output, "r"}});
  backward.grad_weight = kOut;
  expect_work(kernels::conv2d_backward, backward, "conv2d_backward", flops, input + 2 * output + weight + 24,
              {{kOut, weight, "w"}, {kC, 24, "w"}, {kA, output, "r"}, {kB, output, "r"}, {kD, input, "r"}});
  shape.batch = 0;
  expect_work(kernels::conv2d, {float32, /*relu=*/false, shape, kA, kB, kC, kOut}, "conv2d", 0, 0, {});

  Pool2dShape pool;
  pool.planes = 3;
  pool.in_h = pool.in_w = 4;
  pool.out_h = pool.out_w = 2;
  pool.kernel_h = pool.kernel_w = 2;
  expect_work(kernels::max_pool2d, {float32, pool, kA, kOut, longs(kB)}, "max_pool2d", 48, 192 + 48 + 96,
              {{kOut, 48, "w"}, {kA, 192, "r"}, {kB, 96, "w"}});
  expect_work(kernels::max_pool2d_backward, {float32, pool, kA, longs(kB), kOut}, "max_pool2d_backward", 12,
              192 + 48 + 96, {{kOut, 192, "w"}, {kA, 48, "r"}, {kB, 96, "r"}});
  expect_work(kernels::avg_pool2d, {float32, true, 0, pool, kA, kOut}, "avg_pool2d", 48, 192 + 48,
              {{kOut, 48, "w"}, {kA, 192, "r"}});
  expect_work(kernels::avg_pool2d_backward, {float32, true, 0, pool, kA, kOut}, "avg_pool2d_backward", 48,
              192 + 48, {{kOut, 192, "w"}, {kA, 48, "r"}});
  expect_work(kernels::adaptive_avg_pool2d, {float32, pool, kA, kOut}, "adaptive_avg_pool2d", 48, 192 + 48,
              {{kOut, 48, "w"}, {kA, 192, "r"}});
  expect_work(kernels::adaptive_avg_pool2d_backward, {float32, pool, kA, kOut},
              "adaptive_avg_pool2d_backward", 48, 192 + 48, {{kOut, 192, "w"}, {kA, 48, "r"}});
  expect_work(kernels::adaptive_max_pool2d, {float32, pool, kA, kOut, nullptr}, "adaptive_max_pool2d", 48,
              192 + 48, {{kOut, 48, "w"}, {kA, 192, "r"}});

  ResizeArgs resize{float32,
                    /*transposed=*/false,
                    3,
                    1,
                    {4, 8, ResizeMode::Linear, false, 0},
                    {4, 2, ResizeMode::Linear, false, 0},
                    kA,
                    kOut};
  expect_work(kernels::resize, resize, "interpolate", 2.0 * 4 * 48, 192 + 192,
              {{kOut, 192, "w"}, {kA, 192, "r"}});
  resize.transposed = true;
  expect_work(kernels::resize, resize, "interpolate_backward", 2.0 * 4 * 48, 192 + 192,
              {{kOut, 192, "w"}, {kA, 192, "r"}});
  resize = {float32, /*transposed=*/false, 3, 1, {}, {100, 2}, kA, kOut};
  expect_work(kernels::resize, resize, "interpolate", 0, 24 + 24, {{kOut, 24, "w"}, {kA, 1200, "r"}});

  DistanceProblem rows{float32, 1, 2, 3, 4, 5, kA, kB};
  expect_work(kernels::distance, {rows, kOut}, "cdist", 3.0 * 2 * 12 * 5, 120 + 160 + 96,
              {{kOut, 96, "w"}, {kA, 120, "r"}, {kB, 160, "r"}});
  expect_work(kernels::distance_backward, {rows, kC, kD, kOut}, "cdist_backward", 4.0 * 2 * 12 * 5,
              120 + 120 + 160 + 96, {{kOut, 120, "w"}, {kA, 120, "r"}, {kB, 160, "r"}, {kD, 96, "r"}});
  rows.p = 3;
  expect_work(kernels::distance_backward, {rows, kC, kD, kOut}, "cdist_backward", 4.0 * 2 * 12 * 5,
              120 + 120 + 160 + 192,
              {{kOut, 120, "w"}, {kA, 120, "r"}, {kB, 160, "r"}, {kC, 96, "r"}, {kD, 96, "r"}});
}

TEST(Work, NormsAndLosses) {
  BatchNormArgs batch;
  batch.dtype = bfloat16;  // parameters and statistics are float32
  batch.training = true;
  batch.batch = 2;
  batch.channels = 3;
  batch.inner = 5;
  batch.input = kA;
  batch.weight = kB;
  batch.running_mean = kC;
  batch.mean = kOut + 1000;
  batch.invstd = kOut + 2000;
  batch.output = kOut;
  expect_work(kernels::batch_norm, batch, "batch_norm", 240, 60 + 60 + 12 + 24 + 12 + 12,
              {{kOut, 60, "w"},
               {kA, 60, "r"},
               {kB, 12, "r"},
               {kC, 12, "rw"},
               {kOut + 1000, 12, "w"},
               {kOut + 2000, 12, "w"}});
  batch.training = false;
  batch.running_var = kC + 1000;
  expect_work(kernels::batch_norm, batch, "batch_norm", 120, 60 + 60 + 12 + 12 + 12 + 12 + 12,
              {{kOut, 60, "w"},
               {kA, 60, "r"},
               {kB, 12, "r"},
               {kC, 12, "r"},
               {kC + 1000, 12, "r"},
               {kOut + 1000, 12, "w"},
               {kOut + 2000, 12, "w"}});
  BatchNormBackwardArgs batch_back;
  batch_back.dtype = float32;
  batch_back.training = true;
  batch_back.batch = 2;
  batch_back.channels = 3;
  batch_back.inner = 5;
  batch_back.grad_output = kA;
  batch_back.input = kB;
  batch_back.mean = kC;
  batch_back.invstd = kC + 1000;
  batch_back.grad_weight = kOut;
  expect_work(kernels::batch_norm_backward, batch_back, "batch_norm_backward", 120, 12 + 240 + 24,
              {{kOut, 12, "w"}, {kA, 120, "r"}, {kB, 120, "r"}, {kC, 12, "r"}, {kC + 1000, 12, "r"}});

  RowNormArgs row;  // group norm of [2, 4, 5] in two groups
  row.dtype = float32;
  row.rows = 4;
  row.size = 10;
  row.groups = 2;
  row.inner = 5;
  row.input = kA;
  row.weight = kB;
  row.mean = kOut + 1000;
  row.invstd = kOut + 2000;
  row.output = kOut;
  expect_work(
      kernels::row_norm, row, "group_norm", 320, 320 + 16 + 32,
      {{kOut, 160, "w"}, {kOut + 1000, 16, "w"}, {kOut + 2000, 16, "w"}, {kA, 160, "r"}, {kB, 16, "r"}});
  row.groups = row.inner = 1;
  row.rms = true;
  row.mean = nullptr;
  expect_work(kernels::row_norm, row, "rms_norm", 160, 320 + 16 + 40,
              {{kOut, 160, "w"}, {kOut + 2000, 16, "w"}, {kA, 160, "r"}, {kB, 40, "r"}});
  RowNormBackwardArgs row_back;
  row_back.dtype = float32;
  row_back.rows = 4;
  row_back.size = 10;
  row_back.grad_output = kA;
  row_back.input = kB;
  row_back.weight = kC;
  row_back.mean = kC + 1000;
  row_back.invstd = kC + 2000;
  row_back.grad_input = kOut;
  expect_work(kernels::row_norm_backward, row_back, "layer_norm_backward", 360, 480 + 40 + 32,
              {{kOut, 160, "w"},
               {kA, 160, "r"},
               {kB, 160, "r"},
               {kC, 40, "r"},
               {kC + 1000, 16, "r"},
               {kC + 2000, 16, "r"}});

  CrossEntropyArgs cross;
  cross.problem.dtype = float16;
  cross.problem.batch = 4;
  cross.problem.classes = 10;
  cross.problem.inner = 1;
  cross.problem.input = kA;
  cross.problem.target = longs(kB);
  cross.loss = kOut;
  cross.saved = kC;
  expect_work(kernels::cross_entropy, cross, "cross_entropy", 200, 2 + 36 + 80 + 32,
              {{kOut, 2, "w"}, {kC, 36, "w"}, {kA, 80, "r"}, {kB, 32, "r"}});
  cross.problem.log_probabilities = true;
  cross.problem.reduction = Reduction::None;
  cross.problem.weight = kA + 1000;
  expect_work(kernels::cross_entropy, cross, "nll_loss", 8, 8 + 36 + 8 + 32 + 20,
              {{kOut, 8, "w"}, {kC, 36, "w"}, {kA, 80, "r"}, {kB, 32, "r"}, {kA + 1000, 20, "r"}});
  CrossEntropyBackwardArgs cross_back;
  cross_back.problem = cross.problem;
  cross_back.saved = kC;
  cross_back.grad_loss = kC + 1000;
  cross_back.grad_input = kOut;
  expect_work(kernels::cross_entropy_backward, cross_back, "nll_loss_backward", 4, 80 + 32 + 20 + 36 + 8,
              {{kOut, 80, "w"}, {kB, 32, "r"}, {kA + 1000, 20, "r"}, {kC, 36, "r"}, {kC + 1000, 8, "r"}});
  cross_back.problem.batch = 0;
  expect_work(kernels::cross_entropy_backward, cross_back, "nll_loss_backward", 0, 0, {});
  expect_work(kernels::pair_loss, {PairLoss::Mse, float32, Reduction::Mean, 6, 0, 1, kA, kB, kOut},
              "mse_loss", 18, 52, {{kOut, 4, "w"}, {kA, 24, "r"}, {kB, 24, "r"}});
  expect_work(kernels::pair_loss_backward,
              {PairLoss::KlDiv, float32, Reduction::None, 6, 0, 1, kA, kB, kC, kOut}, "kl_div_backward", 18,
              72, {{kOut, 24, "w"}, {kB, 24, "r"}, {kC, 24, "r"}});

  CtcLossArgs ctc;
  ctc.problem = {.dtype = float32,
                 .time = 5,
                 .batch = 2,
                 .classes = 4,
                 .longest = 3,
                 .labels = 4,
                 .log_probs = kA,
                 .targets = longs(kB),
                 .lengths = longs(kB + 1000)};
  ctc.loss = kOut;
  ctc.log_alpha = kC;
  expect_work(kernels::ctc_loss, ctc, "ctc_loss", 700, 8 + 280 + 160 + 32 + 48,
              {{kOut, 8, "w"}, {kC, 280, "w"}, {kA, 160, "r"}, {kB, 32, "r"}, {kB + 1000, 48, "r"}});
  expect_work(kernels::ctc_loss_backward, {ctc.problem, kD, kC, kD + 1000, kOut}, "ctc_loss_backward", 840,
              160 + 160 + 32 + 48 + 8 + 280 + 8,
              {{kOut, 160, "w"},
               {kA, 160, "r"},
               {kB, 32, "r"},
               {kB + 1000, 48, "r"},
               {kD, 8, "r"},
               {kC, 280, "r"},
               {kD + 1000, 8, "r"}});
  auto* marks = reinterpret_cast<uint8_t*>(kC);
  expect_work(kernels::multilabel_margin, {float16, 2, 5, kA, longs(kB), marks, kOut},
              "multilabel_margin_loss", 150, 4 + 10 + 20 + 80,
              {{kOut, 4, "w"}, {kC, 10, "w"}, {kA, 20, "r"}, {kB, 80, "r"}});
  expect_work(kernels::multilabel_margin_backward, {float16, 2, 5, kA, longs(kB), marks, kD, kOut},
              "multilabel_margin_loss_backward", 150, 20 + 20 + 80 + 10 + 4,
              {{kOut, 20, "w"}, {kA, 20, "r"}, {kB, 80, "r"}, {kC, 10, "r"}, {kD, 4, "r"}});
}

TEST(Work, Optimizers) {
  OptimEntry entries[2] = {};
  entries[0] = {.param = kA,
                .grad = kB,
                .state = {kC, nullptr, nullptr},
                .numel = 6,
                .first = 0,
                .scalars = {},
                .fresh = true};
  entries[1] = {.param = kA + 100,
                .grad = kB + 100,
                .state = {kC + 100, kC + 200, kC + 300},
                .numel = 4,
                .first = 6,
                .scalars = {},
                .fresh = false};
  OptimList list{.dtype = float32, .count = 2, .entries = entries, .numel = 10};
  SgdStepArgs sgd{};
  sgd.list = list;
  expect_work(kernels::sgd_step, sgd, "sgd_step", 20, 120,
              {{kA, 24, "rw"}, {kB, 24, "r"}, {kA + 100, 16, "rw"}, {kB + 100, 16, "r"}});
  sgd.momentum = 0.9;
  sgd.weight_decay = 0.1;
  expect_work(kernels::sgd_step, sgd, "sgd_step", 70, 120 + 24 + 32,
              {{kA, 24, "rw"},
               {kB, 24, "r"},
               {kC, 24, "w"},
               {kA + 100, 16, "rw"},
               {kB + 100, 16, "r"},
               {kC + 100, 16, "rw"}});
  list.entries = entries + 1;
  list.count = 1;
  list.numel = 4;
  const std::vector<Touched> step{{kA + 100, 16, "rw"}, {kB + 100, 16, "r"}};
  auto with = [&](std::vector<Touched> more) {
    more.insert(more.end(), step.begin(), step.end());
    return more;
  };
  AdamStepArgs adam{};
  adam.list = list;
  expect_work(kernels::adam_step, adam, "adam_step", 52, 48 + 64,
              with({{kC + 100, 16, "rw"}, {kC + 200, 16, "rw"}}));
  adam.amsgrad = adam.decoupled = true;
  expect_work(kernels::adam_step, adam, "adamw_step", 56, 48 + 96,
              with({{kC + 100, 16, "rw"}, {kC + 200, 16, "rw"}, {kC + 300, 16, "rw"}}));
  RmspropStepArgs rmsprop{};
  rmsprop.list = list;
  rmsprop.centered = true;
  expect_work(kernels::rmsprop_step, rmsprop, "rmsprop_step", 56, 48 + 64,
              with({{kC + 100, 16, "rw"}, {kC + 300, 16, "rw"}}));
  AdagradStepArgs adagrad{};
  adagrad.list = list;
  expect_work(kernels::adagrad_step, adagrad, "adagrad_step", 28, 48 + 32, with({{kC + 100, 16, "rw"}}));
  expect_work(kernels::optim_norm, {list, 2, kOut}, "clip_grad_norm_", 8, 20,
              {{kOut, 4, "w"}, {kB + 100, 16, "r"}});
  expect_work(kernels::optim_clip_norm, {list, float64, kOut, 1}, "clip_grad_norm_", 4, 40,
              {{kOut, 8, "r"}, {kA + 100, 16, "rw"}});
  expect_work(kernels::optim_clip_value, {list, 1}, "clip_grad_value_", 4, 32, {{kA + 100, 16, "rw"}});
  expect_work(kernels::optim_unscale, {list, 0.5f, reinterpret_cast<float*>(kOut)}, "unscale_", 8, 36,
              {{kOut, 4, "w"}, {kA + 100, 16, "rw"}});
  list.count = 0;
  list.numel = 0;
  expect_work(kernels::optim_clip_value, {list, 1}, "clip_grad_value_", 0, 0, {});
}

}  // namespace
}  // namespace tern::work_testing
