// Parts of complex numbers, and functions that only they have.
#include "tern/ops/complex.h"

#include <numbers>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/complex_elementwise.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

void check_complex(const char* op, const Tensor& x) {
  TERN_CHECK(is_complex_computable(x.dtype()), DTypeError,
             "{}: only complex64 and complex128 tensors have such parts, got {}", op, name(x.dtype()));
}

void check_parts(const char* op, const char* first, const Tensor& a, const char* second, const Tensor& b) {
  TERN_CHECK(
      a.dtype() == b.dtype() && (a.dtype() == DType::Float32 || a.dtype() == DType::Float64), DTypeError,
      "{}: expected both inputs to be float32 or both float64, but {} is {} and {} is {}: convert them "
      "with to(dtype)",
      op, first, name(a.dtype()), second, name(b.dtype()));
  check_same_device(op, {{first, a}, {second, b}});
}

}  // namespace

Tensor view_as_real(const Tensor& x) {
  check_complex("view_as_real", x);
  Tensor y = real_view(x);
  record_view("view_as_real", y, x,
              [](GradContext&, const Tensor& g) { return view_as_complex(contiguous(g)); });
  return y;
}

Tensor view_as_complex(const Tensor& x) {
  TERN_CHECK(x.dtype() == DType::Float32 || x.dtype() == DType::Float64, DTypeError,
             "view_as_complex: expected a float32 or float64 tensor, got {}: convert it with to(float32)",
             name(x.dtype()));
  TERN_CHECK(x.dim() > 0 && x.size(-1) == 2, ShapeError,
             "view_as_complex: Tensor must have a last dimension of size 2, got shape {}",
             to_string(x.shape()));
  bool pairs = x.stride(-1) == 1 && x.storage_offset() % 2 == 0;
  for (int64_t d = 0; d + 1 < x.dim(); ++d) pairs = pairs && x.stride(d) % 2 == 0;
  TERN_CHECK(
      pairs, ShapeError,
      "view_as_complex: Tensor must have a last dimension with stride 1, and its other strides and its "
      "storage offset must be divisible by 2: strides {}, offset {}: use contiguous()",
      to_string(x.strides()), x.storage_offset());
  Tensor y = complex_view(x);
  record_view("view_as_complex", y, x, [](GradContext&, const Tensor& g) { return view_as_real(g); });
  return y;
}

Tensor complex(const Tensor& real, const Tensor& imag) {
  check_parts("complex", "real", real, "imag", imag);
  const Shape shape = broadcast_shapes(real.shape(), imag.shape(), "complex");
  return view_as_complex(stack({expand(real, shape), expand(imag, shape)}, -1));
}

Tensor polar(const Tensor& abs, const Tensor& angle) {
  check_parts("polar", "abs", abs, "angle", angle);
  return complex(mul(abs, cos(angle)), mul(abs, sin(angle)));
}

Tensor real(const Tensor& x) { return is_complex(x.dtype()) ? select(view_as_real(x), -1, 0) : x; }

Tensor imag(const Tensor& x) {
  check_complex("imag", x);
  return select(view_as_real(x), -1, 1);
}

Tensor conj(const Tensor& x) {
  return is_complex_computable(x.dtype()) ? complex_function(ComplexUnary::Conj, x) : x;
}
Tensor conj_physical(const Tensor& x) { return conj(x); }
Tensor resolve_conj(const Tensor& x) { return x; }

Tensor adjoint(const Tensor& x) {
  TERN_CHECK(x.dim() >= 2, ShapeError, "adjoint: expected at least 2 dimensions, got shape {}",
             to_string(x.shape()));
  return conj(mT(x));
}

Tensor angle(const Tensor& x) {
  if (is_complex(x.dtype())) return complex_function(ComplexUnary::Angle, x);
  const DType dtype = is_floating_point(x.dtype()) ? x.dtype() : get_default_dtype();
  Tensor y = cast(where(lt(x, 0), std::numbers::pi, Scalar(0.0)), dtype);
  if (is_floating_point(x.dtype())) y = where(isnan(x.detach()), x.detach(), y);
  if (tracks_grad(x))
    record("angle", y, {x},
           [](GradContext&, const Tensor& g) { return filled(g.shape(), g.dtype(), g.device(), 0); });
  return y;
}

Tensor isreal(const Tensor& x) {
  if (is_complex(x.dtype())) return eq(imag(x.detach()), 0);
  return full(x.shape(), true, {.device = x.device()});
}

Tensor MoreMethods::real() const { return tern::real(self()); }
Tensor MoreMethods::imag() const { return tern::imag(self()); }
Tensor MoreMethods::conj() const { return tern::conj(self()); }
Tensor MoreMethods::angle() const { return tern::angle(self()); }
Tensor MoreMethods::mH() const { return tern::adjoint(self()); }
Tensor MoreMethods::adjoint() const { return tern::adjoint(self()); }

}  // namespace tern
