// Arithmetic operators. The element functions are in kernels/functors.h.
#include "tern/backends/cpu/kernels/binary.h"
#include "tern/base/check.h"
namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Integer division by zero has no result: looked for before any loop, since a loop may run on several
/// threads.
void refuse_zero_divisors(const BinaryArgs& args) {
  if (is_floating_point(args.dtype)) return;
  bool zero = false;
  visit_dtype(args.dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      const T* b = static_cast<const T*>(args.b);
      if (b == nullptr) {
        zero = functors::from_param<T>(args.scalar) == T(0);
        return;
      }
      const int64_t step = args.geometry.strides[2][args.geometry.ndim - 1];
      walk_rows(args.geometry, 0, args.geometry.numel, [&](const int64_t(&offset)[3], int64_t n) {
        for (int64_t i = 0; i < n; ++i) zero |= b[offset[2] + i * step] == T(0);
      });
    }
  });
  TERN_CHECK(!zero, ValueError,
             "{}: ZeroDivisionError: an integer divisor is 0: use floats, or clamp the divisor",
             name(args.op));
}

}  // namespace

void binary_arithmetic(const BinaryArgs& args) {
  const bool divides = args.op == BinaryOp::DivFloor || args.op == BinaryOp::DivTrunc ||
                       args.op == BinaryOp::Remainder || args.op == BinaryOp::Fmod;
  if (divides) refuse_zero_divisors(args);
  switch (args.op) {
    case BinaryOp::Add:
      return dispatch_binary<functors::Add, ResultKind::Same, BinaryOp::Add>(args);
    case BinaryOp::Sub:
      return dispatch_binary<functors::Sub, ResultKind::Same, BinaryOp::Sub>(args);
    case BinaryOp::Mul:
      return dispatch_binary<functors::Mul, ResultKind::Same, BinaryOp::Mul>(args);
    case BinaryOp::Div:
      return dispatch_binary<functors::Div, ResultKind::Float, BinaryOp::Div>(args);
    case BinaryOp::DivFloor:
      return dispatch_binary<functors::DivFloor, ResultKind::Same, BinaryOp::DivFloor>(args);
    case BinaryOp::DivTrunc:
      return dispatch_binary<functors::DivTrunc, ResultKind::Same, BinaryOp::DivTrunc>(args);
    case BinaryOp::Remainder:
      return dispatch_binary<functors::Remainder, ResultKind::Same, BinaryOp::Remainder>(args);
    case BinaryOp::Fmod:
      return dispatch_binary<functors::Fmod, ResultKind::Same, BinaryOp::Fmod>(args);
    case BinaryOp::Pow:
      if (is_cube(args)) return dispatch_binary<functors::Cube, ResultKind::Same, BinaryOp::Pow>(args);
      return dispatch_binary<functors::Pow, ResultKind::Same, BinaryOp::Pow>(args);
    case BinaryOp::Atan2:
      return dispatch_binary<functors::Atan2, ResultKind::Float, BinaryOp::Atan2>(args);
    case BinaryOp::Maximum:
      return dispatch_binary<functors::Maximum, ResultKind::Same, BinaryOp::Maximum>(args);
    case BinaryOp::Minimum:
      return dispatch_binary<functors::Minimum, ResultKind::Same, BinaryOp::Minimum>(args);
    default:
      break;
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
