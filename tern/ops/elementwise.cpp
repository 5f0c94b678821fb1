// Promotion, broadcasting and launch of unary and binary kernels.
#include "tern/ops/elementwise.h"

#include <algorithm>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/complex_elementwise.h"
#include "tern/ops/copy.h"

namespace tern {
namespace {

DType compute_dtype(ResultKind kind, DType common, const char* op) {
  if (kind == ResultKind::Float && !is_floating_point(common) && !is_complex(common)) {
    TERN_CHECK(is_computable(common), DTypeError,
               "{}: dtype {} is not supported: convert the tensor with to(dtype)", op, name(common));
    return get_default_dtype();
  }
  return common;
}

/// Bool arithmetic in PyTorch's terms.
BinaryOp bool_form(BinaryOp op) {
  switch (op) {
    case BinaryOp::Add:
    case BinaryOp::Maximum:
    case BinaryOp::Fmax:
    case BinaryOp::Heaviside:
      return BinaryOp::LogicalOr;
    case BinaryOp::Mul:
    case BinaryOp::Minimum:
    case BinaryOp::Fmin:
      return BinaryOp::LogicalAnd;
    case BinaryOp::Sub:
      TERN_THROW(DTypeError,
                 "sub: Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                 "`logical_xor()` operator instead.");
    default:
      return op;
  }
}

/// Resolves the operator for a dtype. Throws when it does not take it.
BinaryOp checked_op(BinaryOp op, ResultKind kind, DType dtype) {
  TERN_CHECK(is_computable(dtype), DTypeError,
             "{}: dtype {} is not supported: convert the tensor with to(dtype)", name(op), name(dtype));
  if (dtype == DType::Bool && kind == ResultKind::Same && !is_bitwise(op)) {
    op = bool_form(op);
    TERN_CHECK(result_kind(op) == ResultKind::Bool, DTypeError,
               "{}: not implemented for bool: convert the tensors with to(int64)", name(op));
  }
  TERN_CHECK(!is_bitwise(op) || !is_floating_point(dtype), DTypeError,
             "{}: not implemented for {}: it takes integers and bool", name(op), name(dtype));
  TERN_CHECK(!takes_integers_only(op) || is_integral(dtype), DTypeError,
             "{}: not implemented for {}: it takes integers", name(op), name(dtype));
  return op;
}

void check_unary(UnaryOp op, DType dtype) {
  bool is_predicate = result_kind(op) == ResultKind::Bool;
  TERN_CHECK(is_computable(dtype) && (dtype != DType::Bool || is_predicate || op == UnaryOp::BitwiseNot),
             DTypeError, "{}: dtype {} is not supported: convert the tensor with to(dtype)", name(op),
             name(dtype));
  TERN_CHECK(op != UnaryOp::BitwiseNot || !is_floating_point(dtype), DTypeError,
             "{}: not implemented for {}: it takes integers and bool", name(op), name(dtype));
}

/// True when the elements fill one block without gaps or repeats, in any order of dimensions.
bool is_dense(const Tensor& x) {
  SmallVector<int64_t, 6> order;
  for (size_t d = 0; d < x.shape().size(); ++d)
    if (x.shape()[d] != 1) order.push_back(static_cast<int64_t>(d));
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return x.strides()[static_cast<size_t>(a)] < x.strides()[static_cast<size_t>(b)];
  });
  int64_t step = 1;
  for (int64_t d : order) {
    if (x.strides()[static_cast<size_t>(d)] != step) return false;
    step *= x.shape()[static_cast<size_t>(d)];
  }
  return true;
}

/// A result with x's memory order when that is dense, as PyTorch gives; else row-major.
Tensor empty_in_order_of(const Tensor& x, DType dtype) {
  Tensor y = empty_contiguous(x.shape(), x.numel(), dtype, x.device());
  if (x.is_contiguous() || !is_dense(x)) return y;
  return Tensor::view_of(y.storage(), dtype, x.shape(), x.strides(), 0);
}

void launch_unary(UnaryOp op, const Tensor& out, const Tensor& x, Param first, Param second) {
  UnaryArgs args;
  args.op = op;
  args.dtype = x.dtype();
  args.out = out.data_ptr();
  args.in = x.data_ptr();
  args.params[0] = first;
  args.params[1] = second;
  if (out.is_contiguous() && x.is_contiguous())
    set_flat(args.geometry, x.numel());
  else
    collapse<2>(args.geometry, x.shape(), {out.strides().data(), x.strides().data()});
  launch(current_stream(x.device()), kernels::unary, args);
}

/// a or b may be undefined: then `scalar` takes its place.
void launch_binary(BinaryOp op, const Tensor& out, const Tensor& a, const Tensor& b, Param scalar,
                   Param first, Param second = {}) {
  BinaryArgs args;
  args.op = op;
  args.dtype = (a.defined() ? a : b).dtype();
  args.out = out.data_ptr();
  args.a = a.defined() ? a.data_ptr() : nullptr;
  args.b = b.defined() ? b.data_ptr() : nullptr;
  args.scalar = scalar;
  args.params[0] = first;
  args.params[1] = second;
  const Shape& shape = out.shape();
  auto flat = [&](const Tensor& t) {
    return !t.defined() || (t.is_contiguous() && t.numel() == out.numel());
  };
  if (out.is_contiguous() && flat(a) && flat(b)) {
    set_flat(args.geometry, out.numel());
  } else {
    Strides strides[2] = {Strides(shape.size()), Strides(shape.size())};
    const Tensor* operands[2] = {&a, &b};
    for (int i = 0; i < 2; ++i)
      if (operands[i]->defined())
        broadcast_strides(operands[i]->shape(), operands[i]->strides(), shape, strides[i].data());
    collapse<3>(args.geometry, shape, {out.strides().data(), strides[0].data(), strides[1].data()});
  }
  launch(current_stream(out.device()), kernels::binary, args);
}

/// Products and quotients of 16-bit floats by a number in a 0-d CPU tensor take it in float32, as they take
/// a Scalar: a loss scale of 65536 is no float16.
bool takes_wide_number(BinaryOp op, const Tensor& a, const Tensor& b) {
  return (op == BinaryOp::Mul || op == BinaryOp::Div) && b.dim() == 0 && a.dim() > 0 &&
         is_floating_point(a.dtype()) && itemsize(a.dtype()) == 2 && b.dtype() != a.dtype() &&
         b.device().is_cpu();
}

/// The number as the kernel takes it: to what compares or divides 16-bit floats one of them, as in PyTorch.
Param number_for(BinaryOp op, DType common, const Scalar& x, bool is_base = false) {
  const bool rounds = result_kind(op) == ResultKind::Bool || op == BinaryOp::Remainder ||
                      op == BinaryOp::Fmod || op == BinaryOp::Xlogy || (op == BinaryOp::Pow && is_base);
  if (rounds && common == DType::Float16)
    return param_of(static_cast<double>(static_cast<float>(Half(static_cast<float>(x.to_double())))));
  if (rounds && common == DType::BFloat16)
    return param_of(static_cast<double>(static_cast<float>(BFloat16(static_cast<float>(x.to_double())))));
  return param_of(x);
}

/// A 0-d CPU tensor that meets a tensor of another device counts as a number.
bool is_host_number(const Tensor& x, const Tensor& other) {
  return x.dim() == 0 && x.device().is_cpu() && !other.device().is_cpu();
}

DType result_dtype(BinaryOp op, DType common) {
  return result_kind(op) == ResultKind::Bool ? DType::Bool : common;
}

void binary_into(BinaryOp op, const Tensor& out, const Tensor& a, const Tensor& b, DType common, Param scalar,
                 Param param, Param second = {}) {
  Tensor x = a.defined() ? cast(a, common) : a;
  Tensor y = b.defined() ? cast(b, common) : b;
  if (is_complex(common)) return copy_elements(out, complex_binary(op, x, y, common, param));
  const DType result = result_dtype(op, common);
  if (result == out.dtype()) {
    launch_binary(op, out, x, y, scalar, param, second);
  } else {
    Tensor temporary = empty_contiguous(out.shape(), out.numel(), result, out.device());
    launch_binary(op, temporary, x, y, scalar, param, second);
    copy_elements(out, temporary);
  }
}

/// True when writing to `out` element by element could change elements of `x` that are read later.
bool overlaps_differently(const Tensor& out, const Tensor& x) {
  return out.storage() == x.storage() && !(out.storage_offset() == x.storage_offset() &&
                                           out.shape() == x.shape() && out.strides() == x.strides());
}

}  // namespace

