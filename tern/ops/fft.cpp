// Fourier transforms along one dimension after the other, with their gradients, which are transforms again.
#include "tern/ops/fft.h"

#include <algorithm>
#include <cmath>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/complex.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern::fft {
namespace {

/// The kernel along dimension d of x, which gives `out_size` elements there; no history.
Tensor launch_along(FftKind kind, const Tensor& x, int64_t d, int64_t n, int64_t out_size, bool forward,
                    double scale) {
  const DType part = real_dtype(x.dtype());
  const DType dtype = kind == FftKind::ToReal ? part : complex_dtype(part);
  const int64_t last = x.dim() - 1;
  if (d != last && x.device().is_cuda())  // libraries of GPUs want sequences in one piece
    return movedim(launch_along(kind, movedim(x.detach(), d, last), last, n, out_size, forward, scale), last,
                   d);
  const Tensor in = compact(x);
  Shape shape = x.shape();
  shape[static_cast<size_t>(d)] = out_size;
  Tensor out = empty_contiguous(shape, checked_numel(shape), dtype, x.device());
  if (out.numel() == 0) return out;
  FftArgs args{.kind = kind,
               .dtype = part,
               .forward = forward,
               .scale = scale,
               .outer = 1,
               .size = n,
               .inner = 1,
               .in = in.data_ptr(),
               .out = out.data_ptr()};
  for (int64_t i = 0; i < x.dim(); ++i)
    if (i != d) (i < d ? args.outer : args.inner) *= x.size(i);
  launch(current_stream(x.device()), kernels::fft, args);
  return out;
}

Tensor to_complex(const Tensor& x, int64_t d, bool forward, double scale) {
  Tensor y = launch_along(FftKind::Complex, x, d, x.size(d), x.size(d), forward, scale);
  if (tracks_grad(x))
    record("fft_c2c", y, {x},
           [d, forward, scale](GradContext&, const Tensor& g) { return to_complex(g, d, !forward, scale); });
  return y;
}

/// A half of a spectrum whose elements that stand for two are multiplied.
Tensor weigh_pairs(const Tensor& half, int64_t d, int64_t n, double by) {
  const int64_t pairs = (n - 1) / 2;
  if (pairs == 0) return half;
  Tensor weights = filled({half.size(d)}, real_dtype(half.dtype()), half.device(), 1);
  fill_elements(narrow(weights, 0, 1, pairs), by);
  Shape shape(static_cast<size_t>(half.dim()), 1);
  shape[static_cast<size_t>(d)] = half.size(d);
  return mul(half, reshape(weights, shape));
}

Tensor to_real(const Tensor& x, int64_t d, int64_t n, double scale);

Tensor to_half(const Tensor& x, int64_t d, double scale) {
  const int64_t n = x.size(d);
  Tensor y = launch_along(FftKind::ToHalf, x, d, n, n / 2 + 1, /*forward=*/true, scale);
  if (tracks_grad(x))
    record("fft_r2c", y, {x}, [d, n, scale](GradContext&, const Tensor& g) {
      return to_real(weigh_pairs(g, d, n, 0.5), d, n, scale);
    });
  return y;
}

/// n real numbers from a half, with the sign of the way back.
Tensor to_real(const Tensor& x, int64_t d, int64_t n, double scale) {
  Tensor y = launch_along(FftKind::ToReal, x, d, n, n, /*forward=*/false, scale);
  if (tracks_grad(x))
    record("fft_c2r", y, {x}, [d, n, scale](GradContext&, const Tensor& g) {
      return weigh_pairs(to_half(g, d, scale), d, n, 2);
    });
  return y;
}

/// What a transform of `n` elements, or of several such, is multiplied by.
double scale_of(const char* op, std::string_view norm, double n, bool forward) {
  TERN_CHECK(norm == "backward" || norm == "forward" || norm == "ortho", ValueError,
             "{}: Invalid normalization mode: \"{}\": expected \"backward\", \"forward\" or \"ortho\"", op,
             norm);
  if (norm == "ortho") return 1 / std::sqrt(n);
  return (norm == "forward") == forward ? 1 / n : 1;
}

/// x as numbers that transforms take: float32 or float64, or complex ones.
Tensor numbers_of(const char* op, const Tensor& given, bool complex) {
  const Tensor x = autocasts(given) && is_floating_point(given.dtype()) && itemsize(given.dtype()) == 2
                       ? to(given, DType::Float32)
                       : given;
  TERN_CHECK(itemsize(x.dtype()) > 2 || !is_floating_point(x.dtype()), DTypeError,
             "{}: not implemented for {}: convert the tensor with to(float32)", op, name(x.dtype()));
  const bool is_number = is_floating_point(x.dtype()) || is_complex_computable(x.dtype());
  const Tensor y = is_number ? x : to(x, get_default_dtype());
  return complex ? to(y, complex_dtype(y.dtype())) : y;
}
Tensor real_numbers(const char* op, const Tensor& x) {
  TERN_CHECK(!is_complex(x.dtype()), DTypeError, "{}: expects a real input tensor, but got {}: take real()",
             op, name(x.dtype()));
  return numbers_of(op, x, /*complex=*/false);
}

void check_length(const char* op, int64_t n) {
  TERN_CHECK(n >= 1, ValueError, "{}: Invalid number of data points ({}) specified", op, n);
}

/// x cut or filled with zeros to n elements along d.
Tensor resized(const Tensor& x, int64_t d, int64_t n) {
  const int64_t size = x.size(d);
  if (size == n) return x;
  if (size > n) return narrow(x, d, 0, n);
  Shape shape = x.shape();
  shape[static_cast<size_t>(d)] = n - size;
  return cat({x, filled(shape, x.dtype(), x.device(), 0)}, d);
}

int64_t dim_of(const char* op, const Tensor& x, int64_t dim) {
  TERN_CHECK(x.dim() > 0, IndexError, "{}: expects a tensor with at least one dimension", op);
  return wrap_dim(dim, x.dim(), op);
}

Tensor along(const char* op, const Tensor& given, std::optional<int64_t> n, int64_t dim,
             std::string_view norm, bool forward) {
  const Tensor x = numbers_of(op, given, /*complex=*/true);
  const int64_t d = dim_of(op, x, dim), size = n.value_or(x.size(d));
  check_length(op, size);
  return to_complex(resized(x, d, size), d, forward, scale_of(op, norm, static_cast<double>(size), forward));
}

/// The transforms of several dimensions: which, and how long.
struct Plan {
  Shape dims, sizes;
  double count = 1;
};

/// `halves`: the last dimension of x is a half.
Plan plan_of(const char* op, const Tensor& x, const std::optional<Shape>& s, const std::optional<Shape>& dims,
             bool halves) {
  Plan plan;
  TERN_CHECK(!s || !dims || s->size() == dims->size(), ValueError,
             "{}: When given, dim and shape arguments must have the same length, got {} and {}", op,
             to_string(dims.value_or(Shape())), to_string(s.value_or(Shape())));
  const int64_t count = static_cast<int64_t>(dims ? dims->size() : s ? s->size() : x.shape().size());
  TERN_CHECK(count <= x.dim(), ValueError,
             "{}: Got shape with {} values but input tensor only has {} dimensions", op, count, x.dim());
  TERN_CHECK(count > 0 || !halves, ValueError, "{}: must transform at least one axis", op);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t d = dims ? wrap_dim((*dims)[static_cast<size_t>(i)], x.dim(), op) : x.dim() - count + i;
    TERN_CHECK(std::find(plan.dims.begin(), plan.dims.end(), d) == plan.dims.end(), ValueError,
               "{}: FFT dims must be unique, got {}", op, to_string(*dims));
    int64_t size = s ? (*s)[static_cast<size_t>(i)] : -1;
    if (size == -1) size = halves && i + 1 == count ? 2 * (x.size(d) - 1) : x.size(d);
    check_length(op, size);
    plan.dims.push_back(d);
    plan.sizes.push_back(size);
    plan.count *= static_cast<double>(size);
  }
  return plan;
}

