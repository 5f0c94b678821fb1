// Layers over volumes [N, C, D, H, W]: text, names, shapes, and values against PyTorch's. The operators are
// compared in the operator table.
#include <gtest/gtest.h>

#include "tern/autograd/grad_mode.h"
#include "tern/nn/any_module.h"
#include "tern/nn/conv.h"
#include "tern/nn/dropout.h"
#include "tern/nn/norm.h"
#include "tern/nn/pool.h"
#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/print.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/support/expect_error.h"

namespace tern::nn {
namespace {

Tensor volume(const Shape& shape) {
  return reshape(cos(arange(checked_numel(shape), {.dtype = float32})), shape);
}

struct VolumeLayer {
  AnyModule layer;
  const char* text;
  Shape output;  ///< of [2, 4, 5, 6, 7]
};

TEST(Volumes, TextsAndShapesAsPyTorch) {
  VolumeLayer rows[] = {
      {Conv3d(4, 2, {2, 3, 2}, {.stride = {2, 1, 1}, .padding = {1, 0, 1}}),
       "Conv3d(4, 2, kernel_size=(2, 3, 2), stride=(2, 1, 1), padding=(1, 0, 1))",
       {2, 2, 3, 4, 8}},
      {Conv3d(4, 6, 3, {.padding = "same", .groups = 2, .bias = false}),
       "Conv3d(4, 6, kernel_size=(3, 3, 3), stride=(1, 1, 1), padding=same, groups=2, bias=False)",
       {2, 6, 5, 6, 7}},
      {ConvTranspose3d(4, 2, 2, {.stride = {2, 1, 1}, .output_padding = {1, 0, 0}}),
       "ConvTranspose3d(4, 2, kernel_size=(2, 2, 2), stride=(2, 1, 1), output_padding=(1, 0, 0))",
       {2, 2, 11, 7, 8}},
      {MaxPool3d(2),
       "MaxPool3d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
       {2, 4, 2, 3, 3}},
      {AvgPool3d({2, 1, 2}, {.padding = {1, 0, 0}}),
       "AvgPool3d(kernel_size=(2, 1, 2), stride=(2, 1, 2), padding=(1, 0, 0))",
       {2, 4, 3, 6, 3}},
      {AdaptiveAvgPool3d({1, 2, -1}), "AdaptiveAvgPool3d(output_size=(1, 2, None))", {2, 4, 1, 2, 7}},
      {AdaptiveMaxPool3d(3), "AdaptiveMaxPool3d(output_size=3)", {2, 4, 3, 3, 3}},
      {BatchNorm3d(4),
       "BatchNorm3d(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)",
       {2, 4, 5, 6, 7}},
      {InstanceNorm3d(4),
       "InstanceNorm3d(4, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)",
       {2, 4, 5, 6, 7}},
      {Dropout3d(0.2), "Dropout3d(p=0.2, inplace=False)", {2, 4, 5, 6, 7}},
      {AlphaDropout(0.2), "AlphaDropout(p=0.2, inplace=False)", {2, 4, 5, 6, 7}},
      {FeatureAlphaDropout(0.3), "FeatureAlphaDropout(p=0.3, inplace=False)", {2, 4, 5, 6, 7}},
      {LazyConv3d(4, 3), "LazyConv3d(0, 4, kernel_size=(3, 3, 3), stride=(1, 1, 1))", {2, 4, 3, 4, 5}},
      {LazyConvTranspose3d(4, 3),
       "LazyConvTranspose3d(0, 4, kernel_size=(3, 3, 3), stride=(1, 1, 1))",
       {2, 4, 7, 8, 9}},
      {LazyBatchNorm3d(),
       "LazyBatchNorm3d(0, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)",
       {2, 4, 5, 6, 7}},
  };
  for (VolumeLayer& row : rows) {
    EXPECT_EQ(row.layer->str(), row.text);
    EXPECT_EQ(row.layer(volume({2, 4, 5, 6, 7})).shape(), row.output) << row.text;
  }
}

/// Parameters are sin(i), sin(i + 1), ...
template <class M>
Tensor first_numbers(M layer, const Tensor& x) {
  const NoGradGuard guard;
  double first = 0;
  for (Tensor& p : layer.parameters())
    p.copy_(reshape(sin(add(arange(p.numel(), {.dtype = float32}), first++)), p.shape()));
  return narrow(flatten(layer(x)), 0, 0, 6);
}

TEST(Volumes, ConvolutionsAsPyTorch) {
  const Tensor x = volume({1, 2, 3, 4, 3});
  const Tensor y = first_numbers(Conv3d(2, 2, {2, 3, 2}, {.stride = {2, 1, 1}, .padding = {1, 0, 1}}), x);
  EXPECT_TRUE(allclose(y, tensor({0.672688, -2.17801, -3.09494, -0.309937, 0.75866, 3.44418}), 1e-4, 1e-5))
      << to_string(y);
  const Tensor z =
      first_numbers(ConvTranspose3d(2, 2, 2, {.stride = {2, 1, 1}, .output_padding = {1, 0, 0}}), x);
  EXPECT_TRUE(allclose(z, tensor({0.878312, 1.5856, 0.285284, -0.42691, 1.7701, -0.0174947}), 1e-4, 1e-5))
      << to_string(z);
}

TEST(Volumes, Errors) {
  expect_error<ValueError>(
      [] {
        Conv3d(1, 1, {1, 0, 1});
      },
      "Conv3d: kernel_size must be at least 1, got (1, 0, 1)");
  expect_error<ValueError>(
      [] { Conv3d(1, 1, 3, {.stride = 2, .padding = "same"}); },
      "Conv3d: padding='same' is not supported for strided convolutions, got stride (2, 2, 2)");
  expect_error<ValueError>([] { ConvTranspose3d(1, 1, 2, {.output_padding = 1}); },
                           "ConvTranspose3d: output_padding must be smaller");
  expect_error<ShapeError>(
      [] {
        Conv3d(1, 1, 2)(ones({1, 3, 3}));
      },
      "conv3d: Expected 4D (unbatched) or 5D (batched) input");
  expect_error<ValueError>([] { MaxPool3d(2, {.padding = 2}); }, "MaxPool3d: pad should be at most half");
  expect_error<ShapeError>([] { AvgPool3d(2)(ones({3, 3})); }, "avg_pool3d: Expected 4D or 5D");
  expect_error<ShapeError>(
      [] {
        BatchNorm3d(2)(ones({1, 2, 3, 4}));
      },
      "BatchNorm3d: expected 5D input (got 4D input)");
  expect_error<ShapeError>(
      [] {
        InstanceNorm3d(2)(ones({2, 3, 4}));
      },
      "InstanceNorm3d: expected 4D or 5D input (got 3D input)");
  expect_error<ShapeError>([] { Dropout3d()(ones({2, 3})); }, "dropout3d: Expected 4D or 5D input");
  expect_error<ValueError>([] { AlphaDropout(1.5); },
                           "AlphaDropout: dropout probability has to be between 0 and 1");
  expect_error<ValueError>(
      [] {
        AdaptiveAvgPool3d({1, -2, 1});
      },
      "AdaptiveAvgPool3d: output_size must be at least -1");
}

}  // namespace
}  // namespace tern::nn
