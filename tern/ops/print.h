// The text of a tensor, and of its shape, device and dtype, equal to what PyTorch prints.
#pragma once

#include <concepts>
#include <iosfwd>
#include <optional>
#include <string>

#include "tern/core/tensor.h"

namespace tern {

namespace detail {
std::ostream& print_device(std::ostream& out, Device device);
std::ostream& print_scalar(std::ostream& out, const Scalar& number);
}  // namespace detail

/// PyTorch's torch.set_printoptions.
struct PrintOptions {
  int precision = 4;                  ///< digits after the point
  double threshold = 1000;            ///< tensors of more elements are summarized
  int64_t edgeitems = 3;              ///< elements shown at each end of a summarized dimension
  int64_t linewidth = 80;             ///< characters
  std::optional<bool> sci_mode = {};  ///< scientific notation; by default where the values ask for it
};

/// Sets the options of the whole process. Throws ValueError for negative numbers.
void set_printoptions(const PrintOptions& options);
PrintOptions get_printoptions();

/// "tensor([[ 1.0000, -2.5000]], dtype=torch.float64, requires_grad=True)". Blocks the host until the values
/// are there.
std::string to_string(const Tensor& x);
std::string to_string(const Tensor& x, const PrintOptions& options);

std::ostream& operator<<(std::ostream& out, const Tensor& x);
/// "torch.Size([2, 3])".
std::ostream& operator<<(std::ostream& out, const Shape& shape);
/// "torch.float32".
std::ostream& operator<<(std::ostream& out, DType dtype);
/// "cuda:1". Of devices only, not of texts and numbers that could become one.
template <std::same_as<Device> D>
std::ostream& operator<<(std::ostream& out, const D& device) {
  return detail::print_device(out, device);
}
/// "0.5", "3" or "True": what x.item() gives, with the stream's precision. Of Scalars only, not of what could
/// become one.
template <std::same_as<Scalar> S>
std::ostream& operator<<(std::ostream& out, const S& number) {
  return detail::print_scalar(out, number);
}

}  // namespace tern