/// All but the last `left` dimensions of the plan, complex to complex, without a factor.
Tensor along_all(Tensor x, const Plan& plan, size_t left, bool forward) {
  for (size_t i = plan.dims.size() - left; i-- > 0;)
    x = to_complex(resized(x, plan.dims[i], plan.sizes[i]), plan.dims[i], forward, 1);
  return x;
}

Tensor along_several(const char* op, const Tensor& given, const std::optional<Shape>& s,
                     const std::optional<Shape>& dims, std::string_view norm, bool forward) {
  const Tensor x = numbers_of(op, given, /*complex=*/true);
  const Plan plan = plan_of(op, x, s, dims, /*halves=*/false);
  const double scale = scale_of(op, norm, plan.count, forward);
  if (plan.dims.empty()) return clone(x);
  const Tensor y =
      to_complex(resized(x, plan.dims.back(), plan.sizes.back()), plan.dims.back(), forward, scale);
  return along_all(y, plan, 1, forward);
}

Tensor several_to_half(const char* op, const Tensor& given, const std::optional<Shape>& s,
                       const std::optional<Shape>& dims, std::string_view norm, bool forward) {
  const Tensor x = real_numbers(op, given);
  const Plan plan = plan_of(op, x, s, dims, /*halves=*/false);
  TERN_CHECK(!plan.dims.empty(), ValueError, "{}: must transform at least one axis", op);
  const double scale = scale_of(op, norm, plan.count, forward);
  const Tensor half = to_half(resized(x, plan.dims.back(), plan.sizes.back()), plan.dims.back(), scale);
  return along_all(forward ? half : conj(half), plan, 1, forward);
}

