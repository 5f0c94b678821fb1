// Descriptions of the launches of functions of complex numbers and Fourier transforms; work_test.cpp has the
// others.
#include "tern/kernels/complex.h"
#include "tern/kernels/fft.h"
#include "tests/kernels/work_testing.h"

namespace tern::work_testing {
namespace {

TEST(Work, ComplexNumbers) {
  ComplexUnaryArgs unary{
      .op = ComplexUnary::Exp, .dtype = complex64, .out = kOut, .in = kA, .geometry = flat<2>(6)};
  expect_work(kernels::complex_unary, unary, "exp", 12, 96, {{kOut, 48, "w"}, {kA, 48, "r"}});
  unary.op = ComplexUnary::Abs;
  unary.dtype = complex128;
  expect_work(kernels::complex_unary, unary, "abs", 12, 48 + 96, {{kOut, 48, "w"}, {kA, 96, "r"}});
  // A row that broadcasts counts once.
  const ComplexBinaryArgs binary{.op = ComplexBinary::MulConj,
                                 .dtype = complex64,
                                 .out = kOut,
                                 .a = kA,
                                 .b = kB,
                                 .geometry = geometry<3>({3, 4}, {{4, 1}, {4, 1}, {0, 1}})};
  expect_work(kernels::complex_binary, binary, "mul", 72, 96 + 96 + 32,
              {{kOut, 96, "w"}, {kA, 96, "r"}, {kB, 32, "r"}});
}

TEST(Work, FourierTransforms) {
  FftArgs args{.kind = FftKind::Complex,
               .dtype = float32,
               .forward = true,
               .scale = 1,
               .outer = 2,
               .size = 8,
               .inner = 3,
               .in = kA,
               .out = kOut};
  expect_work(kernels::fft, args, "fft", 6 * 5.0 * 8 * 3, 768, {{kOut, 384, "w"}, {kA, 384, "r"}});
  args.kind = FftKind::ToHalf;
  expect_work(kernels::fft, args, "fft", 6 * 2.5 * 8 * 3, 240 + 192, {{kOut, 240, "w"}, {kA, 192, "r"}});
  args.kind = FftKind::ToReal;
  args.dtype = float64;
  expect_work(kernels::fft, args, "fft", 6 * 2.5 * 8 * 3, 384 + 480, {{kOut, 384, "w"}, {kA, 480, "r"}});
}

}  // namespace
}  // namespace tern::work_testing
