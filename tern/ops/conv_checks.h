// The rules of convolutions for what they are given, in any number of dimensions. For conv*.cpp only.
#pragma once

#include <cstdint>
#include <span>

#include "tern/core/tensor.h"

namespace tern::detail {

/// One device, one floating dtype, an input with or without a batch.
void check_conv_tensors(const char* op, int64_t dims, const Tensor& x, const Tensor& weight,
                        const Tensor& bias);

void check_conv_options(const char* op, std::span<const int64_t> stride, std::span<const int64_t> padding,
                        std::span<const int64_t> dilation, int64_t groups);

/// The channels of x, which has a batch, of the weight and of the bias.
void check_conv_channels(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                         int64_t groups);
/// The same of a transposed convolution.
void check_conv_transpose_channels(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   int64_t groups);

/// Every size of the kernel is 1 at least.
void check_conv_kernel(const char* op, const Tensor& weight);
/// padding='same' has no meaning with a stride.
void check_same_padding(const char* op, std::span<const int64_t> stride);

void check_output_padding(const char* op, std::span<const int64_t> output_padding,
                          std::span<const int64_t> stride, std::span<const int64_t> dilation);

/// Of a convolution: that each kernel fits, and that no size is empty.
void check_conv_sizes(const char* op, std::span<const int64_t> padded, std::span<const int64_t> reach,
                      std::span<const int64_t> in, std::span<const int64_t> out);
/// Of a transposed one.
void check_conv_transpose_sizes(const char* op, std::span<const int64_t> in, std::span<const int64_t> kernel,
                                std::span<const int64_t> out);

}  // namespace tern::detail