Tensor several_to_real(const char* op, const Tensor& given, const std::optional<Shape>& s,
                       const std::optional<Shape>& dims, std::string_view norm, bool forward) {
  const Tensor x = numbers_of(op, given, /*complex=*/true);
  const Plan plan = plan_of(op, x, s, dims, /*halves=*/true);
  const double scale = scale_of(op, norm, plan.count, forward);
  const Tensor half = along_all(x, plan, 1, forward);
  const int64_t d = plan.dims.back(), n = plan.sizes.back();
  return to_real(resized(forward ? conj(half) : half, d, n / 2 + 1), d, n, scale);
}

Shape all_dims_of(const Tensor& x) {
  Shape dims;
  for (int64_t d = 0; d < x.dim(); ++d) dims.push_back(d);
  return dims;
}

}  // namespace

Tensor fft(const Tensor& x, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return along("fft", x, n, dim, norm, /*forward=*/true);
}
Tensor ifft(const Tensor& x, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return along("ifft", x, n, dim, norm, /*forward=*/false);
}

namespace {
Tensor half_along(const char* op, const Tensor& x, std::optional<int64_t> n, int64_t dim,
                  std::string_view norm, bool forward) {
  const int64_t d = dim_of(op, x, dim);
  return several_to_half(op, x, Shape{n.value_or(x.size(d))}, Shape{d}, norm, forward);
}
Tensor real_along(const char* op, const Tensor& x, std::optional<int64_t> n, int64_t dim,
                  std::string_view norm, bool forward) {
  const int64_t d = dim_of(op, x, dim);
  return several_to_real(op, x, Shape{n.value_or(2 * (x.size(d) - 1))}, Shape{d}, norm, forward);
}
}  // namespace

Tensor rfft(const Tensor& x, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return half_along("rfft", x, n, dim, norm, /*forward=*/true);
}
Tensor irfft(const Tensor& x, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return real_along("irfft", x, n, dim, norm, /*forward=*/false);
}
Tensor hfft(const Tensor& x, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return real_along("hfft", x, n, dim, norm, /*forward=*/true);
}
Tensor ihfft(const Tensor& x, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return half_along("ihfft", x, n, dim, norm, /*forward=*/false);
}

#define TERN_SEVERAL(name, function, forward)                                                  \
  Tensor name##n(const Tensor& x, std::optional<Shape> s, std::optional<Shape> dims,           \
                 std::string_view norm) {                                                      \
    return function(#name "n", x, s, dims, norm, forward);                                     \
  }                                                                                            \
  Tensor name##2(const Tensor& x, std::optional<Shape> s, Shape dims, std::string_view norm) { \
    return function(#name "2", x, s, dims, norm, forward);                                     \
  }
TERN_SEVERAL(fft, along_several, true)
TERN_SEVERAL(ifft, along_several, false)
TERN_SEVERAL(rfft, several_to_half, true)
TERN_SEVERAL(irfft, several_to_real, false)
TERN_SEVERAL(hfft, several_to_real, true)
TERN_SEVERAL(ihfft, several_to_half, false)
#undef TERN_SEVERAL

Tensor fftfreq(int64_t n, double d, const TensorOptions& options) {
  check_length("fftfreq", n);
  const DType dtype = options.dtype.value_or(get_default_dtype());
  const TensorOptions plain{.dtype = dtype, .device = options.device};
  const Tensor places = cat({arange(0, (n + 1) / 2, plain), arange(-(n / 2), 0, plain)}, 0);
  return div(places, static_cast<double>(n) * d).detach().requires_grad_(options.requires_grad);
}
Tensor rfftfreq(int64_t n, double d, const TensorOptions& options) {
  check_length("rfftfreq", n);
  const DType dtype = options.dtype.value_or(get_default_dtype());
  const Tensor places = arange(n / 2 + 1, {.dtype = dtype, .device = options.device});
  return div(places, static_cast<double>(n) * d).detach().requires_grad_(options.requires_grad);
}

Tensor fftshift(const Tensor& x, std::optional<Shape> dims) {
  const Shape along = dims ? *dims : all_dims_of(x);
  Shape shifts;
  for (const int64_t d : along) shifts.push_back(x.size(d) / 2);
  return roll(x, shifts, along);
}
Tensor ifftshift(const Tensor& x, std::optional<Shape> dims) {
  const Shape along = dims ? *dims : all_dims_of(x);
  Shape shifts;
  for (const int64_t d : along) shifts.push_back((x.size(d) + 1) / 2);
  return roll(x, shifts, along);
}

}  // namespace tern::fft
