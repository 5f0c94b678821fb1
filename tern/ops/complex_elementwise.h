// What operators call where a tensor is complex. No public header includes this.
#pragma once

#include "tern/core/tensor.h"
#include "tern/kernels/complex.h"
#include "tern/kernels/pointwise.h"

namespace tern {

// ---- without history
// ----------------------------------------------------------------------------------

/// A 0-d tensor of a complex dtype.
Tensor complex_number(const Scalar& value, DType dtype, Device device);
/// op(a, b), broadcast, in the complex dtype `common`; `alpha` is the factor of b in sums. Throws DTypeError
/// for an operator that complex numbers do not have.
Tensor complex_binary(BinaryOp op, const Tensor& a, const Tensor& b, DType common, Param alpha = {1.0, 1});
/// op(a, number) and op(number, b) in the dtype `common`.
Tensor complex_binary(BinaryOp op, const Tensor& a, const Scalar& b, DType common, Param alpha);
Tensor complex_binary(BinaryOp op, const Scalar& a, const Tensor& b, DType common);
/// The parts [..., 2] of x after dimensions of size 1 that make it one of `rank` dimensions, as broadcasting
/// aligns complex numbers.
Tensor aligned_parts(const Tensor& x, int64_t rank);
/// What parts [..., 2] of bool say together.
Tensor both_parts(BinaryOp join, const Tensor& parts);
/// Throws DTypeError: complex numbers have no `op`.
[[noreturn]] void throw_no_complex(const char* op, DType dtype);

// ---- recorded
// ----------------------------------------------------------------------------------

/// A function of one complex number with its gradient.
Tensor complex_function(ComplexUnary op, const Tensor& x);
/// g times the conjugate of x: of a gradient and the slope of a function. Real tensors are multiplied.
Tensor times_conj(const Tensor& g, const Tensor& x);
/// base^exponent where one of them is complex.
Tensor complex_power(const Tensor& base, const Tensor& exponent);
/// self = function(self).
Tensor& complex_in_place(Tensor& self, Tensor (*function)(const Tensor&));
/// The conjugate of a number.
Scalar conj(const Scalar& number);

}  // namespace tern
