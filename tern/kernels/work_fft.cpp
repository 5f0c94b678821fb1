// What the kernel of Fourier transforms does: 5 n log2 n operations for a complex transform of n numbers,
// half of that for a real one (the count that benchmarks of FFTs use).
#include <cmath>

#include "tern/kernels/work_describe.h"

namespace tern::kernels {

void describe(const FftArgs& args, Work& work) {
  const int64_t transforms = args.outer * args.inner;
  const double n = static_cast<double>(args.size);
  const bool real = args.kind != FftKind::Complex;
  work.flops = (real ? 2.5 : 5) * static_cast<double>(transforms) * n * std::log2(n);
  const size_t item = itemsize(args.dtype);
  const int64_t reals = transforms * args.size;
  const int64_t halves = 2 * transforms * args.half();
  writes(work, args.out, item,
         args.kind == FftKind::Complex  ? 2 * reals
         : args.kind == FftKind::ToReal ? reals
                                        : halves);
  reads(work, args.in, item,
        args.kind == FftKind::Complex  ? 2 * reals
        : args.kind == FftKind::ToReal ? halves
                                       : reals);
}

}  // namespace tern::kernels
