// The dispatch of the unary kernel, shared by the files that instantiate its loops.
#pragma once

#include "tern/backends/cuda/kernels/pointwise.cuh"
#include "tern/kernels/functors_special.h"

namespace tern::cuda_backend {

template <template <class> class Functor, ResultKind kind, UnaryOp op>
void dispatch_unary(const LaunchContext& context, const UnaryArgs& args) {
  constexpr bool to_bool = kind == ResultKind::Bool;
  if constexpr (op != UnaryOp::BitwiseNot) {
    if (is_floating_point(args.dtype))
      return visit_floating(args.dtype, [&]<class T>() {
        map1<std::conditional_t<to_bool, bool, T>, T>(context, args, Functor<Compute<T>>(args.params));
      });
  }
  if constexpr (kind != ResultKind::Float) {
    if (is_integral(args.dtype) || (to_bool && is_bool(args.dtype)))
      return map1_integers<to_bool>(context, args, Functor<int64_t>(args.params));
  }
  throw_not_computable(args.dtype);
}

void unary_float(const LaunchContext& context, const UnaryArgs& args);

}  // namespace tern::cuda_backend
