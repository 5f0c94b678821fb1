// Checks of convolutions, in PyTorch's words.
#include "tern/ops/conv_checks.h"

#include <algorithm>
#include <string>

#include "tern/ops/common.h"

namespace tern::detail {
namespace {

std::string joined_sizes(std::span<const int64_t> sizes, const char* separator) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : separator) + std::to_string(size);
  return "(" + text + ")";
}
std::string tuple_of(std::span<const int64_t> sizes) { return joined_sizes(sizes, ", "); }
std::string product_of(std::span<const int64_t> sizes) { return joined_sizes(sizes, " x "); }

bool all_at_least(std::span<const int64_t> sizes, int64_t least) {
  return std::all_of(sizes.begin(), sizes.end(), [=](int64_t size) { return size >= least; });
}
bool all_below(std::span<const int64_t> sizes, int64_t limit) {
  return std::all_of(sizes.begin(), sizes.end(), [=](int64_t size) { return size < limit; });
}

void check_conv_bias(const char* op, const Tensor& weight, const Tensor& bias, int64_t channels) {
  TERN_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == channels), ShapeError,
             "{}: Given weight of size {}, expected bias to be 1-dimensional "
             "with {} elements, but got bias of size {} instead",
             op, to_string(weight.shape()), channels, to_string(bias.shape()));
}

}  // namespace

void check_conv_tensors(const char* op, int64_t dims, const Tensor& x, const Tensor& weight,
                        const Tensor& bias) {
  check_same_device(op, {{"input", x}, {"weight", weight}, {"bias", bias}});
  TERN_CHECK(x.dtype() == weight.dtype(), DTypeError,
             "{}: Input type ({}) and weight type ({}) should be the same: "
             "convert one with to(dtype)",
             op, name(x.dtype()), name(weight.dtype()));
  TERN_CHECK(!bias.defined() || bias.dtype() == x.dtype(), DTypeError,
             "{}: Input type ({}) and bias type ({}) should be the same: convert one with to(dtype)", op,
             name(x.dtype()), bias.defined() ? name(bias.dtype()) : "");
  TERN_CHECK(is_floating_point(x.dtype()), DTypeError,
             "{}: not implemented for {}: convert the operands with to(float32)", op, name(x.dtype()));
  TERN_CHECK(weight.dim() == dims + 2, ShapeError, "{}: weight must be a {}-D tensor, got {}", op, dims + 2,
             to_string(weight.shape()));
  TERN_CHECK(x.dim() == dims + 1 || x.dim() == dims + 2, ShapeError,
             "{}: Expected {}D (unbatched) or {}D (batched) input to {}, but got "
             "input of size: {}",
             op, dims + 1, dims + 2, op, to_string(x.shape()));
}

void check_conv_options(const char* op, std::span<const int64_t> stride, std::span<const int64_t> padding,
                        std::span<const int64_t> dilation, int64_t groups) {
  TERN_CHECK(groups > 0, ValueError, "{}: non-positive groups is not supported: got {}", op, groups);
  TERN_CHECK(all_at_least(stride, 1), ValueError, "{}: non-positive stride is not supported: got {}", op,
             tuple_of(stride));
  TERN_CHECK(all_at_least(padding, 0), ValueError, "{}: negative padding is not supported: got {}", op,
             tuple_of(padding));
  TERN_CHECK(all_at_least(dilation, 1), ValueError, "{}: dilation should be greater than zero, but got {}",
             op, tuple_of(dilation));
  constexpr int64_t kLimit = int64_t{1} << 31;
  TERN_CHECK(all_below(stride, kLimit) && all_below(padding, kLimit) && all_below(dilation, kLimit),
             ValueError, "{}: stride, padding and dilation must be below 2^31", op);
}

void check_conv_channels(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                         int64_t groups) {
  TERN_CHECK(weight.size(0) % groups == 0 && weight.size(0) >= groups, ShapeError,
             "{}: Given groups={}, expected weight to be divisible by {} at "
             "dimension 0, but got weight of size {} instead",
             op, groups, groups, to_string(weight.shape()));
  TERN_CHECK(x.size(1) == weight.size(1) * groups, ShapeError,
             "{}: Given groups={}, weight of size {}, expected input{} to have "
             "{} channels, but got {} channels instead",
             op, groups, to_string(weight.shape()), to_string(x.shape()), weight.size(1) * groups, x.size(1));
  check_conv_bias(op, weight, bias, weight.size(0));
}

void check_conv_transpose_channels(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   int64_t groups) {
  TERN_CHECK(weight.size(0) % groups == 0, ShapeError,
             "{}: Given groups={}, expected weight to be divisible by {} at "
             "dimension 0, but got weight of size {} instead",
             op, groups, groups, to_string(weight.shape()));
  TERN_CHECK(x.size(1) == weight.size(0), ShapeError,
             "{}: Given transposed=1, weight of size {}, expected input{} to "
             "have {} channels, but got {} channels instead",
             op, to_string(weight.shape()), to_string(x.shape()), weight.size(0), x.size(1));
  check_conv_bias(op, weight, bias, weight.size(1) * groups);
}

void check_conv_kernel(const char* op, const Tensor& weight) {
  for (int64_t d = 2; d < weight.dim(); ++d)
    TERN_CHECK(weight.size(d) > 0, ShapeError,
               "{}: kernel size should be greater than zero, but got weight of size {}", op,
               to_string(weight.shape()));
}

void check_same_padding(const char* op, std::span<const int64_t> stride) {
  TERN_CHECK(all_below(stride, 2), ValueError,
             "{}: padding='same' is not supported for strided convolutions: got stride {}: give the "
             "padding as "
             "numbers",
             op, tuple_of(stride));
}

void check_output_padding(const char* op, std::span<const int64_t> output_padding,
                          std::span<const int64_t> stride, std::span<const int64_t> dilation) {
  for (size_t d = 0; d < output_padding.size(); ++d)
    TERN_CHECK(output_padding[d] >= 0 && output_padding[d] < std::max(stride[d], dilation[d]), ValueError,
               "{}: output padding must be smaller than either stride or "
               "dilation, but got output_padding {}",
               op, tuple_of(output_padding));
}

void check_conv_sizes(const char* op, std::span<const int64_t> padded, std::span<const int64_t> reach,
                      std::span<const int64_t> in, std::span<const int64_t> out) {
  TERN_CHECK(all_at_least(in, 1) && all_at_least(out, 1), ShapeError,
             "{}: Calculated padded input size per channel: {}. Kernel "
             "size: {}. Kernel size can't be greater than actual "
             "input size",
             op, product_of(padded), product_of(reach));
}

void check_conv_transpose_sizes(const char* op, std::span<const int64_t> in, std::span<const int64_t> kernel,
                                std::span<const int64_t> out) {
  TERN_CHECK(all_at_least(in, 1) && all_at_least(kernel, 1) && all_at_least(out, 1), ShapeError,
             "{}: Given input size per channel: {}. Calculated output "
             "size per channel: {}. Output size is too small",
             op, product_of(in), product_of(out));
}

}  // namespace tern::detail
