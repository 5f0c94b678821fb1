// Complex numbers: their parts as real tensors, and functions that only they have. Arithmetic, sums, products
// and elementary functions are the operators that real numbers have; they take complex64 and complex128 by
// way of ops/complex_elementwise.h.
#pragma once

#include "tern/core/tensor.h"

namespace tern {

/// A complex tensor [...] as its real and imaginary parts [..., 2]; a view. Throws DTypeError unless x is
/// complex64 or complex128.
Tensor view_as_real(const Tensor& x);
/// The reverse; a view. Throws DTypeError unless x is float32 or float64, ShapeError unless its last
/// dimension has size 2 and the pairs lie beside each other.
Tensor view_as_complex(const Tensor& x);

/// real + i * imag, broadcast. Throws DTypeError unless both are float32 or both float64.
Tensor complex(const Tensor& real, const Tensor& imag);
/// abs * (cos(angle) + i * sin(angle)), broadcast; dtypes as complex().
Tensor polar(const Tensor& abs, const Tensor& angle);

/// The parts, as views. real() of a real tensor is itself; imag() of one throws DTypeError.
Tensor real(const Tensor& x);
Tensor imag(const Tensor& x);
/// A real tensor itself; else a copy whose imaginary parts have the other sign. (PyTorch's is a view that
/// remembers the sign: what is written into it reaches x, here it does not.)
Tensor conj(const Tensor& x);
/// conj(x): the names that PyTorch has for a copy, and for x itself where nothing is remembered.
Tensor conj_physical(const Tensor& x);
Tensor resolve_conj(const Tensor& x);
/// The conjugate of the last two dimensions exchanged. Throws ShapeError for fewer than two.
Tensor adjoint(const Tensor& x);
/// The angle in the plane, in radians from -pi to pi: of a real number 0, pi where it is negative, NaN of
/// NaN.
Tensor angle(const Tensor& x);
/// True where the imaginary part is 0: everywhere in a real tensor.
Tensor isreal(const Tensor& x);

}  // namespace tern
