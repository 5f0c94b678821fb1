// The table: every kernel of kernels/list.h, in its order. A kernel that is missing fails the link.
#include "tern/backends/cuda/kernels/table.h"

namespace tern::cuda_backend {

#define TERN_DECLARE(kernel, Args) void kernel(const LaunchContext&, const Args&);
TERN_KERNELS(TERN_DECLARE)
#undef TERN_DECLARE

#define TERN_ENTRY(kernel, Args) \
  [](const LaunchContext& context, const void* args) { kernel(context, *static_cast<const Args*>(args)); },
const KernelFn kernel_table[kernels::kCount] = {TERN_KERNELS(TERN_ENTRY)};
#undef TERN_ENTRY

const char* const* kernel_names() {
#define TERN_NAME(kernel, Args) #kernel,
  static const char* const names[] = {TERN_KERNELS(TERN_NAME) nullptr};
#undef TERN_NAME
  return names;
}

}  // namespace tern::cuda_backend
