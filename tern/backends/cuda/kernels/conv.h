// The parts of the 2-D convolution: kernels for few channels in conv_direct.cu, for one channel each in
// conv_depthwise.cu, matrix products in conv_matmul.cpp, cuDNN's plans in conv_cudnn.cpp, plain kernels for
// everything else in conv_plain.cu, and which of them is taken in conv.cpp.
#pragma once

#include "tern/device/backend.h"
#include "tern/kernels/conv.h"
#include "tern/kernels/pointwise.h"
#include "tern/kernels/reduce.h"

namespace tern::cuda_backend {

/// The whole operation; that of the weight with the gradient of the bias. False when the shape is not one of
/// theirs.
bool conv_directly(const LaunchContext& context, const Conv2dArgs& args);
bool conv_input_directly(const LaunchContext& context, const Conv2dBackwardArgs& args);
bool conv_weight_directly(const LaunchContext& context, const Conv2dBackwardArgs& args);

/// The whole operation; the gradients without that of the bias, and of an output without relu. False when the
/// shape is not one of theirs.
bool conv_depthwise(const LaunchContext& context, const Conv2dArgs& args);
bool conv_input_depthwise(const LaunchContext& context, const Conv2dBackwardArgs& args);
bool conv_weight_depthwise(const LaunchContext& context, const Conv2dBackwardArgs& args);

/// Convolutions alone: bias and relu are not their affair. False when the shape is not one of theirs.
bool conv_by_matmul(const LaunchContext& context, const Conv2dArgs& args);
bool conv_input_by_matmul(const LaunchContext& context, const Conv2dBackwardArgs& args);
bool conv_weight_by_matmul(const LaunchContext& context, const Conv2dBackwardArgs& args);

/// The same. False when cuDNN has no plan for the shape, or when there is no cuDNN.
bool conv_by_cudnn(const LaunchContext& context, const Conv2dArgs& args);
bool conv_input_by_cudnn(const LaunchContext& context, const Conv2dBackwardArgs& args);
bool conv_weight_by_cudnn(const LaunchContext& context, const Conv2dBackwardArgs& args);

/// With bias and relu.
void conv_plain(const LaunchContext& context, const Conv2dArgs& args);
/// Without them.
void conv_input_plain(const LaunchContext& context, const Conv2dBackwardArgs& args);
void conv_weight_plain(const LaunchContext& context, const Conv2dBackwardArgs& args);

/// patches [batch, taps of the kernel, places of the output] of images; taps and images: at most 65535.
void conv_patches(const LaunchContext& context, DType dtype, const Conv2dShape& shape, const void* images,
                  void* patches);

/// output = output + bias, and relu of that if asked for.
void add_bias(const LaunchContext& context, const Conv2dArgs& args);

// Kernels of the table that others use as well.
void binary(const LaunchContext& context, const BinaryArgs& args);
void reduce(const LaunchContext& context, const ReduceArgs& args);

}  // namespace tern::cuda_backend
