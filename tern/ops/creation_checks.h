// What the functions that make tensors share: options, and whether a number fits a dtype.
#pragma once

#include <string>

#include "tern/core/tensor.h"
#include "tern/ops/elementwise.h"

namespace tern::detail {

/// An uninitialised tensor on `device` or the CPU; errors in shape and device name `op`.
Tensor make(const char* op, IntArrayRef shape, DType dtype, const std::optional<Device>& device);
/// x, requiring a gradient if the options say so.
Tensor finish(Tensor x, const TensorOptions& options);
/// The options with x's dtype and device where they say nothing.
TensorOptions like(const Tensor& x, const TensorOptions& options);

/// The largest finite number of a floating dtype.
double largest_of(DType dtype);

/// Whether the dtype holds the number without overflow (floats are cut to integers; infinities and NaN fit
/// floats alone).
bool fits(double value, DType dtype);
bool fits(int64_t value, DType dtype);
bool fits(const Scalar& value, DType dtype);
/// The number for a kernel that writes it into a tensor of `dtype`. Throws ValueError where it does not fit;
/// negative ones may wrap around in an unsigned dtype, as in PyTorch.
Param written_number(const char* op, const Scalar& value, DType dtype);

/// Writes a number of any kind into every element of a tensor of a dtype that holds it.
void fill_number(const Tensor& out, const Scalar& value);

/// A probability as the number of 32-bit words below it.
uint64_t random_threshold(double p);

/// The number as C++ writes it.
std::string text_of(const Scalar& value);

}  // namespace tern::detail
