// The text of a tensor, equal to what PyTorch prints.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "tern/core/tensor.h"

namespace tern {

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

}  // namespace tern
