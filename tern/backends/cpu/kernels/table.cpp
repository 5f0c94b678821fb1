// The table of this variant: every kernel of kernels/list.h, in its order. A kernel that is missing fails the
// link.
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {

#define TERN_DECLARE(kernel, Args) void kernel(const LaunchContext&, const Args&);
TERN_KERNELS(TERN_DECLARE)
#undef TERN_DECLARE

#define TERN_ENTRY(kernel, Args) \
  [](const LaunchContext& context, const void* args) { kernel(context, *static_cast<const Args*>(args)); },
extern const KernelFn kernel_table[kernels::kCount];
const KernelFn kernel_table[kernels::kCount] = {TERN_KERNELS(TERN_ENTRY)};
#undef TERN_ENTRY

}  // namespace tern::cpu::TERN_CPU_VARIANT
