// The table: every kernel of kernels/list.h, in its order. A kernel that does not exist yet throws when it is
// started.
#include "tern/backends/cuda/kernels/table.h"

#include "tern/backends/cuda/check.h"

namespace tern::cuda_backend {

#define TERN_DECLARE(kernel, Args) [[gnu::weak]] void kernel(const LaunchContext&, const Args&);
TERN_KERNELS(TERN_DECLARE)
#undef TERN_DECLARE

#define TERN_ENTRY(kernel, Args)                        \
  [](const LaunchContext& context, const void* args) {  \
    if (&kernel == nullptr) throw_not_on_gpus(#kernel); \
    kernel(context, *static_cast<const Args*>(args));   \
  },
const KernelFn kernel_table[kernels::kCount] = {TERN_KERNELS(TERN_ENTRY)};
#undef TERN_ENTRY

const char* const* kernel_names() {
  static const char* names[kernels::kCount + 1] = {};
  const char** next = names;
#define TERN_NAME(kernel, Args) \
  if (&kernel != nullptr) *next++ = #kernel;
  TERN_KERNELS(TERN_NAME)
#undef TERN_NAME
  return names;
}

}  // namespace tern::cuda_backend
