// The settings of precision. What GPUs make of them is in tests/backends/cuda.
#include "tern/kernels/precision.h"

#include <gtest/gtest.h>

#include "tern/base/error.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

TEST(Float32MatmulPrecision, IsHighestAtFirstAndIsKept) {
  EXPECT_EQ(get_float32_matmul_precision(), "highest");
  EXPECT_EQ(kernels::matmul_precision(), kernels::MatmulPrecision::Highest);
  set_float32_matmul_precision("high");
  EXPECT_EQ(get_float32_matmul_precision(), "high");
  EXPECT_EQ(kernels::matmul_precision(), kernels::MatmulPrecision::High);
  set_float32_matmul_precision("medium");
  EXPECT_EQ(get_float32_matmul_precision(), "medium");
  EXPECT_EQ(kernels::matmul_precision(), kernels::MatmulPrecision::Medium);
  set_float32_matmul_precision("highest");
  EXPECT_EQ(get_float32_matmul_precision(), "highest");
}

TEST(Float32MatmulPrecision, OtherWordsAreErrorsThatChangeNothing) {
  set_float32_matmul_precision("high");
  expect_error<ValueError>(
      [] { set_float32_matmul_precision("tf32"); },
      "set_float32_matmul_precision: tf32 is not one of 'highest', 'high', or 'medium': the "
      "precision stays 'high'");
  EXPECT_EQ(get_float32_matmul_precision(), "high");
  set_float32_matmul_precision("highest");
}

TEST(Cudnn, AllowsTf32AndMeasuresWhenAskedTo) {
  EXPECT_FALSE(cudnn_allow_tf32());
  EXPECT_FALSE(cudnn_benchmark());
  set_cudnn_allow_tf32(true);
  EXPECT_TRUE(cudnn_allow_tf32());
  EXPECT_FALSE(cudnn_benchmark());
  set_cudnn_benchmark(true);
  EXPECT_TRUE(cudnn_benchmark());
  set_cudnn_allow_tf32(false);
  EXPECT_TRUE(cudnn_benchmark());
  set_cudnn_benchmark(false);
  EXPECT_FALSE(matmul_benchmark());
  set_matmul_benchmark(true);
  EXPECT_TRUE(matmul_benchmark());
  EXPECT_FALSE(cudnn_benchmark());
  set_matmul_benchmark(false);
}

}  // namespace
}  // namespace tern
