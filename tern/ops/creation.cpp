// Tensors of one value, ranges and matrices. Tensors from numbers and foreign memory are in
// creation_data.cpp.
#include "tern/ops/creation.h"

#include <cmath>

#include "tern/autograd/arithmetic.h"
#include "tern/core/memory.h"
#include "tern/ops/common.h"
#include "tern/ops/complex.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation_checks.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {

namespace detail {

Tensor make(const char* op, IntArrayRef shape, DType dtype, const std::optional<Device>& device) {
  int64_t numel = with_context(op, [&] { return checked_numel(shape); });
  const Device where =
      device ? with_context(op, [&] { return resolve_device(*device); }) : get_default_device();
  return empty_contiguous(shape.to_shape(), numel, dtype, where);
}

Tensor finish(Tensor x, const TensorOptions& options) {
  if (options.requires_grad) x.requires_grad_();
  return x;
}

TensorOptions like(const Tensor& x, const TensorOptions& options) {
  return {.dtype = options.dtype.value_or(x.dtype()),
          .device = options.device.value_or(x.device()),
          .requires_grad = options.requires_grad};
}

double largest_of(DType dtype) {
  return dtype == DType::Float16    ? 65504.0
         : dtype == DType::BFloat16 ? 0x1.fep127
         : dtype == DType::Float32  ? static_cast<double>(std::numeric_limits<float>::max())
                                    : std::numeric_limits<double>::max();
}

bool fits(double value, DType dtype) {
  if (is_bool(dtype)) return true;
  return visit_dtype(dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      // Both limits are exact in double: max + 1 is a power of two.
      double cut = std::trunc(value);
      return cut >= static_cast<double>(std::numeric_limits<T>::min()) &&
             cut < std::ldexp(1.0, std::numeric_limits<T>::digits);
    } else {
      return !std::isfinite(value) || std::abs(value) <= largest_of(dtype);
    }
  });
}

bool fits(int64_t value, DType dtype) {
  if (!is_integral(dtype)) return fits(static_cast<double>(value), dtype);
  return visit_dtype(dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T>)
      return value >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
             value <= static_cast<int64_t>(std::numeric_limits<T>::max());
    else
      return true;
  });
}

bool fits(const Scalar& value, DType dtype) {
  if (is_complex_computable(dtype))
    return fits(value.real(), real_dtype(dtype)) && fits(value.imag(), real_dtype(dtype));
  return value.is_floating_point() ? fits(value.to_double(), dtype) : fits(value.to_int(), dtype);
}

Param written_number(const char* op, const Scalar& value, DType dtype) {
  const bool wraps = dtype == DType::UInt8 && !value.is_floating_point() && value.to_double() < 0 &&
                     fits(-value.to_double(), dtype);
  TERN_CHECK(fits(value, dtype) || wraps, ValueError,
             "{}: value {} cannot be converted to type {} without overflow: choose a wider dtype", op,
             text_of(value), name(dtype));
  // A fraction is true, though an integer would cut it to 0.
  return is_bool(dtype) ? param_of(Scalar(value.to_bool())) : param_of(value);
}

std::string text_of(const Scalar& value) {
  if (value.is_complex()) return fmt::format("({}{:+}j)", value.real(), value.imag());
  return value.is_floating_point()     ? fmt::format("{}", value.to_double())
         : value.kind() == DType::Bool ? (value.to_bool() ? "true" : "false")
                                       : fmt::format("{}", value.to_int());
}

void fill_number(const Tensor& out, const Scalar& value) {
  if (out.numel() == 0) return;
  fill_elements(out, value.real());
  if (value.imag() != 0) fill_elements(select(real_view(out), -1, 1), value.imag());
}

}  // namespace detail

namespace {

Tensor constant(const char* op, IntArrayRef shape, const Scalar& value, DType dtype,
                const TensorOptions& options) {
  if (is_complex_computable(dtype)) {
    Tensor x = detail::make(op, shape, dtype, options.device);
    detail::fill_number(x, value);
    return detail::finish(std::move(x), options);
  }
  TERN_CHECK(is_computable(dtype), DTypeError,
             "{}: no operator computes on dtype {}, so that no tensor of it is made: choose another dtype",
             op, name(dtype));
  const Param number = detail::written_number(op, value, dtype);
  Tensor x = detail::make(op, shape, dtype, options.device);
  FillArgs args{.dtype = dtype, .value = number, .out = x.data_ptr(), .geometry = {}};
  set_flat(args.geometry, x.numel());
  if (x.numel() != 0) launch(current_stream(x.device()), kernels::fill, args);
  return detail::finish(std::move(x), options);
}

DType dtype_or_default(const TensorOptions& options) { return options.dtype.value_or(get_default_dtype()); }

void launch_range(const Tensor& out, const RangeArgs& args) {
  if (args.count != 0) launch(current_stream(out.device()), kernels::range, args);
}

DType range_dtype(const char* op, std::initializer_list<const Scalar*> numbers,
                  const TensorOptions& options) {
  bool floating = false;
  for (const Scalar* number : numbers) floating = floating || number->is_floating_point();
  DType dtype = options.dtype.value_or(floating ? get_default_dtype() : DType::Int64);
  TERN_CHECK(!is_bool(dtype) && is_computable(dtype), DTypeError,
             "{}: needs an integer or floating-point dtype, got {}", op, name(dtype));
  return dtype;
}

}  // namespace

