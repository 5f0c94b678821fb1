// The dispatch of the binary kernel, shared by the files that instantiate its loops (split to keep builds
// short).
#pragma once

#include "tern/backends/cpu/kernels/walk.h"
#include "tern/kernels/functors.h"

namespace tern::cpu::TERN_CPU_VARIANT {

using BinaryFn = void (*)(const BinaryArgs&);

template <template <class> class Functor, ResultKind kind, class T>
void run_binary(const BinaryArgs& args) {
  using Out = std::conditional_t<kind == ResultKind::Bool, bool, T>;
  using C = Compute<T>;
  map2(args.geometry, static_cast<Out*>(args.out), static_cast<const T*>(args.a),
       static_cast<const T*>(args.b), functors::from_param<C>(args.scalar), Functor<C>(args.params));
}

/// Which dtypes an operator computes on.
constexpr bool takes_floats(BinaryOp op) { return !is_bitwise(op) && !takes_integers_only(op); }
constexpr bool takes_bool(BinaryOp op, ResultKind kind) { return kind == ResultKind::Bool || is_bitwise(op); }

template <template <class> class Functor, ResultKind kind, BinaryOp op>
void dispatch_binary(const BinaryArgs& args) {
  constexpr bool floats = takes_floats(op);
  constexpr bool integers = kind != ResultKind::Float;
  switch (args.dtype) {
    case DType::Float32:
      if constexpr (floats) return run_binary<Functor, kind, float>(args);
      break;
    case DType::Float64:
      if constexpr (floats) return run_binary<Functor, kind, double>(args);
      break;
    case DType::Float16:
      if constexpr (floats) return run_binary<Functor, kind, Half>(args);
      break;
    case DType::BFloat16:
      if constexpr (floats) return run_binary<Functor, kind, BFloat16>(args);
      break;
    case DType::Int64:
      if constexpr (integers) return run_binary<Functor, kind, int64_t>(args);
      break;
    case DType::Int32:
      if constexpr (integers) return run_binary<Functor, kind, int32_t>(args);
      break;
    case DType::Int16:
      if constexpr (integers) return run_binary<Functor, kind, int16_t>(args);
      break;
    case DType::Int8:
      if constexpr (integers) return run_binary<Functor, kind, int8_t>(args);
      break;
    case DType::UInt8:
      if constexpr (integers) return run_binary<Functor, kind, uint8_t>(args);
      break;
    case DType::Bool:
      if constexpr (takes_bool(op, kind)) return run_binary<Functor, kind, uint8_t>(args);  // 0 or 1
      break;
    default:
      break;
  }
  throw_not_computable(args.dtype);
}

/// Sends the operators of one list to their loops.
#define TERN_BINARY_FAMILY(function, LIST) \
  void function(const BinaryArgs& args) {  \
    switch (args.op) {                     \
      LIST(TERN_BINARY_CASE)               \
      default:                             \
        break;                             \
    }                                      \
  }
#define TERN_BINARY_CASE(op, text, kind) \
  case BinaryOp::op:                     \
    return dispatch_binary<functors::op, ResultKind::kind, BinaryOp::op>(args);

void binary_arithmetic(const BinaryArgs& args);
void binary_compare(const BinaryArgs& args);
void binary_function(const BinaryArgs& args);
void binary_integers(const BinaryArgs& args);
void binary_special(const BinaryArgs& args);
void binary_activation(const BinaryArgs& args);

}  // namespace tern::cpu::TERN_CPU_VARIANT
