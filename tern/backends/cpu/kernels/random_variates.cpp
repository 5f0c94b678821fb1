// Random numbers of distributions whose parameters differ from element to element. The algorithms are in
// kernels/variates.h.
#include "tern/backends/cpu/kernels/loops.h"
#include "tern/base/parallel.h"
#include "tern/kernels/list.h"
#include "tern/kernels/variates.h"

namespace tern::cpu::TERN_CPU_VARIANT {

void variates(const LaunchContext&, const VariatesArgs& args) {
  constexpr int64_t kGrain = 512;  // an element costs a hundred times what one of a plain draw does
  visit_floating(args.dtype, [&]<class T>() {
    const auto *a = static_cast<const T*>(args.a), *b = static_cast<const T*>(args.b);
    auto* const out = static_cast<T*>(args.out);
    parallel_for(args.numel, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        random::ElementSource source(start_of(args), i);
        const double number = random::drawn<T>(args.variate, static_cast<Compute<T>>(a[i]),
                                               b == nullptr ? 0 : static_cast<Compute<T>>(b[i]), source);
        out[i] = static_cast<T>(static_cast<Compute<T>>(number));
      }
    });
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