Tensor unary(UnaryOp op, const Tensor& x, Param first, Param second) {
  ResultKind kind = result_kind(op);
  DType dtype = compute_dtype(kind, x.dtype(), name(op));
  check_unary(op, dtype);
  Tensor in = cast(x, dtype);
  Tensor y = empty_in_order_of(in, kind == ResultKind::Bool ? DType::Bool : dtype);
  if (op == UnaryOp::BitwiseNot && dtype == DType::Bool) op = UnaryOp::LogicalNot;
  launch_unary(op, y, in, first, second);
  return y;
}

Tensor binary(BinaryOp op, const Tensor& a, const Tensor& b, Param first, Param second) {
  if (takes_wide_number(op, a, b)) [[unlikely]]
    return cast(binary(op, cast(a, DType::Float32), cast(b, DType::Float32), first, second), a.dtype());
  if (a.device() != b.device()) [[unlikely]] {
    if (is_host_number(b, a)) return binary(op, a, to(b.detach(), a.device()), first, second);
    if (is_host_number(a, b)) return binary(op, to(a.detach(), b.device()), b, first, second);
    throw_device_mismatch(name(op), {{"the first operand", a}, {"the second operand", b}});
  }
  ResultKind kind = result_kind(op);
  DType common = compute_dtype(kind, result_type(a, b), name(op));
  if (is_complex_computable(common)) [[unlikely]]
    return complex_binary(op, a, b, common, first);
  op = checked_op(op, kind, common);
  const DType result = result_dtype(op, common);
  if (a.dtype() != common || b.dtype() != common)
    return binary(op, cast(a, common), cast(b, common), first, second);
  Tensor y;
  if (a.shape() == b.shape() && (a.is_contiguous() || a.strides() == b.strides())) {
    y = empty_in_order_of(a, result);
  } else {
    Shape shape = broadcast_shapes(a.shape(), b.shape(), name(op));
    int64_t numel = checked_numel(shape);
    y = empty_contiguous(std::move(shape), numel, result, a.device());
  }
  launch_binary(op, y, a, b, {}, first, second);
  return y;
}

