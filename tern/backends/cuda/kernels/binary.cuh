// The dispatch of the binary kernel, shared by the files that instantiate its loops.
#pragma once

#include "tern/backends/cuda/kernels/pointwise.cuh"
#include "tern/backends/cuda/kernels/report.cuh"

namespace tern::cuda_backend {

constexpr bool takes_floats(BinaryOp op) { return !is_bitwise(op) && !takes_integers_only(op); }
constexpr bool takes_bool(BinaryOp op, ResultKind kind) { return kind == ResultKind::Bool || is_bitwise(op); }
constexpr bool is_arithmetic(BinaryOp op) {
  return op == BinaryOp::Add || op == BinaryOp::Sub || op == BinaryOp::Mul || op == BinaryOp::Div;
}
constexpr bool divides(BinaryOp op) {
  return op == BinaryOp::DivFloor || op == BinaryOp::DivTrunc || op == BinaryOp::Remainder ||
         op == BinaryOp::Fmod;
}

/// An integer division, which reports a zero divisor.
template <class F>
struct Guarded {
  F f;
  Fault* fault;
  const char* op;
  __device__ int64_t operator()(int64_t a, int64_t b) const {
    if (b != 0) return f(a, b);
    report(fault, FaultKind::ZeroDivisor, op);
    return 0;
  }
};

template <template <class> class Functor, ResultKind kind, BinaryOp op>
void dispatch_binary(const LaunchContext& context, const BinaryArgs& args) {
  constexpr bool to_bool = kind == ResultKind::Bool;
  if constexpr (takes_floats(op)) {
    if (is_floating_point(args.dtype))
      return visit_floating(args.dtype, [&]<class T>() {
        map2<std::conditional_t<to_bool, bool, T>, T, is_arithmetic(op)>(context, args,
                                                                         Functor<Compute<T>>(args.params));
      });
  }
  if constexpr (kind != ResultKind::Float) {
    if (is_integral(args.dtype) || (takes_bool(op, kind) && is_bool(args.dtype))) {
      const Functor<int64_t> f(args.params);
      if constexpr (divides(op))
        return map2_integers<to_bool>(
            context, args, Guarded<Functor<int64_t>>{f, stream_of(context.stream).fault(), name(args.op)});
      else
        return map2_integers<to_bool>(context, args, f);
    }
  }
  throw_not_computable(args.dtype);
}

/// Sends the operators of one list to their loops.
#define TERN_BINARY_FAMILY(function, LIST)                              \
  void function(const LaunchContext& context, const BinaryArgs& args) { \
    switch (args.op) {                                                  \
      LIST(TERN_BINARY_CASE)                                            \
      default:                                                          \
        break;                                                          \
    }                                                                   \
  }
#define TERN_BINARY_CASE(op, text, kind) \
  case BinaryOp::op:                     \
    return dispatch_binary<functors::op, ResultKind::kind, BinaryOp::op>(context, args);

void binary_compare(const LaunchContext& context, const BinaryArgs& args);
void binary_division(const LaunchContext& context, const BinaryArgs& args);
void binary_function(const LaunchContext& context, const BinaryArgs& args);
void binary_integers(const LaunchContext& context, const BinaryArgs& args);
void binary_special(const LaunchContext& context, const BinaryArgs& args);
void binary_activation(const LaunchContext& context, const BinaryArgs& args);

}  // namespace tern::cuda_backend
