// Checks and promotion shared by the operators.
#include "tern/ops/common.h"

#include "tern/autograd/arithmetic.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/index.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {

void throw_device_mismatch(const char* op, std::initializer_list<NamedTensor> tensors) {
  Device first;
  Device other;
  bool seen = false;
  std::string places;
  for (const NamedTensor& t : tensors) {
    if (!t.tensor.defined()) continue;
    Device device = t.tensor.device();
    if (!seen) first = other = device;
    seen = true;
    if (device != first) other = device;
    if (!places.empty()) places += ", ";
    places += fmt::format("{} is on {}", t.name, device.str());
  }
  TERN_THROW(DeviceError,
             "Expected all tensors to be on the same device, but found at least two devices, {} and {}! ({}: "
             "{}; bring them together "
             "with to(device))",
             first.str(), other.str(), op, places);
}

namespace {
int category(DType dtype) {
  return is_complex(dtype) ? 3 : is_floating_point(dtype) ? 2 : is_bool(dtype) ? 0 : 1;
}
}  // namespace

DType result_type(const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype()) return a.dtype();
  bool a_scalar = a.dim() == 0, b_scalar = b.dim() == 0;
  if (a_scalar != b_scalar) {
    const Tensor& full = a_scalar ? b : a;
    const Tensor& scalar = a_scalar ? a : b;
    if (category(scalar.dtype()) <= category(full.dtype())) return full.dtype();
    if (is_complex_computable(scalar.dtype()) && is_floating_point(full.dtype()))
      return complex_dtype(full.dtype());  // a number says that there are complex ones, not how wide
  }
  return promote_types(a.dtype(), b.dtype());
}

DType result_type(const Tensor& a, const Scalar& b) { return promote_with_scalar(a.dtype(), b); }

DType result_type(const Tensor& a, const Tensor& b, const Tensor& c) {
  std::optional<DType> full, numbers;
  for (const Tensor* x : {&a, &b, &c}) {
    std::optional<DType>& common = x->dim() == 0 ? numbers : full;
    common = common ? promote_types(*common, x->dtype()) : x->dtype();
  }
  if (!full || !numbers) return full ? *full : *numbers;
  if (is_complex_computable(*numbers) && is_floating_point(*full)) return complex_dtype(*full);
  return category(*numbers) <= category(*full) ? *full : promote_types(*full, *numbers);
}

Tensor reduce_to(const Tensor& grad, const Shape& shape, DType dtype) {
  Tensor g = grad;
  if (g.shape() != shape) {
    SmallVector<int64_t, 6> dims;
    size_t extra = g.shape().size() - shape.size();
    for (size_t d = 0; d < g.shape().size(); ++d)
      if (d < extra || (shape[d - extra] == 1 && g.shape()[d] != 1)) dims.push_back(static_cast<int64_t>(d));
    g = sum(g, dims, /*keepdim=*/true);
    if (g.shape() != shape) g = reshape(g, shape);
  }
  return g.dtype() == dtype ? g : to(g, dtype);
}

Tensor Side::of(const Tensor& grad) const {
  Tensor share = reduce_to(grad, shape, dtype);
  return share.device() == device ? share : to(share, device);
}

Tensor relu_gradient(const Tensor& g, const Tensor& y) { return where(le(y, 0), 0, g); }

Tensor empty_of(Shape shape, const Tensor& like) {
  const int64_t numel = checked_numel(shape);
  return empty_contiguous(std::move(shape), numel, like.dtype(), like.device());
}

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = empty_contiguous(x.shape(), x.numel(), dtype, x.device());
  copy_elements(y, x);
  return y;
}

void check_floating(const char* op, DType dtype) {
  TERN_CHECK(is_floating_point(dtype), DTypeError, "{}: needs a floating-point dtype, got {}", op,
             name(dtype));
}

void check_factors(const char* op, const Tensor& a, const Tensor& b) {
  if (a.device() != b.device()) [[unlikely]]
    throw_device_mismatch(op, {{"a", a}, {"b", b}});
  TERN_CHECK(a.dtype() == b.dtype(), DTypeError,
             "{}: expected both operands to have the same dtype, but got: {} "
             "and {}: convert one with to(dtype)",
             op, name(a.dtype()), name(b.dtype()));
  TERN_CHECK((is_computable(a.dtype()) || is_complex_computable(a.dtype())) && a.dtype() != DType::Bool,
             DTypeError, "{}: not implemented for {}: convert the operands with to(dtype)", op,
             name(a.dtype()));
}

}  // namespace tern