Tensor empty(IntArrayRef shape, const TensorOptions& options) {
  return detail::finish(detail::make("empty", shape, dtype_or_default(options), options.device), options);
}
Tensor zeros(IntArrayRef shape, const TensorOptions& options) {
  return constant("zeros", shape, 0, dtype_or_default(options), options);
}
Tensor ones(IntArrayRef shape, const TensorOptions& options) {
  return constant("ones", shape, 1, dtype_or_default(options), options);
}

Tensor full(IntArrayRef shape, const Scalar& value, const TensorOptions& options) {
  const DType kind = value.is_complex()          ? complex_dtype(get_default_dtype())
                     : value.is_floating_point() ? get_default_dtype()
                                                 : value.kind();
  return constant("full", shape, value, options.dtype.value_or(kind), options);
}

Tensor empty_like(const Tensor& x, const TensorOptions& options) {
  return empty(x.shape(), detail::like(x, options));
}
Tensor zeros_like(const Tensor& x, const TensorOptions& options) {
  return zeros(x.shape(), detail::like(x, options));
}
Tensor ones_like(const Tensor& x, const TensorOptions& options) {
  return ones(x.shape(), detail::like(x, options));
}
Tensor full_like(const Tensor& x, const Scalar& value, const TensorOptions& options) {
  return full(x.shape(), value, detail::like(x, options));
}

Tensor arange(const Scalar& end, const TensorOptions& options) { return arange(0, end, 1, options); }
Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options) {
  return arange(start, end, 1, options);
}

Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, const TensorOptions& options) {
  DType dtype = range_dtype("arange", {&start, &end, &step}, options);
  double a = start.to_double(), b = end.to_double(), s = step.to_double();
  auto text = [&] {
    return fmt::format("start {}, end {}, step {}", detail::text_of(start), detail::text_of(end),
                       detail::text_of(step));
  };
  TERN_CHECK(std::isfinite(a) && std::isfinite(b) && std::isfinite(s), ValueError,
             "arange: unsupported range, numbers must be finite: {}", text());
  TERN_CHECK(s != 0, ValueError, "arange: step must be nonzero: {}", text());
  TERN_CHECK(s > 0 ? b >= a : b <= a, ValueError,
             "arange: upper bound and lower bound inconsistent with step sign: {}", text());
  double length = std::ceil((b - a) / s);
  TERN_CHECK(length < 0x1p62, ValueError, "arange: invalid size, possible overflow: {}", text());
  int64_t count = static_cast<int64_t>(length);
  if (!start.is_floating_point() && !end.is_floating_point() && !step.is_floating_point()) {
    // Exact: the distance and the size of the step fit unsigned numbers even where they overflow int64.
    uint64_t first = static_cast<uint64_t>(start.to_int()), last = static_cast<uint64_t>(end.to_int());
    uint64_t distance = s > 0 ? last - first : first - last;
    uint64_t stride =
        s > 0 ? static_cast<uint64_t>(step.to_int()) : uint64_t{0} - static_cast<uint64_t>(step.to_int());
    count = static_cast<int64_t>(distance / stride + (distance % stride != 0));
  }
  const bool integers = is_integral(dtype);
  TERN_CHECK(!integers || (detail::fits(start, DType::Int64) && detail::fits(step, DType::Int64)), ValueError,
             "arange: out of bounds for {}: {}", name(dtype), text());
  Tensor x = detail::make("arange", {count}, dtype, options.device);
  launch_range(x, {.dtype = dtype,
                   .integers = integers,
                   .out = x.data_ptr(),
                   .count = count,
                   .pivot = count,
                   .start = a,
                   .step = s,
                   .end = b,
                   .integer_start = integers ? start.to_int() : 0,
                   .integer_step = integers ? step.to_int() : 0});
  return detail::finish(std::move(x), options);
}

