// The unary kernel: one loop for each operator and dtype. The element functions are in kernels/functors.h.
#include "tern/backends/cpu/kernels/walk.h"
#include "tern/kernels/functors_special.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

using UnaryFn = void (*)(const UnaryArgs&);

template <template <class> class Functor, ResultKind kind, class T>
void run(const UnaryArgs& args) {
  using Out = std::conditional_t<kind == ResultKind::Bool, bool, T>;
  map1(args.geometry, static_cast<Out*>(args.out), static_cast<const T*>(args.in),
       Functor<Compute<T>>(args.params));
}

template <template <class> class Functor, ResultKind kind, UnaryOp op>
void dispatch(const UnaryArgs& args) {
  constexpr bool floats = op != UnaryOp::BitwiseNot;
  constexpr bool integers = kind != ResultKind::Float;
  switch (args.dtype) {
    case DType::Float32:
      if constexpr (floats) return run<Functor, kind, float>(args);
      break;
    case DType::Float64:
      if constexpr (floats) return run<Functor, kind, double>(args);
      break;
    case DType::Float16:
      if constexpr (floats) return run<Functor, kind, Half>(args);
      break;
    case DType::BFloat16:
      if constexpr (floats) return run<Functor, kind, BFloat16>(args);
      break;
    case DType::Int64:
      if constexpr (integers) return run<Functor, kind, int64_t>(args);
      break;
    case DType::Int32:
      if constexpr (integers) return run<Functor, kind, int32_t>(args);
      break;
    case DType::Int16:
      if constexpr (integers) return run<Functor, kind, int16_t>(args);
      break;
    case DType::Int8:
      if constexpr (integers) return run<Functor, kind, int8_t>(args);
      break;
    case DType::UInt8:
      if constexpr (integers) return run<Functor, kind, uint8_t>(args);
      break;
    case DType::Bool:
      if constexpr (kind == ResultKind::Bool) return run<Functor, kind, uint8_t>(args);  // 0 or 1
      break;
    default:
      break;
  }
  throw_not_computable(args.dtype);
}

constexpr UnaryFn kTable[] = {
#define TERN_ENTRY(op, text, kind) dispatch<functors::op, ResultKind::kind, UnaryOp::op>,
    TERN_UNARY_OPS(TERN_ENTRY)
#undef TERN_ENTRY
};

}  // namespace

void unary(const LaunchContext&, const UnaryArgs& args) { kTable[static_cast<int>(args.op)](args); }

}  // namespace tern::cpu::TERN_CPU_VARIANT
