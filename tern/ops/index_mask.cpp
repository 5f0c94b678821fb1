// Selection by masks, positions of non-zero elements, and sorted sequences.
// Index tensors are in index.cpp.
#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/complex_elementwise.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation_checks.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/index_plan.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

void check_condition(const char* op, const char* what, const Tensor& condition) {
  TERN_CHECK(condition.dtype() == DType::Bool, DTypeError,
             "{}: expected a bool tensor as {}, got {}: compare it, e.g. with "
             "ne(x, 0)",
             op, what, name(condition.dtype()));
}

/// The kernel; an undefined a or b stands for its number. All were checked; a
/// and b have `dtype`.
Tensor select_elements(const Tensor& condition, const Tensor& a, const Tensor& b, Param a_number,
                       Param b_number, DType dtype, Shape shape) {
  if (is_complex_computable(dtype)) {
    const auto parts = [&, rank = static_cast<int64_t>(shape.size())](const Tensor& x, Param number) {
      return aligned_parts(x.defined() ? x : filled({}, dtype, condition.device(), number.floating), rank);
    };
    shape.push_back(2);
    return complex_view(select_elements(unsqueeze(condition, -1), parts(a, a_number), parts(b, b_number), {},
                                        {}, real_dtype(dtype), shape));
  }
  TERN_CHECK(is_computable(dtype), DTypeError, "where: dtype {} is not supported", name(dtype));
  Tensor out = empty_contiguous(shape, checked_numel(shape), dtype, condition.device());
  if (out.numel() == 0) return out;
  WhereArgs args;
  args.dtype = dtype;
  args.out = out.data_ptr();
  args.condition = condition.data_ptr();
  args.a = a.defined() ? a.data_ptr() : nullptr;
  args.b = b.defined() ? b.data_ptr() : nullptr;
  args.a_scalar = a_number;
  args.b_scalar = b_number;
  const Tensor* operands[3] = {&condition, &a, &b};
  Strides strides[3];
  for (int i = 0; i < 3; ++i) {
    strides[i].resize(shape.size(), 0);
    if (operands[i]->defined())
      broadcast_strides(operands[i]->shape(), operands[i]->strides(), shape, strides[i].data());
  }
  collapse<4>(args.geometry, shape,
              {out.strides().data(), strides[0].data(), strides[1].data(), strides[2].data()});
  launch(current_stream(out.device()), kernels::where, args);
  return out;
}

/// A 0-d CPU tensor may meet tensors of another device.
Tensor beside(const Tensor& x, Device device) {
  return x.dim() == 0 && x.device().is_cpu() && !device.is_cpu() ? to(x, device) : x;
}

/// Where the elements are selected: on the CPU if all are there.
Device common_device(std::initializer_list<Device> devices) {
  for (const Device device : devices)
    if (!device.is_cpu()) return device;
  return kCPU;
}

}  // namespace

Tensor where(const Tensor& condition_given, const Tensor& a_given, const Tensor& b_given) {
  check_condition("where", "condition", condition_given);
  const Device device = common_device({condition_given.device(), a_given.device(), b_given.device()});
  const Tensor condition = beside(condition_given, device), a = beside(a_given, device),
               b = beside(b_given, device);
  check_same_device("where", {{"condition", condition}, {"a", a}, {"b", b}});
  const DType dtype = result_type(a, b);
  Shape shape = broadcast_shapes(broadcast_shapes(condition.shape(), a.shape(), "where"), b.shape(), "where");
  Tensor y = select_elements(condition, cast(a, dtype), cast(b, dtype), {}, {}, dtype, std::move(shape));
  if (tracks_grad(a, b))
    record("where", y, {a, b},
           [condition_ = save(condition), a_shape = a.shape(), b_shape = b.shape(), a_dtype = a.dtype(),
            b_dtype = b.dtype()](GradContext& c, const Tensor& g) {
             const Tensor chosen = c[condition_];
             return std::array<Tensor, 2>{
                 c.needs(0) ? reduce_to(where(chosen, g, 0), a_shape, a_dtype) : Tensor(),
                 c.needs(1) ? reduce_to(where(chosen, 0, g), b_shape, b_dtype) : Tensor()};
           });
  return y;
}

Tensor where(const Tensor& condition_given, const Tensor& a, const Scalar& b) {
  check_condition("where", "condition", condition_given);
  if (b.is_complex()) return where(condition_given, a, complex_number(b, result_type(a, b), a.device()));
  const Tensor condition = beside(condition_given, a.device());
  check_same_device("where", {{"condition", condition}, {"a", a}});
  const DType dtype = result_type(a, b);
  Shape shape = broadcast_shapes(condition.shape(), a.shape(), "where");
  Tensor y = select_elements(condition, cast(a, dtype), {}, {}, param_of(b), dtype, std::move(shape));
  if (tracks_grad(a))
    record("where", y, {a},
           [condition_ = save(condition), a_shape = a.shape(), a_dtype = a.dtype()](GradContext& c,
                                                                                    const Tensor& g) {
             return reduce_to(where(c[condition_], g, 0), a_shape, a_dtype);
           });
  return y;
}

Tensor where(const Tensor& condition_given, const Scalar& a, const Tensor& b) {
  check_condition("where", "condition", condition_given);
  if (a.is_complex()) return where(condition_given, complex_number(a, result_type(b, a), b.device()), b);
  const Tensor condition = beside(condition_given, b.device());
  check_same_device("where", {{"condition", condition}, {"b", b}});
  const DType dtype = result_type(b, a);
  Shape shape = broadcast_shapes(condition.shape(), b.shape(), "where");
  Tensor y = select_elements(condition, {}, cast(b, dtype), param_of(a), {}, dtype, std::move(shape));
  if (tracks_grad(b))
    record("where", y, {b},
           [condition_ = save(condition), b_shape = b.shape(), b_dtype = b.dtype()](GradContext& c,
                                                                                    const Tensor& g) {
             return reduce_to(where(c[condition_], 0, g), b_shape, b_dtype);
           });
  return y;
}