void binary_out(BinaryOp op, const Tensor& out, const Tensor& a, const Tensor& b, Param first) {
  launch_binary(op, out, a, b, {}, first);
}

Tensor binary(BinaryOp op, const Tensor& a, const Scalar& b, Param first, Param second) {
  ResultKind kind = result_kind(op);
  DType common = compute_dtype(kind, result_type(a, b), name(op));
  if (is_complex_computable(common)) [[unlikely]]
    return complex_binary(op, a, b, common, first);
  op = checked_op(op, kind, common);
  Tensor x = cast(a, common);
  Tensor y = empty_in_order_of(x, result_dtype(op, common));
  launch_binary(op, y, x, Tensor(), number_for(op, common, b), first, second);
  return y;
}

Tensor binary(BinaryOp op, const Scalar& a, const Tensor& b, Param param) {
  ResultKind kind = result_kind(op);
  DType common = compute_dtype(kind, result_type(b, a), name(op));
  if (is_complex_computable(common)) [[unlikely]]
    return complex_binary(op, a, b, common);
  op = checked_op(op, kind, common);
  Tensor x = cast(b, common);
  Tensor y = empty_in_order_of(x, result_dtype(op, common));
  launch_binary(op, y, Tensor(), x, number_for(op, common, a, /*is_base=*/true), param);
  return y;
}

