// The parts of the 2-D convolution: cuDNN's plans in conv_cudnn.cpp, plain kernels for what cuDNN does not do
// in conv_plain.cu, and which of them is taken in conv.cpp.
#pragma once

#include "tern/device/backend.h"
#include "tern/kernels/conv.h"
#include "tern/kernels/reduce.h"

namespace tern::cuda_backend {

/// True when cuDNN has done it; false when it has no plan for the shape, or when there is no cuDNN. Bias and
/// activation are not its affair.
bool conv_by_cudnn(const LaunchContext& context, const Conv2dArgs& args);
bool conv_by_cudnn(const LaunchContext& context, const Conv2dBackwardInputArgs& args);
bool conv_by_cudnn(const LaunchContext& context, const Conv2dBackwardWeightArgs& args);

/// The whole operation.
void conv_plain(const LaunchContext& context, const Conv2dArgs& args);
void conv_plain(const LaunchContext& context, const Conv2dBackwardInputArgs& args);
/// The gradient of the weight alone.
void conv_plain(const LaunchContext& context, const Conv2dBackwardWeightArgs& args);

/// output = activation(output + bias).
void add_bias(const LaunchContext& context, const Conv2dArgs& args);

void reduce(const LaunchContext& context, const ReduceArgs& args);

}  // namespace tern::cuda_backend