Tensor where(const Tensor& condition, const Scalar& a, const Scalar& b) {
  check_condition("where", "condition", condition);
  if (a.is_complex() || b.is_complex()) {
    const DType complex = complex_dtype(get_default_dtype());
    return where(condition, complex_number(a, complex, condition.device()),
                 complex_number(b, complex, condition.device()));
  }
  const DType kind = std::max(a.kind(), b.kind());
  const DType dtype = kind == DType::Float64 ? get_default_dtype() : kind;
  return select_elements(condition, {}, {}, param_of(a), param_of(b), dtype, condition.shape());
}

std::vector<Tensor> where(const Tensor& condition) {
  return nonzero_coordinates("where", condition.dim() == 0 ? reshape(condition, {1}) : condition,
                             /*flat=*/false);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Scalar& value) {
  check_condition("masked_fill", "mask", mask);
  check_same_device("masked_fill", {{"x", x}, {"mask", mask}});
  if (is_complex_computable(x.dtype()) && value.is_complex())
    return where(mask, complex_number(value, x.dtype(), x.device()), x);
  const Param number = detail::written_number("masked_fill", value, x.dtype());
  Shape shape = broadcast_shapes(x.shape(), mask.shape(), "masked_fill");
  Tensor y = select_elements(mask, {}, x, number, {}, x.dtype(), std::move(shape));
  if (tracks_grad(x))
    record("masked_fill", y, {x},
           [mask_ = save(mask), shape_ = x.shape(), dtype = x.dtype()](GradContext& c, const Tensor& g) {
             return reduce_to(masked_fill(g, c[mask_], 0), shape_, dtype);
           });
  return y;
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value) {
  TERN_CHECK(value.dim() == 0, ShapeError,
             "masked_fill: only supports a 0-dimensional value tensor, but got "
             "tensor with {} dimension(s): use where",
             value.dim());
  check_condition("masked_fill", "mask", mask);
  return where(mask, to(value, x.dtype()), x);
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  check_condition("masked_select", "mask", mask);
  check_same_device("masked_select", {{"x", x}, {"mask", mask}});
  const Shape shape = broadcast_shapes(x.shape(), mask.shape(), "masked_select");
  return index(reshape(expand(x, shape), {-1}), {reshape(expand(mask, shape), {-1})});
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
  check_condition("masked_scatter", "mask", mask);
  check_same_device("masked_scatter", {{"x", x}, {"mask", mask}, {"source", source}});
  const Shape shape = broadcast_shapes(x.shape(), mask.shape(), "masked_scatter");
  const Tensor positions = nonzero_coordinates("masked_scatter", expand(mask, shape), /*flat=*/true)[0];
  TERN_CHECK(source.numel() >= positions.numel(), ShapeError,
             "masked_scatter: Number of elements of source < number of ones in "
             "mask: {} < {}",
             source.numel(), positions.numel());
  const Tensor values = narrow(reshape(source, {-1}), 0, 0, positions.numel());
  return reshape(index_put(reshape(expand(x, shape), {-1}), {positions}, values), shape);
}

Tensor nonzero(const Tensor& x) { return nonzero_table("nonzero", x, /*flat=*/false, /*by_column=*/false); }
Tensor argwhere(const Tensor& x) { return nonzero(x); }

Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right) {
  const char* op = "searchsorted";
  check_same_device(op, {{"sorted", sorted}, {"values", values}});
  TERN_CHECK(sorted.dtype() == values.dtype(), DTypeError,
             "{}: boundaries and input value tensors should have same dtype, "
             "but got {} and {}: convert one with to(dtype)",
             op, name(sorted.dtype()), name(values.dtype()));
  bool fits = sorted.dim() == 1 || sorted.dim() == values.dim();
  for (int64_t d = 0; fits && sorted.dim() > 1 && d + 1 < sorted.dim(); ++d)
    fits = sorted.size(d) == values.size(d);
  TERN_CHECK(fits && sorted.dim() > 0, ShapeError,
             "{}: boundaries tensor should be 1 dimension or the first N-1 "
             "dimensions of boundaries tensor and input value tensor must "
             "match, but got {} and {}",
             op, to_string(sorted.shape()), to_string(values.shape()));
  const Tensor rows = compact(sorted), wanted = compact(values);
  Tensor out = empty_contiguous(values.shape(), values.numel(), DType::Int64, values.device());
  if (out.numel() == 0) return out;
  SearchSortedArgs args;
  args.dtype = rows.dtype();
  args.right = right;
  args.sorted = rows.data_ptr();
  args.values = wanted.data_ptr();
  args.out = static_cast<int64_t*>(out.data_ptr());
  args.row_values = sorted.dim() == 1 ? values.numel() : values.size(-1);
  args.rows = values.numel() / args.row_values;
  args.length = sorted.size(-1);
  args.sorted_row_stride = sorted.dim() == 1 ? 0 : args.length;
  launch(current_stream(out.device()), kernels::searchsorted, args);
  return out;
}

Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right) {
  TERN_CHECK(boundaries.dim() == 1, ShapeError,
             "bucketize: boundaries tensor must be 1 dimension, but got dim({}) with shape {}",
             boundaries.dim(), to_string(boundaries.shape()));
  const DType dtype = result_type(x, boundaries);
  return searchsorted(cast(boundaries, dtype), cast(x, dtype), right);
}

}  // namespace tern