void unary_in_place(UnaryOp op, const Tensor& self, Param first, Param second) {
  DType dtype = compute_dtype(result_kind(op), self.dtype(), name(op));
  check_unary(op, dtype);
  check_result_fits(name(op), dtype, self.dtype());
  if (op == UnaryOp::BitwiseNot && dtype == DType::Bool) op = UnaryOp::LogicalNot;
  launch_unary(op, self, self, first, second);
}

void binary_in_place(BinaryOp op, const Tensor& self, const Tensor& other, Param param) {
  Tensor source = other;
  if (self.device() != other.device()) {
    if (!is_host_number(other, self))
      throw_device_mismatch((std::string(name(op)) + "_").c_str(), {{"self", self}, {"other", other}});
    source = to(other.detach(), self.device());
  }
  ResultKind kind = result_kind(op);
  DType common = takes_wide_number(op, self, other)
                     ? DType::Float32
                     : compute_dtype(kind, result_type(self, source), name(op));
  if (!is_complex_computable(common)) op = checked_op(op, kind, common);
  check_result_fits(name(op), result_dtype(op, common), self.dtype());
  Shape shape = broadcast_shapes(self.shape(), source.shape(), name(op));
  check_broadcasts_to(name(op), self, shape);
  if (overlaps_differently(self, source)) source = compact_copy(source);
  binary_into(op, self, self, source, common, {}, param);
}

void binary_in_place(BinaryOp op, const Tensor& self, const Scalar& other, Param first, Param second) {
  ResultKind kind = result_kind(op);
  DType common = compute_dtype(kind, result_type(self, other), name(op));
  if (is_complex_computable(common)) [[unlikely]] {
    check_result_fits(name(op), result_dtype(op, common), self.dtype());
    return copy_elements(self, complex_binary(op, self, other, common, first));
  }
  op = checked_op(op, kind, common);
  check_result_fits(name(op), result_dtype(op, common), self.dtype());
  binary_into(op, self, self, Tensor(), common, number_for(op, common, other), first, second);
}

namespace {

struct Operands {
  DType dtype;
  Tensor a, b, c;
};

/// The operands as one dtype on that device, where all but numbers on the CPU have to be.
Operands ternary_operands(TernaryOp op, const Tensor& a, const Tensor& b, const Tensor& c, Device device) {
  const DType dtype = compute_dtype(result_kind(op), result_type(a, b, c), name(op));
  TERN_CHECK(is_computable(dtype) && dtype != DType::Bool, DTypeError,
             "{}: dtype {} is not supported: convert the tensors with to(dtype)", name(op), name(dtype));
  const auto operand = [&](const Tensor& x) {
    const bool is_number = x.dim() == 0 && x.device().is_cpu();
    if (x.device() != device && !is_number)
      throw_device_mismatch(name(op),
                            {{"the first operand", a}, {"the second operand", b}, {"the third operand", c}});
    return cast(to(x.detach(), device), dtype);
  };
  return {dtype, operand(a), operand(b), operand(c)};
}

Shape ternary_shape(TernaryOp op, const Tensor& a, const Tensor& b, const Tensor& c) {
  return broadcast_shapes(broadcast_shapes(a.shape(), b.shape(), name(op)), c.shape(), name(op));
}

void launch_ternary(TernaryOp op, const Tensor& out, const Operands& operands, Param value) {
  TernaryArgs args;
  args.op = op;
  args.dtype = operands.dtype;
  args.out = out.data_ptr();
  args.a = operands.a.data_ptr();
  args.b = operands.b.data_ptr();
  args.c = operands.c.data_ptr();
  args.value = value;
  const Shape& shape = out.shape();
  const Tensor* each[3] = {&operands.a, &operands.b, &operands.c};
  Strides strides[3];
  for (int i = 0; i < 3; ++i) {
    strides[i].resize(shape.size(), 0);
    broadcast_strides(each[i]->shape(), each[i]->strides(), shape, strides[i].data());
  }
  collapse<4>(args.geometry, shape,
              {out.strides().data(), strides[0].data(), strides[1].data(), strides[2].data()});
  launch(current_stream(out.device()), kernels::ternary, args);
}

}  // namespace

