// The parts of the reduce kernel, one for each group of operations (split to keep builds short).
#pragma once

#include "tern/backends/cpu/kernels/reduce_ops.h"
#include "tern/kernels/reduce.h"

namespace tern::cpu::TERN_CPU_VARIANT {

void reduce_sum(const ReduceArgs& args);
void reduce_prod(const ReduceArgs& args);
void reduce_extreme(const ReduceArgs& args);
void reduce_logic(const ReduceArgs& args);
void reduce_norm(const ReduceArgs& args);

/// Sums and products: bool counts as uint8, integers give int64, floats are divided by the parameter.
template <template <class> class Op>
void reduce_arithmetic(const ReduceArgs& args) {
  visit_dtype(args.dtype == DType::Bool ? DType::UInt8 : args.dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      using A = typename Op<T>::Acc;
      using Out = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
      wide::reduce_with(Op<T>{}, static_cast<const T*>(args.in), static_cast<Out*>(args.out), args.kept,
                        args.reduced, [&](A sum) {
                          if constexpr (std::is_integral_v<T>)
                            return static_cast<Out>(sum);
                          else
                            return static_cast<Out>(static_cast<A>(sum / static_cast<A>(args.param)));
                        });
    }
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