namespace {

/// An end of linspace or logspace, as the dtype holds it: for integers it is cut first, and negative ones
/// wrap around in uint8, as in PyTorch. Throws ValueError where the dtype does not hold it.
double end_of_space(const char* op, const Scalar& end, DType dtype) {
  const double value = detail::written_number(op, end, dtype).floating;
  if (!is_integral(dtype)) return value;
  const double cut = std::trunc(value);
  return dtype == DType::UInt8 && cut < 0 ? cut + 256 : cut;
}

}  // namespace

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, const TensorOptions& options) {
  TERN_CHECK(steps >= 0, ValueError, "linspace: number of steps must be non-negative, got {}", steps);
  DType dtype = options.dtype.value_or(get_default_dtype());
  TERN_CHECK(!is_bool(dtype) && is_computable(dtype), DTypeError,
             "linspace: needs an integer or floating-point dtype, got {}", name(dtype));
  const double a = end_of_space("linspace", start, dtype), b = end_of_space("linspace", end, dtype);
  Tensor x = detail::make("linspace", {steps}, dtype, options.device);
  launch_range(x, {.dtype = dtype,
                   .integers = false,
                   .out = x.data_ptr(),
                   .count = steps,
                   .pivot = steps == 1 ? 1 : steps / 2,
                   .start = a,
                   .step = steps > 1 ? (b - a) / static_cast<double>(steps - 1) : 0,
                   .end = b,
                   .integer_start = 0,
                   .integer_step = 0});
  return detail::finish(std::move(x), options);
}

Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base,
                const TensorOptions& options) {
  DType dtype = options.dtype.value_or(get_default_dtype());
  TERN_CHECK(!is_bool(dtype) && is_computable(dtype), DTypeError,
             "logspace: needs an integer or floating-point dtype, got {}", name(dtype));
  const double a = end_of_space("logspace", start, dtype), b = end_of_space("logspace", end, dtype);
  Tensor exponents =
      linspace(a, b, steps, {.dtype = float64, .device = options.device, .requires_grad = false});
  return detail::finish(cast(binary(BinaryOp::Pow, Scalar(base), exponents), dtype), options);
}

Tensor eye(int64_t n, const TensorOptions& options) { return eye(n, n, options); }

Tensor eye(int64_t n, int64_t m, const TensorOptions& options) {
  TERN_CHECK(n >= 0 && m >= 0, ShapeError, "eye: sizes must be greater or equal to 0, got n = {}, m = {}", n,
             m);
  Tensor x = zeros({n, m}, {.dtype = options.dtype, .device = options.device, .requires_grad = false});
  int64_t length = std::min(n, m);
  if (length != 0)
    fill_elements(Tensor::view_of(x.storage(), x.dtype(), {length}, {m + 1}, x.storage_offset()), 1);
  return detail::finish(std::move(x), options);
}

namespace {

Tensor triangle(const char* op, const Tensor& x, int64_t diagonal, bool upper) {
  TERN_CHECK(x.dim() >= 2, ShapeError, "{}: input tensor must have at least 2 dimensions, got shape {}", op,
             to_string(x.shape()));
  if (x.dtype() == DType::Complex128)  // numbers of 16 bytes have no kernel
    return complex(triangle(op, real(x), diagonal, upper), triangle(op, imag(x), diagonal, upper));
  Tensor source = contiguous(x);
  Tensor y = empty_contiguous(x.shape(), x.numel(), x.dtype(), x.device());
  int64_t rows = x.size(-2), cols = x.size(-1);
  if (x.numel() != 0)
    launch(current_stream(x.device()), kernels::triangle,
           {.dtype = x.dtype(),
            .upper = upper,
            .out = y.data_ptr(),
            .in = source.data_ptr(),
            .batch = x.numel() / (rows * cols),
            .rows = rows,
            .cols = cols,
            .diagonal = diagonal});
  if (tracks_grad(x))
    record(op, y, {x},
           [op, diagonal, upper](GradContext&, const Tensor& g) { return triangle(op, g, diagonal, upper); });
  return y;
}

}  // namespace

Tensor tril(const Tensor& x, int64_t diagonal) { return triangle("tril", x, diagonal, /*upper=*/false); }
Tensor triu(const Tensor& x, int64_t diagonal) { return triangle("triu", x, diagonal, /*upper=*/true); }

Tensor one_hot(const Tensor& classes, int64_t num_classes) {
  TERN_CHECK(is_integral(classes.dtype()), DTypeError,
             "one_hot: class numbers must be integers, got {}: convert them with to(int64)",
             name(classes.dtype()));
  TERN_CHECK(num_classes >= -1 && num_classes != 0, ValueError,
             "one_hot: num_classes must be positive or -1 (inferred), got {}", num_classes);
  if (classes.numel() == 0) {
    TERN_CHECK(num_classes > 0, ValueError,
               "one_hot: can not infer total number of classes from empty tensor: give num_classes");
  } else {
    int64_t smallest = item(min(classes)).to_int(), largest = item(max(classes)).to_int();
    TERN_CHECK(smallest >= 0, ValueError, "one_hot: class values must be non-negative, found {}", smallest);
    TERN_CHECK(num_classes == -1 || largest < num_classes, ValueError,
               "one_hot: class values must be smaller than num_classes, found {} with num_classes = {}",
               largest, num_classes);
    TERN_CHECK(largest < INT64_MAX, ValueError, "one_hot: class {} is too large", largest);
    if (num_classes == -1) num_classes = largest + 1;
  }
  Shape shape = classes.shape();
  shape.push_back(num_classes);
  Tensor y = zeros(shape, {.dtype = DType::Int64, .device = classes.device(), .requires_grad = false});
  return scatter_(y, -1, unsqueeze(cast(classes, DType::Int64), -1), Scalar(1));
}

}  // namespace tern
