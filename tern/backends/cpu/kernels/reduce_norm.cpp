// Norms of floats, and their sum without NaN. Squares are summed without scaling, as PyTorch does: they
// overflow beyond 1e19 in float32.
#include "tern/backends/cpu/kernels/reduce.h"

namespace tern::cpu::TERN_CPU_VARIANT {

void reduce_norm(const ReduceArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    using C = Compute<T>;
    auto run = [&](const auto& op, const auto& finish) {
      wide::reduce_with(op, static_cast<const T*>(args.in), static_cast<T*>(args.out), args.kept,
                        args.reduced, [&](C sum) { return static_cast<T>(static_cast<C>(finish(sum))); });
    };
    auto same = [](C sum) { return sum; };
    switch (args.op) {
      case ReduceOp::NanSum:
        return run(wide::SumNumbers<T>{}, same);
      case ReduceOp::Norm1:
        return run(wide::SumAbs<T>{}, same);
      case ReduceOp::Norm2:
        return run(wide::SumSquares<T>{}, [](C sum) { return std::sqrt(sum); });
      case ReduceOp::NormInf:
        return run(wide::MaxAbs<T>{}, same);
      case ReduceOp::NormNegInf:
        return run(wide::MinAbs<T>{}, same);
      default: {
        const C p = static_cast<C>(args.param);
        const auto root = [p](C sum) { return std::pow(sum, C(1) / p); };
        constexpr C kLargest = 8;  // beyond, the rounding of products shows
        if (p >= 1 && p <= kLargest && p == std::trunc(p))
          return run(wide::SumWholePowers<T>(static_cast<int>(p)), root);
        return run(wide::SumPowers<T>(p), root);
      }
    }
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