Tensor ternary(TernaryOp op, const Tensor& a, const Tensor& b, const Tensor& c, Param value) {
  Device device = a.device();
  for (const Tensor* x : {&b, &c})
    if (device.is_cpu()) device = x->device();
  const Operands operands = ternary_operands(op, a, b, c, device);
  const bool alike = a.shape() == b.shape() && a.shape() == c.shape();
  Tensor y;
  if (alike && a.strides() == b.strides() && a.strides() == c.strides()) {
    y = empty_in_order_of(operands.a, operands.dtype);
  } else {
    Shape shape = ternary_shape(op, a, b, c);
    const int64_t numel = checked_numel(shape);
    y = empty_contiguous(std::move(shape), numel, operands.dtype, operands.a.device());
  }
  if (y.numel() != 0) launch_ternary(op, y, operands, value);
  return y;
}

void ternary_in_place(TernaryOp op, const Tensor& self, const Tensor& b, const Tensor& c, Param value) {
  Operands operands = ternary_operands(op, self, b, c, self.device());
  check_result_fits(name(op), operands.dtype, self.dtype());
  check_broadcasts_to(name(op), self, ternary_shape(op, self, b, c));
  if (self.numel() == 0) return;
  for (Tensor* x : {&operands.b, &operands.c})
    if (overlaps_differently(self, *x)) *x = compact_copy(*x);
  if (operands.dtype == self.dtype()) {
    launch_ternary(op, self, operands, value);
  } else {
    Tensor result = empty_contiguous(self.shape(), self.numel(), operands.dtype, self.device());
    launch_ternary(op, result, operands, value);
    copy_elements(self, result);
  }
}

void check_result_fits(std::string_view op, DType result, DType self) {
  const bool fits =
      is_complex(self) || (is_floating_point(self) && !is_complex(result)) ||
      (!is_complex(result) && !is_floating_point(result) && (!is_bool(self) || is_bool(result)));
  TERN_CHECK(
      fits, DTypeError,
      "{}_: result type {} can't be cast to the desired output type {}: use the form that is not in place",
      op, name(result), name(self));
}

void check_broadcasts_to(std::string_view op, const Tensor& self, const Shape& shape) {
  TERN_CHECK(
      shape == self.shape(), ShapeError,
      "{}_: output with shape {} doesn't match the broadcast shape {}: use the form that is not in place", op,
      to_string(self.shape()), to_string(shape));
}

void check_takes_floats(const char* op, DType dtype) {
  TERN_CHECK(is_floating_point(dtype), DTypeError,
             "{}: not implemented for {}: it takes floats; convert the tensors with to(dtype)", op,
             name(dtype));
}

void check_subtraction(const char* op, DType a, DType b) {
  TERN_CHECK(!is_bool(a) && !is_bool(b), DTypeError,
             "{}: Subtraction, the `-` operator, with {} is not supported (got {} and {}): use logical_xor() "
             "or logical_not(), or convert "
             "with to(int64)",
             op, is_bool(a) && is_bool(b) ? "two bool tensors" : "a bool tensor", name(a), name(b));
}

}  // namespace tern
