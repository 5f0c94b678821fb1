// Maximum and minimum without positions; those with positions are in reduce_index.cpp.
#include "tern/backends/cpu/kernels/reduce.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

template <template <class> class Op>
void run(const ReduceArgs& args) {
  visit_dtype(args.dtype == DType::Bool ? DType::UInt8 : args.dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>)
      wide::reduce_with(Op<T>{}, static_cast<const T*>(args.in), static_cast<T*>(args.out), args.kept,
                        args.reduced, [](Compute<T> x) { return static_cast<T>(x); });
  });
}

}  // namespace

void reduce_extreme(const ReduceArgs& args) {
  if (args.op == ReduceOp::Max)
    run<wide::Max>(args);
  else
    run<wide::Min>(args);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
