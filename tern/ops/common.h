// What operators share: checks of devices and dtypes with complete sentences, type promotion of operands, and
// the way back from a broadcast gradient.
#pragma once

#include <array>
#include <initializer_list>

#include "tern/autograd/record.h"
#include "tern/base/check.h"
#include "tern/core/tensor.h"
#include "tern/kernels/list.h"

namespace tern {

/// An operand with the name that its documentation uses.
struct NamedTensor {
  const char* name;
  const Tensor& tensor;
};

[[noreturn]] void throw_device_mismatch(const char* op, std::initializer_list<NamedTensor> tensors);

/// Throws DeviceError in PyTorch's words, and where each argument is, unless all (defined) tensors are on one
/// device.
inline void check_same_device(const char* op, std::initializer_list<NamedTensor> tensors) {
  const NamedTensor* first = nullptr;
  for (const NamedTensor& t : tensors) {
    if (!t.tensor.defined()) continue;
    if (first == nullptr)
      first = &t;
    else if (t.tensor.device() != first->tensor.device()) [[unlikely]]
      throw_device_mismatch(op, tensors);
  }
}

/// Throws unless a and b, of one device and dtype, can be multiplied as matrices: DeviceError, or DTypeError
/// for two dtypes and for bool.
void check_factors(const char* op, const Tensor& a, const Tensor& b);

/// Throws DTypeError unless numbers of this dtype can be drawn, or scaled.
void check_floating(const char* op, DType dtype);

/// The dtype of `a op b` by PyTorch's rules: a 0-d tensor counts only when its category is higher.
DType result_type(const Tensor& a, const Tensor& b);
DType result_type(const Tensor& a, const Scalar& b);
DType result_type(const Tensor& a, const Tensor& b, const Tensor& c);

/// The sum of `grad` over the dimensions in which `shape` was broadcast, as `dtype`.
Tensor reduce_to(const Tensor& grad, const Shape& shape, DType dtype);

/// The gradient's share for an operand that was broadcast, converted and, if it is a number on the CPU,
/// moved.
struct Side {
  Shape shape;
  DType dtype;
  Device device;
  explicit Side(const Tensor& x) : shape(x.shape()), dtype(x.dtype()), device(x.device()) {}
  Tensor of(const Tensor& grad) const;
};

/// The gradient of relu from its result y, recorded: g but where y is 0 or less.
Tensor relu_gradient(const Tensor& g, const Tensor& y);
/// The gradient of gelu by tanh from its input x, recorded.
Tensor gelu_tanh_gradient(const Tensor& g, const Tensor& x);

/// `grad`, a gradient of `op` made of x and y, which throws where it is differentiated, as PyTorch's does.
inline Tensor differentiable_once(const char* op, const Tensor& grad, const Tensor& x, const Tensor& y) {
  if (tracks_grad(x, y))
    record("not_implemented", grad, {x, y}, [op](GradContext&, const Tensor&) -> std::array<Tensor, 2> {
      TERN_THROW(NotImplementedError, "{}: the derivative of its gradient is not implemented", op);
    });
  return grad;
}

/// Uninitialised and contiguous, with the dtype and the device of `like`. Throws ShapeError for too many
/// elements.
Tensor empty_of(Shape shape, const Tensor& like);

/// The tensor as `dtype`, without history; itself when it has it.
Tensor cast(const Tensor& x, DType dtype);

}  // namespace tern
