// The little arithmetic that autograd itself needs: sums and copies of gradients, through the common kernels.
// Operators for users are in ops/.
#pragma once

#include <vector>

#include "tern/core/tensor.h"

namespace tern {

/// A tensor of computable complex numbers [...] as its real and imaginary parts [..., 2], without history.
Tensor real_view(const Tensor& x);
/// The reverse, of parts that lie beside each other.
Tensor complex_view(const Tensor& parts);

/// A new contiguous tensor of one value.
Tensor filled(const Shape& shape, DType dtype, Device device, double value);
/// Writes `value` into every element.
void fill_elements(const Tensor& out, double value);
/// Writes x, of the same shape, into out, converting the dtype; both may be strided. Of complex numbers real
/// ones get the real part.
void copy_elements(const Tensor& out, const Tensor& x);
/// A new contiguous tensor with x's values; no history.
Tensor compact_copy(const Tensor& x);
/// A new contiguous tensor with x's values; recorded when x is tracked.
Tensor copy_gradient(const Tensor& x);
/// The same in another dtype.
Tensor convert_gradient(const Tensor& x, DType dtype);
/// x itself when contiguous, else compact_copy(x); no history.
Tensor compact(const Tensor& x);
/// The elements in row-major order, on the host, which waits for them.
std::vector<double> host_values(const Tensor& x);
/// a + b for gradients of one shape; recorded when they are tracked.
Tensor add_gradients(const Tensor& a, const Tensor& b);
/// out += x, in place, without history.
void accumulate_into(const Tensor& out, const Tensor& x);

}  // namespace tern
